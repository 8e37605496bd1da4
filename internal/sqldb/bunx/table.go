package bunx

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/paging"
)

// Column is a column of a Table.
type Column[T any] struct {
	Name string

	// Field returns a pointer to the field that the column is read into and written from, or a
	// sql.Scanner and driver.Valuer for it, such as TimeOf. It is nil for a column that is only
	// written.
	Field func(*T) any
	// Value returns what is written instead of Field. A column with neither is written only by
	// statements that name it.
	Value func(*T) any
	// Read is an expression that is read in place of a column, with the alias of the table. Such a
	// column is never written, and a Select of the table must name the alias.
	Read string

	Key  bool // part of the primary key
	Once bool // written only by an INSERT: Update and OnConflict leave it unchanged
	Keep bool // written by Update, but OnConflict leaves it unchanged
}

// Table lists the columns of a table. The texts of its statements are built when the program
// starts. The arguments and destinations of a row do not use reflection.
type Table[T any] struct {
	Name      string
	Names     string // the columns that are read, for SELECT and RETURNING
	Qualified string // Names with the alias, for a SELECT of several tables

	// OnConflict is the end of an INSERT that overwrites the columns of an existing row, except
	// those with Once or Keep.
	OnConflict string

	alias               string
	insert, one, update string
	read, written       []Column[T]
	changed, key        []Column[T]
}

// NewTable returns a Table. alias is its name in built statements and in Qualified.
func NewTable[T any](name, alias string, columns []Column[T]) *Table[T] {
	t := &Table[T]{Name: name, alias: alias}
	var set, overwrite []string
	for _, c := range columns {
		if c.Field != nil {
			t.read = append(t.read, c)
		}
		if c.Read != "" || c.Field == nil && c.Value == nil {
			continue
		}
		t.written = append(t.written, c)
		switch {
		case c.Key:
			t.key = append(t.key, c)
		case !c.Once:
			t.changed = append(t.changed, c)
			set = append(set, c.Name+" = $"+strconv.Itoa(len(t.changed)))
			if !c.Keep {
				overwrite = append(overwrite, c.Name)
			}
		}
	}
	var where []string
	for i, c := range t.key {
		where = append(where, c.Name+" = $"+strconv.Itoa(len(t.changed)+1+i))
	}
	t.Names, t.Qualified = names(t.read), qualified(alias, t.read)
	t.insert = "INSERT INTO " + name + " (" + names(t.written) + ") VALUES "
	t.one = t.insert + Values(1, len(t.written))
	t.update = "UPDATE " + name + " SET " + strings.Join(set, ", ") + " WHERE " + strings.Join(where, " AND ")
	t.OnConflict = t.Overwrite(overwrite...)
	return t
}

// Overwrite is OnConflict for only these columns, whether they have Keep or not.
func (t *Table[T]) Overwrite(columns ...string) string {
	set := make([]string, len(columns))
	for i, c := range columns {
		if !slices.ContainsFunc(t.changed, func(w Column[T]) bool { return w.Name == c }) {
			panic("bunx: " + t.Name + " has no column " + c + " that an edit may change")
		}
		set[i] = c + " = excluded." + c
	}
	return " ON CONFLICT (" + names(t.key) + ") DO UPDATE SET " + strings.Join(set, ", ")
}

func names[T any](columns []Column[T]) string {
	all := make([]string, len(columns))
	for i, c := range columns {
		all[i] = cmp.Or(c.Read, c.Name)
	}
	return strings.Join(all, ", ")
}

func qualified[T any](alias string, columns []Column[T]) string {
	all := make([]string, len(columns))
	for i, c := range columns {
		all[i] = cmp.Or(c.Read, alias+"."+c.Name)
	}
	return strings.Join(all, ", ")
}

// Select returns the fixed text of a SELECT of rows of the table; rest follows the table's name.
func (t *Table[T]) Select(rest string) string {
	return "SELECT " + t.Names + " FROM " + t.Name + " " + rest
}

