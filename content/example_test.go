package content_test

import (
	"encoding/json"
	"fmt"

	"github.com/tenantcontent/tenantcontent/content"
	"github.com/tenantcontent/tenantcontent/internal/store/content"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// A host has the Service as App.Content.
func Example() {
	db, ctx, remove := dbtest.Example()
	defer remove()
	s := content.New(content.Options{Store: bunstore.New(db)})
	slug := "sales"
	_, err := s.Create(ctx, content.Entity{Kind: "report", Name: "Sales", Slug: &slug, Data: json.RawMessage(`{"rows": 3}`)})
	if err != nil {
		panic(err)
	}
	report, err := s.Get(ctx, "report", "admin:sales")
	fmt.Println(report.Name, report.NaturalID(), string(report.Data), err)
	// Output:
	// Sales admin:sales {"rows":3} <nil>
}
