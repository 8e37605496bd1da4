package sessions_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/matryer/is"
	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/limits/cache"
	principalstore "github.com/tenantcontent/tenantcontent/internal/store/principals"
	"github.com/tenantcontent/tenantcontent/internal/store/sessions"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/principals"
	"github.com/tenantcontent/tenantcontent/sessions"
)

const password = "correct horse battery"

var monday = time.Date(2026, 11, 16, 9, 0, 0, 123456000, time.UTC)

// fixture is a Service over a database with the user jo, a superuser of acme and of evil. It keeps
// look-ups for a moment, as the root's does.
type fixture struct {
	*sessions.Service
	db      *bun.DB
	users   *principals.Service
	spy     *spy
	now     time.Time
	tenants fixedTenants
	apps    fixedApps
}

func newFixture(t *testing.T, db *bun.DB) *fixture {
	t.Helper()
	is, f := is.New(t), &fixture{db: db, now: monday, tenants: fixedTenants{"acme", "evil"}}
	var changes cache.Counter
	clock := func() time.Time { return f.now }
	f.users = principals.New(principals.Options{
		Store: principalstore.New(db).Notify(changes.Bump),
		Now:   clock, Cost: principals.Cost{Memory: 64, Time: 1, Threads: 1},
	})
	f.spy = &spy{Store: bunstore.New(db).Notify(changes.Bump)}
	f.Service = sessions.New(sessions.Options{
		Store:         f.spy,
		Authenticator: f.users.Unchecked(),
		Tenants:       &f.tenants,
		Apps:          &f.apps,
		Now:           clock,
		Changes:       changes.Of,
		Keys:          newKeys(t),
	})
	for _, tenant := range []string{"acme", "evil"} {
		_, err := f.users.Unchecked().AddSuperuser(t.Context(), principals.Credentials{
			Tenant: tenant, Username: "jo", Password: password,
		})
		is.NoErr(err)
	}
	return f
}

// each runs a test on a fixture in each database.
func each(t *testing.T, test func(t *testing.T, f *fixture)) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) { test(t, newFixture(t, open(t))) })
}

// login logs jo into acme.
func (f *fixture) login(t *testing.T) sessions.Login {
	t.Helper()
	l, err := f.Login(t.Context(), principals.Credentials{
		Tenant: "acme", Domain: "local", Username: "jo", Password: password,
	})
	is.New(t).NoErr(err)
	return l
}

// as returns a context in which jo of acme calls.
func (f *fixture) as(t *testing.T) context.Context {
	return actor.With(t.Context(), actor.Actor{Tenant: "acme", User: "jo", Superuser: true})
}

type fixedTenants []string

func (f *fixedTenants) IDs(context.Context) ([]string, error) { return *f, nil }

// spy is a Store that counts look-ups and can fail to count a tenant's uses.
type spy struct {
	sessions.Store
	lookups atomic.Int64
	fail    error
	fails   string // the tenant; all if empty
}

func (s *spy) Session(ctx context.Context, tenant, id string) (sessions.Session, sessions.Holder, error) {
	s.lookups.Add(1)
	return s.Store.Session(ctx, tenant, id)
}

func (s *spy) Token(ctx context.Context, tenant, id string) (sessions.Token, sessions.Holder, error) {
	s.lookups.Add(1)
	return s.Store.Token(ctx, tenant, id)
}

func (s *spy) Count(ctx context.Context, tenant string, uses map[string]sessions.Use) error {
	if s.fail != nil && (s.fails == "" || s.fails == tenant) {
		return s.fail
	}
	return s.Store.Count(ctx, tenant, uses)
}

func refused(t *testing.T, err error) {
	t.Helper()
	is := is.New(t)
	is.Equal(errs.CodeOf(err), errs.Unauthenticated)
	is.Equal(errs.MessageOf(err), "The session or token is missing, not valid or has expired. Log in first.")
}

func TestLoginPicksTheTenant(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is, ctx := is.New(t), t.Context()
		for _, named := range []string{"acme", "evil"} {
			l, err := f.Login(ctx, principals.Credentials{
				Tenant: named, Domain: "local", Username: "JO", Password: password,
			})
			is.NoErr(err)
			is.Equal(l.Tenant, named)
			is.Equal(l.User.Tenant, named)
			is.Equal(l.User.Username, "jo") // found ignoring case, given as stored
		}
		f.tenants = fixedTenants{"evil"}
		l, err := f.Login(ctx, principals.Credentials{Domain: "local", Username: "jo", Password: password})
		is.NoErr(err)
		is.Equal(l.Tenant, "evil") // the only one
		for _, several := range []fixedTenants{{}, {"acme", "evil"}} {
			f.tenants = several
			_, err = f.Login(ctx, principals.Credentials{Domain: "local", Username: "jo", Password: password})
			is.Equal(errs.MessageOf(err), "Unable to log in") // "default", where there is no jo
		}
	})
}

