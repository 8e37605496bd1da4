// Package postgres opens a PostgreSQL as tenantcontent needs it, and the SQL databases of apps in
// another one.
//
//	db, err := postgres.Open("postgres://user:password@host/name")
//	err = tenantcontent.Migrate(ctx, db)
//	app, err := tenantcontent.Open(tenantcontent.Config{DB: db, SecretKey: key})
//
// It links the driver of PostgreSQL (internal/sqldb/pgsafe), and that of SQLite is in package
// sqlite. Programs import the one that they need; the library imports neither. A host may as well
// open its own *bun.DB.
package postgres

import (
	"context"
	"net/url"
	"strings"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/pgsafe"
)

// Open opens the database that a URL names, postgres://user:password@host:port/name?sslmode=…, of a
// PostgreSQL 14 or newer. It does not connect yet.
//
// Without sslmode the connection is plain on the loopback interface and a unix socket, and TLS with
// a checked certificate elsewhere. pool_max_conns=N bounds the pool (default 32). Several hosts
// (host1:5432,host2:5432) are tried in turn; target_session_attrs is that of libpq, and without it
// no connection is made to a standby. A server that is silent for read_timeout (default 10s) during
// a read outside of a transaction, write_timeout (30s) during a write or long_timeout (90s) during
// a statement of an import, restore, deploy or scan is given up: errs.Unavailable.
// row_level_security=on passes each statement's tenant to the server's policies.
//
// It makes no table: see tenantcontent.Migrate. The caller closes it. Errors: errs.Invalid for a
// URL it cannot read; no error shows the password in it.
func Open(text string) (*bun.DB, error) {
	text, on, err := cutRowLevelSecurity(text)
	if err != nil {
		return nil, err
	}
	cfg := pgsafe.Config{
		Work: func(ctx context.Context) pgsafe.Work { return pgsafe.Work(bunx.WorkOf(ctx)) },
		Last: bunx.IsLast,
	}
	if on {
		cfg.Tenant = bunx.Tenant
	}
	db, err := pgsafe.Open(text, cfg)
	if err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "the database URL cannot be used: %s", err)
	}
	return bun.NewDB(db, pgdialect.New()), nil
}

// cutRowLevelSecurity takes row_level_security=on out of a URL: then each connection is told the
// tenant of its statement, which costs a round trip whenever that changes (see
// tenantcontent.EnableRowLevelSecurity). It works on the query: package url does not read an
// address of several hosts.
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
