package bunstore_test

import (
	"fmt"

	"github.com/tenantcontent/tenantcontent/content"
	"github.com/tenantcontent/tenantcontent/internal/store/content"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// Content without files needs a Store and nothing else.
func Example() {
	db, ctx, remove := dbtest.Example() // database.Open and tenantcontent.Migrate in a program
	defer remove()
	s := content.New(content.Options{Store: bunstore.New(db)})
	report, err := s.Create(ctx, content.Entity{Kind: "report", Name: "Sales"})
	fmt.Println(report.Name, report.OwnerID, err)
	// Output:
	// Sales admin <nil>
}
