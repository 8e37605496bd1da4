package httpapi

import (
	"encoding/json"

	"github.com/tenantcontent/tenantcontent/internal/rest"
	"github.com/tenantcontent/tenantcontent/internal/rest/openapi"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/hal"
	"github.com/tenantcontent/tenantcontent/internal/text/jsonfill"
	"github.com/tenantcontent/tenantcontent/principals"
	"github.com/tenantcontent/tenantcontent/sessions"
)

// tokenRoutes serves the caller's API tokens.
type tokenRoutes struct{ *api }

// routes returns the rows of the route table.
func (a tokenRoutes) routes() []rest.Route {
	return []rest.Route{
		{
			Method:  get,
			Pattern: "/api/tokens",
			Name:    "listTokens",
			Grants:  credentials,
			Secret:  true,
			Query:   paged,
			Summary: "The caller's API tokens",
			Gives:   openapi.OK(openapi.Page[tokenBody]("inf:token")),
			Fails:   []int{400},
			Handle:  a.listTokens,
		},
		{
			Method:  post,
			Pattern: "/api/tokens",
			Name:    "createToken",
			Grants:  credentials,
			Secret:  true,
			Writes:  rest.InTx,
			Summary: "Make an API token",
			Takes:   openapi.Input[newTokenInput](),
			Gives:   openapi.Created(openapi.One[newToken]()),
			Fails:   []int{400, 403},
			Handle:  a.createToken,
		},
		{
			Method:  get,
			Pattern: "/api/tokens/:id",
			Name:    "getToken",
			Grants:  credentials,
			Secret:  true,
			Summary: "One of the caller's API tokens",
			Gives:   openapi.OK(openapi.One[tokenBody]()),
			Fails:   []int{404},
			Handle:  a.getToken,
		},
		{
			Method:  del,
			Pattern: "/api/tokens/:id",
			Name:    "deleteToken",
			Grants:  credentials,
			Row:     "token",
			Writes:  rest.InTx,
			Options: rest.NoOptions{},
			Summary: "Revoke an API token",
			Gives:   openapi.OK(openapi.None()),
			Fails:   []int{404},
			Handle:  a.deleteToken,
		},
	}
}

// tokenBody is a Token as the API writes it. Of the columns for an entity, that of the one which
// the token is for is not null.
type tokenBody struct {
	ID             string               `json:"id"`
	Type           string               `json:"type"`
	Tenant         string               `json:"tenant"`
	Username       string               `json:"username"`
	ReadOnly       bool                 `json:"readOnly"`
	Notes          *string              `json:"notes"`
	Restrict       *string              `json:"restrict"`
	Host           *string              `json:"host"`
	CIDR           *string              `json:"cidr"`
	Data           json.RawMessage      `json:"data"`
	Requests       int64                `json:"requests"`
	Blocked        int64                `json:"blocked"`
	LastAccessedAt *hal.Time            `json:"lastAccessedAt"`
	ExpiresAt      *hal.Time            `json:"expiresAt"`
	AppID          *string              `json:"appId"`
	ReportID       *string              `json:"reportId"`
	QueryID        *string              `json:"queryId"`
	VisualID       *string              `json:"visualId"`
	DatasourceID   *string              `json:"datasourceId"`
	DatasetID      *string              `json:"datasetId"`
	AssistantID    *string              `json:"assistantId"`
	OAuthClientID  *string              `json:"oauthClientId"`
	Assistant      *struct{}            `json:"assistant"`
	OAuthClient    *struct{}            `json:"oauthClient"`
	CreatedAt      hal.Time             `json:"createdAt"`
	UpdatedAt      hal.Time             `json:"updatedAt"`
	Permissions    tokenPermissionsBody `json:"permissions"`
}

type tokenPermissionsBody struct {
	Edit   bool `json:"edit"`
	Delete bool `json:"delete"`
}

// Relations implements openapi.Related.
func (tokenBody) Relations() openapi.Relations {
	return openapi.Relations{
		Links: []string{
			"inf:app", "inf:app-tokens", "inf:assistant", "inf:assistant-tokens", "inf:domain",
			"inf:domain-tokens", "inf:tokens",
		},
	}
}

func (a tokenRoutes) token(who actor.Actor, t sessions.Token) hal.Resource {
	return hal.Resource{
		Links: hal.Self(a.href("tokens", t.ID)).With("inf:tokens", a.href("tokens")),
		Value: newTokenBody(who, t),
		Row:   t,
	}
}

func newTokenBody(who actor.Actor, t sessions.Token) tokenBody {
	body := tokenBody{
		ID: t.ID, Type: t.Type, Tenant: who.Tenant, Username: t.Username, ReadOnly: t.ReadOnly, Notes: t.Notes,
		Restrict: t.Restrict, Host: t.Host, CIDR: t.CIDR, Data: t.Data, Requests: t.Requests, Blocked: t.Blocked,
		LastAccessedAt: hal.OrNull(t.LastAccessedAt), ExpiresAt: hal.OrNull(t.ExpiresAt),
		CreatedAt: hal.Time(t.CreatedAt), UpdatedAt: hal.Time(t.UpdatedAt),
	}
	switch t.Entity.Kind {
	case sessions.AppKind:
		body.AppID = &t.Entity.ID
	case sessions.AssistantKind:
		body.AssistantID = &t.Entity.ID
	}
	if body.Data == nil {
		body.Data = json.RawMessage("null")
	}
	body.Permissions.Delete = !who.ReadOnly // who sees a token may revoke it; nobody can edit one
	return body
}

