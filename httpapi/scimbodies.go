package httpapi

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/tenantcontent/tenantcontent/hal"
	"github.com/tenantcontent/tenantcontent/internal/directory/scim"
	"github.com/tenantcontent/tenantcontent/internal/rest"
)

// The query parameters of SCIM.
var (
	scimSelected = []string{"attributes", "excludedAttributes"}
	scimListed   = append([]string{"filter", "sortBy", "sortOrder", "startIndex", "count"}, scimSelected...)
)

// The shapes of SCIM (RFC 7643 and 7644), which are encoded as maps: a client selects attributes.

// scimMetaBody describes a resource.
type scimMetaBody struct {
	ResourceType string    `json:"resourceType"`
	Created      *hal.Time `json:"created,omitempty"`
	LastModified *hal.Time `json:"lastModified,omitempty"`
	Location     string    `json:"location,omitempty"`
	Version      string    `json:"version,omitempty"`
}

// scimUserBody is a user of a domain.
type scimUserBody struct {
	Schemas     []string        `json:"schemas"`
	ID          string          `json:"id"`
	UserName    string          `json:"userName,omitempty"`
	Active      bool            `json:"active,omitempty"`
	ExternalID  string          `json:"externalId,omitempty"`
	DisplayName string          `json:"displayName,omitempty"`
	Timezone    string          `json:"timezone,omitempty"`
	Name        *scimNameBody   `json:"name,omitempty"`
	Emails      []scimEmailBody `json:"emails,omitempty"`
	Groups      []scimRefBody   `json:"groups,omitempty"`
	Meta        *scimMetaBody   `json:"meta,omitempty"`
}

// scimNameBody is the name of a user.
type scimNameBody struct {
	Formatted  string `json:"formatted,omitempty"`
	GivenName  string `json:"givenName,omitempty"`
	MiddleName string `json:"middleName,omitempty"`
	FamilyName string `json:"familyName,omitempty"`
}

// scimEmailBody is an address of a user.
type scimEmailBody struct {
	Value   string `json:"value,omitempty"`
	Type    string `json:"type,omitempty"`
	Primary bool   `json:"primary,omitempty"`
}

// scimRefBody is a member of a group, or a group of a user.
type scimRefBody struct {
	Value   string `json:"value,omitempty"`
	Ref     string `json:"$ref,omitempty"`
	Display string `json:"display,omitempty"`
	Type    string `json:"type,omitempty"`
}

// scimGroupBody is a group of a domain.
type scimGroupBody struct {
	Schemas     []string      `json:"schemas"`
	ID          string        `json:"id"`
	DisplayName string        `json:"displayName,omitempty"`
	ExternalID  string        `json:"externalId,omitempty"`
	Members     []scimRefBody `json:"members,omitempty"`
	Meta        *scimMetaBody `json:"meta,omitempty"`
}

// scimPageBody is the position of a page in its list.
type scimPageBody struct {
	Schemas      []string `json:"schemas"`
	TotalResults int      `json:"totalResults"`
	StartIndex   int      `json:"startIndex"`
	ItemsPerPage int      `json:"itemsPerPage"`
}

// scimUsersBody is a page of users.
type scimUsersBody struct {
	scimPageBody
	Resources []scimUserBody `json:"Resources"`
}

// scimGroupsBody is a page of groups.
type scimGroupsBody struct {
	scimPageBody
	Resources []scimGroupBody `json:"Resources"`
}

// scimTypeBody is a type of resources.
type scimTypeBody struct {
	Schemas []string `json:"schemas"`
	scim.Type
	Meta scimMetaBody `json:"meta"`
}

// scimTypesBody has all types of resources.
type scimTypesBody struct {
	scimPageBody
	Resources []scimTypeBody `json:"Resources"`
}

// scimSchemaBody is a schema.
type scimSchemaBody struct {
	Schemas []string `json:"schemas"`
	scim.Schema
	Meta scimMetaBody `json:"meta"`
}

// scimSchemasBody has all schemas.
type scimSchemasBody struct {
	scimPageBody
	Resources []scimSchemaBody `json:"Resources"`
}

