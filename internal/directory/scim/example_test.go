package scim_test

import (
	"fmt"

	"github.com/tenantcontent/tenantcontent/internal/directory/scim"
	"github.com/tenantcontent/tenantcontent/internal/store/principals"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/principals"
)

func Example() {
	db, ctx, remove := dbtest.Example()
	defer remove()
	users := bunstore.New(db)
	s := scim.New(scim.Options{Store: users, Principals: principals.New(principals.Options{Store: users}).Unchecked()})
	client := scim.Client{Tenant: "acme", Domain: "staff"}
	body, err := scim.ReplaceUser([]byte(`{"schemas": ["urn:ietf:params:scim:schemas:core:2.0:User"], "userName": "anna@corp.example.com", "displayName": "Anna"}`))
	if err == nil {
		_, err = s.CreateUser(ctx, client, body)
	}
	fmt.Println(err)
	page, err := s.Users(ctx, client, scim.Query{Filter: `userName sw "anna" and active eq true`, Count: 10}, false)
	fmt.Println(page.Total, page.Items[0].DisplayName, err)
	// Output:
	// <nil>
	// 1 Anna <nil>
}
