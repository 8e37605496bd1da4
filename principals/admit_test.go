package principals_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/principals"
)

// admit lets somebody in to the domain ldap of acme.
func (f *fixture) admit(t *testing.T, who identity) (principals.User, error) {
	t.Helper()
	return f.Unchecked().Admit(t.Context(), "acme", principals.Source{Domain: "ldap", Driver: "LDAP"}, who)
}

// refused is what every login that fails gives.
func refused(t *testing.T, err error) {
	t.Helper()
	is := is.New(t)
	is.Equal(code(err), errs.Unauthenticated)
	is.Equal(errs.MessageOf(err), "Unable to log in")
}

func TestAdmit(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		jo := identity{ID: "1", Username: "jo", DisplayName: "Jo", Email: "jo@example.com", Timezone: "Mars"}
		u, err := f.admit(t, jo)
		is.NoErr(err)
		is.Equal(u, principals.User{ // the first time
			Tenant: "acme", Username: "jo", Domain: "ldap",
			DisplayName: text("Jo"), Email: text("jo@example.com"), Enabled: true,
			Source: text("LDAP"), SourceID: text("1"), Data: []byte("{}"),
			UserFields: []byte("{}"), CreatedAt: monday, UpdatedAt: monday,
		})
		is.Equal(f.get(t, "jo"), u)
		f.now = f.now.Add(time.Hour)
		again, err := f.admit(t, jo)
		is.NoErr(err)
		is.Equal(again, u) // nothing is written

		f.content.owned["acme/jo"] = 3
		f.edit(t, "jo", func(u *principals.User) { u.GlobalPermissions.AI = true })
		jo.Username, jo.DisplayName, jo.Email = "Joe", "", "joe@example.com"
		u, err = f.admit(t, jo)
		is.NoErr(err)
		is.Equal(
			[]any{u.Username, *u.DisplayName, *u.Email, u.GlobalPermissions.AI},
			[]any{"Joe", "Jo", "joe@example.com", true},
		)
		is.Equal(u.UpdatedAt, f.now)
		is.Equal(f.content.owned, map[string]int{"acme/Joe": 3})
		f.gone(t, "jo")
		jo.Username = "joe"
		u, err = f.admit(t, jo)
		is.NoErr(err)
		is.Equal(u.Username, "joe") // another spelling

		// A user of the domain without a source id is tied by name.
		_, err = f.CreateUser(root(t), principals.User{Username: "mia", Domain: "ldap", Enabled: true}, "")
		is.NoErr(err)
		u, err = f.admit(t, identity{ID: "2", Username: "MIA"})
		is.NoErr(err)
		is.Equal([]any{u.Username, *u.SourceID}, []any{"MIA", "2"})

		// Who is known keeps a name that is better than none.
		f.user(t, "local")
		for _, name := range []string{"local", "a/b", "", "MIA"} {
			u, err = f.admit(t, identity{ID: "1", Username: name, GivenName: "Given " + name})
			is.NoErr(err)
			is.Equal([]any{u.Username, *u.GivenName}, []any{"joe", strings.TrimSpace("Given " + name)})
		}
	})
}

