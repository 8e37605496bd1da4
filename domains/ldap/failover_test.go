package ldap_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"

	goldap "github.com/go-ldap/ldap/v3"
	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/domains/ldap"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/testkit/slapd"
)

// TestFailOver: when a host cannot be reached or has no valid certificate, the next one is asked,
// and the dead one not before all others.
func TestFailOver(t *testing.T) {
	is := is.New(t)
	s, wrongCert := slapd.Test(t, company(slapd.LDAP())), slapd.Test(t, slapd.LDAP())
	var mu sync.Mutex
	var dialed []string
	away := "127.0.0.1:1"
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		mu.Lock()
		dialed = append(dialed, address)
		mu.Unlock()
		if address == away {
			return nil, errors.New("away")
		}
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	took := func() string {
		mu.Lock()
		defer mu.Unlock()
		defer func() { dialed = nil }()
		return strings.Join(dialed, " ")
	}
	bad, good := strings.TrimPrefix(wrongCert.TLSURL, "ldaps://"), strings.TrimPrefix(s.TLSURL, "ldaps://")
	var logged lines
	realm := mustOpen(
		t, ldap.LDAP{Dial: dial, Log: slog.New(slog.NewTextHandler(&logged, nil))},
		s.Config("ldaps://"+away, map[string]any{"hosts": []string{wrongCert.TLSURL, good}}),
	)
	_, err := realm.Login(t.Context(), "jo", "jo's secret")
	is.NoErr(err)
	is.Equal(took(), away+" "+bad+" "+good)
	_, err = realm.Login(t.Context(), "jo", "wrong")
	is.Equal(errs.CodeOf(err), errs.Unauthenticated)
	is.Equal(took(), good)
	// once
	is.Equal(
		logged.take("level=WARN msg=\"directory host cannot be used: others are asked first\""),
		[]string{"ldaps://" + away, wrongCert.TLSURL},
	)
	people, _, err := everything(t.Context(), realm)
	is.NoErr(err)
	is.True(len(people) > 0)
	is.Equal(took(), good)
	s.Stop()
	_, err = realm.Login(t.Context(), "jo", "jo's secret")
	saying(t, err, "No host of the directory can be used.", "ldaps://"+away+
		" cannot be reached", "TLS with the directory ldaps://"+bad, "set caCert",
		"ldaps://"+good+" cannot be reached")
	is.Equal(took(), good+" "+away+" "+bad) // those that are dead may be back
}

// lines are what was logged.
type lines struct {
	mu  sync.Mutex
	all strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(p)
}

// take returns the hosts of the lines that have a text.
func (l *lines) take(text string) (hosts []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.all.String()) {
		if strings.Contains(line, text) {
			_, rest, _ := strings.Cut(line, "host=")
			host, _, _ := strings.Cut(rest, " ")
			hosts = append(hosts, strings.TrimSpace(host))
		}
	}
	l.all.Reset()
	return hosts
}

// TestNoFailOver: a host that refuses the service has answered.
func TestNoFailOver(t *testing.T) {
	is := is.New(t)
	first := newFake(t, nil)
	first.binds = map[string]int{"cn=reader": goldap.LDAPResultInvalidCredentials}
	second := newFake(t, nil)
	config := strings.Replace(string(first.config()), "{", `{"hosts": ["`+second.url+`"], `, 1)
	_, err := mustOpen(t, ldap.LDAP{}, json.RawMessage(config)).Login(t.Context(), "jo", "pw")
	saying(t, err, "refuses the bind of cn=reader", first.url)
	is.Equal(second.log(), "")
}

// TestHungHost: one that takes connections and says nothing costs a few seconds, once.
func TestHungHost(t *testing.T) {
	is := is.New(t)
	s := slapd.Test(t, company(slapd.LDAP()))
	realm := mustOpen(
		t, ldap.LDAP{},
		s.Config(
			strings.Replace(silent(t), "ldap:", "ldaps:", 1),
			map[string]any{"hosts": []string{s.TLSURL}, "timeoutMs": 300},
		),
	)
	for range 2 {
		_, err := realm.Login(t.Context(), "jo", "jo's secret")
		is.NoErr(err)
	}
}

