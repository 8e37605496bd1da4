package cli

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/errs"
)

type tenantImportCommand struct {
	storage
	passphrase
	File              string `arg:"" help:"File that tenant export has written."`
	WithoutWorkspaces bool   `help:"Leave the SQL databases of apps out."`
	NoQuota           bool   `help:"Take a tenant that stores more than one may here. It can store nothing more until tenant quota gives it room."`
}

// Run adds the tenant completely or not at all.
func (i *tenantImportCommand) Run(ctx context.Context, t terminal) error {
	file, err := os.Open(i.File)
	if err != nil {
		return errs.Wrap(errs.Invalid, err, "the file cannot be read: %v", err)
	}
	defer func() { _ = file.Close() }()
	if info, err := file.Stat(); err == nil && info.IsDir() {
		return errs.New(errs.Invalid, "%s is a folder: name the file that tenant export has written", i.File)
	}
	secret, err := i.read(ctx, t)
	if err != nil {
		return err
	}
	return i.with(ctx, t, func(app *tenantcontent.App) error {
		if err := app.Lock(ctx, "tenant import"); err != nil { // it encrypts
			return err
		}
		defer func() { _ = app.Unlock() }()
		moved, err := i.add(ctx, t, app, file, secret)
		if interruption(ctx, err) != nil {
			return interrupted("nothing of the tenant is there; what is left of it is removed in ten minutes by a " +
				"running server")
		}
		if err != nil {
			return err
		}
		return errors.Join(say(t, "Added the tenant %s with %s.", moved.Tenant, contents(moved)), sayLeft(t, moved))
	})
}

func (i *tenantImportCommand) add(
	ctx context.Context, t terminal, app *tenantcontent.App, file io.Reader, secret string,
) (tenantcontent.TenantMoved, error) {
	o, end := transferring(t, "importing")
	defer end()
	o.Passphrase, o.WithoutWorkspaces, o.WithoutQuota = secret, i.WithoutWorkspaces, i.NoQuota
	return app.ImportTenant(ctx, file, o)
}
