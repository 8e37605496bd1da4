// Package datasetstest checks that a host's Source meets the contract of datasets.Source: it must
// answer as the rows in the data of a dataset do. Tests of hosts import it.
package datasetstest

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/content/datasets"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
)

// Fixture is a Source with a dataset.
type Fixture struct {
	Source datasets.Source
	// Actor may see the dataset. Its Tenant is that of the dataset.
	Actor actor.Actor
	// Dataset is what the Source has rows of: 3 to 1,000, which nobody changes during the test. The
	// more types of fields there are, nulls, and texts that differ by case, the more is checked.
	Dataset entity.Ref
	// Elsewhere is a tenant that does not have the dataset.
	Elsewhere string
}

// checks are what a Source is checked for, by name. Each calls fail with a sentence for what is
// wrong.
var checks = []struct {
	name string
	run  func(f *fixture)
}{
	{"Table", testTable}, {"Fields", testFields}, {"Rows", testRows}, {"Limit", testLimit}, {"Sort", testSort},
	{"Filter", testFilter}, {"Sample", testSample}, {"Canceled", testCanceled}, {"Parallel", testParallel},
}

// Test runs all checks. open returns a new fixture.
func Test(t *testing.T, open func(t *testing.T) Fixture) {
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) {
			if f := newFixture(t.Context(), open(t), t.Errorf); f != nil {
				c.run(f)
			}
		})
	}
}

// fixture is a Fixture with what its Source answers.
type fixture struct {
	Fixture
	ctx     context.Context // of Actor
	fail    func(format string, args ...any)
	service *datasets.Service
	fields  []datasets.Field
	rows    []json.RawMessage // all
}

// newFixture reads the dataset; nil if that fails.
func newFixture(ctx context.Context, in Fixture, fail func(format string, args ...any)) *fixture {
	f := &fixture{Fixture: in, fail: fail, ctx: actor.With(ctx, in.Actor)}
	f.service = datasets.New(datasets.Options{Content: content{in.Dataset, stored}, Source: in.Source})
	opened, err := f.service.Open(f.ctx, datasets.View{ID: in.Dataset.ID})
	if err == nil {
		f.fields = opened.Fields
		f.rows, err = opened.Rows(f.ctx, datasets.Query{})
	}
	if err == nil && len(f.rows) > 0 && slices.ContainsFunc(f.fields, func(f datasets.Field) bool {
		return f.Name == storedField
	}) {
		err = fmt.Errorf("the Source has no table for the dataset of the fixture")
	}
	if err == nil && (len(f.rows) < 3 || len(f.rows) > 1000) {
		err = fmt.Errorf("the dataset of the fixture has %d rows, where the checks need 3 to 1,000", len(f.rows))
	}
	if err != nil {
		fail("The rows of the dataset cannot be read: %s", tell(err))
		return nil
	}
	return f
}

// storedField is the field of the dataset when the Source leaves it to the data.
const storedField = "only in the data, not in the Source"

const stored = `{"fields": [{"name": "` + storedField + `", "type": "string"}], "rows": [{}]}`

// content has one dataset, for every tenant.
type content struct {
	ref  entity.Ref
	data string
}

// Dataset implements datasets.Content.
func (c content) Dataset(_ context.Context, id string) (datasets.Stored, error) {
	ref := c.ref
	ref.ID = id
	return datasets.Stored{Ref: ref, Data: json.RawMessage(c.data), Version: c.data}, nil
}

// reference returns a Service that has rows in the data of the dataset: it answers as the Source
// must.
func (f *fixture) reference(rows []json.RawMessage) *datasets.Service {
	known := make([]map[string]json.RawMessage, len(rows))
	for i, row := range rows {
		var all map[string]json.RawMessage
		_ = json.Unmarshal(row, &all) // the Service has checked it
		known[i] = map[string]json.RawMessage{}
		for _, field := range f.fields { // a Source may have more members
			if v, ok := all[field.Name]; ok {
				known[i][field.Name] = v
			}
		}
	}
	data, _ := json.Marshal(map[string]any{"fields": f.fields, "rows": known})
	return datasets.New(datasets.Options{Content: content{f.Dataset, string(data)}})
}

// read returns the rows of a query, each with its fields only, so that rows can be compared.
func (f *fixture) read(s *datasets.Service, q datasets.Query) ([]string, error) {
	raw, err := s.Rows(f.ctx, f.Dataset.ID, q)
	if err != nil {
		return nil, err
	}
	return f.texts(raw), nil
}

func (f *fixture) texts(raw json.RawMessage) []string {
	var rows []map[string]any
	_ = json.Unmarshal(raw, &rows)
	texts := make([]string, len(rows))
	for i, row := range rows {
		known := map[string]any{}
		for _, field := range f.fields {
			known[field.Name] = row[field.Name] // null if it is left out
		}
		text, _ := json.Marshal(known)
		texts[i] = string(text)
	}
	return texts
}

