package ldap_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	goldap "github.com/go-ldap/ldap/v3"
	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/domains/ldap"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/testkit/slapd"
)

// withPolicy adds a password policy of OpenLDAP to a tree, and returns its DN. values are
// attributes with their values.
func withPolicy(tree *slapd.Tree, lines []string, values ...string) string {
	dn := "cn=policy," + slapd.BaseDN
	tree.Overlay("ppolicy", append([]string{`ppolicy_default "` + dn + `"`}, lines...)...)
	tree.Add(dn, append([]string{
		"objectClass", "organizationalRole", "objectClass", "pwdPolicy", "cn", "policy", "pwdAttribute",
		"userPassword",
	}, values...)...)
	return dn
}

// refusedFor checks that a login is refused for a reason that is in the log alone.
func refusedFor(t *testing.T, err error, why string) {
	t.Helper()
	is := is.New(t)
	is.Equal(errs.CodeOf(err), errs.Unauthenticated)
	is.Equal(errs.MessageOf(err), "Unable to log in")
	is.True(strings.Contains(err.Error(), why))
}

// TestMustChange: OpenLDAP accepts a password that must be changed, for nothing else.
func TestMustChange(t *testing.T) {
	for name, lines := range map[string][]string{"behera": nil, "netscape": {"ppolicy_send_netscape_controls"}} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			tree := company(slapd.LDAP())
			withPolicy(tree, lines, "pwdMustChange", "TRUE")
			s := slapd.Test(t, tree)
			realm := mustOpen(t, ldap.LDAP{}, s.Config(s.URL, nil))
			is.NoErr(s.Set(tree.PersonDN("jo"), "pwdReset", "TRUE"))
			_, err := realm.Login(t.Context(), "jo", "jo's secret")
			refusedFor(t, err, "the directory refuses the account: its password must be changed first")
			_, err = realm.Login(t.Context(), "sam", slapd.PasswordOf("sam"))
			is.NoErr(err)
			is.NoErr(s.Set(tree.PersonDN("jo"), "userPassword", "another one"))
			is.NoErr(s.Set(tree.PersonDN("jo"), "pwdReset"))
			_, err = realm.Login(t.Context(), "jo", "another one")
			is.NoErr(err)

			is.NoErr(s.Set(slapd.ReaderDN, "pwdReset", "TRUE"))
			for range 3 {
				_, err = realm.Login(t.Context(), "sam", slapd.PasswordOf("sam"))
				is.Equal(errs.CodeOf(err), errs.Upstream)
				saying(
					t, err,
					"accepts the bind of "+slapd.ReaderDN+
						" for nothing but a change of its password: its password must be changed first",
				)
			}
			is.NoErr(s.Set(slapd.ReaderDN, "pwdReset"))
			_, err = realm.Login(t.Context(), "sam", slapd.PasswordOf("sam"))
			is.NoErr(err)
		})
	}
}

// TestExpired: an expired password works as often as the directory says, with a warning in the log,
// and is refused in words then.
func TestExpired(t *testing.T) {
	is := is.New(t)
	tree := company(slapd.LDAP())
	policy := withPolicy(tree, nil, "pwdMaxAge", "1", "pwdGraceAuthNLimit", "2")
	s := slapd.Test(t, tree)
	var log bytes.Buffer
	realm := mustOpen(t, ldap.LDAP{Log: slog.New(slog.NewTextHandler(&log, nil))}, s.Config(s.URL, nil))
	is.NoErr(s.Set(tree.PersonDN("jo"), "userPassword", "jo's secret")) // from now on it ages
	var err error
	for begun := time.Now(); err == nil && time.Since(begun) < time.Minute; {
		_, err = realm.Login(t.Context(), "jo", "jo's secret")
		if !strings.Contains(log.String(), "expired") {
			time.Sleep(50 * time.Millisecond)
		}
	}
	refusedFor(t, err, "the directory refuses the account: its password has expired")
	for _, warning := range []string{"works once more", "works 0 times more"} {
		is.Equal(strings.Count(log.String(), warning), 1)
	}
	is.NoErr(s.Set(policy, "pwdMaxAge", "3600"))
	is.NoErr(s.Set(policy, "pwdExpireWarning", "3600"))
	_, err = realm.Login(t.Context(), "jo", "jo's secret")
	is.NoErr(err)
	is.True(strings.Contains(log.String(), "its password expires in 59m"))
}

