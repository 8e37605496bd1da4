package httpapi

import (
	"net/http"
	"net/url"
	"slices"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/apps"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/hal"
	"github.com/tenantcontent/tenantcontent/sessions"
)

// appTokenRoutes are the routes of the tokens that show apps to visitors, unless the host keeps apps itself.
func (a *api) appTokenRoutes() []Route {
	const get, post, del = http.MethodGet, http.MethodPost, http.MethodDelete
	if slices.Contains(a.HostKinds, apps.Kind) {
		return nil
	}
	const all = "/api/apps/:id/tokens"
	return []Route{
		{Method: get, Pattern: all, Name: "listAppTokens", Secret: true, Query: paged, Summary: "The tokens that show an app to visitors", handle: a.listAppTokens},
		{Method: post, Pattern: all, Name: "createAppToken", Secret: true, Tx: true, Summary: "Make a token that shows an app to visitors", handle: a.createAppToken},
		{Method: get, Pattern: all + "/:tokenId", Name: "getAppToken", Secret: true, Summary: "One token that shows an app to visitors", handle: a.getAppToken},
		{Method: get, Pattern: "/api/apps/:id/share", Name: "getAppSharePage", AnyType: true, View: true, Visitor: true, Summary: "The page of an app for visitors without an account", handle: a.getAppSharePage},
		{Method: del, Pattern: all + "/:tokenId", Name: "deleteAppToken", Row: "app-token", Tx: true, Options: noOptions{}, Summary: "Revoke a token that shows an app to visitors", handle: a.deleteAppToken},
	}
}

func (a *api) appToken(who actor.Actor, t sessions.Token) hal.Resource {
	return hal.Resource{Links: a.appTokenLinks(t), Value: newTokenBody(who, t), Row: t}
}

func (a *api) appTokenLinks(t sessions.Token) hal.Links {
	return hal.Self(a.href("apps", t.Entity.ID, "tokens", t.ID)).With("inf:app-tokens", a.href("apps", t.Entity.ID, "tokens")).With("inf:app", a.href("apps", t.Entity.ID))
}

// listAppTokens serves GET /api/apps/{id}/tokens: 200 and a page of the tokens that show an app to visitors, newest first, without
// their keys; 400 for a draft; 403 without the permission share; 404.
func (a *api) listAppTokens(r *request) (reply, error) {
	q, err := r.page(100)
	if err != nil {
		return reply{}, err
	}
	page, err := a.Sessions.AppTokens(r.Context(), r.param("id"), q)
	if err != nil {
		return reply{}, err
	}
	return ok(collection(a, r, q, page, "inf:token", nil, func(t sessions.Token) hal.Resource { return a.appToken(r.who, t) }))
}

// createAppToken serves POST /api/apps/{id}/tokens {roles, notes, expiresAt, restrict, cidr}: 201 and the token with its key, which
// cannot be read again; data has the roles. _links.share is the complete link for
// visitors. 400 for a member that is not known, for a role that the app's manifest does not have, and for a draft; 403 without the
// permission share, and for a caller with a token; 404; 409 for a manifest that cannot be read.
func (a *api) createAppToken(r *request) (reply, error) {
	in, err := decodeKnown[struct {
		Type      *string          `json:"type"`
		Roles     field[[]string]  `json:"roles"`
		Notes     field[string]    `json:"notes"`
		Restrict  field[string]    `json:"restrict"`
		CIDR      field[string]    `json:"cidr"`
		ExpiresAt field[timestamp] `json:"expiresAt"`
	}](r)
	if err != nil {
		return reply{}, err
	}
	if in.Type != nil && *in.Type != sessions.AppView {
		return reply{}, errs.New(errs.Invalid, `type must be "app-view"`)
	}
	n := sessions.NewToken{Notes: in.Notes.Value, Restrict: in.Restrict.Value, CIDR: in.CIDR.Value}
	if in.ExpiresAt.Value != nil {
		n.ExpiresAt = &in.ExpiresAt.Value.Time
	}
	var roles []string
	in.Roles.apply(&roles)
	t, key, err := a.Sessions.CreateAppToken(r.Context(), r.param("id"), n, roles)
	if err != nil {
		return reply{}, err
	}
	app, err := a.Apps.Ref(r.Context(), t.Entity.ID)
	if err != nil {
		return reply{}, err
	}
	creator, err := a.tokenCreator(r)
	if err != nil {
		return reply{}, err
	}
	links := a.appTokenLinks(t).With("share", a.href("apps", t.Entity.ID, "share")+"?token="+url.QueryEscape(key))
	return created(links["self"].Href, hal.Resource{Links: links, Value: newToken{
		tokenBody: newTokenBody(r.who, t), Key: key, Resource: &app.Name, User: creator,
	}})
}

// getAppToken serves GET /api/apps/{id}/tokens/{tokenId}: 200 and the token without its key; 400 for a draft; 403; 404.
func (a *api) getAppToken(r *request) (reply, error) {
	t, err := a.Sessions.AppToken(r.Context(), r.param("id"), r.param("tokenId"))
	if err != nil {
		return reply{}, err
	}
	return ok(a.appToken(r.who, t))
}

// deleteAppToken serves DELETE /api/apps/{id}/tokens/{tokenId}: 200; the token and the pages that were opened with it are worth nothing
// from now on; 400 for a draft; 403; 404.
func (a *api) deleteAppToken(r *request) (reply, error) {
	if err := a.Sessions.DeleteAppToken(r.Context(), r.param("id"), r.param("tokenId")); err != nil {
		return reply{}, err
	}
	return done()
}
