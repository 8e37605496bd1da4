package httpapi_test

import (
	"encoding/json"
	"net/http"
	"net/textproto"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/httpapi"
	bindings "github.com/tenantcontent/tenantcontent/internal/scripts"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// TestLoopbackBeforeNew: a script that runs before the routes are served is told so.
func TestLoopbackBeforeNew(t *testing.T) {
	_, err := new(httpapi.Loopback).Call(t.Context(), bindings.Request{Method: "GET", Path: "colors"})
	is.New(t).Equal(errs.CodeOf(err), errs.Unavailable)
}

// TestLoopbackPaths: a path reaches its route as it was written: what is escaped twice is unescaped
// once, and an escaped slash parts nothing.
func TestLoopbackPaths(t *testing.T) {
	is, w, routes := is.New(t), newWorld(t, dbtest.SQLite), new(httpapi.Loopback)
	w.rebuilt(t, func(c *httpapi.Config) { c.Loopback = routes })
	call := func(method, path, body string) bindings.Answer {
		a, err := routes.Call(t.Context(), bindings.Request{
			Who:    actor.Actor{Tenant: "acme", User: "admin", Superuser: true},
			Method: method,
			Path:   path,
			Header: textproto.MIMEHeader{"Content-Type": {"application/json"}},
			Body:   body,
		})
		is.NoErr(err)
		return a
	}
	for path, key := range map[string]string{
		"a%2Fb": "a/b", "a%252Fb": "a%2Fb", "a%25252Fb": "a%252Fb", "100%25": "100%", "a%20b": "a b", "a+b": "a+b",
	} {
		is.Equal(call("PUT", "colors/"+path, `{"color": "#ff0000"}`).Status, http.StatusOK)
		a := call("GET", "colors/"+path, "")
		is.Equal(a.Status, http.StatusOK)
		var color struct{ Key string }
		is.NoErr(json.Unmarshal(a.Body, &color))
		is.Equal(color.Key, key)
	}
	_, err := routes.Call(t.Context(), bindings.Request{Method: "GET", Path: "colors/%zz"})
	is.Equal(errs.CodeOf(err), errs.Invalid)
	is.Equal(errs.MessageOf(err), "The path is not properly escaped.")
}
