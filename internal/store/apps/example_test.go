package bunstore_test

import (
	"fmt"

	"github.com/tenantcontent/tenantcontent/apps"
	"github.com/tenantcontent/tenantcontent/internal/store/apps"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// Apps whose files nobody reads need a Store and nothing else.
func Example() {
	db, ctx, remove := dbtest.Example() // database.Open and tenantcontent.Migrate in a program
	defer remove()
	s := apps.New(apps.Options{Store: bunstore.New(db)})
	app, err := s.Create(ctx, apps.App{Type: apps.Report, Name: "Sales"})
	fmt.Println(app.Name, app.OwnerID, err)
	// Output:
	// Sales admin <nil>
}
