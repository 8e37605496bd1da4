package endtoend_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"
	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/directory/dirsync"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/principals"
)

// TestNobodyWaitsInACircle: changes of profiles and teams run concurrently with renames and deletes
// of the same users, without deadlocks. After a deadlock a scan would have to read the whole
// directory again.
func TestNobodyWaitsInACircle(t *testing.T) {
	is, db := is.New(t), dbtest.Postgres(t)
	w := newWorld(t, func(testing.TB) *bun.DB { return db })
	domain := w.admin.domain(t, "Work", "OIDC", map[string]any{"issuer": "https://login.example.com", "clientID": "x"})
	for _, name := range []string{"jo", "mia"} {
		_, err := w.app.Principals.Unchecked().Admit(
			t.Context(), "acme", principals.Source{
				Domain: domain, Driver: "OIDC",
			}, principals.Identity{ID: name, Username: name},
		)
		is.NoErr(err)
	}
	after := make(chan error, 1)
	meet := func(edit func(meanwhile func()) error, other func() error) {
		t.Helper()
		is.NoErr(edit(func() {
			go func() { after <- other() }()
			waiting(t, db, 1)
		}))
		is.NoErr(<-after)
	}
	profile := func(name string) func(func()) error {
		return func(meanwhile func()) error {
			who := actor.With(t.Context(), actor.Actor{Tenant: "acme", User: name})
			_, err := w.app.Principals.UpdateUser(who, name, func(u *principals.User) error {
				meanwhile()
				label := "New name"
				u.DisplayName = &label
				return nil
			})
			return err
		}
	}
	meet(profile("jo"), func() error {
		_, err := w.sync().Sync(t.Context(), "acme", domain, dirsync.Snapshot{People: []principals.Identity{
			{ID: "jo", Username: "joanna"}, {ID: "mia", Username: "mia"},
		}}, dirsync.SyncOptions{Source: "OIDC"})
		return err
	})
	meet(profile("mia"), func() error { return w.app.Principals.DeleteUser(root(t), "mia", "") })

	team, err := w.app.Principals.CreateTeam(root(t), principals.Team{Name: "G"})
	is.NoErr(err)
	meet(func(meanwhile func()) error {
		_, err := w.app.Principals.UpdateTeam(root(t), team.ID, func(team *principals.Team) error {
			meanwhile()
			team.Name, team.Domain = "H", domain
			return nil
		})
		return err
	}, func() error { return w.app.Domains.Delete(root(t), domain) })
	_, err = w.app.Principals.Team(root(t), team.ID)
	is.Equal(errs.CodeOf(err), errs.NotFound) // deleted with its domain, also for a new one with this id

	team, err = w.app.Principals.CreateTeam(root(t), principals.Team{Name: "I"})
	is.NoErr(err)
	meet(func(meanwhile func()) error {
		_, err := w.app.Principals.UpdateTeam(root(t), team.ID, func(team *principals.Team) error {
			meanwhile()
			team.Name = "J"
			return nil
		})
		return err
	}, func() error { return w.app.Principals.DeleteTeam(root(t), team.ID, "") })
}

// TestTenantsKeepConnections: while a long transaction has a tenant's lock, the tenant's other
// requests wait for it without using the connections of all tenants.
func TestTenantsKeepConnections(t *testing.T) {
	is, db := is.New(t), dbtest.Postgres(t)
	w := newWorld(t, func(testing.TB) *bun.DB { return db })
	eve := w.in(t, "evil", "local", "admin", password)
	w.admin.must(t, "POST", "/api/users", `{"username":"jo","password":"a long password"}`)
	jo := w.in(t, "acme", "local", "jo", "a long password")
	picture := "GIF89a" + string(make([]byte, 20))
	var all sync.WaitGroup
	is.NoErr(bunx.InTx(t.Context(), db, func(ctx context.Context) error {
		if err := bunx.LockTenant(ctx, db, "acme"); err != nil {
			return err
		}
		for i := range 40 {
			for _, send := range []func() answer{
				func() answer { return jo.do(t, "PUT", "/api/users/jo/avatar", picture) },
				func() answer { return jo.do(t, "PUT", "/api/users/jo/viewed-feed", "") },
				func() answer { return w.admin.do(t, "POST", "/api/users", fmt.Sprintf(`{"username":"u%d"}`, i)) },
				func() answer { return jo.do(t, "POST", "/api/principals/jo/_reassign", `{"to":"admin"}`) },
			} {
				all.Go(func() {
					if a := send(); a.status >= 300 {
						t.Error(a.status, a.body)
					}
				})
			}
		}
		waiting(t, db, 8)
		for range 20 {
			eve.must(t, "GET", "/api/users", "")
		}
		jo.must(t, "PUT", "/api/users/jo/viewed-feed", "")
		return nil
	}))
	all.Wait()
}

// TestHashedOutsideTransactions: passwords, whose hashing may wait long, are hashed outside of
// transactions. On SQLite a transaction would block other writers, including the logins that have
// places for hashing and wait to write.
func TestHashedOutsideTransactions(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w := newWorld(t, dbtest.SQLite)
	for range 8 {
		go func() {
			for ctx.Err() == nil {
				_, _ = w.app.Sessions.Login(ctx, principals.Credentials{
					Tenant: "acme", Domain: "local", Username: "admin", Password: password,
				})
			}
		}()
	}
	for range 3 {
		w.admin.must(t, "POST", "/api/users", `{"username":"u`+rand.Text()+`","password":"a long password"}`) // was 503
	}
}

// waiting waits until n sessions of a database wait for a lock.
func waiting(t *testing.T, db *bun.DB, n int) {
	t.Helper()
	for begun := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		var now int
		err := db.QueryRowContext(t.Context(), `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&now)
		is.New(t).NoErr(err)
		if now >= n {
			return
		}
		if time.Since(begun) > 20*time.Second {
			t.Fatalf("%d wait for a lock, not %d", now, n)
		}
	}
}
