package bunstore

import (
	"context"
	"database/sql"
	"time"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/drafts/libraries"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
)

// A row of tc_library_released is a content that one library had, and that may now be unused. Only
// the holder of the library's lock writes it, so that writers of different libraries, which share
// contents, never wait for each other. Release skips rows that other transactions hold.

const overwriteRelease = ` ON CONFLICT (tenant_id, content_id, library_id) DO UPDATE SET released_at = ` +
	`excluded.released_at`

func release(ctx context.Context, c bunx.Conn, tenant, library, content string, at time.Time) error {
	_, err := c.Exec(ctx,
		`INSERT INTO tc_library_released (tenant_id, content_id, library_id, released_at) VALUES ($1, $2, $3, $4)`+
			overwriteRelease, tenant, content, library, bunx.At(at))
	return bunx.Err(err, "File")
}

// locked returns a clause that locks the rows of a SELECT on PostgreSQL. It is empty for SQLite,
// which has one writer.
func locked(c bunx.Conn, clause string) string {
	if c.Postgres() {
		return clause
	}
	return ""
}

// Hold implements libraries.Store.
func (s *Store) Hold(ctx context.Context, tenant, sha256 string) (id string, err error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	err = c.One(ctx, "Content", `SELECT id FROM tc_library_contents WHERE tenant_id = $1 AND sha256 = $2`+
		locked(c, ` FOR SHARE`),
		[]any{tenant, sha256}, &id)
	if errs.CodeOf(err) == errs.NotFound {
		return "", nil
	}
	return id, err
}

const (
	add = `INSERT INTO tc_library_contents (tenant_id, id, sha256, size) VALUES ($1, $2, $3, $4) ` +
		`ON CONFLICT (tenant_id, sha256) DO NOTHING`

	// addFirst stores the digest only if it gets an advisory lock for it. On PostgreSQL other
	// transactions would otherwise wait for the end of this one, such as an import, and two that
	// add the same contents in different order would deadlock. A tenant has 256 such locks, so that
	// a transaction that adds many contents does not need one for each.
	addFirst = `INSERT INTO tc_library_contents (tenant_id, id, sha256, size)
		SELECT $1::text, $2::text, CASE WHEN pg_try_advisory_xact_lock(hashtext('tc_library_contents ' || current_schema() || ' ' || $1::text),
			hashtext($3::text) & 255) THEN $3::text END, $4::bigint
		WHERE NOT EXISTS (SELECT FROM tc_library_contents WHERE tenant_id = $1::text AND sha256 = $3::text)
		ON CONFLICT (tenant_id, sha256) DO NOTHING`
)

// Add implements libraries.Store.
func (s *Store) Add(ctx context.Context, tenant string, content libraries.Content) (added bool, err error) {
	err = bunx.WriteOne(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		query := add
		if c.Postgres() {
			query = addFirst
		}
		n, err := c.Exec(ctx, query, tenant, content.ID, bunx.TextOrNull(&content.SHA256), content.Size)
		added = n == 1
		return bunx.Err(err, "Content")
	})
	return added, err
}

// Unshare implements libraries.Store.
func (s *Store) Unshare(ctx context.Context, tenant, id string) error {
	return bunx.WriteOne(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		_, err := c.Exec(ctx, `UPDATE tc_library_contents SET sha256 = NULL WHERE tenant_id = $1 AND id IN
			(SELECT id FROM tc_library_contents WHERE tenant_id = $1 AND id = $2`+locked(
			c, ` FOR UPDATE SKIP LOCKED`,
		)+`)`,
			tenant, id)
		return bunx.Err(err, "Content")
	})
}

// noLibrary is the library of a note that a content is unused, with the time at which that was
// found.
const noLibrary = ""

// note is a row of tc_library_released without its time.
type note struct{ content, library string }

