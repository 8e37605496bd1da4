package shares_test

import (
	"fmt"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/internal/drafts/shares"
)

func Example() {
	share := shares.Share{PrincipalID: "sales", Level: shares.Write, Roles: []string{"viewer", "editor", "viewer"}}
	fmt.Println(share.Accept(shares.Write), share.Roles)

	share.Level = shares.Admin // assistants alone have it
	fmt.Println(share.Accept(shares.Write))

	// A store finds what is shared with somebody by these ids.
	jo := actor.Actor{Tenant: "acme", User: "jo", Teams: map[string]actor.Role{"sales": actor.Member}}
	fmt.Println(shares.Principals(jo))
	// Output:
	// <nil> [editor viewer]
	// accessLevel must be a number from 0 to 2
	// [* jo sales]
}
