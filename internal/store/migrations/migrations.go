// Package migrations contains the tables, as SQL for each engine in files with the same names, and
// migrates databases to them.
//
// The files are named as those of bun/migrate, which does not run them: its lock is a row that
// survives a crash, and it notes a migration after the transaction that made it. Here all that is
// missing runs in one transaction, with the notes and under a lock that ends with the connection,
// so two processes that start at once migrate once, and one that is killed has done nothing and
// does not block others. It also links text/template, with which a linker keeps all methods of a
// program.
//
// Only the root and tests import it.
package migrations

import (
	"bytes"
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
)

//go:embed sqlite postgres
var files embed.FS

//go:embed rls.sql
var rowLevelSecurity string

// Run applies the missing migrations. It returns errs.Invalid if the engine is not supported, or if
// the database has migrations that this program does not know.
func Run(ctx context.Context, db *bun.DB) error { return runTwice(ctx, db, 0) }

func runTwice(ctx context.Context, db *bun.DB, partitions int) error {
	err := run(ctx, db, partitions)
	if errors.Is(err, errNotes) {
		err = run(ctx, db, partitions)
	}
	if bunx.OutOfMemory(err) {
		return errs.Wrap(
			errs.Unavailable, err,
			"PostgreSQL has no memory for the migration, or no room for the locks of its partitions: raise "+
				"max_locks_per_transaction, such as to 256, and start PostgreSQL again. Nothing was changed",
		)
	}
	return err
}

// errNotes is returned if the table of migrations cannot be created. On PostgreSQL that fails, with
// one of several codes, if another process creates it at the same moment.
var errNotes = errors.New("the table of migrations cannot be made")

// run applies the missing migrations. partitions is the number of partitions for each new table; 0:
// as many as existing tables have.
func run(ctx context.Context, db *bun.DB, partitions int) error {
	dir, known, err := discover(db)
	if err != nil {
		return err
	}
	return bunx.Write(bunx.WithWork(ctx, bunx.Unbounded), db, "", func(ctx context.Context, c bunx.Conn) error {
		if err := lock(ctx, c); err != nil {
			return err
		}
		applied, err := read(ctx, c)
		if err != nil {
			return err
		}
		if partitions, err = partitionsOf(ctx, c, len(applied) > 0, partitions); err != nil {
			return err
		}
		lacking := missing(known, applied)
		for _, m := range lacking {
			if err := apply(ctx, c, dir, m, partitions); err != nil {
				return err
			}
		}
		if len(lacking) > 0 {
			if err := extendPolicies(ctx, c); err != nil {
				return err
			}
		}
		return unknown(known, applied)
	})
}

// Pending returns the missing migrations. It returns errs.Invalid as Run does.
func Pending(ctx context.Context, db *bun.DB) ([]string, error) {
	_, known, err := discover(db)
	if err != nil {
		return nil, err
	}
	ctx, c := bunx.For(ctx, db, "")
	table := "SELECT count(*) FROM sqlite_master WHERE name = 'tc_migrations'"
	if c.Postgres() {
		table = "SELECT count(to_regclass('tc_migrations'))"
	}
	var tables int
	if err := c.Row(ctx, table).Scan(&tables); err != nil {
		return nil, bunx.Err(err, "")
	}
	var applied map[string]bool
	if tables > 0 {
		if applied, err = read(ctx, c); err != nil {
			return nil, err
		}
	}
	return missing(known, applied), unknown(known, applied)
}

// EnableRowLevelSecurity creates a policy on every table with a tenant. A statement then sees only
// the rows of the tenant in the setting tenantcontent.tenant, and no rows without it. It returns
// the tables that did not have a policy. It is for PostgreSQL only.
func EnableRowLevelSecurity(ctx context.Context, db *bun.DB) (tables []string, err error) {
	err = bunx.Write(ctx, db, "", func(ctx context.Context, c bunx.Conn) error {
		if !c.Postgres() {
			return errs.New(errs.Invalid, "row-level security needs PostgreSQL")
		}
		rows, err := c.Rows(ctx, withoutPolicy)
		tables, err = bunx.Scan(rows, err, bunx.Text)
		if err == nil && len(tables) > 0 {
			_, err = c.Exec(ctx, rowLevelSecurity)
		}
		return bunx.Err(err, "")
	})
	return tables, err
}

// withoutPolicy selects the tables that rls.sql would change.
const withoutPolicy = `SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant_id'
	WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relname LIKE 'tc\_%' AND c.relname <> 'tc_tenants'
		AND NOT (c.relrowsecurity AND c.relforcerowsecurity
			AND EXISTS (SELECT FROM pg_policy p WHERE p.polrelid = c.oid AND p.polname = 'tc_tenant'))
	ORDER BY c.relname`

// probe is not the id of any tenant.
const probe = "-"

// ErrHidden is the cause of an error of Visible if the database answers, but the program cannot use
// it with row-level security.
var ErrHidden = errors.New("row-level security does not fit this program")

