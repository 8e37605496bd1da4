package tenantcontent_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/apps"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/store/engines"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/tenants"
)

// TestWorkspaces: the workspaces of apps and drafts go with them, with their tenant, or when they
// are swept; and their passwords are among the secrets that are encrypted again.
func TestWorkspaces(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, opener dbtest.Opener) {
		is, folder := is.New(t), t.TempDir()
		first, second := tenantcontent.NewSecretKey(), tenantcontent.NewSecretKey()
		driver, err := engines.OpenWorkspaces(folder, "", 0)
		is.NoErr(err)
		t.Cleanup(func() { is.NoErr(driver.Close()) })
		c := tenantcontent.Config{DB: opener(t), SecretKey: first, Workspaces: driver}
		app, err := tenantcontent.Open(c)
		is.NoErr(err)
		_, err = app.AddTenant(
			t.Context(), tenants.Tenant{ID: "own", Settings: tenants.Settings{Licenses: []string{"apps"}}},
			password,
		)
		is.NoErr(err)
		ctx := actor.With(t.Context(), actor.Actor{Tenant: "own", User: "admin", Superuser: true})
		made := func(slug string) string {
			a, err := app.Apps.Create(ctx, apps.App{Name: slug, Slug: &slug, Type: "report"})
			is.NoErr(err)
			return a.ID
		}
		query := func(id, statement string) string {
			conn, err := app.Workspaces().Connect(ctx, "own", id)
			is.NoErr(err)
			defer func() { is.NoErr(conn.Close()) }()
			rows, err := conn.Query(ctx, statement, nil)
			if err != nil {
				return errs.MessageOf(err)
			}
			return string(rows)
		}
		files := func() int {
			all, err := filepath.Glob(filepath.Join(folder, "*", "*.sqlite"))
			is.NoErr(err)
			return len(all)
		}
		purged, kept := made("purged"), made("kept")
		draft, err := app.Apps.Edit(ctx, kept, false)
		is.NoErr(err)
		for _, id := range []string{purged, kept, draft.ID, "0192b2a0-0000-7000-8000-000000000009"} {
			// the last one is no app
			is.Equal(query(id, "CREATE TABLE t (k integer)"), "[]")
		}
		is.Equal(files(), 4)
		is.NoErr(app.Apps.Delete(ctx, purged))
		is.NoErr(app.Sweep(ctx))
		is.Equal(files(), 3) // an app that can be restored keeps its workspace
		is.Equal(query(purged, "SELECT k FROM t"), "[]")
		is.NoErr(app.Apps.Purge(ctx, purged))
		is.Equal(files(), 2)
		is.NoErr(app.Apps.Discard(ctx, kept))
		is.Equal(files(), 1)

		c.SecretKey = second + "," + first
		n, err := tenantcontent.Rekey(ctx, c)
		is.NoErr(err)
		is.True(n > 0)
		c.SecretKey = second
		app, err = tenantcontent.Open(c)
		is.NoErr(err)
		is.Equal(query(kept, "SELECT k FROM t"), "[]")

		is.NoErr(app.Tenants.Unchecked().Delete(t.Context(), "own", tenants.DeleteOptions{}))
		is.Equal(files(), 0)
		left, err := os.ReadDir(folder)
		is.NoErr(err)
		is.Equal(len(left), 0)
	})
}
