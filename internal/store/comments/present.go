package bunstore

import (
	"context"

	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
)

// A removed comment is invisible at once; its row is deleted later: see RemoveRest. These
// conditions hide removed comments from readers. The first argument of their statements is the
// tenant.

// present is the condition that a comment c is not removed: it has the number of its entity's
// thread, and so has the top comment above it. The top comment can differ only while there are rows
// of removed comments. It is a value and not an EXISTS, so that the database looks it up by key and
// never joins it.
const present = `(SELECT t.thread_no = c.thread_no AND (t.removing_at IS NULL OR t.thread_no = (
		WITH RECURSIVE up (parent_id, thread_no) AS (SELECT c.parent_id, c.thread_no UNION ALL
			SELECT p.parent_id, p.thread_no FROM up CROSS JOIN tc_comments p WHERE p.tenant_id = $1 AND p.id = up.parent_id)
		SELECT thread_no FROM up WHERE parent_id IS NULL))
	FROM tc_comment_threads t WHERE t.tenant_id = $1 AND t.kind = c.kind AND t.entity_id = c.entity_id)`

// settled reports whether a tenant has no rows of removed comments. All comments are present then.
func settled(ctx context.Context, c bunx.Conn, tenant string) (yes bool, err error) {
	err = c.One(ctx, "Comment", `SELECT `+allSettled, []any{tenant}, &yes)
	return yes, err
}

const allSettled = `NOT EXISTS (SELECT 1 FROM tc_comment_threads WHERE tenant_id = $1 AND removing_at IS NOT NULL)`

// whosePresent returns the condition that the comment of an activity or notification, if any, is
// present. It is a value, so that the database looks it up by key for each row, however many there
// are.
func whosePresent(alias string) string {
	return `coalesce((SELECT ` + present + ` FROM tc_comments c WHERE c.tenant_id = $1 AND c.id = ` + alias +
		`.comment_id), TRUE)`
}

// removed returns a SELECT of the ids of all removed comments of a tenant that still have rows,
// from the top comments down. PostgreSQL searches the index once for each comment, as in few.
func removed(c bunx.Conn) string {
	tops := `SELECT c.id FROM tc_comment_threads t CROSS JOIN tc_comments c WHERE t.tenant_id = $1 AND t.removing_at IS NOT NULL
			AND c.tenant_id = $1 AND c.kind = t.kind AND c.entity_id = t.entity_id AND c.parent_id IS NULL AND c.thread_no < t.thread_no`
	below := `SELECT c.id FROM removed r CROSS JOIN tc_comments c WHERE c.tenant_id = $1 AND c.parent_id = r.id`
	if c.Postgres() {
		tops = `SELECT c.id FROM tc_comment_threads t CROSS JOIN LATERAL (SELECT id FROM tc_comments WHERE tenant_id = $1 AND kind = t.kind
			AND entity_id = t.entity_id AND parent_id IS NULL AND thread_no < t.thread_no ORDER BY thread_no, created_at, id OFFSET 0) c
			WHERE t.tenant_id = $1 AND t.removing_at IS NOT NULL`
		below = `SELECT c.id FROM removed r CROSS JOIN LATERAL
			(SELECT id FROM tc_comments WHERE tenant_id = $1 AND parent_id = r.id ORDER BY created_at, id OFFSET 0) c`
	}
	return `WITH RECURSIVE removed (id) AS (` + tops + ` UNION ALL ` + below + `)
		SELECT id FROM removed`
}

// notRemoved is whosePresent for many rows: it reads the removed comments once from the top down,
// and not the comments above each row.
func notRemoved(c bunx.Conn, alias string) string {
	ids := removed(c)
	if c.Postgres() { // PostgreSQL makes a hash table of an array, whose length it does not estimate
		ids = `SELECT unnest(ARRAY(` + ids + `))`
	}
	return `(` + alias + `.comment_id IS NULL OR ` + alias + `.comment_id NOT IN (` + ids + `))`
}

// rows are activities or notifications, of which those of removed comments are hidden.
type rows struct {
	alias string // of the table that has comment_id
	total string // their number, including those of removed comments: see bunx.Total
	args  []any  // of total; the first is the tenant
	below string // a SELECT of the number that belong to the removed comment r
	own   string // a SELECT of the number that belong to removed comments, which checks each row
}

// hidden describes the hidden rows in a tenant with removed comments. Its statements read the rows
// of the user or entity, or the remaining rows of removed comments, whichever are fewer.
type hidden struct {
	none  bool   // there are no removed comments
	shown string // a condition for the visible rows
	n     string // an expression for the number of hidden rows
}

// hide returns the conditions that hide the rows of removed comments.
func hide(ctx context.Context, c bunx.Conn, r rows) (hidden, error) {
	yes, err := settled(ctx, c, r.args[0].(string))
	if err != nil || yes {
		return hidden{none: true, shown: `TRUE`, n: `0`}, err
	}
	var own, theirs int
	err = c.One(ctx, "Comment", `SELECT `+r.total+`, `+bunx.Total("entity_activities",
		`IN (SELECT kind || '/' || entity_id FROM tc_comment_threads WHERE tenant_id = $1 `+
			`AND removing_at IS NOT NULL)`),
		r.args,
		&own, &theirs)
	if own < theirs/upward {
		return hidden{shown: whosePresent(r.alias), n: `(` + r.own + `)`}, err
	}
	return hidden{
		shown: notRemoved(c, r.alias),
		n:     `(SELECT CAST(coalesce(sum((` + r.below + `)), 0) AS bigint) FROM (` + removed(c) + `) r)`,
	}, err
}

// upward is the cost of reading from a comment up to its top comment, relative to the cost of
// reading down to it.
const upward = 4

// ofPresent returns the visible rows of a part. The number of hidden rows is subtracted from its
// total.
func ofPresent(ctx context.Context, c bunx.Conn, these bunx.Part, r rows) (bunx.Part, error) {
	h, err := hide(ctx, c, r)
	if err != nil || h.none {
		return these, err
	}
	these.Where += " AND " + h.shown
	if these.Total != "" {
		these.Total += " - " + h.n
	}
	return these, nil
}

// ofAuthor is the condition that the author of a comment c has not been deleted: no user with the
// name was deleted since it was written.
var ofAuthor = `c.author_no = ` + bunx.Former(`c.user_id`)
