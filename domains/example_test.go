package domains_test

import (
	"encoding/json"
	"fmt"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/internal/exampletest"
)

// A domain without a configuration says what it lacks, and secrets are never returned.
func Example() {
	app, ctx, remove := exampletest.Open()
	defer remove()
	name := "Staff"
	d, err := app.Domains.Create(ctx, domains.Domain{Name: &name, Type: "LDAP"})
	fmt.Println(d.ID, d.Unready != "", err)
	d, err = app.Domains.Update(ctx, d.ID, func(d *domains.Domain) error {
		d.Config = json.RawMessage(`{"url": "ldaps://ldap.example.org", "baseDN": "dc=example,dc=org", "bindDN": "cn=reader,dc=example,dc=org", "bindPassword": "s3cret"}`)
		return nil
	})
	fmt.Println(string(d.Config), d.Unready != "", err)
	// Output:
	// staff true <nil>
	// {"baseDN":"dc=example,dc=org","bindDN":"cn=reader,dc=example,dc=org","bindPassword":"********","url":"ldaps://ldap.example.org"} false <nil>
}
