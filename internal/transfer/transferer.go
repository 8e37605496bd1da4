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

// chunk is the number of entities that a Transferer reads or writes with one statement.
const chunk = 500

// Some returns those of at most 500 entities that exist, in any order. With a context of
// paging.WithBatch it may return only the first ones.
type Some[T any] func(ctx context.Context, tenant string, ids []string) ([]T, error)

// Transferer implements entity.Transferer with functions of a kind, whose entities are of type T.
// It needs no actor: its callers check permissions.
type Transferer[T any] struct {
	Kind entity.Kind
	ID   func(T) string

	// the ids of all entities that can be exported, ordered
	All  func(ctx context.Context, tenant string) ([]string, error)
	Some Some[T] // returns only entities that can be exported
	// the columns of an entity, a struct with json tags of letters
	Row func(T) any
	// Refs returns the entities that each of some entities needs, in a fixed order. nil: none.
	Refs func(ctx context.Context, tenant string, some []T) (map[string][]entity.Key, error)

	// Read checks a row of an archive. It returns errs.Invalid naming the row and the column.
	Read func(tenant string, r entity.Row) (T, error)
	// There returns the entities of the tenant with the ids of the given ones, which come from an
	// archive. nil: Some is called.
	There func(ctx context.Context, tenant string, items []T, l entity.ImportOptions) ([]T, error)
	// Spare returns why an existing entity is not overwritten, such as "is a superuser here", or
	// "". nil: all are overwritten.
	Spare func(T) string
	// Guard returns why a deploy from another tenant does not change an existing entity, whatever
	// the rule, or "". nil: it may change all.
	Guard func(T, entity.ImportOptions) string
	// Owner returns a pointer to the owner of an entity, a principal of Directory. nil: the kind
	// has no owners.
	Owner     func(*T) *string
	Directory Directory
	// Natural returns the natural id of an entity, "<owner>:<slug>", or only its slug if slugs are
	// unique in the tenant, or "". Taken returns the ids of the entities with some natural ids, by
	// natural id. Rename sets the slug of an entity with a natural id. nil: the kind has no natural
	// ids.
	Natural func(T) string
	Rename  func(entity *T, slug string)
	Taken   func(ctx context.Context, tenant string, naturals []string) (map[string]string, error)
	// Free returns pointers to JSON of an entity whose members the kind does not define and which
	// may have secrets, by the names of their columns in Row. nil: the kind has no such JSON.
	Free func(*T) map[string]*json.RawMessage
	// Put writes b.Write, which may overwrite entities.
	Put func(ctx context.Context, b *Batch[T]) error

	// Drop removes at most 500 entities and returns the number of those that existed.
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

// maxBatch is the number of bytes at which a batch of entities ends.
const maxBatch = 1 << 20

// first returns those of the first n ids that exist; n is at least 1.
func (p Transferer[T]) first(ctx context.Context, tenant string, ids []string) (some []T, n int, err error) {
	bounded, meter := paging.WithBatch(ctx, maxBatch)
	if some, err = p.Some(bounded, tenant, ids); err != nil || !meter.Full() {
		return some, len(ids), err
	}
	read := Set(IDs(some, p.ID))
	for n < len(ids) && read[ids[n]] {
		n++
	}
	if n == 0 { // the first one does not exist, or was not returned yet
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

// row returns the row of an entity: the columns of Row in their order, with the masked free JSON in
// place of its columns.
//
// encoding/json checks and copies all raw JSON byte by byte. With 10 KiB of free JSON in each
// entity an export would take about eight times as long (BenchmarkExport), so encoding/json encodes
// null in its place.
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

// Find returns the Refs of the given entities that exist, by id.
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

// Refs returns the Refs of some entities.
func Refs[T any](some []T, ref func(T) entity.Ref) []entity.Ref {
	refs := make([]entity.Ref, len(some))
	for i, item := range some {
		refs[i] = ref(item)
	}
	return refs
}
