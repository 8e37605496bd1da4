package domains_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/paging"
	"github.com/tenantcontent/tenantcontent/principals"
)

// TestPasswordLogin: the first login makes the user, and every refusal is the same.
func TestPasswordLogin(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open)
		w.add(t, "Books", "paper", `{"url": "x", "password": "secret"}`)
		w.add(t, "Empty", "paper", "")
		w.add(t, "Gate", "gate", `{}`)
		w.paper.all = []domains.Entry{person(1)}
		u, err := w.Unchecked().Authenticate(t.Context(), principals.Credentials{
			Tenant: "acme", Domain: "books", Username: "user0001", Password: "secret",
		})
		is.NoErr(err)
		is.Equal(u.Domain, "books")
		is.Equal(*u.Source, "paper")
		is.Equal(*u.SourceID, "id-0001")
		is.True(u.Enabled && !u.Superuser)

		asked := w.paper.tries
		for _, c := range [][4]string{
			{"acme", "books", "user0001", "wrong"},
			{"acme", "books", "user0002", "secret"}, {"acme", "books", "user0001", ""},
			{"acme", "books", "", "secret"},
			{"acme", "books", "a\x00b", "secret"}, {"acme", "books", "user0001", "se\x00cret"},
			{"acme", "nowhere", "user0001", "secret"},
			{"acme", "../books", "user0001", "secret"}, {"acme", "empty", "user0001", "secret"},
			{"acme", "gate", "user0001", "secret"},
			{"evil", "books", "user0001", "secret"}, {"nobody", "books", "user0001", "secret"},
			{"acme", "local", "user0001", "secret"},
			{"acme", "books", "root", "correct horse"}, {"a\x00", "books", "user0001", "secret"},
		} {
			_, err := w.Unchecked().Authenticate(t.Context(), principals.Credentials{
				Tenant: c[0], Domain: c[1], Username: c[2], Password: c[3],
			})
			is.Equal(errs.CodeOf(err), errs.Unauthenticated)
			is.Equal(errs.MessageOf(err), "Unable to log in")
		}
		is.True(w.paper.tries-asked <= 3) // an empty password is never sent to a directory

		w.paper.err = errs.New(errs.Upstream, "The directory ldap://10.0.0.1 cannot be reached.")
		_, err = w.Unchecked().Authenticate(t.Context(), principals.Credentials{
			Tenant: "acme", Domain: "books", Username: "user0001", Password: "secret",
		})
		is.Equal(errs.CodeOf(err), errs.Upstream)
		is.True(!strings.Contains(errs.MessageOf(err), "10.0.0.1"))
		is.Equal(w.user(t, "user0001").LoginAttempts, 1) // the wrong password's alone
	})
}

