package tenantcontent_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/bundles"
	"github.com/tenantcontent/tenantcontent/content"
	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/domains/ldap"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/examples/bundledriver/kitchen"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/paging"
	"github.com/tenantcontent/tenantcontent/principals"
)

// TestHostHooks: a host's kind is told of what its rows belong to, and what belongs to its rows
// goes with them.
func TestHostHooks(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, opener dbtest.Opener) {
		is, db, ctx := is.New(t), opener(t), as(t.Context(), "acme")
		_, err := db.ExecContext(ctx, kitchen.Table)
		is.NoErr(err)
		var told []string
		recipes := kitchen.Recipes{DB: db}
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
			Dependents: func(
				_ context.Context, _ string, kind entity.Kind, ids []string, _ time.Time,
			) ([]entity.Dependent, error) {
				if kind != kitchen.Kind {
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
			DB: db, SecretKey: tenantcontent.NewSecretKey(), DomainDrivers: []domains.Driver{ldap.LDAP{}},
			Entities: []entity.Type{kind}, BundleDrivers: []bundles.Driver{recipes},
		})
		is.NoErr(err)
		_, err = app.Principals.Unchecked().AddSuperuser(ctx, "acme", "jo", password)
		is.NoErr(err)
		put := func(id string) {
			is.NoErr(recipes.Insert(ctx, kitchen.Recipe{TenantID: "acme", ID: id, Title: id, Steps: "Cook."}))
			_, err := app.Comments.Create(ctx, kitchen.Kind, id, "More salt?")
			is.NoErr(err)
		}
		comments := func(id string) int {
			page, err := app.Comments.Activities(ctx, kitchen.Kind, id, paging.Query{Limit: 10})
			is.NoErr(err)
			return page.Total
		}
		put("soup")
		var archive bytes.Buffer
		e, err := app.Bundles.ExportManifest(ctx, bundles.Manifest{Entries: []bundles.Entry{{
			Type:     "recipe",
			EntityID: "soup",
		}}})
		is.NoErr(err)
		is.NoErr(e.Write(ctx, &archive))
		put("stew")
		is.Equal([]int{comments("soup"), comments("stew")}, []int{1, 1})

		r, err := app.Bundles.Restore(ctx, &archive, bundles.ImportOptions{})
		is.NoErr(err)
		is.Equal(r.Warnings, []string{
			"Lost with the content that is removed: 1 comment thread, 2 photos. The archive of what is replaced " +
				"does not hold them.",
		})
		put("stew") // is another one: nobody said anything of it before
		is.Equal([]int{comments("soup"), comments("stew")}, []int{1, 1})
		is.NoErr(app.Deleted(ctx, "acme", entity.Key{Kind: kitchen.Kind, ID: "stew"}))
		is.Equal([]int{comments("soup"), comments("stew")}, []int{1, 0})

		addLDAP(t, app)
		for _, name := range []string{"old", "new"} {
			_, err := app.Principals.Unchecked().Admit(
				ctx, "acme", "ldap", "LDAP", principals.Identity{ID: "1", Username: name},
			)
			is.NoErr(err)
		}
		is.NoErr(app.Principals.DeleteUser(ctx, "new", ""))
		is.NoErr(app.Sweep(ctx))
		is.Equal(told, []string{
			"deleted acme[{recipe stew}]", "deleted acme[{recipe stew}]", "renamed acmemap[old:new]",
			"deleted acme[{user new}]", "sweep acme", "sweep evil",
		})
	})
}

// TestReassignHostKinds: what a principal has of a host's kind moves with its other content, in one
// transaction.
func TestReassignHostKinds(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, opener dbtest.Opener) {
		is, db := is.New(t), opener(t)
		owners := map[string]string{"acme/soup": "jo", "acme/stew": "mia", "evil/soup": "jo"}
		var fault error
		dish := entity.Type{Kind: "dish",
			Reassign: func(_ context.Context, tenant, from, to string) (moved []entity.Ref, err error) {
				for _, id := range []string{"soup", "stew"} {
					if owners[tenant+"/"+id] == from && fault == nil {
						owners[tenant+"/"+id] = to
						moved = append(moved, entity.Ref{Kind: "dish", ID: id, Name: id, OwnerID: to})
					}
				}
				return moved, fault
			}}
		app, err := tenantcontent.Open(tenantcontent.Config{
			DB: db, SecretKey: tenantcontent.NewSecretKey(), Entities: []entity.Type{dish, {Kind: "plate"}},
		})
		is.NoErr(err)
		for _, name := range []string{"jo", "mia"} {
			_, err := app.Principals.Unchecked().AddSuperuser(t.Context(), "acme", name, password)
			is.NoErr(err)
		}
		ctx := actor.With(t.Context(), actor.Actor{Tenant: "acme", User: "jo", Superuser: true})
		report, err := app.Content.Create(ctx, content.Entity{Kind: "report", Name: "Sales"})
		is.NoErr(err)

		fault = errors.New("the kitchen is closed")
		_, err = app.Principals.Reassign(ctx, "jo", "mia")
		is.True(errors.Is(err, fault))
		same, err := app.Content.Get(ctx, "report", report.ID)
		is.NoErr(err)
		is.Equal(same.OwnerID, "jo") // nothing has moved

		fault = nil
		moved, err := app.Principals.Reassign(ctx, "jo", "mia")
		is.NoErr(err)
		is.Equal(moved, []entity.Ref{
			{Kind: "report", ID: report.ID, Name: "Sales", OwnerID: "mia"},
			{Kind: "dish", ID: "soup", Name: "soup", OwnerID: "mia"},
		})
		is.Equal(owners, map[string]string{"acme/soup": "mia", "acme/stew": "mia", "evil/soup": "jo"})
	})
}
