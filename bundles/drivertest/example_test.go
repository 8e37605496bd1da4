package drivertest_test

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

// checkRecipes is TestRecipes in the package of the driver.
func checkRecipes(t *testing.T) {
	drivertest.TestDriver(t, func(t *testing.T) (bundles.Driver, drivertest.Fixture) {
		db := dbtest.SQLite(t) // a host opens its own database here, and adds two tenants
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
}

// A test of the driver's package calls TestDriver. go test runs this one as TestExample.
func ExampleTestDriver() {
	_ = testing.InternalTest{Name: "TestRecipes", F: checkRecipes}
}
