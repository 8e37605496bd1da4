package sqlitesafe

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Salvaged is the result of Salvage for a table.
type Salvaged struct {
	Table   string
	Taken   int64 // rows copied to the new database
	Lost    int64 // unreadable rows that an index contains; there may be more
	Removed int64 // rows that were read but refer to lost rows
	Damaged int64 // places of the table at which reading failed
}

// Rules describe how Salvage treats the tables of a database.
type Rules struct {
	// Derived reports whether triggers of other tables write the rows of a table. Such rows are not
	// read.
	Derived func(table string) bool
	// Adopt changes rows that refer to lost ones, where possible. Rows that still refer to lost
	// ones are removed.
	Adopt func(ctx context.Context, db *sql.DB) error
}

// Salvage creates a database with all readable rows of a damaged one. to is the path of a file that
// does not exist. Without rules, rows that refer to lost ones are kept. It returns the results by
// table; rows of virtual tables are not copied. It fails if the list of tables cannot be read.
func Salvage(ctx context.Context, from, to string, rules *Rules) (all []Salvaged, err error) {
	// With writable_schema, SQLite opens a file that is shorter than its header says.
	err = with(to,
		"_pragma=auto_vacuum(2)&_pragma=journal_mode(OFF)&_pragma=synchronous(OFF)&"+
			"_pragma=trusted_schema(0)&_pragma=recursive_triggers(1)&_pragma=writable_schema(1)",
		func(db *sql.DB) error {
			if _, err := db.ExecContext(ctx, "ATTACH DATABASE ? AS damaged", fileURI(from, "mode=rw")); err != nil {
				return err
			}
			all, err = (&salvage{ctx: ctx, db: db, rules: rules}).run()
			return errors.Join(ctx.Err(), err)
		})
	return all, err
}

// salvage is a running Salvage. The new database is main, the old one is damaged.
type salvage struct {
	ctx   context.Context
	db    *sql.DB
	rules *Rules
}

func (s *salvage) exec(query string, args ...any) error {
	_, err := s.db.ExecContext(s.ctx, query, args...)
	return err
}

// run copies the schema and the rows. With rules, triggers count and derive while rows are
// inserted. Unique indexes prevent duplicate rows.
func (s *salvage) run() (all []Salvaged, err error) {
	const unique, other = " AND sql LIKE 'CREATE UNIQUE%'", " AND sql NOT LIKE 'CREATE UNIQUE%'"
	if err := errors.Join(s.schema("table", ""), s.schema("index", unique)); err != nil {
		return nil, err
	}
	if s.rules != nil {
		if err := s.schema("trigger", ""); err != nil {
			return nil, err
		}
	}
	if all, err = s.tables(); err != nil {
		return all, err
	}
	if err := errors.Join(s.schema("index", other), s.schema("view", "")); err != nil {
		return all, err
	}
	if s.rules == nil {
		return all, errors.Join(s.schema("trigger", ""), quickCheck(s.ctx, s.db))
	}
	if err := s.rules.Adopt(s.ctx, s.db); err != nil {
		return all, err
	}
	return all, errors.Join(s.removeOrphans(all), quickCheck(s.ctx, s.db))
}

// names selects the tables of the damaged database, except those of SQLite.
const names = `SELECT name, sql LIKE 'CREATE VIRTUAL%' FROM damaged.sqlite_schema WHERE type = 'table' ` +
	`AND name NOT LIKE 'sqlite\_%' ESCAPE '\' ORDER BY rowid`

// schema creates the tables, indexes, triggers or views in the new database.
func (s *salvage) schema(of, where string) error {
	rows, err := s.db.QueryContext(
		s.ctx,
		`SELECT sql FROM damaged.sqlite_schema WHERE type = ? AND sql NOT LIKE 'CREATE VIRTUAL%' `+
			`AND name NOT LIKE 'sqlite\_%' ESCAPE '\'`+where+` ORDER BY rowid`,
		of,
	)
	texts, err := scanAll[string](rows, err)
	if err != nil {
		return fmt.Errorf("the list of tables is damaged: %w", err)
	}
	for _, text := range texts {
		if err := s.exec(text); err != nil {
			return err
		}
	}
	return nil
}

// scanAll reads rows of one column.
func scanAll[T any](rows *sql.Rows, err error) (all []T, _ error) {
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var v T
		if err := rows.Scan(&v); err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, rows.Err()
}

