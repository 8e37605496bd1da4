package bunx

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Keys returns one argument for any number of keys, for Find and Among: the texts of each of their
// columns. The text of the statement, and its plan, do not depend on the number.
func Keys(columns ...[]string) string {
	all := make([][]string, len(columns[0]))
	for i := range all {
		for _, texts := range columns {
			all[i] = append(all[i], texts[i])
		}
	}
	raw, _ := json.Marshal(all) // texts can always be encoded
	return string(raw)
}

// Among returns a SELECT, in parentheses, of the first columns of the Keys in argument $n: for
// WITH, FROM, and for IN together with Match.
//
// Its OFFSET makes PostgreSQL treat the texts as columns. Without it they would be calls of ->>,
// which is not leakproof, and an index of a table with row-level security would not be used.
func (c Conn) Among(n, columns int) string {
	parts := make([]string, columns)
	for i := range parts {
		parts[i] = fmt.Sprintf("value ->> %d", i)
	}
	from := fmt.Sprintf("json_each($%d)", n)
	if c.Postgres() {
		from = fmt.Sprintf("json_array_elements($%d) OFFSET 0", n)
	}
	return "(SELECT " + strings.Join(parts, ", ") + " FROM " + from + ")"
}

// OneOf returns the end of a condition that follows a column: its value is one of the Keys in
// argument $n.
func (c Conn) OneOf(n int) string {
	among := c.Among(n, 1)
	return c.anyOf(among[1 : len(among)-1])
}

// anyOf returns the end of a condition that follows a column: its value is in the result of a
// SELECT.
//
// Without statistics PostgreSQL assumes that a tenant has few rows, and would read all of them to
// join them with the keys of an IN. An array is a condition that an index supports.
func (c Conn) anyOf(query string) string {
	if c.Postgres() {
		return "= ANY (ARRAY(" + query + "))"
	}
	return "IN (" + query + ")"
}

// Match returns a condition: the values of several columns are those of one of the Keys in argument
// $n. PostgreSQL searches, at least by the first column, an index that has it after the columns of
// the other conditions.
func (c Conn) Match(n int, columns ...string) string {
	all := "(" + strings.Join(columns, ", ") + ") IN " + c.Among(n, len(columns))
	if c.Postgres() {
		return columns[0] + " " + c.OneOf(n) + " AND " + all
	}
	return all
}

// Lookup is a SELECT of rows by keys that are the last columns of an index.
type Lookup struct {
	Columns string
	Table   string
	Where   string // on the columns of the index before the key, with arguments from $1
	Key     string // a column, or several separated by commas
	Lock    bool   // lock the rows, in the order of the keys, until the transaction ends
	Change  bool   // with Lock: lock as Conn.ForChange does
}

// Find runs a Lookup by one column with the arguments of its Where. It returns only rows that
// exist. A key given twice may be returned twice.
func (c Conn) Find(ctx context.Context, l Lookup, keys []string, args ...any) (*sql.Rows, error) {
	if l.Lock && c.Postgres() {
		keys = slices.Sorted(slices.Values(keys))
	}
	return c.FindBy(ctx, l, [][]string{keys}, args...)
}

// FindBy is Find by several columns; keys are the texts of each column. It does not sort them for
// Lock.
//
// PostgreSQL searches the index once for each key. With an IN it could read all rows that meet
// Where and compare them with all keys. It does so without statistics, for example in the minute
// after a large import.
func (c Conn) FindBy(ctx context.Context, l Lookup, keys [][]string, args ...any) (*sql.Rows, error) {
	n, columns := len(args)+1, strings.Split(l.Key, ", ")
	args = append(args, Keys(keys...))
	if !c.Postgres() {
		among := "(" + l.Key + ") IN " + c.Among(n, len(columns))
		return c.Rows(ctx, fmt.Sprintf(
			`SELECT %s FROM %s WHERE %s AND %s`, l.Columns, l.Table, l.Where, among,
		), args...)
	}
	sought, is := make([]string, len(columns)), ""
	for i, column := range columns {
		sought[i] = fmt.Sprintf("key%d", i)
		is += fmt.Sprintf(" AND %s = sought.key%d", column, i)
	}
	lock := ""
	if l.Lock {
		if lock = c.ForUpdate(); l.Change {
			lock = c.ForChange()
		}
	}
	// OFFSET prevents an ordinary join
	return c.Rows(ctx,
		fmt.Sprintf(`SELECT found.* FROM %s AS sought(%s) CROSS JOIN LATERAL (SELECT %s FROM %s `+
			`WHERE %s%s OFFSET 0%s) AS found`,
			c.Among(n, len(columns)), strings.Join(sought, ", "), l.Columns, l.Table, l.Where, is, lock), args...)
}
