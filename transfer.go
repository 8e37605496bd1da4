package tenantcontent

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/clock"
	"github.com/tenantcontent/tenantcontent/internal/secure/agefile"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/store/tenantrows"
	"github.com/tenantcontent/tenantcontent/internal/workspaces"
	"github.com/tenantcontent/tenantcontent/tenants"
)

// TenantTransfer configures ExportTenant and ImportTenant.
type TenantTransfer struct {
	// Passphrase is what all of the export is encrypted under, with the secrets in it: at least 12
	// characters.
	Passphrase string
	// WithoutWorkspaces leaves the SQL databases of apps behind. Without it a tenant, or an export,
	// with some that cannot be moved is refused: those whose driver is no workspaces.Mover, such as
	// in PostgreSQL, and those of another engine than the one of Config.Workspaces.
	WithoutWorkspaces bool
	// WithoutQuota has ImportTenant take a tenant that stores more than the server allows one. It
	// can make room, and store nothing more until it has a larger quota
	// (tenants.Unchecked.SetQuota).
	WithoutQuota bool
	// Progress, unless it is nil, is called with the number of rows that have been written since
	// the last call.
	Progress func(rows int)
}

// TenantMoved is what ExportTenant or ImportTenant has done.
type TenantMoved struct {
	Tenant     string // its id
	Rows       int
	Workspaces int      // SQL databases of apps
	Left       []string // sentences about what the tenant has, or had, that is not moved, and what to do about it
}

// deploymentTable has what deploys from other tenants have brought. It gives these a right to it,
// so no export has it: on another server, others may have their ids.
const deploymentTable = "tc_deployments"

// ExportTenant writes all that a tenant has at one time; the SQL databases of its apps follow, each
// as it is then. docs/operations.md has what is not in it. Memory does not grow with the tenant.
// Errors: errs.NotFound; errs.Invalid for a short passphrase; errs.Conflict for a tenant with SQL
// databases of apps that cannot be moved.
func (app *App) ExportTenant(
	ctx context.Context, id string, w io.Writer, o TenantTransfer,
) (moved TenantMoved, err error) {
	ctx, end := app.observeTransfer(ctx, "tenant export")
	sent := &counter{w: w}
	defer func() { end(id, 0, sent.n, err) }()
	if len(o.Passphrase) < 12 {
		return moved, errs.New(
			errs.Invalid,
			"the passphrase needs at least 12 characters: everything that the tenant has is encrypted under it",
		)
	}
	t, err := app.Tenants.Unchecked().Lookup(ctx, id)
	if err != nil {
		return moved, err
	}
	moved.Tenant = id
	n, fixed := app.workspaces.Movable(ctx, id)
	if fixed != nil && !(o.WithoutWorkspaces && errs.CodeOf(fixed) == errs.Conflict) {
		return moved, fixed
	}
	options := app.rowOptions(o)
	switch {
	case n > 0 && o.WithoutWorkspaces:
		moved.Left = append(moved.Left, app.workspaces.Left(id, n))
		fallthrough
	case n == 0:
		options.Without = append(options.Without, workspaces.RowsTable)
	default:
		options.Files = app.workspaceFiles(id, &moved)
	}
	if moved.Left, err = app.leftOfDeploys(ctx, t, moved.Left); err != nil {
		return moved, err
	}
	options.Left = moved.Left
	stored, err := app.Storage(ctx, id)
	if err != nil {
		return moved, err
	}
	options.Stored = tenantrows.Stored{Bytes: stored.Files + stored.Records}
	if options.Files != nil {
		options.Stored.WorkspaceBytes, options.Stored.Workspaces = stored.Workspaces, stored.Count
	}
	sealed, err := agefile.Encrypt(sent, o.Passphrase)
	if err != nil {
		return moved, err
	}
	moved.Rows, err = tenantrows.Export(ctx, app.db, id, sealed, options)
	if closed := sealed.Close(); err == nil { // else it fails, too
		err = closed
	}
	return moved, err
}