// tell returns an error with its cause.
func tell(err error) string {
	if message := errs.MessageOf(err); message != "" && !strings.Contains(err.Error(), message) {
		return message + " (" + err.Error() + ")"
	}
	return err.Error()
}

func testTable(f *fixture) {
	isStored := func(ctx context.Context, id, what string) {
		fields, err := f.service.Fields(ctx, id)
		if err != nil && errs.CodeOf(err) != errs.NotFound {
			f.fail("Table of %s must return nil or errs.NotFound, but it failed: %s", what, tell(err))
		}
		if err == nil && !strings.Contains(string(fields), storedField) {
			f.fail("Table returned a table for %s, where it must return nil.", what)
		}
	}
	isStored(f.ctx, "00000000-0000-7000-8000-ffffffffffff", "a dataset that the Source does not have")
	elsewhere := f.Actor
	elsewhere.Tenant = f.Elsewhere
	isStored(actor.With(f.ctx, elsewhere), f.Dataset.ID, "another tenant, which does not have the dataset,")
}

func testFields(f *fixture) {
	again, err := f.service.Open(f.ctx, datasets.View{ID: f.Dataset.ID})
	if err != nil {
		f.fail("Fields failed when it was called again: %s", tell(err))
	} else if !reflect.DeepEqual(again.Fields, f.fields) {
		f.fail("Fields returned %v, and %v when it was called again.", f.fields, again.Fields)
	}
	if len(f.fields) == 0 {
		f.fail("Fields returned no field.")
	}
}

func testRows(f *fixture) {
	again, err := f.read(f.service, datasets.Query{})
	if err != nil {
		f.fail("Rows failed when it was called again: %s", tell(err))
	} else if want := f.texts(datasets.Array(f.rows)); !slices.Equal(again, want) {
		f.fail("Rows has no fixed order: it returned %s, and %s when it was called again.", want, again)
	}
	if n, err := f.service.Count(f.ctx, f.Dataset.ID, nil); err != nil {
		f.fail("Count failed: %s", tell(err))
	} else if n != len(f.rows) {
		f.fail("Count returned %d, where Rows has %d.", n, len(f.rows))
	}
}

func testLimit(f *fixture) {
	all := f.texts(datasets.Array(f.rows))
	for _, limit := range []int{1, 2, len(all) - 1, len(all), len(all) + 1} {
		got, err := f.read(f.service, datasets.Query{Limit: limit})
		if err != nil {
			f.fail("Rows with the limit %d failed: %s", limit, tell(err))
		} else if !slices.Equal(got, all[:min(limit, len(all))]) {
			f.fail("Rows with the limit %d returned %s, which are not the first rows.", limit, got)
		}
	}
}

func testSort(f *fixture) {
	all := f.texts(datasets.Array(f.rows))
	slices.Sort(all)
	for _, field := range f.fields {
		if field.Type == datasets.Object {
			continue
		}
		for _, sort := range []string{field.Name, "-" + field.Name} {
			raw, err := f.service.Rows(f.ctx, f.Dataset.ID, datasets.Query{Sort: sort})
			if err != nil {
				f.fail("Rows sorted by %s failed: %s", sort, tell(err))
				continue
			}
			got := f.texts(raw)
			if !slices.Equal(slices.Sorted(slices.Values(got)), all) {
				f.fail("Rows sorted by %s returned other rows than without sorting.", sort)
				continue
			}
			var rows []json.RawMessage
			_ = json.Unmarshal(raw, &rows)
			want, _ := f.read(f.reference(rows), datasets.Query{Sort: sort}) // which keeps the order of equal rows
			for i := range want {
				if got[i] != want[i] {
					f.fail("Rows sorted by %s are out of order at rows[%d], %s, where %s belongs: texts are "+
						"sorted ignoring case first, null comes last in both directions.",
						sort, i, got[i], want[i])
					break
				}
			}
			if first, err := f.read(f.service, datasets.Query{Sort: sort, Limit: 2}); err != nil ||
				!slices.Equal(first, got[:2]) {
				f.fail(
					"Rows sorted by %s with the limit 2 must be the first two of the sorted rows: %s, %v.",
					sort, first, err,
				)
			}
		}
	}
}

func testFilter(f *fixture) {
	reference := f.reference(f.rows)
	for _, filter := range f.filters() {
		want, err := f.read(reference, datasets.Query{Filter: filter})
		if err != nil {
			f.fail("The filter %s cannot be checked: %s", filter, tell(err))
			continue
		}
		got, err := f.read(f.service, datasets.Query{Filter: filter})
		if err != nil {
			f.fail("Rows with the filter %s failed: %s", filter, tell(err))
		} else if !slices.Equal(got, want) {
			f.fail("Rows with the filter %s returned %s, where %s fit, in the order of the dataset.", filter, got, want)
		}
		if n, err := f.service.Count(f.ctx, f.Dataset.ID, filter); err != nil {
			f.fail("Count with the filter %s failed: %s", filter, tell(err))
		} else if n != len(want) {
			f.fail("Count with the filter %s returned %d, where %d rows fit.", filter, n, len(want))
		}
	}
}