func TestAdmitRefuses(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		f.user(t, "local")
		past := monday.Add(-time.Hour)
		for name, edit := range map[string]func(*principals.User){
			"ok": func(*principals.User) {}, "off": func(u *principals.User) {
				u.Enabled = false
			}, "locked": func(u *principals.User) { u.Locked = true },
			"expired": func(u *principals.User) { u.PasswordExpiresAt = &past },
		} {
			_, err := f.admit(t, identity{ID: "id of " + name, Username: name})
			is.NoErr(err)
			f.edit(t, name, edit)
		}
		_, err := f.CreateUser(root(t), principals.User{Username: "pending", Domain: "ldap"}, "")
		is.NoErr(err)
		for name, who := range map[string]identity{
			"disabled here":           {ID: "id of off", Username: "off"},
			"disabled and changed":    {ID: "id of off", Username: "on", Email: "a@example.com"},
			"locked":                  {ID: "id of locked", Username: "locked"},
			"expired":                 {ID: "id of expired", Username: "expired"},
			"disabled there":          {ID: "id of ok", Username: "ok", Disabled: true},
			"not tied while disabled": {ID: "9", Username: "pending"},
			"of another domain":       {ID: "9", Username: "LOCAL"}, "somebody else's": {ID: "9", Username: "ok"},
			"bad name": {ID: "9", Username: "a/b"}, "no name": {ID: "9"},
			"no id": {Username: "new"}, "bad id": {ID: "\x00", Username: "new"},
			"long id": {ID: strings.Repeat("x", 256), Username: "new"}, "odd name": {ID: "9", Username: "\xff\x00"},
		} {
			t.Run(name, func(t *testing.T) {
				u, err := f.admit(t, who)
				refused(t, err)
				is.Equal(u, principals.User{})
			})
		}
		f.gone(t, "new")
		is.Equal(f.get(t, "off").Email, nil)
		is.Equal(f.get(t, "pending").SourceID, nil)
		_, err = f.Unchecked().Admit(t.Context(), "none", principals.Source{
			Domain: "ldap", Driver: "LDAP",
		}, identity{ID: "1", Username: "jo"})
		refused(t, err)
		for _, other := range [][2]string{{"evil", "ldap"}, {"acme", "saml"}} {
			// the same id elsewhere is somebody else's
			_, err = f.Unchecked().Admit(
				t.Context(), other[0], principals.Source{
					Domain: other[1], Driver: "LDAP",
				}, identity{ID: "id of ok", Username: "other"},
			)
			is.NoErr(err)
		}
		is.Equal(*f.get(t, "ok").SourceID, "id of ok")
	})
}

// TestFirstLoginsAtOnce make one user, and all of them log in.
func TestFirstLoginsAtOnce(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		at := func(who identity) {
			t.Helper()
			var wg sync.WaitGroup
			fails := make([]error, 20)
			looks := &waitingStore{Store: f.store, left: len(fails), all: make(chan struct{})}
			s := principals.New(principals.Options{Store: looks, Now: func() time.Time { return f.now }})
			for i := range fails {
				wg.Go(func() {
					u, err := s.Unchecked().Admit(t.Context(), "acme", principals.Source{
						Domain: "ldap", Driver: "LDAP",
					}, who)
					if err == nil && u.Username != who.Username {
						err = fmt.Errorf("%s got in", u.Username)
					}
					fails[i] = err
				})
			}
			wg.Wait()
			is.NoErr(errors.Join(fails...))
			content, err := f.Unchecked().DomainContent(t.Context(), "acme")
			is.NoErr(err)
			is.Equal(content, map[string]principals.DomainCounts{"ldap": {Users: 1, Identified: 1}})
		}
		at(identity{ID: "1", Username: "jo", Email: "jo@example.com"})
		at(identity{ID: "1", Username: "joe", Email: "joe@example.com"}) // renamed, in the meantime
	})
}

// waitingStore has nobody go on before all have looked for a user.
type waitingStore struct {
	principals.Store
	mu   sync.Mutex
	left int
	all  chan struct{}
}

func (s *waitingStore) UserFrom(ctx context.Context, tenant, domain, sourceID string) (principals.User, error) {
	u, err := s.Store.UserFrom(ctx, tenant, domain, sourceID)
	s.mu.Lock()
	if s.left--; s.left == 0 {
		close(s.all)
	}
	waits := s.left > 0
	s.mu.Unlock()
	if waits {
		<-s.all
	}
	return u, err
}

// directory checks passwords: each is "right".
type directory struct {
	calls atomic.Int64
	known map[string]identity // by the name that is typed
}

func (d *directory) check(username, password string) func(context.Context) (identity, error) {
	return func(context.Context) (identity, error) {
		d.calls.Add(1)
		who, ok := d.known[username]
		if !ok || password != "right" {
			return identity{}, errs.New(errs.Unauthenticated, "The directory refuses %s.", username)
		}
		return who, nil
	}
}