// TestDirectoryLock: ten wrong passwords lock a user of a directory, which is not asked for them
// any more then.
func TestDirectoryLock(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	w.add(t, "Books", "paper", `{"url": "x", "password": "secret"}`)
	w.paper.all = []domains.Entry{person(1)}
	try := func(password string) error {
		_, err := w.Unchecked().Authenticate(t.Context(), principals.Credentials{
			Tenant: "acme", Domain: "books", Username: "user0001", Password: password,
		})
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
		// those did not use it up
		_, err = w.Unchecked().Finish(t.Context(), "acme", "gate", at("gate"), b.State, b.Browser, code)
		is.NoErr(err)
		b = begin()
		refused("other", b.State, b.Browser, code)
		b = begin()
		refused("gate", b.State, b.Browser, nil) // the provider's own refusal
		refused("gate", b.State, b.Browser, code)
		b = begin()
		for _, tenant := range []string{"evil", "nobody", "", "a\x00"} {
			// where another tenant's provider sends browsers
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
		for _, bad := range []string{
			"https://evil.example", "//evil.example", `/\evil.example`, "x", "/a\nb", "javascript:alert(1)",
			"/" + strings.Repeat("x", 3000),
		} {
			_, err := w.Unchecked().Begin(t.Context(), "acme", "gate", at("gate"), domains.Return{To: bad})
			is.Equal(errs.CodeOf(err), errs.Invalid)
		}
		for _, long := range []string{
			"/" + strings.Repeat("<", 1023), "/" + strings.Repeat("&", 1023), "/" + strings.Repeat(`"`, 1023),
		} {
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

// TestTooLongForTheCookie: when it is the path that makes a login too long for its cookie, its
// sender is told so; what a driver alone makes too long is a fault.
func TestTooLongForTheCookie(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	w.add(t, "Gate", "gate", `{}`)
	begin := func(memory int, returnTo string) error {
		s := w.with(t, func(o *options) { o.Drivers = []domains.Driver{wordy{memory: memory}} })
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
		s := w.with(t, func(o *options) {
			memory, _ := json.Marshal([]byte("memory of " + state))
			o.Keys = allKeys{o.Keys, `{"d": "gate", "m": ` + string(memory) + `, "e": "2100-01-01T00:00:00Z"}`}
		})
		_, err := s.Unchecked().Finish(
			t.Context(), "acme", "gate", at("gate"), state, strings.Repeat("c", cookie),
			url.Values{"code": {"jo"}},
		)
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
				_, err := w.Unchecked().Finish(
					t.Context(), "acme", "gate", at("gate"), b.State, b.Browser, url.Values{"code": {"jo"}},
				)
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
		_, err := w.Unchecked().Finish(
			t.Context(), "acme", "gate", at("gate"), b.State, b.Browser, url.Values{"code": {"jo"}},
		)
		return err
	}
	leave, err := w.Crowd(t.Context(), "acme", "gate", 8)
	is.NoErr(err)
	is.Equal(errs.CodeOf(finish()), errs.Unavailable)
	leave()
	is.NoErr(finish())
}

// TestFinishLogoutInACrowd: answers to logouts take the places of notices, as one browser may send
// its answer often.
func TestFinishLogoutInACrowd(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	w.Hurry(50*time.Millisecond, time.Minute, time.Minute, time.Minute)
	w.add(t, "Gate", "gate", `{}`)
	b, err := w.Unchecked().BeginLogout(t.Context(), "acme", "gate", at("gate"), nil, "/apps")
	is.NoErr(err)
	finish := func() (string, error) {
		return w.Unchecked().FinishLogout(
			t.Context(), "acme", "gate", at("gate"), b.Browser, domains.Answer{State: b.State},
		)
	}
	leave, err := w.Crowd(t.Context(), "acme", "gate/logout", 8)
	is.NoErr(err)
	_, err = finish()
	is.Equal(errs.CodeOf(err), errs.Unavailable)
	leave()
	to, err := finish()
	is.NoErr(err)
	is.Equal(to, "/apps")
}

// enter logs somebody in at the domain gate, with what the provider says.
func (w *world) enter(t *testing.T, says func(*domains.SignedIn)) (domains.Finished, error) {
	t.Helper()
	at := domains.Endpoints{Callback: "https://here.example/callback"}
	begun, err := w.Unchecked().Begin(t.Context(), "acme", "gate", at, domains.Return{})
	is.New(t).NoErr(err)
	w.gate.mu.Lock()
	w.gate.says = says
	w.gate.mu.Unlock()
	return w.Unchecked().Finish(t.Context(), "acme", "gate", at, begun.State, begun.Browser, url.Values{"code": {"1"}})
}

// refused checks that a login was refused, for a reason that only the log has.
func refused(t *testing.T, err error, why string) {
	t.Helper()
	if errs.CodeOf(err) != errs.Unauthenticated || errs.MessageOf(err) != "Unable to log in" ||
		!strings.Contains(err.Error(), why) {
		t.Errorf("%v, want %s", err, why)
	}
}

// TestAllow: who is not allowed in is refused, and becomes no user.
func TestAllow(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	w.add(
		t, "Gate", "gate",
		`{"allow": {"groups": ["a", "b"], "domains": ["example.com"], "claims": {"x": "1", "y": ["2", "3"]}}}`,
	)
	fits := func(who *domains.SignedIn) {
		who.Username, who.Email, who.EmailVerified, who.Groups = "anna", "anna@EXAMPLE.com", true, []string{"c", "b"}
		who.Claims = map[string][]string{"x": {"0", "1"}, "y": {"3"}}
	}
	for why, change := range map[string]func(*domains.SignedIn){
		"in none of these groups": func(who *domains.SignedIn) { who.Groups = []string{"B"} },
		"says nothing of groups":  func(who *domains.SignedIn) { who.Groups = nil },
		"has more than 200": func(who *domains.SignedIn) {
			who.Groups, who.NoGroups = nil, "the person has more than 200"
		},
		"is of none of":         func(who *domains.SignedIn) { who.Email = "anna@sub.example.com" },
		"vouches for no":        func(who *domains.SignedIn) { who.EmailVerified = false },
		"vouches for no e-mail": func(who *domains.SignedIn) { who.Email = "" },
		"config.allow.claims.x": func(who *domains.SignedIn) { who.Claims["x"] = nil },
		"config.allow.claims.y": func(who *domains.SignedIn) { who.Claims["y"] = []string{"1"} },
	} {
		done, err := w.enter(t, func(who *domains.SignedIn) { fits(who); change(who) })
		refused(t, err, why)
		is.Equal(done.User.Username, "anna") // for the log
	}
	is.Equal(w.count(t, "tc_users"), 1)
	done, err := w.enter(t, fits)
	is.NoErr(err)
	is.Equal(done.User.Username, "anna")
}

// TestAccounts: users of a directory log in at a provider, which changes nothing of them and makes
// nobody.
func TestAccounts(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open)
		w.add(t, "Books", "paper", `{"url": "x", "password": "secret"}`)
		const guid, inBase64 = "00112233-4455-6677-8899-aabbccddeeff", "MyIRAFVEd2aImaq7zN3u/w=="
		for _, e := range []domains.Identity{
			{ID: guid, Username: "Anna", DisplayName: "Anna", Email: "anna@example.com"},
			{ID: "b", Username: "bob", Email: "shared@example.com"},
			{ID: "c", Username: "cy", Email: "Shared@example.com"}, {ID: "d", Username: "dee"},
		} {
			w.paper.all = append(w.paper.all, domains.Entry{Person: &e})
		}
		_, err := w.Scan(root(t), "paper", domains.ScanOptions{})
		is.NoErr(err)
		w.add(t, "Gate", "gate", `{"accounts": "books"}`)
		by := func(how string) {
			t.Helper()
			_, err := w.Update(root(t), "gate", func(d *domains.Domain) error {
				d.Config = []byte(`{"accounts": "books", "accountsBy": "` + how + `"}`)
				return nil
			})
			is.NoErr(err)
		}
		users := w.count(t, "tc_users")
		named := func(name string) func(*domains.SignedIn) {
			return func(who *domains.SignedIn) { who.Username, who.DisplayName = name, "Somebody else" }
		}
		mailed := func(email string, verified bool) func(*domains.SignedIn) {
			return func(who *domains.SignedIn) { who.Email, who.EmailVerified = email, verified }
		}
		known := func(id string) func(*domains.SignedIn) {
			return func(who *domains.SignedIn) { who.AccountID = id }
		}
		as := func(says func(*domains.SignedIn)) {
			t.Helper()
			done, err := w.enter(t, says)
			is.NoErr(err)
			is.Equal(done.User.Username, "Anna")
			is.Equal(done.User.Domain, "books")
		}
		no := func(says func(*domains.SignedIn), why string) {
			t.Helper()
			_, err := w.enter(t, says)
			refused(t, err, why)
		}
		as(named("Anna"))
		as(named("anna"))
		w.paper.domain = "books.example"
		as(named(`anna@books.example`))
		no(named("anna@evil.example"), "is no name of the domain books")
		w.paper.long = map[string]string{"anna@books.example": "dee", "anna.long@other.example": "Anna"}
		no(named("anna@books.example"), "is no name of the domain books") // it is dee's, too
		as(named("anna.long@other.example"))
		w.paper.err = errs.New(errs.Upstream, "The directory is away.")
		for _, name := range []string{"anna.long@other.example", "Anna"} {
			_, err = w.enter(t, named(name))
			is.Equal(errs.CodeOf(err), errs.Upstream)
		}
		w.paper.err = nil
		entry := w.paper.all[0].Person
		for why, change := range map[string]func(){
			"the directory has disabled or locked": func() {
				entry.Disabled = true
			}, "disabled or locked the person": func() { entry.Locked = true },
			"the name is that of another entry's user": func() { entry.ID = "another Anna" },
		} {
			was := *entry
			change()
			for _, name := range []string{"anna.long@other.example", "Anna", "anna"} { // since the last scan
				no(named(name), why)
			}
			*entry = was
		}
		as(named("anna.long@other.example"))
		w.paper.err, w.paper.long = nil, nil
		no(named("nobody"), `"nobody" is no name of the domain books`)
		no(named("root"), `"root" is no name of the domain books`) // of local
		by("email")
		as(mailed("ANNA@example.com", true))
		no(mailed("anna@example.com", false), "vouches for no e-mail address")
		no(mailed("", true), "vouches for no e-mail address")
		no(mailed("shared@example.com", true), "several users of the domain books")
		no(mailed("new@example.com", true), "no user of the domain books has the e-mail address new@example.com")
		anna := func(who context.Context, email string) {
			t.Helper()
			_, err := w.people.UpdateUser(who, "Anna", func(u *principals.User) error { u.Email = &email; return nil })
			is.NoErr(err)
		}
		herself := actor.With(t.Context(), actor.Actor{Tenant: "acme", User: "Anna"})
		anna(herself, "boss@example.com")
		// which she has typed herself
		no(mailed("boss@example.com", true), "no user of the domain books has the e-mail address boss@example.com")
		no(mailed("anna@example.com", true), "no user of the domain books")
		anna(root(t), "Chosen@example.com")
		as(mailed("chosen@example.com", true))
		anna(herself, "anna@example.com")
		_, err = w.Scan(root(t), "paper", domains.ScanOptions{})
		is.NoErr(err)
		no(mailed("anna@example.com", true), "no user") // what the directory says as well was typed before
		anna(root(t), "anna2@example.com")
		_, err = w.Scan(root(t), "paper", domains.ScanOptions{})
		is.NoErr(err)
		as(mailed("anna@example.com", true))
		before := w.user(t, "Anna")
		by("id")
		for _, id := range []string{
			guid, strings.ToUpper(guid), "{" + guid + "}", strings.ReplaceAll(guid, "-", ""), inBase64,
		} {
			as(known(id))
		}
		no(known(""), "sends no id")
		no(known("ABEiM0RVZneImaq7zN3u/w=="), "has the source id") // the bytes in another order
		no(known(strings.ToLower(inBase64)), "has the source id")
		is.Equal(w.user(t, "Anna"), before)
		is.Equal(w.count(t, "tc_users"), users)
		for _, how := range []string{"id", "email"} { // the directory is asked by the user's name
			by(how)
			anna := func(name string) func(*domains.SignedIn) {
				return func(who *domains.SignedIn) {
					who.Username, who.AccountID, who.Email, who.EmailVerified = name, guid, "anna@example.com", true
				}
			}
			as(anna("x"))
			for why, change := range map[string]func(){
				"the directory has disabled or locked": func() {
					entry.Disabled = true
				}, "disabled or locked the person": func() { entry.Locked = true },
				"does not know the user Anna any more": func() {
					entry.ID = "another Anna"
				}, "or by another name": func() { entry.Username = "annette" },
			} {
				was := *entry
				change()
				no(anna("x"), why)
				*entry = was
			}
			entry.Username = "annette"
			as(anna("annette")) // renamed in both places
			entry.Username = "Anna"
			w.paper.err = errs.New(errs.Upstream, "The directory is away.")
			_, err = w.enter(t, anna("x"))
			is.Equal(errs.CodeOf(err), errs.Upstream)
			w.paper.err = nil
		}
		by("id")

		// Who cannot log in at the directory cannot here.
		edit := func(f func(*principals.User)) {
			t.Helper()
			_, err := w.people.UpdateUser(root(t), "Anna", func(u *principals.User) error { f(u); return nil })
			is.NoErr(err)
		}
		edit(func(u *principals.User) { u.Locked = true })
		no(known(guid), "the user is locked")
		edit(func(u *principals.User) { u.Locked, u.PasswordExpiresAt = false, &w.clock })
		no(known(guid), "has expired")
		edit(func(u *principals.User) { u.PasswordExpiresAt, u.Enabled = nil, false })
		no(known(guid), "the user is disabled")
		edit(func(u *principals.User) { u.Enabled = true })
		no(func(who *domains.SignedIn) {
			who.AccountID, who.Disabled = guid, true
		}, "the provider has disabled the person")
		as(known(guid))
		_, err = w.Unchecked().Authenticate(t.Context(), principals.Credentials{
			Tenant: "acme", Domain: "books", Username: "Anna", Password: "secret",
		}) // the other way in
		is.NoErr(err)
	})
}

// TestTeamsBesideADirectory: the groups that a provider sends for a user of a directory become
// teams of the provider's domain. Those of the directory stay, and a scan of it leaves those of the
// provider.
func TestTeamsBesideADirectory(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open)
		w.add(t, "Books", "paper", `{"url": "x", "password": "secret"}`)
		w.add(t, "Gate", "gate", `{"accounts": "books"}`)
		w.paper.all = []domains.Entry{
			{Person: &domains.Identity{ID: "a", Username: "anna"}},
			{Group: &domains.Group{ID: "g", Name: "Staff", Members: []string{"a"}}},
		}
		scan := func() {
			t.Helper()
			_, err := w.Scan(root(t), "paper", domains.ScanOptions{})
			is.NoErr(err)
		}
		teams := func() string {
			t.Helper()
			page, err := w.people.Memberships(root(t), "anna", paging.Query{Limit: 9})
			is.NoErr(err)
			var all []string
			for _, m := range page.Rows {
				all = append(all, m.TeamName)
			}
			slices.Sort(all)
			return strings.Join(all, " ")
		}
		login := func(groups []string) string {
			t.Helper()
			_, err := w.enter(t, func(who *domains.SignedIn) { who.Username, who.Groups = "anna", groups })
			is.NoErr(err)
			return teams()
		}
		scan()
		is.Equal(teams(), "Staff")
		is.Equal(login(nil), "Staff") // without claims.groups
		is.Equal(login([]string{"Dev"}), "Dev Staff")
		scan()
		is.Equal(teams(), "Dev Staff")
		is.Equal(login([]string{}), "Staff") // of no group at the provider any more
		w.paper.all[1].Group.Members = nil
		is.Equal(login([]string{"Dev"}), "Dev Staff")
		scan()
		is.Equal(teams(), "Dev")
	})
}

