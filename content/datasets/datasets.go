// Package datasets reads the rows of datasets: those in the data of the ready kind, and those that
// a host's Source answers.
//
//	rows, err := app.Datasets.Rows(ctx, id, datasets.Query{
//		Filter: json.RawMessage(`{"city": "Bonn"}`), Sort: "-total", Limit: 10,
//	})
//	n, err := app.Datasets.Count(ctx, id, nil)
//
// content checks datasets with it before it stores them; httpapi, the root and hosts import it.
package datasets

import (
	"context"
	"encoding/json"
	"runtime"
	"slices"
	"time"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/limits/cache"
	"github.com/tenantcontent/tenantcontent/internal/limits/limiter"
)

// Type is the type of a field's values. null is a value of each.
type Type string

// The types.
const (
	String  Type = "string"
	Numeric Type = "numeric"
	Date    Type = "date" // text: 2026-11-20, or a time such as 2026-11-20T20:31:00Z
	Boolean Type = "boolean"
	Object  Type = "object" // any JSON; it is neither compared nor sorted
)

func types() []Type { return []Type{String, Numeric, Date, Boolean, Object} }

// Field is a field of a dataset.
type Field struct {
	Name  string `json:"name"` // 1 to 255 characters without control characters; unique in its dataset
	Type  Type   `json:"type"`
	Label string `json:"label"` // for people; the name if there is none
}

// The bounds of datasets.
const (
	MaxRows   = 10_000
	MaxFields = 1_000
)

// Query selects rows.
type Query struct {
	Filter json.RawMessage // see Filter; nil for all rows
	Sort   string          // a field, or - and a field; "" for the order of the dataset
	Limit  int             // at most MaxRows, which 0 stands for
	Bytes  int             // of the rows at most: those behind the first that does not fit are left out; 0 for no bound
}

// View is what may be read of a dataset.
type View struct {
	ID     string          // of the dataset, or its natural id
	Filter json.RawMessage // only rows that fit it are there; nil for all
	Sample int             // only so many of these are there, evenly spread over them; 0 for all
}

// Table is the rows of a dataset of a Source. What it returns is checked: another answer than these
// methods have, such as text in a numeric field or more rows than limit, and a panic, is
// errs.Upstream for the reader. Errors with a code of package errs are the reader's.
type Table interface {
	// Fields returns up to MaxFields fields. Their names are distinct.
	Fields(ctx context.Context) ([]Field, error)
	// Rows returns the rows that fit a filter, up to limit, each a JSON object with distinct
	// members whose values are of the types of the fields, ordered by a field of the table unless
	// it is "": ascending unless desc, null last. Conditions are of fields of the table and have
	// values of their types.
	Rows(ctx context.Context, filter Filter, field string, desc bool, limit int) ([]json.RawMessage, error)
	// Count returns how many rows fit a filter.
	Count(ctx context.Context, filter Filter) (int, error)
}

// Sampler is a Table that picks samples itself. Of other ones they are picked from the first
// MaxRows rows.
type Sampler interface {
	// Sample returns n of the rows that fit a filter, all if there are fewer, evenly spread over
	// their order. The same rows have the same sample.
	Sample(ctx context.Context, filter Filter, n int) ([]json.RawMessage, error)
}

// Source is where a host has the rows of datasets. Implementations must pass datasetstest.Test.
// Methods, also of its tables, may be called concurrently, and end with their context.
type Source interface {
	// Table returns the rows of a dataset of a tenant, which the caller may see; nil if they are
	// not of this Source, but in the data of the dataset.
	Table(ctx context.Context, tenant string, dataset entity.Ref) (Table, error)
}

// Stored is a dataset as it is kept.
type Stored struct {
	Ref     entity.Ref
	Data    json.RawMessage // a JSON object
	Version string          // changes with Data
}

// Content looks up datasets. *content.Service implements it.
type Content interface {
	// Dataset returns a dataset that the caller may see, found by id or natural id. It returns
	// errs.NotFound if there is none.
	Dataset(ctx context.Context, id string) (Stored, error)
}

// Options configure a Service. Content is required.
type Options struct {
	Content Content
	Source  Source // nil for none
}

// Service reads datasets with the rights of the caller.
type Service struct {
	o         Options
	tables    *cache.Sized[*table] // by id and version
	computing *limiter.Limiter     // of rows that are selected, by tenant
}

// The memory of tables that have been read.
const (
	maxTables  = 64 << 20
	tableBytes = 8 // for each byte of data
)

// New returns a Service.
func New(o Options) *Service {
	processors := int64(max(2, runtime.GOMAXPROCS(0)))
	return &Service{
		o: o, tables: cache.NewSized[*table](maxTables),
		computing: limiter.New(limiter.Options{Capacity: processors, PerKey: processors / 2, Timeout: computingWait}),
	}
}

// computingWait is how long a selection of rows waits for its turn.
const computingWait = 10 * time.Second

