// Package indexer maintains the indexes of trigrams with which searches read few rows of long lists
// (bunx.Index). It builds the index of a list that has become long, and adds the rows that writers
// have noted. A row of an indexed list is always noted, or in a segment with its current text. So
// nothing is lost if a process is killed: incomplete segments are not live, and are removed.
//
// The root imports it.
package indexer

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/clock"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/text/trigrams"
)

// source is the table with the rows of a list. Their text is in the column search.
type source struct {
	table, key string
	part       string // the column that divides the list, or ""
}

// sources are the lists that can have an index: those with triggers that note rows (migration
// 0043).
var sources = map[string]source{
	"ai_instructions": {"tc_ai_instructions", "id", ""},
	"apps":            {"tc_apps", "id", ""},
	"assistants":      {"tc_assistants", "id", ""},
	"bundles":         {"tc_bundles", "id", ""},
	"colors":          {"tc_colors", "key", ""},
	"domains":         {"tc_domains", "id", ""},
	"entities":        {"tc_entities", "id", "kind"},
	"teams":           {"tc_teams", "id", ""},
	"users":           {"tc_users", "folded", ""},
}

const (
	// fewNotes is the number of noted rows that a search compares without an index.
	fewNotes = 500
	// maxNotes is the most notes for one segment.
	maxNotes = 1 << 16
	// smallSegment is the number of texts from which a segment is not merged any more. manySmall is
	// the number of smaller segments that are merged.
	smallSegment = 8192
	manySmall    = 8
	// claimTime is how long a list is claimed by a process, even if it has ended.
	claimTime = 2 * time.Minute
	// inStep is the number of rows of an index that one transaction writes, and of notes that it
	// removes. gramsInStep is the number of trigrams whose rows it removes.
	inStep      = 1000
	gramsInStep = 200
)

// Indexer maintains the indexes of a database.
type Indexer struct {
	db    *bun.DB
	clock clock.Clock
}

// New returns an Indexer. now is time.Now if it is nil.
func New(db *bun.DB, now func() time.Time) *Indexer {
	return &Indexer{db, clock.New(now, nil)}
}

// list is a part of a list of a tenant.
type list struct{ tenant, list, part string }

func (l list) args(more ...any) []any { return append([]any{l.tenant, l.list, l.part}, more...) }

// of is the condition for the rows of a list in the tables of indexes.
const of = `tenant_id = $1 AND list = $2 AND part = $3`

// worn returns the condition that the index of a list l must be rebuilt. This is so if renamed rows
// have given it more than twice the texts with which it was built, or if most rows were deleted.
// tenant is an expression for the tenant of l. If it is an argument, PostgreSQL plans the statement
// over one partition.
func worn(tenant string) string {
	return `l.usable AND l.reached IS NULL AND ((SELECT coalesce(sum(s.docs), 0) FROM tc_search_segments s
		WHERE s.tenant_id = ` + tenant +
		` AND s.list = l.list AND s.part = l.part AND s.state = 'live') > 2 * l.docs + 10000
	OR (SELECT coalesce(sum(t.n), 0) FROM tc_totals t WHERE t.tenant_id = ` + tenant +
		` AND t.list = l.list AND t.part = l.part) < l.n / 4)`
}

// due selects the lists with work to do, over all tenants that are not hidden. These are lists
// without a complete index, with many notes, with segments to remove, and with an index to rebuild.
var due = `SELECT DISTINCT d.tenant_id, d.list, d.part FROM (
		SELECT tenant_id, list, part FROM tc_search_lists WHERE reached IS NOT NULL
		UNION ALL SELECT tenant_id, list, part FROM tc_search_noted GROUP BY tenant_id, list, part HAVING count(*) >= $1
		UNION ALL SELECT tenant_id, list, part FROM tc_search_segments WHERE state IN ('written', 'gone')
		UNION ALL SELECT l.tenant_id, l.list, l.part FROM tc_search_lists l WHERE ` + worn("l.tenant_id") + `) d
	CROSS JOIN tc_tenants t WHERE t.tenant_id = d.tenant_id AND t.hidden IS NULL ORDER BY d.tenant_id, d.list, d.part`

