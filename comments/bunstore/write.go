package bunstore

import (
	"context"
	"slices"

	"github.com/tenantcontent/tenantcontent/comments"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/bunx"
	"github.com/tenantcontent/tenantcontent/internal/guard"
)

// Insert implements comments.Store.
func (s *Store) Insert(ctx context.Context, tenant string, n comments.Comment) error {
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		if err := c.HoldPrincipal(ctx, tenant, n.UserID); err != nil {
			return err
		}
		if err := add(ctx, c, tenant, n.Entity, n.ParentID, 1); err != nil {
			return err
		}
		n.Tenant = tenant
		_, err := table.Insert(ctx, c, "", n)
		return bunx.Err(err, "A comment with this id")
	})
}

// add counts a comment that comes (1) or goes (-1), and locks the threads of its entity until the transaction ends: so
// nobody replies to a comment that somebody else is about to remove.
func add(ctx context.Context, c bunx.Conn, tenant string, of entity.Key, parent *string, n int) error {
	top := n
	if parent != nil {
		top = 0
	}
	_, err := c.Exec(ctx, `INSERT INTO tc_comment_threads (tenant_id, kind, entity_id, total) VALUES ($1, $2, $3, $4)
		ON CONFLICT (tenant_id, kind, entity_id) DO UPDATE SET total = tc_comment_threads.total + excluded.total`,
		tenant, of.Kind, of.ID, top)
	if err != nil || parent == nil {
		return bunx.Err(err, "Comment")
	}
	changed, err := c.Exec(ctx, `UPDATE tc_comments SET replies = replies + $1
		WHERE tenant_id = $2 AND id = $3 AND kind = $4 AND entity_id = $5`, n, tenant, *parent, of.Kind, of.ID)
	return bunx.Found(changed, err, "Comment")
}

// Update implements comments.Store.
func (s *Store) Update(ctx context.Context, tenant, id string, edit func(*comments.Comment) error) (comments.Comment, error) {
	var n comments.Comment
	err := bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		was, err := get(ctx, c, tenant, id, c.ForUpdate())
		if err != nil {
			return err
		}
		n = was
		if err := edit(&n); err != nil {
			return err
		}
		if err := guard.Check(ctx, "comment", was); err != nil {
			return err
		}
		if err := table.Restore(&n, &was); err != nil {
			return err
		}
		_, err = table.Update(ctx, c, &n)
		return bunx.Err(err, "Comment")
	})
	if err != nil {
		return comments.Comment{}, err
	}
	return n, nil
}

// removeBelow removes the comments that a SELECT of ids finds, with all below them. Activities and notifications go by
// their foreign keys. It is one statement and no recursion, however deep the thread is; CROSS
// JOIN makes SQLite look up the replies of each comment, as it would not by itself.
func removeBelow(first string) string {
	return `WITH RECURSIVE thread (id) AS (` + first + ` UNION ALL
		SELECT c.id FROM thread t CROSS JOIN tc_comments c WHERE c.tenant_id = $1 AND c.parent_id = t.id)
		DELETE FROM tc_comments WHERE tenant_id = $1 AND id IN (SELECT id FROM thread)`
}

var (
	removeOne = removeBelow(`SELECT id FROM tc_comments WHERE tenant_id = $1 AND id = $2`)
	removeAll = removeBelow(`SELECT id FROM tc_comments WHERE tenant_id = $1 AND kind = $2 AND entity_id = $3 AND parent_id IS NULL`)
)

// Delete implements comments.Store.
func (s *Store) Delete(ctx context.Context, tenant, id string) error {
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		gone, err := get(ctx, c, tenant, id, "")
		if err != nil {
			return err
		}
		if err := add(ctx, c, tenant, gone.Entity, gone.ParentID, -1); err != nil {
			return err
		}
		if guard.Of(ctx, "comment") != nil { // locked in the order of all who remove comments
			if gone, err = get(ctx, c, tenant, id, c.ForUpdate()); err != nil {
				return err
			}
			if err := guard.Check(ctx, "comment", gone); err != nil {
				return err
			}
		}
		n, err := c.Exec(ctx, removeOne, tenant, id)
		return bunx.Found(n, err, "Comment")
	})
}

// DeleteAll implements comments.Store.
func (s *Store) DeleteAll(ctx context.Context, tenant string, of entity.Key) error {
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		if err := add(ctx, c, tenant, of, nil, 0); err != nil {
			return err
		}
		if _, err := c.Exec(ctx, removeAll, tenant, of.Kind, of.ID); err != nil {
			return bunx.Err(err, "Comment")
		}
		_, err := c.Exec(ctx, `DELETE FROM tc_comment_threads WHERE tenant_id = $1 AND kind = $2 AND entity_id = $3`, tenant, of.Kind, of.ID)
		return bunx.Err(err, "Comment")
	})
}

// authorBatch is how many authors one statement marks as gone.
const authorBatch = 500

// MarkAuthorsGone implements comments.Store.
func (s *Store) MarkAuthorsGone(ctx context.Context, tenant string, usernames ...string) error {
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		for some := range slices.Chunk(usernames, authorBatch) {
			for _, table := range []string{"tc_comments", "tc_activities"} {
				_, err := c.Exec(ctx, `UPDATE `+table+` SET author_gone = true WHERE tenant_id = $1 AND NOT author_gone AND user_id IN `+
					bunx.In(2, len(some)), bunx.Args(some, tenant)...)
				if err != nil {
					return bunx.Err(err, "Comment")
				}
			}
		}
		return nil
	})
}
