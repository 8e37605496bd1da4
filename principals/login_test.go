package principals_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/store/principals"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/principals"
)

func (f *fixture) login(t *testing.T, name, password string) error {
	t.Helper()
	_, err := f.Unchecked().Authenticate(t.Context(), principals.Credentials{
		Tenant: "acme", Domain: "local", Username: name, Password: password,
	})
	return err
}

func TestAuthenticate(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		f.user(t, "Jö")
		_, err := f.CreateUser(root(t), principals.User{Username: "none", Enabled: true}, "")
		is.NoErr(err)
		_, err = f.CreateUser(root(t), principals.User{Username: "off"}, password)
		is.NoErr(err)
		past := monday.Add(-time.Hour)
		_, err = f.CreateUser(
			root(t), principals.User{Username: "old", Enabled: true, PasswordExpiresAt: &past}, password,
		)
		is.NoErr(err)
		f.user(t, "moved")
		_, err = f.UpdateUser(root(t), "moved", func(u *principals.User) error { u.Domain = "ldap"; return nil })
		is.NoErr(err)

		for _, name := range []string{"Jö", "jö", "JÖ", "Jo\u0308"} {
			u, err := f.Unchecked().Authenticate(t.Context(), principals.Credentials{
				Tenant: "acme", Domain: "local", Username: name, Password: password,
			})
			is.NoErr(err)
			is.Equal(u.Username, "Jö")
		}
		for name, c := range map[string]struct{ tenant, domain, user, password string }{
			"tenant":         {"none", "local", "Jö", password},
			"other tenant":   {"evil", "local", "Jö", password},
			"odd tenant":     {"\x00\xff", "local", "Jö", password},
			"domain":         {"acme", "ldap", "Jö", password},
			"no domain":      {"acme", "", "Jö", password},
			"user":           {"acme", "local", "nobody", password},
			"odd user":       {"acme", "local", "Jö\x00", password},
			"long user":      {"acme", "local", strings.Repeat("x", 1<<20), password},
			"no user":        {"acme", "local", "", password},
			"wrong":          {"acme", "local", "Jö", "wrong horse"},
			"empty":          {"acme", "local", "Jö", ""},
			"too long":       {"acme", "local", "Jö", strings.Repeat("x", 1<<20)},
			"no password":    {"acme", "local", "none", ""},
			"none set":       {"acme", "local", "none", password},
			"disabled":       {"acme", "local", "off", password},
			"expired":        {"acme", "local", "old", password},
			"another domain": {"acme", "local", "moved", password},
			"its own domain": {"acme", "ldap", "moved", password},
		} {
			t.Run(name, func(t *testing.T) {
				is, before := is.New(t), principals.Hashings(f.Service)
				_, err := f.Unchecked().Authenticate(t.Context(), principals.Credentials{
					Tenant: c.tenant, Domain: c.domain, Username: c.user, Password: c.password,
				})
				is.Equal(errs.CodeOf(err), errs.Unauthenticated)
				is.Equal(errs.MessageOf(err), "Unable to log in")
				hashed := int64(0)
				if c.user == "Jö" && c.tenant == "acme" && c.domain == "local" { // nobody else can have a right one
					hashed = 1
				}
				is.Equal(int64(principals.Hashings(f.Service)-before), hashed)
			})
		}
	})
}

// from is a request from an address.
func from(ctx context.Context, address string) context.Context {
	return actor.WithOrigin(ctx, actor.Origin{Address: netip.MustParseAddr(address), Request: "r-1"})
}

// loginFrom logs jo of acme in from an address.
func (f *fixture) loginFrom(t *testing.T, address, password string) error {
	t.Helper()
	_, err := f.Unchecked().Authenticate(from(t.Context(), address), principals.Credentials{
		Tenant: "acme", Domain: "local", Username: "jo", Password: password,
	})
	return err
}

// reason is what the log says of a refusal, whose message says nothing.
func reason(t *testing.T, err error) string {
	t.Helper()
	is.New(t).Equal(errs.MessageOf(err), "Unable to log in")
	is.New(t).Equal(code(err), errs.Unauthenticated)
	return errors.Unwrap(err).Error()
}

const wrong = "wrong horse"

