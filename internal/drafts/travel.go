package drafts

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/drafts/shares"
	"github.com/tenantcontent/tenantcontent/internal/transfer"
)

// Travel is what the transferer of a noun has of its own. X is an entity as it travels.
type Travel[T Entity, X any] struct {
	Parts   func(*X) Parts[T]
	Secrets Secrets

	Row  func(X) any // the columns
	Refs func(ctx context.Context, tenant string, some []X) (map[string][]entity.Key, error)
	Read func(tenant string, r entity.Row) (X, error)
	Free func(*X) map[string]*json.RawMessage // see transfer.Transferer
	// Clean removes what does not travel from an entity that is exported; nil: nothing.
	Clean func(*X) error
	// Prepare is called with a batch before its entities are completed.
	Prepare func(ctx context.Context, b *transfer.Batch[X]) error
	// Complete fills in an entity of a batch with what the tenant has of it, in old if it exists.
	Complete func(ctx context.Context, b *transfer.Batch[X], x *X, old T, exists bool) error
}

// Parts points to what every entity has as it travels.
type Parts[T Entity] struct {
	Entity  *T
	Shares  *[]shares.Share
	Secrets *[]string // names
}

// Transferer returns the transferer of a noun. Drafts, deleted entities and the values of secrets
// do not travel.
func Transferer[T Entity, X any](r *Rules[T], n Travel[T, X]) transfer.Transferer[X] {
	t := traveler[T, X]{r, n}
	return transfer.Transferer[X]{
		Kind: r.n.Kind, ID: func(x X) string { return *t.fields(&x).ID },
		All: r.o.Store.IDs, Some: t.exported, Row: n.Row, Refs: n.Refs,
		Read: n.Read, There: t.there,
		Guard: func(x X, l entity.ImportOptions) string { return r.guarded(*n.Parts(&x).Entity, l) },
		Spare: func(x X) string {
			if t.fields(&x).deleted() {
				return "is deleted here: restore or purge it first"
			}
			return ""
		},
		Owner: func(x *X) *string { return t.fields(x).OwnerID }, Directory: r.o.Directory,
		Natural: func(x X) string {
			if f := t.fields(&x); *f.Slug == nil || f.deleted() {
				return ""
			}
			return (*n.Parts(&x).Entity).NaturalID()
		},
		Rename: func(x *X, slug string) { *t.fields(x).Slug = &slug }, Taken: r.taken,
		Free: n.Free, Put: t.put, Drop: r.drop, InTx: r.o.Store.InTx,
	}
}

// traveler has the functions of a transferer.
type traveler[T Entity, X any] struct {
	r *Rules[T]
	n Travel[T, X]
}

func (t traveler[T, X]) fields(x *X) Fields { return t.r.n.Fields(t.n.Parts(x).Entity) }

// with returns an entity as it travels, without shares and secrets.
func (t traveler[T, X]) with(e T) (x X) {
	*t.n.Parts(&x).Entity = e
	return x
}

// exported returns the entities, without drafts and deleted ones, as they travel.
func (t traveler[T, X]) exported(ctx context.Context, tenant string, ids []string) ([]X, error) {
	some, err := t.r.o.Store.Some(ctx, tenant, ids)
	if err != nil {
		return nil, err
	}
	var all []X
	for _, e := range some {
		if t.r.isDraft(e) || t.r.fields(&e).deleted() {
			continue
		}
		x := t.with(e)
		if *t.n.Parts(&x).Secrets, err = t.n.Secrets.Names(t.fields(&x)); err != nil {
			return nil, err
		}
		if t.n.Clean != nil {
			if err := t.n.Clean(&x); err != nil {
				return nil, err
			}
		}
		all = append(all, x)
	}
	shared, err := t.r.o.Store.Shares().Some(
		ctx, tenant, transfer.IDs(all, func(x X) string { return *t.fields(&x).ID }),
	)
	for i := range all {
		*t.n.Parts(&all[i]).Shares = shared[*t.fields(&all[i]).ID]
	}
	return all, err
}

