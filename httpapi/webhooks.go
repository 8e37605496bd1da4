package httpapi

import (
	"context"
	"encoding/json"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tenantcontent/tenantcontent/internal/rest"
	"github.com/tenantcontent/tenantcontent/internal/rest/openapi"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/apps"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/hal"
	"github.com/tenantcontent/tenantcontent/internal/handlers"
	"github.com/tenantcontent/tenantcontent/sessions"
	"github.com/tenantcontent/tenantcontent/webhooks"
)

// webhookRoutes serves webhooks and what calls them.
type webhookRoutes struct{ *api }

// routes returns the rows of apps' webhooks, unless the host keeps apps itself.
func (a webhookRoutes) routes() []rest.Route {
	if slices.Contains(a.HostKinds, apps.Kind) {
		return nil
	}
	const one = "/api/apps/:id"
	routes := []rest.Route{
		{
			Method:  get,
			Pattern: one + "/webhooks",
			Name:    "listAppWebhooks",
			Grants:  programs,
			Query:   []string{"method", "path"},
			Summary: "The webhooks of an app, their last calls and what these add up to by day",
			Gives:   openapi.OK(openapi.One[webhooksBody]()),
			Fails:   []int{400, 404},
			Handle:  a.listAppWebhooks,
		},
		{
			Method:  get,
			Pattern: one + "/webhooks/invocations/:invocationId",
			Name:    "getAppInvocation",
			Grants:  programs,
			Summary: "One call of an app's webhooks with its log",
			Gives:   openapi.OK(openapi.One[invocationDetailBody]()),
			Handle:  a.getAppInvocation,
		},
		{
			Method:  post,
			Pattern: one + "/webhooks/invocations/:invocationId/_replay",
			Name:    "replayAppInvocation",
			Grants:  programs,
			Options: rest.NoOptions{},
			Summary: "Run a call of a webhook once more",
			Gives:   openapi.OK(openapi.One[invocationDetailBody]()),
			Fails:   []int{404},
			Handle:  a.replayAppInvocation,
		},
		{
			Method:  get,
			Pattern: one + "/webhook-tokens",
			Name:    "listWebhookTokens",
			Grants:  credentials,
			Secret:  true,
			Query:   paged,
			Summary: "The tokens of an app's webhooks",
			Gives:   openapi.OK(openapi.Page[webhookTokenBody]("inf:token")),
			Handle:  a.listWebhookTokens,
		},
		{
			Method:  post,
			Pattern: one + "/webhook-tokens",
			Name:    "createWebhookToken",
			Grants:  credentials,
			Secret:  true,
			Writes:  rest.InTx,
			Summary: "Make a token for an app's webhooks",
			Takes:   openapi.Input[tokenInput](),
			Gives:   openapi.Created(openapi.One[newToken]()),
			Fails:   []int{400},
			Handle:  a.createWebhookToken,
		},
		{
			Method:  get,
			Pattern: one + "/webhook-tokens/:tokenId",
			Name:    "getWebhookToken",
			Grants:  credentials,
			Secret:  true,
			Summary: "One token of an app's webhooks",
			Gives:   openapi.OK(openapi.One[webhookTokenBody]()),
			Handle:  a.getWebhookToken,
		},
		{
			Method:  del,
			Pattern: one + "/webhook-tokens/:tokenId",
			Name:    "deleteWebhookToken",
			Grants:  credentials,
			Row:     "webhook-token",
			Writes:  rest.InTx,
			Options: rest.NoOptions{},
			Summary: "Revoke a token of an app's webhooks",
			Gives:   openapi.OK(openapi.One[identified]()),
			Fails:   []int{404},
			Handle:  a.deleteWebhookToken,
		},
		{
			Method:  post,
			Pattern: one + "/_rotate-webhook-secret",
			Name:    "rotateWebhookSecret",
			Grants:  credentials,
			Writes:  rest.InTx,
			Options: rest.NoOptions{},
			Summary: "Replace what signs the tokens of an app's webhooks",
			Gives:   openapi.OK(openapi.One[identified]()),
			Fails:   []int{400},
			Handle:  a.rotateWebhookSecret,
		},
	}
	for _, r := range []struct{ method, name string }{{get, "getWebhook"}, {post, "postWebhook"}, {put, "putWebhook"}} {
		for _, at := range []struct{ pattern, name string }{{"/_hook", r.name + "Root"}, {"/_hook/*path", r.name}} {
			routes = append(routes, rest.Route{
				Method:  r.method,
				Pattern: one + at.pattern,
				Name:    at.name,
				Grants:  programs,
				Public:  true,
				Foreign: true,
				AnyType: true,
				Slashes: true,
				Summary: "Call a webhook of an app",
				Reads:   []string{"token"},
				Takes:   openapi.Bytes("*/*"),
				Gives:   openapi.Answers{openapi.AnyStatus: openapi.Bytes("*/*")},
				Handle:  a.callWebhook,
			})
		}
	}
	return routes
}

