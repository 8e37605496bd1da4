package bunstore

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tenantcontent/tenantcontent/comments"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
)

// mentionBatch is the number of comments with mentions that one statement reads.
const mentionBatch = 1000

// renameBatch is the number of names that one statement changes.
const renameBatch = 500

// RenameUsers implements comments.Store.
func (s *Store) RenameUsers(ctx context.Context, tenant string, names map[string]string) error {
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		for some := range slices.Chunk(slices.Sorted(maps.Keys(names)), renameBatch) {
			args := []any{tenant}
			for _, was := range some {
				args = append(args, was, names[was])
			}
			with := `WITH names (was, becomes) AS (VALUES ` + pairs(len(some)) + `) UPDATE `
			for _, set := range []string{ // comments after activities, whose statement reads the authors of comments
				`tc_activities AS a SET user_id = (SELECT becomes FROM names WHERE was = a.user_id)
					WHERE a.tenant_id = $1 AND a.user_id IN (SELECT was FROM names)
					AND EXISTS (SELECT 1 FROM tc_comments c WHERE c.tenant_id = $1 AND c.id = a.comment_id AND ` +
					ofAuthor + `)`,
				`tc_comments AS c SET user_id = (SELECT becomes FROM names WHERE was = c.user_id),
					author_no = (SELECT ` + bunx.Former("becomes") + ` FROM names WHERE was = c.user_id)
					WHERE c.tenant_id = $1 AND c.user_id IN (SELECT was FROM names) AND ` + ofAuthor,
			} {
				if _, err := c.Exec(ctx, with+set, args...); err != nil {
					return bunx.Err(err, "Comment")
				}
			}
		}
		for _, table := range []string{feedTable.Name, notificationTable.Name} {
			if err := c.RenameAccounts(ctx, tenant, table, names); err != nil {
				return bunx.Err(err, "Comment")
			}
		}
		return s.renameMentions(ctx, c, tenant, names)
	})
}

// pairs returns the VALUES rows of n pairs of arguments from $2.
func pairs(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("($%d,$%d)", 2*i+2, 2*i+3)
	}
	return strings.Join(all, ",")
}

// renameMentions reads all comments with mentions, because mentioned users are not indexed.
func (s *Store) renameMentions(ctx context.Context, c bunx.Conn, tenant string, names map[string]string) error {
	for last, n := "", mentionBatch; n == mentionBatch; {
		rows, err := c.Rows(ctx,
			`SELECT id, mentions FROM tc_comments WHERE tenant_id = $1 AND id > $2 AND mentions IS NOT NULL
			ORDER BY id LIMIT $3`, tenant, last, mentionBatch)
		var changed []string
		ids, err := bunx.Scan(rows, err, func(rows *sql.Rows) (id string, err error) {
			var text string
			err = rows.Scan(&id, &text)
			if all := parse(text); renamed(all, names) {
				changed = append(changed, id)
			}
			return id, err
		})
		if err != nil {
			return bunx.Err(err, "Comment")
		}
		for _, id := range changed {
			_, err := s.Update(ctx, tenant, id, func(c *comments.Comment) error {
				renamed(c.Mentions, names)
				return nil
			})
			if err != nil && errs.CodeOf(err) != errs.NotFound { // deleted since
				return err
			}
		}
		if n = len(ids); n > 0 {
			last = ids[n-1]
		}
	}
	return nil
}

// renamed replaces names in mentions and reports whether it replaced any.
func renamed(all []comments.Mention, names map[string]string) (found bool) {
	for i := range all {
		if to, ok := names[all[i].Username]; ok {
			all[i].Username, found = to, true
		}
	}
	return found
}
