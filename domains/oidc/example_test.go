package oidc_test

import (
	"encoding/json"
	"fmt"

	"github.com/tenantcontent/tenantcontent/domains/oidc"
)

func ExampleDriver_Open() {
	_, err := oidc.Driver{}.Open(json.RawMessage(`{"issuer": "https://login.example.org", "clientID": "content", "clientSecret": "s3cret"}`))
	fmt.Println(err)
	_, err = oidc.Driver{}.Open(json.RawMessage(`{"issuer": "http://login.example.org", "clientID": "content"}`))
	fmt.Println(err)
	// Output:
	// <nil>
	// issuer must be an https address without user, query and fragment, such as https://login.example.com (http is for localhost alone)
}