// webhookRoute is a route of an app's webhooks as the API writes it.
type webhookRoute struct {
	Method string          `json:"method"`
	Path   string          `json:"path"`
	Config json.RawMessage `json:"config"`
}

// invocationBody is a call of a webhook as the API writes it.
type invocationBody struct {
	ID         string   `json:"id"`
	Method     string   `json:"method"`
	Path       string   `json:"path"`
	StartedAt  hal.Time `json:"startedAt"`
	DurationMS float64  `json:"durationMs"`
	Status     int      `json:"statusCode"`
	Memory     string   `json:"memoryPeakBytes"`
	Error      *string  `json:"error"`
	ReplayOf   *string  `json:"replayOf"`
}

func newInvocationBody(v webhooks.Invocation) invocationBody {
	return invocationBody{
		ID: v.ID, Method: v.Method, Path: v.Path,
		StartedAt: hal.Time(v.StartedAt), DurationMS: milliseconds(v.Duration), Status: v.Status,
		Memory: strconv.FormatInt(v.Memory, 10), Error: v.Error, ReplayOf: v.ReplayOf,
	}
}

// milliseconds returns a duration in milliseconds, with three digits behind the point.
func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// webhookDay is what the calls of a day add up to as the API writes it.
type webhookDay struct {
	Day        string  `json:"day"`
	Count      int64   `json:"count"`
	DurationMS float64 `json:"avgDurationMs"`
	Errors     int64   `json:"errorCount"`
}

// webhooksBody are the webhooks of an app with their calls.
type webhooksBody struct {
	Routes []webhookRoute   `json:"routes"`
	Recent []invocationBody `json:"recent"`
	Daily  []webhookDay     `json:"daily"`
}

// Relations implements openapi.Related.
func (webhooksBody) Relations() openapi.Relations {
	return openapi.Relations{Links: []string{"inf:app", "inf:app-invocation", "inf:app-webhook-tokens"}}
}

// listAppWebhooks serves GET /api/apps/{id}/webhooks: 200 and {routes: [{method, path, config}],
// recent: [the last 50 calls, newest first], daily: [{day, count, avgDurationMs, errorCount} of the
// last 30 days, without days of no calls]}, to those who may change the app. With method= and path=
// recent and daily are those of one route; one of them alone is 400, and so is a draft. 403; 404.
func (a webhookRoutes) listAppWebhooks(r *rest.Request) (rest.Reply, error) {
	query, err := rest.ParseQuery(r.Request)
	if err != nil {
		return rest.Reply{}, err
	}
	f := webhooks.Filter{Method: strings.ToUpper(query.Get("method")), Path: query.Get("path")}
	if query.Has("method") != query.Has("path") || query.Has("method") && (f.Method == "" || f.Path == "") {
		return rest.Reply{}, errs.New(
			errs.Invalid,
			"method and path go together: they name one route, such as ?method=POST&path=/stripe/payment",
		)
	}
	l, err := a.Webhooks.Invocations(r.Context(), r.Param("id"), f)
	if err != nil {
		return rest.Reply{}, err
	}
	body := webhooksBody{[]webhookRoute{}, make([]invocationBody, len(l.Recent)), make([]webhookDay, len(l.Days))}
	for _, route := range l.Routes {
		config, err := publicConfig(route.Config)
		if err != nil {
			return rest.Reply{}, err
		}
		for _, method := range route.Methods {
			body.Routes = append(body.Routes, webhookRoute{method, route.Path, config})
		}
	}
	for i, v := range l.Recent {
		body.Recent[i] = newInvocationBody(v)
	}
	for i, d := range l.Days {
		body.Daily[i] = webhookDay{d.Day + "T00:00:00.000Z", d.Calls, average(d), d.Errors}
	}
	self := a.href("apps", l.App, "webhooks")
	filter := ""
	if len(query) > 0 {
		filter = "?" + query.Encode()
	}
	links := hal.Self(self+filter).With(
		"inf:app", a.href("apps", l.App),
	).With("inf:app-webhook-tokens", a.href("apps", l.App, "webhook-tokens"))
	links["inf:app-invocation"] = hal.Link{Href: self + "/invocations/{invocationId}", Templated: true}
	return rest.OK(hal.Resource{Links: links, Value: body, List: true}) // it changes with every call
}