func (f *fixture) try(t *testing.T, d *directory, username, password string) error {
	_, err := f.Unchecked().LoginWith(t.Context(), "acme", principals.Source{
		Domain: "ldap", Driver: "LDAP",
	}, username, d.check(username, password))
	return err
}

func TestTry(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		d := &directory{known: map[string]identity{
			"jo": {ID: "1", Username: "jo"}, "JO": {ID: "1", Username: "jo"},
			"jo@example.com": {ID: "1", Username: "jo"}, "local": {ID: "2", Username: "local"},
		}}
		f.user(t, "local")
		u, err := f.Unchecked().LoginWith(t.Context(), "acme", principals.Source{
			Domain: "ldap", Driver: "LDAP",
		}, "jo", d.check("jo", "right"))
		is.NoErr(err)
		is.Equal(u, f.get(t, "jo"))
		fail := func(name string, times int) {
			t.Helper()
			for range times {
				refused(t, f.try(t, d, name, "wrong"))
			}
		}
		want := func(attempts int, locked bool) {
			t.Helper()
			is.Equal(f.get(t, "jo").LoginAttempts, attempts)
			l, err := f.store.Login(t.Context(), "acme", "jo", "")
			is.NoErr(err)
			is.Equal(l.Network.LockedAt.Equal(f.now), locked)
		}
		fail("JO", 9)
		want(9, false)
		u, err = f.Unchecked().LoginWith(t.Context(), "acme", principals.Source{
			Domain: "ldap", Driver: "LDAP",
		}, "JO", d.check("JO", "right"))
		is.NoErr(err)
		is.Equal(u.LoginAttempts, 0)
		want(0, false) // the count starts again
		fail("jo", 10)
		want(10, true)
		calls, hashings := d.calls.Load(), principals.Hashings(f.Service)
		refused(t, f.try(t, d, "jo", "right"))
		is.Equal(d.calls.Load(), calls) // the directory is not asked
		is.Equal(principals.Hashings(f.Service)-hashings, 0)
		refused(t, f.try(t, d, "jo@example.com", "right")) // nor does another way in help
		is.Equal(d.calls.Load(), calls+1)
		want(10, true)
		f.now = f.now.Add(15 * time.Minute)
		fail("jo", 1)
		want(11, false) // ten more tries
		is.NoErr(f.try(t, d, "jo@example.com", "right"))
		want(0, false)
		fail("jo", 10)
		f.now = f.now.Add(15 * time.Minute)
		is.NoErr(f.try(t, d, "jo", "right"))
		is.Equal(f.get(t, "jo").LockedAt, nil)

		f.edit(t, "jo", func(u *principals.User) { u.Enabled = false })
		calls = d.calls.Load()
		refused(t, f.try(t, d, "jo", "right"))
		is.Equal(d.calls.Load(), calls)

		// Names that nobody has, or a user of another domain, are the directory's to refuse.
		for _, name := range []string{"nobody", "local", "", "\x00", "\xff", strings.Repeat("x", 1<<16)} {
			calls, hashings := d.calls.Load(), principals.Hashings(f.Service)
			fail(name, 12)
			is.Equal(d.calls.Load(), calls+12)
			is.Equal(principals.Hashings(f.Service), hashings)
		}
		is.Equal(f.get(t, "local").LoginAttempts, 0)
		refused(t, f.try(t, d, "local", "right")) // the directory's local is not ours
		_, err = f.Unchecked().LoginWith(t.Context(), "\x00", principals.Source{
			Domain: "ldap", Driver: "LDAP",
		}, "jo", d.check("jo", "wrong"))
		refused(t, err)
		_, err = f.Unchecked().LoginWith(t.Context(), "acme", principals.Source{
			Domain: "local", Driver: "LDAP",
		}, "jo", d.check("jo", "right"))
		is.Equal(code(err), errs.Invalid)
	})
}

