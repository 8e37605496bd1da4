package httpapi

import (
	"context"
	"net/url"
	"slices"

	"github.com/tenantcontent/tenantcontent/internal/rest"
	"github.com/tenantcontent/tenantcontent/internal/rest/openapi"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/apps"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/hal"
	"github.com/tenantcontent/tenantcontent/sessions"
)

// appTokenRoutes serves the tokens of apps and the pages that they open.
type appTokenRoutes struct{ *api }

// routes returns the rows of the tokens that show apps to visitors, unless the host keeps apps
// itself.
func (a appTokenRoutes) routes() []rest.Route {
	if slices.Contains(a.HostKinds, apps.Kind) {
		return nil
	}
	const all = "/api/apps/:id/tokens"
	n := a.appTokens()
	return []rest.Route{
		{
			Method:  get,
			Pattern: all,
			Name:    "listAppTokens",
			Grants:  credentials,
			Secret:  true,
			Query:   paged,
			Summary: "The tokens that show an app to visitors",
			Gives:   openapi.OK(openapi.Page[tokenBody]("inf:token")),
			Fails:   []int{400, 403, 404},
			Handle:  n.list,
		},
		{
			Method:  post,
			Pattern: all,
			Name:    "createAppToken",
			Grants:  credentials,
			Secret:  true,
			Writes:  rest.InTx,
			Summary: "Make a token that shows an app to visitors",
			Takes:   openapi.Input[appTokenInput](),
			Gives:   openapi.Created(openapi.One[newToken]()),
			Fails:   []int{400, 403, 404},
			Handle:  a.createAppToken,
		},
		{
			Method:  get,
			Pattern: all + "/:tokenId",
			Name:    "getAppToken",
			Grants:  credentials,
			Secret:  true,
			Summary: "One token that shows an app to visitors",
			Gives:   openapi.OK(openapi.One[tokenBody]()),
			Fails:   []int{404},
			Handle:  n.get,
		},
		{
			Method:  del,
			Pattern: all + "/:tokenId",
			Name:    "deleteAppToken",
			Grants:  credentials,
			Row:     "app-token",
			Writes:  rest.InTx,
			Options: rest.NoOptions{},
			Summary: "Revoke a token that shows an app to visitors",
			Gives:   openapi.OK(openapi.None()),
			Fails:   []int{404},
			Handle:  n.remove,
		},
	}
}

// tokened is the receiver of the handlers of the tokens of one noun.
type tokened struct {
	*api
	plural, kind string
	tokenType    string
}

// of returns the type and the entity of the tokens that a request names.
func (n tokened) of(r *rest.Request) sessions.TokensOf {
	return sessions.TokensOf{Type: n.tokenType, EntityID: r.Param("id")}
}

func (a appTokenRoutes) appTokens() tokened {
	return tokened{api: a.api, plural: "apps", kind: string(apps.Kind), tokenType: sessions.AppView}
}

func (n tokened) token(who actor.Actor, t sessions.Token) hal.Resource {
	return hal.Resource{Links: n.links(t), Value: newTokenBody(who, t), Row: t}
}

func (n tokened) links(t sessions.Token) hal.Links {
	return hal.Self(n.href(
		n.plural, t.Entity.ID, "tokens", t.ID,
	)).With(
		"inf:"+n.kind+"-tokens", n.href(n.plural, t.Entity.ID, "tokens"),
	).With("inf:"+n.kind, n.href(n.plural, t.Entity.ID))
}

// list serves GET /api/{plural}/{id}/tokens: 200 and a page of the tokens, newest first, without
// their keys; 400 for a draft; 403 without the permission share; 404.
func (n tokened) list(r *rest.Request) (rest.Reply, error) {
	q, err := r.Page(100)
	if err != nil {
		return rest.Reply{}, err
	}
	page, err := n.Sessions.Tokens(r.Context(), n.of(r), q)
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.OK(rest.Collection(n.BaseURL, r, q, page, "inf:token", nil, func(t sessions.Token) hal.Resource {
		return n.token(r.Who, t)
	}))
}

// get serves GET /api/{plural}/{id}/tokens/{tokenId}: 200 and the token without its key; 400 for a
// draft; 403; 404.
func (n tokened) get(r *rest.Request) (rest.Reply, error) {
	t, err := n.Sessions.Token(r.Context(), n.of(r), r.Param("tokenId"))
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.OK(n.token(r.Who, t))
}

// remove serves DELETE /api/{plural}/{id}/tokens/{tokenId}: 200; the token and what was opened with
// it are worth nothing from now on; 400 for a draft; 403; 404.
func (n tokened) remove(r *rest.Request) (rest.Reply, error) {
	if err := n.Sessions.DeleteToken(r.Context(), n.of(r), r.Param("tokenId")); err != nil {
		return rest.Reply{}, err
	}
	return rest.Done()
}

// made encodes a new token with its key and the entity that it is for.
func (n tokened) made(
	r *rest.Request, t sessions.Token, key string, of entity.Ref, links hal.Links,
) (rest.Reply, error) {
	creator, err := tokenRoutes{n.api}.tokenCreator(r)
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.Created(links["self"].Href, hal.Resource{Links: links, Value: newToken{
		tokenBody: newTokenBody(r.Who, t), Key: key, Resource: &of.Name, User: creator,
	}})
}

// appTokenInput is a new token for a share of an app.
type appTokenInput struct {
	tokenInput
	Roles rest.Field[[]string] `json:"roles"`
}

// createAppToken serves POST /api/apps/{id}/tokens {roles, notes, expiresAt, restrict, cidr}: 201
// and the token with its key, which cannot be read again; data has the roles, and the calls that
// the manifest allows now, which are the most that the link ever allows. _links.share is the
// complete link for visitors. 400 for a member that is not known, for a role that the app's
// manifest does not have, and for a draft; 403 without the permission share, and for a caller with
// a token; 404; 409 for a manifest that cannot be read.
func (a appTokenRoutes) createAppToken(r *rest.Request) (rest.Reply, error) {
	in, err := rest.Decode[appTokenInput](r)
	if err != nil {
		return rest.Reply{}, err
	}
	n := a.appTokens()
	made, err := in.token(n.tokenType)
	if err != nil {
		return rest.Reply{}, err
	}
	in.Roles.Apply(&made.Roles)
	if made.Access, err = a.accessOf(r.Context(), r.Param("id")); err != nil {
		return rest.Reply{}, err
	}
	t, key, err := a.Sessions.CreateToken(r.Context(), n.of(r), made)
	if err != nil {
		return rest.Reply{}, err
	}
	app, err := a.Apps.Ref(r.Context(), t.Entity.ID)
	if err != nil {
		return rest.Reply{}, err
	}
	return n.made(
		r, t, key, app,
		n.links(t).With("share", a.href("apps", t.Entity.ID, "share")+"?token="+url.QueryEscape(key)),
	)
}

// accessOf returns the rules of the manifest that an app has now, which its sharers keep in tokens.
func (a appTokenRoutes) accessOf(ctx context.Context, id string) ([]string, error) {
	v, err := a.Apps.ViewOfVisitor(ctx, id, nil)
	if err != nil {
		return nil, err
	}
	rules := make([]string, len(v.Manifest.Access))
	for i, rule := range v.Manifest.Access {
		rules[i] = rule.String()
	}
	return rules, nil
}
