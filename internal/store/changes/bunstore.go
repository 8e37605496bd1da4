// Package bunstore stores the change feed of tenants in PostgreSQL or SQLite. The root imports it.
package bunstore

import (
	"context"
	"database/sql"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/clock"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
)

const (
	what = "Change"
	// perInsert is the most changes that one statement adds. perStamp is the most that get a
	// position in one transaction.
	perInsert = 100
	perStamp  = 1000
	// perForget is of how many users one statement removes the changes.
	perForget = 500
	// maxBytes is how many bytes the changes of a page have, but for the last one.
	maxBytes = 4 << 20
)

// Store stores the changes of tenants.
//
// Writers do not assign positions, and do not wait for each other. They add changes to
// tc_new_changes, which has few indexes. A reader, or the sweep of each minute, moves the committed
// changes to tc_changes and assigns positions to them. One process does so for a tenant at a time,
// and positions only increase. So a change whose transaction takes long comes later in the feed,
// and no change is inserted before one that was read.
//
// Changes that get their positions together are ordered by n. A transaction assigns n in its last
// statement, while it holds its locks. So a transaction that waited for another one, or has read
// what it wrote, has a higher n.
type Store struct {
	db    *bun.DB
	newID func() string
}

// New returns a Store. The tables must exist: see tenantcontent.Migrate.
func New(db *bun.DB, newID func() string) *Store { return &Store{db: db, newID: newID} }

// Kept is how long changes are kept.
const Kept = 7 * 24 * time.Hour

// mostForgotten is how many changes of a sort go in the transaction that deletes users. Others are
// left to jobs, as those of kindForgotten, whose ids are the usernames.
const (
	mostForgotten             = 250
	kindForgotten entity.Kind = "changes-of-user"
)

// Hooks returns what the feed does with its rows, and announces to feed what hooks report. Rows
// are swept and forgotten also when none are kept any more. later has what is left removed by jobs.
func (s *Store) Hooks(
	feed *entity.Changes, later func(ctx context.Context, tenant string, of ...entity.Key) error, times clock.Clock,
) entity.Hooks {
	return entity.Hooks{
		Renamed: s.RenameUsers,
		Deleted: func(ctx context.Context, tenant string, gone ...entity.Key) error {
			left, err := s.Forget(ctx, tenant, entity.IDs(gone, entity.KindUser), times.Now(), mostForgotten)
			if err == nil && len(left) > 0 {
				err = later(ctx, tenant, entity.Keys(kindForgotten, left...)...)
			}
			if err != nil {
				return err
			}
			return feed.Each(ctx, tenant, entity.ActionDelete, gone...)
		},
		Reassigned: func(ctx context.Context, tenant string, moved ...entity.Ref) error {
			all := make([]entity.Key, len(moved))
			for i, r := range moved {
				all[i] = entity.Key{Kind: r.Kind, ID: r.ID}
			}
			return feed.Each(ctx, tenant, entity.ActionUpdate, all...)
		},
		RemoveRest: func(ctx context.Context, tenant string, of entity.Key, n int) (bool, error) {
			if of.Kind != kindForgotten {
				return false, nil
			}
			return s.RemoveRest(ctx, tenant, of.ID, n)
		},
		Due: []entity.Due{
			{Table: "tc_changes", Column: "created_at", Age: Kept}, {Table: "tc_new_changes", Column: "tenant_id"},
		},
		Sweep: func(ctx context.Context, tenant string) (int, error) {
			return s.Sweep(ctx, tenant, times.Now().Add(-Kept))
		},
	}
}

// pending are the changes of one transaction. It implements bunx.LastWrite.
type pending struct {
	store *Store
	all   []entity.Change
}

// Keep adds a change in the transaction in ctx, which writes it as its last statement.
func (s *Store) Keep(ctx context.Context, change entity.Change) error {
	return bunx.BeforeCommit(ctx, s, func() bunx.LastWrite { return &pending{store: s} }, func(last bunx.LastWrite) {
		p := last.(*pending)
		p.all = append(p.all, change)
	})
}

const columns = `tenant_id, id, kind, entity_id, action, username, before, after, created_at`

// Write implements bunx.LastWrite.
func (p *pending) Write(ctx context.Context) error {
	all := p.all
	p.all = nil
	gone := map[string]bool{"": true}
	for _, c := range all {
		gone[c.ID] = gone[c.ID] || c.Kind == entity.KindUser && c.Action == entity.ActionDelete
	}
	for i := range all { // a user that deletes itself
		if gone[all[i].Actor] {
			all[i].Actor = ""
		}
	}
	for len(all) > 0 {
		n := 1 // consecutive changes of one tenant
		for n < len(all) && n < perInsert && all[n].Tenant == all[0].Tenant {
			n++
		}
		if err := p.store.insert(ctx, all[:n]); err != nil {
			return err
		}
		all = all[n:]
	}
	return nil
}