// TestTryFaults: what is no refusal is passed on, and not counted.
func TestTryFaults(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is, fault := is.New(t), errs.New(errs.Upstream, "The directory is away.")
		d := &directory{known: map[string]identity{"jo": {ID: "1", Username: "jo"}}}
		is.NoErr(f.try(t, d, "jo", "right"))
		for _, err := range []error{fault, errors.New("other"), context.Canceled} {
			_, got := f.Unchecked().LoginWith(t.Context(), "acme", principals.Source{
				Domain: "ldap", Driver: "LDAP",
			}, "jo", func(context.Context) (identity, error) {
				return identity{}, err
			})
			is.Equal(got, err)
		}
		is.Equal(f.get(t, "jo").LoginAttempts, 0)
		_, err := f.Unchecked().LoginWith(t.Context(), "acme", principals.Source{
			Domain: "ldap", Driver: "LDAP",
		}, "jo", func(ctx context.Context) (identity, error) {
			// a user that has moved meanwhile is not counted here
			f.edit(t, "jo", func(u *principals.User) { u.Domain = "saml" })
			return d.check("jo", "wrong")(ctx)
		})
		refused(t, err)
		is.Equal(f.get(t, "jo").LoginAttempts, 0)
		f.edit(t, "jo", func(u *principals.User) { u.Domain = "ldap" })
		ctx, cancel := context.WithCancel(t.Context())
		_, err = f.Unchecked().LoginWith(ctx, "acme", principals.Source{
			Domain: "ldap", Driver: "LDAP",
		}, "jo", func(context.Context) (identity, error) {
			cancel() // the caller hangs up when the answer is there
			return d.check("jo", "wrong")(ctx)
		})
		refused(t, err)
		is.Equal(f.get(t, "jo").LoginAttempts, 1)
		s := principals.New(principals.Options{Store: brokenStore{}, Cost: cheap})
		_, err = s.Unchecked().LoginWith(t.Context(), "acme", principals.Source{
			Domain: "ldap", Driver: "LDAP",
		}, "jo", d.check("jo", "right"))
		is.Equal(code(err), errs.Unavailable)
	})
}

// TestParallelTries counts exactly, and who is right is refused behind the lock.
func TestParallelTries(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		d := &directory{known: map[string]identity{"jo": {ID: "1", Username: "jo"}}}
		is.NoErr(f.try(t, d, "jo", "right"))
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				if err := f.try(t, d, "jo", "wrong"); code(err) != errs.Unauthenticated {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		is.NoErr(bunx.WriteDeferred(t.Context(), f.db)) // what found the writer busy
		u := f.get(t, "jo")
		is.Equal([]any{u.LoginAttempts, f.lockedHere(t, "jo")}, []any{10, true})

		is.NoErr(f.Unlock(root(t), "jo"))
		_, err := f.Unchecked().LoginWith(t.Context(), "acme", principals.Source{
			Domain: "ldap", Driver: "LDAP",
		}, "jo", func(ctx context.Context) (identity, error) {
			for range 10 {
				refused(t, f.try(t, d, "jo", "wrong"))
			}
			return d.check("jo", "right")(ctx) // asked before the lock, answered after it
		})
		refused(t, err)
		is.True(f.lockedHere(t, "jo"))

		// Between the user's being let in and the end of the count, others are faster.
		is.NoErr(f.Unlock(root(t), "jo"))
		refused(t, f.try(t, d, "jo", "wrong"))
		late := principals.New(principals.Options{Store: &lateLock{f.store, func() {
			for range 9 {
				refused(t, f.try(t, d, "jo", "wrong"))
			}
		}}, Now: func() time.Time { return f.now }})
		_, err = late.Unchecked().LoginWith(t.Context(), "acme", principals.Source{
			Domain: "ldap", Driver: "LDAP",
		}, "jo", d.check("jo", "right"))
		refused(t, err)
		is.True(f.lockedHere(t, "jo"))
	})
}

// lateLock does something before the first change of a login.
type lateLock struct {
	principals.Store
	before func()
}

func (s *lateLock) Attempt(
	ctx context.Context, tenant, folded, network string, edit func(*principals.Login) error,
) error {
	if before := s.before; before != nil {
		s.before = nil
		before()
	}
	return s.Store.Attempt(ctx, tenant, folded, network, edit)
}

