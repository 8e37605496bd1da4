package cli

import (
	"context"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/principals"
)

type userAddCommand struct {
	who
}

func (u *userAddCommand) Run(ctx context.Context, t terminal) error {
	return u.run(ctx, t, "Added the superuser %s to the tenant %s.", func(
		app *tenantcontent.App, password string,
	) error {
		_, err := app.Principals.Unchecked().AddSuperuser(ctx, principals.Credentials{
			Tenant: u.Tenant, Username: u.Username, Password: password,
		})
		return err
	})
}

type userPasswdCommand struct {
	who
}

func (u *userPasswdCommand) Run(ctx context.Context, t terminal) error {
	return u.run(ctx, t, "Set the password of %s in the tenant %s.", func(
		app *tenantcontent.App, password string,
	) error {
		return app.Principals.Unchecked().SetPassword(ctx, principals.Credentials{
			Tenant: u.Tenant, Username: u.Username, Password: password,
		})
	})
}

// who has a user and the source of a password.
type who struct {
	storage
	Username string `arg:"" help:"Username."`
	Tenant   string `default:"default" help:"Id of the tenant." placeholder:"ID"`
	Password string `env:"TENANTCONTENT_PASSWORD" help:"Password (default: asked for, or the first line of the input). Better set in the environment." placeholder:"PASSWORD"`
}

func (w *who) run(ctx context.Context, t terminal, done string, do func(*tenantcontent.App, string) error) error {
	password := w.Password
	if password == "" {
		var err error
		if password, err = t.ask(ctx, "Password: "); err != nil {
			return err
		}
	}
	return w.with(ctx, t, func(app *tenantcontent.App) error {
		if err := do(app, password); err != nil {
			return err
		}
		return say(t, done, w.Username, w.Tenant)
	})
}
