package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"maps"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/tenantcontent/tenantcontent/internal/rest"
	"github.com/tenantcontent/tenantcontent/internal/rest/openapi"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/apps"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/hal"
	"github.com/tenantcontent/tenantcontent/internal/drafts/blobs"
	"github.com/tenantcontent/tenantcontent/internal/drafts/libraries"
	"github.com/tenantcontent/tenantcontent/internal/rest/view"
	"github.com/tenantcontent/tenantcontent/internal/scripts"
	"github.com/tenantcontent/tenantcontent/internal/text/uuids"
)

// A page of an app runs at an opaque origin, so its scripts, images and fetches bring no cookie. It
// is served with a base that ends in a view token, view/-/~token/: what it loads by relative URLs
// has the token in its path, which stands for the viewer. Below it are the app's files and, in
// api/, the calls that the app's manifest allows. The same routes work with a session and no token.

// views is what the routes of apps' pages and servers share.
type views struct{ *api }

// appViewRoutes serves the pages of apps.
type appViewRoutes struct{ views }

// routes returns the rows of what apps show, unless the host keeps apps itself.
func (a appViewRoutes) routes() []rest.Route {
	const one = "/api/apps/:id"
	if slices.Contains(a.HostKinds, apps.Kind) {
		return nil
	}
	return []rest.Route{
		{
			Method:  get,
			Pattern: one + "/view",
			Name:    "getAppView",
			Grants:  programs,
			AnyType: true,
			Reads:   []string{"role", "print"},
			Summary: "The page of an app",
			Gives:   openapi.OK(openapi.Bytes("text/html")),
			Fails:   []int{400, 403, 404},
			Handle:  a.getAppView,
			Begin:   a.headers,
			Caller:  a.viewer,
			Ask:     loginFlow{a.api}.loginPage,
		},
		{
			Method:  get,
			Pattern: one + "/view/-/*path",
			Name:    "getAppViewFile",
			Grants:  programs,
			AnyType: true,
			Slashes: true,
			Summary: "A file for the pages of an app",
			Gives:   openapi.Answers{200: openapi.Bytes("*/*"), 206: openapi.Bytes("*/*")},
			Fails:   []int{403, 404},
			Handle:  a.getAppViewFile,
			Begin:   a.headers,
			Caller:  a.viewer,
		},
		{
			Method:  get,
			Pattern: one + "/view/api/*path",
			Name:    "callFromAppView",
			Grants:  programs,
			AnyType: true,
			Slashes: true,
			Summary: "A call that the manifest of an app allows",
			Gives:   openapi.OK(openapi.Bytes("*/*")),
			Fails:   []int{403, 404},
			Handle:  a.callFromAppView,
			Begin:   a.headers,
			Caller:  a.viewer,
		},
		{
			Method:  get,
			Pattern: one + "/roles",
			Name:    "getAppRoles",
			Grants:  programs,
			Summary: "The roles of an app, and which ones the caller has",
			Gives:   openapi.OK(openapi.One[rolesBody]()),
			Handle:  a.getAppRoles,
		},
		{
			Method:  get,
			Pattern: one + "/data-access",
			Name:    "getAppDataAccess",
			Grants:  programs,
			Summary: "What the manifest of an app lets it do",
			Gives:   openapi.OK(openapi.One[dataAccessBody]()),
			Handle:  a.getAppDataAccess,
		},
	}
}

// headers sets the headers of a view, which each answer of its routes has.
func (a views) headers(w *rest.Response, r *rest.Request) {
	at := &visitOf(r).view
	if at.belowToken() { // they are set already
		return
	}
	at.app = r.Param("id") // also of its share page, which is not below its view
	a.setViewHeaders(w.Header(), r.Request, at)
}

// viewer returns the caller of a route of a view: below a view token whom that names, and otherwise
// whom Authenticate returns. The first can only read, but for routes of the app's server.
func (a views) viewer(r *rest.Request) (actor.Actor, error) {
	if visitOf(r).view.token == "" {
		return a.Authenticate(r.Request)
	}
	id, ok := uuids.Parse(r.Param("id"))
	claims, err := a.viewTokens.Check(visitOf(r).view.token, a.Now())
	if ok && err != nil {
		return actor.Actor{}, a.ended(err, id, claims)
	}
	if !ok || claims.App != id {
		return actor.Actor{}, notViewer()
	}
	who, err := a.viewerOf(r, claims)
	if err != nil {
		return actor.Actor{}, a.ended(err, id, claims)
	}
	if who.User != claims.User && claims.Scope != view.Visitor {
		return actor.Actor{}, notViewer()
	}
	visitOf(r).token, visitOf(r).claims = visitOf(r).view.token, claims
	if _, server := serverPathOf(r); !server { // where a viewer has all rights, and a visitor those to read
		who.ReadOnly = true
	}
	return who, nil
}

