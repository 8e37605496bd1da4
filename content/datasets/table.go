package datasets

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/text/fold"
)

// Check reports what is wrong with the data of a dataset: fields, if it has any, must be an array
// of {name, type, label}, and rows an array of up to MaxRows objects whose members are fields and
// have values of their types. Other members are free. Errors: errs.Invalid naming the place, such
// as "data.rows[3].amount must be a number".
func Check(data json.RawMessage) error {
	_, err := read(data)
	return err
}

// table is the rows of a dataset in its data. It never changes.
type table struct {
	fields []Field
	index  map[string]int // of fields, by name
	rows   []row
}

// row is a row: its JSON, and its values in the order of the fields: nil, a string, float64,
// time.Time, bool, or the JSON of an object.
type row struct {
	raw    json.RawMessage
	values []any
}

// read reads the data of a dataset.
func read(data json.RawMessage) (*table, error) {
	var members map[string]json.RawMessage
	if len(data) > 0 && json.Unmarshal(data, &members) != nil {
		return nil, errs.New(errs.Invalid, "data must be a JSON object")
	}
	t := &table{index: map[string]int{}}
	if err := t.readFields(members["fields"]); err != nil {
		return nil, err
	}
	if members["rows"] == nil {
		return t, nil
	}
	var rows []json.RawMessage
	if json.Unmarshal(members["rows"], &rows) != nil || rows == nil {
		return nil, errs.New(errs.Invalid, "data.rows must be an array of objects")
	}
	if len(rows) > MaxRows {
		return nil, errs.New(errs.Invalid, "data.rows has %d rows, where %d are allowed", len(rows), MaxRows)
	}
	t.rows = make([]row, len(rows))
	for i, raw := range rows {
		values, err := t.readRow(raw, i)
		if err != nil {
			return nil, err
		}
		t.rows[i] = row{raw, values}
	}
	return t, nil
}

// sample returns a table with n of the rows that fit a filter.
func (t *table) sample(ctx context.Context, filter Filter, n int) (*table, error) {
	found, err := t.find(ctx, filter, len(t.rows))
	if err != nil {
		return nil, err
	}
	some := &table{fields: t.fields, index: t.index}
	for _, i := range spread(found, n) {
		some.rows = append(some.rows, t.rows[i])
	}
	return some, nil
}

// find returns the indexes of rows that fit a filter, up to limit.
func (t *table) find(ctx context.Context, filter Filter, limit int) (found []int, err error) {
	fits := t.matcher(filter)
	for i := range t.rows {
		if len(found) == limit {
			break
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if fits(t.rows[i].values) {
			found = append(found, i)
		}
	}
	return found, nil
}

func (t *table) readFields(raw json.RawMessage) error {
	if raw == nil {
		return nil
	}
	var all []map[string]json.RawMessage
	if json.Unmarshal(raw, &all) != nil || all == nil {
		return errs.New(errs.Invalid, "data.fields must be an array of {name, type, label}")
	}
	if len(all) > MaxFields {
		return errs.New(errs.Invalid, "data.fields has %d fields, where %d are allowed", len(all), MaxFields)
	}
	for i, members := range all {
		place := fmt.Sprintf("data.fields[%d]", i)
		f := Field{}
		if json.Unmarshal(members["name"], &f.Name) != nil {
			f.Name = "" // checkField refuses it
		}
		if json.Unmarshal(members["type"], &f.Type) != nil {
			f.Type = ""
		}
		if label := members["label"]; label != nil && json.Unmarshal(label, &f.Label) != nil {
			return errs.New(errs.Invalid, "%s.label must be text of at most 255 characters", place)
		}
		f, err := checkField(f, t.index, place)
		if err != nil {
			return err
		}
		t.index[f.Name] = i
		t.fields = append(t.fields, f)
	}
	return nil
}

// checkField returns a field with its label. Errors: errs.Invalid naming what is wrong with it,
// also if there is one of its name.
func checkField(f Field, there map[string]int, place string) (Field, error) {
	switch {
	case f.Name == "" || utf8.RuneCountInString(f.Name) > 255 || !utf8.ValidString(f.Name) ||
		strings.ContainsFunc(f.Name, unicode.IsControl):
		return f, errs.New(errs.Invalid, "%s.name is required: 1 to 255 characters without control characters", place)
	case !slices.Contains(types(), f.Type):
		return f, errs.New(errs.Invalid, "%s.type must be string, numeric, date, boolean or object", place)
	case utf8.RuneCountInString(f.Label) > 255 || !utf8.ValidString(f.Label):
		return f, errs.New(errs.Invalid, "%s.label must be text of at most 255 characters", place)
	}
	if _, twice := there[f.Name]; twice {
		return f, errs.New(errs.Invalid, "%s.name: the field %s is there twice", place, f.Name)
	}
	f.Label = cmp.Or(f.Label, f.Name)
	return f, nil
}

func (t *table) readRow(raw json.RawMessage, i int) ([]any, error) {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil || members == nil {
		return nil, errs.New(errs.Invalid, "data.rows[%d] must be an object", i)
	}
	values := make([]any, len(t.fields))
	for name, v := range members {
		at, ok := t.index[name]
		if !ok {
			return nil, errs.New(errs.Invalid, "data.rows[%d].%s is no field of the dataset", i, name)
		}
		if values[at], ok = valueOf(t.fields[at].Type, v); !ok {
			return nil, errs.New(errs.Invalid, "data.rows[%d].%s must be %s", i, name, described(t.fields[at].Type))
		}
	}
	return values, nil
}

// described returns what the values of a type are.
func described(t Type) string {
	switch t {
	case Numeric:
		return "a number"
	case Date:
		return "a date such as 2026-11-20 or a time such as 2026-11-20T20:31:00Z"
	case Boolean:
		return "true or false"
	}
	return "text"
}

// valueOf returns the value of JSON; false if it is not of the type.
func valueOf(t Type, raw json.RawMessage) (any, bool) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		return nil, true
	}
	var text string
	switch t {
	case String:
		return decoded[string](raw)
	case Numeric:
		return decoded[float64](raw)
	case Boolean:
		return decoded[bool](raw)
	case Date:
		if json.Unmarshal(raw, &text) != nil {
			return nil, false
		}
		for _, format := range []string{time.DateOnly, time.RFC3339, "2006-01-02T15:04:05"} {
			if at, err := time.Parse(format, text); err == nil {
				return at.UTC(), true
			}
		}
		return nil, false
	}
	return raw, true
}

