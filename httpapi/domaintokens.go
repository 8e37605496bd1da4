package httpapi

import (
	"cmp"

	"github.com/tenantcontent/tenantcontent/internal/rest"
	"github.com/tenantcontent/tenantcontent/internal/rest/openapi"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/sessions"
)

// domainTokenRoutes serves the tokens of domains, for SCIM.
type domainTokenRoutes struct{ *api }

// routes returns the rows of the tokens with which providers of identities keep the users of
// domains: see scimRoutes.
func (a domainTokenRoutes) routes() []rest.Route {
	const all = "/api/domains/:id/tokens"
	n := a.domainTokens()
	return []rest.Route{
		{
			Method:     get,
			Pattern:    all,
			Name:       "listDomainTokens",
			Grants:     credentials,
			Secret:     true,
			Permission: actor.SuperuserRead,
			Query:      paged,
			Summary:    "The tokens of a domain for SCIM",
			Gives:      openapi.OK(openapi.Page[tokenBody]("inf:token")),
			Fails:      []int{403},
			Handle:     n.list,
		},
		{
			Method:     post,
			Pattern:    all,
			Name:       "createDomainToken",
			Grants:     credentials,
			Secret:     true,
			Permission: actor.Superuser,
			Writes:     rest.InTx,
			Summary:    "Make a token of a domain for SCIM",
			Takes:      openapi.Input[tokenInput](),
			Gives:      openapi.Created(openapi.One[newToken]()),
			Fails:      []int{400, 403, 404},
			Handle:     a.createDomainToken,
		},
		{
			Method:     get,
			Pattern:    all + "/:tokenId",
			Name:       "getDomainToken",
			Grants:     credentials,
			Secret:     true,
			Permission: actor.SuperuserRead,
			Summary:    "One token of a domain for SCIM",
			Gives:      openapi.OK(openapi.One[tokenBody]()),
			Handle:     n.get,
		},
		{
			Method:     del,
			Pattern:    all + "/:tokenId",
			Name:       "deleteDomainToken",
			Grants:     credentials,
			Row:        "domain-token",
			Permission: actor.Superuser,
			Writes:     rest.InTx,
			Options:    rest.NoOptions{},
			Summary:    "Revoke a token of a domain for SCIM",
			Gives:      openapi.OK(openapi.None()),
			Fails:      []int{404},
			Handle:     n.remove,
		},
	}
}

func (a domainTokenRoutes) domainTokens() tokened {
	return tokened{api: a.api, plural: "domains", kind: string(sessions.DomainKind), tokenType: sessions.SCIM}
}

// createDomainToken serves POST /api/domains/{id}/tokens {type: "scim", notes, expiresAt, restrict,
// cidr}: 201 and the token with its key, which cannot be read again. A provider of identities keeps
// the users and groups of the domain with it, below /api/scim/v2, and nothing else. A domain can
// have several, so that one can take the place of another. 400 for a member that is not known, and
// for the domain local; 403 for a caller with a token; 404; 409 for a domain whose directory is
// scanned.
func (a domainTokenRoutes) createDomainToken(r *rest.Request) (rest.Reply, error) {
	in, err := rest.Decode[tokenInput](r)
	if err != nil {
		return rest.Reply{}, err
	}
	n := a.domainTokens()
	made, err := in.token(n.tokenType)
	if err != nil {
		return rest.Reply{}, err
	}
	t, key, err := a.Sessions.CreateToken(r.Context(), n.of(r), made)
	if err != nil {
		return rest.Reply{}, err
	}
	d, err := a.Domains.Get(r.Context(), t.Entity.ID)
	if err != nil {
		return rest.Reply{}, err
	}
	name := &d.ID
	name = cmp.Or(d.Name, name)
	return n.made(r, t, key, entity.Ref{Name: *name}, n.links(t).With("inf:scim", a.scimHref()))
}
