package bunstore_test

import (
	"fmt"
	"time"

	"github.com/tenantcontent/tenantcontent/assistants/confirmations"
	"github.com/tenantcontent/tenantcontent/internal/store/confirmations"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

func Example() {
	db, ctx, remove := dbtest.Example() // database.Open and tenantcontent.Migrate in a program
	defer remove()
	s, now := bunstore.New(db), time.Now().UTC()
	c := confirmations.Confirmation{ID: "4711", Assistant: "0192b2a0-0000-7000-8000-000000000001", Asked: "jo", ExpiresAt: now.Add(time.Minute)}
	fmt.Println(s.Add(ctx, "acme", c, 1, now))
	c.Decision = confirmations.Approved
	fmt.Println(s.Decide(ctx, "acme", c, now))
	fmt.Println(s.Take(ctx, "acme", c.ID))
	// Output:
	// <nil>
	// <nil>
	// approved <nil>
}
