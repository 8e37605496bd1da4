package tenants_test

import (
	"fmt"

	"github.com/tenantcontent/tenantcontent/internal/testkit/exampletest"
	"github.com/tenantcontent/tenantcontent/tenants"
)

// A program that has no request to answer asks for what needs no actor.
func ExampleUnchecked() {
	app, ctx, remove := exampletest.Open()
	defer remove()
	all, err := app.Tenants.Unchecked().IDs(ctx)
	fmt.Println(all, err)
	// Output:
	// [acme] <nil>
}

// A superuser lets another tenant deploy into its own.
func ExampleService_Update() {
	app, ctx, remove := exampletest.Open()
	defer remove()
	t, err := app.Tenants.Update(ctx, func(t *tenants.Tenant) error {
		t.Settings.DeployFrom = tenants.Sources("staging")
		return nil
	})
	fmt.Println(t.Name, t.Settings.DeployFrom[0].Tenant, err)
	// Output:
	// Acme Inc. staging <nil>
}
