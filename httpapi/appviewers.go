package httpapi

import (
	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/apps/view"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/sessions"
)

// viewerOf returns the viewer whom the claims of a view token name.
func (a *api) viewerOf(r *request, claims view.Claims) (actor.Actor, error) {
	return a.Sessions.Unchecked().Resume(r.Context(), claims.Tenant, claims.Credential, actor.OriginOf(r.Context()).Address)
}

// viewClaims returns the claims of a view token for the caller.
func (a *api) viewClaims(r *request, app, role string) (view.Claims, error) {
	credential := sessions.Credential(r.who)
	if credential == "" {
		return view.Claims{}, errs.New(errs.Forbidden, "The view of an app needs a session or an API token of this service.")
	}
	return view.Claims{
		Tenant: r.who.Tenant, App: app, Credential: credential, User: r.who.User, Role: role, Scope: view.Viewer, Expires: a.Now().Add(view.Lifetime),
	}, nil
}