// errTaken ends the work on a list that another process has claimed, or that was deleted.
var errTaken = errors.New("another process works on this list")

// Run does the work that is due. Several processes may call it, and each list is claimed by one of
// them. An error for one list does not prevent the work on others.
func (x *Indexer) Run(ctx context.Context) error {
	ctx = bunx.WithWork(ctx, bunx.Long)
	own, c := bunx.For(ctx, x.db, bunx.AllTenants)
	rows, err := c.Rows(own, due, fewNotes)
	lists, err := bunx.Scan(rows, err, func(rows *sql.Rows) (l list, err error) {
		err = rows.Scan(&l.tenant, &l.list, &l.part)
		return l, err
	})
	failed := []error{bunx.Err(err, "Index")}
	for _, l := range lists {
		if err := x.claimed(ctx, l); err != nil && !errors.Is(err, errTaken) {
			failed = append(failed, fmt.Errorf("the index of %s %s of tenant %s: %w", l.list, l.part, l.tenant, err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(failed...)
}

// claimed does the work for a list, unless another process has claimed it.
func (x *Indexer) claimed(ctx context.Context, l list) error {
	now := x.clock.Now()
	claim := bunx.At(now.Add(claimTime))
	n, err := x.exec(
		ctx, l,
		`UPDATE tc_search_lists SET claim_ends_at = $4 WHERE `+of+` AND (claim_ends_at IS NULL OR claim_ends_at < $5)`,
		claim, bunx.At(now),
	)
	if err != nil || n == 0 {
		return err
	}
	err = x.work(ctx, l, claim)
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_, free := x.exec(last, l, `UPDATE tc_search_lists SET claim_ends_at = NULL WHERE `+of)
	return errors.Join(err, free)
}

func (x *Indexer) exec(ctx context.Context, l list, query string, more ...any) (n int, err error) {
	err = bunx.WriteOne(ctx, x.db, l.tenant, func(ctx context.Context, c bunx.Conn) error {
		n, err = c.Exec(ctx, query, l.args(more...)...)
		return bunx.Err(err, "Index")
	})
	return n, err
}

func (x *Indexer) work(ctx context.Context, l list, claim bunx.Time) error {
	if err := x.clean(ctx, l); err != nil {
		return err
	}
	if _, err := x.exec(
		ctx, l,
		`UPDATE tc_search_lists AS l SET reached = '' WHERE l.tenant_id = $1 AND l.list = $2 AND l.part = $3 AND `+
			worn("$1"),
	); err != nil {
		return err
	}
	own, c := bunx.For(ctx, x.db, l.tenant)
	var reached *string
	var usable bool
	if err := c.One(
		own, "Index", `SELECT reached, usable FROM tc_search_lists WHERE `+of, l.args(), &reached, &usable,
	); err != nil {
		return ignoreGone(err)
	}
	if reached != nil {
		ready, err := x.ready(ctx, l)
		if err != nil || !ready {
			return err
		}
		if *reached == "" && !usable { // the noted rows are read below, and no index needs the notes
			if err := x.forgetNotes(ctx, l, claim); err != nil {
				return err
			}
		}
		if err := x.build(ctx, l, *reached); err != nil {
			return err
		}
	}
	for more := true; more; {
		var err error
		if more, err = x.add(ctx, l); err != nil {
			return err
		}
		if err := x.merge(ctx, l); err != nil {
			return err
		}
	}
	return x.clean(ctx, l)
}

// forgetNotes removes all notes of a list, in steps, while this process has the claim. Notes that
// are added after another process has begun to read the list must be kept.
func (x *Indexer) forgetNotes(ctx context.Context, l list, claim bunx.Time) error {
	for n := inStep; n == inStep; {
		next := bunx.At(x.clock.Now().Add(claimTime))
		err := bunx.Write(ctx, x.db, l.tenant, func(ctx context.Context, c bunx.Conn) error {
			held, err := c.Exec(ctx, `UPDATE tc_search_lists SET claim_ends_at = $4 WHERE `+of+
				` AND claim_ends_at = $5`, l.args(next, claim)...)
			if err := one(held, err); err != nil {
				return err
			}
			n, err = c.Exec(ctx, `DELETE FROM tc_search_noted WHERE `+of+
				` AND (id, tx) IN (SELECT id, tx FROM tc_search_noted WHERE `+of+` LIMIT `+strconv.Itoa(inStep)+`)`,
				l.args()...)
			return bunx.Err(err, "Index")
		})
		if err != nil {
			return err
		}
		claim = next
	}
	return nil
}

// ignoreGone returns errTaken for a list that was deleted with its tenant.
func ignoreGone(err error) error {
	if errs.CodeOf(err) == errs.NotFound {
		return errTaken
	}
	return err
}

// ready reports whether all transactions that may not note changed rows of the list, because they
// began before its row was added, have ended. SQLite has no such transactions.
func (x *Indexer) ready(ctx context.Context, l list) (ready bool, err error) {
	own, c := bunx.For(ctx, x.db, l.tenant)
	if !c.Postgres() {
		return true, nil
	}
	if _, err := x.exec(
		ctx, l,
		`UPDATE tc_search_lists SET horizon = txid_snapshot_xmax(txid_current_snapshot()) WHERE `+of+
			` AND horizon IS NULL`,
	); err != nil {
		return false, err
	}
	err = c.One(
		own, "Index",
		`SELECT txid_snapshot_xmin(txid_current_snapshot()) >= horizon FROM tc_search_lists WHERE `+of,
		l.args(), &ready,
	)
	return ready, ignoreGone(err)
}

// text is a row of a list.
type text struct{ key, text string }

func scanText(rows *sql.Rows) (t text, err error) {
	err = rows.Scan(&t.key, &t.text)
	return t, err
}

// rows returns the condition for the rows of a list in its table, and the arguments.
func (l list) rows() (s source, where string, args []any) {
	s = sources[l.list]
	where, args = "tenant_id = $1", []any{l.tenant}
	if s.part != "" {
		where, args = where+" AND "+s.part+" = $2", append(args, l.part)
	}
	return s, where, args
}

// build continues an index after a key, to its end.
func (x *Indexer) build(ctx context.Context, l list, reached string) error {
	s, where, args := l.rows()
	own, c := bunx.For(ctx, x.db, l.tenant)
	query := fmt.Sprintf(
		`SELECT %[1]s, search FROM %[2]s WHERE %[3]s AND %[1]s > $%[4]d ORDER BY %[1]s LIMIT %[5]d`, s.key,
		s.table, where, len(args)+1, trigrams.MaxTexts,
	)
	for {
		var segment trigrams.Segment
		var keys []string
		rows, err := c.Rows(own, query, append(slices.Clip(args), reached)...)
		texts, err := bunx.ScanBatch(rows, err, func(rows *sql.Rows) (text, error) {
			t, err := scanText(rows)
			segment.Add(t.text)
			keys = append(keys, t.key)
			return text{}, err
		}, func(text) bool { return segment.Full() })
		if err != nil {
			return bunx.Err(err, s.table)
		}
		if len(texts) == 0 {
			return x.finish(ctx, l, reached)
		}
		last := keys[len(keys)-1]
		err = x.write(ctx, l, "built", keys, &segment, func(ctx context.Context, c bunx.Conn) error {
			n, err := c.Exec(ctx, `UPDATE tc_search_lists SET reached = $4 WHERE `+of+
				` AND reached = $5`, l.args(last, reached)...)
			return one(n, err)
		})
		if err != nil {
			return err
		}
		reached = last
	}
}

// one returns errTaken if a statement did not change exactly one row.
func one(n int, err error) error {
	if err == nil && n != 1 {
		return errTaken
	}
	return bunx.Err(err, "Index")
}

// finish makes the built segments live, as the index of the list.
func (x *Indexer) finish(ctx context.Context, l list, reached string) error {
	return bunx.Write(ctx, x.db, l.tenant, func(ctx context.Context, c bunx.Conn) error {
		n, err := c.Exec(ctx, `UPDATE tc_search_lists SET reached = NULL, usable = true,
			docs = (SELECT coalesce(sum(docs), 0) FROM tc_search_segments WHERE `+of+` AND state = 'built'),
			n = (SELECT coalesce(sum(n), 0) FROM tc_totals WHERE `+of+`) WHERE `+of+` AND reached = $4`,
			l.args(reached)...)
		if err := one(n, err); err != nil {
			return err
		}
		_, err = c.Exec(ctx,
			`UPDATE tc_search_segments SET state = CASE state WHEN 'built' THEN 'live' ELSE 'gone' END WHERE `+of+
				` AND state IN ('built', 'live')`,
			l.args()...)
		return bunx.Err(err, "Index")
	})
}

// add writes a segment of noted rows, and reports whether there may be more noted rows.
func (x *Indexer) add(ctx context.Context, l list) (more bool, err error) {
	own, c := bunx.For(ctx, x.db, l.tenant)
	rows, err := c.Rows(own, `SELECT id, tx FROM tc_search_noted WHERE `+of+` ORDER BY id, tx LIMIT `+
		strconv.Itoa(maxNotes), l.args()...)
	notes, err := bunx.Scan(rows, err, scanText) // before the texts are read
	if err != nil || len(notes) < fewNotes {
		return false, bunx.Err(err, "Index")
	}
	ids := make([]string, len(notes))
	for i, note := range notes {
		ids[i] = note.key
	}
	keys, segment, done, err := x.collect(ctx, l, slices.Compact(ids))
	if err != nil {
		return false, err
	}
	if len(keys) > 0 {
		if err := x.write(ctx, l, "live", keys, segment, func(context.Context, bunx.Conn) error {
			return nil
		}); err != nil {
			return false, err
		}
	}
	for some := range slices.Chunk(notes, inStep) {
		var ids, txs []string
		for _, note := range some {
			if note.key <= done {
				ids, txs = append(ids, note.key), append(txs, note.text)
			}
		}
		if _, err := x.exec(
			ctx, l, `DELETE FROM tc_search_noted WHERE `+of+` AND `+c.Match(4, "id", "tx"), bunx.Keys(ids, txs),
		); len(ids) > 0 && err != nil {
			return false, err
		}
	}
	return true, nil
}

// collect returns a segment of the rows with some sorted keys, the keys of the rows that exist, and
// the last key that it has read.
func (x *Indexer) collect(
	ctx context.Context, l list, ids []string,
) (keys []string, segment *trigrams.Segment, done string, err error) {
	s, where, args := l.rows()
	own, c := bunx.For(ctx, x.db, l.tenant)
	segment = &trigrams.Segment{}
	for some := range slices.Chunk(ids, inStep) {
		if segment.Full() || segment.Len()+len(some) > trigrams.MaxTexts {
			break
		}
		rows, err := c.Find(own, bunx.Lookup{
			Columns: s.key + ", search",
			Table:   s.table,
			Where:   where,
			Key:     s.key,
		}, some, args...)
		texts, err := bunx.Scan(rows, err, scanText)
		if err != nil {
			return nil, nil, "", bunx.Err(err, s.table)
		}
		for _, t := range texts {
			segment.Add(t.text)
			keys = append(keys, t.key)
		}
		done = some[len(some)-1]
	}
	return keys, segment, done, nil
}

// merge replaces small segments by one with the current texts, if there are many.
func (x *Indexer) merge(ctx context.Context, l list) error {
	own, c := bunx.For(ctx, x.db, l.tenant)
	rows, err := c.Rows(own, `SELECT segment FROM tc_search_segments WHERE `+of+
		` AND state = 'live' AND docs < $4 ORDER BY docs LIMIT $5`, l.args(smallSegment, manySmall)...)
	small, err := bunx.Scan(rows, err, func(rows *sql.Rows) (n int, err error) { return n, rows.Scan(&n) })
	if err != nil || len(small) < manySmall {
		return bunx.Err(err, "Index")
	}
	var ids []string
	for _, segment := range small {
		rows, err := c.Rows(own, `SELECT ids FROM tc_search_docs WHERE `+of+
			` AND block >= $4 AND block < $5`, l.args(blocks(segment)...)...)
		texts, err := bunx.Scan(rows, err, bunx.Text)
		if err != nil {
			return bunx.Err(err, "Index")
		}
		for _, text := range texts {
			var some []string
			if err := json.Unmarshal([]byte(text), &some); err != nil {
				return err
			}
			ids = append(ids, some...)
		}
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	keys, segment, done, err := x.collect(ctx, l, ids)
	if err != nil || len(ids) > 0 && done != ids[len(ids)-1] { // the texts are too long to be merged
		return err
	}
	return x.write(ctx, l, "live", keys, segment, func(ctx context.Context, c bunx.Conn) error {
		for _, old := range small {
			n, err := c.Exec(ctx, `UPDATE tc_search_segments SET state = 'gone' WHERE `+of+
				` AND segment = $4 AND state = 'live'`, l.args(old)...)
			if err := one(n, err); err != nil {
				return err
			}
		}
		return nil
	})
}

// blocks returns the bounds of the keys of a segment's blocks: / precedes 0.
func blocks(segment int) []any {
	return []any{strconv.Itoa(segment) + "/", strconv.Itoa(segment) + "0"}
}

// write adds a segment in steps. The last step sets its state and calls finish.
func (x *Indexer) write(
	ctx context.Context, l list, state string, keys []string, segment *trigrams.Segment,
	finish func(ctx context.Context, c bunx.Conn) error,
) error {
	var number int
	err := bunx.Write(ctx, x.db, l.tenant, func(ctx context.Context, c bunx.Conn) error {
		err := c.One(
			ctx, "Index",
			`UPDATE tc_search_lists SET segment = segment + 1, claim_ends_at = $4 WHERE `+of+` RETURNING segment`,
			l.args(bunx.At(x.clock.Now().Add(claimTime))), &number,
		)
		if err != nil {
			return ignoreGone(err)
		}
		_, err = c.Exec(ctx,
			`INSERT INTO tc_search_segments (tenant_id, list, part, segment, docs, state) `+
				`VALUES ($1, $2, $3, $4, $5, 'written')`,
			l.args(number, len(keys))...)
		return bunx.Err(err, "Index")
	})
	if err != nil {
		return err
	}
	w := &writer{x: x, l: l, number: number}
	for i := 0; i < len(keys); i += bunx.DocsInBlock {
		ids, _ := json.Marshal(keys[i:min(i+bunx.DocsInBlock, len(keys))]) // texts can always be encoded
		if err := w.put(ctx, "docs", bunx.Block(number, i), "", string(ids)); err != nil {
			return err
		}
	}
	if err := w.flush(ctx); err != nil {
		return err
	}
	err = segment.Each(func(gram string, n int, docs string) error {
		return w.put(ctx, "grams", gram, strconv.Itoa(n), docs)
	})
	if err = errors.Join(err, w.flush(ctx)); err != nil {
		return err
	}
	return bunx.Write(ctx, x.db, l.tenant, func(ctx context.Context, c bunx.Conn) error {
		n, err := c.Exec(ctx, `UPDATE tc_search_segments SET state = $5 WHERE `+of+
			` AND segment = $4 AND state = 'written'`, l.args(number, state)...)
		if err := one(n, err); err != nil {
			return err
		}
		return finish(ctx, c)
	})
}
