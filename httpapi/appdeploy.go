package httpapi

import (
	"encoding/json"
	"slices"

	"github.com/tenantcontent/tenantcontent/internal/rest"
	"github.com/tenantcontent/tenantcontent/internal/rest/openapi"

	"github.com/tenantcontent/tenantcontent/apps"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/hal"
	"github.com/tenantcontent/tenantcontent/internal/handlers"
	"github.com/tenantcontent/tenantcontent/internal/workspaces"
)

// appDeployRoutes serves deployments of apps.
type appDeployRoutes struct{ *api }

// routes returns the rows of what apps run on the server, unless the host keeps apps itself.
func (a appDeployRoutes) routes() []rest.Route {
	const one = "/api/apps/:id"
	if slices.Contains(a.HostKinds, apps.Kind) {
		return nil
	}
	return []rest.Route{
		{
			Method:  post,
			Pattern: one + "/_deploy",
			Name:    "deployApp",
			Grants:  programs,
			Heavy:   rest.Brief,
			Writes:  rest.InSlot,
			Options: strictInput{},
			Summary: "Compile the handlers of an app, and run them from now on",
			Gives:   openapi.OK(openapi.One[deployedAppBody]()),
			Fails:   []int{400, 404},
			Handle:  a.deployApp,
		},
		{
			Method:  post,
			Pattern: one + "/_migrate",
			Name:    "migrateApp",
			Grants:  programs,
			Heavy:   rest.Brief,
			Options: strictInput{},
			Summary: "Run the pending migrations of an app",
			Gives:   openapi.OK(openapi.One[migrationsBody]()),
			Fails:   []int{404},
			Handle:  a.migrateApp,
		},
		{
			Method:  get,
			Pattern: one + "/stats/tables",
			Name:    "getAppTables",
			Grants:  programs,
			Summary: "The tables of an app's database",
			Gives:   openapi.OK(openapi.One[tablesBody]()),
			Fails:   []int{404},
			Handle:  a.getAppTables,
		},
		{
			Method:  get,
			Pattern: one + "/stats/api",
			Name:    "getAppCalls",
			Grants:  programs,
			Summary: "How often the handlers of an app and the calls of its pages ran",
			Gives:   openapi.OK(openapi.One[callStatsBody]()),
			Fails:   []int{404},
			Handle:  a.getAppCalls,
		},
		{
			Method:  get,
			Pattern: one + "/stats/api/:invocationId",
			Name:    "getAppCall",
			Grants:  programs,
			Summary: "One call of an app's server route with its log",
			Gives:   openapi.OK(openapi.One[invocationDetailBody]()),
			Fails:   []int{404},
			Handle:  a.getAppCall,
		},
	}
}

// deployedBody is what a deploy has done, as the API writes it.
type deployedBody struct {
	Routes     []routeBody `json:"routes"`
	Agents     []string    `json:"agents"`
	Migrations []string    `json:"migrations"`
	Warnings   []string    `json:"warnings"`
}

// routeBody is a handler of an app as the API writes it.
type routeBody struct {
	Area    string          `json:"area"`
	Path    string          `json:"path"`
	File    string          `json:"file"`
	Methods []string        `json:"methods"`
	Config  json.RawMessage `json:"config"`
}

func newDeployedBody(d apps.Deployed) deployedBody {
	body := deployedBody{
		make([]routeBody, len(d.Routes)), append([]string{}, d.Agents...), append([]string{}, d.Migrations...),
		append([]string{}, d.Warnings...),
	}
	for i, r := range d.Routes {
		body.Routes[i] = newRouteBody(r)
	}
	return body
}

func newRouteBody(r handlers.Route) routeBody {
	return routeBody{string(r.Area), r.Path, r.File, r.Methods, r.Config}
}

// deployApp serves POST /api/apps/{id}/_deploy: 200 and the app with deployed: {routes, agents,
// migrations, warnings}: the handlers and tools that it runs and the agents that it has now, the
// migrations that were applied, and what is wrong with files that are no routes. An app that came
// from another tenant becomes the caller's. 400 naming file and line for a handler or migration
// that is wrong, for an unreadable manifest, and for a draft; 404; 403; 409 when files change
// meanwhile; 503 when too many scripts run. What the app ran before goes on then. With strict=true
// a migration that has changed since it was applied, or comes before one that was applied, is 400
// and not a warning.
func (a appDeployRoutes) deployApp(r *rest.Request) (rest.Reply, error) {
	strict, err := strictOf(r)
	if err != nil {
		return rest.Reply{}, err
	}
	leave, err := r.Slot()
	if err != nil {
		return rest.Reply{}, err
	}
	defer leave()
	return appRoutes(a).shownApp(a.Apps.Deploy(r.Context(), r.Param("id"), apps.PublishOptions{Strict: strict}))
}

// strictInput are the options of _deploy and _migrate.
type strictInput struct {
	Strict rest.Field[bool] `json:"strict"`
}

func strictOf(r *rest.Request) (strict bool, err error) {
	in, err := rest.Options[strictInput](r)
	in.Strict.Apply(&strict)
	return strict, err
}

// migrationsBody is what a migration of an app's database has done.
type migrationsBody struct {
	Migrations []string `json:"migrations"`
	Warnings   []string `json:"warnings"`
}

// Relations implements openapi.Related.
func (migrationsBody) Relations() openapi.Relations {
	return openapi.Relations{Links: []string{"inf:app"}}
}