// turn waits until rows may be selected from a table. Those of a Source do not compute here.
func (s *Service) turn(ctx context.Context, t Table) (end func(), err error) {
	if _, own := t.(*table); !own {
		return func() {}, nil
	}
	a, err := actor.From(ctx)
	if err != nil {
		return nil, err
	}
	end, err = s.computing.Acquire(ctx, 1, a.Tenant)
	return end, limiter.Unavailable(err, "Too much is read from datasets at the moment. Try again later.")
}

// table returns a dataset and its rows. Errors: errs.NotFound; errs.Conflict if its data are not as
// Check demands.
func (s *Service) table(ctx context.Context, tenant, id string) (entity.Ref, Table, error) {
	d, err := s.o.Content.Dataset(ctx, id)
	if err != nil {
		return entity.Ref{}, nil, err
	}
	if s.o.Source != nil {
		if t, err := openSource(ctx, s.o.Source, tenant, d.Ref); err != nil {
			return d.Ref, nil, err
		} else if t != nil {
			return d.Ref, t, nil
		}
	}
	key := d.Ref.ID + "/" + d.Version
	if t, ok := s.tables.Get(tenant, key); ok {
		return d.Ref, t, nil
	}
	t, err := read(d.Data)
	if err != nil {
		return d.Ref, nil, errs.New(
			errs.Conflict, "The rows of the dataset %s cannot be read: %s", d.Ref.Name, errs.MessageOf(err),
		)
	}
	s.tables.Put(tenant, key, t, tableBytes*len(d.Data))
	return d.Ref, t, nil
}

// Opened is a view whose rows are read.
type Opened struct {
	Name   string // of the dataset
	Fields []Field

	service *Service
	table   Table
	filter  Filter // of the view
}

// Open opens a view, for one request of the caller. Errors: errs.NotFound; errs.Conflict if the
// data of the dataset are not as Check demands, and errs.Invalid for a filter that does not fit,
// both beside an Opened with the name alone.
func (s *Service) Open(ctx context.Context, v View) (*Opened, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return nil, err
	}
	ref, t, err := s.table(ctx, a.Tenant, v.ID)
	r := &Opened{Name: ref.Name, service: s, table: t}
	if err != nil {
		return r, err
	}
	if r.Fields, err = t.Fields(ctx); err != nil {
		return r, err
	}
	if r.filter, err = readFilter(r.Fields, v.Filter); err != nil || v.Sample == 0 {
		return r, err
	}
	r.table, err = r.sample(ctx, v.Sample)
	r.filter = nil
	return r, err
}

// Fields returns the fields of a dataset as JSON, an array of {name, type, label}. Errors: as Open.
func (s *Service) Fields(ctx context.Context, id string) (json.RawMessage, error) {
	r, err := s.Open(ctx, View{ID: id})
	if err != nil {
		return nil, err
	}
	if r.Fields == nil {
		r.Fields = []Field{}
	}
	return json.Marshal(r.Fields)
}

// CheckFilter returns errs.Invalid naming what does not fit the dataset in a filter. Errors: as
// Open.
func (s *Service) CheckFilter(ctx context.Context, id string, filter json.RawMessage) error {
	_, err := s.Open(ctx, View{ID: id, Filter: filter})
	return err
}

// Rows returns rows of a dataset as JSON, an array of objects. Errors: as Open and Opened.Rows.
func (s *Service) Rows(ctx context.Context, id string, q Query) (json.RawMessage, error) {
	r, err := s.Open(ctx, View{ID: id})
	if err != nil {
		return nil, err
	}
	rows, err := r.Rows(ctx, q)
	if err != nil {
		return nil, err
	}
	return Array(rows), nil
}

// Array returns rows as a JSON array.
func Array(rows []json.RawMessage) json.RawMessage {
	size := 2
	for _, row := range rows {
		size += len(row) + 1
	}
	b := append(make([]byte, 0, size), '[')
	for i, row := range rows {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, row...)
	}
	return append(b, ']')
}

// Count returns how many rows of a dataset fit a filter. Errors: as Open and Opened.Rows.
func (s *Service) Count(ctx context.Context, id string, filter json.RawMessage) (int, error) {
	r, err := s.Open(ctx, View{ID: id})
	if err != nil {
		return 0, err
	}
	return r.Count(ctx, filter)
}

// Rows returns rows, each a JSON object that nobody changes. Errors: errs.Invalid naming what is
// wrong with the query.
func (r *Opened) Rows(ctx context.Context, q Query) ([]json.RawMessage, error) {
	if q.Limit < 0 || q.Limit > MaxRows {
		return nil, errs.New(errs.Invalid, "limit must be a number from 1 to %d", MaxRows)
	}
	if q.Limit == 0 {
		q.Limit = MaxRows
	}
	filter, err := r.within(q.Filter)
	if err != nil {
		return nil, err
	}
	field, desc, err := order(r.Fields, q.Sort)
	if err != nil {
		return nil, err
	}
	end, err := r.service.turn(ctx, r.table)
	if err != nil {
		return nil, err
	}
	defer end()
	rows, err := r.table.Rows(ctx, filter, field, desc, q.Limit)
	if q.Bytes > 0 {
		size := 0
		at := slices.IndexFunc(rows, func(row json.RawMessage) bool { size += len(row) + 1; return size > q.Bytes })
		if at >= 0 {
			rows = rows[:at:at]
		}
	}
	return rows, err
}