// average returns how many milliseconds a call of a day took, with three digits behind the point.
func average(d webhooks.Day) float64 {
	if d.Calls == 0 {
		return 0
	}
	return math.Round(float64(d.Duration.Microseconds())/float64(d.Calls)) / 1000
}

// publicConfig returns the config of a webhook as it is registered: public.
func publicConfig(config json.RawMessage) (json.RawMessage, error) {
	members := map[string]json.RawMessage{}
	if err := json.Unmarshal(config, &members); err != nil {
		return nil, err
	}
	members["public"] = json.RawMessage("true")
	return hal.Append(nil, members)
}

// invocationDetailBody is a call of a handler with its log.
type invocationDetailBody struct {
	invocationBody
	Area        string         `json:"area"`
	Logs        []webhooks.Log `json:"logs"`
	LogsDropped int            `json:"logsDropped"`
	Kept        bool           `json:"kept"`
}

// Relations implements openapi.Related.
func (invocationDetailBody) Relations() openapi.Relations {
	return openapi.Relations{Links: []string{"inf:app", "inf:app-stats-api", "inf:app-webhooks", "inf:replay"}}
}

// invocation encodes a call with its log.
func (a webhookRoutes) invocation(v webhooks.Invocation) hal.Resource {
	self := a.href("apps", v.App, "webhooks", "invocations", v.ID)
	links := hal.Self(self).With(
		"inf:app", a.href("apps", v.App),
	).With("inf:app-webhooks", a.href("apps", v.App, "webhooks"))
	if v.Area == handlers.Server {
		links = hal.Self(a.href(
			"apps", v.App, "stats", "api", v.ID,
		)).With("inf:app", a.href("apps", v.App)).With("inf:app-stats-api", a.href("apps", v.App, "stats", "api"))
	}
	if v.Kept {
		links.With("inf:replay", self+"/_replay")
	}
	lines := v.Logs
	if lines == nil {
		lines = []webhooks.Log{}
	}
	return hal.Resource{Links: links, Value: invocationDetailBody{
		newInvocationBody(v), string(v.Area), lines, v.LogsDropped, v.Kept,
	}}
}

// getAppInvocation serves GET /api/apps/{id}/webhooks/invocations/{invocationId}: 200 and a call
// with its log, of a webhook or of a server route, to those who may change the app; 400 for a
// draft; 403; 404.
func (a webhookRoutes) getAppInvocation(r *rest.Request) (rest.Reply, error) {
	v, err := a.Webhooks.Invocation(r.Context(), r.Param("id"), r.Param("invocationId"))
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.OK(a.invocation(v))
}

// replayAppInvocation serves POST /api/apps/{id}/webhooks/invocations/{invocationId}/_replay: it
// runs the handler once more with the request that config.keep has kept, as the owner of the app,
// and waits for its end. 200 and the call that this is, with replayOf; what the handler does wrong
// is in it. 400 for a draft; 403; 404, also for a request that is not kept; 409 if the route is
// gone, or the owner of the app is disabled or gone.
func (a webhookRoutes) replayAppInvocation(r *rest.Request) (rest.Reply, error) {
	v, err := a.Webhooks.Replay(r.Context(), r.Param("id"), r.Param("invocationId"))
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.OK(a.invocation(v))
}

// webhookTokenBody is a token for webhooks with its key, null for a caller that may not see it.
type webhookTokenBody struct {
	tokenBody
	Key *string `json:"key"`
}

// Relations implements openapi.Related.
func (webhookTokenBody) Relations() openapi.Relations {
	return openapi.Relations{Links: []string{"inf:app", "inf:app-hook", "inf:app-webhook-tokens"}}
}

// webhookToken encodes a token, with its key for those who may use it to write.
func (a webhookRoutes) webhookToken(
	who actor.Actor, t sessions.Token, key func(sessions.Token) (string, error),
) (hal.Resource, error) {
	text, err := key(t)
	return hal.Resource{
		Links:  a.webhookTokenLinks(t),
		Row:    t,
		Beside: text,
		Value:  webhookTokenBody{newTokenBody(who, t), orNull(text)},
	}, err
}

