package content_test

import (
	"encoding/json"
	"fmt"

	"github.com/tenantcontent/tenantcontent/content"
	"github.com/tenantcontent/tenantcontent/internal/exampletest"
)

func Example() {
	app, ctx, remove := exampletest.Open()
	defer remove()
	slug := "sales"
	_, err := app.Content.Create(ctx, content.Entity{Kind: "report", Name: "Sales", Slug: &slug, Data: json.RawMessage(`{"rows": 3}`)})
	if err != nil {
		panic(err)
	}
	report, err := app.Content.Get(ctx, "report", "admin:sales")
	fmt.Println(report.Name, report.NaturalID(), string(report.Data), err)
	// Output:
	// Sales admin:sales {"rows":3} <nil>
}
