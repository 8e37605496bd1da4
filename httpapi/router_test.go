package httpapi

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/errs"
)

// TestRouter has what the route table will have: literals beside parameters, and methods that not all of them take.
func TestRouter(t *testing.T) {
	var routes []Route
	for _, r := range [][2]string{
		{"GET", "/apps/:id"}, {"PUT", "/apps/:id"}, {"GET", "/apps/drafts"}, {"POST", "/apps/_import"}, {"GET", "/apps/:id/draft"},
		{"GET", "/apps/drafts/recent"}, {"GET", "/apps/:id/files/:name"}, {"GET", "/apps/:id/files/index"},
	} {
		routes = append(routes, Route{Method: r[0], Pattern: r[1], Name: r[0] + " " + r[1]})
	}
	is := is.New(t)
	rt, err := newRouter(routes)
	is.NoErr(err)
	for path, want := range map[string]string{
		"GET /apps/x": "GET /apps/:id", "GET /apps/drafts": "GET /apps/drafts", "PUT /apps/drafts": "PUT /apps/:id", "HEAD /apps/drafts": "GET /apps/drafts",
		"POST /apps/_import": "POST /apps/_import", "GET /apps/_import": "GET /apps/:id", "POST /apps/x": "GET, HEAD, PUT",
		"DELETE /apps/_import": "GET, HEAD, POST, PUT", "GET /apps/drafts/recent": "GET /apps/drafts/recent", "GET /apps/drafts/draft": "GET /apps/:id/draft",
		"GET /apps/x/recent": "404", "GET /apps/x/files/index": "GET /apps/:id/files/index", "GET /apps/a%2Fdraft": "GET /apps/:id",
		"GET /apps/draft%73": "GET /apps/:id", "GET /apps/drafts/files/x": "GET /apps/:id/files/:name",
	} {
		is.Equal(nameOf(t, rt, path), want)
	}
	_, err = newRouter([]Route{{Method: "GET", Pattern: "/a/:id"}, {Method: "GET", Pattern: "/a/:name/b"}})
	is.Equal(errs.CodeOf(err), errs.Invalid)
}

// nameOf is the name of the route that a request finds, or what it may use instead, or 404.
func nameOf(t *testing.T, rt *router, request string) string {
	t.Helper()
	method, target, _ := strings.Cut(request, " ")
	r, err := http.NewRequest(method, "/", nil)
	is.New(t).NoErr(err)
	r.URL, err = url.ParseRequestURI(target)
	is.New(t).NoErr(err)
	route, _, err := rt.find(r)
	var allow notAllowed
	switch {
	case errors.As(err, &allow):
		return string(allow)
	case err != nil:
		return "404"
	}
	return route.Name
}

func TestBaseURL(t *testing.T) {
	for text, ok := range map[string]bool{"": true, "https://a.example": true, "http://127.0.0.1:8080/": true, "a.example": false, "https://a.example/path": false} {
		_, err := New(Config{BaseURL: text})
		is.New(t).Equal(err == nil, ok)
	}
}
