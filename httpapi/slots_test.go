package httpapi_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/httpapi"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// TestChecksBeforeSlots: a write whose handler takes its slot is refused for its body while the
// slots of the tenant are taken, and waits for one otherwise.
func TestChecksBeforeSlots(t *testing.T) {
	is := is.New(t)
	w := newWorld(t, dbtest.SQLite)
	w.rebuilt(t, func(*httpapi.Config) {})
	leave := httpapi.TakeWriteSlots(t.Context(), w.http, "acme", 10*time.Millisecond)
	app := "/api/apps/" + id(1)
	taken := map[string]struct{ target, bad, good string }{
		"putColor":          {"/api/colors/red", `{"color": "#ff0000", "name": "red"}`, `{"color": "#ff0000"}`},
		"deleteColor":       {"/api/colors/red", `{"x": 1}`, ""},
		"createUser":        {"/api/users", `{"username": 5}`, `{"username": "new", "password": "long enough"}`},
		"reassignPrincipal": {"/api/principals/dana/_reassign", `{"to": ""}`, `{"to": "mia"}`},
		"deployApp":         {app + "/_deploy", `{"strict": 1}`, ""},
		"copyApp":           {app + "/_copy", `{"name": 1}`, ""},
		"commitAppDraft":    {app + "/draft/_commit", `{"force": 1}`, ""},
	}
	for _, route := range httpapi.Routes() {
		if route.Writes != httpapi.InSlot {
			continue
		}
		c, ok := taken[route.Name]
		if !ok {
			t.Errorf("%s takes a slot, and this test does not know it", route.Name)
			continue
		}
		a := w.do(t, "admin", route.Method, c.target, c.bad)
		if a.status != http.StatusBadRequest {
			t.Errorf("%s with a bad body: %d %s", route.Name, a.status, a.body)
		}
		a = w.do(t, "admin", route.Method, c.target, c.good)
		if a.status != http.StatusServiceUnavailable || !strings.Contains(a.body, "Too much is written") {
			t.Errorf("%s without a slot: %d %s", route.Name, a.status, a.body)
		}
		delete(taken, route.Name)
	}
	is.Equal(len(taken), 0)
	leave()
	is.Equal(w.do(t, "admin", "PUT", "/api/colors/red", `{"color": "#ff0000"}`).status, 200)
}