// TestReferrals: to a host that is listed they are followed, as the configuration says how to
// connect, and to no other.
func TestReferrals(t *testing.T) {
	is := is.New(t)
	branch := slapd.LDAP()
	unit := branch.Unit("branch")
	kim := branch.Person(slapd.Person{Name: "kim", Unit: unit})
	second := slapd.Test(t, branch)
	tree := company(slapd.LDAP())
	tree.Add(
		"ou=branch,"+slapd.BaseDN, "objectClass", "referral", "objectClass", "extensibleObject", "ou", "branch",
		"ref", second.URL+"/ou=branch,"+slapd.BaseDN,
	)
	tree.Add(
		"ou=far,"+slapd.BaseDN, "objectClass", "referral", "objectClass", "extensibleObject", "ou", "far",
		"ref", silent(t)+"/ou=far,"+slapd.BaseDN,
	)
	tree.Group("mixed", "", tree.PersonDN("sam"), kim)
	first := slapd.Test(t, tree)

	alone := mustOpen(t, ldap.LDAP{}, first.Config(first.URL, nil))
	people, groups, err := everything(t.Context(), alone)
	is.NoErr(err)
	is.Equal(groups["mixed"], []string{"sam"})
	_, there := people["kim"]
	is.True(!there)
	_, err = alone.Login(t.Context(), "kim", slapd.PasswordOf("kim"))
	is.Equal(errs.CodeOf(err), errs.Unauthenticated)

	realm := mustOpen(t, ldap.LDAP{}, first.Config(first.URL, map[string]any{"hosts": []string{second.URL}}))
	people, groups, err = everything(t.Context(), realm)
	is.NoErr(err)
	is.Equal(people["kim"].Username, "kim")
	is.Equal(groups["mixed"], []string{"kim", "sam"})
	who, err := realm.Login(t.Context(), "kim", slapd.PasswordOf("kim"))
	is.NoErr(err)
	is.Equal(who, people["kim"])
	_, err = realm.Login(t.Context(), "kim", slapd.PasswordOf("sam"))
	is.Equal(errs.CodeOf(err), errs.Unauthenticated)
	_, err = realm.Login(t.Context(), "jo", "jo's secret")
	is.NoErr(err)

	// The base itself is elsewhere.
	base := map[string]any{"userBaseDN": unit}
	_, _, err = everything(t.Context(), mustOpen(t, ldap.LDAP{}, first.Config(first.URL, base)))
	saying(t, err, "refers to another server ("+second.URL, "add that one to hosts")
	base["hosts"] = []string{second.URL}
	people, _, err = everything(t.Context(), mustOpen(t, ldap.LDAP{}, first.Config(first.URL, base)))
	is.NoErr(err)
	is.Equal(len(people), 1)
	_, err = mustOpen(t, ldap.LDAP{}, first.Config(first.URL, base)).Login(t.Context(), "kim", slapd.PasswordOf("kim"))
	is.NoErr(err)
}

// TestReferralLoop: two servers that refer to each other end.
func TestReferralLoop(t *testing.T) {
	var first, second *fake
	refer := func(to **fake) func(asked) {
		return func(r asked) { r.reference((*to).url + "/" + r.base); r.end("") }
	}
	first, second = newFake(t, refer(&second)), newFake(t, refer(&first))
	config := strings.Replace(string(first.config()), "{", `{"hosts": ["`+second.url+`"], `, 1)
	people, _, err := everything(t.Context(), mustOpen(t, ldap.LDAP{}, json.RawMessage(config)))
	is.New(t).NoErr(err)
	is.New(t).Equal(len(people), 0)
}

// TestConfigurationOfAD: every search of a domain refers to it, and none is made there.
func TestConfigurationOfAD(t *testing.T) {
	is := is.New(t)
	var second *fake
	first := newFake(t, func(r asked) { r.reference(second.url + "/CN=Configuration,dc=x"); r.end("") })
	second = newFake(t, func(r asked) { r.end("") })
	config := strings.Replace(string(first.config()), "{", `{"hosts": ["`+second.url+`"], `, 1)
	_, _, err := everything(t.Context(), mustOpen(t, ldap.AD{}, json.RawMessage(config)))
	is.NoErr(err)
	is.Equal(second.log(), "")
	_, _, err = everything(t.Context(), mustOpen(t, ldap.LDAP{}, json.RawMessage(config)))
	is.NoErr(err)
	is.True(second.log() != "")
}

// TestBadHosts and their messages.
func TestBadHosts(t *testing.T) {
	for hosts, want := range map[string]string{
		`"ldap://b"`: "hosts must be a list of addresses as url is one",
		`["ldaps://b"]`: "hosts must be a list of addresses that begin as url does, with " +
			"ldap://",
		`["ldap://b/dc=x"]`:                     "hosts must be a list of addresses of a host",
		`["http://b"]`:                          "hosts must be a list of addresses that begin as url does",
		`[""]`:                                  "hosts must be",
		`["a b"]`:                               "hosts must be",
		`["b","c","d","e","f","g","h","i","j"]`: "hosts must be a list of at most 8 addresses",
	} {
		_, err := ldap.LDAP{}.Open(json.RawMessage(with(`"hosts": ` + hosts)))
		if !strings.HasPrefix(errs.MessageOf(err), want) {
			t.Errorf("%s: %v", hosts, err)
		}
	}
	is := is.New(t)
	realm, err := ldap.LDAP{Denied: func(a string) bool {
		return a == "ldap://10.0.0.1:3890"
	}}.Open(json.RawMessage(with(`"hosts": ["b", "10.0.0.1:3890"]`)))
	is.NoErr(err)
	is.True(strings.HasPrefix(errs.MessageOf(realm.Check()), "hosts must not be an address"))
}