func (s *Store) insert(ctx context.Context, all []entity.Change) error {
	tenant, args := all[0].Tenant, make([]any, 0, 9*len(all))
	for _, c := range all {
		args = append(
			args, tenant, s.newID(), string(c.Kind), c.ID, string(c.Action), orNull(c.Actor),
			orNull(string(c.Before)), orNull(string(c.After)), bunx.At(c.At),
		)
	}
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		query := `INSERT INTO tc_new_changes (` + columns + `) VALUES ` + bunx.Values(len(all), 9)
		if !c.Postgres() { // with one writer, no other transaction computes the same n
			query = `INSERT INTO tc_new_changes (` + columns + `, n) ` + numbered(len(all))
		}
		_, err := c.Exec(ctx, query, args...)
		return bunx.Err(err, what)
	})
}

// numbered returns the rows of an insert with the next n of the tenant, on SQLite. A single row,
// the usual case, is cheaper without a window.
func numbered(rows int) string {
	const last = `(SELECT coalesce(max(n), 0) FROM tc_new_changes WHERE tenant_id = $1)`
	if rows == 1 {
		return `VALUES ($1,$2,$3,$4,$5,$6,$7,$8,$9, ` + last + ` + 1)`
	}
	return `SELECT v.*, ` + last + ` + row_number() OVER () FROM (VALUES ` + bunx.Values(rows, 9) + `) AS v`
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// Page returns the changes of a tenant after a position, at most limit, and fewer if they have many
// bytes; for a negative position those to come.
func (s *Store) Page(ctx context.Context, tenant string, after int64, limit int) (page entity.ChangePage, err error) {
	if err := s.Stamp(ctx, tenant); err != nil {
		return page, err
	}
	ctx, c := bunx.For(ctx, s.db, tenant)
	last, removed, hidden, err := feeds(ctx, c, tenant)
	if err != nil || after < 0 {
		return entity.ChangePage{Next: last}, err
	}
	if page.Reset = after > last || after < removed; page.Reset {
		after = removed
	}
	for page.Next = after; ; {
		some, err := s.after(ctx, c, tenant, page.Next, limit)
		if err != nil || len(some) == 0 {
			return page, err
		}
		page.Next = some[len(some)-1].Position
		if page.Rows = slices.DeleteFunc(some, hidden.has); len(page.Rows) > 0 {
			return page, nil
		}
	}
}

// after returns changes after a position, perhaps fewer than limit although there are more.
func (s *Store) after(
	ctx context.Context, c bunx.Conn, tenant string, after int64, limit int,
) (some []entity.Change, err error) {
	rows, err := c.Rows(ctx,
		`SELECT position, kind, entity_id, action, username, before, after, created_at FROM tc_changes
		WHERE tenant_id = $1 AND position > $2 ORDER BY position LIMIT $3`, tenant, after, limit)
	bytes := 0
	some, err = bunx.ScanBatch(rows, err, func(rows *sql.Rows) (entity.Change, error) {
		ch := entity.Change{Tenant: tenant}
		var actor, before, afterwards sql.NullString
		err := rows.Scan(
			&ch.Position, (*string)(&ch.Kind), &ch.ID, (*string)(&ch.Action), &actor, &before, &afterwards,
			bunx.TimeOf(&ch.At),
		)
		ch.Actor = actor.String
		if before.Valid {
			ch.Before = []byte(before.String)
		}
		if afterwards.Valid {
			ch.After = []byte(afterwards.String)
		}
		return ch, err
	}, func(ch entity.Change) bool {
		bytes += len(ch.Before) + len(ch.After)
		return bytes >= maxBytes
	})
	return some, bunx.Err(err, what)
}

// gone has, by the names of users who were deleted and have changes that are still to be removed,
// when that was.
type gone map[string]time.Time

// gonePrefix begins the names of the rows of tc_change_feeds that have gone, with the name of the
// user and, as last, the time in microseconds.
const gonePrefix = "gone/"

// feeds returns the bounds of the feed of a tenant, and which changes in it are hidden.
func feeds(ctx context.Context, c bunx.Conn, tenant string) (last, removed int64, hidden gone, err error) {
	rows, err := c.Rows(ctx, `SELECT feed, last, removed FROM tc_change_feeds WHERE tenant_id = $1`, tenant)
	_, err = bunx.Scan(rows, err, func(rows *sql.Rows) (none struct{}, err error) {
		var feed string
		var at, before int64
		if err := rows.Scan(&feed, &at, &before); err != nil {
			return none, err
		}
		if name, is := strings.CutPrefix(feed, gonePrefix); is {
			if hidden == nil {
				hidden = gone{}
			}
			hidden[name] = time.UnixMicro(at)
			return none, nil
		}
		last, removed = at, before
		return none, nil
	})
	return last, removed, hidden, bunx.Err(err, what)
}

// has reports whether a change is of a user who was deleted after it.
func (g gone) has(ch entity.Change) bool {
	if len(g) == 0 {
		return false
	}
	if at, is := g[ch.Actor]; is && !ch.At.After(at) {
		return true
	}
	switch ch.Kind {
	case entity.KindUser:
		at, is := g[ch.ID]
		return is && (ch.At.Before(at) || ch.At.Equal(at) && ch.Action != entity.ActionDelete)
	case entity.KindMember:
		_, name, _ := strings.Cut(ch.ID, "/")
		at, is := g[name]
		return is && !ch.At.After(at)
	}
	return false
}

// Stamp assigns positions to the committed changes of a tenant that lack one.
func (s *Store) Stamp(ctx context.Context, tenant string) error {
	for {
		var waiting int
		own, c := bunx.For(ctx, s.db, tenant)
		err := c.One(
			own, what, `SELECT count(*) FROM (SELECT 1 FROM tc_new_changes WHERE tenant_id = $1 LIMIT 1) AS w`,
			[]any{tenant}, &waiting,
		)
		if err != nil || waiting == 0 {
			return err
		}
		if err := s.stampSome(ctx, tenant); err != nil {
			return err
		}
	}
}

// moved are the columns that tc_new_changes and tc_changes share.
const moved = `tenant_id, kind, entity_id, action, username, before, after, created_at`

func (s *Store) stampSome(ctx context.Context, tenant string) error {
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		// This locks the row. The next statement sees all changes that are committed before it.
		var last int64
		err := c.One(ctx, what, `INSERT INTO tc_change_feeds (tenant_id, feed, last, removed) VALUES ($1, 'all', 0, 0)
			ON CONFLICT (tenant_id, feed) DO UPDATE SET last = tc_change_feeds.last RETURNING last`,
			[]any{tenant}, &last)
		if err != nil {
			return err
		}
		n, err := moveSome(ctx, c, tenant, last)
		if err != nil {
			return bunx.Err(err, what)
		}
		_, err = c.Exec(
			ctx, `UPDATE tc_change_feeds SET last = $2 WHERE tenant_id = $1 AND feed = 'all'`, tenant,
			last+int64(n),
		)
		return bunx.Err(err, what)
	})
}

