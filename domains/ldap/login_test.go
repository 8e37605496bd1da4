package ldap_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	goldap "github.com/go-ldap/ldap/v3"
	"github.com/matryer/is"
	"go.uber.org/goleak"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/domains/ldap"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/testkit/slapd"
)

// withNamesakes has a name three times, and another one twice.
func withNamesakes(tree *slapd.Tree) {
	company(tree)
	tree.Person(slapd.Person{Name: "ann lee"})
	for i := range 3 {
		unit := tree.Unit(fmt.Sprint("unit", i))
		tree.Person(slapd.Person{Name: "many", Unit: unit})
		if i < 2 {
			tree.Person(slapd.Person{Name: "twin", Unit: unit})
		}
	}
}

func TestLogin(t *testing.T) {
	each(t, withNamesakes, func(t *testing.T, d domains.Driver, s *slapd.Server, tree *slapd.Tree) {
		realm := mustOpen(t, d, s.Config(s.URL, nil))
		for _, c := range []struct {
			username, password string
			want               string // username; "" for a refusal
		}{
			{"jo", "jo's secret", "jo"},
			{"JO", "jo's secret", "jo"}, // names have no case there
			{"jo", "JO's secret", ""},
			{"jo*", "jo's secret", ""},
			{
				`odd, "name" + #1 \ <x>; ü=ö`, slapd.PasswordOf(`odd, "name" + #1 \ <x>; ü=ö`),
				`odd, "name" + #1 \ <x>; ü=ö`,
			},
			{
				`odd, "name" + #1 \ <x>; u` + "\u0308=o\u0308", slapd.PasswordOf(`odd, "name" + #1 \ <x>; ü=ö`),
				`odd, "name" + #1 \ <x>; ü=ö`,
			},
			{"ann lee", slapd.PasswordOf("ann lee"), "ann lee"},
			// the same for the directory, and another for whoever counts attempts
			{"ann   lee", slapd.PasswordOf("ann lee"), ""},
			{"twin", slapd.PasswordOf("twin"), ""}, // nobody knows who
			{"many", slapd.PasswordOf("many"), ""},
			{"reader", slapd.ReaderPassword, ""}, // no person
			{slapd.ReaderDN, slapd.ReaderPassword, ""},
			{tree.PersonDN("jo"), "jo's secret", ""},
		} {
			t.Run(c.username, func(t *testing.T) {
				is := is.New(t)
				who, err := realm.Login(t.Context(), c.username, c.password)
				if c.want == "" {
					is.Equal(errs.CodeOf(err), errs.Unauthenticated)
					is.Equal(errs.MessageOf(err), "Unable to log in")
					// it was jo's that was wrong, and nobody knows whose else
					is.Equal(who.Username, map[string]string{"jo": "jo"}[c.username])
					return
				}
				is.NoErr(err)
				is.Equal(who.Username, c.want)
			})
		}
	})
}

// TestUserFilter: whom the filter or the base leaves out cannot log in.
func TestUserFilter(t *testing.T) {
	each(t, withNamesakes, func(t *testing.T, d domains.Driver, s *slapd.Server, _ *slapd.Tree) {
		is := is.New(t)
		for config, want := range map[string]bool{
			`{"userFilter": "(mail=jo@example.org)"}`:                true,
			`{"userFilter": "(!(mail=jo@example.org))"}`:             false,
			`{"userBaseDN": "ou=people,dc=example,dc=org"}`:          true,
			`{"userBaseDN": "ou=groups,dc=example,dc=org"}`:          false,
			`{"attributes": {"username": "mail"}}`:                   false,
			`{"baseDN": "dc=example,dc=org", "groupBaseDN": "dc=x"}`: true,
		} {
			var changed map[string]any
			is.NoErr(json.Unmarshal([]byte(config), &changed))
			_, err := mustOpen(t, d, s.Config(s.URL, changed)).Login(t.Context(), "jo", "jo's secret")
			is.Equal(err == nil, want)
			is.True(want || errs.CodeOf(err) == errs.Unauthenticated)
		}
		who, err := mustOpen(t, d, s.Config(s.URL, map[string]any{"attributes": map[string]any{
			"username":   "mail",
			"familyName": "",
		}})).
			Login(t.Context(), "jo@example.org", "jo's secret")
		is.NoErr(err)
		is.Equal(who.Username, "jo@example.org")
		is.Equal(who.FamilyName, "")

		// One of two namesakes is below the base.
		_, err = mustOpen(t, d, s.Config(s.URL, map[string]any{"userBaseDN": "ou=unit0," + slapd.BaseDN})).
			Login(t.Context(), "twin", slapd.PasswordOf("twin"))
		is.NoErr(err)
	})
}