// InsertOne returns the fixed text of an INSERT of one row, whose arguments are those of Args; rest
// follows the values.
func (t *Table[T]) InsertOne(rest string) string { return t.one + " " + rest }

// InsertOneWith is InsertOne with more columns, whose arguments follow those of Args.
func (t *Table[T]) InsertOneWith(columns ...string) string {
	return "INSERT INTO " + t.Name + " (" + names(t.written) + ", " + strings.Join(columns, ", ") + ") VALUES " +
		Values(
			1, len(t.written)+len(columns),
		)
}

// Extra returns the placeholder of the n-th argument, from 1, after those of Args.
func (t *Table[T]) Extra(n int) string { return "$" + strconv.Itoa(len(t.written)+n) }

// NamesWith returns Names with an expression in place of one column.
func (t *Table[T]) NamesWith(column, expression string) string {
	all := strings.Split(t.Names, ", ")
	for i, name := range all {
		if name == column {
			all[i] = expression
		}
	}
	return strings.Join(all, ", ")
}

// Dest returns the destinations for scanning a row of Names.
func (t *Table[T]) Dest(row *T) []any {
	return t.appendDest(make([]any, 0, len(t.read)+1), row)
}

func (t *Table[T]) appendDest(dest []any, row *T) []any {
	for _, c := range t.read {
		dest = append(dest, c.Field(row))
	}
	return dest
}

// Scan reads a row of Names.
func (t *Table[T]) Scan(from interface{ Scan(dest ...any) error }) (row T, err error) {
	err = from.Scan(t.Dest(&row)...)
	return row, err
}

// Args returns the arguments of InsertOne.
func (t *Table[T]) Args(row *T) []any { return args(make([]any, 0, len(t.written)), t.written, row) }

func args[T any](to []any, columns []Column[T], row *T) []any {
	for _, c := range columns {
		if c.Value != nil {
			to = append(to, c.Value(row))
		} else {
			to = append(to, value(c.Field(row)))
		}
	}
	return to
}

// value returns the value that a field points to. Package sql would dereference pointers itself,
// but more slowly.
func value(field any) any {
	switch p := field.(type) {
	case *string:
		return *p
	case **string:
		return *p
	case *bool:
		return *p
	case *int:
		return *p
	case *int64:
		return *p
	}
	return field
}

// maxArgs is less than the number of arguments that SQLite supports. PostgreSQL supports more.
const maxArgs = 32_000

// Insert adds rows with one statement, or with several if there are very many. rest follows the
// values: "", OnConflict, or another ON CONFLICT. It returns the number of rows that were written.
func (t *Table[T]) Insert(ctx context.Context, c Conn, rest string, rows ...T) (int, error) {
	written := 0
	for some := range slices.Chunk(rows, maxArgs/len(t.written)) {
		all := make([]any, 0, len(t.written)*len(some))
		for i := range some {
			all = args(all, t.written, &some[i])
		}
		query := t.one
		if len(some) > 1 {
			query = t.insert + Values(len(some), len(t.written))
		}
		n, err := c.Exec(ctx, query+rest, all...)
		if written += n; err != nil {
			return written, err
		}
	}
	return written, nil
}

// Update writes the columns of a row that are neither Key nor Once, if the row meets the conditions
// only. It returns the number of rows that were written, 0 or 1.
func (t *Table[T]) Update(ctx context.Context, c Conn, row *T, only ...Is) (int, error) {
	all := args(make([]any, 0, len(t.changed)+len(t.key)+len(only)), t.changed, row)
	all, query := args(all, t.key, row), t.update
	for _, is := range only {
		all = append(all, is.Value)
		query += " AND " + is.Column + " = $" + strconv.Itoa(len(all))
	}
	return c.Exec(ctx, query, all...)
}

