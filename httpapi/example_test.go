package httpapi_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/httpapi"
	"github.com/tenantcontent/tenantcontent/internal/testkit/exampletest"
)

// A program serves the services of an App under another address, for callers whom it knows already.
func ExampleNew() {
	app, ctx, remove := exampletest.Open()
	defer remove()
	handler, err := httpapi.New(httpapi.Config{
		Services: app.Services, InTx: app.InTx, Ready: app.Ready,
		BaseURL:      "https://intern.example.com/content",
		Authenticate: func(*http.Request) (actor.Actor, error) { return actor.From(ctx) },
	})
	if err != nil {
		panic(err)
	}
	send := func(method, target, body string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, target, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, r)
		return answer
	}
	fmt.Println(send("PUT", "/content/api/colors/red", `{"color": "reddish"}`).Body)
	fmt.Println(send("PUT", "/content/api/colors/red", `{"color": "#f00"}`).Code)
	fmt.Println(send("GET", "/content/api/colors/red/permissions", "").Body)
	// Output:
	// {"statusCode":400,"error":"Bad Request","message":"Invalid color format"}
	// 200
	// {"_links":{"inf:color":{"href":"https://intern.example.com/content/api/colors/red"},"self":{"href":"https://intern.example.com/content/api/colors/red/permissions"}},"edit":true,"delete":true,"write":true}
}
