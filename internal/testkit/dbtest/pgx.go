package dbtest

import (
	"database/sql"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"
	"github.com/uptrace/bun/driver/pgdriver"
)

// EachStore runs the suite of a Store on each database, and as subtest pgx on PostgreSQL with
// another driver, because a host may use its own *bun.DB.
func EachStore(t *testing.T, test func(t *testing.T, open Opener)) {
	Each(t, test)
	t.Run("pgx", func(t *testing.T) {
		Server(t)
		test(t, PGX)
	})
}

// PGDriver is PGX with uptrace's pgdriver.
func PGDriver(t testing.TB) *bun.DB {
	t.Helper()
	db := bun.NewDB(
		sql.OpenDB(pgdriver.NewConnector(pgdriver.WithDSN(address(Server(t), borrow(t, "plain"), "")))),
		pgdialect.New(),
	)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// PGX returns a database for one test as a host may open it: with pgx and without row-level
// security, which requires connections of package postgres.
func PGX(t testing.TB) *bun.DB {
	t.Helper()
	c, err := pgx.ParseConfig(address(Server(t), borrow(t, "plain"), ""))
	if err != nil {
		t.Fatal(err)
	}
	db := bun.NewDB(stdlib.OpenDB(*c), pgdialect.New())
	t.Cleanup(func() { _ = db.Close() })
	return db
}
