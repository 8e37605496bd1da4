package httpapi

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tenantcontent/tenantcontent/internal/rest"
	"github.com/tenantcontent/tenantcontent/internal/rest/openapi"

	"github.com/tenantcontent/tenantcontent/apps"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/drafts/manifest"
	"github.com/tenantcontent/tenantcontent/internal/handlers"
	"github.com/tenantcontent/tenantcontent/internal/scripts"
)

// The files in the folder server of an app are routes below view/api/_server/: for callers with a
// session or API token there, for pages below their view token, view/-/~token/api/_server/, and at
// an app's own origin below /api/_server/.

// appServerRoutes serves the calls of an app's handlers.
type appServerRoutes struct{ views }

// routes returns the rows of the methods but GET below a view, of which only those of an app's
// server exist.
func (a appServerRoutes) routes() []rest.Route {
	if slices.Contains(a.HostKinds, apps.Kind) {
		return nil
	}
	var routes []rest.Route
	for _, m := range []struct{ method, name string }{
		{http.MethodPost, "postToAppServer"}, {http.MethodPut, "putToAppServer"},
		{http.MethodPatch, "patchAtAppServer"}, {http.MethodDelete, "deleteAtAppServer"},
	} {
		routes = append(routes, rest.Route{
			Method:   m.method,
			Pattern:  "/api/apps/:id/view/api/*path",
			Name:     m.name,
			Grants:   programs,
			AnyType:  true,
			AnyQuery: true,
			Slashes:  true,
			Summary:  "A route of an app's server",
			Takes:    openapi.Bytes("*/*"),
			Gives:    openapi.Answers{openapi.AnyStatus: openapi.Bytes("*/*")},
			Handle:   a.callAppServer,
			Begin:    a.headers,
			Caller:   a.viewer,
		})
	}
	return routes
}

// server returns the path of a route of the app's server, still escaped, and whether the address is
// that of one. own reports whether it is one at the app's own origin.
func (at viewAddress) server(own bool) (path string, ok bool) {
	call := at.below
	if at.files {
		var below bool
		if call, below = strings.CutPrefix(at.rest, "api/"); !below || at.token == "" && !own {
			return "", false
		}
	}
	if call == "_server" && at.app != "" {
		return "", true
	}
	return strings.CutPrefix(call, "_server/")
}

// callAppServer serves POST, PUT, PATCH and DELETE /api/apps/{id}/view/api/_server/{path} and the
// same behind the view token of a page: what the handler of the app answers, see callServer. 405
// for other paths below view/api.
func (a appServerRoutes) callAppServer(r *rest.Request) (rest.Reply, error) {
	if path, ok := serverPathOf(r); ok {
		return a.callServer(r, path)
	}
	return rest.Reply{}, rest.NotAllowed{Methods: "GET, HEAD"}
}

// serverPath is server of the address of the request.
func serverPathOf(r *rest.Request) (path string, ok bool) {
	return visitOf(r).view.server(originOf(r.Context()) != nil)
}

// callServer replies with what the handler of a server route answers: GET, HEAD and the methods
// that its file exports. The handler runs with the rights of the viewer. Errors: errs.NotFound; a
// handlers.NotAllowed; errs.Forbidden for a viewer with none of the roles that the route is for;
// errs.Conflict for a manifest that cannot be read, and for a draft whose handlers cannot be
// compiled; errs.TooLarge; errs.Upstream for a redirect elsewhere; errs.Unavailable.
func (a views) callServer(r *rest.Request, path string) (rest.Reply, error) {
	v, err := a.viewed(r, visitOf(r).claims.Role)
	if err != nil {
		return rest.Reply{}, err
	}
	route, params, err := a.Handlers.Match(r.Context(), scripts.AppOf(v.App), handlers.Server, r.Method, "/"+path)
	if refused := a.issuedUnder(r.Context(), visitOf(r).claims, v); refused != nil {
		// after Match, which may have found a new program
		return rest.Reply{}, refused
	}
	if err != nil {
		return rest.Reply{}, err
	}
	if roles := route.Roles(); len(roles) > 0 && !slices.ContainsFunc(roles, func(id string) bool {
		return slices.Contains(v.Roles, id)
	}) {
		return rest.Reply{}, errs.New(
			errs.Forbidden, "This route of the app is for the roles %s.", strings.Join(roles, ", "),
		)
	}
	if !route.CrossSite() {
		if err := a.fromOtherSite(r); err != nil {
			return rest.Reply{}, err
		}
	}
	app, err := a.Apps.Unchecked().Running(r.Context(), v.Tenant, v.ID)
	if err != nil {
		return rest.Reply{}, err
	}
	in, err := a.serverRequest(r, path, params)
	if err != nil {
		return rest.Reply{}, err
	}
	in.Roles = v.Roles
	began := time.Now()
	answer, err := a.runHandler(r.Context(), scripts.Call{
		App:      app,
		Access:   v.Manifest,
		Who:      r.Who,
		Viewed:   true,
		ReadOnly: r.Who.ReadOnly,
		ByCookie: rest.IsRead(r.Method) && byCookie(r),
		Send:     slices.Equal(in.Query["send"], []string{"true"}),
	}, route, in)
	if err == nil {
		err = a.checkRedirect(r, v, route, answer)
	}
	if v.EditingID == nil {
		status := answer.Status
		if err != nil {
			status = max(rest.StatusOf(errs.CodeOf(err)), http.StatusBadRequest)
		}
		a.Handlers.Count(v.Tenant, v.ID, string(handlers.Server), r.Method, route.Path, status, time.Since(began))
	}
	if err != nil {
		return rest.Reply{}, err
	}
	return handled(answer), nil
}

