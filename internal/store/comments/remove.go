package bunstore

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/tenantcontent/tenantcontent/comments"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/secure/guard"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
)

// rowsBelow is the number of rows that are deleted with a comment c by foreign keys. It is a value,
// so that the database looks the rows up by key and never joins them.
const rowsBelow = `CAST((SELECT count(*) FROM tc_notifications n WHERE n.tenant_id = $1 AND n.comment_id = c.id)
	+ (SELECT coalesce(sum(1 + (SELECT count(*) FROM tc_feed f WHERE f.tenant_id = $1 AND f.activity_id = a.id)), 0)
		FROM tc_activities a WHERE a.tenant_id = $1 AND a.comment_id = c.id) AS bigint)`

// replied is the condition that a comment c has replies. It does not use the number of replies,
// which may be wrong. It is a value, so that the database looks it up by index and never joins it.
const replied = `(SELECT r.id FROM tc_comments r WHERE r.tenant_id = $1 AND r.parent_id = c.id ` +
	`ORDER BY r.created_at, r.id LIMIT 1) IS NOT NULL`

// node is a comment to be removed.
type node struct {
	id      string
	replied bool
	rows    int // that are deleted with it, including itself
}

func nodes(rows *sql.Rows, err error) ([]node, error) {
	return bunx.Scan(rows, err, func(rows *sql.Rows) (n node, err error) {
		err = rows.Scan(&n.id, &n.replied, &n.rows)
		n.rows++
		return n, err
	})
}

// Delete implements comments.Store.
func (s *Store) Delete(ctx context.Context, tenant, id string, at time.Time) (rest bool, err error) {
	err = bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		gone, err := get(ctx, c, tenant, id, "")
		if err != nil {
			return err
		}
		if _, err := add(ctx, c, tenant, gone.Entity, gone.ParentID, "", -1); err != nil {
			return err
		}
		if guard.Of(ctx, "comment") != nil { // locked in the order of all transactions that remove comments
			if gone, err = get(ctx, c, tenant, id, c.ForUpdate()); err != nil {
				return err
			}
			if err := guard.Check(ctx, "comment", gone); err != nil {
				return err
			}
		}
		n, err := c.Exec(
			ctx,
			`DELETE FROM tc_comments AS c WHERE c.tenant_id = $1 AND c.id = $2 AND NOT (`+replied+`) AND `+present,
			tenant, id,
		)
		if err != nil || n == 1 {
			return bunx.Err(err, "Comment")
		}
		all, few, err := s.few(
			ctx, c, `SELECT c.id, 0 FROM tc_comments c WHERE c.tenant_id = $1 AND c.id = $2 AND `+present,
			tenant, id,
		)
		if err = bunx.Found(len(all), err, "Comment"); err != nil { // it may be gone now
			return err
		}
		if few {
			return removeFew(ctx, c, tenant, all)
		}
		rest = true
		if _, err := c.Exec(
			ctx, `UPDATE tc_comments SET parent_id = NULL, thread_no = -1 WHERE tenant_id = $1 AND id = $2`,
			tenant, id,
		); err != nil {
			return bunx.Err(err, "Comment")
		}
		_, err = c.Exec(ctx,
			`UPDATE tc_comment_threads SET removing_at = $4 WHERE tenant_id = $1 AND kind = $2 AND entity_id = $3`,
			tenant, gone.Entity.Kind, gone.Entity.ID, bunx.At(at))
		return bunx.Err(err, "Comment")
	})
	return rest, err
}

// deleteBatch is the number of entities whose comments one statement removes.
const deleteBatch = 500

