package tenantcontent

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/bunx"
	"github.com/tenantcontent/tenantcontent/internal/tenantrows"
	"github.com/tenantcontent/tenantcontent/tenants"
)

// TenantTransfer configures ExportTenant and ImportTenant.
type TenantTransfer struct {
	// Passphrase is what all of the export is encrypted under, with the secrets in it: at least 12 characters.
	Passphrase string
	// WithoutWorkspaces leaves the SQL databases of apps behind, which do not travel. Without it a tenant that has some is refused.
	WithoutWorkspaces bool
	// Progress, unless it is nil, is called with the number of rows that have been written since the last call.
	Progress func(rows int)
}

const workspaceTable = "tc_workspaces"

// ExportTenant writes all that a tenant has at one time, and returns the number of rows. docs/operations.md has what is in it and what is not.
// Memory does not grow with the tenant. Errors: errs.NotFound; errs.Invalid for a short passphrase; errs.Conflict for a tenant with SQL databases of apps.
func (app *App) ExportTenant(ctx context.Context, id string, w io.Writer, o TenantTransfer) (rows int, err error) {
	if len(o.Passphrase) < 12 {
		return 0, errs.New(errs.Invalid, "the passphrase needs at least 12 characters: everything that the tenant has is encrypted under it")
	}
	if _, err := app.Tenants.Unchecked().Lookup(ctx, id); err != nil {
		return 0, err
	}
	n, err := bunx.Count(ctx, app.db, id, workspaceTable)
	if err != nil {
		return 0, err
	}
	if n > 0 && !o.WithoutWorkspaces {
		return 0, errs.New(errs.Conflict, "The tenant %s has %d SQL databases of apps and drafts, which an export does not have: leave them out (--without-workspaces), or delete those apps.", id, n)
	}
	sealed, err := tenantrows.Encrypt(w, o.Passphrase)
	if err != nil {
		return 0, err
	}
	rows, err = tenantrows.Export(ctx, app.db, id, sealed, app.rowOptions(o, nil))
	return rows, errors.Join(err, sealed.Close())
}

func (app *App) rowOptions(o TenantTransfer, beat func()) tenantrows.Options {
	return tenantrows.Options{
		Without: []string{workspaceTable},
		Secrets: tenantrows.Secrets{Columns: app.registry.Sealed(), Open: app.keys.Open, Seal: app.keys.Seal},
		Rows: func(n int) {
			if o.Progress != nil {
				o.Progress(n)
			}
			if beat != nil {
				beat()
			}
		},
	}
}

// ImportTenant adds the tenant of an export, which ExportTenant has written at the same version, perhaps on another engine, and returns its id and
// the number of rows. Secrets are sealed under the key of this program. The tenant is served when all of it has arrived and was found whole;
// when ImportTenant fails, what had arrived is removed, and when the program is killed, by a sweep ten minutes later. Errors: errs.Invalid
// for a wrong passphrase, what is cut or changed, and another version; errs.Conflict when there is a tenant with its id.
func (app *App) ImportTenant(ctx context.Context, r io.Reader, o TenantTransfer) (id string, rows int, err error) {
	plain, err := tenantrows.Decrypt(r, o.Passphrase)
	if err != nil {
		return "", 0, err
	}
	all := app.Tenants.Unchecked()
	heard, failed := time.Now(), error(nil)
	in, err := tenantrows.Open(ctx, app.db, plain, app.rowOptions(o, func() {
		if time.Since(heard) > time.Minute {
			heard, failed = time.Now(), errors.Join(failed, all.Beat(ctx, id))
		}
	}))
	if err != nil {
		return "", 0, err
	}
	t := in.Tenant()
	if !tenants.ValidID(t.ID) {
		return "", 0, errs.New(errs.Invalid, "this is no export of a tenant")
	}
	if err := all.Begin(ctx, tenants.Tenant{ID: t.ID, Name: t.Name}); err != nil {
		return t.ID, 0, err
	}
	id = t.ID
	rows, err = in.Rows()
	if err = errors.Join(err, failed); err == nil {
		err = all.Done(ctx, id)
	}
	if err != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		return id, rows, errors.Join(err, all.Abandon(ctx, id))
	}
	return id, rows, nil
}
