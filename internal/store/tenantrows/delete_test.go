package tenantrows_test

import (
	"context"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/store/tenantrows"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// TestDeleteReadsRowsFewTimes also deletes a tenant that is newer than the statistics of the
// tables.
func TestDeleteReadsRowsFewTimes(t *testing.T) {
	const rows = 4000
	dbtest.Server(t)
	is, db := is.New(t), dbtest.People(t, dbtest.Postgres(t), "jo")
	dbtest.WithoutStatistics(t, db, "tc_colors", "tc_comments")
	fill := func(tenant string) {
		is.NoErr(bunx.Write(t.Context(), db, tenant, func(ctx context.Context, c bunx.Conn) error {
			_, err := c.Exec(ctx, `INSERT INTO tc_colors (tenant_id, key, search, color, created_at, updated_at)
				SELECT $1, 'color ' || n, 'color ' || n, '#123456', now(), now() FROM generate_series(1,
				$2::integer) n`,
				tenant, rows)
			is.NoErr(err)
			_, err = c.Exec(ctx,
				`INSERT INTO tc_comments (tenant_id, id, kind, entity_id, parent_id, user_id, message, public,
					mentions, replies, created_at, updated_at, thread_no, author_no)
				SELECT $1, 'comment ' || n, 'report', 'sales', CASE WHEN n > 2000 THEN 'comment ' || n - 2000
				END, 'jo', 'Hello', false, '[]', 0, now(), now(), n, n FROM generate_series(1, $2::integer) n`,
				tenant, rows)
			return err
		}))
	}
	all, err := tenantrows.Tables(t.Context(), db)
	is.NoErr(err)
	fill("acme")
	_, err = db.ExecContext(t.Context(), "ANALYZE tc_colors, tc_comments")
	is.NoErr(err)
	fill("evil")
	is.NoErr(tenantrows.Delete(t.Context(), db, "evil", all, func(int) {
		t.Error("a tenant that is not being deleted has lost rows")
	}))
	_, err = db.ExecContext(
		t.Context(), "UPDATE tc_tenants SET hidden = 'deleting', hidden_at = now() WHERE tenant_id = 'evil'",
	)
	is.NoErr(err)
	deleted := 0
	n := dbtest.RowsRead(t, db, "evil", func(ctx context.Context) error {
		return tenantrows.Delete(ctx, db, "evil", all, func(n int) { deleted += n })
	})
	is.True(deleted >= 2*rows)
	if n > 20*deleted { // including what triggers and foreign keys read
		t.Errorf("reads %d rows to delete %d", n, deleted)
	}
	counts, err := tenantrows.Count(t.Context(), db, "acme", all)
	is.NoErr(err)
	is.Equal(counts["tc_colors"], rows)
	is.Equal(counts["tc_comments"], rows)
}
