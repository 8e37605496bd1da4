package bunstore

import (
	"context"

	"github.com/tenantcontent/tenantcontent/internal/bunx"
)

// Comments that are removed are gone for everybody at once, and their rows later: see RemoveRest. These conditions keep readers from them.
// The first argument of their statements is the tenant.

// present is met by a comment c that is not removed: it has the number of its entity's thread, and so has the comment on top of it, which
// differs only while the rows of removed comments are left. As a value, and no EXISTS, it is looked up by key and never joined.
const present = `(SELECT t.thread_no = c.thread_no AND (t.removing_at IS NULL OR t.thread_no = (
		WITH RECURSIVE up (parent_id, thread_no) AS (SELECT c.parent_id, c.thread_no UNION ALL
			SELECT p.parent_id, p.thread_no FROM up CROSS JOIN tc_comments p WHERE p.tenant_id = $1 AND p.id = up.parent_id)
		SELECT thread_no FROM up WHERE parent_id IS NULL))
	FROM tc_comment_threads t WHERE t.tenant_id = $1 AND t.kind = c.kind AND t.entity_id = c.entity_id)`

// settled reports whether no rows of removed comments are left in a tenant: then all comments are present.
func settled(ctx context.Context, c bunx.Conn, tenant string) (yes bool, err error) {
	err = c.One(ctx, "Comment", `SELECT `+allSettled, []any{tenant}, &yes)
	return yes, err
}

const allSettled = `NOT EXISTS (SELECT 1 FROM tc_comment_threads WHERE tenant_id = $1 AND removing_at IS NOT NULL)`

// whosePresent returns the condition that the comment of one activity or notification is present, if it has one.
func whosePresent(alias string) string {
	return `(` + alias + `.comment_id IS NULL OR EXISTS (SELECT 1 FROM tc_comments c
		WHERE c.tenant_id = $1 AND c.id = ` + alias + `.comment_id AND ` + present + `))`
}

// unsettled is whosePresent for many rows of the tenant that is the first argument: it goes down from the removed comments once, and not up
// from each row.
func unsettled(c bunx.Conn, alias string) string {
	removed := `WITH RECURSIVE removed (id) AS (
		SELECT c.id FROM tc_comment_threads t CROSS JOIN tc_comments c WHERE t.tenant_id = $1 AND t.removing_at IS NOT NULL
			AND c.tenant_id = $1 AND c.kind = t.kind AND c.entity_id = t.entity_id AND c.parent_id IS NULL AND c.thread_no = -1
		UNION ALL SELECT c.id FROM removed r CROSS JOIN tc_comments c WHERE c.tenant_id = $1 AND c.parent_id = r.id)
		SELECT id FROM removed`
	if c.Postgres() { // it makes a hash table of an array, whose length it does not guess
		removed = `SELECT unnest(ARRAY(` + removed + `))`
	}
	return `(` + alias + `.comment_id IS NULL OR EXISTS (SELECT 1 FROM tc_comments c CROSS JOIN tc_comment_threads t
		WHERE c.tenant_id = $1 AND c.id = ` + alias + `.comment_id
		AND t.tenant_id = $1 AND t.kind = c.kind AND t.entity_id = c.entity_id AND t.thread_no = c.thread_no)
		AND ` + alias + `.comment_id NOT IN (` + removed + `))`
}

// among returns the condition of unsettled, or one that all rows meet if the tenant is settled.
func among(ctx context.Context, c bunx.Conn, tenant, alias string) (string, error) {
	yes, err := settled(ctx, c, tenant)
	if err != nil || yes {
		return `TRUE`, err
	}
	return unsettled(c, alias), nil
}

// ofPresent returns those activities or notifications whose comments are present. They are counted if the tenant is not settled.
func ofPresent(ctx context.Context, c bunx.Conn, these bunx.Part, alias string) (bunx.Part, error) {
	yes, err := settled(ctx, c, these.Args[0].(string))
	if err != nil || yes {
		return these, err
	}
	return these.And(unsettled(c, alias)), nil
}

// ofAuthor is met by a comment c whose author has not been deleted: nobody who had the name has been since it was written.
const ofAuthor = `c.author_no = coalesce((SELECT w.author_no FROM tc_comment_authors w WHERE w.tenant_id = $1 AND w.username = c.user_id), 0)`