// tables copies the rows of all tables.
func (s *salvage) tables() (all []Salvaged, err error) {
	rows, err := s.db.QueryContext(s.ctx, names)
	if err != nil {
		return nil, err
	}
	virtual := map[string]bool{}
	var tables []string
	for rows.Next() {
		var name string
		var v bool
		if err := rows.Scan(&name, &v); err != nil {
			return nil, errors.Join(err, rows.Close())
		}
		tables, virtual[name] = append(tables, name), v
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return nil, err
	}
	for _, name := range tables {
		if s.rules != nil && s.rules.Derived(name) {
			continue
		}
		if virtual[name] {
			all = append(all, Salvaged{Table: name, Damaged: 1})
			continue
		}
		t, err := s.table(name)
		if all = append(all, t); err != nil {
			return all, fmt.Errorf("%s: %w", name, err)
		}
	}
	return all, nil
}

// quoted returns a name quoted for SQL.
func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// table is one table that is being copied.
type table struct {
	*salvage
	Salvaged
	name    string   // quoted
	columns string   // the stored columns
	key     []string // the columns that order its rows
}

// table copies the rows of one table.
func (s *salvage) table(name string) (Salvaged, error) {
	t := &table{salvage: s, Salvaged: Salvaged{Table: name}, name: quoted(name)}
	columns, err := scanAll[string](s.db.QueryContext(
		s.ctx, `SELECT name FROM pragma_table_info(?, 'main') ORDER BY cid`, name,
	))
	if err != nil {
		return t.Salvaged, err
	}
	for i := range columns {
		columns[i] = quoted(columns[i])
	}
	t.columns = strings.Join(columns, ", ")
	var keyed bool // WITHOUT ROWID
	if err := s.db.QueryRowContext(
		s.ctx, `SELECT wr FROM pragma_table_list WHERE schema = 'main' AND name = ?`, name,
	).Scan(&keyed); err != nil {
		return t.Salvaged, err
	}
	t.key = []string{"rowid"}
	if keyed {
		if t.key, err = scanAll[string](s.db.QueryContext(
			s.ctx, `SELECT name FROM pragma_table_info(?, 'main') WHERE pk > 0 ORDER BY pk`, name,
		)); err != nil {
			return t.Salvaged, err
		}
		for i := range t.key {
			t.key[i] = quoted(t.key[i])
		}
	}
	if err := t.copy(false); err != nil {
		return t.Salvaged, err
	}
	if keyed && t.Damaged > 0 { // from the other end, up to the damage
		if err := t.copy(true); err != nil {
			return t.Salvaged, err
		}
	}
	if err := s.db.QueryRowContext(s.ctx, `SELECT count(*) FROM main.`+t.name).Scan(&t.Taken); err != nil {
		return t.Salvaged, err
	}
	if t.Damaged > 0 {
		t.Lost = max(0, t.indexed()-t.Taken)
	}
	return t.Salvaged, nil
}

// mostAtOnce is the most rows that one statement copies. It copies fewer after one could not be
// read.
const mostAtOnce = 1024

// copy copies rows in the order of the key, or in reverse. It skips what cannot be read: a row, the
// rows up to the next readable one, or all remaining rows.
func (t *table) copy(back bool) error {
	var after []any // nil: from the beginning
	for n := mostAtOnce; t.ctx.Err() == nil; {
		last, err := t.ahead(after, n, back)
		ended := errors.Is(err, sql.ErrNoRows) // fewer than n remain
		if err == nil || ended {
			err = t.take(after, last, back)
		}
		switch {
		case err == nil && ended:
			return nil
		case err == nil:
			after, n = last, min(2*n, mostAtOnce)
		case !unreadable(err):
			return err
		case n > 1:
			n /= 2
		case last != nil: // this row
			t.Damaged++
			after = last
		default:
			t.Damaged++
			if len(t.key) > 1 || t.key[0] != "rowid" {
				return nil
			}
			if after = t.jump(after); after == nil {
				return nil
			}
		}
	}
	return t.ctx.Err()
}

// unreadable reports whether an error of copying is caused by the rows: they are damaged, or no
// database accepts them.
func unreadable(err error) bool {
	var lite interface{ Code() int }
	if !errors.As(err, &lite) {
		return false
	}
	const ioRead, ioShortRead = 266, 522
	switch code := lite.Code(); code & 0xff {
	case 1, 11, 18, 19, 20, 26: // e.g. malformed JSON in a trigger, CORRUPT, TOOBIG, CONSTRAINT, MISMATCH, NOTADB
		return true
	default:
		return code == ioRead || code == ioShortRead
	}
}

// beyond returns the condition for rows after a key.
func (t *table) beyond(after []any, back bool) string {
	if after == nil {
		return "true"
	}
	compare := ">"
	if back {
		compare = "<"
	}
	return fmt.Sprintf("(%s) %s (%s)", strings.Join(t.key, ", "), compare, marks(len(after)))
}

