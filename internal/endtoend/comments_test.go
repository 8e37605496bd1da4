package endtoend_test

import (
	"context"
	"testing"
	"time"

	"github.com/matryer/is"
	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/bunx"
	"github.com/tenantcontent/tenantcontent/internal/dbtest"
)

// TestCommentMeetsDelete: what is said about a piece of content that is just being deleted goes with it, whoever is first.
func TestCommentMeetsDelete(t *testing.T) {
	is, db := is.New(t), dbtest.Postgres(t)
	w := newWorld(t, func(testing.TB) *bun.DB { return db })
	left := func() (n int) {
		t.Helper()
		ctx, c := bunx.For(t.Context(), db, "acme")
		is.NoErr(c.One(ctx, "Comment", `SELECT (SELECT count(*) FROM tc_comments WHERE tenant_id = $1)
			+ (SELECT count(*) FROM tc_activities WHERE tenant_id = $1)`, []any{"acme"}, &n))
		return n
	}
	comment := func(id string) error {
		_, err := w.app.Comments.Create(root(t), "report", id, "hello")
		return err
	}
	remove := func(ctx context.Context, id string) error { return w.app.Entities.Delete(ctx, "report", id) }
	after := make(chan error, 1)

	id := w.admin.create(t, "/api/reports", `{"name":"First"}`)
	is.NoErr(w.app.InTx(root(t), func(ctx context.Context) error {
		if err := remove(ctx, id); err != nil {
			return err
		}
		go func() { after <- comment(id) }()
		waiting(t, db, 1)
		return nil
	}))
	is.Equal(errs.CodeOf(<-after), errs.NotFound)
	is.Equal(left(), 0)

	id = w.admin.create(t, "/api/reports", `{"name":"Second"}`)
	is.NoErr(w.app.InTx(root(t), func(ctx context.Context) error {
		if _, err := w.app.Comments.Create(ctx, "report", id, "hello"); err != nil {
			return err
		}
		go func() { after <- remove(root(t), id) }()
		waiting(t, db, 1)
		return nil
	}))
	is.NoErr(<-after)
	is.Equal(left(), 0)
}

// waiting waits until n sessions of a database wait for a lock.
func waiting(t *testing.T, db *bun.DB, n int) {
	t.Helper()
	for begun := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		var now int
		err := db.QueryRowContext(t.Context(), `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&now)
		is.New(t).NoErr(err)
		if now >= n {
			return
		}
		if time.Since(begun) > 20*time.Second {
			t.Fatalf("%d wait for a lock, not %d", now, n)
		}
	}
}
