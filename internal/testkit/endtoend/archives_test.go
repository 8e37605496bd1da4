package endtoend_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"
	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/bundles"
	"github.com/tenantcontent/tenantcontent/content"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/principals"
	"github.com/tenantcontent/tenantcontent/tenants"
)

// TestRemovedWhileMaking: what a user creates at the moment in which a restore or deploy removes
// the user is reassigned like the rest. Transactions do not deadlock, even if one transaction needs
// what the other one removes.
func TestRemovedWhileMaking(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		for name, removal := range map[string]func(*world, *testing.T) (context.Context, func() error){
			"restore": (*world).restoreWithoutJo, "deploy": (*world).deployWithoutJo,
		} {
			t.Run(name, func(t *testing.T) {
				is, db := is.New(t), open(t)
				w := serve(t, db, tenantcontent.NewSecretKey(), nil)
				jo, remove := removal(w, t)
				topic := w.admin.create(t, "/api/reports", `{"name": "Topic"}`)
				is.NoErr(w.meanwhile(t, db, jo, func(ctx context.Context) error {
					_, err := w.app.Content.Create(ctx, content.Entity{Kind: "report", Name: "Late"})
					return err
				}, remove, func(ctx context.Context) error {
					_, err := w.app.Comments.Create(ctx, entity.Key{Kind: "report", ID: topic}, "later")
					return err
				}))
				_, err := w.app.Principals.User(root(t), "jo")
				is.Equal(errs.CodeOf(err) == errs.NotFound, name == "restore") // users of another tenant are kept
				is.Equal(orphans(t, db), 0)
			})
		}
	})
}

// TestHeirStays: the principal that inherits from removed ones is not removed with them.
func TestHeirStays(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, db := is.New(t), open(t)
		w := serve(t, db, tenantcontent.NewSecretKey(), nil)
		stays := w.admin.create(t, "/api/teams", `{"name": "Stays"}`)
		was := w.archive(t, `{"type": "user", "username": "admin"}, {"type": "team", "teamId": "`+stays+`"}`)
		for _, kind := range []string{"user", "team"} {
			heir := "jo"
			if kind == "team" {
				heir = w.admin.create(t, "/api/teams", `{"name": "Goes"}`)
			}
			for _, name := range []string{"jo", "kim"} {
				_, err := w.app.Content.Create(w.newUser(t, "acme", name), content.Entity{Kind: "report", Name: "x"})
				is.NoErr(err)
			}
			r, err := w.app.Bundles.Restore(root(t), strings.NewReader(was), bundles.ImportOptions{Owner: heir})
			is.NoErr(err)
			is.Equal(r.Warnings[0], "The "+kind+" "+heir+" stays: it gets what has no other owner.")
			is.Equal(orphans(t, db), 0)
			_, err = w.app.Bundles.Restore(root(t), strings.NewReader(was), bundles.ImportOptions{})
			is.NoErr(err)
			_, err = w.app.Principals.Resolve(root(t), heir)
			is.Equal(errs.CodeOf(err), errs.NotFound) // this time admin inherits
			is.Equal(orphans(t, db), 0)
		}
	})
}

// TestEntryOfRenamed: a bundle's entry of a user who is renamed or deleted at the same moment is
// updated, or refused.
func TestEntryOfRenamed(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, db := is.New(t), open(t)
		w := serve(t, db, tenantcontent.NewSecretKey(), nil)
		domain := w.admin.domain(
			t, "Work", "OIDC", map[string]any{"issuer": "https://login.example.com", "clientID": "x"},
		)
		called := func(ctx context.Context, name string) error {
			_, err := w.app.Principals.Unchecked().Admit(
				ctx, "acme", principals.Source{
					Domain: domain, Driver: "OIDC",
				}, principals.Identity{ID: "1", Username: name},
			)
			return err
		}
		is.NoErr(called(t.Context(), "jo"))
		w.newUser(t, "acme", "kim")
		w.admin.must(t, "POST", "/api/bundles", `{"name":"First"}`)
		w.admin.must(t, "POST", "/api/bundles", `{"name":"Second"}`)
		add := func(bundle, name string) func(context.Context) error {
			return func(ctx context.Context) error {
				_, err := w.app.Bundles.CreateEntry(ctx, bundle, bundles.Entry{Type: "user", EntityID: name})
				return err
			}
		}
		is.NoErr(w.meanwhile(t, db, root(t), add("first", "jo"), func() error { return called(t.Context(), "joanna") }))
		b, err := w.app.Bundles.Get(root(t), "first")
		is.NoErr(err)
		is.Equal(b.Entries[0].EntityID, "joanna")

		for name, leave := range map[string]func(context.Context) error{
			"joanna": func(ctx context.Context) error { return called(ctx, "jo") },
			"kim":    func(ctx context.Context) error { return w.app.Principals.DeleteUser(ctx, "kim", "") },
		} {
			err = w.meanwhile(t, db, root(t), leave, func() error { return add("second", name)(root(t)) })
			is.Equal(errs.CodeOf(err), errs.Invalid)
		}
		b, err = w.app.Bundles.Get(root(t), "second")
		is.NoErr(err)
		is.Equal(len(b.Entries), 0)
	})
}

