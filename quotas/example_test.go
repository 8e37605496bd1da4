package quotas_test

import (
	"fmt"

	"github.com/tenantcontent/tenantcontent/internal/testkit/exampletest"
	"github.com/tenantcontent/tenantcontent/quotas"
)

func ExampleUsage() {
	app, ctx, remove := exampletest.Open()
	defer remove()
	u, err := app.Storage(ctx, "acme")
	fmt.Println(quotas.Size(u.Used()), quotas.Size(u.Allowed), err)
	// Output:
	// 0 bytes 10.0 GiB <nil>
}