// DeleteAll implements comments.Store.
func (s *Store) DeleteAll(
	ctx context.Context, tenant string, kind entity.Kind, ids []string, at time.Time,
) (later []string, err error) {
	ids = slices.Compact(slices.Sorted(slices.Values(ids))) // locked in the same order by all transactions
	err = bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		for some := range slices.Chunk(ids, deleteBatch) {
			d := deletion{s, c, tenant, kind}
			rest, err := d.threads(ctx, some)
			if err != nil {
				return bunx.Err(err, "Comment")
			}
			later = append(later, rest...)
		}
		if len(later) == 0 {
			return nil
		}
		_, err := c.ExecIn(ctx,
			`UPDATE tc_comment_threads SET thread_no = thread_no + 1, total = 0, removing_at = $3 `+
				`WHERE tenant_id = $1 AND kind = $2 AND entity_id IN `,
			later, tenant, kind, bunx.At(at))
		return bunx.Err(err, "Comment")
	})
	return later, err
}

// deletion removes the comments on entities of a kind.
type deletion struct {
	s      *Store
	c      bunx.Conn
	tenant string
	kind   entity.Kind
}

// threads locks the rows of some entities, removes those whose comments are few, and returns the
// other entities.
func (d deletion) threads(ctx context.Context, ids []string) (later []string, err error) {
	var now []thread
	rows, err := d.c.Rows(ctx, `WITH t (id) AS `+d.c.Among(3, 1)+
		` INSERT INTO tc_comment_threads (tenant_id, kind, entity_id, total) SELECT $1, $2, id, 0 FROM t WHERE true
		ON CONFLICT (tenant_id, kind, entity_id) DO UPDATE SET total = tc_comment_threads.total RETURNING entity_id, thread_no, removing_at IS NOT NULL`,
		d.tenant, d.kind, bunx.Keys(ids))
	_, err = bunx.Scan(rows, err, func(rows *sql.Rows) (struct{}, error) {
		var t thread
		var removing bool
		err := rows.Scan(&t.entity, &t.number, &removing)
		if removing {
			later = append(later, t.entity)
		} else {
			now = append(now, t)
		}
		return struct{}{}, err
	})
	if err != nil {
		return nil, err
	}
	rest, err := d.few(ctx, now)
	return append(later, rest...), err
}

// few removes the comments of threads together if they are few. Otherwise it tries each half of the
// threads. It returns the entities with too many comments.
func (d deletion) few(ctx context.Context, threads []thread) (later []string, err error) {
	if len(threads) == 0 {
		return nil, nil
	}
	ids, numbers := make([]string, len(threads)), make([]string, len(threads))
	for i, t := range threads {
		ids[i], numbers[i] = t.entity, strconv.Itoa(t.number)
	}
	first := `SELECT c.id, 0 FROM json_each($3) t CROSS JOIN tc_comments c
		WHERE c.tenant_id = $1 AND c.kind = $2 AND c.entity_id = t.value ->> 0 AND c.thread_no = t.value ->> 1 AND c.parent_id IS NULL`
	if d.c.Postgres() {
		first = `SELECT c.id, 0 FROM (SELECT id, CAST(number AS integer) FROM ` + d.c.Among(3, 2) +
			` AS t(id, number) OFFSET 0) AS t(id, number) CROSS JOIN LATERAL
			(SELECT id FROM tc_comments WHERE tenant_id = $1 AND kind = $2 AND entity_id = t.id AND thread_no = t.number AND parent_id IS NULL
			ORDER BY created_at, id LIMIT ` + strconv.Itoa(comments.MaxRows+1) + `) c`
	}
	all, few, err := d.s.few(ctx, d.c, first, d.tenant, d.kind, bunx.Keys(ids, numbers))
	switch {
	case err != nil:
		return nil, err
	case few:
		if len(all) > 0 {
			if err := removeFew(ctx, d.c, d.tenant, all); err != nil {
				return nil, err
			}
		}
		return nil, forget(ctx, d.c, d.tenant, d.kind, ids...)
	case len(threads) == 1:
		return ids, nil
	}
	half := len(threads) / 2
	later, err = d.few(ctx, threads[:half])
	if err != nil {
		return nil, err
	}
	rest, err := d.few(ctx, threads[half:])
	return append(later, rest...), err
}

