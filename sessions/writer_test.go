package sessions_test

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/store/engines"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/principals"
	"github.com/tenantcontent/tenantcontent/sessions"
)

// hold calls fn while a transaction has SQLite's writer. fn gets the transaction's context.
func (f *fixture) hold(t *testing.T, fn func(ctx context.Context)) {
	t.Helper()
	is.New(t).NoErr(bunx.InTx(t.Context(), f.db, func(ctx context.Context) error { fn(ctx); return nil }))
}

// stored returns how many sessions are stored.
func (f *fixture) stored(t *testing.T) (n int) {
	t.Helper()
	ctx, c := bunx.For(t.Context(), f.db, "acme")
	is.New(t).NoErr(c.Row(ctx, "SELECT count(*) FROM tc_sessions").Scan(&n))
	return n
}

// admitted reports whether a credential is one.
func (f *fixture) admitted(t *testing.T, token string) bool {
	t.Helper()
	_, err := f.Authenticate(t.Context(), token, loopback)
	if err != nil {
		refused(t, err)
	}
	return err == nil
}

// TestLoginWaitsForNoWriter: a login while another transaction writes has its session at once, and
// it is stored when that has ended.
func TestLoginWaitsForNoWriter(t *testing.T) {
	for name, end := range map[string]error{"commit": nil, "rollback": errors.New("fault")} {
		t.Run(name, func(t *testing.T) {
			is, f := is.New(t), newFixture(t, dbtest.SQLite(t))
			var logins []sessions.Login
			var out sessions.Login
			err := bunx.InTx(t.Context(), f.db, func(context.Context) error {
				for range 3 {
					logins = append(logins, f.login(t))
				}
				out = f.login(t)
				for _, l := range append(logins, out) {
					is.True(f.admitted(t, l.Token))
				}
				is.Equal(f.stored(t), 0)
				a, err := f.Authenticate(t.Context(), out.Token, loopback)
				is.NoErr(err)
				is.NoErr(f.Logout(actor.With(t.Context(), a))) // does not wait either
				is.True(!f.admitted(t, out.Token))
				f.now = out.ExpiresAt
				is.True(!f.admitted(t, logins[0].Token)) // it has expired
				f.now = monday
				return end
			})
			is.Equal(err, end)
			is.NoErr(bunx.WriteDeferred(t.Context(), f.db))
			is.Equal(f.stored(t), 3)
			for _, l := range logins {
				is.True(f.admitted(t, l.Token))
			}
			is.True(!f.admitted(t, out.Token))
		})
	}
}

// TestLogoutIsEffectiveAtOnce: a stored session ends at once while another transaction writes, and
// nobody is told that this is stored before it is.
func TestLogoutIsEffectiveAtOnce(t *testing.T) {
	is, f := is.New(t), newFixture(t, dbtest.SQLite(t))
	who := func(token string) actor.Actor {
		a, err := f.Authenticate(t.Context(), token, loopback)
		is.NoErr(err)
		return a
	}
	logout := func(a actor.Actor, end func(*sessions.Service, context.Context) error) <-chan error {
		done := make(chan error, 1)
		ctx := actor.WithOrigin(actor.With(t.Context(), a), actor.Origin{Request: "waits for seconds at most"})
		go func() { done <- end(f.Service, ctx) }()
		return done
	}
	late, soon, stored, kept, other := f.login(t), f.login(t), f.login(t), f.login(t), f.login(t)
	is.Equal(f.stored(t), 5)
	var waits []<-chan error
	f.hold(t, func(context.Context) {
		refused, fails := logout(
			who(late.Token), (*sessions.Service).Logout,
		), logout(who(kept.Token), (*sessions.Service).LogoutStored)
		for f.admitted(t, late.Token) {
			time.Sleep(time.Millisecond)
		}
		for _, end := range []<-chan error{refused, fails} {
			err := <-end
			is.Equal(errs.CodeOf(err), errs.Unavailable)
			is.True(errors.Is(err, errs.ErrDatabaseBusy) && errs.RetryAfterOf(err) > 0)
		}
		is.True(!f.admitted(t, late.Token))
		is.True(f.admitted(t, kept.Token))
		is.Equal(f.stored(t), 5)
		for token, again := range map[string]func(*sessions.Service, context.Context) error{
			soon.Token: (*sessions.Service).Logout, stored.Token: (*sessions.Service).LogoutStored,
		} {
			a := who(token)
			waits = append(waits, logout(a, (*sessions.Service).Logout))
			for f.admitted(t, token) {
				time.Sleep(time.Millisecond)
			}
			waits = append(waits, logout(a, again)) // a second click does not undo the first one
		}
		is.True(f.admitted(t, other.Token))
	})
	for _, end := range waits {
		err := <-end // it may have waited for so long that this one is refused, too
		is.True(err == nil || errors.Is(err, errs.ErrDatabaseBusy))
	}
	is.NoErr(bunx.WriteDeferred(t.Context(), f.db))
	is.Equal(f.stored(t), 2)
	for l, want := range map[string]bool{
		late.Token:   false,
		soon.Token:   false,
		stored.Token: false,
		kept.Token:   true,
		other.Token:  true,
	} {
		is.Equal(f.admitted(t, l), want)
	}
}

