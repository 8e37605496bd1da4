package bunstore

import (
	"context"
	"slices"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
)

// dependentBatch is the number of entities or users in one statement.
const dependentBatch = 500

// Threads implements comments.Store.
func (s *Store) Threads(ctx context.Context, tenant string, kind entity.Kind, ids []string) (map[string]int, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	all := map[string]int{}
	for some := range slices.Chunk(ids, dependentBatch) {
		rows, err := c.Rows(ctx,
			`SELECT entity_id, total FROM tc_comment_threads WHERE tenant_id = $1 AND kind = $2 AND total > 0 `+
				`AND entity_id IN `+
				bunx.In(3, len(some)), bunx.Args(some, tenant, string(kind))...)
		if err := bunx.ScanMap(rows, err, all); err != nil {
			return nil, bunx.Err(err, "Comment")
		}
	}
	return all, nil
}

// OfUsers implements comments.Store.
func (s *Store) OfUsers(
	ctx context.Context, tenant string, usernames []string,
) (notifications, comments int, err error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	where := `TRUE`
	if yes, err := settled(ctx, c, tenant); err != nil {
		return 0, 0, err
	} else if !yes {
		where = notRemoved(c, "n")
	}
	for some := range slices.Chunk(usernames, dependentBatch) {
		var queued, written int
		in := bunx.In(2, len(some))
		accounts := bunx.In(2+len(some), len(some))
		of, err := c.Accounts(ctx, tenant, some)
		if err != nil {
			return 0, 0, err
		}
		args := bunx.Args(some, tenant)
		for _, name := range some {
			args = append(args, of[name])
		}
		err = c.One(ctx, "Comment",
			`SELECT (SELECT count(*) FROM tc_notifications n WHERE n.tenant_id = $1 AND n.username IN `+accounts+
				` AND `+where+`),
			(SELECT count(*) FROM tc_comments c WHERE c.tenant_id = $1 AND `+ofAuthor+` AND c.user_id IN `+in+
				` AND `+present+`)`,
			args,
			&queued, &written)
		if err != nil {
			return 0, 0, err
		}
		notifications, comments = notifications+queued, comments+written
	}
	return notifications, comments, nil
}
