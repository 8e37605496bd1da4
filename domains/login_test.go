package domains_test

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/dbtest"
)

// TestPasswordLogin: the first login makes the user, and every refusal is the same.
func TestPasswordLogin(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open)
		w.add(t, "Books", "paper", `{"url": "x", "password": "secret"}`)
		w.add(t, "Empty", "paper", "")
		w.add(t, "Gate", "gate", `{}`)
		w.paper.all = []domains.Entry{person(1)}
		u, err := w.Unchecked().Authenticate(t.Context(), "acme", "books", "user0001", "secret")
		is.NoErr(err)
		is.Equal(u.Domain, "books")
		is.Equal(*u.Source, "paper")
		is.Equal(*u.SourceID, "id-0001")
		is.True(u.Enabled && !u.Superuser)

		asked := w.paper.tries
		for _, c := range [][4]string{
			{"acme", "books", "user0001", "wrong"}, {"acme", "books", "user0002", "secret"}, {"acme", "books", "user0001", ""},
			{"acme", "books", "", "secret"}, {"acme", "books", "a\x00b", "secret"}, {"acme", "books", "user0001", "se\x00cret"},
			{"acme", "nowhere", "user0001", "secret"}, {"acme", "../books", "user0001", "secret"}, {"acme", "empty", "user0001", "secret"},
			{"acme", "gate", "user0001", "secret"}, {"evil", "books", "user0001", "secret"}, {"nobody", "books", "user0001", "secret"},
			{"acme", "local", "user0001", "secret"}, {"acme", "books", "root", "correct horse"}, {"a\x00", "books", "user0001", "secret"},
		} {
			_, err := w.Unchecked().Authenticate(t.Context(), c[0], c[1], c[2], c[3])
			is.Equal(errs.CodeOf(err), errs.Unauthenticated)
			is.Equal(errs.MessageOf(err), "Unable to log in")
		}
		is.True(w.paper.tries-asked <= 3) // an empty password is never sent to a directory

		w.paper.err = errs.New(errs.Upstream, "The directory ldap://10.0.0.1 cannot be reached.")
		_, err = w.Unchecked().Authenticate(t.Context(), "acme", "books", "user0001", "secret")
		is.Equal(errs.CodeOf(err), errs.Upstream)
		is.True(!strings.Contains(errs.MessageOf(err), "10.0.0.1"))
		is.Equal(w.user(t, "user0001").LoginAttempts, 1) // the wrong password's alone
	})
}

// TestDirectoryLock: ten wrong passwords lock a user of a directory, which is not asked for them any more then.
func TestDirectoryLock(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	w.add(t, "Books", "paper", `{"url": "x", "password": "secret"}`)
	w.paper.all = []domains.Entry{person(1)}
	try := func(password string) error {
		_, err := w.Unchecked().Authenticate(t.Context(), "acme", "books", "user0001", password)
		return err
	}
	is.NoErr(try("secret"))
	for range 10 {
		is.Equal(errs.CodeOf(try("wrong")), errs.Unauthenticated)
	}
	is.Equal(w.paper.asked, "user0001")
	is.Equal(errs.CodeOf(try("secret")), errs.Unauthenticated)
	is.True(w.paper.asked != "user0001")
	w.clock = w.clock.Add(16 * time.Minute)
	is.NoErr(try("secret"))
}

func at(domain string) domains.Endpoints {
	return domains.Endpoints{Callback: "https://here/" + domain + "/callback", ACS: "https://here/" + domain + "/acs"}
}

