package bunstore_test

import (
	"fmt"

	"github.com/tenantcontent/tenantcontent/colors"
	"github.com/tenantcontent/tenantcontent/internal/store/colors"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// Colors need a Store and nothing else.
func Example() {
	db, ctx, remove := dbtest.Example() // database.Open and tenantcontent.Migrate in a program
	defer remove()
	s := colors.New(colors.Options{Store: bunstore.New(db)})
	red, err := s.Put(ctx, "brand/red", "#F44336")
	fmt.Println(red.Key, red.Color, err)
	// Output:
	// brand/red #F44336 <nil>
}