// byCookie reports whether a browser may have added by itself what names the caller of a request to
// a view: a cookie, not a bearer token or the view token of a page.
func byCookie(r *rest.Request) bool {
	return originOf(r.Context()) != nil || visitOf(r).token == "" && !rest.HasBearer(r.Request)
}

// fromOtherSite returns errs.Forbidden for a call by cookie that a page of another origin has
// started: a navigation and a page of a neighbouring app count as one. Browsers that send no
// Sec-Fetch-Site are known by Origin or Referer.
func (a views) fromOtherSite(r *rest.Request) error {
	own := a.origin
	if at := originOf(r.Context()); at != nil {
		own = at.origin
	}
	ours := func(page string) bool {
		u, err := url.Parse(page)
		return err == nil && u.Host != "" && (u.Scheme+"://"+u.Host == own || u.Host == r.Host)
	}
	site, origin, referer := r.Header.Get("Sec-Fetch-Site"), r.Header.Get("Origin"), r.Header.Get("Referer")
	switch {
	case !byCookie(r):
	case site == "same-origin" || site == "none":
	case site == "" && (origin == "" || ours(origin)) && (referer == "" || ours(referer)):
	default:
		return errs.New(errs.Forbidden, "This request came from a page of another origin.")
	}
	return nil
}

// countCall counts a call of a page that a rule of the manifest allows. Those of drafts are not
// counted.
func (a views) countCall(v apps.Viewed, rule manifest.Rule, status int, err error, took time.Duration) {
	if v.EditingID != nil {
		return
	}
	if err != nil {
		if status = rest.StatusOf(errs.CodeOf(err)); status == 0 {
			status = http.StatusInternalServerError
		}
	}
	a.Handlers.Count(v.Tenant, v.ID, "api", http.MethodGet, rule.Path, status, took)
}

// serverRequest returns what a handler gets of a request to a server route.
func (a views) serverRequest(r *rest.Request, path string, params map[string]string) (handlers.Request, error) {
	query, err := rest.ParseQuery(r.Request)
	if err != nil {
		return handlers.Request{}, err
	}
	in := handlers.Request{
		Method: r.Method, Path: "/" + path, Params: params, Query: query, ContentType: r.Header.Get("Content-Type"),
		Headers: handlers.JoinHeaders(handlerHeaders(r), "authorization", "cookie", "proxy-authorization"),
	}
	if !rest.IsRead(r.Method) {
		r.MaxBody = a.MaxHandlerBody
		if in.Body, err = r.Read(); err != nil {
			return handlers.Request{}, err
		}
	}
	in.User, err = a.handlerUser(r)
	return in, err
}

// handlerHeaders returns the headers of a request with Host, which net/http keeps apart: that of
// the service, or of the app's own origin.
func handlerHeaders(r *rest.Request) http.Header {
	h := maps.Clone(r.Header)
	host := r.Host
	if own := originOf(r.Context()); own != nil {
		_, host, _ = strings.Cut(own.origin, "://")
	}
	if host != "" {
		h["Host"] = []string{host}
	}
	return h
}

// handlerUser returns the viewer as handlers get it, nil for a visitor.
func (a views) handlerUser(r *rest.Request) (*handlers.User, error) {
	if visitOf(r).visitor != nil {
		return nil, nil
	}
	u := &handlers.User{ID: r.Who.User, Type: "User", Name: r.Who.User, Username: r.Who.User, DisplayName: r.Who.User}
	user, err := a.Principals.User(r.Context(), r.Who.User)
	if errs.CodeOf(err) == errs.NotFound { // a host's user may not be there
		return u, nil
	}
	if err != nil {
		return nil, err
	}
	if user.DisplayName != nil {
		u.Name, u.DisplayName = *user.DisplayName, *user.DisplayName
	}
	if user.Email != nil {
		u.Email = *user.Email
	}
	return u, nil
}