// Restore sets the columns of a row that Update does not write, Key and Once, to their values in
// was. The row is then as it is stored, whatever an edit changed. Columns without a Field are not
// restored.
func (t *Table[T]) Restore(row, was *T) error {
	for _, c := range t.read {
		if !c.Key && !c.Once {
			continue
		}
		to, from := c.Field(row), c.Field(was)
		if v, ok := from.(driver.Valuer); ok { // for example TimeOf
			stored, err := v.Value()
			if err == nil {
				err = to.(sql.Scanner).Scan(stored)
			}
			if err != nil {
				return err
			}
			continue
		}
		reflect.ValueOf(to).Elem().Set(reflect.ValueOf(from).Elem())
	}
	return nil
}

// Rows returns a SELECT without columns, for Bounded and All.
func (t *Table[T]) Rows(c Conn) *bun.SelectQuery {
	return c.NewSelect().TableExpr(t.Name + " AS " + t.alias)
}

// Bounded reads the rows of a SELECT of Rows one by one and counts their bytes with meter. It ends
// with the row that fills the meter. more reports whether the SELECT has further rows, which are
// not read.
func (t *Table[T]) Bounded(
	ctx context.Context, q *bun.SelectQuery, meter *paging.Meter,
) (all []T, more bool, err error) {
	rows, err := q.ColumnExpr(t.Qualified).Rows(ctx)
	if err != nil {
		return nil, false, err
	}
	return t.bounded(rows, meter)
}

// All reads the rows of a SELECT of Rows.
func (t *Table[T]) All(ctx context.Context, q *bun.SelectQuery) ([]T, error) {
	all, _, err := t.Bounded(ctx, q, nil)
	return all, err
}

// Without returns a Table whose reads leave out columns.
func (t *Table[T]) Without(columns ...string) *Table[T] {
	return t.reading(func(name string) bool { return !slices.Contains(columns, name) })
}

// Only returns a Table that reads only some columns.
func (t *Table[T]) Only(columns ...string) *Table[T] {
	return t.reading(func(name string) bool { return slices.Contains(columns, name) })
}

// reading returns a Table that reads the columns for which keep reports true.
func (t *Table[T]) reading(keep func(name string) bool) *Table[T] {
	some := *t
	some.read = slices.DeleteFunc(slices.Clone(t.read), func(c Column[T]) bool { return !keep(c.Name) })
	some.Names, some.Qualified = names(some.read), qualified(t.alias, some.read)
	return &some
}

// With returns a Table whose built SELECTs also read columns of joined tables. Their names must
// have the alias of their table.
func (t *Table[T]) With(joined ...Column[T]) *Table[T] {
	with := *t
	with.read = slices.Concat(t.read, joined)
	with.Qualified += ", " + names(joined)
	return &with
}

// bounded is Bounded for the rows of a SELECT, which it closes. last are the destinations of the
// columns after the table's. Without a meter it reads all rows.
func (t *Table[T]) bounded(rows *sql.Rows, meter *paging.Meter, last ...any) (all []T, more bool, err error) {
	defer func() { _ = rows.Close() }()
	dest := make([]any, 0, len(t.read)+len(last))
	for full := false; rows.Next(); {
		if full {
			return all, true, rows.Close()
		}
		var row T
		all = append(all, row)
		dest = append(t.appendDest(dest[:0], &all[len(all)-1]), last...)
		if err := rows.Scan(dest...); err != nil {
			return all, false, err
		}
		if meter == nil {
			continue
		}
		bytes := int(unsafe.Sizeof(row))
		for _, d := range dest {
			bytes += size(d)
		}
		if full, err = meter.Add(bytes); err != nil {
			return all, false, err
		}
	}
	if err := rows.Err(); err != nil {
		return all, false, err
	}
	return all, false, rows.Close()
}

// size returns the bytes of the text that a field points to.
func size(field any) int {
	switch p := field.(type) {
	case *string:
		return len(*p)
	case **string:
		if *p != nil {
			return len(**p)
		}
	case interface{ size() int }:
		return p.size()
	}
	return 0
}
