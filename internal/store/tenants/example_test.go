package bunstore_test

import (
	"fmt"

	"github.com/tenantcontent/tenantcontent/internal/store/tenants"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/tenants"
)

// A Service that only reads and edits tenants needs no keys.
func Example() {
	db, ctx, remove := dbtest.Example() // database.Open and tenantcontent.Migrate in a program
	defer remove()
	s := tenants.New(tenants.Options{Store: bunstore.New(db)})
	t, err := s.Update(ctx, func(t *tenants.Tenant) error {
		t.Name = "Acme Inc."
		return nil
	})
	fmt.Println(t.ID, t.Name, err)
	// Output:
	// acme Acme Inc. <nil>
}
