package endtoend_test

import (
	"context"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// TestCommentMeetsDelete: a comment on an entity that is being deleted is deleted with it,
// whichever is first.
func TestCommentMeetsDelete(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, db := is.New(t), open(t)
		w := serve(t, db, tenantcontent.NewSecretKey(), nil)
		var id string
		comment := func(ctx context.Context) error {
			_, err := w.app.Comments.Create(ctx, entity.Key{Kind: "report", ID: id}, "hello")
			return err
		}
		remove := func(ctx context.Context) error { return w.app.Content.Delete(ctx, "report", id) }
		left := func() (n int) {
			t.Helper()
			ctx, c := bunx.For(t.Context(), db, "acme")
			is.NoErr(c.One(ctx, "Comment", `SELECT (SELECT count(*) FROM tc_comments WHERE tenant_id = $1)
				+ (SELECT count(*) FROM tc_activities WHERE tenant_id = $1)`, []any{"acme"}, &n))
			return n
		}
		id = w.admin.create(t, "/api/reports", `{"name":"First"}`)
		err := w.meanwhile(t, db, root(t), remove, func() error { return comment(root(t)) })
		is.Equal(errs.CodeOf(err), errs.NotFound)
		is.Equal(left(), 0)

		id = w.admin.create(t, "/api/reports", `{"name":"Second"}`)
		is.NoErr(w.meanwhile(t, db, root(t), comment, func() error { return remove(root(t)) }))
		is.Equal(left(), 0)
	})
}