// lockedHere reports whether a user is locked for the network of calls without an address.
func (f *fixture) lockedHere(t *testing.T, folded string) bool {
	t.Helper()
	l, err := f.store.Login(t.Context(), "acme", folded, "")
	is.New(t).NoErr(err)
	return l.Network.LockedAt.Equal(f.now)
}

// TestAdmitOfLocked: who is locked in the directory is let in when the directory does, and a login
// at another domain waits for that. A refusal with the word that the account is disabled disables.
func TestAdmitOfLocked(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		var ended []string
		f.content.hooks.Disabled = func(_ context.Context, tenant string, names []string) error {
			ended = append(ended, names...)
			return nil
		}
		jo := identity{ID: "1", Username: "jo"}
		_, err := f.admit(t, jo)
		is.NoErr(err)
		lock := func() {
			t.Helper()
			is.NoErr(f.store.EditDirectoryUsers(t.Context(), "acme", []string{"jo"}, f.now,
				func(u *principals.DirectoryUser) {
					u.Lock()
				}))
		}
		lock()
		away := jo
		away.Locked = true
		_, err = f.admit(t, away)
		refused(t, err)
		_, err = f.Unchecked().AdmitAs(t.Context(), "acme", "ldap", principals.Account{Username: "jo"}, nil)
		refused(t, err)
		is.True(!f.get(t, "jo").Enabled)
		asked := 0
		login := func(who identity, says error) error {
			_, err := f.Unchecked().LoginWith(t.Context(), "acme", principals.Source{
				Domain: "ldap", Driver: "LDAP",
			}, "jo", func(context.Context) (identity, error) {
				asked++
				return who, says
			})
			return err
		}
		no := errs.New(errs.Unauthenticated, "no")
		refused(t, login(away, no))
		is.True(!f.get(t, "jo").Enabled)
		is.NoErr(login(jo, nil))
		u := f.get(t, "jo")
		is.True(u.Enabled && !u.DirectoryDisabled && !u.DirectoryLocked)
		is.Equal(len(ended), 0)

		lock()
		gone := jo
		gone.Disabled = true
		refused(t, login(gone, no))
		u = f.get(t, "jo")
		is.True(!u.Enabled && u.DirectoryDisabled && !u.DirectoryLocked)
		is.Equal(ended, []string{"jo"})
		is.Equal(asked, 3)
		refused(t, login(jo, nil)) // until a scan has seen that jo is back
		is.Equal(asked, 3)

		f.edit(t, "jo", func(u *principals.User) { u.Enabled = true })
		refused(t, login(jo, no)) // a wrong password
		is.True(f.get(t, "jo").Enabled)
		refused(t, login(gone, no))
		is.True(!f.get(t, "jo").Enabled)
	})
}

// TestDisabledWhileLocked: a superuser who disables somebody whom the directory has locked or
// disabled has the last word, and the sessions end.
func TestDisabledWhileLocked(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		var ended []string
		f.content.hooks.Disabled = func(_ context.Context, tenant string, names []string) error {
			ended = append(ended, names...)
			return nil
		}
		for _, how := range []func(u *principals.DirectoryUser){
			(*principals.DirectoryUser).Lock, (*principals.DirectoryUser).Disable,
		} {
			_, err := f.admit(t, identity{ID: "1", Username: "jo"})
			is.NoErr(err)
			is.NoErr(f.store.EditDirectoryUsers(t.Context(), "acme", []string{"jo"}, f.now, how))
			locked := f.get(t, "jo").DirectoryLocked
			f.edit(t, "jo", func(u *principals.User) { u.DisplayName = text("Jo") })
			is.Equal(f.get(t, "jo").DirectoryLocked, locked) // which says nothing of that
			ended = nil
			f.edit(t, "jo", func(u *principals.User) { u.Enabled, u.DirectoryDisabled = false, false })
			is.Equal(len(ended) == 1, locked) // those of who is disabled have ended before
			u := f.get(t, "jo")
			is.True(!u.Enabled && !u.DirectoryDisabled && !u.DirectoryLocked)
			_, err = f.admit(t, identity{ID: "1", Username: "jo"})
			refused(t, err)
			f.edit(t, "jo", func(u *principals.User) { u.Enabled = true })
		}
	})
}

