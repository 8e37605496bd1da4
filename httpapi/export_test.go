package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/tenantcontent/tenantcontent/internal/rest"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/bundles"
	"github.com/tenantcontent/tenantcontent/colors"
	"github.com/tenantcontent/tenantcontent/comments"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/hal"
	"github.com/tenantcontent/tenantcontent/internal/limits/limiter"
	"github.com/tenantcontent/tenantcontent/paging"
	"github.com/tenantcontent/tenantcontent/principals"
)

// Route is a row of the route table.
type Route = rest.Route

// How routes write.
const (
	InTx    = rest.InTx
	InSlot  = rest.InSlot
	Unbound = rest.Unbound
)

// Routes returns the route table, for the tests that are made from it.
func Routes() []rest.Route { return (&api{}).routes() }

// wholeTable is the router of all routes, which takes long to make.
var wholeTable = sync.OnceValue(func() *rest.Router {
	rt, err := rest.NewRouter(Routes())
	if err != nil {
		panic(err)
	}
	return rt
})

// RouteOf names the route of a request, "" when there is none.
func RouteOf(method, target string) string {
	u, err := url.ParseRequestURI(target)
	if err != nil {
		return ""
	}
	route, _, err := wholeTable().Find(method, u.EscapedPath())
	if err != nil {
		return ""
	}
	return route.Name
}

// OneHeavyPlace leaves a handler of New one place for brief requests and one for long ones.
func OneHeavyPlace(h http.Handler, timeout time.Duration) {
	o := limiter.Options{Capacity: 1, Timeout: timeout}
	a := h.(*api)
	a.Heavy = rest.Heavy{Brief: limiter.New(o), Long: limiter.New(o), Transfers: &a.Transfers}
}

// TakeHeavyPlaces waits for the places of both sorts as a tenant's requests do, and returns the
// function that frees them.
func TakeHeavyPlaces(ctx context.Context, h http.Handler, tenant string) (leave func(), err error) {
	r := &rest.Request{Request: &http.Request{}, Ctx: ctx, Who: actor.Actor{Tenant: tenant}}
	one, err := h.(*api).Heavy.Place(r, rest.Brief)
	if err != nil {
		return nil, err
	}
	two, err := h.(*api).Heavy.Place(r, rest.Long)
	return func() { two.Leave(); one.Leave() }, err
}

// TakeWriteSlots takes all slots for writes of a tenant, for which others wait for so long, and
// returns the function that frees them.
func TakeWriteSlots(ctx context.Context, h http.Handler, tenant string, wait time.Duration) (leave func()) {
	a := h.(*api)
	a.Writing = limiter.New(limiter.Options{PerKey: 1, Timeout: wait})
	leave, _ = a.Writing.Acquire(ctx, 1, tenant)
	return leave
}

// HeavyTenants returns how many tenants have heavy requests that compute or wait.
func HeavyTenants(h http.Handler) int { return h.(*api).Heavy.Brief.Keys() }

// WritingTenants returns how many tenants have requests that write or wait for a turn to.
func WritingTenants(h http.Handler) int { return h.(*api).Writing.Keys() }

// WaitingForLong returns how many requests wait for a place of the long ones.
func WaitingForLong(h http.Handler) int { return h.(*api).Heavy.Long.Waiting() }

// LongTenants returns how many tenants have long requests that compute or wait.
func LongTenants(h http.Handler) int { return h.(*api).Heavy.Long.Keys() }

// IsHeavy reports whether a request takes a place.
func IsHeavy(method, target string) bool {
	u, err := url.ParseRequestURI(target)
	if err != nil {
		return false
	}
	r := &http.Request{Method: method, URL: u}
	rt, err := rest.NewRouter(Routes())
	if err != nil {
		return false
	}
	route, _, err := rt.Find(method, u.EscapedPath())
	return err == nil && rest.Weigh(route, r) != rest.Light
}

// CursorQuery makes the query of a page that starts at a position of a client's own making.
func CursorQuery(path, sort, value, key string) string {
	query := url.Values{}
	if sort != "" {
		query.Set("sort", sort)
	}
	query.Set("cursor", rest.NewCursor(path, query, 0, &paging.Position{Value: value, Key: key}, false))
	return query.Encode()
}

// MediaType returns the media type of an answer.
func MediaType(h http.Header) (string, bool) { return rest.MediaType(h) }

// Grows reports whether a route stores more.
func Grows(r rest.Route) bool { return grows(&r) }

// DescribedTypes returns the types whose members are in the description.
func DescribedTypes() []string {
	return rest.DescribedTypes(Routes(), rest.Description{
		Document: baseDocument(""),
		Params:   openapiParameters(),
		Failure:  func(*rest.Route) string { return "Failure" },
	})
}

// OpenAPISource returns what the description has of the source code and the transcripts.
func OpenAPISource() (rest.Source, error) { return openapiSource() }

// HandEncoded are values of the types that encode themselves, with the schemas of which they have
// the members.
func HandEncoded() map[string]hal.Appender {
	return map[string]hal.Appender{
		"Activity": activityBody{},
		"Color":    colorBody{},
		"Comment": commentBody{
			comments.Comment{Entity: entity.Key{Kind: "report"}}, json.RawMessage("null"),
		},
		"Entity":       entityBody{},
		"Entry":        entryBody{Entry: bundles.Entry{Data: json.RawMessage("{}")}, looked: true},
		"Notification": notificationBody{},
	}
}

// AppendedRows are rows of lists that are appended by hand, with the schemas of which they have the
// members.
func AppendedRows() map[string][]byte {
	return map[string][]byte{
		"ColorRow": appendColor(nil, colors.Color{Color: "#ff0000"}),
		"PrincipalRow": (principalRoutes{&api{}}).appendPrincipal(nil, "acme", principals.Principal{
			AvatarUpdatedAt: new(time.Time),
		}),
	}
}
