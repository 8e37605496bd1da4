package domains_test

import (
	"encoding/json"
	"fmt"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/domains/ldap"
	"github.com/tenantcontent/tenantcontent/internal/secure/keyring"
	"github.com/tenantcontent/tenantcontent/internal/store/domains"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// A domain without a configuration says what it lacks, and secrets are never returned. A host has the Service as App.Domains.
func Example() {
	db, ctx, remove := dbtest.Example()
	defer remove()
	keys, err := keyring.Parse(keyring.Generate())
	if err != nil {
		panic(err)
	}
	s, err := domains.New(domains.Options{Store: bunstore.New(db), Tenants: settings{}, Keys: keys, Drivers: []domains.Driver{ldap.LDAP{}}})
	if err != nil {
		panic(err)
	}
	name := "Staff"
	d, err := s.Create(ctx, domains.Domain{Name: &name, Type: "LDAP"})
	fmt.Println(d.ID, d.Unready != "", err)
	d, err = s.Update(ctx, d.ID, func(d *domains.Domain) error {
		d.Config = json.RawMessage(`{"url": "ldaps://ldap.example.org", "baseDN": "dc=example,dc=org", "bindDN": "cn=reader,dc=example,dc=org", "bindPassword": "s3cret"}`)
		return nil
	})
	fmt.Println(string(d.Config), d.Unready != "", err)
	// Output:
	// staff true <nil>
	// {"baseDN":"dc=example,dc=org","bindDN":"cn=reader,dc=example,dc=org","bindPassword":"********","url":"ldaps://ldap.example.org"} false <nil>
}
