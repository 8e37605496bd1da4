package bundledriver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/examples/bundledriver"
	"github.com/tenantcontent/tenantcontent/paging"
	"github.com/tenantcontent/tenantcontent/tenants"
)

// A host's own kind is commented through the service and through the API alike.
func Example_comments() {
	ctx := context.Background()
	db, remove := open(ctx)
	defer remove()
	recipes := bundledriver.Recipes{DB: db}
	app, err := tenantcontent.Open(tenantcontent.Config{
		DB: db, SecretKey: tenantcontent.NewSecretKey(), Entities: []entity.Type{recipes.Type()},
		Authenticate: func(*http.Request) (actor.Actor, error) {
			return actor.Actor{Tenant: "north", User: "admin", Superuser: true}, nil
		},
	})
	check(err)
	_, err = app.AddTenant(ctx, tenants.Tenant{ID: "north"}, "a long password")
	check(err)
	check(recipes.Insert(ctx, bundledriver.Recipe{TenantID: "north", ID: "soup", Title: "Soup", Steps: "Cook."}))

	// With the service.
	admin := actor.With(ctx, actor.Actor{Tenant: "north", User: "admin", Superuser: true})
	c, err := app.Comments.Create(admin, bundledriver.Kind, "soup", "More salt?")
	check(err)
	fmt.Println(c.Entity.Kind, c.Entity.ID, c.Message)

	// With the API.
	res := httptest.NewRecorder()
	app.ServeHTTP(
		res,
		httptest.NewRequest("POST", "/api/recipes/soup/comments", strings.NewReader(`{"message": "And pepper."}`)),
	)
	var made struct{ RecipeID, Message string }
	check(json.Unmarshal(res.Body.Bytes(), &made))
	fmt.Println(res.Code, made.RecipeID, made.Message)

	// Whoever deletes the recipe has what is said about it removed.
	check(app.Deleted(ctx, "north", c.Entity))
	page, err := app.Comments.List(admin, bundledriver.Kind, "soup", paging.Query{Limit: 100})
	check(err)
	fmt.Println(page.Total, "comments")

	// Output:
	// recipe soup More salt?
	// 201 soup And pepper.
	// 0 comments
}