func TestEveryFailedLoginIsTheSame(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is, ctx, as := is.New(t), t.Context(), f.as(t)
		_, err := f.users.CreateUser(as, principals.User{Username: "off", Domain: principals.Local}, password)
		is.NoErr(err)
		_, err = f.users.CreateUser(
			as, principals.User{Username: "locked", Domain: principals.Local, Enabled: true}, password,
		)
		is.NoErr(err)
		_, err = f.users.UpdateUser(as, "locked", func(u *principals.User) error { u.Locked = true; return nil })
		is.NoErr(err)
		for _, c := range [][4]string{
			{"acme", "local", "jo", "wrong horse battery"},
			{"acme", "local", "jo", ""},
			{"acme", "local", "nobody", password},
			{"acme", "local", "", ""},
			{"acme", "local", "off", password},
			{"acme", "local", "locked", password},
			{"acme", "ldap", "jo", password},
			{"acme", "", "jo", password},
			{"nowhere", "local", "jo", password},
			{"ac\x00me", "local", "jo", password},
			{"acme", "local", "j\x00o", password},
			{"acme", "local", "\xff", "\xff"},
		} {
			l, err := f.Login(ctx, principals.Credentials{Tenant: c[0], Domain: c[1], Username: c[2], Password: c[3]})
			is.Equal(errs.CodeOf(err), errs.Unauthenticated)
			is.Equal(errs.MessageOf(err), "Unable to log in")
			is.Equal(l, sessions.Login{})
		}
	})
}

func TestLoginOfAUserWhoIsDeletedMeanwhile(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		s := sessions.New(sessions.Options{Store: f.spy, Authenticator: ghost{}, Tenants: &f.tenants})
		_, err := s.Login(t.Context(), principals.Credentials{
			Tenant: "acme", Domain: "local", Username: "gone", Password: password,
		})
		is.Equal(errs.CodeOf(err), errs.Unauthenticated)
		is.Equal(errs.MessageOf(err), "Unable to log in")
	})
}

// ghost lets in a user that no longer exists.
type ghost struct{}

func (ghost) Authenticate(context.Context, principals.Credentials) (principals.User, error) {
	return principals.User{Username: "gone"}, nil
}

func TestSessionGivesTheRightsOfTheMoment(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is, ctx, as := is.New(t), t.Context(), f.as(t)
		team, err := f.users.CreateTeam(as, principals.Team{Name: "Team"})
		is.NoErr(err)
		_, err = f.users.CreateUser(as, principals.User{Username: "kim", Enabled: true}, password)
		is.NoErr(err)
		l, err := f.Login(ctx, principals.Credentials{
			Tenant: "acme", Domain: "local", Username: "kim", Password: password,
		})
		is.NoErr(err)
		a, err := f.Authenticate(ctx, l.Token, loopback)
		is.NoErr(err)
		is.True(a.Session != "")
		want := actor.Actor{Tenant: "acme", User: "kim", Session: a.Session}
		is.Equal(a, want)

		_, err = f.users.PutMember(as, team.ID, "kim", actor.Publisher)
		is.NoErr(err)
		want.Teams = map[string]actor.Role{team.ID: actor.Publisher}
		a, err = f.Authenticate(ctx, l.Token, loopback)
		is.NoErr(err)
		is.Equal(a, want)

		_, err = f.users.UpdateUser(as, "kim", func(u *principals.User) error { u.Superuser = true; return nil })
		is.NoErr(err)
		want.Superuser, want.AI = true, true // a superuser holds ai, too
		a, err = f.Authenticate(ctx, l.Token, loopback)
		is.NoErr(err)
		is.Equal(a, want)
	})
}

func TestSessionEnds(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is, ctx := is.New(t), t.Context()
		l := f.login(t)
		is.Equal(l.ExpiresAt, monday.Add(12*time.Hour))
		f.now = l.ExpiresAt.Add(-time.Microsecond)
		_, err := f.Authenticate(ctx, l.Token, loopback)
		is.NoErr(err)
		f.now = l.ExpiresAt
		_, err = f.Authenticate(ctx, l.Token, loopback)
		refused(t, err)

		n, err := f.Unchecked().Hooks().Sweep(ctx, "acme")
		is.NoErr(err)
		is.Equal(n, 1)
	})
}

func TestLogout(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is, ctx := is.New(t), t.Context()
		l, other := f.login(t), f.login(t)
		a, err := f.Authenticate(ctx, l.Token, loopback)
		is.NoErr(err)
		is.NoErr(f.Logout(actor.With(ctx, a)))
		is.NoErr(f.Logout(actor.With(ctx, a)))
		is.NoErr(f.Logout(f.as(t))) // a host's actor has no session
		is.Equal(errs.CodeOf(f.Logout(ctx)), errs.Unauthenticated)
		_, err = f.Authenticate(ctx, l.Token, loopback)
		refused(t, err)
		_, err = f.Authenticate(ctx, other.Token, loopback)
		is.NoErr(err)
	})
}

