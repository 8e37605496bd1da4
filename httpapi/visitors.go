package httpapi

import (
	"context"
	"net/http"
	"slices"

	"github.com/tenantcontent/tenantcontent/internal/rest"
	"github.com/tenantcontent/tenantcontent/internal/rest/openapi"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/apps"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/drafts/manifest"
	"github.com/tenantcontent/tenantcontent/internal/rest/view"
	"github.com/tenantcontent/tenantcontent/sessions"
)

// visitorRoutes serves the visitors of apps who have no account.
type visitorRoutes struct{ views }

// routes returns the rows of the route table, unless the host keeps apps itself.
func (a visitorRoutes) routes() []rest.Route {
	if slices.Contains(a.HostKinds, apps.Kind) {
		return nil
	}
	return []rest.Route{
		{
			Method:  get,
			Pattern: "/api/apps/:id/share",
			Name:    "getAppSharePage",
			Grants:  programs,
			AnyType: true,
			Reads:   []string{"token", "print"},
			Summary: "The page of an app for visitors without an account",
			Gives:   openapi.OK(openapi.Bytes("text/html")),
			Handle:  a.getAppSharePage,
			Begin:   a.headers,
			Caller:  a.visitorOf,
		},
	}
}

// getAppSharePage serves GET /api/apps/{id}/share?token=: 200 and the entry page of an app for a
// visitor without an account, with the key of a token of the app. The page is as below view, with
// no user and the token's roles; its files and calls, GET alone, are those of the user who has made
// the token, for as long as that user may share the app. With print=portrait or print=landscape it
// is printed on such sheets. The same 401 without a token, for one that is not of this app, has
// expired or was revoked, and for an app that is not there; 409 for a manifest that cannot be read.
func (a visitorRoutes) getAppSharePage(r *rest.Request) (rest.Reply, error) {
	print, err := orientation(r)
	if err != nil {
		return rest.Reply{}, err
	}
	v, err := a.viewed(r, "")
	if err != nil {
		return rest.Reply{}, err
	}
	f, content, err := a.entryPage(r.Context(), v)
	if err != nil {
		return rest.Reply{}, err
	}
	return a.appPage(r, v, "", print, f, content)
}

// orientation returns the parameter print of a query.
func orientation(r *rest.Request) (view.Orientation, error) {
	query, err := rest.ParseQuery(r.Request)
	if err != nil {
		return "", err
	}
	print := view.Orientation(query.Get("print"))
	if query.Has("print") && print != view.Portrait && print != view.Landscape {
		return "", errs.New(errs.Invalid, "print must be portrait or landscape")
	}
	return print, nil
}

// viewed returns an app as its pages are shown to the caller of a request: to a visitor with the
// roles of the token, to others with their own or, if role is not "", that one.
func (a views) viewed(r *rest.Request, role string) (apps.Viewed, error) {
	if visitOf(r).visitor != nil {
		v, err := a.Apps.ViewOfVisitor(r.Context(), r.Param("id"), visitOf(r).visitor.Roles)
		v.Manifest = asInvited(v.Manifest, visitOf(r).visitor.Access)
		return v, err
	}
	return a.Apps.View(r.Context(), r.Param("id"), role)
}

// asInvited returns a manifest as visitors have it whose link was made when some rules were its
// access: a later manifest allows them no more than these. Nil rules are those of a link that was
// made before they were kept.
func asInvited(m manifest.Manifest, rules []string) manifest.Manifest {
	if rules == nil {
		return m
	}
	var all []manifest.Rule
	for _, text := range rules {
		if rule, ok := manifest.ParseRule(text); ok {
			all = append(all, rule)
		}
	}
	return m.Limited(all)
}

// visitorOf returns the caller of a visitor's route: the user who has made the token in the query.
func (a views) visitorOf(r *rest.Request) (actor.Actor, error) {
	query, err := rest.ParseQuery(r.Request)
	if err != nil {
		return actor.Actor{}, err
	}
	v, err := a.Sessions.Unchecked().Visitor(r.Context(), query.Get("token"), actor.OriginOf(r.Context()).Address)
	return a.admit(r, v, err, a.Apps.CheckShare)
}

// chatter returns the caller of a route that the holders of a token of an assistant call, too: of a
// request with such a token the user who has made it. Errors: as admit; those of needsAI for that
// user.
func (a chats) chatter(r *rest.Request) (actor.Actor, error) {
	credential := bearer(r.Request)
	if !sessions.IsChat(credential) {
		return a.Authenticate(r.Request)
	}
	v, err := a.Sessions.Unchecked().Chatter(r.Context(), credential, actor.OriginOf(r.Context()).Address)
	var refused error
	who, err := a.admit(r, v, err, func(ctx context.Context, id string) (string, error) {
		if _, refused = a.AIInstructions.Allowed(ctx); refused != nil {
			return "", refused
		}
		return a.Assistants.CheckShare(ctx, id)
	})
	if refused != nil {
		return actor.Actor{}, refused
	}
	r.Admitted = err == nil // who talks, although such a caller can only read
	return who, err
}

