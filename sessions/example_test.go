package sessions_test

import (
	"fmt"
	"net/netip"

	"github.com/tenantcontent/tenantcontent/internal/testkit/exampletest"
	"github.com/tenantcontent/tenantcontent/sessions"
)

// A user makes an API token for a program, which shows it with each request.
func ExampleService_CreateToken() {
	app, ctx, remove := exampletest.Open()
	defer remove()
	own := sessions.TokensOf{Type: sessions.Personal}
	_, credential, err := app.Sessions.CreateToken(ctx, own, sessions.NewToken{ReadOnly: true})
	if err != nil {
		panic(err)
	}
	caller, err := app.Sessions.Authenticate(ctx, credential, netip.MustParseAddr("192.0.2.1"))
	fmt.Println(caller.Tenant, caller.User, caller.ReadOnly, err)
	// Output:
	// acme admin true <nil>
}
