// Package postgres keeps each workspace in a schema of its own in one PostgreSQL database, with a
// role that logs in and can use this schema alone. It is the driver for services of several
// processes.
//
// The database is for workspaces only: what every role may do in it is taken away, see Lockdown. It
// is best in another cluster than the service's own database, as roles, connections and memory
// belong to the cluster.
package postgres

import (
	"context"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/connpool"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/sqltext"
	"github.com/tenantcontent/tenantcontent/internal/workspaces"
	"github.com/tenantcontent/tenantcontent/internal/workspaces/tenantsql"
)

// Options configure a Driver. URL is required.
type Options struct {
	// URL names the database, with a role that can make roles (CREATEROLE) and schemas in it, and a
	// superuser unless Lockdown was run.
	URL    string
	Quota  int64             // bytes of a workspace; default 256 MiB. It is checked every other second: see Driver.
	Limits workspaces.Limits // of a result
	Time   time.Duration     // of a statement, if its context has no earlier end; default 30 s
	Wait   time.Duration     // for a connection; default 10 s

	// open at once by this process; default 32. A tenant has at most half of them, a workspace at
	// most an eighth.
	Connections int
	Idle        time.Duration // after which an idle connection is closed; default 1 minute
}

// Driver implements workspaces.Driver.
//
// The size of a workspace is measured before a statement that can write, if the last measure is
// older than two seconds or much has been written since. A statement that is running is not stopped
// by it: a workspace can be larger than its quota by what one statement, or the statements of two
// seconds, write.
type Driver struct {
	tenantsql.Connector[*session]

	o      Options
	bounds workspaces.Bounds
	config *pgconn.Config
	pool   *connpool.Pool[*conn] // by the names of schemas

	turn  chan struct{} // has a token while somebody uses the two below
	admin *pgx.Conn     // nil until the first use and after a failure
	super bool          // the admin is a superuser

	ready atomic.Bool // the database was checked

	mu    sync.Mutex
	sizes map[string]size
}

var (
	_ workspaces.Driver  = (*Driver)(nil)
	_ workspaces.Locator = (*Driver)(nil)
)

// New returns a Driver for a database. It does not connect yet. Errors: errs.Invalid for a URL it
// cannot read; no error shows the password in it.
func New(o Options) (*Driver, error) {
	config, err := pgconn.ParseConfig(o.URL)
	if err != nil {
		return nil, errs.New(
			errs.Invalid,
			"the URL of workspaces cannot be read: it looks like postgres://user:password@host:5432/workspaces",
		)
	}
	if o.Quota <= 0 {
		o.Quota = 256 << 20
	}
	o.Limits = o.Limits.WithDefaults()
	for _, d := range []struct {
		of     *time.Duration
		normal time.Duration
	}{{&o.Time, 30 * time.Second}, {&o.Wait, 10 * time.Second}, {&o.Idle, time.Minute}} {
		if *d.of <= 0 {
			*d.of = d.normal
		}
	}
	if o.Connections <= 0 {
		o.Connections = 32
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = 5 * time.Second
	}
	b := tenantsql.Bounds(o.Quota, o.Limits, o.Time, o.Connections, time.Minute)
	d := &Driver{o: o, bounds: b, config: config,
		turn: make(chan struct{}, 1), sizes: map[string]size{}, pool: connpool.New[*conn](connpool.Options{
			Open: b.Connections, PerTenant: b.PerTenant, PerDatabase: b.PerWorkspace, Idle: o.Idle, Wait: o.Wait,
		})}
	d.Connector = d.connect
	return d, nil
}

// Bounds implements workspaces.Driver.
func (d *Driver) Bounds() workspaces.Bounds { return d.bounds }

// Engine implements workspaces.Driver.
func (d *Driver) Engine() string { return "postgres" }

// prefix returns how the names of a tenant's schemas and roles begin; name returns that of a
// workspace.
func prefix(tenant string) string { return "ws_" + tenantsql.Digest("tenant", tenant)[:16] + "_" }

func name(tenant, app string) string { return prefix(tenant) + tenantsql.Digest("app", tenant, app) }

// Location implements workspaces.Locator: the schemas, and the roles of the same names.
func (d *Driver) Location(tenant string) string {
	return "the schemas and roles " + prefix(tenant) + "*"
}

// asAdmin runs fn on the connection of the admin, one caller at a time. The first one checks the
// database.
func (d *Driver) asAdmin(ctx context.Context, fn func(ctx context.Context, c *pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, d.o.Wait)
	defer cancel()
	select {
	case d.turn <- struct{}{}:
		defer func() { <-d.turn }()
	case <-ctx.Done():
		return worded(ctx, ctx.Err())
	}
	if d.admin == nil || d.admin.IsClosed() {
		config, err := pgx.ParseConfig(d.o.URL)
		if err != nil {
			return unavailable(err)
		}
		config.ConnectTimeout = d.config.ConnectTimeout
		if d.admin, err = pgx.ConnectConfig(ctx, config); err != nil {
			d.admin = nil
			return unavailable(err)
		}
	}
	if !d.ready.Load() {
		if err := d.check(ctx, d.admin); err != nil {
			return worded(ctx, err)
		}
		d.ready.Store(true)
	}
	return worded(ctx, fn(ctx, d.admin))
}

