package bunstore

import (
	"context"
	"database/sql"

	"github.com/tenantcontent/tenantcontent/comments"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/bunx"
)

// mentionBatch is how many comments with mentions one statement reads.
const mentionBatch = 1000

// there are the rows whose authors are.
var there = bunx.Is{Column: "author_gone", Value: false}

// RenameUsers implements comments.Store.
func (s *Store) RenameUsers(ctx context.Context, tenant string, names map[string]string) error {
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		if err := c.Rename(ctx, tenant, "tc_comments", "user_id", names, there); err != nil {
			return bunx.Err(err, "Comment")
		}
		if err := c.Rename(ctx, tenant, "tc_activities", "user_id", names, there); err != nil {
			return bunx.Err(err, "Activity")
		}
		return s.renameMentions(ctx, c, tenant, names)
	})
}

// renameMentions goes through all comments with mentions: no index tells who is mentioned where.
func (s *Store) renameMentions(ctx context.Context, c bunx.Conn, tenant string, names map[string]string) error {
	for last, n := "", mentionBatch; n == mentionBatch; {
		rows, err := c.Rows(ctx, `SELECT id, mentions FROM tc_comments WHERE tenant_id = $1 AND id > $2 AND mentions IS NOT NULL
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
			if err != nil && errs.CodeOf(err) != errs.NotFound { // deleted meanwhile
				return err
			}
		}
		if n = len(ids); n > 0 {
			last = ids[n-1]
		}
	}
	return nil
}

// renamed writes new names into mentions and reports whether there was anything to write.
func renamed(all []comments.Mention, names map[string]string) (found bool) {
	for i := range all {
		if to, ok := names[all[i].Username]; ok {
			all[i].Username, found = to, true
		}
	}
	return found
}
