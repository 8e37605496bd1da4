package bunx_test

import (
	"context"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// TestLongTransactionsArePlannedBySize: in a transaction that began with empty tables, checks of
// foreign keys are planned again as the tables grow. The statistics are updated after the commit.
func TestLongTransactionsArePlannedBySize(t *testing.T) {
	is := is.New(t)
	const many = 3000
	db := dbtest.Postgres(t)
	dbtest.WithoutStatistics(t, db, "tc_comments", "tc_activities")
	grow := func(
		ctx context.Context, run func(context.Context, func(context.Context) error) error, id string,
	) (read int) {
		t.Helper()
		is := is.New(t)
		is.NoErr(run(ctx, func(ctx context.Context) error {
			ctx, c := bunx.For(ctx, db, "acme")
			for _, rows := range [][2]int{{1, 20}, {21, many}} { // the rows of one statement are checked one by one
				for _, insert := range []string{
					`INSERT INTO tc_comments (tenant_id, id, kind, entity_id, user_id, message, public, replies, created_at, updated_at)
						SELECT 'acme', $1 || i, 'report', '1', 'jo', '', true, 0, now(), now() FROM generate_series($2::integer, $3) i`,
					`INSERT INTO tc_activities (tenant_id, id, type, kind, entity_id, comment_id, user_id, excerpt, created_at)
						SELECT 'acme', $1 || i, 'said', 'report', '1', $1 || i, 'jo', '', now() FROM generate_series($2::integer, $3) i`,
				} {
					if _, err := c.Exec(ctx, insert, id, rows[0], rows[1]); err != nil {
						return err
					}
				}
			}
			return c.Row(
				ctx,
				`SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = 'tc_comments'`,
			).Scan(&read)
		}))
		return read
	}
	sizes := func() (tables []string) {
		t.Helper()
		is := is.New(t)
		_, c := bunx.For(t.Context(), db, "acme")
		rows, err := c.Rows(
			t.Context(),
			`SELECT relname FROM pg_class WHERE relname IN ('tc_comments', 'tc_activities', 'tc_colors') `+
				`AND reltuples >= $1 ORDER BY relname`,
			many,
		)
		tables, err = bunx.Scan(rows, err, bunx.Text)
		is.NoErr(err)
		return tables
	}
	long := func(ctx context.Context, fn func(context.Context) error) error {
		return bunx.InTx(bunx.WithWork(ctx, bunx.Long), db, fn)
	}
	dry := func(ctx context.Context, fn func(context.Context) error) error {
		return bunx.DryRun(bunx.WithWork(ctx, bunx.Long), db, fn)
	}
	is.True(grow(t.Context(), dry, "dry-") < 3*many)
	is.Equal(len(sizes()), 0)
	is.True(grow(t.Context(), long, "long-") < 3*many)
	is.Equal(sizes(), []string{"tc_activities", "tc_comments"})
}
