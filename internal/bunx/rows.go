package bunx

import (
	"context"
	"database/sql"
	"reflect"
	"strings"
	"unsafe"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/schema"

	"github.com/tenantcontent/tenantcontent/paging"
)

// Bounded reads the rows of a built SELECT one by one, as Scan into a slice does, and counts their bytes with meter. It
// ends with the row that fills it; more reports whether the SELECT has further rows, which stay in the database.
func Bounded[R any](ctx context.Context, q *bun.SelectQuery, meter *paging.Meter) (rows []R, more bool, err error) {
	m := &boundedModel[R]{table: q.DB().Table(reflect.TypeFor[R]()), meter: meter}
	err = q.Scan(ctx, m)
	return m.all, m.more, err
}

// boundedModel is the bun.Model of Bounded.
type boundedModel[R any] struct {
	table *schema.Table
	meter *paging.Meter
	all   []R
	more  bool
}

// Value implements bun.Model.
func (m *boundedModel[R]) Value() any { return m.all }

// column is where one column of a row is scanned to. The same columns serve all rows.
type column struct {
	field *schema.Field
	row   *reflect.Value
	bytes *int
}

// Scan implements sql.Scanner.
func (c column) Scan(src any) error {
	switch src := src.(type) {
	case string:
		*c.bytes += len(src)
	case []byte:
		*c.bytes += len(src)
	}
	return c.field.ScanValue(*c.row, src)
}

// ScanRows implements bun.Model.
func (m *boundedModel[R]) ScanRows(_ context.Context, rows *sql.Rows) (int, error) {
	names, err := rows.Columns()
	if err != nil {
		return 0, err
	}
	var row reflect.Value
	var bytes int
	columns, dest := make([]column, len(names)), make([]any, len(names))
	for i, name := range names {
		field, err := m.table.Field(strings.Trim(name, `"`))
		if err != nil {
			return 0, err
		}
		columns[i] = column{field, &row, &bytes}
		dest[i] = &columns[i]
	}
	for full := false; rows.Next(); {
		if m.more = full; full {
			break
		}
		var r R
		m.all = append(m.all, r)
		row, bytes = reflect.ValueOf(&m.all[len(m.all)-1]).Elem(), int(unsafe.Sizeof(r))
		if err := rows.Scan(dest...); err != nil {
			return 0, err
		}
		if full, err = m.meter.Add(bytes); err != nil {
			return 0, err
		}
	}
	return len(m.all), rows.Err()
}