// Release implements libraries.Store.
func (s *Store) Release(
	ctx context.Context, tenant string, before, at time.Time, n int,
) (ids []string, looked int, err error) {
	err = bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		notes, err := released(ctx, c, tenant, before, n)
		if looked = len(notes); err != nil || looked == 0 {
			return err
		}
		contents := make([]string, looked)
		for i, note := range notes {
			contents[i] = note.content
		}
		rows, err := c.Rows(ctx, `SELECT id FROM tc_library_contents WHERE tenant_id = $1 AND id `+c.OneOf(2)+locked(
			c, ` FOR UPDATE SKIP LOCKED`,
		),
			tenant, bunx.Keys(contents))
		mine, err := bunx.Scan(rows, err, bunx.Text)
		if err != nil {
			return bunx.Err(err, "Content")
		}
		rows, err = c.Rows(ctx, `UPDATE tc_library_contents SET sha256 = NULL WHERE tenant_id = $1 AND id `+
			c.OneOf(2)+` AND NOT EXISTS
			(SELECT 1 FROM tc_library_files f WHERE f.tenant_id = $1 AND f.content_id = tc_library_contents.id) RETURNING id`,
			tenant, bunx.Keys(mine))
		unused, err := bunx.Scan(rows, err, bunx.Text)
		if err != nil {
			return bunx.Err(err, "Content")
		}
		ids, err = settle(ctx, c, tenant, at, notes, set(mine), set(unused))
		return bunx.Err(err, "Content")
	})
	return ids, looked, err
}

// released returns notes of contents that libraries have not had since before.
func released(ctx context.Context, c bunx.Conn, tenant string, before time.Time, n int) ([]note, error) {
	rows, err := c.Rows(ctx,
		`SELECT content_id, library_id FROM tc_library_released WHERE tenant_id = $1 AND released_at < $2
		ORDER BY released_at LIMIT $3`+locked(c, ` FOR UPDATE SKIP LOCKED`), tenant, bunx.At(before), n)
	notes, err := bunx.Scan(rows, err, func(rows *sql.Rows) (n note, err error) {
		return n, rows.Scan(&n.content, &n.library)
	})
	return notes, bunx.Err(err, "Content")
}

// settle returns the contents that were noted as unused and still are. Their notes are kept until
// Forget, so that a Release after a crash returns them again. Contents that are newly unused are
// noted. The notes of used contents are removed, and those of contents that other transactions hold
// are postponed.
func settle(
	ctx context.Context, c bunx.Conn, tenant string, at time.Time, notes []note, mine, unused map[string]bool,
) (ids []string, err error) {
	var held, done [2][]string
	var found []string
	for _, n := range notes {
		switch {
		case !mine[n.content]:
			held[0], held[1] = append(held[0], n.content), append(held[1], n.library)
			continue
		case unused[n.content] && n.library == noLibrary:
			ids = append(ids, n.content)
			continue
		case unused[n.content]:
			found = append(found, n.content)
		}
		done[0], done[1] = append(done[0], n.content), append(done[1], n.library)
	}
	if len(held[0]) > 0 {
		_, err = c.Exec(ctx, `UPDATE tc_library_released SET released_at = $3 WHERE tenant_id = $1 AND `+c.Match(
			2, "content_id", "library_id",
		),
			tenant, bunx.Keys(held[:]...), bunx.At(at))
	}
	if err == nil && len(done[0]) > 0 {
		_, err = c.Exec(
			ctx,
			`DELETE FROM tc_library_released WHERE tenant_id = $1 AND `+c.Match(2, "content_id", "library_id"),
			tenant, bunx.Keys(done[:]...),
		)
	}
	if err == nil && len(found) > 0 {
		_, err = c.Exec(ctx, `INSERT INTO tc_library_released (tenant_id, content_id, library_id, released_at)
			SELECT tenant_id, id, '`+noLibrary+`', `+instant(c)+
			` FROM tc_library_contents WHERE tenant_id = $1 AND id `+c.OneOf(2)+`
			ON CONFLICT (tenant_id, content_id, library_id) DO NOTHING`, tenant, bunx.Keys(found), bunx.At(at))
	}
	return ids, err
}

func set(ids []string) map[string]bool {
	in := make(map[string]bool, len(ids))
	for _, id := range ids {
		in[id] = true
	}
	return in
}

// Forget implements libraries.Store.
func (s *Store) Forget(ctx context.Context, tenant string, ids []string) error {
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		_, err := c.Exec(
			ctx, `DELETE FROM tc_library_released WHERE tenant_id = $1 AND content_id `+c.OneOf(2), tenant,
			bunx.Keys(ids),
		)
		if err == nil {
			_, err = c.Exec(
				ctx, `DELETE FROM tc_library_contents WHERE tenant_id = $1 AND id `+c.OneOf(2), tenant,
				bunx.Keys(ids),
			)
		}
		return bunx.Err(err, "Content")
	})
}