func TestLock(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		f.user(t, "jo")
		want := func(attempts int, locked bool) {
			t.Helper()
			u, err := f.User(root(t), "jo")
			is.NoErr(err)
			is.Equal([]any{u.LoginAttempts, u.Locked}, []any{attempts, locked})
		}
		fail := func(times int, address string) {
			t.Helper()
			for range times {
				is.Equal(reason(t, f.loginFrom(t, address, wrong)), "the password is wrong")
			}
		}
		const home, away, far = "192.0.2.1", "2001:db8::1", "198.51.100.7"
		fail(9, away)
		want(9, false)
		is.NoErr(f.loginFrom(t, home, password))
		want(0, false)
		fail(1, "2001:db8::ffff") // of the same network; the login from elsewhere has not ended its count
		before := principals.Hashings(f.Service)
		// the right one does not help
		is.Equal(reason(t, f.loginFrom(t, away, password)), "the user is locked for this network")
		is.Equal(principals.Hashings(f.Service), before)
		want(1, false) // nothing counts while it is locked
		is.NoErr(f.loginFrom(t, home, password))
		is.NoErr(f.loginFrom(t, "2001:db8:0:1::1", password)) // another network
		is.NoErr(f.loginFrom(t, "::ffff:192.0.2.1", password))
		is.NoErr(f.login(t, "jo", password)) // a call without an address

		f.now = f.now.Add(15*time.Minute - time.Microsecond)
		is.Equal(reason(t, f.loginFrom(t, away, password)), "the user is locked for this network")
		f.now = f.now.Add(time.Microsecond)
		fail(9, away) // ten more tries
		is.NoErr(f.loginFrom(t, away, password))
		fail(10, away)
		is.Equal(reason(t, f.loginFrom(t, away, password)), "the user is locked for this network")
		_, err := f.UpdateUser(root(t), "jo", func(u *principals.User) error { u.Locked = true; return nil })
		is.NoErr(err)
		is.Equal(reason(t, f.loginFrom(t, home, password)), "the user is locked") // by a superuser: from everywhere
		want(10, true)
		_, err = f.UpdateUser(root(t), "jo", func(u *principals.User) error { u.Locked = false; return nil })
		is.NoErr(err)
		is.NoErr(f.loginFrom(t, home, password))
		fail(10, away)
		is.NoErr(f.Unlock(root(t), "jo"))
		want(0, false)
		is.NoErr(f.loginFrom(t, away, password))
		fail(10, away)
		is.NoErr(f.SetPassword(root(t), "jo", principals.PasswordChange{
			New: "another horse",
		})) // a superuser's reset ends the locks
		is.NoErr(f.loginFrom(t, away, "another horse"))
		want(0, false)

		fail(10, far)
		_, err = f.store.SweepNetworks(t.Context(), "acme", f.now.Add(24*time.Hour))
		is.NoErr(err)
		is.NoErr(f.loginFrom(t, far, "another horse")) // it is forgotten
		is.Equal(code(f.Unlock(self(t, "jo"), "jo")), errs.Forbidden)
		is.Equal(code(f.Unlock(root(t), "nobody")), errs.NotFound)
	})
}

// TestLockOfAllNetworks: a hundred failures from many networks keep everybody out but those from
// networks of the last 30 days' logins.
func TestLockOfAllNetworks(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		f.user(t, "jo")
		stranger := func(n int) string { return fmt.Sprintf("203.0.113.%d", n) }
		is.NoErr(f.loginFrom(t, "192.0.2.2", password))
		f.now = f.now.Add(time.Hour)
		is.NoErr(f.loginFrom(t, "192.0.2.1", password))
		f.now = f.now.Add(29*24*time.Hour + 23*time.Hour) // the first one is just too old
		attack := func(n int) {
			for i := range n {
				is.Equal(reason(t, f.loginFrom(t, stranger(i%50), wrong)), "the password is wrong")
			}
		}
		attack(99)
		f.now = f.now.Add(15 * time.Minute) // the failures of before do not count any more
		f.now = f.now.Add(-2 * time.Minute)
		is.True(!f.get(t, "jo").Locked)
		f.now = f.now.Add(2 * time.Minute)
		attack(99)
		is.True(!f.get(t, "jo").Locked)
		is.Equal(reason(t, f.loginFrom(t, "198.51.100.1", wrong)), "the password is wrong") // the hundredth
		u := f.get(t, "jo")
		is.Equal([]any{u.Locked, *u.LockedAt, u.LoginAttempts}, []any{true, f.now, 199})
		for _, address := range []string{"198.51.100.2", stranger(1), "192.0.2.2"} {
			is.Equal(reason(t, f.loginFrom(t, address, password)), "the user is locked")
		}
		is.NoErr(f.loginFrom(t, "192.0.2.1", password))
		is.True(f.get(t, "jo").Locked) // still, for the others
		is.Equal(reason(t, f.loginFrom(t, "198.51.100.2", password)), "the user is locked")
		for range 10 {
			is.Equal(reason(t, f.loginFrom(t, "192.0.2.1", wrong)), "the password is wrong")
		}
		is.Equal(reason(t, f.loginFrom(t, "192.0.2.1", password)), "the user is locked for this network")
		f.now = f.now.Add(15 * time.Minute)
		is.NoErr(f.loginFrom(t, "198.51.100.2", password))
		is.True(f.get(t, "jo").LockedAt == nil)

		f.user(t, "eve") // each user has a count, and each tenant
		_, err := f.Unchecked().Authenticate(from(t.Context(), "198.51.100.2"), principals.Credentials{
			Tenant: "acme", Domain: "local", Username: "eve", Password: password,
		})
		is.NoErr(err)
	})
}

