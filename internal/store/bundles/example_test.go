package bunstore_test

import (
	"fmt"

	"github.com/tenantcontent/tenantcontent/bundles"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/store/bundles"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// Bundles without entries need a registry of kinds that is still empty.
func Example() {
	db, ctx, remove := dbtest.Example() // database.Open and tenantcontent.Migrate in a program
	defer remove()
	s, err := bundles.New(bundles.Options{Store: bunstore.New(db), Content: entity.NewRegistry()})
	if err != nil {
		panic(err)
	}
	b, err := s.Create(ctx, bundles.Bundle{Name: "Starter Kit"})
	fmt.Println(b.Name, b.Slug, err)
	// Output:
	// Starter Kit starter-kit <nil>
}
