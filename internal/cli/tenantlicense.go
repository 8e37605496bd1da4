package cli

import (
	"context"

	"github.com/tenantcontent/tenantcontent"
)

type tenantLicenseCommand struct {
	storage
	ID     string   `arg:"" help:"Id of the tenant."`
	Add    []string `help:"Licenses to add, such as apps, parted by commas." placeholder:"LICENSES"`
	Remove []string `help:"Licenses to remove, parted by commas." placeholder:"LICENSES"`
}

// Run changes the licenses of a tenant, if a flag is set, and shows them. A running server uses
// them at once.
func (l *tenantLicenseCommand) Run(ctx context.Context, t terminal) error {
	return l.with(ctx, t, func(app *tenantcontent.App) error {
		tenant, err := app.Tenants.Unchecked().Lookup(ctx, l.ID)
		if err == nil && len(l.Add)+len(l.Remove) > 0 {
			tenant, err = app.Tenants.Unchecked().ChangeLicenses(ctx, l.ID, l.Add, l.Remove)
		}
		if err != nil {
			return err
		}
		return table(t, [][]string{{"licenses", harmless(list(tenant.Settings.Licenses))}})
	})
}