// viewerOf returns the caller of a request below a view token.
func (a views) viewerOf(r *rest.Request, claims view.Claims) (actor.Actor, error) {
	switch from := actor.OriginOf(r.Context()).Address; claims.Scope {
	case view.Visitor:
		v, err := a.Sessions.Unchecked().ResumeVisitor(r.Context(), claims.Tenant, claims.Credential, from)
		return a.admit(r, v, err, a.Apps.CheckShare)
	case view.Hosted:
		return a.resume(r, claims.Tenant, claims.User)
	default:
		return a.Sessions.Unchecked().Resume(r.Context(), claims.Tenant, claims.Credential, from)
	}
}

// admit sets the visitor of a request, and returns the inviter. sharable returns the id of the app
// or assistant of the request if the inviter may share it. Errors: errs.Unauthenticated, the same
// for every reason: there is no such visitor, the token is of another app, or the inviter may not
// share this one, which may not be there.
func (a views) admit(
	r *rest.Request, v sessions.Visitor, err error,
	sharable func(ctx context.Context, id string) (string, error),
) (actor.Actor, error) {
	who := v.Inviter
	if err == nil && a.Resume != nil {
		who, err = a.resume(r, v.Inviter.Tenant, v.Inviter.User)
	}
	if err == nil && a.Resume == nil && a.noLogins {
		err = errs.New(errs.Unauthenticated, "the host does not say what the user may do who has made the token")
	}
	app := ""
	if err == nil {
		app, err = sharable(actor.With(r.Context(), who), r.Param("id"))
	}
	switch errs.CodeOf(err) {
	case errs.Unauthenticated, errs.NotFound, errs.Forbidden, errs.Invalid:
		return actor.Actor{}, notInvited(err)
	}
	if err != nil {
		return actor.Actor{}, err
	}
	if app != v.App {
		return actor.Actor{}, notInvited(nil)
	}
	visitOf(r).visitor = &v
	who.ReadOnly, who.Token = true, v.Token
	return who, nil
}

func notInvited(cause error) error {
	return errs.Wrap(errs.Unauthenticated, cause, "The link or token is not valid or has expired. Ask for another one.")
}

// resume returns the actor of a user whom the host has authenticated before. Errors:
// errs.Unauthenticated.
func (a views) resume(r *rest.Request, tenant, username string) (actor.Actor, error) {
	if a.Resume == nil {
		return actor.Actor{}, notViewer()
	}
	who, err := a.Resume(r.Context(), tenant, username)
	if err == nil && (who.Tenant != tenant || who.User != username) {
		err = errs.New(errs.Unauthenticated, "The user has changed: open the app again.")
	}
	return who, err
}

// viewClaims returns the claims of a view token for the caller of a request that opens a page of an
// app. Errors: errs.Forbidden.
func (a views) viewClaims(r *rest.Request, v apps.Viewed, role string) (view.Claims, error) {
	under, err := a.under(r.Context(), v)
	if err != nil {
		return view.Claims{}, err
	}
	claims := view.Claims{
		Tenant: r.Who.Tenant, App: v.ID, User: r.Who.User,
		Role: role, Scope: view.Viewer, Credential: sessions.Credential(r.Who),
		Under: under, Expires: a.Now().Add(view.Lifetime),
	}
	switch {
	case visitOf(r).visitor != nil:
		claims.Scope, claims.User, claims.Credential = view.Visitor, "", visitOf(r).visitor.Token
	case claims.Credential != "":
	case a.Resume != nil:
		claims.Scope = view.Hosted
	default:
		return view.Claims{}, errs.New(
			errs.Forbidden,
			"The view of an app needs a session or an API token of this service, or a host that sets Resume "+
				"beside Authenticate.",
		)
	}
	return claims, nil
}

// preflight replies to the CORS preflight of a page at an opaque origin, below its view token: it
// allows every method, and all headers but credentials, so that the page can read why a request is
// refused. The other headers of a view are set already.
func preflight() rest.Reply {
	return rest.Reply{Status: http.StatusOK, Header: map[string]string{
		"Access-Control-Allow-Methods": "GET, HEAD, POST, PUT, PATCH, DELETE",
		"Access-Control-Allow-Headers": "*", "Access-Control-Max-Age": "7200",
	}}
}
