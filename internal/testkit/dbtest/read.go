package dbtest

import (
	"context"
	"database/sql"
	"strings"
	"testing"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
)

// WithoutStatistics keeps PostgreSQL from updating statistics of tables automatically, so that a
// test controls them.
func WithoutStatistics(t testing.TB, db *bun.DB, tables ...string) {
	t.Helper()
	for _, table := range tables {
		var stored []string // the rows of a table with partitions are in these
		if err := db.NewRaw(`SELECT CAST(CAST(oid AS regclass) AS text) FROM pg_class WHERE relkind = 'r'
			AND (oid = CAST(? AS regclass) OR oid IN (SELECT relid FROM pg_partition_tree(?)))`,
			table, table).Scan(t.Context(), &stored); err != nil {
			t.Fatal(err)
		}
		for _, table := range stored {
			if _, err := db.ExecContext(
				t.Context(), "ALTER TABLE "+table+" SET (autovacuum_enabled = off)",
			); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// RowsRead returns how many rows of all tables a PostgreSQL reads while fn runs in a transaction of
// a tenant, including foreign keys and triggers. It reveals a bad plan on a machine of any speed.
func RowsRead(t testing.TB, db *bun.DB, tenant string, fn func(ctx context.Context) error) int {
	t.Helper()
	var before, after int
	err := bunx.Write(t.Context(), db, tenant, func(ctx context.Context, c bunx.Conn) error {
		read := func(n *int) error {
			return c.Row(
				ctx,
				`SELECT CAST(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)) AS bigint) FROM pg_stat_xact_user_tables`,
			).Scan(n)
		}
		if err := read(&before); err != nil {
			return err
		}
		if err := fn(ctx); err != nil {
			return err
		}
		return read(&after)
	})
	if err != nil {
		t.Fatal(err)
	}
	return after - before
}

// Explain returns the lines of the plan of a statement, without the spaces before them.
func Explain(ctx context.Context, t testing.TB, c bunx.Conn, query string, args ...any) []string {
	t.Helper()
	prefix := "EXPLAIN QUERY PLAN "
	if c.Postgres() {
		prefix = "EXPLAIN "
	}
	rows, err := c.Rows(ctx, prefix+query, args...)
	plan, err := bunx.Scan(rows, err, func(rows *sql.Rows) (string, error) {
		columns, err := rows.Columns()
		if err != nil {
			return "", err
		}
		values := make([]any, len(columns))
		for i := range values {
			values[i] = new(sql.RawBytes)
		}
		err = rows.Scan(values...)
		return strings.TrimSpace(string(*values[len(values)-1].(*sql.RawBytes))), err
	})
	if err != nil {
		t.Fatal(err)
	}
	return plan
}
