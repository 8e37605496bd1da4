package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/tenantcontent/tenantcontent/internal/rest"
	"github.com/tenantcontent/tenantcontent/internal/rest/openapi"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/hal"
	"github.com/tenantcontent/tenantcontent/internal/text/jsonfill"
	"github.com/tenantcontent/tenantcontent/tenants"
)

// tenantRoutes serves the caller's tenant.
type tenantRoutes struct{ *api }

// routes returns the rows of the route table.
func (a tenantRoutes) routes() []rest.Route {
	return []rest.Route{
		{
			Method:  get,
			Pattern: "/api/tenant",
			Name:    "getTenant",
			Grants:  settings,
			Summary: "The caller's tenant",
			Gives:   openapi.OK(openapi.One[tenantBody]()),
			Handle:  a.getTenant,
		},
		{
			Method:     put,
			Pattern:    "/api/tenant",
			Name:       "putTenant",
			Grants:     settings,
			Row:        "tenant",
			Permission: actor.Superuser,
			Writes:     rest.InTx,
			Summary:    "Change the tenant's name and settings",
			Takes:      openapi.Update[tenantInput, tenantBody](),
			Gives:      openapi.OK(openapi.One[tenantBody]()),
			Fails:      []int{400, 403},
			Handle:     a.putTenant,
		},
	}
}

// tenantBody is a tenant as the API writes it.
type tenantBody struct {
	ID        string       `json:"id"`
	Name      string       `json:"name"`
	Settings  settingsBody `json:"settings"`
	Storage   storageBody  `json:"storage"`
	CreatedAt hal.Time     `json:"createdAt"`
	UpdatedAt hal.Time     `json:"updatedAt"`
}

// Relations implements openapi.Related.
func (tenantBody) Relations() openapi.Relations { return openapi.Relations{} }

type settingsBody struct {
	AI            aiSettingsBody `json:"ai"`
	Licenses      []string       `json:"licenses"`
	DefaultDomain string         `json:"defaultDomain"`
	DeployFrom    sources        `json:"deployFrom"`
}

// aiSettingsBody says whether language models may be used.
type aiSettingsBody struct {
	Enabled bool `json:"enabled"`
}

// sources are the tenants that may deploy into another one: each an id, or {tenant, runAs} with the
// username of the owner of what they deploy.
type sources []tenants.Source

// sourceBody is a tenant that may deploy as a user.
type sourceBody struct {
	Tenant string `json:"tenant"`
	RunAs  string `json:"runAs"`
}

// sourceForm is an element of sources: an id or a sourceBody.
type sourceForm struct{}

// Either implements openapi.Either.
func (sourceForm) Either() []any { return []any{"", sourceBody{}} }

// Shape implements openapi.Shaper.
func (sources) Shape() any { return []sourceForm{} }

// MarshalJSON writes each as it was given.
func (s sources) MarshalJSON() ([]byte, error) {
	all := make([]any, len(s))
	for i, from := range s {
		all[i] = from.Tenant
		if from.RunAs != "" {
			all[i] = sourceBody(from)
		}
	}
	return hal.Append(nil, all)
}

func (s *sources) FillField(by *jsonfill.Filler, raw json.RawMessage, path string) error {
	var all []json.RawMessage
	if json.Unmarshal(raw, &all) != nil {
		return errs.New(errs.Invalid, "%s must be an array of tenant ids and of {tenant, runAs}", path)
	}
	*s = make(sources, len(all))
	for i, one := range all {
		from, at := &(*s)[i], fmt.Sprintf("%s[%d]", path, i)
		if json.Unmarshal(one, &from.Tenant) == nil && !jsonfill.IsNull(one) {
			continue
		}
		var given sourceBody
		if bytes.TrimSpace(one)[0] != '{' {
			return errs.New(errs.Invalid, "%s must be the id of a tenant, or {tenant, runAs} with a username", at)
		}
		if err := by.Fill(one, &given, at); err != nil {
			return err
		}
		if given.RunAs == "" && len(by.Unknown) == 0 { // which may be a misspelled runAs
			return errs.New(errs.Invalid, "%s.runAs must be the username of a user of the tenant", at)
		}
		*from = tenants.Source(given)
	}
	return nil
}

func (a tenantRoutes) tenant(ctx context.Context, t tenants.Tenant) (rest.Reply, error) {
	u, err := a.usage(ctx, t.ID)
	if err != nil {
		return rest.Reply{}, err
	}
	body := tenantBody{
		ID:        t.ID,
		Name:      t.Name,
		Storage:   storage(u),
		CreatedAt: hal.Time(t.CreatedAt),
		UpdatedAt: hal.Time(t.UpdatedAt),
	}
	body.Settings.AI.Enabled = t.Settings.AI
	body.Settings.Licenses = append([]string{}, t.Settings.Licenses...)
	body.Settings.DefaultDomain = t.Settings.DefaultDomain
	body.Settings.DeployFrom = t.Settings.DeployFrom
	return rest.OK(hal.Resource{Links: hal.Self(a.href("tenant")), Value: body, Row: t})
}

// getTenant serves GET /api/tenant: 200 and the caller's tenant, with what it stores and may store.
func (a tenantRoutes) getTenant(r *rest.Request) (rest.Reply, error) {
	t, err := a.Tenants.Get(r.Context())
	if err != nil {
		return rest.Reply{}, err
	}
	return a.tenant(r.Context(), t)
}

// tenantInput is the body of a write to the tenant.
type tenantInput struct {
	Name     *string       `json:"name"`
	Settings settingsInput `json:"settings"`
}

type settingsInput struct {
	AI            aiSettingsInput      `json:"ai"`
	Licenses      rest.Field[[]string] `json:"licenses"`
	DefaultDomain rest.Field[string]   `json:"defaultDomain"`
	DeployFrom    rest.Field[sources]  `json:"deployFrom"`
}

type aiSettingsInput struct {
	Enabled *bool `json:"enabled"`
}

// putTenant serves PUT /api/tenant: 200 and the changed tenant; what the body leaves out stays. 403
// for other licenses than the tenant has, unless superusers may set them.
func (a tenantRoutes) putTenant(r *rest.Request) (rest.Reply, error) {
	in, err := rest.DecodeUpdate[tenantInput](r, tenantBody{})
	if err != nil {
		return rest.Reply{}, err
	}
	t, err := a.Tenants.Update(r.Context(), func(t *tenants.Tenant) error {
		if in.Name != nil {
			t.Name = *in.Name
		}
		if in.Settings.AI.Enabled != nil {
			t.Settings.AI = *in.Settings.AI.Enabled
		}
		in.Settings.Licenses.Apply(&t.Settings.Licenses)
		in.Settings.DefaultDomain.Apply(&t.Settings.DefaultDomain)
		in.Settings.DeployFrom.Apply((*sources)(&t.Settings.DeployFrom))
		return nil
	})
	if err != nil {
		return rest.Reply{}, err
	}
	return a.tenant(r.Context(), t)
}
