package rest

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/errs"
)

// TestRouter has what the route table will have: literals beside parameters, and methods that not
// all of them take.
func TestRouter(t *testing.T) {
	var routes []Route
	for _, r := range [][2]string{
		{"GET", "/apps/:id"}, {"PUT", "/apps/:id"},
		{"GET", "/apps/drafts"}, {"POST", "/apps/_import"}, {"GET", "/apps/:id/draft"},
		{"GET", "/apps/drafts/recent"}, {"GET", "/apps/:id/files/:name"}, {"GET", "/apps/:id/files/index"},
		{"GET", "/libs/:id/contents"}, {"GET", "/libs/:id/contents/*path"},
		{"PUT", "/libs/:id/contents/*path"}, {"GET", "/libs/own/contents/*path"},
	} {
		routes = append(routes, Route{Method: r[0], Pattern: r[1], Name: r[0] + " " + r[1]})
	}
	is := is.New(t)
	rt, err := NewRouter(routes)
	is.NoErr(err)
	for path, want := range map[string]string{
		"GET /apps/x": "GET /apps/:id", "GET /apps/drafts": "GET /apps/drafts",
		"PUT /apps/drafts": "GET, HEAD", "HEAD /apps/drafts": "GET /apps/drafts",
		"POST /apps/_import": "POST /apps/_import", "GET /apps/_import": "POST", "POST /apps/x": "GET, HEAD, PUT",
		"DELETE /apps/_import":    "POST",
		"GET /apps/drafts/recent": "GET /apps/drafts/recent", "GET /apps/drafts/draft": "GET /apps/:id/draft",
		"GET /apps/x/recent":      "404",
		"GET /apps/x/files/index": "GET /apps/:id/files/index", "GET /apps/a%2Fdraft": "GET /apps/:id",
		"GET /libs/x/contents": "GET /libs/:id/contents", "GET /libs/x/contents/a": "GET /libs/:id/contents/*path",
		"PUT /libs/x/contents/a/b/c.txt": "PUT /libs/:id/contents/*path",
		"GET /libs/x/contents/a%2F%2Fb":  "GET /libs/:id/contents/*path",
		"GET /libs/own/contents/a/b":     "GET /libs/own/contents/*path", "PUT /libs/own/contents/a": "GET, HEAD",
		"POST /libs/x/contents/a": "GET, HEAD, PUT", "PUT /libs/x/contents": "GET, HEAD",
		"GET /libs/x/contents/": "404", "GET /libs/x/contents//": "404",
		"GET /libs/x/contents//a": "404", "PUT /libs/x/contents/a/": "404",
		"GET /libs/x/contents/a//b": "404", "GET /libs/x/other/a": "404",
		"GET /apps/draft%73": "GET /apps/:id", "GET /apps/drafts/files/x": "GET /apps/:id/files/:name",
	} {
		is.Equal(nameOf(t, rt, path), want)
	}
	_, err = NewRouter([]Route{{Method: "GET", Pattern: "/a/:id"}, {Method: "GET", Pattern: "/a/:name/b"}})
	is.Equal(errs.CodeOf(err), errs.Invalid)
	for _, beside := range []string{"/a/b", "/a/:id", "/a/b/c", "/a/*rest"} { // nothing can stand beside a catch-all
		_, err = NewRouter([]Route{{Method: "GET", Pattern: "/a/*path"}, {Method: "PUT", Pattern: beside}})
		is.Equal(errs.CodeOf(err), errs.Invalid)
	}
}

// TestCatchAll: its value has no slash before it, and is unescaped once.
func TestCatchAll(t *testing.T) {
	is := is.New(t)
	rt, err := NewRouter([]Route{{Method: "GET", Pattern: "/a/:id/*path"}})
	is.NoErr(err)
	for target, want := range map[string]string{
		"/a/x/b": "b", "/a/x/b/c%20d.txt": "b/c d.txt", "/a/x/b%2Fc": "b/c",
		"/a/x/%252F": "%2F", "/a/x/../b": "../b", "/a/x/%2Fb": "/b",
	} {
		u, err := url.ParseRequestURI(target)
		is.NoErr(err)
		_, params, err := rt.Find("GET", u.EscapedPath())
		is.NoErr(err)
		is.Equal(params.ByName("path"), want)
		is.Equal(params.ByName("id"), "x")
	}
}

// nameOf is the name of the route that a request finds, or what it may use instead, or 404.
func nameOf(t *testing.T, rt *Router, request string) string {
	t.Helper()
	method, target, _ := strings.Cut(request, " ")
	r, err := http.NewRequest(method, "/", nil)
	is.New(t).NoErr(err)
	r.URL, err = url.ParseRequestURI(target)
	is.New(t).NoErr(err)
	route, _, err := rt.Find(method, r.URL.EscapedPath())
	var allow NotAllowed
	switch {
	case errors.As(err, &allow):
		return allow.Methods
	case err != nil:
		return "404"
	}
	return route.Name
}