// Visible checks the use of row-level security, if it is on. This program's connections must set
// their tenant, or they see no rows, and their role must not bypass the policies. Otherwise Visible
// returns errs.Unavailable with the cause ErrHidden, saying what to change.
func Visible(ctx context.Context, db *bun.DB) error {
	ctx, c := bunx.For(ctx, db, probe)
	if !c.Postgres() {
		return nil
	}
	var on, binds bool
	var tenant, role string
	err := c.Row(ctx,
		`SELECT c.relrowsecurity, row_security_active(c.oid), coalesce(current_setting('tenantcontent.tenant',
			true), ''), current_user
		FROM pg_class c WHERE c.oid = to_regclass('tc_users')`).Scan(&on, &binds, &tenant, &role)
	switch {
	case errors.Is(err, sql.ErrNoRows): // not migrated
		return nil
	case err != nil:
		return bunx.Err(err, "")
	case on && !binds:
		return errs.Wrap(
			errs.Unavailable, ErrHidden,
			"Row-level security is on in this database and does not bind the role %s: log in as a role that is no "+
				"superuser and has no BYPASSRLS.",
			role,
		)
	case on && tenant != probe:
		return errs.Wrap(
			errs.Unavailable, ErrHidden,
			"Row-level security is on in this database, and it is not told the tenant: add row_level_security=on "+
				"to the database URL.",
		)
	}
	return nil
}

// extendPolicies creates the policies on new tables, if row-level security is on.
func extendPolicies(ctx context.Context, c bunx.Conn) error {
	if !c.Postgres() {
		return nil
	}
	var on bool
	if err := c.Row(
		ctx, `SELECT relrowsecurity FROM pg_class WHERE oid = to_regclass('tc_users')`,
	).Scan(&on); err != nil || !on {
		return bunx.Err(err, "")
	}
	_, err := c.Exec(ctx, rowLevelSecurity)
	return bunx.Err(err, "")
}

// discover returns the engine of a database and the names of its migrations, in order.
func discover(db *bun.DB) (dir string, known []string, err error) {
	switch db.Dialect().Name() {
	case dialect.PG:
		dir = "postgres"
	case dialect.SQLite:
		dir = "sqlite"
	default:
		return "", nil, errs.New(errs.Invalid, "the database must be PostgreSQL or SQLite, not %s", db.Dialect().Name())
	}
	known, err = Names(dir)
	return dir, known, err
}

// lock creates the table of migrations and locks it against other processes until the transaction
// ends.
func lock(ctx context.Context, c bunx.Conn) error {
	const table = "CREATE TABLE IF NOT EXISTS tc_migrations (name text PRIMARY KEY, migrated_at text NOT NULL)"
	statements := []string{table}
	if c.Postgres() {
		// A process that waits here waits for the other one, however long that takes.
		statements = []string{
			"SET LOCAL lock_timeout = 0", "SET LOCAL statement_timeout = 0", table,
			"LOCK TABLE tc_migrations IN SHARE ROW EXCLUSIVE MODE",
		}
	}
	for _, s := range statements {
		_, err := c.Exec(ctx, s)
		switch {
		case err != nil && s == table:
			return fmt.Errorf("%w: %w", errNotes, bunx.Err(err, "The table of migrations"))
		case err != nil:
			return bunx.Err(err, "")
		}
	}
	return nil
}

func read(ctx context.Context, c bunx.Conn) (map[string]bool, error) {
	rows, err := c.Rows(ctx, "SELECT name FROM tc_migrations")
	if err != nil {
		return nil, bunx.Err(err, "")
	}
	defer func() { _ = rows.Close() }()
	applied := map[string]bool{}
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		applied[name] = true
	}
	return applied, bunx.Err(errors.Join(rows.Err(), rows.Close()), "")
}

func missing(known []string, applied map[string]bool) (names []string) {
	for _, name := range known {
		if !applied[name] {
			names = append(names, name)
		}
	}
	return names
}

func unknown(known []string, applied map[string]bool) error {
	for name := range applied {
		if !slices.Contains(known, name) {
			return errs.New(
				errs.Invalid,
				"the database has migration %s, which this version does not know: run a newer version", name,
			)
		}
	}
	return nil
}

// steps are what migrations do after their files, by name.
var steps = map[string]func(context.Context, bunx.Conn) error{
	"0015_usernames": refold, "0063_accents": foldAccents,
}

// apply runs one file, statement group by statement group (a line `--bun:split` parts them), and
// notes it.
func apply(ctx context.Context, c bunx.Conn, dir, name string, partitions int) error {
	text, err := files.ReadFile(dir + "/" + name + ".tx.up.sql")
	if err != nil {
		return err
	}
	if partitions > 0 {
		text = []byte(partitioned(string(text), partitions))
	}
	for _, group := range bytes.Split(text, []byte("--bun:split\n")) {
		if _, err := c.Exec(ctx, string(group)); err != nil {
			return fmt.Errorf("migration %s: %w", name, err)
		}
	}
	if step := steps[name]; step != nil {
		if err := step(ctx, c); err != nil {
			return fmt.Errorf("migration %s: %w", name, err)
		}
	}
	_, err = c.Exec(
		ctx, "INSERT INTO tc_migrations (name, migrated_at) VALUES ($1, $2)", name, bunx.At(time.Now()),
	)
	return err
}

// Names returns the migrations of an engine, "sqlite" or "postgres", in order.
func Names(engine string) (names []string, err error) {
	entries, err := fs.ReadDir(files, engine)
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".tx.up.sql"))
	}
	return names, err
}
