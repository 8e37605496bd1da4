package datasetstest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/content/datasets"
	"github.com/tenantcontent/tenantcontent/entity"
)

// sales is a Source of one dataset whose rows are in memory. Its functions, unless they are nil,
// are in the place of what is right.
type sales struct {
	table  func(tenant string, d entity.Ref) datasets.Table
	fields func([]datasets.Field) []datasets.Field
	rows   func(
		ctx context.Context, f datasets.Filter, field string, desc bool, limit int, right []json.RawMessage,
	) []json.RawMessage
	count func(ctx context.Context, right int) (int, error)
	ctx   bool // it is ignored
}

type line struct {
	region any
	amount any
	day    any
	paid   any
}

var lines = []line{
	{"North", 10.0, "2026-11-20", true},
	{"south", 9.5, "2026-11-20T12:00:00+02:00", false}, {"Ärzte", -3.0, "2025-01-01", nil},
	{nil, nil, nil, true}, {"north", 100.0, nil, false}, {"100% 'wool'_", 7.0, "2024-02-29", nil},
}

var salesFields = []datasets.Field{
	{Name: "region", Type: datasets.String, Label: "Region"},
	{Name: "amount", Type: datasets.Numeric}, {Name: "day", Type: datasets.Date},
	{Name: "paid", Type: datasets.Boolean}, {Name: "more", Type: datasets.Object},
}

// all returns the rows, with a member that is no field.
func all() []json.RawMessage {
	rows := make([]json.RawMessage, len(lines))
	for i, l := range lines {
		rows[i], _ = json.Marshal(map[string]any{
			"region": l.region,
			"amount": l.amount,
			"day":    l.day,
			"paid":   l.paid,
			"more":   []int{i},
			"id":     i,
		})
	}
	return rows
}

func (s sales) Table(_ context.Context, tenant string, d entity.Ref) (datasets.Table, error) {
	if s.table != nil {
		return s.table(tenant, d), nil
	}
	if tenant != "acme" || d.ID != "sales" {
		return nil, nil
	}
	return s, nil
}

func (s sales) Fields(context.Context) ([]datasets.Field, error) {
	if s.fields != nil {
		return s.fields(slices.Clone(salesFields)), nil
	}
	return salesFields, nil
}

// ready returns the rows as the data of a dataset, which answers rightly.
func (s sales) ready() *fixture {
	f := &fixture{
		fields:  salesFields,
		Fixture: Fixture{Dataset: entity.Ref{ID: "sales"}},
		ctx:     actor.With(context.Background(), actor.Actor{Tenant: "acme", User: "jo"}),
	}
	f.service = f.reference(all())
	return f
}

func (s sales) Rows(
	ctx context.Context, filter datasets.Filter, field string, desc bool, limit int,
) ([]json.RawMessage, error) {
	if err := ctx.Err(); err != nil && !s.ctx {
		return nil, err
	}
	f := s.ready()
	if desc {
		field = "-" + field
	}
	opened, err := f.service.Open(f.ctx, datasets.View{ID: "sales"})
	if err != nil {
		return nil, err
	}
	raw, err := opened.Rows(f.ctx, datasets.Query{Filter: written(filter), Sort: field, Limit: limit})
	if err == nil && s.rows != nil {
		raw = s.rows(ctx, filter, field, desc, limit, raw)
	}
	return raw, err
}

func (s sales) Count(ctx context.Context, filter datasets.Filter) (int, error) {
	if err := ctx.Err(); err != nil && !s.ctx {
		return 0, err
	}
	f := s.ready()
	n, err := f.service.Count(f.ctx, "sales", written(filter))
	if err == nil && s.count != nil {
		return s.count(ctx, n)
	}
	return n, err
}

// written writes a filter as it was read.
func written(filter datasets.Filter) json.RawMessage {
	all := map[string]map[string]any{}
	for _, c := range filter {
		if all[c.Field] == nil {
			all[c.Field] = map[string]any{}
		}
		all[c.Field][string(c.Op)] = c.Value
		if c.Op == datasets.In {
			all[c.Field][string(c.Op)] = append([]any{}, c.Values...)
		}
	}
	text, _ := json.Marshal(all)
	return text
}

func fixtureOf(s datasets.Source) Fixture {
	return Fixture{
		Source: s, Actor: actor.Actor{Tenant: "acme", User: "jo"}, Elsewhere: "evil",
		Dataset: entity.Ref{Kind: "dataset", ID: "sales", Name: "Sales"},
	}
}

func TestGoodSource(t *testing.T) {
	Test(t, func(*testing.T) Fixture { return fixtureOf(sales{}) })
}

// nilTable is a table whose methods need that it is not nil.
type nilTable struct{ sales }

type rowsOf = func(
	ctx context.Context, f datasets.Filter, field string, desc bool, limit int, right []json.RawMessage,
) []json.RawMessage