func (a webhookRoutes) webhookTokenLinks(t sessions.Token) hal.Links {
	all := a.href("apps", t.Entity.ID, "webhook-tokens")
	links := hal.Self(all+"/"+hal.Segment(t.ID)).With(
		"inf:app-webhook-tokens", all,
	).With("inf:app", a.href("apps", t.Entity.ID))
	links["inf:app-hook"] = hal.Link{
		Href:      a.href("apps", t.Entity.ID, "_hook") + "/{+path}?token={key}",
		Templated: true,
	}
	return links
}

// webhookKeys returns what makes the keys of the tokens of an app. A caller with a token that can
// only read gets none.
func (a webhookRoutes) webhookKeys(r *rest.Request, some bool) (func(sessions.Token) (string, error), error) {
	if !some || r.Who.ReadOnly {
		return func(sessions.Token) (string, error) { return "", nil }, nil
	}
	key, err := a.Webhooks.Keys(r.Context(), r.Param("id"))
	return func(t sessions.Token) (string, error) { return key(t.ID, t.CreatedAt) }, err
}

// webhookTokens names the tokens of the webhooks of the app that a request is about.
func webhookTokens(r *rest.Request) sessions.TokensOf {
	return sessions.TokensOf{Type: sessions.Webhook, EntityID: r.Param("id")}
}

// listWebhookTokens serves GET /api/apps/{id}/webhook-tokens: 200 and a page of the tokens of an
// app's webhooks, newest first, each with the key that the secret of now signs; 400 for a draft;
// 403 for those who may not change the app; 404. A caller with a token that can only read gets null
// for the keys.
func (a webhookRoutes) listWebhookTokens(r *rest.Request) (rest.Reply, error) {
	q, err := r.Page(100)
	if err != nil {
		return rest.Reply{}, err
	}
	page, err := a.Sessions.Tokens(r.Context(), webhookTokens(r), q)
	if err != nil {
		return rest.Reply{}, err
	}
	key, err := a.webhookKeys(r, len(page.Rows) > 0)
	if err != nil {
		return rest.Reply{}, err
	}
	answer := rest.Collection(a.BaseURL, r, q, page, "inf:token", nil, func(t sessions.Token) hal.Resource {
		one, failed := a.webhookToken(r.Who, t, key)
		if failed != nil {
			err = failed
		}
		return one
	})
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.OK(answer)
}

// createWebhookToken serves POST /api/apps/{id}/webhook-tokens {notes, expiresAt, restrict, cidr}:
// 201 and the token with its key. 400 for a member that is not known, and for a draft; 403 for
// those who may not change the app, and for a caller with a token; 404.
func (a webhookRoutes) createWebhookToken(r *rest.Request) (rest.Reply, error) {
	in, err := rest.Decode[tokenInput](r)
	if err != nil {
		return rest.Reply{}, err
	}
	n, err := in.token(sessions.Webhook)
	if err != nil {
		return rest.Reply{}, err
	}
	t, _, err := a.Sessions.CreateToken(r.Context(), webhookTokens(r), n)
	if err != nil {
		return rest.Reply{}, err
	}
	keys, err := a.webhookKeys(r, true)
	if err != nil {
		return rest.Reply{}, err
	}
	key, err := keys(t)
	if err != nil {
		return rest.Reply{}, err
	}
	app, err := a.Apps.Get(r.Context(), t.Entity.ID)
	if err != nil {
		return rest.Reply{}, err
	}
	creator, err := tokenRoutes(a).tokenCreator(r)
	if err != nil {
		return rest.Reply{}, err
	}
	links := a.webhookTokenLinks(t)
	return rest.Created(links["self"].Href, hal.Resource{
		Links: links, Value: newToken{tokenBody: newTokenBody(r.Who, t), Key: key, Resource: &app.Name, User: creator},
		Embedded: hal.Embedded{"inf:app": appRoutes(a).app(app, true)},
	})
}

// getWebhookToken serves GET /api/apps/{id}/webhook-tokens/{tokenId}: 200 and the token with its
// key; 400 for a draft; 403; 404.
func (a webhookRoutes) getWebhookToken(r *rest.Request) (rest.Reply, error) {
	t, err := a.Sessions.Token(r.Context(), webhookTokens(r), r.Param("tokenId"))
	if err != nil {
		return rest.Reply{}, err
	}
	key, err := a.webhookKeys(r, true)
	if err != nil {
		return rest.Reply{}, err
	}
	one, err := a.webhookToken(r.Who, t, key)
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.OK(one)
}

