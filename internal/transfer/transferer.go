package transfer

import (
	"bytes"
	"context"
	"encoding/json"
	"iter"
	"slices"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/text/rawjson"
	"github.com/tenantcontent/tenantcontent/paging"
)

// chunk is how many entities a Transferer reads or writes with one statement.
const chunk = 500

// Some returns those of at most 500 entities that exist, in any order; of a paging.WithBatch
// perhaps the first alone.
type Some[T any] func(ctx context.Context, tenant string, ids []string) ([]T, error)

// Transferer implements entity.Transferer with functions for a kind, whose entities are Ts. It
// needs no actor: its callers check permissions.
type Transferer[T any] struct {
	Kind entity.Kind
	ID   func(T) string

	// the ids of all entities that can be exported, ordered
	All  func(ctx context.Context, tenant string) ([]string, error)
	Some Some[T] // returns only entities that can be exported
	// the columns of an entity, a struct with json tags of letters
	Row func(T) any
	// Refs returns what each of some entities needs, in a fixed order. nil: they need nothing.
	Refs func(ctx context.Context, tenant string, some []T) (map[string][]entity.Key, error)

	// Read checks a row of another tenant. Errors: errs.Invalid naming the row and the column.
	Read func(tenant string, r entity.Row) (T, error)
	// There returns the entities of the tenant with the ids of the given ones, which come from an
	// archive. nil: Some does.
	There func(ctx context.Context, tenant string, items []T, l entity.ImportOptions) ([]T, error)
	// Spare returns why an entity that exists is not overwritten, such as "is a superuser here", ""
	// if it is. nil: all are.
	Spare func(T) string
	// Guard returns why a deploy from another tenant leaves an entity that exists as it is,
	// whatever the rule, "" if it does not. nil: none.
	Guard func(T, entity.ImportOptions) string
	// Owner returns the field of an entity for its owner, a principal of Directory. nil: the kind
	// has no owners.
	Owner     func(*T) *string
	Directory Directory
	// Natural returns the natural id of an entity, "<owner>:<slug>", or its slug where the tenant
	// has each slug once, "" for none. Taken returns the ids of the entities that have some natural
	// ids, by natural id. nil: there are none. Rename sets the slug of one that has a natural id.
	Natural func(T) string
	Rename  func(entity *T, slug string)
	Taken   func(ctx context.Context, tenant string, naturals []string) (map[string]string, error)
	// Free returns the fields of an entity for JSON whose members the kind does not know, and which
	// may have secrets, by the names of their columns in Row, which has them as they are. nil:
	// there are none.
	Free func(*T) map[string]*json.RawMessage
	// Put writes b.Write, some of which overwrite.
	Put func(ctx context.Context, b *Batch[T]) error

	// Drop removes at most 500 entities and returns how many existed.
	Drop func(ctx context.Context, tenant string, ids []string) (int, error)
	// InTx runs fn in one transaction, which all calls with its context join.
	InTx func(ctx context.Context, fn func(ctx context.Context) error) error
}

// IDs implements entity.Transferer.
func (p Transferer[T]) IDs(ctx context.Context, tenant string) ([]string, error) {
	return p.All(ctx, tenant)
}

// Needs implements entity.Transferer.
func (p Transferer[T]) Needs(ctx context.Context, tenant string, ids []string) (map[string][]entity.Key, error) {
	needs := make(map[string][]entity.Key, len(ids))
	for batch := range Chunks(ids) {
		for len(batch) > 0 {
			some, n, err := p.first(ctx, tenant, batch)
			if err != nil {
				return nil, err
			}
			var refs map[string][]entity.Key
			if p.Refs != nil {
				if refs, err = p.Refs(ctx, tenant, some); err != nil {
					return nil, err
				}
			}
			for _, item := range some {
				needs[p.ID(item)] = refs[p.ID(item)]
			}
			batch = batch[n:]
		}
	}
	return needs, nil
}

// maxBatch is how many bytes of entities are read at once, but for the one that passes it.
const maxBatch = 1 << 20

// first returns those of the first n ids, at least one, that exist.
func (p Transferer[T]) first(ctx context.Context, tenant string, ids []string) (some []T, n int, err error) {
	bounded, meter := paging.WithBatch(ctx, maxBatch)
	if some, err = p.Some(bounded, tenant, ids); err != nil || !meter.Full() {
		return some, len(ids), err
	}
	read := Set(IDs(some, p.ID))
	for n < len(ids) && read[ids[n]] {
		n++
	}
	if n == 0 { // it does not exist, or comes later
		some, err = p.Some(ctx, tenant, ids[:1])
		return some, 1, err
	}
	known := Set(ids[:n])
	return slices.DeleteFunc(some, func(item T) bool { return !known[p.ID(item)] }), n, nil
}