// TestUsable: a domain where its own users cannot log in says so to who moves somebody there.
func TestUsable(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	w.add(t, "Books", "paper", `{"url": "x", "password": "secret"}`)
	w.add(t, "Empty", "paper", "")
	w.add(t, "Gate", "gate", `{"accounts": "books"}`)
	for id, want := range map[string]string{
		"local": "",
		"books": "", "empty": "A user of the domain empty could not log in: The domain empty has no configuration.",
		"gate": "A user of the domain gate could not log in: it logs in those of the domain books, so let the " +
			"user be of that one",
	} {
		is.Equal(errs.MessageOf(w.Lookup().CheckUsable(t.Context(), "acme", id)), want)
	}
	is.Equal(errs.CodeOf(w.Lookup().CheckUsable(t.Context(), "acme", "none")), errs.NotFound)
}

// TestTeamsOfALogin: groups become teams at each log-in, and a provider that says nothing of them
// changes nothing, with one statement more.
func TestTeamsOfALogin(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open)
		team, err := w.people.CreateTeam(root(t), principals.Team{Name: "Staff"})
		is.NoErr(err)
		var logged strings.Builder
		w.Service = w.with(t, func(o *options) { o.Log = slog.New(slog.NewTextHandler(&logged, nil)) })
		w.add(t, "Gate", "gate", `{"teams": {"map": [{"group": "all", "team": "`+team.Slug+`", "role": "designer"}]}}`)
		login := func(groups []string, none string) string {
			t.Helper()
			done, err := w.enter(t, func(who *domains.SignedIn) { who.Groups, who.NoGroups = groups, none })
			is.NoErr(err)
			page, err := w.people.Memberships(root(t), done.User.Username, paging.Query{Limit: 9})
			is.NoErr(err)
			var all []string
			for _, m := range page.Rows {
				all = append(all, m.TeamName+" "+m.Role.String())
			}
			return strings.Join(all, ", ")
		}
		is.Equal(login([]string{"dev", "all"}, ""), "dev member, Staff designer")
		is.Equal(login(nil, ""), "dev member, Staff designer")
		is.Equal(login(nil, "too many"), "dev member, Staff designer")
		is.Equal(login(make([]string, 1001), ""), "dev member, Staff designer")
		is.Equal(login([]string{}, ""), "")
		u := w.user(t, "gate-1")
		is.True(!u.Superuser)

		// A team that goes is told once in an hour.
		told := func() int {
			login([]string{"all"}, "")
			login([]string{"all"}, "")
			defer logged.Reset()
			return strings.Count(logged.String(), "teams.map does not exist")
		}
		is.Equal(told(), 0)
		is.NoErr(w.people.DeleteTeam(root(t), team.ID, ""))
		is.Equal(told(), 1)
		is.Equal(told(), 0)
		w.late.Add(int64(time.Hour))
		is.Equal(told(), 1)
	})
}

