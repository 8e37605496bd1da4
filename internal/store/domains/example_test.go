package bunstore_test

import (
	"fmt"
	"time"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/internal/store/domains"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// A Store keeps the configuration; a Service needs drivers and keys, too.
func Example() {
	db, ctx, remove := dbtest.Example() // database.Open and tenantcontent.Migrate in a program
	defer remove()
	s := bunstore.New(db)
	now := time.Now().UTC().Truncate(time.Microsecond)
	err := s.Insert(ctx, "acme", domains.Domain{Tenant: "acme", ID: "staff", Type: "LDAP", CreatedAt: now, UpdatedAt: now})
	fmt.Println(err)
	d, err := s.Get(ctx, "acme", "staff")
	fmt.Println(d.ID, d.Type, err)
	// Output:
	// <nil>
	// staff LDAP <nil>
}
