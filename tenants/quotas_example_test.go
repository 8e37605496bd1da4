package tenants_test

import (
	"fmt"

	"github.com/tenantcontent/tenantcontent/internal/testkit/exampletest"
	"github.com/tenantcontent/tenantcontent/tenants"
)

func ExampleUsage() {
	app, ctx, remove := exampletest.Open()
	defer remove()
	u, err := app.Storage(ctx, "acme")
	fmt.Println(tenants.Size(u.Used()), tenants.Size(u.Allowed), err)
	// Output:
	// 0 bytes 10.0 GiB <nil>
}
