package apps_test

import (
	"fmt"

	"github.com/tenantcontent/tenantcontent/apps"
	"github.com/tenantcontent/tenantcontent/internal/testkit/exampletest"
)

func Example() {
	app, ctx, remove := exampletest.Open()
	defer remove()
	sales, err := app.Apps.Create(ctx, apps.App{Type: apps.Report, Name: "Sales"})
	if err != nil {
		panic(err)
	}
	draft, err := app.Apps.Edit(ctx, sales.ID, false)
	fmt.Println(sales.Name, *draft.EditingID == sales.ID, err)
	// Output:
	// Sales true <nil>
}
