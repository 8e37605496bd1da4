package bunstore

import (
	"context"

	"github.com/tenantcontent/tenantcontent/comments"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/secure/guard"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
)

var insertComment = table.InsertOneWith("thread_no", "author_no")

// Insert implements comments.Store.
func (s *Store) Insert(ctx context.Context, tenant string, n comments.Comment) error {
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		if err := c.HoldPrincipal(ctx, tenant, n.UserID); err != nil {
			return err
		}
		now, err := add(ctx, c, tenant, n.Entity, n.ParentID, n.UserID, 1)
		if err != nil {
			return err
		}
		n.Tenant = tenant
		_, err = c.Exec(ctx, insertComment, append(table.Args(&n), now.number, now.author)...)
		return bunx.Err(err, "A comment with this id")
	})
}

// thread is the row of an entity in tc_comment_threads, with the author_no of a user.
type thread struct {
	entity string
	number int
	author int
}

// add counts an added (1) or removed (-1) comment, and locks the threads of its entity until the
// transaction ends. So a comment gets no reply while another transaction removes it.
func add(
	ctx context.Context, c bunx.Conn, tenant string, of entity.Key, parent *string, author string, n int,
) (t thread, err error) {
	top := n
	if parent != nil {
		top = 0
	}
	err = c.One(ctx, "Comment",
		`INSERT INTO tc_comment_threads (tenant_id, kind, entity_id, total) VALUES ($1, $2, $3, $4)
		ON CONFLICT (tenant_id, kind, entity_id) DO UPDATE SET total = tc_comment_threads.total + excluded.total
		RETURNING thread_no, `+bunx.Former("$5"),
		[]any{tenant, of.Kind, of.ID, top, author}, &t.number, &t.author)
	if err != nil || parent == nil {
		return t, err
	}
	changed, err := c.Exec(ctx, `UPDATE tc_comments AS c SET replies = replies + $2
		WHERE c.tenant_id = $1 AND c.id = $3 AND c.kind = $4 AND c.entity_id = $5 AND `+present, tenant, n,
		*parent, of.Kind, of.ID)
	return t, bunx.Found(changed, err, "Comment")
}

// Update implements comments.Store.
func (s *Store) Update(
	ctx context.Context, tenant, id string, edit func(*comments.Comment) error,
) (comments.Comment, error) {
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
