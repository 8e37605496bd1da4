package httpapi

import (
	"encoding/json"
	"net/http"

	"github.com/tenantcontent/tenantcontent/internal/rest"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/directory/scim"
)

// getSCIMConfig serves GET /api/scim/v2/ServiceProviderConfig: 200 and what is supported: PATCH,
// filters, sorting and versions, but no bulk requests and no passwords.
func (a scimRoutes) getSCIMConfig(*rest.Request) (rest.Reply, error) {
	type supported struct {
		Supported bool `json:"supported"`
	}
	return scimReply(http.StatusOK, map[string]any{
		"schemas": []string{scim.ProviderSchema}, "documentationUri": "https://datatracker.ietf.org/doc/html/rfc7644",
		"patch": supported{true}, "sort": supported{true}, "etag": supported{true}, "changePassword": supported{false},
		"bulk":   map[string]any{"supported": false, "maxOperations": 0, "maxPayloadSize": 0},
		"filter": map[string]any{"supported": true, "maxResults": scim.MaxCount},
		"authenticationSchemes": []map[string]any{{
			"type": "oauthbearertoken", "name": "Bearer token", "primary": true,
			"description": "A token of a domain, which a superuser makes: POST /api/domains/{id}/tokens",
		}},
		"meta": map[string]any{
			"resourceType": "ServiceProviderConfig",
			"location":     a.scimHref("ServiceProviderConfig"),
		},
	})
}

// scimDocument encodes a schema or a type of resources with its place.
func (a scimRoutes) scimDocument(v any, schema, of, plural, id string) map[string]any {
	raw, _ := json.Marshal(v) // of texts and bools
	body := map[string]any{}
	_ = json.Unmarshal(raw, &body)
	body["schemas"] = []string{schema}
	body["meta"] = map[string]any{"resourceType": of, "location": a.scimHref(plural, id)}
	return body
}

func (a scimRoutes) scimTypes() (all []map[string]any) {
	for _, t := range scim.Types() {
		all = append(all, a.scimDocument(t, scim.TypeSchema, "ResourceType", "ResourceTypes", t.ID))
	}
	return all
}

func (a scimRoutes) scimSchemas() (all []map[string]any) {
	for _, s := range scim.Schemas() {
		all = append(all, a.scimDocument(s, scim.SchemaSchema, "Schema", "Schemas", s.ID))
	}
	return all
}

// oneOf replies with the document that has the id of the path.
func oneOf(r *rest.Request, all []map[string]any) (rest.Reply, error) {
	for _, one := range all {
		if one["id"] == r.Param("id") {
			return scimReply(http.StatusOK, one)
		}
	}
	return rest.Reply{}, errs.New(errs.NotFound, "There is no such resource.")
}

// listSCIMTypes serves GET /api/scim/v2/ResourceTypes: 200, User and Group.
func (a scimRoutes) listSCIMTypes(*rest.Request) (rest.Reply, error) {
	all := a.scimTypes()
	return scimReply(http.StatusOK, scimPage(all, len(all), 1))
}

// getSCIMType serves GET /api/scim/v2/ResourceTypes/{id}: 200; 404.
func (a scimRoutes) getSCIMType(r *rest.Request) (rest.Reply, error) { return oneOf(r, a.scimTypes()) }

// listSCIMSchemas serves GET /api/scim/v2/Schemas: 200 and the attributes of users and groups that
// this service keeps.
func (a scimRoutes) listSCIMSchemas(*rest.Request) (rest.Reply, error) {
	all := a.scimSchemas()
	return scimReply(http.StatusOK, scimPage(all, len(all), 1))
}

// getSCIMSchema serves GET /api/scim/v2/Schemas/{id}: 200; 404.
func (a scimRoutes) getSCIMSchema(r *rest.Request) (rest.Reply, error) {
	return oneOf(r, a.scimSchemas())
}