// TestTrial: what is tried out is what would be saved, with the same rule for secrets, and nothing
// is written.
func TestTrial(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	w.add(t, "Books", "paper", `{"url": "x", "password": "secret"}`)
	at := func(tenant, domain string) domains.Endpoints {
		return domains.Endpoints{Callback: tenant + "/" + domain}
	}
	w.paper.all = []domains.Entry{person(1)}
	_, err := w.Scan(root(t), "paper", domains.ScanOptions{})
	is.NoErr(err)
	for config, want := range map[string]string{
		`{"accounts": "books"}`:                        "user0001 would log in as the user user0001 of the domain books.",
		`{"accounts": "books", "accountsBy": "email"}`: "found by email",
		`{"accounts": "none"}`:                         "config.accounts must be the id of a domain",
	} {
		steps, err := w.Test(root(t), domains.Trial{Type: "gate", Config: []byte(config), Username: "user0001"}, at)
		is.NoErr(err)
		is.Equal(len(steps), 2)
		is.True(strings.Contains(steps[1].Message, want))
		is.Equal(steps[1].OK, want[:6] != "config")
	}
	for _, c := range []struct {
		trial domains.Trial
		code  errs.Code
	}{
		{domains.Trial{ID: "none"}, errs.NotFound},
		{domains.Trial{ID: "../x"}, errs.NotFound}, {domains.Trial{ID: "books"}, errs.Invalid},
		{domains.Trial{Type: "none", Config: []byte(`{}`)}, errs.Invalid},
		{domains.Trial{Type: "gate", Config: []byte(`null`)}, errs.Invalid},
		{domains.Trial{Type: "gate", Config: []byte(`{"allow": []}`)}, errs.Invalid},
		{domains.Trial{ID: "books", Type: "gate", Config: []byte(`{"key": "********"}`)}, errs.Invalid},
	} {
		_, err := w.Test(root(t), c.trial, at)
		is.Equal(errs.CodeOf(err), c.code)
	}
	_, err = w.Test(as(t, "acme", "jo", false), domains.Trial{ID: "books"}, at)
	is.Equal(errs.CodeOf(err), errs.Forbidden)
	_, err = w.Test(as(t, "evil", "root", true), domains.Trial{ID: "books"}, at)
	is.Equal(errs.CodeOf(err), errs.NotFound)
	is.Equal(w.count(t, "tc_domains"), 2)
}