// TestLocksAreLogged: each lock and unlock is a line.
func TestLocksAreLogged(t *testing.T) {
	is := is.New(t)
	var log bytes.Buffer
	s := principals.New(principals.Options{
		Store: bunstore.New(dbtest.SQLite(t)), Cost: cheap, Log: slog.New(slog.NewTextHandler(&log, nil)),
	})
	_, err := s.CreateUser(root(t), principals.User{Username: "jo", Enabled: true}, password)
	is.NoErr(err)
	for range 11 {
		_, err := s.Unchecked().Authenticate(from(t.Context(), "2001:db8::1"), principals.Credentials{
			Tenant: "acme", Domain: "local", Username: "jo", Password: wrong,
		})
		is.Equal(code(err), errs.Unauthenticated)
	}
	is.NoErr(s.Unlock(root(t), "jo"))
	is.NoErr(s.Unlock(root(t), "jo")) // there is nothing to unlock
	fail := func(times int) {
		for range times {
			_, err := s.Unchecked().Authenticate(from(t.Context(), "2001:db8::1"), principals.Credentials{
				Tenant: "acme", Domain: "local", Username: "jo", Password: wrong,
			})
			is.Equal(code(err), errs.Unauthenticated)
		}
	}
	fail(1) // which is no lock
	is.NoErr(s.SetPassword(root(t), "jo", principals.PasswordChange{New: password}))
	fail(1)
	is.NoErr(s.Unlock(root(t), "jo"))
	is.Equal(strings.Count(log.String(), "\n"), 2)
	fail(10)
	is.NoErr(s.SetPassword(root(t), "jo", principals.PasswordChange{New: password}))
	is.Equal(strings.Count(log.String(), "user unlocked"), 2)
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	is.Equal(len(lines), 4)
	is.True(strings.Contains(
		lines[0],
		`level=INFO msg="user locked" tenant=acme username=jo scope=network by="" request=r-1 client=2001:db8::1 `+
			`network=2001:db8::/64`,
	))
	is.True(strings.Contains(lines[1], `level=INFO msg="user unlocked" tenant=acme username=jo scope=user by=root`))
}

// TestParallelLogins counts exactly, however many try at once.
func TestParallelLogins(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		at := func(n int, password string) (passed int64) {
			var wg sync.WaitGroup
			var ok atomic.Int64
			for range n {
				wg.Go(func() {
					_, err := f.Unchecked().Authenticate(t.Context(), principals.Credentials{
						Tenant: "acme", Domain: "local", Username: "jo", Password: password,
					})
					switch {
					case err == nil:
						ok.Add(1)
					case errs.CodeOf(err) != errs.Unauthenticated:
						t.Error(err)
					}
				})
			}
			wg.Wait()
			return ok.Load()
		}
		attempts := func() int {
			u, err := f.User(root(t), "jo")
			is.NoErr(err)
			return u.LoginAttempts
		}
		f.user(t, "jo")
		is.Equal(at(9, "wrong horse"), int64(0))
		is.Equal(attempts(), 9)
		is.Equal(at(200, password), int64(200))
		is.Equal(attempts(), 0)
		is.Equal(at(1000, "wrong horse"), int64(0))
		is.Equal(attempts(), 10)
		is.Equal(at(20, password), int64(0)) // locked
	})
}

// TestGuessBehindTheLock: what is found after the lock is not told, even when it was tried before
// it.
func TestGuessBehindTheLock(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		f.user(t, "jo")
		l, err := f.store.Login(t.Context(), "acme", "jo", "")
		is.NoErr(err)
		slow := principals.New(principals.Options{Store: lateStore{f.store, l}, Now: func() time.Time {
			return f.now
		}, Cost: cheap})
		for range 10 {
			is.True(f.login(t, "jo", "wrong horse") != nil)
		}
		// read the user before the lock
		_, err = slow.Unchecked().Authenticate(t.Context(), principals.Credentials{
			Tenant: "acme", Domain: "local", Username: "jo", Password: password,
		})
		is.Equal(code(err), errs.Unauthenticated)
	})
}

