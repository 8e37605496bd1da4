package actor_test

import (
	"context"
	"fmt"

	"github.com/tenantcontent/tenantcontent/actor"
)

// A service finds its caller, and the rights of the caller, in the context.
func Example() {
	ctx := actor.With(context.Background(), actor.Actor{
		Tenant: "acme",
		User:   "jo",
		Teams:  map[string]actor.Role{"design": actor.Designer},
	})
	jo, err := actor.From(ctx)
	fmt.Println(jo.User, jo.Role(), jo.Can(actor.ColorWrite), err)
	_, err = actor.From(context.Background())
	fmt.Println(err)
	// Output:
	// jo designer true <nil>
	// Log in first.
}