// Export implements entity.Transferer.
func (p Transferer[T]) Export(ctx context.Context, tenant string, ids []string) iter.Seq2[entity.Row, error] {
	return func(yield func(entity.Row, error) bool) {
		for batch := range Chunks(ids) {
			for len(batch) > 0 {
				rows, n, err := p.rows(ctx, tenant, batch)
				if err != nil {
					yield(entity.Row{}, err)
					return
				}
				for _, id := range batch[:n] {
					row, ok := rows[id]
					if !ok {
						yield(entity.Row{}, errs.New(errs.NotFound, "%s %s not found.", p.Kind, id))
						return
					}
					delete(rows, id)
					if !yield(row, nil) {
						return
					}
				}
				batch = batch[n:]
			}
		}
	}
}

// rows returns the rows of those of the first n ids that exist.
func (p Transferer[T]) rows(
	ctx context.Context, tenant string, ids []string,
) (rows map[string]entity.Row, n int, err error) {
	some, n, err := p.first(ctx, tenant, ids)
	if err != nil {
		return nil, 0, err
	}
	rows = make(map[string]entity.Row, len(some))
	for _, item := range some {
		id := p.ID(item)
		if rows[id], err = p.row(item); err != nil {
			return nil, 0, err
		}
	}
	return rows, n, nil
}

// row returns the row of an entity: the columns of Row in their order, with the free JSON, masked,
// in the places of its columns.
//
// encoding/json checks and copies all raw JSON byte by byte. With 10 KiB of free JSON in each
// entity it would make an export about eight times slower (BenchmarkExport), so that it encodes
// null for the free JSON.
func (p Transferer[T]) row(item T) (entity.Row, error) {
	free, size := map[string]json.RawMessage{}, 0
	for column, data := range p.free(&item) {
		free[column] = entity.MaskSecrets(*data)
		size += len(free[column])
		*data = nil
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(p.Row(item)); err != nil {
		return entity.Row{}, err
	}
	columns := bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	row, before := make([]byte, 0, len(columns)+size), `{"`
	rawjson.Each(columns, func(column string, value json.RawMessage) {
		if data := free[column]; len(data) > 0 {
			value = data
		}
		row = append(append(append(append(row, before...), column...), `":`...), value...)
		before = `,"`
	})
	return entity.Row{Key: entity.Key{Kind: p.Kind, ID: p.ID(item)}, JSON: append(row, '}')}, nil
}

func (p Transferer[T]) free(item *T) map[string]*json.RawMessage {
	if p.Free == nil {
		return nil
	}
	return p.Free(item)
}

// Import implements entity.Transferer.
func (p Transferer[T]) Import(
	ctx context.Context, tenant string, rows []entity.Row, l entity.ImportOptions,
) (actions []entity.ImportAction, warnings []string, err error) {
	if err := p.check(rows, l.Rule); err != nil {
		return nil, nil, err
	}
	own := &entity.Warnings{}
	if l.Warnings == nil {
		l.Warnings = own
	}
	err = p.InTx(ctx, func(ctx context.Context) error {
		for some := range Chunks(rows) {
			b, err := p.land(ctx, tenant, some, l)
			if err != nil {
				return err
			}
			actions, warnings = append(actions, b.actions...), append(warnings, b.warnings...)
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	return actions, append(warnings, own.Warnings()...), nil
}

// Remove implements entity.Transferer.
func (p Transferer[T]) Remove(ctx context.Context, tenant string, ids []string) (int, error) {
	removed := 0
	err := p.InTx(ctx, func(ctx context.Context) error {
		for batch := range Chunks(ids) {
			n, err := p.Drop(ctx, tenant, batch)
			if err != nil {
				return err
			}
			removed += n
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return removed, nil
}

// Find returns what the registry knows of the given entities that exist, by id.
func Find[T any](
	ctx context.Context, tenant string, ids []string, some Some[T], ref func(T) entity.Ref,
) (map[string]entity.Ref, error) {
	found := map[string]entity.Ref{}
	for batch := range Chunks(ids) {
		all, err := some(ctx, tenant, batch)
		if err != nil {
			return nil, err
		}
		for _, item := range all {
			found[ref(item).ID] = ref(item)
		}
	}
	return found, nil
}

// Refs returns what the registry knows of some entities.
func Refs[T any](some []T, ref func(T) entity.Ref) []entity.Ref {
	refs := make([]entity.Ref, len(some))
	for i, item := range some {
		refs[i] = ref(item)
	}
	return refs
}
