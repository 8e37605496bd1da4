package tenantcontent_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/bundles"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/examples/bundledriver"
	"github.com/tenantcontent/tenantcontent/internal/dbtest"
	"github.com/tenantcontent/tenantcontent/paging"
	"github.com/tenantcontent/tenantcontent/principals"
)

// TestHostHooks: a host's kind is told of what its rows belong to, and what belongs to its rows goes with them.
func TestHostHooks(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, opener dbtest.Opener) {
		is, db, ctx := is.New(t), opener(t), as(t.Context(), "acme")
		_, err := db.ExecContext(ctx, bundledriver.Table)
		is.NoErr(err)
		var told []string
		recipes := bundledriver.Recipes{DB: db}
		kind := recipes.Type()
		kind.Hooks = entity.Hooks{
			Renamed: func(_ context.Context, tenant string, names map[string]string) error {
				told = append(told, fmt.Sprint("renamed ", tenant, names))
				return nil
			},
			Deleted: func(_ context.Context, tenant string, gone ...entity.Key) error {
				told = append(told, fmt.Sprint("deleted ", tenant, gone))
				return nil
			},
			Dependents: func(_ context.Context, _ string, kind entity.Kind, ids []string, _ time.Time) ([]entity.Dependent, error) {
				if kind != bundledriver.Kind {
					return nil, nil
				}
				return []entity.Dependent{{Count: entity.Count{N: 2 * len(ids), Of: "photo"}}}, nil
			},
			Sweep: func(_ context.Context, tenant string) (int, error) {
				told = append(told, "sweep "+tenant)
				return 0, nil
			},
		}
		app, err := tenantcontent.Open(tenantcontent.Config{
			DB: db, SecretKey: tenantcontent.NewSecretKey(), Entities: []entity.Type{kind}, BundleDrivers: []bundles.Driver{recipes},
		})
		is.NoErr(err)
		_, err = app.Principals.Unchecked().AddSuperuser(ctx, "acme", "jo", password)
		is.NoErr(err)
		put := func(id string) {
			is.NoErr(recipes.Insert(ctx, bundledriver.Recipe{TenantID: "acme", ID: id, Title: id, Steps: "Cook."}))
			_, err := app.Comments.Create(ctx, bundledriver.Kind, id, "More salt?")
			is.NoErr(err)
		}
		comments := func(id string) int {
			page, err := app.Comments.Activities(ctx, bundledriver.Kind, id, paging.Query{Limit: 10})
			is.NoErr(err)
			return page.Total
		}
		put("soup")
		var archive bytes.Buffer
		e, err := app.Bundles.ExportManifest(ctx, bundles.Manifest{Entries: []bundles.Entry{{Type: "recipe", EntityID: "soup"}}})
		is.NoErr(err)
		is.NoErr(e.Write(ctx, &archive))
		put("stew")
		is.Equal([]int{comments("soup"), comments("stew")}, []int{1, 1})

		r, err := app.Bundles.Restore(ctx, &archive, bundles.ImportOptions{})
		is.NoErr(err)
		is.Equal(r.Warnings, []string{"Lost with the content that is removed: 1 comment thread, 2 photos. The archive of what is replaced does not hold them."})
		put("stew") // is another one: nobody said anything of it before
		is.Equal([]int{comments("soup"), comments("stew")}, []int{1, 1})
		is.NoErr(app.Deleted(ctx, "acme", entity.Key{Kind: bundledriver.Kind, ID: "stew"}))
		is.Equal([]int{comments("soup"), comments("stew")}, []int{1, 0})

		addLDAP(t, app)
		for _, name := range []string{"old", "new"} {
			_, err := app.Principals.Unchecked().Admit(ctx, "acme", "ldap", "LDAP", principals.Identity{ID: "1", Username: name})
			is.NoErr(err)
		}
		is.NoErr(app.Principals.DeleteUser(ctx, "new", ""))
		is.NoErr(app.Sweep(ctx))
		is.Equal(told, []string{
			"deleted acme[{recipe stew}]", "deleted acme[{recipe stew}]", "renamed acmemap[old:new]", "deleted acme[{user new}]", "sweep acme", "sweep evil",
		})
	})
}
