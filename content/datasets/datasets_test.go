package datasets_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/content/datasets"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
)

// stored are datasets by id.
type stored map[string]string

func (s stored) Dataset(_ context.Context, id string) (datasets.Stored, error) {
	data, ok := s[id]
	if !ok {
		return datasets.Stored{}, errs.New(errs.NotFound, "Dataset not found.")
	}
	return datasets.Stored{
		Ref:     entity.Ref{Kind: "dataset", ID: id, Name: strings.ToUpper(id)},
		Data:    json.RawMessage(data),
		Version: data,
	}, nil
}

const sales = `{"note": 1, "fields": [
	{"name": "region", "type": "string", "label": "Region"}, {"name": "amount", "type": "numeric"}, {"name": ` +
	`"day", "type": "date"},
	{"name": "paid", "type": "boolean"}, {"name": "more", "type": "object"}], "rows": [
	{"region": "North", "amount": 10, "day": "2026-11-20", "paid": true, "more": {"a": [1]}},
	{"region": "south", "amount": 9.5, "day": "2026-11-20T12:00:00+02:00", "paid": false},
	{"region": "Ärzte", "amount": -3, "day": "2025-01-01"},
	{"region": null, "amount": null, "paid": true},
	{"region": "north", "amount": 100}]}`

func service(t *testing.T) (*datasets.Service, context.Context) {
	return datasets.New(datasets.Options{
			Content: stored{"sales": sales, "empty": `{}`, "old": `{"rows": [{"a": 1}]}`},
		}),
		actor.With(t.Context(), actor.Actor{Tenant: "acme", User: "ann"})
}

// TestCanceled: who is gone does not compute any more.
func TestCanceled(t *testing.T) {
	is := is.New(t)
	s, ctx := service(t)
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	_, err := s.Rows(ctx, "sales", datasets.Query{})
	is.Equal(err, context.Canceled)
	_, err = s.Count(ctx, "sales", nil)
	is.Equal(err, context.Canceled)
}

func TestRows(t *testing.T) {
	s, ctx := service(t)
	for _, c := range []struct {
		filter, sort string
		limit        int
		want         string // amounts
	}{
		{``, "", 0, "10 9.5 -3 null 100"},
		{``, "", 2, "10 9.5"},
		{`{}`, "amount", 0, "-3 9.5 10 100 null"},
		{``, "-amount", 2, "100 10"},
		{``, "region", 0, "10 100 9.5 -3 null"}, // north after North, which is equal but for the case
		{``, "-day", 0, "9.5 10 -3 null 100"},
		{``, "paid", 0, "9.5 10 null -3 100"},
		{`{"region": "north"}`, "", 0, "100"},
		{`{"region": {"eq": "North"}}`, "", 0, "10"},
		{`{"region": null}`, "", 0, "null"},
		{`{"region": {"ne": null}}`, "", 0, "10 9.5 -3 100"},
		{`{"region": {"ne": "North"}}`, "", 0, "9.5 -3 null 100"},
		{`{"region": {"contains": "NORTH"}}`, "", 0, "10 100"},
		{`{"region": {"contains": "är"}}`, "", 0, "-3"},
		{`{"region": {"in": ["south", null]}}`, "", 0, "9.5 null"},
		{`{"region": {"in": []}}`, "", 0, ""},
		{`{"region": {"gt": "n"}}`, "", 0, "9.5 -3 100"},
		{`{"amount": {"gt": 9.5}}`, "", 0, "10 100"},
		{`{"amount": {"gte": 9.5, "lt": 100}}`, "", 0, "10 9.5"},
		{`{"amount": {"lte": -3}}`, "", 0, "-3"},
		{`{"amount": 10.0}`, "", 0, "10"},
		{`{"amount": {"in": [10, 100]}, "paid": true}`, "", 0, "10"},
		{`{"day": "2026-11-20T00:00:00Z"}`, "", 0, "10"},
		{`{"day": {"gte": "2026-11-20"}}`, "", 0, "10 9.5"},
		{`{"day": "2026-11-20T10:00:00"}`, "", 0, "9.5"},
		{`{"paid": {"ne": true}}`, "", 0, "9.5 -3 100"},
		{`{"paid": {"lt": true}}`, "", 0, "9.5"},
	} {
		t.Run(c.filter+c.sort, func(t *testing.T) {
			is := is.New(t)
			raw, err := s.Rows(
				ctx, "sales", datasets.Query{Filter: json.RawMessage(c.filter), Sort: c.sort, Limit: c.limit},
			)
			is.NoErr(err)
			var rows []struct{ Amount *float64 }
			is.NoErr(json.Unmarshal(raw, &rows))
			var got []string
			for _, r := range rows {
				if r.Amount == nil {
					got = append(got, "null")
				} else {
					got = append(got, fmt.Sprint(*r.Amount))
				}
			}
			is.Equal(strings.Join(got, " "), c.want)
			if c.limit == 0 {
				n, err := s.Count(ctx, "sales", json.RawMessage(c.filter))
				is.NoErr(err)
				is.Equal(n, len(rows))
			}
		})
	}
}

