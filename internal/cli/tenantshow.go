package cli

import (
	"context"
	"fmt"

	"github.com/tenantcontent/tenantcontent"
)

type tenantShowCommand struct {
	storage
	ID string `arg:"" help:"Id of the tenant."`
}

func (s *tenantShowCommand) Run(ctx context.Context, t terminal) error {
	return s.with(ctx, t, func(app *tenantcontent.App) error {
		tenant, err := app.Tenants.Unchecked().Lookup(ctx, s.ID)
		if err != nil {
			return err
		}
		counts, err := app.Tenants.Unchecked().Counts(ctx, s.ID)
		if err != nil {
			return err
		}
		sources := make([]string, len(tenant.Settings.DeployFrom))
		for i, from := range tenant.Settings.DeployFrom {
			sources[i] = from.Tenant
		}
		rows := [][]string{
			{"id", tenant.ID}, {"name", harmless(tenant.Name)}, {"created", day(tenant.CreatedAt)},
			{"AI", map[bool]string{true: "on", false: "off"}[tenant.Settings.AI]},
			{"licenses", list(tenant.Settings.Licenses)},
			{"default domain", tenant.Settings.DefaultDomain}, {"deploys from", list(sources)},
		}
		for _, c := range counts {
			rows = append(rows, []string{c.Of, fmt.Sprint(c.N)})
		}
		return table(t, rows)
	})
}
