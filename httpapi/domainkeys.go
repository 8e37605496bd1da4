package httpapi

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"

	"github.com/tenantcontent/tenantcontent/internal/rest"
	"github.com/tenantcontent/tenantcontent/internal/rest/openapi"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/hal"
)

// domainKeyRoutes serves the keys of domains.
type domainKeyRoutes struct{ *api }

// routes returns the rows of the route table.
func (a domainKeyRoutes) routes() []rest.Route {
	return []rest.Route{
		{
			Method:     get,
			Pattern:    "/api/domains/:id/keys",
			Name:       "getDomainKeys",
			Grants:     settings,
			Permission: actor.SuperuserRead,
			Summary:    "The certificates of a domain's keys",
			Gives:      openapi.OK(openapi.One[domainKeysBody]()),
			Fails:      []int{404},
			Handle:     a.getDomainKeys,
		},
		{
			Method:     post,
			Pattern:    "/api/domains/:id/keys/_roll",
			Name:       "rollDomainKeys",
			Grants:     settings,
			Permission: actor.Superuser,
			Options:    rest.NoOptions{},
			Summary:    "Take a step to another key of a domain",
			Gives:      openapi.OK(openapi.One[domainKeysBody]()),
			Fails:      []int{400},
			Handle:     a.rollDomainKeys,
		},
	}
}

// domainKeyBody is a key of a domain as the API writes it: what a provider may know.
type domainKeyBody struct {
	Use         string   `json:"use"` // current, next or previous
	Algorithm   string   `json:"algorithm"`
	Bits        int      `json:"bits"`
	Fingerprint string   `json:"fingerprint"` // SHA-256 of the certificate, in hexadecimal
	NotBefore   hal.Time `json:"notBefore"`
	NotAfter    hal.Time `json:"notAfter"`
	Certificate string   `json:"certificate"` // PEM
}

// getDomainKeys serves GET /api/domains/{id}/keys: 200 and the certificates of the domain's keys,
// for superusers: none where its driver wants none, and before the domain is saved. Private keys
// are never shown. 404.
func (a domainKeyRoutes) getDomainKeys(r *rest.Request) (rest.Reply, error) {
	return a.domainKeysReply(r)(a.Domains.DomainKeys(r.Context(), r.Param("id")))
}

// rollDomainKeys serves POST /api/domains/{id}/keys/_roll: 200 and the keys. The first call adds
// the next key, for the provider to read in the domain's metadata; the second one makes it the
// current one and keeps the one before for what is still encrypted for it. A domain without keys
// gets its first one. 400 where the domain's driver wants none; 404; 409 when somebody else changes
// the keys.
func (a domainKeyRoutes) rollDomainKeys(r *rest.Request) (rest.Reply, error) {
	return a.domainKeysReply(r)(a.Domains.RollKeys(r.Context(), r.Param("id")))
}

// domainKeysBody are the keys of a domain.
type domainKeysBody struct {
	Keys []domainKeyBody `json:"keys"`
}

// Relations implements openapi.Related.
func (domainKeysBody) Relations() openapi.Relations {
	return openapi.Relations{Links: []string{"inf:domain"}}
}

func (a domainKeyRoutes) domainKeysReply(r *rest.Request) func([]domains.KeyInfo, error) (rest.Reply, error) {
	return func(all []domains.KeyInfo, err error) (rest.Reply, error) {
		if err != nil {
			return rest.Reply{}, err
		}
		rows := make([]domainKeyBody, len(all))
		for i, k := range all {
			sum := sha256.Sum256(k.Certificate.Raw)
			rows[i] = domainKeyBody{
				k.Use, "RSA", k.Bits,
				hex.EncodeToString(sum[:]), hal.Time(k.Certificate.NotBefore), hal.Time(k.Certificate.NotAfter),
				string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: k.Certificate.Raw})),
			}
		}
		return rest.OK(hal.Resource{
			Links: hal.Self(a.href(
				"domains", r.Param("id"), "keys",
			)).With("inf:domain", a.href("domains", r.Param("id"))),
			Value: domainKeysBody{rows},
		})
	}
}
