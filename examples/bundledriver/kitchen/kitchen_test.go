package kitchen_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/bundles"
	"github.com/tenantcontent/tenantcontent/bundles/drivertest"
	"github.com/tenantcontent/tenantcontent/examples/bundledriver/kitchen"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// TestRecipes: a host opens its own database here.
func TestRecipes(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		drivertest.TestDriver(t, func(t *testing.T) (bundles.Driver, drivertest.Fixture) {
			db := open(t)
			if _, err := db.ExecContext(t.Context(), kitchen.Table); err != nil {
				t.Fatal(err)
			}
			recipes := kitchen.Recipes{DB: db}
			return recipes, drivertest.Fixture{
				Kind: kitchen.Kind, Transferer: recipes, Tenants: [2]string{"acme", "evil"},
				Make: func(t *testing.T, tenant string, n int) string {
					r := kitchen.Recipe{TenantID: tenant, ID: fmt.Sprint("recipe-", n), Title: "R"}
					if err := recipes.Insert(t.Context(), r); err != nil {
						t.Fatal(err)
					}
					return r.ID
				},
				InTx: func(ctx context.Context, fn func(context.Context) error) error {
					return tenantcontent.InTx(ctx, db, fn)
				},
			}
		})
	})
}