// forget removes the rows of entities without comments.
func forget(ctx context.Context, c bunx.Conn, tenant string, kind entity.Kind, ids ...string) error {
	_, err := c.Exec(
		ctx, `DELETE FROM tc_comment_threads WHERE tenant_id = $1 AND kind = $2 AND entity_id `+c.OneOf(3),
		tenant, kind, bunx.Keys(ids),
	)
	return bunx.Err(err, "Comment")
}

// few returns the comments that a SELECT of ids and depth 0 finds, with all replies below them,
// parents first. It reports whether they and the rows deleted with them are at most
// comments.MaxRows. args are the arguments of the SELECT after the tenant. PostgreSQL searches the
// index once for each comment. With a join it could read all comments, and does so if one thread
// has most of them.
func (s *Store) few(
	ctx context.Context, c bunx.Conn, first, tenant string, args ...any,
) (all []node, few bool, err error) {
	args = append([]any{tenant}, args...)
	limit := "$" + strconv.Itoa(len(args)+1)
	below := `SELECT c.id, t.depth + 1 FROM thread t CROSS JOIN tc_comments c WHERE c.tenant_id = $1 ` +
		`AND c.parent_id = t.id`
	each := `tc_comments c WHERE c.tenant_id = $1 AND c.id = few.id`
	if c.Postgres() {
		below = `SELECT c.id, t.depth + 1 FROM thread t CROSS JOIN LATERAL
			(SELECT id FROM tc_comments WHERE tenant_id = $1 AND parent_id = t.id ORDER BY created_at, id LIMIT ` +
			limit + `) c`
		each = `LATERAL (SELECT id FROM tc_comments WHERE tenant_id = $1 AND id = few.id OFFSET 0) c`
	}
	all, err = nodes(c.Rows(ctx, `WITH RECURSIVE thread (id, depth) AS (`+first+` UNION ALL `+below+`),
		few AS (SELECT id, depth FROM thread LIMIT `+limit+`)
		SELECT c.id, `+replied+`, `+rowsBelow+` FROM few CROSS JOIN `+each+` ORDER BY few.depth`,
		append(args, comments.MaxRows+1)...))
	if err != nil {
		return nil, false, bunx.Err(err, "Comment")
	}
	rows := 0
	for _, n := range all {
		rows += n.rows
	}
	return all, rows <= comments.MaxRows, nil
}

// removeFew removes comments that few has found. If they are many, the checks of foreign keys are
// planned by the sizes of the tables.
func removeFew(ctx context.Context, c bunx.Conn, tenant string, all []node) error {
	if len(all) > 20 {
		if err := c.Replan(ctx); err != nil {
			return bunx.Err(err, "Comment")
		}
	}
	return remove(ctx, c, tenant, all)
}

// remove removes comments, the last first.
func remove(ctx context.Context, c bunx.Conn, tenant string, all []node) error {
	ids := make([]string, len(all))
	for i, n := range all {
		ids[len(all)-1-i] = n.id
	}
	_, err := c.ExecIn(ctx, `DELETE FROM tc_comments WHERE tenant_id = $1 AND id IN `, ids, tenant)
	return bunx.Err(err, "Comment")
}

// RemoveAccount implements comments.Store.
func (s *Store) RemoveAccount(ctx context.Context, tenant, account string, n int) (more bool, err error) {
	err = bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		more, err = c.RemoveOf(ctx, tenant, account, n, feedTable.Name, notificationTable.Name)
		return err
	})
	return more, err
}