// moveSome moves changes to tc_changes, at the positions that follow last, and returns their
// number. A change that another transaction deletes meanwhile gets no position.
func moveSome(ctx context.Context, c bunx.Conn, tenant string, last int64) (n int, err error) {
	from := `DELETE FROM tc_new_changes WHERE ` + some(c, "tc_new_changes", `n IS NOT NULL ORDER BY n, id`, perStamp)
	if c.Postgres() {
		return c.Exec(ctx, `WITH s AS (`+from+` RETURNING *) INSERT INTO tc_changes (position, `+moved+`)
			SELECT $2 + row_number() OVER (ORDER BY n, id), `+moved+` FROM s`, tenant, last)
	}
	n, err = c.Exec(ctx, `INSERT INTO tc_changes (position, `+moved+`)
		SELECT $2 + row_number() OVER (ORDER BY n, id), `+moved+` FROM (SELECT * FROM tc_new_changes
			WHERE tenant_id = $1 ORDER BY n, id LIMIT $3) AS s`, tenant, last, perStamp)
	if err == nil {
		_, err = c.Exec(ctx, from, tenant)
	}
	return n, err
}

// Sweep removes the changes of a tenant that are older than a time, and returns their number.
func (s *Store) Sweep(ctx context.Context, tenant string, before time.Time) (int, error) {
	if err := s.Stamp(ctx, tenant); err != nil {
		return 0, err
	}
	err := bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		_, err := c.Exec(ctx,
			`DELETE FROM tc_change_feeds WHERE tenant_id = $1 AND feed LIKE '`+gonePrefix+`%' AND last < $2`, tenant,
			before.UnixMicro())
		if err != nil {
			return bunx.Err(err, what)
		}
		_, err = c.Exec(ctx,
			`UPDATE tc_change_feeds SET removed = coalesce((SELECT max(position) FROM tc_changes
				WHERE tenant_id = $1 AND created_at < $2), removed)
			WHERE tenant_id = $1 AND feed = 'all'`, tenant, bunx.At(before))
		return bunx.Err(err, what)
	})
	if err != nil {
		return 0, err
	}
	return bunx.DeleteSteps(ctx, s.db, tenant, "tc_changes", "position", `created_at < $2`, bunx.At(before))
}

