package handlers_test

import (
	"context"
	"fmt"
	"testing/fstest"

	"github.com/tenantcontent/tenantcontent/internal/handlers"
	"github.com/tenantcontent/tenantcontent/internal/handlers/quickjs"
)

// What the files of an app are as handlers. The program's main function begins with quickjs.Child().
func ExampleService_Build() {
	rt, err := quickjs.New(quickjs.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = rt.Close() }()
	s := handlers.New(handlers.Options{Runtime: rt})
	b, err := s.Build(context.Background(), handlers.App{Tenant: "acme", ID: "shop"}, fstest.MapFS{
		"webhooks/orders/[id].js": {Data: []byte("export const config = { timeout: 5000 }\nexport function POST({ request }) { return request.params.id }")},
	}, false)
	for _, r := range b.Routes {
		fmt.Println(r.Methods, r.Path, r.Timeout(), err)
	}
	// Output: [POST] /orders/:id 5s <nil>
}