// TestAnonymous: without bindDN the search is nobody's.
func TestAnonymous(t *testing.T) {
	is := is.New(t)
	s := slapd.Test(t, company(slapd.LDAP()))
	realm := mustOpen(t, ldap.LDAP{}, s.Config(s.URL, map[string]any{"bindDN": nil, "bindPassword": nil}))
	_, err := realm.Login(t.Context(), "jo", "jo's secret")
	is.NoErr(err)
	_, err = realm.Login(t.Context(), "jo", "joanna's secret")
	is.Equal(errs.CodeOf(err), errs.Unauthenticated)
}

// TestBadService: what is wrong with the configuration is not the fault of whoever logs in.
func TestBadService(t *testing.T) {
	s := slapd.Test(t, company(slapd.LDAP()))
	for _, c := range []struct {
		changed map[string]any
		says    []string
	}{
		{
			map[string]any{"bindPassword": "not " + slapd.ReaderPassword},
			[]string{"refuses the bind of " + slapd.ReaderDN + " (Invalid Credentials)"},
		},
		{map[string]any{"bindDN": "cn=nobody,dc=nowhere"}, []string{"refuses the bind of cn=nobody,dc=nowhere"}},
		{map[string]any{"bindDN": "EXAMPLE\\jo"}, []string{"refuses the bind", "Invalid DN Syntax"}},
		{map[string]any{"baseDN": "ou=nowhere," + slapd.BaseDN}, []string{"search below ou=nowhere", "No Such Object"}},
		{map[string]any{"baseDN": "dc=elsewhere"}, []string{"search below dc=elsewhere"}},
	} {
		realm := mustOpen(t, ldap.LDAP{}, s.Config(s.URL, c.changed))
		_, err := realm.Login(t.Context(), "jo", "jo's secret")
		saying(t, err, c.says...)
		_, _, err = everything(t.Context(), realm)
		saying(t, err, c.says...)
	}
}

// TestQuestions: without a password nothing is asked, and who is not found costs as many questions
// as a wrong password.
func TestQuestions(t *testing.T) {
	is := is.New(t)
	f := newFake(t, func(r asked) {
		r.reference("ldap://elsewhere/dc=x")
		r.person(1)
		r.result(goldap.ApplicationSearchResultDone, 0)
	})
	realm := mustOpen(t, ldap.LDAP{}, f.config())
	for _, login := range [][2]string{{"", ""}, {"p1", ""}, {"", "pw"}} {
		_, err := realm.Login(t.Context(), login[0], login[1])
		is.Equal(errs.CodeOf(err), errs.Unauthenticated)
	}
	is.Equal(f.log(), "")
	_, err := realm.Login(t.Context(), "p1", "pw")
	is.NoErr(err) // whatever else the directory refers to
	is.Equal(f.log(), "bind cn=reader; search (&(objectClass=person)(uid=p1)); bind uid=p1,dc=x")

	// The directory takes the names for one, and they are not: its entry is asked for nothing.
	_, err = realm.Login(t.Context(), "p1)(uid=*", "pw")
	is.Equal(errs.CodeOf(err), errs.Unauthenticated)
	asked := strings.Split(f.log(), "; ")
	is.Equal(asked[:2], []string{"bind cn=reader", `search (&(objectClass=person)(uid=p1\29\28uid=\2a))`})
	is.Equal(len(asked), 3)
	is.True(strings.HasPrefix(asked[2], "bind cn=") && strings.HasSuffix(asked[2], ",dc=x")) // of nobody
	is.True(!strings.Contains(asked[2], "p1"))

	// A name that cannot be one asks as much, without itself.
	_, err = realm.Login(t.Context(), "p1\x00", "pw")
	is.Equal(errs.CodeOf(err), errs.Unauthenticated)
	again := strings.Split(f.log(), "; ")
	is.Equal(len(again), 3)
	is.True(!strings.Contains(again[1], "p1"))
}