// worded hides the errors of statements of the admin.
func worded(ctx context.Context, err error) error {
	switch {
	case err == nil, errs.CodeOf(err) != errs.Internal:
		return err
	case ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded):
		return ctx.Err()
	}
	return unavailable(err)
}

func unavailable(err error) error {
	return errs.Wrap(errs.Unavailable, err, "The workspace cannot be opened: try again later.")
}

// quote returns an identifier of SQL.
func quote(name string) string { return pgx.Identifier{name}.Sanitize() }

// provision makes the schema and the role of a workspace, or sets the password of the role.
func (d *Driver) provision(ctx context.Context, w workspaces.Workspace) error {
	own := name(w.Tenant, w.App)
	verifier, err := scram(w.Password)
	if err != nil {
		return err
	}
	return d.asAdmin(ctx, func(ctx context.Context, c *pgx.Conn) error {
		return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			if err := hold(ctx, tx, own); err != nil {
				return err
			}
			var there bool
			if err := tx.QueryRow(
				ctx, "SELECT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = $1)", own,
			).Scan(&there); err != nil {
				return err
			}
			role := "CREATE"
			if there {
				role = "ALTER"
			}
			all := []string{
				role + " ROLE " + quote(own) +
					" LOGIN NOINHERIT NOCREATEDB NOCREATEROLE NOREPLICATION CONNECTION LIMIT 64 PASSWORD '" +
					verifier + "'",
				"GRANT " + quote(own) + " TO CURRENT_USER",
				"GRANT CONNECT ON DATABASE " + quote(d.config.Database) + " TO " + quote(own),
				"CREATE SCHEMA IF NOT EXISTS " + quote(own),
				"GRANT USAGE, CREATE ON SCHEMA " + quote(own) + " TO " + quote(own),
				"CREATE TABLE IF NOT EXISTS " + quote(own) + "." + recorded +
					" (name text PRIMARY KEY, digest text NOT NULL, applied_at timestamptz NOT NULL)",
				"GRANT SELECT, INSERT ON " + quote(own) + "." + recorded + " TO " + quote(own),
			}
			if d.super {
				all = append(
					all,
					"ALTER ROLE "+quote(own)+" SET temp_file_limit = '"+strconv.FormatInt(
						max(1, d.o.Quota>>10), 10,
					)+"kB'",
				)
			}
			for _, statement := range all {
				if _, err := tx.Exec(ctx, statement); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// recorded is the table of the migrations that have been run.
const recorded = "_migrations"

// hold makes others that provision or drop the same name wait until the transaction ends.
func hold(ctx context.Context, tx pgx.Tx, name string) error {
	_, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", name)
	return err
}

// scram returns what PostgreSQL stores of a password, so that no log of the server has the password
// itself.
func scram(password string) (string, error) {
	const iterations = 4096
	salt := make([]byte, 16)
	_, _ = rand.Read(salt) // never fails
	salted, err := pbkdf2.Key(sha256.New, password, salt, iterations, sha256.Size)
	if err != nil {
		return "", err
	}
	sign := func(text string) []byte {
		h := hmac.New(sha256.New, salted)
		_, _ = h.Write([]byte(text))
		return h.Sum(nil)
	}
	stored := sha256.Sum256(sign("Client Key"))
	encode := base64.StdEncoding.EncodeToString
	return fmt.Sprintf(
		"SCRAM-SHA-256$%d:%s$%s:%s", iterations, encode(salt), encode(stored[:]), encode(sign("Server Key")),
	), nil
}

// Drop implements workspaces.Driver.
func (d *Driver) Drop(ctx context.Context, tenant, app string) error {
	return d.drop(ctx, name(tenant, app))
}

// Has implements workspaces.Driver.
func (d *Driver) Has(ctx context.Context, tenant string) (bool, error) {
	all, err := d.schemas(ctx, tenant)
	return len(all) > 0, err
}

// schemas returns the names of the schemas of a tenant.
func (d *Driver) schemas(ctx context.Context, tenant string) (all []string, err error) {
	err = d.asAdmin(ctx, func(ctx context.Context, c *pgx.Conn) error {
		rows, err := c.Query(ctx, "SELECT nspname FROM pg_namespace WHERE starts_with(nspname, $1)", prefix(tenant))
		if err != nil {
			return err
		}
		all, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	return all, err
}

// DropTenant implements workspaces.Driver.
func (d *Driver) DropTenant(ctx context.Context, tenant string) error {
	all, err := d.schemas(ctx, tenant)
	for _, own := range all {
		err = errors.Join(err, d.drop(ctx, own))
	}
	return err
}

func (d *Driver) drop(ctx context.Context, own string) error {
	d.pool.Evict(func(database string) bool { return database == own })
	return d.asAdmin(ctx, func(ctx context.Context, c *pgx.Conn) error {
		d.mu.Lock()
		delete(d.sizes, own)
		d.mu.Unlock()
		var role, schema bool
		err := c.QueryRow(
			ctx,
			`SELECT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = $1), EXISTS (SELECT 1 FROM pg_namespace `+
				`WHERE nspname = $1)`,
			own,
		).Scan(&role, &schema)
		if err != nil || !role && !schema {
			return err
		}
		if role { // nobody logs in any more
			if _, err := c.Exec(ctx, "ALTER ROLE "+quote(own)+" NOLOGIN"); err != nil {
				return err
			}
			if _, err := c.Exec(
				ctx, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = $1", own,
			); err != nil {
				return err
			}
		}
		return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			if err := hold(ctx, tx, own); err != nil {
				return err
			}
			all := []string{"DROP SCHEMA IF EXISTS " + quote(own) + " CASCADE"}
			if role {
				all = append(all, "DROP OWNED BY "+quote(own), "DROP ROLE IF EXISTS "+quote(own))
			}
			for _, statement := range all {
				if _, err := tx.Exec(ctx, statement); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// Close implements workspaces.Driver.
func (d *Driver) Close() error {
	d.pool.Close()
	d.turn <- struct{}{}
	defer func() { <-d.turn }()
	if d.admin == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	return d.admin.Close(ctx)
}

// connect returns an idle connection of the workspace or opens one.
func (d *Driver) connect(ctx context.Context, w workspaces.Workspace) (*tenantsql.Conn[*session], error) {
	own := name(w.Tenant, w.App)
	for {
		c, release, err := d.pool.Get(ctx, w.Tenant, own, func(ctx context.Context) (*conn, error) {
			return d.open(ctx, w)
		})
		if err != nil {
			return nil, err
		}
		if c.lost(ctx) {
			release(false)
			continue
		}
		return tenantsql.NewConn(&session{conn: c, d: d},
			tenantsql.Options{Dialect: sqltext.Postgres, Time: d.o.Time}, func() {
				c.used = time.Now()
				release(true)
			}), nil
	}
}

// open logs in as the role of a workspace. If that fails because the role is not there yet, or has
// another password, it is made.
func (d *Driver) open(ctx context.Context, w workspaces.Workspace) (*conn, error) {
	if !d.ready.Load() { // before any tenant's SQL runs
		if err := d.asAdmin(ctx, func(context.Context, *pgx.Conn) error { return nil }); err != nil {
			return nil, err
		}
	}
	c, err := d.login(ctx, w)
	if refused(err) {
		if err := d.provision(ctx, w); err != nil {
			return nil, err
		}
		c, err = d.login(ctx, w)
	}
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, unavailable(err)
	}
	return c, nil
}

// refused reports whether a log-in failed for the role: it is not there, cannot log in, or has
// another password.
func refused(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (strings.HasPrefix(e.Code, "28") || e.Code == "42704" || e.Code == "42501")
}

func (d *Driver) login(ctx context.Context, w workspaces.Workspace) (*conn, error) {
	own := name(w.Tenant, w.App)
	config := d.config.Copy()
	config.User, config.Password = own, w.Password
	config.RuntimeParams = map[string]string{
		"search_path": quote(own), "timezone": "UTC",
		"datestyle": "ISO, MDY", "intervalstyle": "iso_8601", "client_encoding": "UTF8",
		"statement_timeout":                   milliseconds(d.o.Time + time.Second),
		"lock_timeout":                        milliseconds(10 * time.Second),
		"idle_in_transaction_session_timeout": milliseconds(time.Minute),
		"standard_conforming_strings":         "on", "extra_float_digits": "1",
		"client_connection_check_interval": "1000", "max_parallel_workers_per_gather": "0",
		"application_name": "tenantcontent workspace", "default_transaction_isolation": "read committed",
		"bytea_output": "hex", "client_min_messages": "error",
	}
	config.OnNotice = nil
	config.BuildContextWatcherHandler = func(c *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.CancelRequestContextWatcherHandler{
			Conn:               c,
			CancelRequestDelay: 0,
			DeadlineDelay:      2 * time.Second,
		}
	}
	pg, err := pgconn.ConnectConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	return &conn{pg: pg, own: own, settings: settings(pg), used: time.Now()}, nil
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