// forApp returns how the calls of an app are served, for a caller.
func forApp(who actor.Actor) *rest.As {
	return &rest.As{
		Caller: func(r *rest.Request) (actor.Actor, error) {
			visitOf(r).fromApp = true
			return who, nil
		},
		Check: closedToApps,
		Redirects: errs.New(
			errs.Forbidden, "This call answers with a redirect, which the page of an app cannot follow.",
		),
	}
}

func notViewer() error {
	return errs.New(errs.Unauthenticated, "The link to the app's files is not valid: open the app again.")
}

// getAppView serves GET /api/apps/{id}/view: 200 and the entry page of an app, with the base and
// the context of a viewer in it, for those who may run the app. With role= it is shown as that role
// of the manifest alone, to those who have it or may change the app; with print=portrait or
// print=landscape it is printed on such sheets. A browser without a session gets 401 and a form for
// logging in. An app without an entry page has one with what to do. 303 to the app's own origin if
// it has one; 404; 403; 409 for a manifest that cannot be read.
func (a appViewRoutes) getAppView(r *rest.Request) (rest.Reply, error) {
	if originOf(r.Context()) != nil {
		return a.visitedPage(r, libraries.File{}, nil)
	}
	query, err := rest.ParseQuery(r.Request)
	if err != nil {
		return rest.Reply{}, err
	}
	print, err := orientation(r)
	if err != nil {
		return rest.Reply{}, err
	}
	v, err := a.Apps.View(r.Context(), r.Param("id"), query.Get("role"))
	if err != nil {
		return rest.Reply{}, err
	}
	f, content, err := a.entryPage(r.Context(), v)
	if err != nil {
		return rest.Reply{}, err
	}
	if a.origins != nil {
		_ = content.Close()
		return a.openAtOrigin(r, v, query)
	}
	if err := a.countView(r, v); err != nil {
		_ = content.Close()
		return rest.Reply{}, err
	}
	return a.appPage(r, v, query.Get("role"), print, f, content)
}

// countView counts a view for a GET of a page, and none for a HEAD.
func (a views) countView(r *rest.Request, v apps.Viewed) error {
	if r.Method == http.MethodHead {
		return nil
	}
	return a.Apps.CountView(r.Context(), v.App)
}

// entryPage returns the page that opens with an app. Where there is none it is a page with what to
// do.
func (a views) entryPage(ctx context.Context, v apps.Viewed) (libraries.File, io.ReadSeekCloser, error) {
	f, content, err := a.Apps.ViewFile(ctx, v.ID, v.Entry)
	if errs.CodeOf(err) != errs.NotFound {
		return f, content, err
	}
	missing := "There is no file <code>%s</code>: add it, or name another one as <code>entryPoint</code> in the " +
		"manifest."
	if !apps.Loadable(v.Entry) {
		missing = "Pages cannot be at <code>%s</code>, which is closed to browsers: name another one as " +
			"<code>entryPoint</code> in the manifest."
	}
	text := fmt.Sprintf("<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>No "+
		"page</title></head><body><h1>This app has no page yet</h1><p>"+
		missing+"</p></body></html>", html.EscapeString(v.Entry))
	return libraries.File{
		Path:        "index.html",
		ContentType: "text/html",
		Size:        int64(len(text)),
	}, unread{strings.NewReader(text)}, nil
}

// unread is a page that is no file.
type unread struct{ *strings.Reader }

// Close implements io.Closer.
func (unread) Close() error { return nil }

// appContext is what a page finds in window.informer.
type appContext struct {
	App struct {
		ID   string `json:"id"`
		Name string `json:"name"`
	} `json:"app"`
	User     *userShown              `json:"user"` // null for a visitor
	Roles    []string                `json:"roles"`
	Base     string                  `json:"base"` // URL of the app's files
	API      string                  `json:"api"`  // URL of the calls that the manifest allows
	Datasets map[string]datasetShown `json:"datasets,omitempty"`
}

// userShown is the viewer in the context of a page.
type userShown struct {
	Username    string `json:"username"`
	DisplayName string `json:"displayName"`
}