// lateStore reads a login as it was.
type lateStore struct {
	principals.Store
	login principals.Login
}

func (s lateStore) Login(context.Context, string, string, string) (principals.Login, error) {
	return s.login, nil
}

// TestPasswordChangedMeanwhile: a password that was right when it was looked up, and is not any
// more when it has been hashed, is refused.
func TestPasswordChangedMeanwhile(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		f.user(t, "jo")
		l, err := f.store.Login(t.Context(), "acme", "jo", "")
		is.NoErr(err)
		is.NoErr(f.Unchecked().SetPassword(t.Context(), principals.Credentials{
			Tenant: "acme", Username: "jo", Password: "another horse",
		}))
		slow := principals.New(principals.Options{Store: lateStore{f.store, l}, Now: func() time.Time {
			return f.now
		}, Cost: cheap})
		_, err = slow.Unchecked().Authenticate(t.Context(), principals.Credentials{
			Tenant: "acme", Domain: "local", Username: "jo", Password: password,
		})
		is.Equal(code(err), errs.Unauthenticated)
		is.NoErr(f.login(t, "jo", "another horse"))
	})
}

// TestLoginsBesideLockedRows: somebody writes to users for long, an import for example. Logins as
// these users wait for it; those of other tenants do not, nor those of nobody, or of people whom a
// directory knows.
func TestLoginsBesideLockedRows(t *testing.T) {
	is := is.New(t)
	db := dbtest.Postgres(t)
	s := principals.New(principals.Options{Store: bunstore.New(db), Cost: cheap})
	eve := as(t, actor.Actor{Tenant: "evil", User: "root", Superuser: true})
	for _, ctx := range []context.Context{root(t), eve} {
		_, err := s.CreateUser(ctx, principals.User{Username: "jo", Enabled: true}, password)
		is.NoErr(err)
	}
	_, err := s.CreateUser(root(t), principals.User{Username: "far", Enabled: true, Domain: "ldap"}, "")
	is.NoErr(err)
	var trying sync.WaitGroup
	is.NoErr(bunx.Write(t.Context(), db, "acme", func(_ context.Context, c bunx.Conn) error {
		if _, err := c.Exec(t.Context(), `UPDATE tc_users SET email = 'x' WHERE tenant_id = $1`, "acme"); err != nil {
			return err
		}
		for _, name := range []string{"far", "nobody"} {
			_, err := s.Unchecked().Authenticate(t.Context(), principals.Credentials{
				Tenant: "acme", Domain: "local", Username: name, Password: password,
			})
			is.Equal(code(err), errs.Unauthenticated)
		}
		for range 100 {
			trying.Go(func() {
				if _, err := s.Unchecked().Authenticate(
					t.Context(), principals.Credentials{
						Tenant: "acme", Domain: "local", Username: "jo", Password: "wrong horse",
					},
				); code(err) != errs.Unauthenticated {
					t.Error(err)
				}
			})
		}
		for range 10 { // while those wait
			_, err := s.Unchecked().Authenticate(t.Context(), principals.Credentials{
				Tenant: "evil", Domain: "local", Username: "jo", Password: password,
			})
			is.NoErr(err)
		}
		return nil
	}))
	trying.Wait()
}

// brokenStore finds no database.
type brokenStore struct{ principals.Store }

func (brokenStore) Login(context.Context, string, string, string) (principals.Login, error) {
	return principals.Login{}, errs.New(errs.Unavailable, "away")
}

func TestAuthenticateFaults(t *testing.T) {
	is := is.New(t)
	s := principals.New(principals.Options{Store: brokenStore{}, Cost: cheap})
	_, err := s.Unchecked().Authenticate(t.Context(), principals.Credentials{
		Tenant: "acme", Domain: "local", Username: "jo", Password: password,
	})
	is.Equal(code(err), errs.Unavailable) // nothing was found out, so it is no refusal
	s = principals.New(principals.Options{Store: lateStore{}, Cost: cheap})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = s.Unchecked().Authenticate(ctx, principals.Credentials{
		Tenant: "acme", Domain: "local", Username: "jo", Password: password,
	})
	is.True(errors.Is(err, context.Canceled))
}