// leftOfDeploys appends what an export leaves behind of the rights of other tenants.
func (app *App) leftOfDeploys(ctx context.Context, t tenants.Tenant, left []string) ([]string, error) {
	if from := t.Settings.DeployFrom; len(from) > 0 {
		ids := make([]string, len(from))
		for i, f := range from {
			ids[i] = f.Tenant
		}
		left = append(
			left,
			"the tenants that may deploy into it, "+strings.Join(ids, ", ")+
				": others may have their ids on another server; set deployFrom there again",
		)
	}
	n, err := bunx.Count(ctx, app.db, t.ID, deploymentTable)
	if err == nil && n > 0 {
		left = append(
			left,
			"the record of what deploys from other tenants brought: it is the tenant's own now, and later deploys "+
				"leave it as it is",
		)
	}
	return left, err
}

// workspaceFiles returns the SQL databases of apps of a tenant, and counts them in moved.
func (app *App) workspaceFiles(tenant string, moved *TenantMoved) *tenantrows.Files {
	return &tenantrows.Files{
		Table: workspaces.RowsTable, Kind: app.workspaces.Engine(), KindOf: "engine",
		Export: func(ctx context.Context, key string, w io.Writer) (bool, error) {
			there, err := app.workspaces.Export(ctx, tenant, key, w)
			if there {
				moved.Workspaces++
			}
			return there, err
		},
		Missing: func(key string) error {
			return errs.New(
				errs.Conflict,
				"the SQL database of the app %s is not where workspaces are (TENANTCONTENT_WORKSPACES): put it "+
					"there, publish the app again, or leave all of them behind (--without-workspaces)",
				key,
			)
		},
		Import: func(ctx context.Context, key string, r io.Reader) error {
			moved.Workspaces++
			return app.workspaces.Import(ctx, tenant, key, r)
		},
	}
}

func (app *App) rowOptions(o TenantTransfer) tenantrows.Options {
	return tenantrows.Options{
		Without: []string{deploymentTable},
		Secrets: tenantrows.Secrets{Columns: app.registry.Sealed(), Open: app.keys.Open, Seal: app.keys.Seal},
		Rows: func(n int) {
			if o.Progress != nil {
				o.Progress(n)
			}
		},
	}
}

// ImportTenant adds the tenant of an export, which ExportTenant has written at the same version,
// perhaps on another engine. Secrets are sealed under the key of this program. The tenant is served
// when all of it has arrived and was found whole; when ImportTenant fails, what had arrived is
// removed, and when the program is killed, by a sweep ten minutes later. Errors: errs.Invalid for a
// wrong passphrase, what is cut or changed, and another version; errs.Conflict when there is a
// tenant with its id, and for SQL databases of apps of another engine; errs.TooLarge for one that
// is larger than they may be here; errs.Full for a tenant that stores more than one may here:
// before anything is written if the export tells how much that is, else when the quota is reached.
func (app *App) ImportTenant(ctx context.Context, r io.Reader, o TenantTransfer) (moved TenantMoved, err error) {
	ctx, end := app.observeTransfer(ctx, "tenant import")
	received := &counter{r: r}
	defer func() { end(moved.Tenant, received.n, 0, err) }()
	plain, err := agefile.Decrypt(received, o.Passphrase)
	if err != nil {
		return moved, err
	}
	var imported *tenants.Import
	options := app.rowOptions(o)
	options.Check = func() error {
		if err := imported.Beat(ctx); err != nil || o.WithoutQuota {
			return err
		}
		return fits(app.quotas.CheckStored(ctx, moved.Tenant))
	}
	if o.WithoutWorkspaces {
		options.Skip = append(options.Skip, workspaces.RowsTable)
	}
	in, err := tenantrows.Open(ctx, app.db, plain, options)
	if err != nil {
		return moved, err
	}
	t := in.Tenant()
	if !tenants.ValidID(t.ID) {
		return moved, errs.New(errs.Invalid, "this is no export of a tenant")
	}
	moved.Tenant, moved.Left = t.ID, in.Left()
	switch engine := app.workspaces.Engine(); {
	case in.Files() == "":
		in.Without(workspaces.RowsTable)
	case o.WithoutWorkspaces:
		moved.Left = append(
			moved.Left, "the SQL databases of its apps: publish the apps again, which makes empty tables",
		)
	case in.Files() != engine:
		return moved, errs.New(
			errs.Conflict,
			"the export has SQL databases of apps that were made with %s, and workspaces here are not: name a "+
				"place for them (TENANTCONTENT_WORKSPACES), or leave them out (--without-workspaces)",
			in.Files(),
		)
	default:
		in.SetFiles(app.workspaceFiles(t.ID, &moved))
	}
	if !o.WithoutQuota {
		stored := in.Stored()
		bytes, databases := stored.Bytes, 0
		if !o.WithoutWorkspaces {
			bytes, databases = bytes+stored.WorkspaceBytes, stored.Workspaces
		}
		if err := fits(app.quotas.CheckImport(bytes, databases)); err != nil {
			return moved, err
		}
	}
	if imported, err = app.Tenants.Unchecked().Begin(ctx, tenants.Tenant{ID: t.ID, Name: t.Name}); err != nil {
		return moved, err
	}
	stop := keepAlive(ctx, imported)
	moved.Rows, err = in.Rows()
	stop()
	if err == nil && !o.WithoutQuota {
		err = app.checkImported(ctx, t.ID)
	}
	if err == nil {
		err = imported.Done(ctx)
	}
	if err != nil {
		return moved, abandoned(err, abandon(ctx, imported), t.ID)
	}
	return moved, nil
}