// datasetShown is a dataset in the context of a page.
type datasetShown struct {
	ID     string          `json:"id"`
	Label  string          `json:"label"`
	Fields json.RawMessage `json:"fields"`
}

// appPage replies with a page of an app, which f and content are: with a base, the page's context
// and the headers of a page. Below a view token the page goes on with that one, and is not shown
// for longer.
func (a views) appPage(
	r *rest.Request, v apps.Viewed, role string, print view.Orientation, f libraries.File,
	content io.ReadSeekCloser,
) (rest.Reply, error) {
	closed := func(err error) (rest.Reply, error) {
		_ = content.Close()
		return rest.Reply{}, err
	}
	own, root := originOf(r.Context()), ""
	switch {
	case own != nil:
		root = own.origin + "/"
	case visitOf(r).token != "":
		root = a.viewBase(v.ID, visitOf(r).token)
	default:
		claims, err := a.viewClaims(r, v, role)
		if err != nil {
			return closed(err)
		}
		root = a.viewBase(v.ID, a.viewTokens.Make(claims))
	}
	data, err := a.appContext(r, v, root)
	if err != nil {
		return closed(err)
	}
	base := root
	for _, segment := range strings.Split(path.Dir(f.Path), "/") {
		if segment != "." {
			base += hal.Segment(segment) + "/"
		}
	}
	header := map[string]string{"Content-Type": pageType(f.ContentType)}
	if own == nil && visitOf(r).token == "" { // else they are set
		header = view.Headers(pageType(f.ContentType), view.Policy(root, ""), true)
	}
	maps.Copy(header, varyByVisit)
	return rest.Reply{Status: http.StatusOK, Header: header,
		Holds: min(f.Size, blobs.ChunkSize), Stream: func(w io.Writer) error {
			defer func() { _ = content.Close() }()
			return view.Inject(content, w, base, data, print)
		}}, nil
}

// pageType returns the media type of a page: that of its file if it is HTML.
func pageType(given string) string {
	if !isHTML(given) {
		given = "text/html"
	}
	header, _ := view.ContentType(given)
	return header
}

func isHTML(mediaType string) bool {
	t, _, _ := strings.Cut(mediaType, ";")
	return strings.EqualFold(strings.TrimSpace(t), "text/html")
}

func (a views) appContext(r *rest.Request, v apps.Viewed, root string) (json.RawMessage, error) {
	c := appContext{Roles: append([]string{}, v.Roles...), Base: root, API: root + "api/"}
	c.App.ID, c.App.Name = v.ID, v.Name
	var err error
	if c.User, err = a.userShown(r); err != nil {
		return nil, err
	}
	if c.Datasets, err = a.passedDatasets(r, v); err != nil {
		return nil, err
	}
	return json.Marshal(c)
}

// userShown returns who views a page, nil for a visitor.
func (a views) userShown(r *rest.Request) (*userShown, error) {
	if visitOf(r).visitor != nil {
		return nil, nil
	}
	user, err := a.Principals.User(r.Context(), r.Who.User)
	if err != nil && errs.CodeOf(err) != errs.NotFound { // a host's user may not be there
		return nil, err
	}
	shown := userShown{r.Who.User, r.Who.User}
	if user.DisplayName != nil {
		shown.DisplayName = *user.DisplayName
	}
	return &shown, nil
}

// passedDatasets returns the datasets of an app by alias, if its settings pass them to pages. One
// that the viewer does not see, or sees only by tenant-wide rights that the owner of the app does
// not have, is left out.
func (a views) passedDatasets(r *rest.Request, v apps.Viewed) (map[string]datasetShown, error) {
	if !v.PassDatasets {
		return nil, nil
	}
	ctx, err := a.Scripts.CappedIn(r.Context(), v.App, r.Who)
	if err != nil {
		return nil, err
	}
	all := make(map[string]datasetShown, len(v.Datasets))
	for _, d := range v.Datasets {
		fields, err := a.Datasets.Fields(ctx, d.DatasetID)
		switch code := errs.CodeOf(err); {
		case code == errs.NotFound, code == errs.Forbidden: // a datasets.Source may refuse some callers
			continue
		case code == errs.Conflict: // its data are not those of a dataset with rows
			fields = json.RawMessage("[]")
		case err != nil:
			return nil, err
		}
		all[d.Alias] = datasetShown{ID: d.DatasetID, Label: d.Label, Fields: fields}
	}
	return all, nil
}

