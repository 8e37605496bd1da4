package bunstore_test

import (
	"fmt"
	"time"

	"github.com/tenantcontent/tenantcontent/internal/handlers"
	"github.com/tenantcontent/tenantcontent/internal/store/handlers"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

func Example() {
	db, ctx, remove := dbtest.Example() // database.Open and tenantcontent.Migrate in a program
	defer remove()
	s := bunstore.New(db)
	app := "0192b2a0-0000-7000-8000-000000000001"
	r := handlers.Route{Area: handlers.Webhooks, Path: "/paid", File: "webhooks/paid.js", Methods: []string{"POST"}, Config: []byte("{}"), Hash: "5f2a"}
	err := s.Put(ctx, "acme", app, handlers.Deployment{Routes: []handlers.Route{r}, At: time.Now().UTC()}, nil)
	fmt.Println(err)
	routes, err := s.Routes(ctx, "acme", app)
	fmt.Println(routes[0].Methods, routes[0].Path, err)
	// Output:
	// <nil>
	// [POST] /paid <nil>
}
