package cli

import (
	"cmp"
	"context"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/paging"
)

type domainListCommand struct {
	storage
	Tenant string `default:"default" help:"Id of the tenant." placeholder:"ID"`
}

func (l *domainListCommand) Run(ctx context.Context, t terminal) error {
	return l.with(ctx, t, func(app *tenantcontent.App) error {
		if _, err := app.Tenants.Unchecked().Lookup(ctx, l.Tenant); err != nil {
			return err
		}
		ctx := actor.With(ctx, actor.Actor{Tenant: l.Tenant, User: "*", Superuser: true})
		all, err := paging.Collect(app.Domains.All(ctx))
		if err != nil {
			return err
		}
		rows := [][]string{{"ID", "TYPE", "NAME", "LAST SCAN", "NEXT SCAN", "SCHEDULE"}}
		for _, d := range all {
			name, scanned, next := "", "-", "-"
			if d.Name != nil {
				name = harmless(*d.Name)
			}
			if d.ScannedAt != nil {
				scanned = second(*d.ScannedAt)
			}
			schedule := app.Domains.Unchecked().Schedule(d)
			if schedule != "" {
				at, err := app.Domains.NextScan(ctx, d.ID)
				if err != nil {
					return err
				}
				if at != nil {
					next = second(*at)
				}
			}
			rows = append(rows, []string{d.ID, d.Type, name, scanned, next, cmp.Or(harmless(schedule), "-")})
		}
		return table(t, rows)
	})
}