// TestRedirectLogin: a login at a provider is ended once, in time, in its own browser and domain.
func TestRedirectLogin(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open)
		w.add(t, "Gate", "gate", `{}`)
		w.add(t, "Other", "gate", `{}`)
		w.add(t, "Books", "paper", `{"url": "x"}`)
		code := url.Values{"code": {"jo"}}
		begin := func() domains.Started {
			t.Helper()
			b, err := w.Unchecked().Begin(t.Context(), "acme", "gate", at("gate"), domains.Return{To: "/apps?x=1"})
			is.NoErr(err)
			is.True(strings.HasPrefix(b.Location, "https://provider.example/") && len(b.State) <= 80)
			return b
		}
		b := begin()
		done, err := w.Unchecked().Finish(t.Context(), "acme", "gate", at("gate"), b.State, b.Browser, code)
		is.NoErr(err)
		is.Equal(done.Tenant, "acme")
		is.Equal(done.Return, domains.Return{To: "/apps?x=1"})
		is.Equal(done.User.Username, "gate-jo")
		is.Equal(w.user(t, "gate-jo").Domain, "gate")

		refused := func(domain, state, browser string, params url.Values) {
			t.Helper()
			_, err := w.Unchecked().Finish(t.Context(), "acme", domain, at(domain), state, browser, params)
			is.Equal(errs.CodeOf(err), errs.Unauthenticated)
			is.Equal(errs.MessageOf(err), "Unable to log in")
		}
		refused("gate", b.State, b.Browser, code) // again
		b = begin()
		refused("gate", b.State, begin().Browser, code)
		refused("gate", b.State, "", code)
		_, err = w.Unchecked().Finish(t.Context(), "acme", "gate", at("gate"), b.State, b.Browser, code) // those did not use it up
		is.NoErr(err)
		b = begin()
		refused("other", b.State, b.Browser, code)
		b = begin()
		refused("gate", b.State, b.Browser, nil) // the provider's own refusal
		refused("gate", b.State, b.Browser, code)
		b = begin()
		for _, tenant := range []string{"evil", "nobody", "", "a\x00"} { // where another tenant's provider sends browsers
			_, err := w.Unchecked().Finish(t.Context(), tenant, "gate", at("gate"), b.State, b.Browser, code)
			is.Equal(errs.CodeOf(err), errs.Unauthenticated)
			is.Equal(errs.MessageOf(err), "Unable to log in")
		}
		for _, state := range []string{"", ".", "acme", "acme.", "no\x00body.x", strings.Repeat("x", 300) + ".y"} {
			refused("gate", state, b.Browser, code)
		}
		w.clock = w.clock.Add(10*time.Minute + 30*time.Second) // somebody may have asked for the time and wait to write
		n, err := w.Unchecked().Hooks().Sweep(t.Context(), "acme")
		is.NoErr(err)
		is.Equal(n, 0)
		w.clock = w.clock.Add(time.Minute)
		n, err = w.Unchecked().Hooks().Sweep(t.Context(), "acme")
		is.NoErr(err)
		is.Equal(n, 4) // those that were ended; nothing else is kept here
		refused("gate", b.State, b.Browser, code)

		for _, domain := range []string{"books", "local", "nowhere", ""} {
			_, err := w.Unchecked().Begin(t.Context(), "acme", domain, at(domain), domains.Return{})
			is.Equal(errs.CodeOf(err), errs.NotFound)
			is.Equal(errs.MessageOf(err), "There is no single sign-on here.")
		}
		for _, tenant := range []string{"evil", "nobody", ""} {
			_, err := w.Unchecked().Begin(t.Context(), tenant, "gate", at("gate"), domains.Return{})
			is.Equal(errs.CodeOf(err), errs.NotFound)
		}
		for _, bad := range []string{"https://evil.example", "//evil.example", `/\evil.example`, "x", "/a\nb", "javascript:alert(1)", "/" + strings.Repeat("x", 3000)} {
			_, err := w.Unchecked().Begin(t.Context(), "acme", "gate", at("gate"), domains.Return{To: bad})
			is.Equal(errs.CodeOf(err), errs.Invalid)
		}
		for _, long := range []string{"/" + strings.Repeat("<", 1023), "/" + strings.Repeat("&", 1023), "/" + strings.Repeat(`"`, 1023)} {
			b, err := w.Unchecked().Begin(t.Context(), "acme", "gate", at("gate"), domains.Return{To: long})
			is.NoErr(err)
			done, err := w.Unchecked().Finish(t.Context(), "acme", "gate", at("gate"), b.State, b.Browser, code)
			is.NoErr(err)
			is.Equal(done.Return.To, long)
		}
		_, _, err = w.Unchecked().Metadata(t.Context(), "acme", "gate", at("gate"))
		is.Equal(errs.CodeOf(err), errs.NotFound)
	})
}