// RemoveRest implements comments.Store.
//
// Removed top comments without replies are deleted first. Before another top comment is deleted,
// its replies are deleted; those that have replies become top comments instead. So a step can end
// after any number of rows, and each comment is changed at most once before it is deleted.
func (s *Store) RemoveRest(ctx context.Context, tenant string, of entity.Key, n int) (more bool, err error) {
	err = bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		step := &step{c, tenant, of, n, 0}
		var number, total int
		err := c.Row(ctx,
			`SELECT thread_no, total FROM tc_comment_threads WHERE tenant_id = $1 AND kind = $2 `+
				`AND entity_id = $3 AND removing_at IS NOT NULL`+c.ForUpdate(),
			tenant, of.Kind, of.ID).Scan(&number, &total)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err == nil {
			err = c.Replan(ctx)
		}
		if err != nil {
			return bunx.Err(err, "Comment")
		}
		for more = true; more && step.left > 0; {
			more, err = step.next(ctx, number)
			if err != nil {
				return err
			}
		}
		if more {
			return nil
		}
		if total == 0 {
			return forget(ctx, c, tenant, of.Kind, of.ID)
		}
		_, err = c.Exec(
			ctx,
			`UPDATE tc_comment_threads SET removing_at = NULL WHERE tenant_id = $1 AND kind = $2 AND entity_id = $3`,
			tenant, of.Kind, of.ID,
		)
		return bunx.Err(err, "Comment")
	})
	return more, err
}

// step is one transaction that removes rows of removed comments.
type step struct {
	c      bunx.Conn
	tenant string
	of     entity.Key
	left   int // rows that it may still change
	done   int
}

// next removes the next top comments, or replies to them, and reports whether there were any.
func (s *step) next(ctx context.Context, number int) (found bool, err error) {
	tops, err := nodes(s.c.Rows(ctx, `SELECT c.id, `+replied+`, `+rowsBelow+
		` FROM tc_comments c WHERE c.tenant_id = $1 AND c.kind = $2 AND c.entity_id = $3
		AND c.parent_id IS NULL AND c.thread_no < $4 ORDER BY c.thread_no, c.created_at, c.id LIMIT $5`,
		s.tenant, s.of.Kind,
		s.of.ID, number, s.left))
	if err != nil || len(tops) == 0 {
		return false, bunx.Err(err, "Comment")
	}
	if _, err := s.leaves(ctx, tops); err != nil {
		return true, err
	}
	for _, top := range tops {
		if !top.replied || s.left <= 0 {
			continue
		}
		if err := s.below(ctx, top); err != nil {
			return true, err
		}
	}
	return true, nil
}

// below removes those replies to a top comment that have no replies, and makes the others top
// comments.
func (s *step) below(ctx context.Context, top node) error {
	all, err := nodes(s.c.Rows(ctx, `SELECT c.id, `+replied+`, `+rowsBelow+
		` FROM tc_comments c WHERE c.tenant_id = $1 AND c.parent_id = $2
		ORDER BY c.created_at, c.id LIMIT $3`, s.tenant, top.id, s.left))
	if err != nil {
		return bunx.Err(err, "Comment")
	}
	n, err := s.leaves(ctx, all)
	if err != nil {
		return err
	}
	var up []string
	for _, reply := range all {
		if reply.replied && s.left > 0 {
			up = append(up, reply.id)
			s.took(1)
		}
	}
	if len(up) > 0 {
		_, err := s.c.ExecIn(
			ctx, `UPDATE tc_comments SET parent_id = NULL, thread_no = -1 WHERE tenant_id = $1 AND id IN `, up,
			s.tenant,
		)
		if err != nil {
			return bunx.Err(err, "Comment")
		}
	}
	_, err = s.c.Exec(
		ctx, `UPDATE tc_comments SET replies = replies - $3 WHERE tenant_id = $1 AND id = $2`, s.tenant, top.id,
		n+len(up),
	)
	s.took(1)
	return bunx.Err(err, "Comment")
}

// leaves removes those of some comments that have no replies, as many as the step may, and returns
// their number.
func (s *step) leaves(ctx context.Context, all []node) (int, error) {
	var some []node
	for _, n := range all {
		if n.replied {
			continue
		}
		if n.rows > s.left && s.done > 0 { // the first one is removed in any case
			s.left = 0
			break
		}
		some = append(some, n)
		s.took(n.rows)
	}
	return len(some), remove(ctx, s.c, s.tenant, some)
}

func (s *step) took(rows int) { s.left, s.done = s.left-rows, s.done+rows }