// there locks those of some entities that exist, after it has held their owners to be and the
// principals of their shares. It returns errs.Conflict for the id of a draft, but not in a deploy
// from another tenant, whose caller must not learn of drafts.
func (t traveler[T, X]) there(ctx context.Context, tenant string, all []X, l entity.ImportOptions) ([]X, error) {
	principals, ids := []string{l.Owner}, make([]string, len(all))
	for i := range all {
		f := t.fields(&all[i])
		ids[i] = *f.ID
		principals = append(append(principals, *f.OwnerID), principalsOf(*t.n.Parts(&all[i]).Shares)...)
	}
	if _, err := t.r.o.Store.Hold(ctx, tenant, principals); err != nil {
		return nil, err
	}
	locked, err := t.r.o.Store.LockSome(ctx, tenant, ids)
	if err != nil {
		return nil, err
	}
	there := make([]X, len(locked))
	for i, e := range locked {
		if t.r.isDraft(e) && !l.CrossTenant {
			return nil, errs.New(errs.Conflict, "%s %s: this id belongs to a draft.", t.r.n.Kind, *t.r.fields(&e).ID)
		}
		there[i] = t.with(e)
	}
	return there, nil
}

func principalsOf(all []shares.Share) []string {
	return transfer.IDs(all, func(s shares.Share) string { return s.PrincipalID })
}

// put writes the entities of a batch and their shares.
func (t traveler[T, X]) put(ctx context.Context, b *transfer.Batch[X]) error {
	if err := t.n.Prepare(ctx, b); err != nil {
		return err
	}
	all, given := make([]T, len(b.Write)), map[string][]shares.Share{}
	for i := range b.Write {
		x := &b.Write[i]
		p, id := t.n.Parts(x), *t.fields(x).ID
		old, exists := b.There[id]
		if err := t.n.Complete(ctx, b, x, *t.n.Parts(&old).Entity, exists); err != nil {
			return err
		}
		all[i], given[id] = *p.Entity, *p.Shares // without shares those that are there go
	}
	if err := t.r.o.Store.PutAll(ctx, b.Tenant, all, b.Yield); err != nil || b.CrossTenant() {
		return err // a deploy grants no right
	}
	return t.r.replaceShares(ctx, b.Tenant, given, b.Warn)
}

// guarded returns why an import does not touch an entity that is there, "" if it does.
func (r *Rules[T]) guarded(e T, l entity.ImportOptions) string {
	switch {
	case r.isDraft(e) && l.Rule != entity.Fail:
		return "is a draft here"
	case r.fields(&e).deleted():
		return "is deleted here"
	}
	return ""
}

// drop removes those of some entities that exist, and returns their number.
func (r *Rules[T]) drop(ctx context.Context, tenant string, ids []string) (int, error) {
	there, err := r.o.Store.LockSome(ctx, tenant, ids)
	if err != nil {
		return 0, err
	}
	return len(there), r.Remove(ctx, tenant, ids)
}

// taken returns the ids of the entities with some natural ids by these.
func (r *Rules[T]) taken(ctx context.Context, tenant string, naturals []string) (map[string]string, error) {
	at := make([]Lookup, len(naturals))
	for i, natural := range naturals {
		colon := strings.LastIndexByte(natural, ':')
		at[i] = Lookup{Owner: natural[:colon], Slug: natural[colon+1:]}
	}
	some, err := r.o.Store.Slugs(ctx, tenant, at)
	ids := make(map[string]string, len(some))
	for _, e := range some {
		f := r.fields(&e)
		ids[*f.OwnerID+":"+**f.Slug] = *f.ID
	}
	return ids, err
}

// replaceShares makes the shares of some entities, by their ids, those whose principals the tenant
// has, and warns of the others. there has held the principals and locked the entities.
func (r *Rules[T]) replaceShares(
	ctx context.Context, tenant string, all map[string][]shares.Share, warn func(format string, args ...any),
) error {
	ids := slices.Sorted(maps.Keys(all))
	var principals []string
	for _, id := range ids {
		principals = append(principals, principalsOf(all[id])...)
	}
	held, err := r.o.Store.Hold(ctx, tenant, principals)
	if err != nil {
		return err
	}
	known := make(map[string][]shares.Share, len(all))
	for _, id := range ids {
		known[id] = slices.DeleteFunc(slices.Clone(all[id]), func(s shares.Share) bool {
			if !held[s.PrincipalID] {
				warn(
					"%s %s: its share with %s is left out, whom this tenant does not know.", r.n.Kind, id,
					transfer.Short(s.PrincipalID),
				)
			}
			return !held[s.PrincipalID]
		})
	}
	if err := r.o.Store.Shares().Replace(ctx, tenant, known); err != nil {
		return err
	}
	return r.o.Store.SetShared(ctx, tenant, ids)
}