func decoded[T any](raw json.RawMessage) (any, bool) {
	var v T
	err := json.Unmarshal(raw, &v)
	return v, err == nil
}

// compare compares two values of one type that are not nil.
func compare(a, b any) int {
	switch a := a.(type) {
	case string:
		return strings.Compare(a, b.(string))
	case float64:
		return cmp.Compare(a, b.(float64))
	case time.Time:
		return a.Compare(b.(time.Time))
	case bool:
		switch b := b.(bool); {
		case a == b:
			return 0
		case b:
			return -1
		}
		return 1
	}
	return 0
}

// Fields implements Table.
func (t *table) Fields(context.Context) ([]Field, error) { return t.fields, nil }

// Rows implements Table.
func (t *table) Rows(
	ctx context.Context, filter Filter, field string, desc bool, limit int,
) ([]json.RawMessage, error) {
	at, sorted := t.index[field]
	most := limit
	if sorted = sorted && field != ""; sorted {
		most = len(t.rows)
	}
	found, err := t.find(ctx, filter, most)
	if err != nil {
		return nil, err
	}
	if sorted {
		t.sort(found, at, desc)
	}
	rows := make([]json.RawMessage, min(len(found), limit))
	for i := range rows {
		rows[i] = t.rows[found[i]].raw
	}
	return rows, nil
}

// sort sorts rows by a field, null last, and equal ones as they are in the dataset. Texts are
// compared ignoring case first.
func (t *table) sort(rows []int, at int, desc bool) {
	folded := map[int]string{}
	if t.fields[at].Type == String {
		for _, i := range rows {
			if s, ok := t.rows[i].values[at].(string); ok {
				folded[i] = fold.Text(s)
			}
		}
	}
	slices.SortStableFunc(rows, func(i, j int) int {
		a, b := t.rows[i].values[at], t.rows[j].values[at]
		switch {
		case a == nil && b == nil:
			return 0
		case a == nil:
			return 1
		case b == nil:
			return -1
		}
		n := cmp.Or(strings.Compare(folded[i], folded[j]), compare(a, b))
		if desc {
			return -n
		}
		return n
	})
}

// Count implements Table.
func (t *table) Count(ctx context.Context, filter Filter) (n int, err error) {
	fits := t.matcher(filter)
	for i := range t.rows {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		if fits(t.rows[i].values) {
			n++
		}
	}
	return n, nil
}

// matcher returns a function that reports whether the values of a row fit a filter.
func (t *table) matcher(filter Filter) func(values []any) bool {
	return func(values []any) bool {
		for _, c := range filter {
			if !c.Fits(values[t.index[c.Field]]) {
				return false
			}
		}
		return true
	}
}