// TestAdmitDisables: whom the domain no longer lets in is disabled, as by a scan.
func TestAdmitDisables(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		var ended []string
		f.content.hooks.Disabled = func(_ context.Context, tenant string, names []string) error {
			ended = append(ended, names...)
			return nil
		}
		jo := identity{ID: "1", Username: "jo"}
		_, err := f.admit(t, jo)
		is.NoErr(err)
		gone := jo
		gone.Disabled = true
		for range 2 {
			_, err = f.admit(t, gone)
			refused(t, err)
		}
		u := f.get(t, "jo")
		is.True(!u.Enabled && u.DirectoryDisabled)
		is.Equal(ended, []string{"jo"})
		_, err = f.admit(t, identity{ID: "2", Username: "new", Disabled: true})
		refused(t, err)
		f.gone(t, "new")

		f.edit(t, "jo", func(u *principals.User) { u.Enabled, u.Superuser = true, true })
		_, err = f.admit(t, gone)
		refused(t, err)
		is.True(f.get(t, "jo").Enabled) // the last superuser
		f.edit(t, "jo", func(u *principals.User) { u.DisplayName = text("Jo") })
		is.Equal(ended, []string{"jo"})
	})
}

// TestAdmitAnnounces: a log-in at a directory announces the user that it makes, renames, changes or
// disables, and nothing if nothing changes.
func TestAdmitAnnounces(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		var got []string
		f.Service = principals.New(principals.Options{
			Store: f.store, Content: f.content, Now: func() time.Time { return f.now }, Cost: cheap,
			Feed: entity.NewChanges(entity.ChangesOptions{
				Keep: func(_ context.Context, c entity.Change) error {
					got = append(got, fmt.Sprint(c.Action, " ", c.Kind, " ", c.ID))
					return nil
				},
				Now: time.Now,
			}),
		})
		login := func(who identity) []string {
			got = nil
			_, err := f.admit(t, who)
			if who.Disabled {
				refused(t, err)
			} else {
				is.NoErr(err)
			}
			return got
		}
		jo := identity{ID: "1", Username: "jo"}
		is.Equal(login(jo), []string{"create user jo"})
		is.Equal(len(login(jo)), 0)
		jo.DisplayName = "Jo"
		is.Equal(login(jo), []string{"update user jo"})
		jo.Username = "joe"
		is.Equal(login(jo), []string{"delete user jo", "create user joe"})
		jo.Username, jo.Email = "jo", "jo@example.com"
		is.Equal(login(jo), []string{"delete user joe", "create user jo", "update user jo"})
		jo.Disabled = true
		is.Equal(login(jo), []string{"update user jo"})
		is.Equal(len(login(jo)), 0)
	})
}

// TestAdmitReasons: the log tells why somebody who has logged in at a directory is no user here,
// and what to do.
func TestAdmitReasons(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		f.user(t, "local")
		_, err := f.admit(t, identity{ID: "1", Username: "jo"})
		is.NoErr(err)
		for why, who := range map[string]identity{
			"the name is that of the user local of the domain local":   {ID: "2", Username: "LOCAL"},
			"no user can have the name a/b: ":                          {ID: "2", Username: "a/b"},
			`created there anew, PUT /api/users/jo {"sourceId": null}`: {ID: "2", Username: "jo"},
		} {
			_, err := f.admit(t, who)
			refused(t, err)
			is.True(strings.Contains(err.Error(), why))
		}
		f.edit(t, "jo", func(u *principals.User) { u.Enabled = false })
		_, err = f.admit(t, identity{ID: "1", Username: "jo"})
		refused(t, err)
		is.True(strings.Contains(err.Error(), "the user is disabled here: a scan enables whom"))
	})
}
