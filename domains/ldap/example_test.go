package ldap_test

import (
	"encoding/json"
	"fmt"

	"github.com/tenantcontent/tenantcontent/domains/ldap"
)

func ExampleLDAP_Open() {
	_, err := ldap.LDAP{}.Open(json.RawMessage(`{"url": "ldaps://ldap.example.org", "baseDN": "dc=example,dc=org"}`))
	fmt.Println(err)
	_, err = ldap.LDAP{}.Open(json.RawMessage(`{"url": "ldap.example.org", "baseDN": "dc=example,dc=org"}`))
	fmt.Println(err)
	// Output:
	// <nil>
	// url must be an address that begins with ldap:// or ldaps://
}