// deleteWebhookToken serves DELETE /api/apps/{id}/webhook-tokens/{tokenId}: 200 {id}; calls with
// the token are refused from now on. 400 for a draft; 403; 404.
func (a webhookRoutes) deleteWebhookToken(r *rest.Request) (rest.Reply, error) {
	if err := a.Sessions.DeleteToken(r.Context(), webhookTokens(r), r.Param("tokenId")); err != nil {
		return rest.Reply{}, err
	}
	id := strings.ToLower(r.Param("tokenId"))
	return rest.OK(hal.Resource{
		Links: hal.Self(a.href("apps", r.Param("id"), "webhook-tokens", id)),
		Value: identified{id},
	})
}

// identified is an answer that names what a call has changed.
type identified struct {
	ID string `json:"id"`
}

// Relations implements openapi.Related.
func (identified) Relations() openapi.Relations { return openapi.Relations{} }

// rotateWebhookSecret serves POST /api/apps/{id}/_rotate-webhook-secret: 200 {id}; all keys that
// were given out are worth nothing from now on, and lists have the new ones. 400 for a draft; 403;
// 404.
func (a webhookRoutes) rotateWebhookSecret(r *rest.Request) (rest.Reply, error) {
	id, err := a.Apps.RotateWebhookSecret(r.Context(), r.Param("id"))
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.OK(hal.Resource{Links: hal.Self(a.href("apps", id)), Value: identified{id}})
}

// escapedHookPath returns what stands after _hook in the path of a request, still escaped, with one
// slash before it: a path of listAppWebhooks, which begins with a slash, may stand after the slash
// of the link inf:app-hook.
func escapedHookPath(r *http.Request) string {
	const before = 5 // "", api, apps, the id, and _hook
	parts := strings.SplitN(r.URL.EscapedPath(), "/", before+1)
	if len(parts) <= before {
		return "/"
	}
	return "/" + strings.TrimPrefix(parts[before], "/")
}

// callWebhook serves GET, POST and PUT /api/apps/{id}/_hook/{path}?token=: what a handler of the
// app answers. 401, the same for every reason, without a valid key, whatever else the request has;
// 401 if the signature that config.verify demands is wrong; 404 for a path that no route has, 405
// for a method that it does not have; 413; 500 and 504 for a handler that failed or took too long;
// 503 when too many run.
func (a webhookRoutes) callWebhook(r *rest.Request) (rest.Reply, error) {
	query, err := rest.ParseQuery(r.Request)
	if err != nil {
		return rest.Reply{}, err
	}
	by, err := a.Webhooks.Unchecked().Admit(
		r.Context(), r.Param("id"), query.Get("token"), actor.OriginOf(r.Context()).Address,
	)
	if err != nil {
		return rest.Reply{}, err
	}
	r.Count(by.Tenant(), "app "+by.App())
	r.MaxBody = a.Webhooks.Unchecked().Limits().Body
	call := webhooks.Call{
		Method: r.Method, Path: escapedHookPath(r.Request), Query: query,
		Header: handlerHeaders(r), Body: r.Read,
	}
	answer, err := rest.Detached(r.Context(), &a.Transfers, true, func(
		ctx context.Context, respond func(handlers.Response),
	) (handlers.Response, error) {
		call.Respond = respond
		answer, _, err := a.Webhooks.Unchecked().Handle(ctx, by, call)
		return answer, err
	})
	if err != nil {
		return rest.Reply{}, err
	}
	return closedIn(handled(answer)), nil
}

// webhookHeaders close in the answers of webhooks, which are at the origin of the service: a page
// is shown in a sandbox, without scripts and without anything of other servers, and its address,
// which has the key, is sent to no server.
var webhookHeaders = map[string]string{
	"Content-Security-Policy": "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri " +
		"'none'; form-action 'none'; frame-ancestors 'none'",
	"Referrer-Policy": "no-referrer",
}

// closedIn adds webhookHeaders to an answer.
func closedIn(answer rest.Reply) rest.Reply {
	answer.Header = maps.Clone(answer.Header)
	if answer.Header == nil {
		answer.Header = map[string]string{}
	}
	maps.Copy(answer.Header, webhookHeaders)
	return answer
}