func TestNewPasswordEndsSessions(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is, ctx := is.New(t), t.Context()
		old := f.login(t)
		f.now = f.now.Add(time.Microsecond)
		is.NoErr(f.users.Unchecked().SetPassword(ctx, principals.Credentials{
			Tenant: "acme", Username: "jo", Password: password,
		}))
		_, err := f.Authenticate(ctx, old.Token, loopback)
		refused(t, err)
		_, err = f.Authenticate(ctx, f.login(t).Token, loopback)
		is.NoErr(err)
	})
}

// slow lets a user in whose password changes before the session begins.
type slow struct{ f *fixture }

func (s slow) Authenticate(ctx context.Context, c principals.Credentials) (principals.User, error) {
	u, err := s.f.users.Unchecked().Authenticate(ctx, c)
	s.f.now = s.f.now.Add(time.Second)
	return u, err
}

func TestPasswordThatChangesDuringLogin(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is, ctx := is.New(t), t.Context()
		s := sessions.New(sessions.Options{
			Store: f.spy, Authenticator: slow{f}, Tenants: &f.tenants, Now: func() time.Time { return f.now },
		})
		l, err := s.Login(ctx, principals.Credentials{
			Tenant: "acme", Domain: "local", Username: "jo", Password: password,
		})
		is.NoErr(err)
		f.now = f.now.Add(-time.Millisecond) // after the look at the password, before the session's row
		is.NoErr(f.users.Unchecked().SetPassword(ctx, principals.Credentials{
			Tenant: "acme", Username: "jo", Password: "another password",
		}))
		_, err = f.Authenticate(ctx, l.Token, loopback)
		refused(t, err)
	})
}

func TestDisabledUserIsRefusedAtOnce(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is, ctx, as := is.New(t), t.Context(), f.as(t)
		_, err := f.users.Unchecked().AddSuperuser(ctx, principals.Credentials{
			Tenant: "acme", Username: "other", Password: password,
		})
		is.NoErr(err)
		l := f.login(t)
		_, key, err := f.CreateToken(as, own, sessions.NewToken{})
		is.NoErr(err)
		set := func(enabled bool) {
			_, err := f.users.UpdateUser(as, "jo", func(u *principals.User) error { u.Enabled = enabled; return nil })
			is.NoErr(err)
		}
		set(false)
		for _, credential := range []string{l.Token, key} {
			_, err = f.Authenticate(ctx, credential, loopback)
			refused(t, err)
		}
		set(true)
		for _, credential := range []string{l.Token, key} {
			_, err = f.Authenticate(ctx, credential, loopback)
			is.NoErr(err)
		}
		is.NoErr(f.users.DeleteUser(as, "jo", ""))
		for _, credential := range []string{l.Token, key} {
			_, err = f.Authenticate(ctx, credential, loopback)
			refused(t, err)
		}
	})
}

func TestManyRequestsCostOneLookup(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is, ctx := is.New(t), t.Context()
		l := f.login(t)
		_, key := f.token(t, sessions.NewToken{})
		began := time.Now()
		for range 100 {
			for _, credential := range []string{l.Token, key} {
				_, err := f.Authenticate(ctx, credential, loopback)
				is.NoErr(err)
			}
		}
		is.True(f.spy.lookups.Load() <= 2*(1+int64(time.Since(began)/time.Second)))
	})
}

func TestAnotherProcessRevokes(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is, ctx := is.New(t), t.Context()
		other := sessions.New(sessions.Options{
			Store: bunstore.New(f.db), Authenticator: f.users.Unchecked(), Tenants: &f.tenants, Now: func() time.Time {
				return f.now
			},
		})
		l := f.login(t)
		made, key := f.token(t, sessions.NewToken{})
		for _, credential := range []string{l.Token, key} {
			_, err := f.Authenticate(ctx, credential, loopback)
			is.NoErr(err)
		}
		is.NoErr(other.DeleteToken(f.as(t), own, made.ID))
		a, err := other.Authenticate(ctx, l.Token, loopback)
		is.NoErr(err)
		is.NoErr(other.Logout(actor.With(ctx, a)))
		for _, credential := range []string{l.Token, key} {
			_, err = other.Authenticate(ctx, credential, loopback)
			refused(t, err)
		}
		time.Sleep(1100 * time.Millisecond) // it is seen elsewhere after a second
		for _, credential := range []string{l.Token, key} {
			_, err = f.Authenticate(ctx, credential, loopback)
			refused(t, err)
		}
	})
}
