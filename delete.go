package tenantcontent

import "context"

// CheckDelete returns errs.Conflict, with what to do, if app.Tenants.Unchecked().Delete would leave
// SQL databases of apps of a tenant behind, since they are of another engine, or in another place,
// than those of Config.Workspaces.
func (app *App) CheckDelete(ctx context.Context, tenant string) error {
	_, err := app.workspaces.Reachable(ctx, tenant)
	return err
}
