package cli

import (
	"context"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/tenants"
)

type tenantAddCommand struct {
	storage
	ID            string `arg:"" help:"Id: lower-case letters, digits and hyphens."`
	Name          string `help:"Name (default: the id)." placeholder:"NAME"`
	AdminPassword string `env:"TENANTCONTENT_ADMIN_PASSWORD" help:"Password of the superuser admin (default: a random one, printed once)." placeholder:"PASSWORD"`
}

func (a *tenantAddCommand) Run(ctx context.Context, t terminal) error {
	return a.with(ctx, t, func(app *tenantcontent.App) error {
		if err := app.Lock(ctx, "tenant add"); err != nil { // it encrypts
			return err
		}
		defer func() { _ = app.Unlock() }()
		generated, err := app.AddTenant(ctx, tenants.Tenant{ID: a.ID, Name: a.Name}, a.AdminPassword)
		if err != nil {
			return err
		}
		if generated == "" {
			return say(t, "Added the tenant %s with the superuser admin.", a.ID)
		}
		return say(t, "Added the tenant %s with the superuser admin, password %s (shown only now).", a.ID, generated)
	})
}