// wordy is a driver of a provider of which one has to know much again.
type wordy struct {
	gate
	memory int // bytes
}

func (w wordy) Open(json.RawMessage) (domains.Realm, error) { return w, nil }

func (w wordy) Begin(context.Context, domains.Endpoints, string) (string, []byte, error) {
	return "https://provider.example/", make([]byte, w.memory), nil
}

// TestTooLongForTheCookie: when it is the path that makes a login too long for its cookie, its sender is told so; what a
// driver alone makes too long is a fault.
func TestTooLongForTheCookie(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	w.add(t, "Gate", "gate", `{}`)
	begin := func(memory int, returnTo string) error {
		s := w.with(t, func(o *domains.Options) { o.Drivers = []domains.Driver{wordy{memory: memory}} })
		_, err := s.Unchecked().Begin(t.Context(), "acme", "gate", at("gate"), domains.Return{To: returnTo})
		return err
	}
	long := "/" + strings.Repeat("x", 1023)
	is.NoErr(begin(1000, long))
	err := begin(1600, long)
	is.Equal(errs.CodeOf(err), errs.Invalid)
	is.True(strings.HasPrefix(errs.MessageOf(err), "returnTo is too long"))
	is.NoErr(begin(1600, "/"))
	err = begin(4000, "/")
	is.True(err != nil && errs.CodeOf(err) == errs.Internal)
}

// allKeys opens everything as one login.
type allKeys struct {
	domains.Sealer
	login string
}

func (k allKeys) Open(string, string, string, string, string) ([]byte, error) {
	return []byte(k.login), nil
}

// TestBoundsOfTheCookie: of what is longer than this service makes it nothing is looked at.
func TestBoundsOfTheCookie(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	w.add(t, "Gate", "gate", `{}`)
	finish := func(length, cookie int) errs.Code {
		state := "1." + strings.Repeat("s", length-2)
		s := w.with(t, func(o *domains.Options) {
			memory, _ := json.Marshal([]byte("memory of " + state))
			o.Keys = allKeys{o.Keys, `{"d": "gate", "m": ` + string(memory) + `, "e": "2100-01-01T00:00:00Z"}`}
		})
		_, err := s.Unchecked().Finish(t.Context(), "acme", "gate", at("gate"), state, strings.Repeat("c", cookie), url.Values{"code": {"jo"}})
		return errs.CodeOf(err)
	}
	is.Equal(finish(256, 10), errs.Unauthenticated)
	is.Equal(finish(10, 3801), errs.Unauthenticated)
	is.Equal(finish(255, 3800), errs.Code(""))
}

// TestFinishAtOnce: of parallel callbacks one logs in.
func TestFinishAtOnce(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open)
		w.add(t, "Gate", "gate", `{}`)
		b, err := w.Unchecked().Begin(t.Context(), "acme", "gate", at("gate"), domains.Return{})
		is.NoErr(err)
		var all sync.WaitGroup
		var mu sync.Mutex
		in := 0
		for range 8 {
			all.Go(func() {
				_, err := w.Unchecked().Finish(t.Context(), "acme", "gate", at("gate"), b.State, b.Browser, url.Values{"code": {"jo"}})
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					in++
				} else if errs.CodeOf(err) != errs.Unauthenticated {
					t.Error(err)
				}
			})
		}
		all.Wait()
		is.Equal(in, 1)
	})
}

// TestFinishInACrowd: a callback for which there is no place may come again.
func TestFinishInACrowd(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	w.Hurry(50*time.Millisecond, time.Minute, time.Minute, time.Minute)
	w.add(t, "Gate", "gate", `{}`)
	b, err := w.Unchecked().Begin(t.Context(), "acme", "gate", at("gate"), domains.Return{})
	is.NoErr(err)
	finish := func() error {
		_, err := w.Unchecked().Finish(t.Context(), "acme", "gate", at("gate"), b.State, b.Browser, url.Values{"code": {"jo"}})
		return err
	}
	leave, err := w.Crowd(t.Context(), "acme", "gate", 8)
	is.NoErr(err)
	is.Equal(errs.CodeOf(finish()), errs.Unavailable)
	leave()
	is.NoErr(finish())
}
