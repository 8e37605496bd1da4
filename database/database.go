// Package database opens what tenantcontent runs on: a SQLite file, embedded, or PostgreSQL, by a
// URL.
//
// It links both drivers, wrapped so that they are safe to use (internal/sqldb/sqlitesafe,
// internal/sqldb/pgsafe). cmd, examples, tests and hosts import it; the library does not. A host
// may as well open its own *bun.DB.
package database

import (
	"context"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"
	"github.com/uptrace/bun/dialect/sqlitedialect"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/pgsafe"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/sqlitesafe"
)

// Open opens the database that a URL names. It does not connect to a PostgreSQL yet.
//
//   - sqlite:<path> is a file, made with its folder when missing and readable by its owner alone;
//   - postgres://user:password@host:port/name?sslmode=… is a PostgreSQL 14 or newer. Without
//     sslmode the connection is plain on the loopback interface and a unix socket, and TLS with a
//     checked certificate elsewhere. pool_max_conns=N bounds the pool (default 32). Several hosts
//     (host1:5432,host2:5432) are tried in turn; target_session_attrs is that of libpq, and without
//     it no connection is made to a standby. A server that is silent for read_timeout (default 10s)
//     during a read outside of a transaction, write_timeout (30s) during a write or long_timeout
//     (90s) during a statement of an import, restore, deploy or scan is given up: errs.Unavailable.
//     row_level_security=on tells each statement's tenant to the server's policies.
//
// It makes no table: see tenantcontent.Migrate. The caller closes it. Errors: errs.Invalid for a
// URL it cannot read; no error shows the password in it; errs.Unavailable for a file that is
// damaged (see Check); errs.Conflict where a restore was ended.
func Open(text string) (*bun.DB, error) {
	scheme, path, _ := strings.Cut(text, ":")
	switch scheme {
	case "sqlite":
		return openSQLite(path)
	case "postgres", "postgresql":
		return openPostgres(text)
	}
	return nil, errs.New(errs.Invalid, "the database URL must start with sqlite: or postgres://")
}

func openSQLite(path string) (*bun.DB, error) {
	if path == "" || strings.HasPrefix(path, ":memory:") {
		return nil, errs.New(errs.Invalid, "the database URL must name a file: sqlite:<path>")
	}
	if unfinished := path + restoringEnd; !exists(path) && exists(unfinished) {
		return nil, errs.New(
			errs.Conflict,
			"there is no database at %s, and %s is what a restore that was ended has left: run `tenantcontent "+
				"restore` again, or remove that file to begin with an empty database",
			path, unfinished,
		)
	}
	if err := private(path); err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "the database file %s cannot be opened: %v", path, err)
	}
	if err := sqlitesafe.CheckHeader(path); sqlitesafe.Damaged(err) {
		return nil, damagedFile(path, err)
	}
	db, err := sqlitesafe.Open(path, sqlitesafe.Options{
		Tenant:   tenantOf,
		DryRun:   bunx.IsDryRun,
		Brief:    bunx.IsBrief,
		Hurried:  hurried,
		Attached: new(bunx.Deferred),
	})
	if sqlitesafe.Damaged(err) {
		return nil, damagedFile(path, err)
	}
	if err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "the database file %s cannot be opened: %v", path, err)
	}
	return bun.NewDB(db, sqlitedialect.New()), nil
}

// tenantOf returns whose a statement is: the tenant of bunx.For, else that of who calls.
func tenantOf(ctx context.Context) string {
	if t := bunx.Tenant(ctx); t != "" {
		return t
	}
	a, _ := actor.From(ctx)
	return a.Tenant
}

// hurried reports whether somebody waits for the end of a transaction who can try again: a request
// that is no long one itself. Background work, and imports that wait for each other, have more
// time.
func hurried(ctx context.Context) bool {
	return actor.OriginOf(ctx).Request != "" && bunx.WorkOf(ctx) == bunx.Short
}

// exists reports whether there is a file at a path, or something that cannot be looked at.
func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// private makes the file and its folder, when missing, for their owner alone.
func private(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// openPostgres takes row_level_security=on out of the URL: then each connection is told the tenant
// of its statement, which costs a round trip whenever that changes (see
// tenantcontent.EnableRowLevelSecurity).
func openPostgres(text string) (*bun.DB, error) {
	text, on, err := cutRowLevelSecurity(text)
	if err != nil {
		return nil, err
	}
	cfg := pgsafe.Config{Work: func(ctx context.Context) pgsafe.Work { return pgsafe.Work(bunx.WorkOf(ctx)) }}
	if on {
		cfg.Tenant = bunx.Tenant
	}
	db, err := pgsafe.Open(text, cfg)
	if err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "the database URL cannot be used: %s", err)
	}
	return bun.NewDB(db, pgdialect.New()), nil
}

// cutRowLevelSecurity works on the query alone: package url does not read an address of several
// hosts.
func cutRowLevelSecurity(text string) (rest string, on bool, err error) {
	address, query, _ := strings.Cut(text, "?")
	q, err := url.ParseQuery(query)
	values, ok := q["row_level_security"]
	if err != nil || !ok {
		return text, false, nil // pgsafe refuses it, without the password
	}
	if len(values) != 1 || values[0] != "on" && values[0] != "off" {
		return "", false, errs.New(
			errs.Invalid, "the database URL cannot be used: row_level_security must be on or off",
		)
	}
	q.Del("row_level_security")
	return address + "?" + q.Encode(), values[0] == "on", nil
}
