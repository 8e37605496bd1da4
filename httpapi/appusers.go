package httpapi

import (
	"slices"
	"time"

	"github.com/tenantcontent/tenantcontent/internal/rest"
	"github.com/tenantcontent/tenantcontent/internal/rest/openapi"

	"github.com/tenantcontent/tenantcontent/apps"
	"github.com/tenantcontent/tenantcontent/hal"
)

// appUserRoutes serves the users of apps.
type appUserRoutes struct{ *api }

// routes returns the rows of what users have of apps, and of their statistics, unless the host
// keeps apps itself.
func (a appUserRoutes) routes() []rest.Route {
	if slices.Contains(a.HostKinds, apps.Kind) {
		return nil
	}
	const favorite = "/api/apps/:id/favorite"
	return []rest.Route{
		{
			Method:  get,
			Pattern: "/api/apps/recent",
			Name:    "listRecentApps",
			Grants:  programs,
			Query:   none,
			Summary: "The apps that the caller visited last",
			Gives:   openapi.OK(openapi.List[appRow]()),
			Handle:  a.listRecentApps,
		},
		{
			Method:  get,
			Pattern: favorite,
			Name:    "getAppFavorite",
			Grants:  programs,
			Summary: "Whether an app is a favorite of the caller",
			Gives:   openapi.OK(openapi.One[favoriteBody]()),
			Handle:  a.getAppFavorite,
		},
		{
			Method:  put,
			Pattern: favorite,
			Name:    "putAppFavorite",
			Grants:  programs,
			Row:     "app",
			Writes:  rest.InTx,
			Summary: "Make an app a favorite of the caller",
			Takes:   openapi.Input[favoriteInput](),
			Gives:   openapi.OK(openapi.One[favoriteBody]()),
			Fails:   []int{404},
			Handle:  a.putAppFavorite,
		},
		{
			Method:  del,
			Pattern: favorite,
			Name:    "deleteAppFavorite",
			Grants:  programs,
			Row:     "app",
			Writes:  rest.InTx,
			Options: rest.NoOptions{},
			Summary: "Make an app no favorite of the caller any more",
			Gives:   openapi.OK(openapi.None()),
			Handle:  a.deleteAppFavorite,
		},
		{
			Method:  get,
			Pattern: "/api/apps/:id/stats",
			Name:    "getAppStats",
			Grants:  programs,
			Summary: "How often an app was viewed",
			Gives:   openapi.OK(openapi.One[appStatsBody]()),
			Fails:   []int{404},
			Handle:  a.getAppStats,
		},
	}
}

// favoriteBody is what the caller has of an app.
type favoriteBody struct {
	Favorite bool `json:"favorite"`
}

// Relations implements openapi.Related.
func (favoriteBody) Relations() openapi.Relations {
	return openapi.Relations{Links: []string{"inf:app"}}
}

// favorite replies with the result of a service: 200 and whether the app is a favorite.
func (a appUserRoutes) favorite(id string, v apps.Shown, err error) (rest.Reply, error) {
	if err != nil {
		return rest.Reply{}, err
	}
	body := favoriteBody{v.Favorite}
	links := hal.Self(a.href("apps", id, "favorite")).With("inf:app", a.href("apps", id))
	return rest.OK(hal.Resource{Links: links, Row: v, Beside: body, Value: body})
}

// getAppFavorite serves GET /api/apps/{id}/favorite: 200 and {favorite}; 404. A draft is a favorite
// when its app is.
func (a appUserRoutes) getAppFavorite(r *rest.Request) (rest.Reply, error) {
	v, err := a.Apps.Get(r.Context(), r.Param("id"))
	return a.favorite(r.Param("id"), v, err)
}

// favoriteInput says whether an app is a favorite of the caller.
type favoriteInput struct {
	Favorite *bool `json:"favorite"`
}

// putAppFavorite serves PUT /api/apps/{id}/favorite {favorite?}: 200 and {favorite}, true unless
// the body says otherwise; 404.
func (a appUserRoutes) putAppFavorite(r *rest.Request) (rest.Reply, error) {
	in, err := rest.Decode[favoriteInput](r)
	if err != nil {
		return rest.Reply{}, err
	}
	v, err := a.Apps.SetFavorite(r.Context(), r.Param("id"), in.Favorite == nil || *in.Favorite)
	return a.favorite(r.Param("id"), v, err)
}

// deleteAppFavorite serves DELETE /api/apps/{id}/favorite: 200, also when it was none; 404.
func (a appUserRoutes) deleteAppFavorite(r *rest.Request) (rest.Reply, error) {
	if _, err := a.Apps.SetFavorite(r.Context(), r.Param("id"), false); err != nil {
		return rest.Reply{}, err
	}
	return rest.Done()
}

// listRecentApps serves GET /api/apps/recent: 200 and an array of the 20 apps that the caller
// visited last and still sees, newest visit first. To view an app is a visit, to read it here is
// none.
func (a appUserRoutes) listRecentApps(r *rest.Request) (rest.Reply, error) {
	recent, err := a.Apps.Recent(r.Context())
	if err != nil {
		return rest.Reply{}, err
	}
	rows := make([]appRow, len(recent))
	for i, v := range recent {
		rows[i] = appRoutes(a).appRow(v)
	}
	return rest.OK(rows)
}

// dayBody is how often an app was viewed on a day.
type dayBody struct {
	Day   hal.Time `json:"day"`
	Views int64    `json:"views"`
	Users int      `json:"users"`
}

// appStatsBody is how often an app was opened.
type appStatsBody struct {
	Days  []dayBody `json:"days"`
	Total int64     `json:"total"`
}

// Relations implements openapi.Related.
func (appStatsBody) Relations() openapi.Relations {
	return openapi.Relations{Links: []string{"inf:app"}}
}

// getAppStats serves GET /api/apps/{id}/stats: 200 and {days: [{day, views, users}], total}, the
// views of the last 30 days, in UTC, without days of no views, and their sum; 404; 403 for those
// who do not see the app's insides.
func (a appUserRoutes) getAppStats(r *rest.Request) (rest.Reply, error) {
	all, err := a.Apps.Stats(r.Context(), r.Param("id"))
	if err != nil {
		return rest.Reply{}, err
	}
	days, total := make([]dayBody, len(all)), int64(0)
	for i, d := range all {
		day, err := time.Parse(time.DateOnly, d.Day)
		if err != nil {
			return rest.Reply{}, err
		}
		days[i] = dayBody{hal.Time(day), d.Views, d.Users}
		total += d.Views
	}
	links := hal.Self(a.href("apps", r.Param("id"), "stats")).With("inf:app", a.href("apps", r.Param("id")))
	return rest.OK(hal.Resource{Links: links, Value: appStatsBody{days, total}})
}