// observeTransfer notifies the Observer of an export or import of a tenant that begins. The caller
// calls end when it ends.
func (app *App) observeTransfer(ctx context.Context, kind string) (
	_ context.Context, end func(tenant string, received, sent int64, err error),
) {
	start := time.Now()
	ctx = entity.Begin(ctx, app.observer, entity.ArchiveWork, kind)
	return ctx, func(tenant string, received, sent int64, err error) {
		entity.Observe(ctx, app.observer, entity.Observation{
			Work: entity.ArchiveWork, Tenant: tenant, Kind: kind, Outcome: entity.Outcome(err), Start: start,
			Received: received, Sent: sent,
		})
	}
}

// counter counts the bytes that are written to w or read from r.
type counter struct {
	w io.Writer
	r io.Reader
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// fits adds to the error of a tenant without room what the operator can do.
func fits(err error) error {
	if errs.CodeOf(err) != errs.Full {
		return err
	}
	return errs.Wrap(errs.Full, err, "%s To take it all the same, import it with --no-quota", errs.MessageOf(err))
}

// checkImported returns errs.Full if a tenant that was imported stores more than it may.
func (app *App) checkImported(ctx context.Context, tenant string) error {
	u, err := app.Storage(ctx, tenant)
	if err != nil {
		return err
	}
	return fits(app.quotas.CheckImport(u.Used(), u.Count))
}

// keepAliveInterval is how often an import is noted while it waits for its reader.
var keepAliveInterval = 30 * time.Second

// keepAlive notes that an import goes on until stop is called.
func keepAlive(ctx context.Context, i *tenants.Import) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		for range clock.Each(ctx, keepAliveInterval) {
			_ = i.Beat(ctx) // a failure that lasts is found before the next write
		}
	})
	return func() {
		cancel()
		running.Wait()
	}
}

// abandon removes what an import has made, also when its context has ended.
func abandon(ctx context.Context, i *tenants.Import) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	return i.Abandon(ctx)
}

// abandoned returns the error of an import, with what to do if what it has made could not be
// removed.
func abandoned(err, left error, id string) error {
	if left == nil {
		return err
	}
	text := errs.MessageOf(err)
	if text == "" {
		text = err.Error()
	}
	return errs.Wrap(
		errs.CodeOf(err), fmt.Errorf("%w; %w", err, left),
		"%s. What had arrived of the tenant %s is hidden, and could not be removed: `tenant delete %s` removes "+
			"it, or a running server in ten minutes",
		strings.TrimSuffix(text, "."), id, id,
	)
}