// TestBindResults: what is a refusal, what is not, and that no error has the password, whatever the
// directory says.
func TestBindResults(t *testing.T) {
	f := newFake(t, func(r asked) { r.person(1); r.result(goldap.ApplicationSearchResultDone, 0) })
	login := func(t *testing.T, dn string, code int) error {
		realm := mustOpen(t, ldap.LDAP{}, f.config())
		f.mu.Lock()
		f.binds = map[string]int{dn: code}
		f.mu.Unlock()
		_, err := realm.Login(t.Context(), "p1", "reader's secret")
		for e := err; e != nil; e = errors.Unwrap(e) {
			is.New(t).True(!strings.Contains(e.Error(), "reader's secret"))
		}
		return err
	}
	for code, want := range map[int]errs.Code{
		goldap.LDAPResultInvalidCredentials:          errs.Unauthenticated,
		goldap.LDAPResultInappropriateAuthentication: errs.Unauthenticated,
		goldap.LDAPResultNoSuchObject:                errs.Unauthenticated,
		goldap.LDAPResultUnwillingToPerform:          errs.Unauthenticated,
		goldap.LDAPResultConstraintViolation:         errs.Unauthenticated,
		goldap.LDAPResultInsufficientAccessRights:    errs.Unauthenticated,
		goldap.LDAPResultBusy:                        errs.Upstream,
		goldap.LDAPResultUnavailable:                 errs.Upstream, goldap.LDAPResultStrongAuthRequired: errs.Upstream,
		goldap.LDAPResultConfidentialityRequired: errs.Upstream, goldap.LDAPResultOperationsError: errs.Upstream,
	} {
		t.Run(goldap.LDAPResultCodeMap[uint16(code)], func(t *testing.T) {
			err := login(t, "uid=p1,dc=x", code)
			is.New(t).Equal(errs.CodeOf(err), want)
			if want == errs.Upstream {
				saying(t, err, "does not check passwords ("+goldap.LDAPResultCodeMap[uint16(code)]+")")
			}
			saying(
				t, login(t, "cn=reader", code),
				"refuses the bind of cn=reader ("+goldap.LDAPResultCodeMap[uint16(code)]+")",
			)
		})
	}
}

// TestPasswords: of accounts that have none, and another one.
func TestPasswords(t *testing.T) {
	is := is.New(t)
	s := slapd.Test(t, company(slapd.LDAP()))
	realm := mustOpen(t, ldap.LDAP{}, s.Config(s.URL, nil))
	is.NoErr(s.Set("uid=sam,ou=people,"+slapd.BaseDN, "userPassword"))
	_, err := realm.Login(t.Context(), "sam", slapd.PasswordOf("sam"))
	is.Equal(errs.CodeOf(err), errs.Unauthenticated)
	is.NoErr(s.Set("uid=sam,ou=people,"+slapd.BaseDN, "userPassword", "new"))
	_, err = realm.Login(t.Context(), "sam", "new")
	is.NoErr(err)
}

// TestNoLeaks: no call leaves a goroutine or a connection behind, however it ends.
func TestNoLeaks(t *testing.T) {
	s := slapd.Test(t, company(slapd.LDAP()))
	stalled, err := s.Stall(2)
	is.New(t).NoErr(err)
	defer stalled.Close()
	quiet := silent(t)
	time.Sleep(50 * time.Millisecond)
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	for _, config := range []json.RawMessage{
		s.Config(s.URL, nil), s.Config(s.TLSURL, nil), s.Config(s.URL, map[string]any{"startTLS": true}),
		s.Config(s.URL, map[string]any{"bindPassword": "wrong"}), s.Config(s.TLSURL, map[string]any{"caCert": ""}),
		s.Config(stalled.URL, map[string]any{"timeoutMs": 100}),
		s.Config(quiet, map[string]any{"timeoutMs": 100}),
		s.Config(quiet, map[string]any{"timeoutMs": 100, "startTLS": true}),
	} {
		realm := mustOpen(t, ldap.LDAP{}, config)
		_, _ = realm.Login(t.Context(), "jo", "jo's secret")
		_, _ = realm.Login(t.Context(), "jo", "wrong")
		_, _, _ = everything(t.Context(), realm)
		for range realm.Entries(t.Context()) {
			break
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		_, _, _ = everything(ctx, realm)
		cancel()
	}
}