// TestGuessesWhileAnotherWrites: failures count and lock as ever, and the counts are stored.
func TestGuessesWhileAnotherWrites(t *testing.T) {
	is, f := is.New(t), newFixture(t, dbtest.SQLite(t))
	try := func(network int, password string) error {
		_, err := f.Login(actor.WithOrigin(t.Context(), actor.Origin{
			Address: netip.AddrFrom4([4]byte{10, 0, byte(network >> 8), byte(network)}),
		}), principals.Credentials{Tenant: "acme", Domain: "local", Username: "jo", Password: password})
		if err != nil {
			is.Equal(errs.CodeOf(err), errs.Unauthenticated)
		}
		return err
	}
	is.True(try(1, "wrong") != nil) // stored before
	f.hold(t, func(context.Context) {
		for range 8 {
			is.True(try(1, "wrong") != nil)
		}
		is.NoErr(try(2, password))
		is.NoErr(try(1, password)) // ends the failures of this network
		for range 10 {
			is.True(try(1, "wrong") != nil)
		}
		is.True(try(1, password) != nil) // locked for this network
		is.NoErr(try(2, password))
	})
	is.NoErr(bunx.WriteDeferred(t.Context(), f.db))
	is.True(try(1, password) != nil)
	is.NoErr(try(2, password))

	f.hold(t, func(context.Context) { // a hundred over all networks lock the user
		for n := range 90 {
			is.True(try(100+n, "wrong") != nil)
		}
		is.True(try(999, password) != nil)
		is.NoErr(try(2, password)) // a known network
	})
	is.NoErr(bunx.WriteDeferred(t.Context(), f.db))
	is.True(try(999, password) != nil)
	is.NoErr(try(2, password))
}

// TestWhatEndsSessionsThatWait: what another transaction ends is ended for the sessions that have
// begun beside it, too, once it is committed.
func TestWhatEndsSessionsThatWait(t *testing.T) {
	for name, end := range map[string]func(ctx context.Context, f *fixture) error{
		"password": func(ctx context.Context, f *fixture) error {
			return f.users.SetPassword(ctx, "mia", principals.PasswordChange{New: "another password"})
		},
		"disable": func(ctx context.Context, f *fixture) error {
			_, err := f.users.UpdateUser(ctx, "mia", func(u *principals.User) error { u.Enabled = false; return nil })
			return err
		},
		"delete": func(ctx context.Context, f *fixture) error { return f.users.DeleteUser(ctx, "mia", "") },
		"rename": func(ctx context.Context, f *fixture) error {
			ctx, c := bunx.For(ctx, f.db, "acme")
			_, err := c.Exec(ctx, `DELETE FROM tc_users WHERE tenant_id = 'acme' AND username = 'mia'`)
			return err
		},
		"tenant": func(ctx context.Context, f *fixture) error {
			ctx, c := bunx.For(ctx, f.db, "acme")
			_, err := c.Exec(ctx, `UPDATE tc_tenants SET hidden = 'deleting' WHERE tenant_id = 'acme'`)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			is, f := is.New(t), newFixture(t, dbtest.SQLite(t))
			_, err := f.users.CreateUser(f.as(t), principals.User{Username: "mia", Enabled: true}, password)
			is.NoErr(err)
			var before, after sessions.Login
			err = bunx.InTx(f.as(t), f.db, func(ctx context.Context) error {
				before, err = f.Login(t.Context(), principals.Credentials{
					Tenant: "acme", Domain: "local", Username: "mia", Password: password,
				})
				is.NoErr(err)
				is.NoErr(end(ctx, f))
				after, err = f.Login(t.Context(), principals.Credentials{
					Tenant: "acme", Domain: "local", Username: "mia", Password: password,
				}) // not committed yet
				is.NoErr(err)
				is.True(f.admitted(t, before.Token))
				is.True(f.admitted(t, after.Token))
				return nil
			})
			is.NoErr(err)
			is.NoErr(bunx.WriteDeferred(t.Context(), f.db))
			is.True(!f.admitted(t, before.Token))
			is.True(!f.admitted(t, after.Token))
		})
	}
}

