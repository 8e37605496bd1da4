package tenantcontent

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"strings"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/secure/keyring"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/dblock"
	"github.com/tenantcontent/tenantcontent/internal/store/migrations"
	tenantstore "github.com/tenantcontent/tenantcontent/internal/store/tenants"
	"github.com/tenantcontent/tenantcontent/tenants"
)

// Migrate brings a database up to this version, or does nothing when it is there already. Several
// processes may call it at once. database.Migrate is the same, for programs without the root.
// Errors: errs.Invalid for a database that a newer version has migrated.
func Migrate(ctx context.Context, db *bun.DB) error { return migrations.Run(ctx, db) }

// MigratePartitioned is Migrate for an empty PostgreSQL whose tables are to have partitions, by a
// hash of the tenant: each statement of a request then needs one of them. Migrate keeps them. See
// docs/scale.md. Errors: errs.Invalid, also for a database whose tables have another number of
// partitions.
func MigratePartitioned(ctx context.Context, db *bun.DB, partitions int) error {
	return migrations.RunPartitioned(ctx, db, partitions)
}

// EnableRowLevelSecurity makes PostgreSQL itself keep tenants apart, beside the predicates in every
// statement: open the database with row_level_security=on (package postgres) and as a role that is
// no superuser, or nothing is served. A read then costs about twice as much. It returns the tables
// that it was switched on for, none when it was on. Later calls of Migrate keep it on for new
// tables.
func EnableRowLevelSecurity(ctx context.Context, db *bun.DB) (tables []string, err error) {
	return migrations.EnableRowLevelSecurity(ctx, db)
}

// NewSecretKey returns a random key for Config.SecretKey.
func NewSecretKey() string { return keyring.Generate() }

// CheckSecretKeyFile fails with errs.Invalid if Config.SecretKeyFile is missing and the database
// has tenants: Open would make a new key, with which nothing of what they have encrypted can be
// read. Call it before Open.
func CheckSecretKeyFile(ctx context.Context, c Config) error {
	if c.SecretKey != "" || c.SecretKeyFile == "" {
		return nil
	}
	if _, err := os.Stat(c.SecretKeyFile); !errors.Is(err, fs.ErrNotExist) {
		return nil // Open returns what is wrong with it
	}
	pending, err := migrations.Pending(ctx, c.DB)
	if err != nil || len(pending) > 0 && strings.HasPrefix(pending[0], "0001") {
		return err
	}
	any, err := tenantstore.New(c.DB).Any(ctx)
	if err == nil && any {
		err = errs.New(
			errs.Invalid,
			"the secret key file %s is missing, and the database has tenants, whose secrets need it: put it back, "+
				"from where you keep it. Without it, their secrets cannot be read",
			c.SecretKeyFile,
		)
	}
	return err
}

// CheckKeys fails with errs.Invalid when the secret key is not the one that this database was used
// with.
func (app *App) CheckKeys(ctx context.Context) error { return app.Tenants.Unchecked().CheckKeys(ctx) }

// Rekey encrypts every secret of a database again that is not encrypted under the first key, and
// returns their number. With SecretKeyFile it first puts a new key into the file, and in the end
// takes the old ones out; a database without a secret keeps its key. When it fails it has lost
// nothing and can be run again. Errors: errs.Conflict naming the programs that use the secrets,
// such as a running server: they would not know the new key (see App.Lock).
func Rekey(ctx context.Context, c Config) (n int, err error) {
	app, err := Open(c)
	if err != nil {
		return 0, err
	}
	if err := app.Ready(ctx); err != nil {
		return 0, err
	}
	lock, err := dblock.Alone(ctx, c.DB, "rekey")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	if ids, err := app.Tenants.Unchecked().IDs(ctx); err != nil || len(ids) == 0 || c.SecretKey != "" {
		if err != nil {
			return 0, err
		}
		return app.Tenants.Unchecked().Rekey(ctx)
	}
	if _, err := keyring.Rotate(c.SecretKeyFile); err != nil {
		return 0, err
	}
	if app, err = Open(c); err != nil { // with the new key
		return 0, err
	}
	if n, err = app.Tenants.Unchecked().Rekey(ctx); err != nil {
		return n, err
	}
	return n, keyring.Retire(c.SecretKeyFile)
}

// FirstStart adds to an empty database its first tenant, default, with AI and the apps license on,
// and its superuser admin; an empty password is replaced by a random one, which it returns. It does
// nothing where there is a tenant.
func (app *App) FirstStart(ctx context.Context, password string) (made bool, generated string, err error) {
	any, err := app.Tenants.Unchecked().Any(ctx)
	if err != nil || any {
		return false, "", err
	}
	t := tenants.Tenant{
		ID:       "default",
		Name:     "Default",
		Settings: tenants.Settings{AI: true, Licenses: []string{"apps"}},
	}
	generated, err = app.AddTenant(ctx, t, password)
	if errs.CodeOf(err) == errs.Conflict { // another process was first
		return false, "", nil
	}
	return err == nil, generated, err
}

// AddTenant makes a tenant with its superuser admin; an empty password is replaced by a random one,
// which it returns.
// Errors: errs.Invalid naming the field; errs.Conflict for a taken id.
func (app *App) AddTenant(ctx context.Context, t tenants.Tenant, password string) (generated string, err error) {
	if password == "" {
		generated = rand.Text()
		password = generated
	}
	addAdmin, err := app.Principals.Unchecked().NewSuperuser(ctx, "admin", password)
	if err != nil {
		return "", err
	}
	err = app.InTx(ctx, func(ctx context.Context) error {
		if _, err := app.Tenants.Unchecked().Add(ctx, t); err != nil {
			return err
		}
		_, err := addAdmin(ctx, t.ID)
		return err
	})
	if err != nil {
		return "", err
	}
	return generated, nil
}
