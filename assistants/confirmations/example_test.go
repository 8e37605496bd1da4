package confirmations_test

import (
	"context"
	"fmt"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/assistants/confirmations"
	"github.com/tenantcontent/tenantcontent/internal/store/confirmations"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

func Example() {
	db, ctx, remove := dbtest.Example() // database.Open and tenantcontent.Migrate in a program
	defer remove()
	ctx = actor.With(ctx, actor.Actor{Tenant: "acme", User: "jo"})
	s := confirmations.New(confirmations.Options{Store: bunstore.New(db)})
	const assistant = "0192b2a0-0000-7000-8000-000000000001"
	approved, err := s.Ask(ctx, assistant, "jo", func(c confirmations.Confirmation) error {
		fmt.Println("May I send the e-mail?")
		go func(ctx context.Context) { _ = s.Decide(ctx, assistant, "jo", c.ID, true) }(ctx) // the person's next request, to any server
		return nil
	})
	fmt.Println(approved, err)
	// Output:
	// May I send the e-mail?
	// true <nil>
}