// TestWhatComesAfterSessionsThatWait: a transaction that begins after a login finds its session
// stored.
func TestWhatComesAfterSessionsThatWait(t *testing.T) {
	is, f := is.New(t), newFixture(t, dbtest.SQLite(t))
	ended := make(chan error, 1)
	var l sessions.Login
	f.hold(t, func(context.Context) {
		l = f.login(t)
		go func() { ended <- f.spy.EndLogins(t.Context(), "acme", []string{"jo"}) }()
	})
	is.NoErr(<-ended)
	is.NoErr(bunx.WriteDeferred(t.Context(), f.db))
	is.True(!f.admitted(t, l.Token))
	is.Equal(f.stored(t), 0)
}

// TestProviderSessionThatWaits: a logout at the provider is known of a session that is not stored
// yet.
func TestProviderSessionThatWaits(t *testing.T) {
	is, f := is.New(t), newFixture(t, dbtest.SQLite(t))
	want := sessions.StoredProviderSession{Domain: "local", Subject: "s", ID: "p"}
	f.hold(t, func(context.Context) {
		is.NoErr(f.spy.InsertSession(t.Context(), "acme", sessions.Session{
			ID:        "x",
			Username:  "jo",
			CreatedAt: monday,
			ExpiresAt: monday.AddDate(0, 0, 1),
			Provider:  &want,
		}))
		got, err := f.spy.ProviderSession(t.Context(), "acme", "x")
		is.NoErr(err)
		is.Equal(got, want)
		_, err = f.spy.ProviderSession(t.Context(), "evil", "x")
		is.Equal(errs.CodeOf(err), errs.NotFound)
		_, _, err = f.spy.Session(t.Context(), "evil", "x")
		is.Equal(errs.CodeOf(err), errs.NotFound)
		is.Equal(
			errs.CodeOf(f.spy.InsertSession(t.Context(), "acme", sessions.Session{ID: "y", Username: "nobody"})),
			errs.Conflict,
		)
	})
}

// TestSessionThatWaitsIsOfOneUser: nobody gets the rights of somebody else who has the same name
// when the other transaction has ended.
func TestSessionThatWaitsIsOfOneUser(t *testing.T) {
	for name, change := range map[string]func(ctx context.Context, f *fixture) error{
		"made again": func(ctx context.Context, f *fixture) error {
			if err := f.users.DeleteUser(ctx, "mia", ""); err != nil {
				return err
			}
			f.now = f.now.Add(time.Second)
			_, err := f.users.CreateUser(
				ctx, principals.User{Username: "mia", Enabled: true, Superuser: true}, password,
			)
			return err
		},
		"entry of a directory": func(ctx context.Context, f *fixture) error {
			ctx, c := bunx.For(ctx, f.db, "acme")
			_, err := c.Exec(
				ctx, `UPDATE tc_users SET source_id = 'another' WHERE tenant_id = 'acme' AND username = 'mia'`,
			)
			return err
		},
		"disabled": func(ctx context.Context, f *fixture) error {
			_, err := f.users.UpdateUser(ctx, "mia", func(u *principals.User) error { u.Enabled = false; return nil })
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			is, f := is.New(t), newFixture(t, dbtest.SQLite(t))
			_, err := f.users.CreateUser(f.as(t), principals.User{Username: "mia", Enabled: true}, password)
			is.NoErr(err)
			insert := func(id string) {
				is.NoErr(f.spy.InsertSession(t.Context(), "acme", sessions.Session{
					ID:        id,
					Username:  "mia",
					CreatedAt: monday,
					ExpiresAt: monday.AddDate(0, 0, 1),
				}))
			}
			is.NoErr(bunx.InTx(f.as(t), f.db, func(ctx context.Context) error {
				insert("before")
				if err := change(ctx, f); err != nil {
					return err
				}
				insert("beside")
				_, _, err := f.spy.Session(t.Context(), "acme", "beside")
				return err
			}))
			is.NoErr(bunx.WriteDeferred(t.Context(), f.db))
			is.Equal(f.stored(t), 0)
		})
	}
}