func TestFields(t *testing.T) {
	is := is.New(t)
	s, ctx := service(t)
	fields, err := s.Fields(ctx, "sales")
	is.NoErr(err)
	is.Equal(string(fields),
		`[{"name":"region","type":"string","label":"Region"},{"name":"amount","type":"numeric",`+
			`"label":"amount"},{"name":"day","type":"date","label":"day"},`+
			`{"name":"paid","type":"boolean","label":"paid"},{"name":"more","type":"object","label":"more"}]`)
	fields, err = s.Fields(ctx, "empty")
	is.NoErr(err)
	is.Equal(string(fields), `[]`)
	rows, err := s.Rows(ctx, "empty", datasets.Query{})
	is.NoErr(err)
	is.Equal(string(rows), `[]`)
	rows, err = s.Rows(ctx, "sales", datasets.Query{Limit: 1})
	is.NoErr(err)
	is.Equal(string(rows), `[{"region": "North", "amount": 10, "day": "2026-11-20", "paid": true, "more": {"a": [1]}}]`)
	_, err = s.Fields(ctx, "none")
	is.Equal(errs.CodeOf(err), errs.NotFound)
	_, err = s.Fields(ctx, "old")
	is.Equal(errs.CodeOf(err), errs.Conflict)
	is.Equal(
		errs.MessageOf(err),
		"The rows of the dataset OLD cannot be read: data.rows[0].a is no field of the dataset",
	)
	_, err = s.Fields(t.Context(), "sales")
	is.Equal(errs.CodeOf(err), errs.Unauthenticated)
}