// TestBadSources: each fault is found, and told in a sentence.
func TestBadSources(t *testing.T) {
	always := func(row string) rowsOf {
		return func(context.Context, datasets.Filter, string, bool, int, []json.RawMessage) []json.RawMessage {
			return []json.RawMessage{json.RawMessage(row), json.RawMessage(row), json.RawMessage(row)}
		}
	}
	field := func(f datasets.Field) func([]datasets.Field) []datasets.Field {
		return func(all []datasets.Field) []datasets.Field { return append(all, f) }
	}
	var calls atomic.Int32
	for want, s := range map[string]sales{
		"has no table for the dataset of the fixture": {table: func(string, entity.Ref) datasets.Table { return nil }},
		"Fields panicked": {table: func(string, entity.Ref) datasets.Table { return (*nilTable)(nil) }},
		"Table panicked":  {table: func(string, entity.Ref) datasets.Table { panic("no table") }},
		"Table returned a table for another tenant": {table: func(string, entity.Ref) datasets.Table {
			return sales{}
		}},
		"fields[5].name: the field region is there twice": {
			fields: field(datasets.Field{Name: "region", Type: datasets.String}),
		},
		"fields[5].type must be string": {fields: field(datasets.Field{Name: "x", Type: "text"})},
		"fields[5].name is required":    {fields: field(datasets.Field{Type: datasets.String})},
		"Fields returned 1001 fields, where 1000 are allowed": {fields: func([]datasets.Field) []datasets.Field {
			return make([]datasets.Field, 1001)
		}},
		"Fields returned no field": {fields: func([]datasets.Field) []datasets.Field {
			return nil
		}},
		"rows[0].amount, which must be a number":    {rows: always(`{"amount": "10"}`)},
		"rows[0].day, which must be a date":         {rows: always(`{"day": "yesterday"}`)},
		"rows[0].paid, which must be true or false": {rows: always(`{"paid": 1}`)},
		"rows[0].region, which must be text":        {rows: always(`{"region": 1}`)},
		"rows[0].amount twice":                      {rows: always(`{"amount": 1, "amount": 2}`)},
		"rows[0], which must be a JSON object":      {rows: always(`[1]`)},
		"rows[0], which is not UTF-8":               {rows: always("{\"region\": \"\xff\"}")},
		"Rows panicked": {rows: func(
			context.Context, datasets.Filter, string, bool, int, []json.RawMessage,
		) []json.RawMessage {
			panic("no rows")
		}},
		"has 0 rows, where the checks need": {rows: func(
			context.Context, datasets.Filter, string, bool, int, []json.RawMessage,
		) []json.RawMessage {
			return nil
		}},
		"Count panicked": {count: func(context.Context, int) (int, error) {
			panic("no count")
		}},
		"Count returned -1":                  {count: func(context.Context, int) (int, error) { return -1, nil }},
		"Count returned 7, where Rows has 6": {count: func(context.Context, int) (int, error) { return 7, nil }},
		"Count failed: broken": {count: func(context.Context, int) (int, error) {
			return 0, fmt.Errorf("broken")
		}},
		"Rows ignored that its context has ended": {ctx: true},
		"Rows returned 6 rows, where the limit was 1": {rows: func(
			context.Context, datasets.Filter, string, bool, int, []json.RawMessage,
		) []json.RawMessage {
			return all()
		}},
		"where [] fit": {rows: func(
			_ context.Context, _ datasets.Filter, _ string, _ bool, limit int, _ []json.RawMessage,
		) []json.RawMessage {
			return all()[:min(limit, 6)]
		}},
		"Rows sorted by region are out of order":            {rows: unsorted},
		"Rows sorted by -day are out of order at rows[0], ": {rows: unsorted},
		"which are not the first rows":                      {rows: fromTheEnd},
		"Rows has no fixed order": {rows: func(
			_ context.Context, _ datasets.Filter, _ string, _ bool, _ int, right []json.RawMessage,
		) []json.RawMessage {
			from := int(calls.Add(1)) % len(right)
			return append(slices.Clone(right[from:]), right[:from]...)
		}},
		`Rows with the filter {"region":{"contains":"NORTH"}} returned`: {rows: caseSensitive},
	} {
		t.Run(want, func(t *testing.T) {
			var told []string
			fail := func(format string, args ...any) { told = append(told, fmt.Sprintf(format, args...)) }
			for _, c := range checks {
				if f := newFixture(t.Context(), fixtureOf(s), fail); f != nil {
					c.run(f)
				}
			}
			if !slices.ContainsFunc(told, func(s string) bool { return strings.Contains(s, want) }) {
				t.Errorf("%q is not among %d sentences: %.2000s", want, len(told), strings.Join(told, "\n"))
			}
		})
	}
}

// unsorted leaves the order as it is in the dataset.
func unsorted(
	_ context.Context, filter datasets.Filter, field string, _ bool, limit int, right []json.RawMessage,
) []json.RawMessage {
	if field != "" && len(filter) == 0 {
		return all()[:min(limit, len(lines))]
	}
	return right
}

// fromTheEnd returns the last rows in place of the first.
func fromTheEnd(
	_ context.Context, _ datasets.Filter, _ string, _ bool, limit int, right []json.RawMessage,
) []json.RawMessage {
	if limit < len(lines) {
		return all()[len(lines)-limit:]
	}
	return right
}

// caseSensitive compares with the case in contains.
func caseSensitive(
	_ context.Context, filter datasets.Filter, _ string, _ bool, _ int, right []json.RawMessage,
) (some []json.RawMessage) {
	for _, row := range right {
		if len(filter) == 1 && filter[0].Op == datasets.Contains &&
			!strings.Contains(string(row), filter[0].Value.(string)) {
			continue
		}
		some = append(some, row)
	}
	return some
}