// TestLockedInWords: OpenLDAP reports a lock in a control if it is asked to; else the entry shows
// it.
func TestLockedInWords(t *testing.T) {
	for why, lines := range map[string][]string{
		"refuses the account: it is locked: ":                                             {"ppolicy_use_lockout"},
		"refuses the account: it is locked, as its entry shows, or the password is wrong": nil,
	} {
		t.Run(why, func(t *testing.T) {
			tree := company(slapd.LDAP())
			withPolicy(tree, lines, "pwdLockout", "TRUE", "pwdMaxFailure", "2")
			s := slapd.Test(t, tree)
			realm := mustOpen(t, ldap.LDAP{}, s.Config(s.URL, nil))
			for range 2 {
				_, err := realm.Login(t.Context(), "jo", "wrong")
				refusedFor(t, err, "the directory refuses the password")
			}
			_, err := realm.Login(t.Context(), "jo", "jo's secret")
			refusedFor(t, err, why)
		})
	}
}

// TestOldControls: directories that know draft-vchu alone, on the wire.
func TestOldControls(t *testing.T) {
	f := newFake(t, func(r asked) { r.person(1); r.result(goldap.ApplicationSearchResultDone, 0) })
	bound := func(code int, controls ...goldap.Control) error {
		realm := mustOpen(t, ldap.LDAP{}, f.config())
		_, err := realm.Login(t.Context(), "p1", "x") // binds as the service without controls
		is.New(t).NoErr(err)
		f.mu.Lock()
		f.binds, f.bound = map[string]int{"uid=p1,dc=x": code, "cn=reader": code}, controls
		f.mu.Unlock()
		_, err = realm.Login(t.Context(), "p1", "x")
		f.mu.Lock()
		f.binds, f.bound = nil, nil
		f.mu.Unlock()
		return err
	}
	expired := goldap.NewControlString("2.16.840.1.113730.3.4.4", false, "0")
	expiring := goldap.NewControlString("2.16.840.1.113730.3.4.5", false, "86400")
	saying(t, bound(0, expired), "must be changed first")
	saying(
		t, bound(goldap.LDAPResultInvalidCredentials, expired),
		"refuses the bind of cn=reader (Invalid Credentials): its password has expired",
	)
	is.New(t).NoErr(bound(0, expiring))
}

// TestStalePassword: whatever strangers do, an account whose stored password is wrong is not locked
// in the directory.
func TestStalePassword(t *testing.T) {
	is := is.New(t)
	tree := company(slapd.LDAP())
	withPolicy(tree, nil, "pwdLockout", "TRUE", "pwdMaxFailure", "2", "pwdFailureCountInterval", "0")
	s := slapd.Test(t, tree)
	var log bytes.Buffer
	var mu sync.Mutex
	realm := mustOpen(
		t, ldap.LDAP{Log: slog.New(slog.NewTextHandler(writer{&mu, &log}, nil))},
		s.Config(s.URL, map[string]any{"bindPassword": "stale"}),
	)
	is.NoErr(realm.(domains.Pausing).Paused())
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if _, err := realm.Login(t.Context(), "jo", "jo's secret"); errs.CodeOf(err) != errs.Upstream {
				t.Errorf("%v", err)
			}
		})
	}
	all.Wait()
	for _, err := range realm.Entries(t.Context()) {
		saying(t, err, "is not asked again before")
	}
	_, err := realm.(domains.Finder).Find(t.Context(), "jo")
	saying(t, err, "refuses the bind of "+slapd.ReaderDN+" (Invalid Credentials)")
	is.Equal(errs.MessageOf(realm.(domains.Pausing).Paused()), errs.MessageOf(err))
	steps := realm.(domains.Tester).Test(t.Context(), domains.Endpoints{}, "")
	is.Equal(steps[len(steps)-1], domains.Step{Name: "bind", Message: errs.MessageOf(err)})
	mu.Lock()
	is.Equal(strings.Count(log.String(), "directory refuses the service account"), 1)
	is.True(!strings.Contains(log.String(), "stale"))
	mu.Unlock()

	// the changed configuration; a second failure would have locked the account
	realm = mustOpen(t, ldap.LDAP{}, s.Config(s.URL, nil))
	_, err = realm.Login(t.Context(), "jo", "jo's secret")
	is.NoErr(err)
}

type writer struct {
	mu *sync.Mutex
	to *bytes.Buffer
}

func (w writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.to.Write(p)
}