func TestBadQueries(t *testing.T) {
	s, ctx := service(t)
	for filter, want := range map[string]string{
		`[]`:                       "filter must be an object: {field: value} or {field: {gt: value}}",
		`{"none": 1}`:              "filter.none is no field of the dataset",
		`{"more": 1}`:              "filter.more: fields of the type object are not compared",
		`{"amount": "10"}`:         "filter.amount must be a number",
		`{"amount": {"gt": "10"}}`: "filter.amount.gt must be a number",
		`{"amount": {"gt": null}}`: "filter.amount.gt must be a number",
		`{"amount": {}}`: "filter.amount must be a value or an object with gt, gte, lt, lte, " +
			"in, contains, ne or eq",
		`{"amount": {"like": 1}}`: "filter.amount.like: the operators are gt, gte, lt, lte, in, " +
			"contains, ne and eq",
		`{"amount": {"in": 1}}`:          "filter.amount.in must be an array of at most 1000 values",
		`{"amount": {"in": [1, "2"]}}`:   "filter.amount.in[1] must be a number",
		`{"amount": {"contains": 1}}`:    "filter.amount.contains: only text contains something",
		`{"region": {"contains": null}}`: "filter.region.contains must be text",
		`{"day": "yesterday"}`: "filter.day must be a date such as 2026-11-20 or a time such as " +
			"2026-11-20T20:31:00Z",
		`{"paid": {"eq": 1, "gt": false}}`: "filter.paid.eq must be true or false",
		`{"region": ["a"]}`:                "filter.region must be text",
	} {
		for _, err := range []error{
			second(s.Rows(ctx, "sales", datasets.Query{Filter: json.RawMessage(filter)})),
			second(s.Count(ctx, "sales", json.RawMessage(filter))),
		} {
			if errs.CodeOf(err) != errs.Invalid || errs.MessageOf(err) != want {
				t.Errorf("%s: %v, want %s", filter, err, want)
			}
		}
	}
	for _, q := range []datasets.Query{
		{Limit: -1}, {Limit: datasets.MaxRows + 1}, {Sort: "none"}, {Sort: "-"}, {Sort: "more"},
		{Sort: "--amount"},
	} {
		if _, err := s.Rows(ctx, "sales", q); errs.CodeOf(err) != errs.Invalid {
			t.Errorf("%+v: %v", q, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func TestCheck(t *testing.T) {
	is := is.New(t)
	for _, data := range []string{
		``, `{}`, `{"fields": []}`, `{"rows": []}`, `{"Rows": 5}`,
		`{"x": 1, "fields": [{"name": "a", "type": "numeric", "width": 5}], "rows": [{}, {"a": 1e300}, {"a": null}]}`,
		sales,
	} {
		is.NoErr(datasets.Check(json.RawMessage(data)))
	}
	many := strings.Repeat(`{},`, datasets.MaxRows)
	is.NoErr(datasets.Check(json.RawMessage(`{"rows": [` + many[:len(many)-1] + `]}`)))
	for data, want := range map[string]string{
		`[]`:                "data must be a JSON object",
		`{"fields": {}}`:    "data.fields must be an array of {name, type, label}",
		`{"fields": null}`:  "data.fields must be an array of {name, type, label}",
		`{"fields": ["a"]}`: "data.fields must be an array of {name, type, label}",
		`{"fields": [{}]}`: "data.fields[0].name is required: 1 to 255 characters without control " +
			"characters",
		`{"fields": [{"NAME": "a"}]}`: "data.fields[0].name is required: 1 to 255 characters without control " +
			"characters",
		`{"fields": [{"name": "a"}]}`: "data.fields[0].type must be string, numeric, date, boolean or object",
		`{"fields": [{"name": "a", "type": "int"}]}`: "data.fields[0].type must " +
			"be string, numeric, date, boolean or object",
		`{"fields": [{"name": "a", "type": "date", "label": 5}]}`: "data.fields[0].label " +
			"must be text of at most 255 characters",
		`{"fields": [{"name": "a", "type": "date"}, {"name": "a", "type": "string"}]}`: "data.fields[1].name: the " +
			"field a is there twice",
		`{"rows": {}}`:               "data.rows must be an array of objects",
		`{"rows": null}`:             "data.rows must be an array of objects",
		`{"rows": [1]}`:              "data.rows[0] must be an object",
		`{"rows": [null]}`:           "data.rows[0] must be an object",
		`{"rows": [{}, {"a": 1}]}`:   "data.rows[1].a is no field of the dataset",
		`{"rows": [` + many + `{}]}`: "data.rows has 10001 rows, where 10000 are allowed",
		`{"fields": [{"name": "a", "type": "numeric"}], "rows": [{"a": "1"}]}`: "data.rows[0].a must be a number",
		`{"fields": [{"name": "a", "type": "string"}], "rows": [{"a": 1}]}`:    "data.rows[0].a must be text",
		`{"fields": [{"name": "a", "type": "date"}], "rows": [{"a": "2026-13-01"}]}`: "data.rows[0].a must be a " +
			"date such as 2026-11-20 or a time such as 2026-11-20T20:31:00Z",
		`{"fields": [{"name": "a", "type": "boolean"}], "rows": [{"a": "true"}]}`: "data.rows[0].a must be " +
			"true or false",
	} {
		if err := datasets.Check(json.RawMessage(data)); errs.CodeOf(err) != errs.Invalid ||
			errs.MessageOf(err) != want {
			t.Errorf("%.80s: %v, want %s", data, err, want)
		}
	}
}

// host answers the dataset sales alone.
type host struct{ filter *datasets.Filter }

func (h host) Table(_ context.Context, tenant string, dataset entity.Ref) (datasets.Table, error) {
	if tenant != "acme" || dataset.ID != "sales" {
		return nil, nil
	}
	return h, nil
}

func (host) Fields(context.Context) ([]datasets.Field, error) {
	return []datasets.Field{{Name: "a", Type: datasets.Numeric, Label: "A"}}, nil
}

func (h host) Rows(
	_ context.Context, filter datasets.Filter, field string, desc bool, limit int,
) ([]json.RawMessage, error) {
	*h.filter = filter
	return []json.RawMessage{[]byte(`{"a":1}`), fmt.Appendf(nil, `{"a":%d,"asked":"%s %t"}`, limit, field, desc)}, nil
}

func (host) Count(context.Context, datasets.Filter) (int, error) { return 7, nil }

func TestSource(t *testing.T) {
	is := is.New(t)
	var filter datasets.Filter
	s := datasets.New(datasets.Options{Content: stored{"sales": `{}`, "own": sales}, Source: host{&filter}})
	ctx := actor.With(t.Context(), actor.Actor{Tenant: "acme", User: "ann"})
	rows, err := s.Rows(ctx, "sales", datasets.Query{Filter: json.RawMessage(`{"a": {"gt": 5}}`), Sort: "-a", Limit: 3})
	is.NoErr(err)
	is.Equal(string(rows), `[{"a":1},{"a":3,"asked":"a true"}]`)
	is.Equal(filter, datasets.Filter{{Field: "a", Op: datasets.Greater, Value: 5.0}})
	n, err := s.Count(ctx, "sales", nil)
	is.NoErr(err)
	is.Equal(n, 7)
	_, err = s.Rows(ctx, "sales", datasets.Query{Filter: json.RawMessage(`{"b": 1}`)})
	is.Equal(errs.CodeOf(err), errs.Invalid)
	n, err = s.Count(ctx, "own", nil)
	is.NoErr(err)
	is.Equal(n, 5)
}

func TestFunction(t *testing.T) {
	s, ctx := service(t)
	read := s.Function(map[string]string{"orders": "sales", "gone": "none"})
	for args, want := range map[string]string{
		`["orders","count"]`:               `5`,
		`["orders","count",{"paid":true}]`: `2`,
		`["orders","rows",{"filter":{"amount":{"lt":0}}}]`: `[{"region": "Ärzte", "amount": -3, "day": ` +
			`"2025-01-01"}]`,
		`["orders","rows",{"filter":null,"sort":"amount","limit":1}]`: `[{"region": "Ärzte", "amount": -3, "day": ` +
			`"2025-01-01"}]`,
		`["orders","rows",{"limit":0}]`:   "invalid: limit must be a number from 1 to 10000",
		`["orders","rows",{"limit":"5"}]`: "invalid: limit must be a number from 1 to 10000",
		`["orders","rows",{"sort":5}]`:    "invalid: sort must be a string",
		`["orders","rows",{"where":{}}]`: "invalid: rows knows filter, sort and " +
			"limit, not where",
		`["orders","rows",5]`: "invalid: rows takes an object with " +
			"filter, sort and limit",
		`["orders","drop"]`: "invalid: Of a dataset, fields, rows and " +
			"count can be read.",
		`["other","rows"]`: "not_found: No dataset is bound to the " +
			"alias other.",
		`["gone","fields"]`: "not_found: Dataset not found.",
		`[5]`:               "invalid: A dataset is read by its alias.",
	} {
		got, err := read(ctx, json.RawMessage(args))
		if err != nil {
			got = json.RawMessage(string(errs.CodeOf(err)) + ": " + errs.MessageOf(err))
		}
		if string(got) != want {
			t.Errorf("%s: %s, want %s", args, got, want)
		}
	}
}

// TestViews: a view has the rows that fit its filter, or a sample of them, and nothing reaches the
// others.
func TestViews(t *testing.T) {
	s, ctx := service(t)
	for _, c := range []struct {
		view  datasets.View
		query datasets.Query
		want  string // amounts
	}{
		{datasets.View{Filter: json.RawMessage(`{"amount": {"gt": 9}}`)}, datasets.Query{}, "10 9.5 100"},
		{
			datasets.View{Filter: json.RawMessage(`{"amount": {"gt": 9}}`)},
			datasets.Query{Filter: json.RawMessage(`{"amount": {"lt": 50}}`), Sort: "amount"}, "9.5 10",
		},
		{
			datasets.View{Filter: json.RawMessage(`{"region": "north"}`)},
			datasets.Query{Filter: json.RawMessage(`{"region": "south"}`)}, "",
		},
		{datasets.View{Sample: 2}, datasets.Query{}, "10 -3"},
		{datasets.View{Sample: 2}, datasets.Query{Filter: json.RawMessage(`{"amount": {"gt": 9}}`)}, "10"},
		{datasets.View{Sample: 9}, datasets.Query{Limit: 2, Sort: "-amount"}, "100 10"},
		{datasets.View{Sample: 2, Filter: json.RawMessage(`{"amount": {"gt": 0}}`)}, datasets.Query{}, "10 9.5"},
		{datasets.View{}, datasets.Query{Bytes: 200}, "10 9.5"},
		{datasets.View{}, datasets.Query{Bytes: 1}, ""},
	} {
		is := is.New(t)
		c.view.ID = "sales"
		r, err := s.Open(ctx, c.view)
		is.NoErr(err)
		is.Equal(r.Name, "SALES")
		rows, err := r.Rows(ctx, c.query)
		is.NoErr(err)
		var all []string
		for _, row := range rows {
			var v struct{ Amount json.RawMessage }
			is.NoErr(json.Unmarshal(row, &v))
			all = append(all, string(v.Amount))
		}
		is.Equal(strings.Join(all, " "), c.want)
		n, err := r.Count(ctx, c.query.Filter)
		is.NoErr(err)
		if c.query.Bytes == 0 && c.query.Limit == 0 {
			is.Equal(n, len(rows))
		}
	}
	is := is.New(t)
	r, err := s.Open(ctx, datasets.View{ID: "sales", Filter: json.RawMessage(`{"price": 1}`)})
	is.Equal(errs.CodeOf(err), errs.Invalid)
	is.Equal(r.Name, "SALES")
	is.Equal(errs.CodeOf(s.CheckFilter(ctx, "sales", json.RawMessage(`{"amount": "x"}`))), errs.Invalid)
	is.NoErr(s.CheckFilter(ctx, "sales", json.RawMessage(`{"amount": 1}`)))
	is.Equal(errs.CodeOf(s.CheckFilter(ctx, "none", nil)), errs.NotFound)
}

// numbers is a Source's table of n rows {"n": 0}…, of which the last two do not have a number.
type numbers struct{ n int }

func (t numbers) Table(context.Context, string, entity.Ref) (datasets.Table, error) { return t, nil }
func (t numbers) Fields(context.Context) ([]datasets.Field, error) {
	return []datasets.Field{{Name: "n", Type: datasets.Numeric}}, nil
}
func (t numbers) Count(context.Context, datasets.Filter) (int, error) { return t.n, nil }
func (t numbers) Rows(
	_ context.Context, _ datasets.Filter, _ string, _ bool, limit int,
) (rows []json.RawMessage, err error) {
	for i := range min(limit, t.n) {
		rows = append(rows, json.RawMessage(fmt.Sprintf(`{"n": %d, "m": [1]}`, i)))
	}
	if t.n < 5 {
		rows = append(rows, json.RawMessage(`{"n": null}`), json.RawMessage(`{}`))
	}
	return rows, nil
}

// sampler picks the last rows.
type sampler struct{ numbers }

func (t sampler) Table(context.Context, string, entity.Ref) (datasets.Table, error) { return t, nil }
func (t sampler) Sample(_ context.Context, _ datasets.Filter, n int) (rows []json.RawMessage, err error) {
	for i := range n {
		rows = append(rows, json.RawMessage(fmt.Sprintf(`{"n": %d}`, t.n-n+i)))
	}
	return rows, nil
}

// TestSamplesOfASource: they are of its first rows, unless it samples itself, and what is left out
// is null.
func TestSamplesOfASource(t *testing.T) {
	_, ctx := service(t)
	for _, c := range []struct {
		source datasets.Source
		filter string
		count  int
		rows   string
	}{
		{
			numbers{100_000}, ``, 4,
			`[{"n": 0, "m": [1]},{"n": 2500, "m": [1]},{"n": 5000, "m": [1]},{"n": 7500, "m": [1]}]`,
		},
		{numbers{100_000}, `{"n": {"gt": 5000}}`, 1, `[{"n": 7500, "m": [1]}]`},
		{sampler{numbers{100_000}}, ``, 4, `[{"n": 99996},{"n": 99997},{"n": 99998},{"n": 99999}]`},
		{numbers{1}, `{"n": null}`, 2, `[{"n": null},{}]`},
	} {
		is := is.New(t)
		s := datasets.New(datasets.Options{Content: stored{"sales": sales}, Source: c.source})
		r, err := s.Open(ctx, datasets.View{ID: "sales", Sample: 4})
		is.NoErr(err)
		n, err := r.Count(ctx, json.RawMessage(c.filter))
		is.NoErr(err)
		is.Equal(n, c.count)
		rows, err := r.Rows(ctx, datasets.Query{Filter: json.RawMessage(c.filter)})
		is.NoErr(err)
		is.Equal(string(datasets.Array(rows)), c.rows)
	}
}
