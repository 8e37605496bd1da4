package datasets

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"unicode/utf8"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/text/rawjson"
)

// sourceTable is a Table of a Source whose answers are checked. A bad one, and a panic, is
// errs.Upstream naming the dataset and the place.
type sourceTable struct {
	dataset string // its name
	host    Table
	fields  []Field
	index   map[string]int // of fields, by name
}

// openSource returns the table that a Source has for a dataset, nil for none.
func openSource(ctx context.Context, s Source, tenant string, dataset entity.Ref) (*sourceTable, error) {
	t := &sourceTable{dataset: dataset.Name, index: map[string]int{}}
	err := t.call("Table", func() (err error) { t.host, err = s.Table(ctx, tenant, dataset); return err })
	if err != nil || t.host == nil {
		return nil, err
	}
	var fields []Field
	if err := t.call("Fields", func() (err error) { fields, err = t.host.Fields(ctx); return err }); err != nil {
		return nil, err
	}
	if len(fields) > MaxFields {
		return nil, t.wrong("Fields", "%d fields, where %d are allowed", len(fields), MaxFields)
	}
	for i, f := range fields {
		checked, err := checkField(f, t.index, fmt.Sprintf("fields[%d]", i))
		if err != nil {
			return nil, t.wrong("Fields", "%s", errs.MessageOf(err))
		}
		t.index[f.Name] = i
		t.fields = append(t.fields, checked)
	}
	return t, nil
}

// wrong returns the error for an answer that a method may not have.
func (t *sourceTable) wrong(method, format string, args ...any) error {
	return errs.New(
		errs.Upstream, "The source of the dataset %s has a fault: %s returned %s.", t.dataset, method,
		fmt.Sprintf(format, args...),
	)
}

// call calls a method of the host, whose panic is an error with the stack for the log.
func (t *sourceTable) call(method string, fn func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errs.Wrap(
				errs.Upstream, fmt.Errorf("panic: %v\n%s", p, debug.Stack()),
				"The source of the dataset %s has a fault: %s panicked.", t.dataset, method,
			)
		}
	}()
	return fn()
}

// Fields implements Table.
func (t *sourceTable) Fields(context.Context) ([]Field, error) { return t.fields, nil }

// Rows implements Table.
func (t *sourceTable) Rows(
	ctx context.Context, filter Filter, field string, desc bool, limit int,
) (rows []json.RawMessage, err error) {
	err = t.call("Rows", func() error { rows, err = t.host.Rows(ctx, filter, field, desc, limit); return err })
	if err == nil {
		err = t.check("Rows", rows, limit)
	}
	if err != nil {
		return nil, err
	}
	return rows, nil
}

// Count implements Table.
func (t *sourceTable) Count(ctx context.Context, filter Filter) (n int, err error) {
	err = t.call("Count", func() error { n, err = t.host.Count(ctx, filter); return err })
	if err == nil && n < 0 {
		err = t.wrong("Count", "%d", n)
	}
	if err != nil {
		return 0, err
	}
	return n, nil
}

// sample returns a table with n of the rows that fit a filter.
func (t *sourceTable) sample(ctx context.Context, filter Filter, n int) (_ *table, err error) {
	var rows []json.RawMessage
	if sampler, ok := t.host.(Sampler); ok {
		err = t.call("Sample", func() error { rows, err = sampler.Sample(ctx, filter, n); return err })
		if err == nil {
			err = t.check("Sample", rows, n)
		}
	} else {
		rows, err = t.Rows(ctx, filter, "", false, MaxRows)
	}
	if err != nil {
		return nil, err
	}
	return t.tableOf(spread(rows, n)), nil
}

// check returns an error for rows that do not have the fields of the table, or are more than limit.
func (t *sourceTable) check(method string, rows []json.RawMessage, limit int) error {
	if len(rows) > limit {
		return t.wrong(method, "%d rows, where the limit was %d", len(rows), limit)
	}
	for i, raw := range rows {
		if _, wrong := t.values(raw); wrong != "" {
			return t.wrong(method, "rows[%d]%s", i, wrong)
		}
	}
	return nil
}

// values returns the values of a row in the order of the fields, or what is wrong with it. Members
// that are no field have none.
func (t *sourceTable) values(raw json.RawMessage) (values []any, wrong string) {
	if !utf8.Valid(raw) {
		return nil, ", which is not UTF-8"
	}
	values = make([]any, len(t.fields))
	seen := make(map[string]bool, len(t.fields))
	object := rawjson.Each(raw, func(name string, v json.RawMessage) {
		if seen[name] {
			wrong = "." + name + " twice"
		}
		seen[name] = true
		at, ok := t.index[name]
		if !ok {
			return
		}
		if values[at], ok = valueOf(t.fields[at].Type, v); !ok {
			wrong = "." + name + ", which must be " + described(t.fields[at].Type)
		}
	})
	if !object {
		return nil, ", which must be a JSON object"
	}
	return values, wrong
}

// tableOf returns a table with rows that were checked.
func (t *sourceTable) tableOf(rows []json.RawMessage) *table {
	some := &table{fields: t.fields, index: t.index, rows: make([]row, len(rows))}
	for i, raw := range rows {
		values, _ := t.values(raw)
		some.rows[i] = row{raw, values}
	}
	return some
}