// Forget removes the changes that users have made and those of the users themselves, in the
// transaction that deletes them at a time. Of those that have more than most of a sort nobody sees
// the others any more: RemoveRest removes them. It returns the names of these users.
func (s *Store) Forget(
	ctx context.Context, tenant string, usernames []string, at time.Time, most int,
) (left []string, err error) {
	err = bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		for some := range slices.Chunk(usernames, perForget) {
			more := false
			for _, from := range places(c, c.OneOf(2), "") {
				n, err := c.Exec(ctx, from.delete(c, most), tenant, bunx.Keys(some))
				if err != nil {
					return bunx.Err(err, what)
				}
				more = more || n == most
			}
			if !more {
				continue
			}
			args := make([]any, 0, 4*len(some))
			for _, name := range some {
				args = append(args, tenant, gonePrefix+name, at.UnixMicro(), 0)
			}
			_, err := c.Exec(ctx, `INSERT INTO tc_change_feeds (tenant_id, feed, last, removed) VALUES `+
				bunx.Values(len(some), 4)+` ON CONFLICT (tenant_id, feed) DO UPDATE SET last = excluded.last`, args...)
			if err != nil {
				return bunx.Err(err, what)
			}
			left = append(left, some...)
		}
		return nil
	})
	return left, err
}

// place is where changes of a user are: a table, and their condition.
type place struct{ table, where string }

// places returns where the changes are that a user made, those of the user, and those of the
// memberships. is follows the columns that have the name, and but those of changes of users. The
// conditions have an index each in tc_changes, and none in tc_new_changes, which is read once.
func places(c bunx.Conn, is, but string) []place {
	made := `username ` + is
	users := `kind = '` + string(entity.KindUser) + `' AND entity_id ` + is + but
	members := `kind = '` + string(entity.KindMember) + `' AND ` + member(c) + ` ` + is
	return []place{
		{tables[0], `(` + made + ` OR ` + users + ` OR ` + members + `)`},
		{tables[1], made}, {tables[1], users}, {tables[1], members},
	}
}

// tables have the changes without and with a position. What changes both begins with the first, so
// that it finds a change that gets its position meanwhile in the second.
var tables = []string{"tc_new_changes", "tc_changes"}

// delete returns a statement that deletes at most n of the changes.
func (p place) delete(c bunx.Conn, n int) string {
	return `DELETE FROM ` + p.table + ` WHERE ` + some(c, p.table, p.where, n)
}

// some is Conn.Some for tc_changes and tc_new_changes, which has no rowid on SQLite.
func some(c bunx.Conn, table, where string, n int) string {
	if table != "tc_new_changes" || c.Postgres() {
		return c.Some(table, where, n)
	}
	return `tenant_id = $1 AND (n, id) IN (SELECT n, id FROM tc_new_changes WHERE tenant_id = $1 AND ` + where +
		` LIMIT ` + strconv.Itoa(n) + `)`
}

// RemoveRest removes at most n changes of a user that Forget has left, and reports whether there
// may be more.
func (s *Store) RemoveRest(ctx context.Context, tenant, username string, n int) (more bool, err error) {
	err = bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		_, _, hidden, err := feeds(ctx, c, tenant)
		at, is := hidden[username]
		if err != nil || !is {
			return err
		}
		until := bunx.At(at.UTC())
		// the delete itself stays
		const but = ` AND (action <> 'delete' OR created_at < $3)`
		for _, from := range places(c, `= $2 AND created_at <= $3`, but) {
			some, err := c.Exec(ctx, from.delete(c, n), tenant, username, until)
			if n -= some; err != nil || n <= 0 {
				more = true
				return bunx.Err(err, what)
			}
		}
		_, err = c.Exec(
			ctx, `DELETE FROM tc_change_feeds WHERE tenant_id = $1 AND feed = $2`, tenant, gonePrefix+username,
		)
		return bunx.Err(err, what)
	})
	return more, err
}

// member returns an expression for the user in the id of a membership.
func member(c bunx.Conn) string {
	if c.Postgres() {
		return `substr(entity_id, strpos(entity_id, '/') + 1)`
	}
	return `substr(entity_id, instr(entity_id, '/') + 1)`
}

// RenameUsers replaces the names of users.
func (s *Store) RenameUsers(ctx context.Context, tenant string, names map[string]string) error {
	for _, name := range names { // what a deleted user of the name has left is not the renamed one's
		for more := true; more; {
			var err error
			if more, err = s.RemoveRest(ctx, tenant, name, perStamp); err != nil {
				return err
			}
		}
	}
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		of := bunx.Is{Column: "kind", Value: string(entity.KindUser)}
		for _, table := range tables {
			err := c.Rename(ctx, tenant, table, "username", names)
			if err == nil {
				err = c.Rename(ctx, tenant, table, "entity_id", names, of)
			}
			if err != nil {
				return bunx.Err(err, what)
			}
		}
		return nil
	})
}
