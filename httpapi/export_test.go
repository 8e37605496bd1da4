package httpapi

import (
	"net/http"
	"net/url"

	"github.com/tenantcontent/tenantcontent/paging"
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

// CursorQuery makes the query of a page that starts at a position of a client's own making.
func CursorQuery(path, sort, value, key string) string {
	query := url.Values{}
	if sort != "" {
		query.Set("sort", sort)
	}
	query.Set("cursor", newCursor(path, query, 0, &paging.Position{Value: value, Key: key}))
	return query.Encode()
}

// MediaType returns the media type of an answer.
func MediaType(h http.Header) (string, bool) { return mediaType(h) }