// meanwhile runs first in a transaction, and more of it after then, which begins in between, is
// waiting or done.
func (w *world) meanwhile(
	t *testing.T, db *bun.DB, ctx context.Context, first func(context.Context) error, then func() error,
	more ...func(context.Context) error,
) error {
	t.Helper()
	is, done := is.New(t), make(chan error, 1)
	is.NoErr(w.app.InTx(ctx, func(ctx context.Context) error {
		if err := first(ctx); err != nil {
			return err
		}
		go func() { done <- then() }()
		for waiting := false; !waiting && len(done) == 0; time.Sleep(time.Millisecond) {
			inside, c := bunx.For(ctx, db, "acme")
			if !c.Postgres() { // all writers wait
				break
			}
			err := c.One(
				inside, "",
				`SELECT count(*) > 0 FROM pg_locks WHERE NOT granted `+
					`AND pg_backend_pid() = ANY (pg_blocking_pids(pid))`,
				nil, &waiting,
			)
			if err != nil {
				return err
			}
		}
		for _, f := range more {
			if err := f(ctx); err != nil {
				return err
			}
		}
		return nil
	}))
	return <-done
}

// newUser adds a user to a tenant, and returns a context of the user.
func (w *world) newUser(t *testing.T, tenant, name string) context.Context {
	t.Helper()
	_, err := w.app.Principals.CreateUser(superuser(t, tenant), principals.User{Username: name, Enabled: true}, "")
	is.New(t).NoErr(err)
	return actor.With(t.Context(), actor.Actor{Tenant: tenant, User: name, Superuser: true})
}

func superuser(t *testing.T, tenant string) context.Context {
	return actor.With(t.Context(), actor.Actor{Tenant: tenant, User: "admin", Superuser: true})
}

// archive returns an archive of entries, in JSON, from acme.
func (w *world) archive(t *testing.T, entries string) string {
	t.Helper()
	return w.admin.must(t, "POST", "/api/_bundle", `{"entries": [`+entries+`]}`).body
}

// restoreWithoutJo adds jo to acme, and returns a function that restores the users and reports from
// before.
func (w *world) restoreWithoutJo(t *testing.T) (jo context.Context, restore func() error) {
	t.Helper()
	report := w.admin.create(t, "/api/reports", `{"name": "Stays"}`)
	was := w.archive(t, `{"type": "user", "username": "admin"}, {"type": "report", "reportId": "`+report+`"}`)
	return w.newUser(t, "acme", "jo"), func() error {
		_, err := w.app.Bundles.Restore(root(t), strings.NewReader(was), bundles.ImportOptions{})
		return err
	}
}

// deployWithoutJo deploys evil's jo to acme, which has another jo, and returns a function that
// deploys the same bundle without jo.
func (w *world) deployWithoutJo(t *testing.T) (jo context.Context, deploy func() error) {
	t.Helper()
	is, evil := is.New(t), superuser(t, "evil")
	w.newUser(t, "evil", "jo")
	w.newUser(t, "acme", "jo")
	_, err := w.app.Tenants.Update(root(t), func(s *tenants.Tenant) error {
		s.Settings.DeployFrom = tenants.Sources("evil")
		return nil
	})
	is.NoErr(err)
	b, err := w.app.Bundles.Create(evil, bundles.Bundle{Name: "People"})
	is.NoErr(err)
	e, err := w.app.Bundles.CreateEntry(evil, b.ID, bundles.Entry{Type: "user", EntityID: "jo"})
	is.NoErr(err)
	deploy = func() error {
		_, err := w.app.Bundles.Deploy(evil, b.ID, []string{"acme"}, bundles.ImportOptions{})
		return err
	}
	is.NoErr(deploy())
	is.NoErr(w.app.Bundles.DeleteEntry(evil, b.ID, e.ID))
	return actor.With(t.Context(), actor.Actor{Tenant: "acme", User: "jo", Superuser: true}), deploy
}