// Count returns how many rows fit a filter. Errors: errs.Invalid naming what is wrong with it.
func (r *Opened) Count(ctx context.Context, raw json.RawMessage) (int, error) {
	filter, err := r.within(raw)
	if err != nil {
		return 0, err
	}
	end, err := r.service.turn(ctx, r.table)
	if err != nil {
		return 0, err
	}
	defer end()
	return r.table.Count(ctx, filter)
}

// within returns the conditions of the view and those of a filter.
func (r *Opened) within(raw json.RawMessage) (Filter, error) {
	filter, err := readFilter(r.Fields, raw)
	if err != nil {
		return nil, err
	}
	return append(r.filter[:len(r.filter):len(r.filter)], filter...), nil
}

// sample returns a table with n of the rows.
func (r *Opened) sample(ctx context.Context, n int) (Table, error) {
	end, err := r.service.turn(ctx, r.table)
	if err != nil {
		return nil, err
	}
	defer end()
	return r.table.(sampled).sample(ctx, r.filter, n)
}

// sampled is what all tables here are: those in the data of datasets, and those of a Source.
type sampled interface {
	sample(ctx context.Context, filter Filter, n int) (*table, error)
}

// spread returns n of some things, evenly spread, all if there are fewer.
func spread[T any](all []T, n int) []T {
	if len(all) <= n {
		return all
	}
	some := make([]T, n)
	for i := range some {
		some[i] = all[i*len(all)/n]
	}
	return some
}

// order reads Query.Sort.
func order(fields []Field, sort string) (field string, desc bool, err error) {
	if sort == "" {
		return "", false, nil
	}
	named := func(name string) bool {
		return slices.ContainsFunc(fields, func(f Field) bool { return f.Name == name && f.Type != Object })
	}
	switch {
	case named(sort):
		return sort, false, nil
	case sort[0] == '-' && named(sort[1:]):
		return sort[1:], true, nil
	}
	return "", false, errs.New(
		errs.Invalid,
		"sort must be a field of the dataset that is no object, with a - before it for the other direction",
	)
}

// Function returns the function by which handlers read the datasets that aliases of an app stand
// for: its arguments are an alias, fields, rows or count, and what that needs, as JSON. The context
// it is called with has the actor whose rights the handler has.
func (s *Service) Function(bound map[string]string) func(
	ctx context.Context, args json.RawMessage,
) (json.RawMessage, error) {
	return func(ctx context.Context, args json.RawMessage) (json.RawMessage, error) {
		var all []json.RawMessage
		if err := json.Unmarshal(args, &all); err != nil {
			return nil, err
		}
		given := max(len(all)-2, 0) // that the method of the alias got
		all = append(all, make([]json.RawMessage, 3)...)
		var alias, what string
		if json.Unmarshal(all[0], &alias) != nil || json.Unmarshal(all[1], &what) != nil {
			return nil, errs.New(errs.Invalid, "A dataset is read by its alias.")
		}
		if most := map[string]int{"rows": 1, "count": 1}[what]; given > most {
			return nil, errs.New(errs.Invalid, "%s takes %d arguments at most, not %d", what, most, given)
		}
		id, ok := bound[alias]
		if !ok {
			return nil, errs.New(errs.NotFound, "No dataset is bound to the alias %s.", alias)
		}
		argument := all[2]
		if string(argument) == "null" {
			argument = nil
		}
		switch what {
		case "fields":
			return s.Fields(ctx, id)
		case "rows":
			q, err := readQuery(argument)
			if err != nil {
				return nil, err
			}
			return s.Rows(ctx, id, q)
		case "count":
			n, err := s.Count(ctx, id, argument)
			if err != nil {
				return nil, err
			}
			return json.Marshal(n)
		}
		return nil, errs.New(errs.Invalid, "Of a dataset, fields, rows and count can be read.")
	}
}

// readQuery reads the argument of rows: {filter, sort, limit}.
func readQuery(raw json.RawMessage) (q Query, err error) {
	if raw == nil {
		return q, nil
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return q, errs.New(errs.Invalid, "rows takes an object with filter, sort and limit")
	}
	for name, v := range members {
		switch name {
		case "filter":
			if string(v) != "null" {
				q.Filter = v
			}
		case "sort":
			if json.Unmarshal(v, &q.Sort) != nil {
				return q, errs.New(errs.Invalid, "sort must be a string")
			}
		case "limit":
			if string(v) != "null" && (json.Unmarshal(v, &q.Limit) != nil || q.Limit < 1) {
				return q, errs.New(errs.Invalid, "limit must be a number from 1 to %d", MaxRows)
			}
		default:
			return q, errs.New(errs.Invalid, "rows knows filter, sort and limit, not %s", name)
		}
	}
	return q, nil
}
