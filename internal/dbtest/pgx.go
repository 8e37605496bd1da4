package dbtest

import (
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"
)

// EachStore runs the suite of a Store on each database, and as subtest pgx on PostgreSQL through another driver: a host may
// bring a *bun.DB of its own.
func EachStore(t *testing.T, test func(t *testing.T, open Opener)) {
	Each(t, test)
	t.Run("pgx", func(t *testing.T) {
		Server(t)
		test(t, PGX)
	})
}

// PGX returns a database in a schema of the test's own, as a host may bring it: through pgx, and without row-level security,
// for which a connection has to be one of package database.
func PGX(t testing.TB) *bun.DB {
	t.Helper()
	u, err := url.Parse(PostgresURL(t))
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Del("row_level_security")
	u.RawQuery = q.Encode()
	c, err := pgx.ParseConfig(u.String())
	if err != nil {
		t.Fatal(err)
	}
	db := bun.NewDB(stdlib.OpenDB(*c), pgdialect.New())
	t.Cleanup(func() { _ = db.Close() })
	if err := prepare(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	return db
}