// TestEndsOfSessionsThatWait: a transaction that ends sessions ends those that have begun beside
// it.
func TestEndsOfSessionsThatWait(t *testing.T) {
	is, f := is.New(t), newFixture(t, dbtest.SQLite(t))
	at := &sessions.StoredProviderSession{Domain: "work", Subject: "s", ID: "p"}
	insert := func(id string) {
		is.NoErr(f.spy.InsertSession(t.Context(), "acme", sessions.Session{
			ID:        id,
			Username:  "jo",
			CreatedAt: monday,
			ExpiresAt: monday.AddDate(0, 0, 1),
			Provider:  at,
		}))
	}
	gone := func(id string) bool {
		_, _, err := f.spy.Session(t.Context(), "acme", id)
		return errs.CodeOf(err) == errs.NotFound
	}
	f.hold(t, func(ctx context.Context) {
		for _, id := range []string{"logins", "subject", "session", "domain"} {
			insert(id)
			is.NoErr(bunx.DryRun(t.Context(), f.db, func(ctx context.Context) error {
				return f.spy.EndLogins(ctx, "acme", []string{"jo"})
			}))
			is.NoErr(f.spy.EndLogins(ctx, "acme", []string{"kim"}))
			is.NoErr(f.spy.EndLogins(ctx, "evil", []string{"jo"}))
			is.NoErr(f.spy.DeleteSessionsOfDomains(ctx, "acme", []string{"other"}))
			n, err := f.spy.DeleteProviderSessions(ctx, "acme", "work", "s", []string{"q"})
			is.NoErr(err)
			is.Equal(n, 0)
			is.True(!gone(id))
			switch id {
			case "logins":
				is.NoErr(f.spy.EndLogins(ctx, "acme", []string{"jo"}))
			case "subject":
				n, err = f.spy.DeleteProviderSessions(ctx, "acme", "work", "s", nil)
			case "session":
				n, err = f.spy.DeleteProviderSessions(ctx, "acme", "work", "", []string{"p"})
			case "domain":
				is.NoErr(f.spy.DeleteSessionsOfDomains(ctx, "acme", []string{"work"}))
			}
			is.NoErr(err)
			is.Equal(n == 1, id == "subject" || id == "session")
			is.True(gone(id))
		}
	})
	is.NoErr(bunx.WriteDeferred(t.Context(), f.db))
	is.Equal(f.stored(t), 0)
}

// TestSessionThatWaitsForAnotherProcess has no rights that a user of the same name has got there,
// even before it is dropped.
func TestSessionThatWaitsForAnotherProcess(t *testing.T) {
	is, f := is.New(t), newFixture(t, dbtest.SQLite(t))
	var path string
	is.NoErr(f.db.NewRaw("SELECT file FROM pragma_database_list WHERE name = 'main'").Scan(t.Context(), &path))
	other, err := engines.Open("sqlite:" + path)
	is.NoErr(err)
	defer func() { is.NoErr(other.Close()) }()
	is.NoErr(bunx.Write(t.Context(), other, "acme", func(ctx context.Context, c bunx.Conn) error {
		is.NoErr(f.spy.InsertSession(t.Context(), "acme", sessions.Session{
			ID:        "x",
			Username:  "jo",
			CreatedAt: monday,
			ExpiresAt: monday.AddDate(0, 0, 1),
		}))
		_, _, err := f.spy.Session(t.Context(), "acme", "x")
		is.NoErr(err)
		_, err = c.Exec(ctx, `UPDATE tc_users SET source_id = 'another' WHERE tenant_id = 'acme' AND username = 'jo'`)
		return err
	}))
	_, _, err = f.spy.Session(t.Context(), "acme", "x")
	is.Equal(errs.CodeOf(err), errs.NotFound)
	is.NoErr(bunx.WriteDeferred(t.Context(), f.db))
	is.Equal(f.stored(t), 0)
}
