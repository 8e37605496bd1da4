package saml_test

import (
	"encoding/json"
	"fmt"

	"github.com/tenantcontent/tenantcontent/domains/saml"
)

func ExampleDriver_Open() {
	_, err := saml.Driver{}.Open(json.RawMessage(`{"metadataURL": "http://idp.example.org/metadata"}`))
	fmt.Println(err)
	// Output:
	// metadataURL must be an https address without a password, or http to a loopback address
}
