package cli

import (
	"context"

	"github.com/tenantcontent/tenantcontent"
)

type tenantListCommand struct {
	storage
}

func (l *tenantListCommand) Run(ctx context.Context, t terminal) error {
	return l.with(ctx, t, func(app *tenantcontent.App) error {
		all, err := app.Tenants.Unchecked().All(ctx)
		if err != nil {
			return err
		}
		rows := [][]string{{"ID", "NAME", "CREATED"}}
		for _, tenant := range all {
			rows = append(rows, []string{tenant.ID, harmless(tenant.Name), day(tenant.CreatedAt)})
		}
		return table(t, rows)
	})
}