// scimConfigBody is what the service supports.
type scimConfigBody struct {
	Schemas               []string             `json:"schemas"`
	DocumentationURI      string               `json:"documentationUri"`
	Patch                 scimSupportedBody    `json:"patch"`
	Sort                  scimSupportedBody    `json:"sort"`
	Etag                  scimSupportedBody    `json:"etag"`
	ChangePassword        scimSupportedBody    `json:"changePassword"`
	Bulk                  scimBulkBody         `json:"bulk"`
	Filter                scimFilterBody       `json:"filter"`
	AuthenticationSchemes []scimCredentialBody `json:"authenticationSchemes"`
	Meta                  scimMetaBody         `json:"meta"`
}

type scimSupportedBody struct {
	Supported bool `json:"supported"`
}

type scimBulkBody struct {
	Supported      bool `json:"supported"`
	MaxOperations  int  `json:"maxOperations"`
	MaxPayloadSize int  `json:"maxPayloadSize"`
}

type scimFilterBody struct {
	Supported  bool `json:"supported"`
	MaxResults int  `json:"maxResults"`
}

type scimCredentialBody struct {
	Type        string `json:"type"`
	Name        string `json:"name"`
	Primary     bool   `json:"primary"`
	Description string `json:"description"`
}

// scimUserInput is a user as a provider sends it.
type scimUserInput struct {
	Schemas     []string        `json:"schemas"`
	UserName    *string         `json:"userName"`
	Active      json.RawMessage `json:"active"`
	ExternalID  *string         `json:"externalId"`
	DisplayName *string         `json:"displayName"`
	Timezone    *string         `json:"timezone"`
	Name        json.RawMessage `json:"name"`
	Emails      json.RawMessage `json:"emails"`
}

// scimGroupInput is a group as a provider sends it.
type scimGroupInput struct {
	Schemas     []string        `json:"schemas"`
	DisplayName *string         `json:"displayName"`
	ExternalID  *string         `json:"externalId"`
	Members     json.RawMessage `json:"members"`
}

// scimPatchInput are changes of a resource.
type scimPatchInput struct {
	Schemas    []string             `json:"schemas"`
	Operations []scimOperationInput `json:"Operations"`
}

// scimOperationInput is a change of a resource.
type scimOperationInput struct {
	Op    string          `json:"op"`
	Path  *string         `json:"path"`
	Value json.RawMessage `json:"value"`
}

// scimProblemBody is the body of a failure of SCIM.
type scimProblemBody struct {
	Schemas  []string       `json:"schemas"`
	Status   string         `json:"status"`
	SCIMType scim.ErrorType `json:"scimType,omitempty"`
	Detail   string         `json:"detail"`
}

// setTexts sets members of an object that are not "".
func setTexts(body map[string]any, texts map[string]string) {
	for name, text := range texts {
		if text != "" {
			body[name] = text
		}
	}
}

// reply answers with a resource. A client that has it already gets 304.
func (s scimResource) reply(a *api, r *rest.Request, status int, of scim.Selection) (rest.Reply, error) {
	header := map[string]string{"Content-Type": typeSCIM, "Etag": s.tag(), "Location": a.scimHref(s.kind, s.id)}
	if rest.IsRead(r.Method) && r.Conditions != nil && r.Conditions.NoneMatch != nil &&
		(r.Conditions.NoneMatch.Any || slices.ContainsFunc(r.Conditions.NoneMatch.List, func(t string) bool {
			return weakly(t) == s.version
		})) {
		return rest.Reply{Status: http.StatusNotModified, Header: header}, nil
	}
	of.Apply(s.body)
	return rest.Reply{Status: status, Header: header, Body: s.body}, nil
}

// weakly returns what is in the quotes of an entity tag.
func weakly(tag string) string { return strings.Trim(strings.TrimPrefix(tag, "W/"), `"`) }

// scimBody returns the JSON body of a write.
func scimBodyOf(r *rest.Request) ([]byte, error) {
	raw, err := r.JsonBody()
	if err == nil && raw == nil {
		err = rest.ValidJSON(nil)
	}
	return raw, err
}