func TestSetPassword(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		was := f.user(t, "jo")
		is.Equal(*was.PasswordSetAt, monday)
		soon := monday.Add(time.Minute)
		_, err := f.UpdateUser(root(t), "jo", func(u *principals.User) error {
			u.PasswordExpiresAt = &soon
			return nil
		})
		is.NoErr(err)
		f.now = f.now.Add(time.Second)
		is.NoErr(f.SetPassword(self(t, "jo"), "jo", principals.PasswordChange{
			Current: password, New: "another horse",
		}))
		u, err := f.User(root(t), "jo")
		is.NoErr(err)
		is.Equal(*u.PasswordSetAt, f.now) // older sessions are over
		is.True(u.PasswordExpiresAt == nil)
		is.True(f.login(t, "jo", password) != nil)
		is.NoErr(f.login(t, "jo", "another horse"))

		for _, bad := range []string{"", "1234567", strings.Repeat("ü", 257), "12345678\xff"} {
			is.Equal(code(f.SetPassword(root(t), "jo", principals.PasswordChange{New: bad})), errs.Invalid)
		}
		is.NoErr(f.SetPassword(root(t), "jo", principals.PasswordChange{New: strings.Repeat("ü", 256)}))
		is.NoErr(f.login(t, "jo", strings.Repeat("ü", 256)))
		is.NoErr(f.Unchecked().SetPassword(t.Context(), principals.Credentials{
			Tenant: "acme", Username: "jo", Password: "12345678",
		}))
		// names are exact
		is.Equal(code(f.Unchecked().SetPassword(t.Context(), principals.Credentials{
			Tenant: "acme", Username: "JO", Password: "12345678",
		})), errs.NotFound)
		is.Equal(code(f.Unchecked().SetPassword(t.Context(), principals.Credentials{
			Tenant: "none", Username: "jo", Password: "12345678",
		})), errs.NotFound)

		for range 10 {
			is.Equal(code(f.SetPassword(self(t, "jo"), "jo", principals.PasswordChange{
				Current: "wrong horse", New: "another horse",
			})), errs.Forbidden)
		}
		is.Equal(code(f.SetPassword(self(t, "jo"), "jo", principals.PasswordChange{
			Current: "12345678", New: "another horse",
		})), errs.Forbidden) // locked
		is.True(f.login(t, "jo", "12345678") != nil)

		_, err = f.CreateUser(root(t), principals.User{Username: "away", Domain: "ldap", Enabled: true}, "")
		is.NoErr(err)
		is.Equal(code(f.SetPassword(root(t), "away", principals.PasswordChange{New: "12345678"})), errs.Invalid)
		_, err = f.CreateUser(root(t), principals.User{Username: "away2", Domain: "ldap"}, "12345678")
		is.Equal(code(err), errs.Invalid)

		// who leaves the domain local loses the password, and comes back with a new one
		f.user(t, "back")
		move := func(domain string) error {
			_, err := f.UpdateUser(root(t), "back", func(u *principals.User) error { u.Domain = domain; return nil })
			return err
		}
		is.NoErr(move("ldap"))
		is.Equal(code(move("local")), errs.Invalid)
		is.Equal(code(f.MoveToLocal(self(t, "back"), "back", "another horse")), errs.Forbidden)
		is.Equal(code(f.MoveToLocal(root(t), "back", "short")), errs.Invalid)
		is.Equal(code(f.MoveToLocal(root(t), "nobody", "another horse")), errs.NotFound)
		is.NoErr(f.MoveToLocal(root(t), "back", "another horse"))
		is.Equal(code(f.MoveToLocal(root(t), "back", "another horse")), errs.Invalid)
		is.True(f.login(t, "back", password) != nil)
		is.NoErr(f.login(t, "back", "another horse"))
	})
}

func TestAddSuperuser(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		u, err := f.Unchecked().AddSuperuser(t.Context(), principals.Credentials{
			Tenant: "acme", Username: "admin", Password: password,
		})
		is.NoErr(err)
		is.True(u.Superuser && u.Enabled && u.Domain == "local")
		got, err := f.Unchecked().Authenticate(t.Context(), principals.Credentials{
			Tenant: "acme", Domain: "local", Username: "admin", Password: password,
		})
		is.NoErr(err)
		is.Equal(got, u)
		_, err = f.Unchecked().AddSuperuser(t.Context(), principals.Credentials{
			Tenant: "acme", Username: "ADMIN", Password: password,
		})
		is.Equal(code(err), errs.Conflict)
		_, err = f.Unchecked().AddSuperuser(t.Context(), principals.Credentials{
			Tenant: "none", Username: "admin", Password: password,
		})
		is.Equal(code(err), errs.NotFound)
		_, err = f.Unchecked().AddSuperuser(t.Context(), principals.Credentials{
			Tenant: "evil", Username: "admin", Password: "short",
		})
		is.Equal(code(err), errs.Invalid)
	})
}