// newToken is a Token as the answer to its creation has it.
type newToken struct {
	tokenBody
	Key      string       `json:"key"`      // the credential, which cannot be read again
	Resource *string      `json:"resource"` // name of what the token is for; null for a personal one
	User     tokenCreator `json:"user"`
}

// Relations implements openapi.Related.
func (newToken) Relations() openapi.Relations {
	return openapi.Relations{
		Links: []string{
			"inf:app", "inf:app-hook", "inf:app-tokens", "inf:app-webhook-tokens", "inf:assistant",
			"inf:assistant-tokens", "inf:domain", "inf:domain-tokens", "inf:scim", "share",
		},
		Embeds: openapi.Embeds{"inf:app": openapi.One[appBody]()},
	}
}

type tokenCreator struct {
	DisplayName *string             `json:"displayName"`
	Email       *string             `json:"email"`
	Permissions userPermissionsBody `json:"permissions"`
}

// tokenCreator returns the caller, who makes a token.
func (a tokenRoutes) tokenCreator(r *rest.Request) (tokenCreator, error) {
	u, err := a.Principals.User(r.Context(), r.Who.User)
	return tokenCreator{u.DisplayName, u.Email, userPermissionsBody(principals.UserPermissionsOf(r.Who, u))}, err
}

// tokenInput is what the body of a request for a token may have, whatever the token is for.
type tokenInput struct {
	Type      *string                        `json:"type"`
	Notes     rest.Field[string]             `json:"notes"`
	Restrict  rest.Field[string]             `json:"restrict"`
	CIDR      rest.Field[string]             `json:"cidr"`
	ExpiresAt rest.Field[jsonfill.Timestamp] `json:"expiresAt"`
}

// token returns the token to make, which has a type. Errors: errs.Invalid for another one in the
// body.
func (in tokenInput) token(ofType string) (sessions.NewToken, error) {
	if in.Type != nil && *in.Type != ofType {
		return sessions.NewToken{}, errs.New(errs.Invalid, "type must be %q", ofType)
	}
	n := sessions.NewToken{Notes: in.Notes.Value, Restrict: in.Restrict.Value, CIDR: in.CIDR.Value}
	if in.ExpiresAt.Value != nil {
		n.ExpiresAt = &in.ExpiresAt.Value.Time
	}
	return n, nil
}

// ownTokens names the caller's personal tokens.
var ownTokens = sessions.TokensOf{Type: sessions.Personal}

// newTokenInput is a new token.
type newTokenInput struct {
	tokenInput
	ReadOnly bool `json:"readOnly"`
}

// createToken serves POST /api/tokens: 201 and the token with its key, which cannot be read again.
func (a tokenRoutes) createToken(r *rest.Request) (rest.Reply, error) {
	in, err := rest.Decode[newTokenInput](r)
	if err != nil {
		return rest.Reply{}, err
	}
	n, err := in.token(sessions.Personal)
	if err != nil {
		return rest.Reply{}, err
	}
	n.ReadOnly = in.ReadOnly
	t, key, err := a.Sessions.CreateToken(r.Context(), ownTokens, n)
	if err != nil {
		return rest.Reply{}, err
	}
	creator, err := a.tokenCreator(r)
	if err != nil {
		return rest.Reply{}, err
	}
	self := a.href("tokens", t.ID)
	return rest.Created(self, hal.Resource{
		Links: hal.Self(self),
		Value: newToken{tokenBody: newTokenBody(r.Who, t), Key: key, User: creator},
	})
}

// listTokens serves GET /api/tokens: 200 and a page of the caller's tokens, newest first, without
// their keys.
func (a tokenRoutes) listTokens(r *rest.Request) (rest.Reply, error) {
	q, err := r.Page(100)
	if err != nil {
		return rest.Reply{}, err
	}
	page, err := a.Sessions.Tokens(r.Context(), ownTokens, q)
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.OK(rest.Collection(a.BaseURL, r, q, page, "inf:token", nil, func(t sessions.Token) hal.Resource {
		return a.token(r.Who, t)
	}))
}

// getToken serves GET /api/tokens/{id}: 200 and one of the caller's tokens, without its key; 404.
func (a tokenRoutes) getToken(r *rest.Request) (rest.Reply, error) {
	t, err := a.Sessions.Token(r.Context(), ownTokens, r.Param("id"))
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.OK(a.token(r.Who, t))
}

// deleteToken serves DELETE /api/tokens/{id}: 200, and the token is worth nothing from now on; 404.
func (a tokenRoutes) deleteToken(r *rest.Request) (rest.Reply, error) {
	if err := a.Sessions.DeleteToken(r.Context(), ownTokens, r.Param("id")); err != nil {
		return rest.Reply{}, err
	}
	return rest.Done()
}