// filters returns filters of each field with values that the dataset has, and with texts that break
// statements that are put together.
func (f *fixture) filters() []json.RawMessage {
	var all []json.RawMessage
	both := map[string]any{}
	add := func(filter map[string]any) {
		text, _ := json.Marshal(filter)
		all = append(all, text)
	}
	for _, field := range f.fields {
		if field.Type == datasets.Object {
			continue
		}
		name := field.Name
		add(map[string]any{name: nil})
		add(map[string]any{name: map[string]any{"ne": nil}})
		add(map[string]any{name: map[string]any{"in": []any{}}})
		values := f.values(name)
		for _, v := range values {
			add(map[string]any{name: v})
			for _, op := range []string{"ne", "gt", "gte", "lt", "lte"} {
				add(map[string]any{name: map[string]any{op: v}})
			}
			add(map[string]any{name: map[string]any{"in": []any{v, nil}}})
			add(map[string]any{name: map[string]any{"gte": v, "lte": v}})
			both[name] = map[string]any{"gte": v}
			if text, ok := v.(string); ok && field.Type == datasets.String {
				for _, part := range []string{text, strings.ToUpper(text), strings.ToLower(text)} {
					add(map[string]any{name: map[string]any{"contains": part}})
				}
				add(map[string]any{name: strings.ToUpper(text)}) // another text, unless it has no small letters
			}
		}
		if field.Type == datasets.String {
			for _, text := range []string{"%", "_", `\`, "'", `"`, "' OR '1'='1", "", "*", "a%"} {
				add(map[string]any{name: text})
				add(map[string]any{name: map[string]any{"contains": text}})
			}
		}
	}
	add(both)
	return all
}

// values returns up to three values that a field has: of the first, a middle and the last row that
// has one.
func (f *fixture) values(field string) (some []any) {
	var all []any
	for _, raw := range f.rows {
		var row map[string]any
		_ = json.Unmarshal(raw, &row)
		if row[field] != nil {
			all = append(all, row[field])
		}
	}
	if len(all) == 0 {
		return nil
	}
	for _, i := range []int{0, len(all) / 2, len(all) - 1} {
		if !slices.Contains(some, all[i]) {
			some = append(some, all[i])
		}
	}
	return some
}

func testSample(f *fixture) {
	all := f.texts(datasets.Array(f.rows))
	sample := func(n int) ([]string, error) {
		opened, err := f.service.Open(f.ctx, datasets.View{ID: f.Dataset.ID, Sample: n})
		if err != nil {
			return nil, err
		}
		rows, err := opened.Rows(f.ctx, datasets.Query{})
		return f.texts(datasets.Array(rows)), err
	}
	for _, n := range []int{1, 2, len(all), len(all) + 1} {
		got, err := sample(n)
		if err != nil {
			f.fail("A sample of %d rows failed: %s", n, tell(err))
			continue
		}
		if again, err := sample(n); err != nil || !slices.Equal(again, got) {
			f.fail(
				"A sample of %d rows was %s, and %s when it was made again (%v): the same rows have the same sample.",
				n, got, again, err,
			)
		}
		if len(got) != min(n, len(all)) {
			f.fail("A sample of %d of %d rows has %d.", n, len(all), len(got))
		}
		rest := all
		for _, row := range got { // they are in the order of the dataset
			at := slices.Index(rest, row)
			if at < 0 {
				f.fail(
					"A sample of %d rows has %s, which is not a row of the dataset, "+
						"is there twice, or is out of order.",
					n, row,
				)
				break
			}
			rest = rest[at+1:]
		}
	}
}

func testCanceled(f *fixture) {
	opened, err := f.service.Open(f.ctx, datasets.View{ID: f.Dataset.ID})
	if err != nil {
		f.fail("The dataset cannot be opened: %s", tell(err))
		return
	}
	ctx, cancel := context.WithCancel(f.ctx)
	cancel()
	if _, err := opened.Rows(ctx, datasets.Query{}); err == nil {
		f.fail("Rows ignored that its context has ended: it must return an error, such as ctx.Err().")
	}
	if _, err := opened.Count(ctx, nil); err == nil {
		f.fail("Count ignored that its context has ended: it must return an error, such as ctx.Err().")
	}
}

func testParallel(f *fixture) {
	want := f.texts(datasets.Array(f.rows))
	var all sync.WaitGroup
	var mu sync.Mutex
	for range 8 {
		all.Go(func() {
			got, err := f.read(f.service, datasets.Query{})
			if err != nil || !slices.Equal(got, want) {
				mu.Lock()
				defer mu.Unlock()
				f.fail("Rows, called by several goroutines, returned %s, %v.", got, err)
			}
		})
	}
	all.Wait()
}