func marks(n int) string { return strings.TrimSuffix(strings.Repeat("?, ", n), ", ") }

// ahead returns the key of the row n rows further. It returns sql.ErrNoRows after the last row.
func (t *table) ahead(after []any, n int, back bool) ([]any, error) {
	order := ""
	if back {
		order = " DESC"
	}
	query := fmt.Sprintf("SELECT %s FROM damaged.%s NOT INDEXED WHERE %s ORDER BY %s LIMIT 1 OFFSET %d",
		strings.Join(t.key, ", "), t.name, t.beyond(after, back), strings.Join(t.key, order+", ")+order, n-1)
	row := make([]any, len(t.key))
	to := make([]any, len(row))
	for i := range row {
		to[i] = &row[i]
	}
	if err := t.db.QueryRowContext(t.ctx, query, after...).Scan(to...); err != nil {
		return nil, err
	}
	if len(after) == 1 && len(row) == 1 {
		a, one := after[0].(int64)
		b, other := row[0].(int64)
		if one && other && (b <= a) != back { // pages form a circle
			return nil, errCircle
		}
	}
	return row, nil
}

// errCircle is like SQLite's error for a damaged page.
var errCircle = circle{}

type circle struct{}

func (circle) Error() string { return "the rows are not in order" }
func (circle) Code() int     { return 11 }

// take copies the rows after one key up to another one; nil: to the end.
func (t *table) take(after, last []any, back bool) error {
	where, args := t.beyond(after, back), slices.Clone(after)
	if last != nil {
		compare := "<="
		if back {
			compare = ">="
		}
		where += fmt.Sprintf(" AND (%s) %s (%s)", strings.Join(t.key, ", "), compare, marks(len(last)))
		args = append(args, last...)
	}
	return t.exec(fmt.Sprintf(
		"INSERT OR REPLACE INTO main.%s (%s) SELECT %s FROM damaged.%s NOT INDEXED WHERE %s", t.name, t.columns,
		t.columns, t.name, where,
	), args...)
}

// jump returns the key before the first row after some key that can be read, or nil.
func (t *table) jump(after []any) []any {
	from := int64(0) // SQLite numbers rows from 1
	if after != nil {
		from, _ = after[0].(int64)
	}
	step := int64(1)
	for ; !t.finds(from + step); step *= 2 {
		if step > math.MaxInt64/2-max(from, 0) {
			return nil
		}
	}
	low, high := from+step/2, from+step // not readable, readable
	for low+1 < high {
		if middle := low + (high-low)/2; t.finds(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return []any{high}
}

// finds reports whether the row after a number, or the end of the table, can be read.
func (t *table) finds(after int64) bool {
	_, err := t.ahead([]any{after}, 1, false)
	return err == nil || errors.Is(err, sql.ErrNoRows)
}

// indexed returns how many rows of the table the readable indexes contain.
func (t *table) indexed() (most int64) {
	indexes, err := scanAll[string](t.db.QueryContext(
		t.ctx, `SELECT name FROM pragma_index_list(?, 'damaged') WHERE NOT partial`, t.Table,
	))
	if err != nil {
		return 0
	}
	for _, name := range indexes {
		var n int64
		if t.db.QueryRowContext(
			t.ctx, `SELECT count(*) FROM damaged.`+t.name+` INDEXED BY `+quoted(name),
		).Scan(&n) == nil {
			most = max(most, n)
		}
	}
	return most
}

// removeOrphans removes the rows that refer to missing ones, and counts them.
func (s *salvage) removeOrphans(all []Salvaged) error {
	for {
		if err := s.exec(`CREATE TEMP TABLE orphans AS SELECT DISTINCT "table" AS name, rowid AS id ` +
			`FROM pragma_foreign_key_check WHERE rowid IS NOT NULL`); err != nil {
			return err
		}
		tables, err := scanAll[string](s.db.QueryContext(s.ctx, `SELECT DISTINCT name FROM orphans`))
		if err != nil {
			return err
		}
		for _, name := range tables {
			res, err := s.db.ExecContext(
				s.ctx,
				`DELETE FROM main.`+quoted(name)+` WHERE rowid IN (SELECT id FROM orphans WHERE name = ?)`,
				name,
			)
			if err != nil {
				return err
			}
			n, _ := res.RowsAffected()
			if i := slices.IndexFunc(all, func(t Salvaged) bool { return t.Table == name }); i >= 0 {
				all[i].Removed += n
				all[i].Taken -= n
			}
		}
		if err := s.exec(`DROP TABLE orphans`); err != nil || len(tables) == 0 {
			return err
		}
	}
}