// migrateApp serves POST /api/apps/{id}/_migrate: 200 and {migrations, warnings}, the names of the
// migrations that were pending and are applied now, of an app or draft, and sentences about those
// that have changed since they were applied, or come before one that was applied; 400 for one that
// fails, naming the file, and with strict=true for what is warned of; 404; 403; 409 for a draft
// that somebody else edits.
func (a appDeployRoutes) migrateApp(r *rest.Request) (rest.Reply, error) {
	strict, err := strictOf(r)
	if err != nil {
		return rest.Reply{}, err
	}
	applied, warnings, err := a.Apps.Migrate(r.Context(), r.Param("id"), strict)
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.OK(hal.Resource{Links: hal.Self(a.href(
		"apps", r.Param("id"), "_migrate",
	)).With("inf:app", a.href("apps", r.Param("id"))),
		Value: migrationsBody{append([]string{}, applied...), append([]string{}, warnings...)}})
}

// getAppTables serves GET /api/apps/{id}/stats/tables: 200 and {bytes, limit, tables: [{name, rows,
// bytes, columns: [{name, type}]}]}, the SQL database of an app or draft, for those who see the
// insides of the app; 404; 403; 503 where there are no such databases.
func (a appDeployRoutes) getAppTables(r *rest.Request) (rest.Reply, error) {
	app, err := a.Apps.CheckInternals(r.Context(), r.Param("id"))
	if err != nil {
		return rest.Reply{}, err
	}
	stats, err := a.Workspaces.Stats(r.Context(), r.Who.Tenant, app)
	if err != nil {
		return rest.Reply{}, err
	}
	if stats.Tables == nil {
		stats.Tables = []workspaces.Table{}
	}
	self := a.href("apps", app, "stats", "tables")
	return rest.OK(hal.Resource{
		Links: hal.Self(self).With("inf:app", a.href("apps", app)).With("inf:app-stats", a.href("apps", app, "stats")),
		Value: tablesBody(stats),
	})
}

// tablesBody is the SQL database of an app as the API writes it.
type tablesBody workspaces.Stats

// Relations implements openapi.Related.
func (tablesBody) Relations() openapi.Relations {
	return openapi.Relations{Links: []string{"inf:app", "inf:app-stats"}}
}

// callsBody is the calls of one route on one day, as the API writes it.
type callsBody struct {
	Day    string `json:"day"`
	Area   string `json:"area"`
	Method string `json:"method"`
	Path   string `json:"path"`
	Calls  int64  `json:"calls"`
	Failed int64  `json:"failed"`
	AvgMS  int64  `json:"averageMs"`
}

// callStatsBody are the calls of an app's server.
type callStatsBody struct {
	Calls  []callsBody      `json:"calls"`
	Recent []invocationBody `json:"recent"`
}

// Relations implements openapi.Related.
func (callStatsBody) Relations() openapi.Relations {
	return openapi.Relations{Links: []string{"inf:app", "inf:app-stats", "inf:app-stats-api-call"}}
}

// getAppCalls serves GET /api/apps/{id}/stats/api: 200 and {calls: [{day, area, method, path,
// calls, failed, averageMs}]} of the last 30 days, for those who see the insides of the app: area
// server has the calls of its handlers, area api those of its pages that the manifest allows, path
// being the pattern of the route or rule. Failed are those with a status from 500. recent has the
// last 50 calls of handlers that failed or have logged something, newest first, for those who may
// change the app, and is null for others. 404; 403.
func (a appDeployRoutes) getAppCalls(r *rest.Request) (rest.Reply, error) {
	app, err := a.Apps.CheckInternals(r.Context(), r.Param("id"))
	if err != nil {
		return rest.Reply{}, err
	}
	all, err := a.Handlers.Calls(r.Context(), r.Who.Tenant, app)
	if err != nil {
		return rest.Reply{}, err
	}
	rows := make([]callsBody, len(all))
	for i, c := range all {
		rows[i] = callsBody{c.Day, c.Area, c.Method, c.Path, c.N, c.Failed, c.Milliseconds / max(c.N, 1)}
	}
	served, err := a.Webhooks.ServedInvocations(r.Context(), app)
	hidden := errs.CodeOf(err) == errs.Forbidden
	if err != nil && !hidden {
		return rest.Reply{}, err
	}
	recent := make([]invocationBody, len(served))
	for i, v := range served {
		recent[i] = newInvocationBody(v)
	}
	self := a.href("apps", app, "stats", "api")
	links := hal.Self(self).With("inf:app", a.href("apps", app)).With("inf:app-stats", a.href("apps", app, "stats"))
	if hidden {
		recent = nil
	} else {
		links["inf:app-stats-api-call"] = hal.Link{Href: self + "/{invocationId}", Templated: true}
	}
	return rest.OK(hal.Resource{Links: links, Value: callStatsBody{rows, recent}})
}

// getAppCall serves GET /api/apps/{id}/stats/api/{invocationId}: 200 and one of the recent calls of
// an app's or draft's handlers with its log, for those who may change the app; 404; 403.
func (a appDeployRoutes) getAppCall(r *rest.Request) (rest.Reply, error) {
	v, err := a.Webhooks.ServedInvocation(r.Context(), r.Param("id"), r.Param("invocationId"))
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.OK(webhookRoutes(a).invocation(v))
}