// getAppViewFile serves GET /api/apps/{id}/view/-/{path} and GET
// /api/apps/{id}/view/-/~{token}/{path}: 200 and the bytes of a file, 206 for a range of them, for
// those who may run the app. A browser that goes to a page gets it with its base and context, and
// the entry page where there is no file. Below a token, api/{path} is a call as below view/api.
// 404; 403; 401 for a token that has expired or is not that of this app, or whose session has
// ended. A browser that goes to a folder gets its index.html, and one that goes to a path without
// an extension the page that has it with .html.
func (a appViewRoutes) getAppViewFile(r *rest.Request) (rest.Reply, error) {
	if call, ok := strings.CutPrefix(visitOf(r).view.rest, "api/"); ok && (visitOf(r).token != "" ||
		originOf(r.Context()) != nil) {
		if hasEmptySegment(call) {
			return rest.Reply{}, errs.New(errs.NotFound, "There is no such route.")
		}
		return a.callOfPage(r, call)
	}
	if err := a.fileIssuedUnder(r); err != nil {
		return rest.Reply{}, err
	}
	_, name := viewPath(r.Param("path"))
	visits := visitsPage(r.Header)
	f, content, err := a.viewFile(r, name, visits)
	switch missing := errs.CodeOf(err) == errs.NotFound; {
	case err != nil && (!missing || !visits):
		return rest.Reply{}, err
	case missing || visits && isHTML(f.ContentType):
		return a.visitedPage(r, f, content)
	}
	if visitOf(r).token != "" && !visitOf(r).view.known {
		a.viewHeaders.put(visitOf(r).view.app, visitOf(r).token, a.viewHeadersOf(visitOf(r).view.app, visitOf(r).token))
	}
	var vary map[string]string
	if isHTML(f.ContentType) {
		vary = varyByVisit
	}
	if answer, same := rest.Unchanged(r, f.Version()); same {
		answer.Header = vary
		return answer, content.Close()
	}
	answer, err := rest.File(f.Version(), f.ContentType, "", f.UpdatedAt, content)
	inline := false
	if answer.Header["Content-Type"], inline = view.ContentType(f.ContentType); !inline {
		answer.Header["Content-Disposition"] = "attachment"
	}
	maps.Copy(answer.Header, vary)
	return answer, err
}

// viewFile returns the file that a path below a view names: of a path that a browser goes to also
// the page in its place, docs/index.html for docs/ and about.html for about. Errors: errs.NotFound;
// errs.Forbidden.
func (a appViewRoutes) viewFile(r *rest.Request, name string, visits bool) (libraries.File, io.ReadSeekCloser, error) {
	place := strings.TrimSuffix(name, "/")
	switch {
	case place == "" || hasEmptySegment(place):
		name = ""
	case visits && place != name:
		name = place + "/index.html"
	case visits && path.Ext(name) == "":
		f, content, err := a.Apps.ViewFile(r.Context(), r.Param("id"), name)
		if errs.CodeOf(err) != errs.NotFound {
			return f, content, err
		}
		name += ".html"
	}
	return a.Apps.ViewFile(r.Context(), r.Param("id"), name)
}

// hasEmptySegment reports whether a path begins or ends with a slash, or has two in a row.
func hasEmptySegment(path string) bool {
	return strings.HasPrefix(path, "/") || strings.HasSuffix(path, "/") || strings.Contains(path, "//")
}

// visitedPage replies with a page that a browser goes to, the entry page if content is nil.
func (a appViewRoutes) visitedPage(r *rest.Request, f libraries.File, content io.ReadSeekCloser) (rest.Reply, error) {
	v, err := a.viewed(r, visitOf(r).claims.Role)
	if err == nil && content == nil {
		f, content, err = a.entryPage(r.Context(), v)
	}
	if err != nil {
		if content != nil {
			_ = content.Close()
		}
		return rest.Reply{}, err
	}
	print := view.AnyOrientation
	if originOf(r.Context()) != nil {
		print = view.Orientation(r.URL.Query().Get("print"))
	}
	return a.appPage(r, v, visitOf(r).claims.Role, print, f, content)
}

// varyByVisit is the header of an answer that depends on visitsPage.
var varyByVisit = map[string]string{"Vary": "Accept, Sec-Fetch-Mode"}

// visitsPage reports whether a request is a browser's navigation to a page: its Sec-Fetch-Mode is
// navigate or, without one, it accepts HTML.
func visitsPage(h http.Header) bool {
	if mode := h.Get("Sec-Fetch-Mode"); mode != "" {
		return mode == "navigate"
	}
	return strings.Contains(strings.ToLower(h.Get("Accept")), "text/html")
}

