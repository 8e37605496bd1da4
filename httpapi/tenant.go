package httpapi

import (
	"github.com/tenantcontent/tenantcontent/hal"
	"github.com/tenantcontent/tenantcontent/tenants"
)

// tenantBody is a tenant as the API writes it (DECISIONS, section 1).
type tenantBody struct {
	ID        string       `json:"id"`
	Name      string       `json:"name"`
	Settings  settingsBody `json:"settings"`
	CreatedAt hal.Time     `json:"createdAt"`
	UpdatedAt hal.Time     `json:"updatedAt"`
}

type settingsBody struct {
	AI struct {
		Enabled bool `json:"enabled"`
	} `json:"ai"`
	Licenses      []string `json:"licenses"`
	DefaultDomain string   `json:"defaultDomain"`
	DeployFrom    []string `json:"deployFrom"`
}

func (a *api) tenant(t tenants.Tenant) hal.Resource {
	body := tenantBody{ID: t.ID, Name: t.Name, CreatedAt: hal.Time(t.CreatedAt), UpdatedAt: hal.Time(t.UpdatedAt)}
	body.Settings.AI.Enabled = t.Settings.AI
	body.Settings.Licenses = append([]string{}, t.Settings.Licenses...)
	body.Settings.DefaultDomain = t.Settings.DefaultDomain
	body.Settings.DeployFrom = append([]string{}, t.Settings.DeployFrom...)
	return hal.Resource{Links: hal.Self(a.href("tenant")), Value: body}
}

// getTenant serves GET /api/tenant: 200 and the caller's tenant.
func (a *api) getTenant(r *request) (reply, error) {
	t, err := a.Tenants.Get(r.Context())
	if err != nil {
		return reply{}, err
	}
	return ok(a.tenant(t))
}

// putTenant serves PUT /api/tenant: 200 and the changed tenant; what the body leaves out stays.
func (a *api) putTenant(r *request) (reply, error) {
	in, err := decode[struct {
		Name     *string `json:"name"`
		Settings struct {
			AI struct {
				Enabled *bool `json:"enabled"`
			} `json:"ai"`
			Licenses      field[[]string] `json:"licenses"`
			DefaultDomain field[string]   `json:"defaultDomain"`
			DeployFrom    field[[]string] `json:"deployFrom"`
		} `json:"settings"`
	}](r)
	if err != nil {
		return reply{}, err
	}
	t, err := a.Tenants.Update(r.Context(), func(t *tenants.Tenant) error {
		if in.Name != nil {
			t.Name = *in.Name
		}
		if in.Settings.AI.Enabled != nil {
			t.Settings.AI = *in.Settings.AI.Enabled
		}
		in.Settings.Licenses.apply(&t.Settings.Licenses)
		in.Settings.DefaultDomain.apply(&t.Settings.DefaultDomain)
		in.Settings.DeployFrom.apply(&t.Settings.DeployFrom)
		return nil
	})
	if err != nil {
		return reply{}, err
	}
	return ok(a.tenant(t))
}
