package httpapi

import (
	"net/http"
	"net/url"
)

// Routes gives the route table to the tests that are made from it.
func Routes() []Route { return (&api{}).routes() }

// RouteOf names the route of a request, "" when there is none.
func RouteOf(method, target string) string {
	u, err := url.ParseRequestURI(target)
	if err != nil {
		return ""
	}
	rt, err := newRouter(Routes())
	if err != nil {
		return ""
	}
	route, _, err := rt.find(&http.Request{Method: method, URL: u})
	if err != nil {
		return ""
	}
	return route.Name
}