// callFromAppView serves GET /api/apps/{id}/view/api/{path}: what GET /api/{path} answers to the
// caller, if the manifest of the app allows that call. 403 if it does not, and for an answer that
// is a redirect; 404; 409 for a manifest that cannot be read.
func (a appViewRoutes) callFromAppView(r *rest.Request) (rest.Reply, error) {
	if path, ok := serverPathOf(r); ok {
		return a.callServer(r, path)
	}
	if visitOf(r).token != "" || hasEmptySegment(visitOf(r).view.below) { // a token belongs behind view/-/
		return rest.Reply{}, errs.New(errs.NotFound, "There is no such route.")
	}
	if err := a.fromOtherSite(r); err != nil {
		return rest.Reply{}, err
	}
	return a.callOfPage(r, visitOf(r).view.below)
}

// callOfPage replies with what a route answers to the viewer of a page, who can only read there.
// The path is escaped.
func (a appViewRoutes) callOfPage(r *rest.Request, path string) (rest.Reply, error) {
	v, err := a.viewed(r, "")
	if err != nil {
		return rest.Reply{}, err
	}
	if err := a.issuedUnder(r.Context(), visitOf(r).claims, v); err != nil {
		return rest.Reply{}, err
	}
	if err := scripts.CheckCall(v.Manifest, http.MethodGet, path); err != nil {
		return rest.Reply{}, err
	}
	at := *r.URL
	at.RawPath = a.mount + "/api/" + path
	if at.Path, err = url.PathUnescape(at.RawPath); err != nil {
		return rest.Reply{}, errs.New(errs.Invalid, "The path is not properly escaped.")
	}
	who, err := a.Scripts.Capped(r.Context(), v.App, r.Who)
	if err != nil {
		return rest.Reply{}, err
	}
	who.ReadOnly = true
	inner := r.Clone(r.Context())
	inner.URL = &at
	for _, name := range []string{"Authorization", "Cookie"} {
		inner.Header.Del(name)
	}
	rule, _ := v.Manifest.Rule(http.MethodGet, path)
	return rest.Reply{Serve: func(w *rest.Response, _ *http.Request) error {
		began := time.Now()
		err := a.Serve(w, inner, forApp(who))
		a.countCall(v, rule, w.Status, err, time.Since(began))
		return err
	}}, nil
}

// getAppRoles serves GET /api/apps/{id}/roles: 200 and {roles: [{id, name, description, assigned}],
// switchRoles}, the roles of the manifest, which of them the caller has, and whether the caller may
// view the app as another one. 404; 409 for a manifest that cannot be read.
func (a appViewRoutes) getAppRoles(r *rest.Request) (rest.Reply, error) {
	v, err := a.Apps.Declared(r.Context(), r.Param("id"))
	if err != nil {
		return rest.Reply{}, err
	}
	roles := make([]roleBody, len(v.Manifest.Roles))
	for i, role := range v.Manifest.Roles {
		roles[i] = roleBody{role.ID, role.Name, role.Description, slices.Contains(v.Roles, role.ID)}
	}
	return rest.OK(hal.Resource{Links: a.ofApp(v, "roles"), Value: rolesBody{roles, v.Switch}})
}

func (a appViewRoutes) ofApp(v apps.Viewed, what string) hal.Links {
	return hal.Self(a.href("apps", v.ID, what)).With("inf:app", a.href("apps", v.ID))
}

// getAppDataAccess serves GET /api/apps/{id}/data-access: 200 and {access: [{methods, path,
// description}], datasets: [{alias, description, datasetId}]}, the calls that the app's manifest
// allows and the datasets that it declares; 404; 409 for a manifest that cannot be read.
func (a appViewRoutes) getAppDataAccess(r *rest.Request) (rest.Reply, error) {
	v, err := a.Apps.Declared(r.Context(), r.Param("id"))
	if err != nil {
		return rest.Reply{}, err
	}
	body := dataAccessBody{make([]accessBody, len(v.Manifest.Access)), make([]needBody, len(v.Manifest.Datasets))}
	for i, rule := range v.Manifest.Access {
		body.Access[i] = accessBody(rule)
	}
	bound := map[string]string{}
	for _, d := range v.Datasets {
		bound[d.Alias] = d.DatasetID
	}
	for i, d := range v.Manifest.Datasets {
		body.Datasets[i] = needBody{d.Alias, d.Description, orNull(bound[d.Alias])}
	}
	return rest.OK(hal.Resource{Links: a.ofApp(v, "data-access"), Value: body})
}
