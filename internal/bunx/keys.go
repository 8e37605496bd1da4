package bunx

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Keys makes one argument of any number of keys, for Find and Among: of the texts of each of their columns. The text of
// the statement, and its plan, is the same for all numbers.
func Keys(columns ...[]string) string {
	all := make([][]string, len(columns[0]))
	for i := range all {
		for _, texts := range columns {
			all[i] = append(all[i], texts[i])
		}
	}
	raw, _ := json.Marshal(all) // texts always encode
	return string(raw)
}

// Among returns what follows IN, so that columns, in parentheses where there are several, are those of one of the Keys
// that are argument $n.
func (c Conn) Among(n, columns int) string {
	parts := make([]string, columns)
	for i := range parts {
		parts[i] = fmt.Sprintf("value ->> %d", i)
	}
	from := fmt.Sprintf("json_each($%d)", n)
	if c.Postgres() {
		from = fmt.Sprintf("json_array_elements($%d)", n)
	}
	return "(SELECT " + strings.Join(parts, ", ") + " FROM " + from + ")"
}

// OneOf returns the end of a condition that follows a column: its value is one of the Keys that are argument $n.
//
// Without statistics PostgreSQL takes the rows of any tenant for few, and would rather read all of them to join them with the keys of an IN. An array
// is a condition of an index.
func (c Conn) OneOf(n int) string {
	if c.Postgres() {
		return "= ANY (ARRAY" + c.Among(n, 1) + ")"
	}
	return "IN " + c.Among(n, 1)
}

// Lookup is a SELECT of rows by the keys that an index ends with.
type Lookup struct {
	Columns string
	Table   string
	Where   string // on the columns of the index before the key, with arguments from $1
	Key     string // column
	Lock    bool   // the rows, in the order of the keys, until the transaction ends
	Change  bool   // with Lock: as Conn.ForChange does
}

// Find runs a Lookup with the arguments of its Where. Only the rows that exist come, a key given twice perhaps twice.
//
// PostgreSQL goes to the index once for each key. An IN leaves it the choice to read all that Where lets through and compare
// it with all keys, and that is what it does while it has no statistics, such as in the minute after a large import.
func (c Conn) Find(ctx context.Context, l Lookup, keys []string, args ...any) (*sql.Rows, error) {
	n := len(args) + 1
	var query string
	if c.Postgres() {
		lock := ""
		if l.Lock {
			keys = slices.Sorted(slices.Values(keys))
			if lock = c.ForUpdate(); l.Change {
				lock = c.ForChange()
			}
		}
		// The second OFFSET keeps it from being an ordinary join. With the first one key is a column and no ->>: that is not
		// leakproof, so PostgreSQL would not look it up in an index of a table with row level security.
		query = fmt.Sprintf(`SELECT found.* FROM (SELECT value ->> 0 FROM json_array_elements($%d) OFFSET 0) AS sought(key) CROSS JOIN LATERAL
			(SELECT %s FROM %s WHERE %s AND %s = sought.key OFFSET 0%s) AS found`, n, l.Columns, l.Table, l.Where, l.Key, lock)
	} else {
		query = fmt.Sprintf(`SELECT %s FROM %s WHERE %s AND %s %s`, l.Columns, l.Table, l.Where, l.Key, c.OneOf(n))
	}
	return c.Rows(ctx, query, append(args, Keys(keys))...)
}
