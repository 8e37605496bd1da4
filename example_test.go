package tenantcontent_test

import (
	"fmt"
	"net/http/httptest"

	"github.com/tenantcontent/tenantcontent/internal/testkit/exampletest"
)

// An App is an http.Handler. See examples/embed for a whole program.
func ExampleApp_ServeHTTP() {
	app, _, remove := exampletest.Open()
	defer remove()
	answer := httptest.NewRecorder()
	app.ServeHTTP(answer, httptest.NewRequest("GET", "/api/colors-list", nil))
	fmt.Println(answer.Code, answer.Body)
	// Output:
	// 401 {"statusCode":401,"error":"Unauthorized","message":"The session or token is missing, not valid or has expired. Log in first."}
}
