package httpapi

import (
	"encoding/json"

	"github.com/tenantcontent/tenantcontent/internal/rest/openapi"

	"github.com/tenantcontent/tenantcontent/hal"
)

// domainDriverBody is a domain driver as the API writes it.
type domainDriverBody struct {
	ID              string         `json:"id"`
	Name            string         `json:"name"`
	Group           string         `json:"group"`
	Image           string         `json:"image,omitempty"`
	LoginComponent  string         `json:"loginComponent"`
	EditComponent   map[string]any `json:"editComponent,omitempty"`
	ScanComponent   map[string]any `json:"scanComponent,omitempty"`
	LoginMethod     string         `json:"loginMethod"`
	UsernameParam   *string        `json:"usernameParam"`
	PasswordParam   *string        `json:"passwordParam"`
	ManagesPassword bool           `json:"managesPassword"`
}

// Relations implements openapi.Related.
func (domainDriverBody) Relations() openapi.Relations {
	return openapi.Relations{Links: []string{"inf:domain", "inf:domain-drivers", "inf:scan"}}
}

// domainDefaults is the domain that a template makes.
type domainDefaults struct {
	Type     string            `json:"type"`
	Defaults map[string]string `json:"defaults"`
}

// domainTemplateBody is a template of domains.
type domainTemplateBody struct {
	Name   string         `json:"name"`
	Group  string         `json:"group"`
	Domain domainDefaults `json:"domain"`
}

// publicDomainRow is a domain as everybody sees it.
type publicDomainRow struct {
	ID     string     `json:"id"`
	Type   string     `json:"type"`
	Name   *string    `json:"name"`
	Public publicBody `json:"public"`
}

// Relations implements openapi.Related.
func (publicDomainRow) Relations() openapi.Relations {
	return openapi.Relations{
		Links:  []string{"inf:domains"},
		Embeds: openapi.Embeds{"inf:driver": openapi.One[domainDriverBody]()},
	}
}

// domainContentsRow is how many users and teams come from a domain.
type domainContentsRow struct {
	ID        string `json:"id"`
	UserCount int    `json:"userCount"`
	TeamCount int    `json:"teamCount"`
}

// domainPermissionsBody is what the caller may do with a domain.
type domainPermissionsBody struct {
	Edit   bool `json:"edit"`
	Delete bool `json:"delete"`
	Write  bool `json:"write"`
	Scan   bool `json:"scan"`
}

// domainRow is a row of the flat list of domains.
type domainRow struct {
	ID          string                `json:"id"`
	Name        *string               `json:"name"`
	Description *string               `json:"description"`
	Type        string                `json:"type"`
	Config      json.RawMessage       `json:"config"`
	CreatedAt   hal.Time              `json:"createdAt"`
	ScannedAt   *hal.Time             `json:"scannedAt"`
	UpdatedAt   hal.Time              `json:"updatedAt"`
	Default     bool                  `json:"default"`
	Permissions domainPermissionsBody `json:"permissions"`
}
