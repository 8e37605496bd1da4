package bundles_test

import (
	"bytes"
	"fmt"

	"github.com/tenantcontent/tenantcontent/bundles"
	"github.com/tenantcontent/tenantcontent/content"
	"github.com/tenantcontent/tenantcontent/internal/testkit/exampletest"
)

// A bundle is exported to an archive. Importing it a second time changes nothing.
func Example() {
	app, ctx, remove := exampletest.Open()
	defer remove()
	report, err := app.Content.Create(ctx, content.Entity{Kind: "report", Name: "Sales"})
	if err != nil {
		panic(err)
	}
	bundle, err := app.Bundles.Create(ctx, bundles.Bundle{Name: "Starter"})
	if err != nil {
		panic(err)
	}
	if _, err = app.Bundles.CreateEntry(ctx, bundle.ID, bundles.Entry{
		Type: "report", EntityID: report.ID,
	}); err != nil {
		panic(err)
	}
	export, err := app.Bundles.Export(ctx, bundle.ID)
	if err != nil {
		panic(err)
	}
	var archive bytes.Buffer
	if err = export.Write(ctx, &archive); err != nil {
		panic(err)
	}
	result, err := app.Bundles.Import(ctx, &archive, bundles.ImportOptions{DryRun: true})
	fmt.Println(result.Created, result.Skipped, err)
	// Output:
	// 0 1 <nil>
}
