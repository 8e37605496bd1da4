package bunstore_test

import (
	"context"
	"fmt"

	"github.com/tenantcontent/tenantcontent/assistants"
	"github.com/tenantcontent/tenantcontent/internal/store/assistants"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// Assistants whose files nobody reads need a Store and a gate.
func Example() {
	db, ctx, remove := dbtest.Example() // database.Open and tenantcontent.Migrate in a program
	defer remove()
	s := assistants.New(assistants.Options{Store: bunstore.New(db), Allowed: func(context.Context) error { return nil }})
	helper, err := s.Create(ctx, assistants.Assistant{Name: "Helper"})
	fmt.Println(helper.Name, helper.OwnerID, err)
	// Output:
	// Helper admin <nil>
}
