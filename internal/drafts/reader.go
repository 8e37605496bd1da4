package drafts

import (
	"context"
	"iter"
	"slices"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/internal/drafts/shares"
	"github.com/tenantcontent/tenantcontent/paging"
)

// Presenter returns the entities of a noun, T, as their callers see them, S.
type Presenter[T Entity, S any] struct {
	rules   *Rules[T]
	present Present[T, S]
}

// Present returns entities as an actor with some grants, by the ids of the entities, sees them, in
// their order.
type Present[T Entity, S any] func(
	ctx context.Context, a actor.Actor, all []T, grants map[string]shares.Grant,
) ([]S, error)

// NewPresenter returns a Presenter.
func NewPresenter[T Entity, S any](r *Rules[T], present Present[T, S]) *Presenter[T, S] {
	return &Presenter[T, S]{r, present}
}

// One returns an entity as an actor with a grant sees it.
func (p *Presenter[T, S]) One(ctx context.Context, a actor.Actor, e T, grant shares.Grant) (S, error) {
	all, err := p.present(ctx, a, []T{e}, map[string]shares.Grant{p.rules.Original(e): grant})
	if err != nil {
		return *new(S), err
	}
	return all[0], nil
}

// All returns entities as an actor sees them, whose grants it looks up.
func (p *Presenter[T, S]) All(ctx context.Context, a actor.Actor, all []T) ([]S, error) {
	grants, err := p.rules.Grants(ctx, a, all...)
	if err != nil {
		return nil, err
	}
	return p.present(ctx, a, all, grants)
}

// InTx returns the entity that do returns, all in one transaction. It asks who calls before.
func (p *Presenter[T, S]) InTx(
	ctx context.Context, do func(ctx context.Context, a actor.Actor) (T, shares.Grant, error),
) (v S, err error) {
	a, err := p.rules.Actor(ctx)
	if err != nil {
		return v, err
	}
	err = p.rules.o.Store.InTx(ctx, func(ctx context.Context) error {
		e, grant, err := do(ctx, a)
		if err != nil {
			return err
		}
		v, err = p.One(ctx, a, e, grant)
		return err
	})
	return v, err
}

// Change is Rules.Change that returns the entity as its caller sees it.
func (p *Presenter[T, S]) Change(
	ctx context.Context, id string, access Access[T], edit func(ctx context.Context, who Caller, e *T) error,
) (S, error) {
	return p.InTx(ctx, func(ctx context.Context, _ actor.Actor) (T, shares.Grant, error) {
		e, who, err := p.rules.Change(ctx, id, access, edit)
		return e, who.Grant, err
	})
}

// Reader has the methods that return entities as their callers see them: the services of nouns
// embed it.
type Reader[T Entity, S any] struct{ p *Presenter[T, S] }

// Reader returns the methods that check what the caller may do.
func (p *Presenter[T, S]) Reader() Reader[T, S] { return Reader[T, S]{p} }

// Get returns an entity that the caller sees, found by id or natural id, or a draft of one that the
// caller may change, found by id.
// Errors: errs.NotFound.
func (s Reader[T, S]) Get(ctx context.Context, id string) (S, error) {
	a, err := s.p.rules.Actor(ctx)
	if err != nil {
		return *new(S), err
	}
	e, grant, err := s.p.rules.Find(ctx, a, id)
	if err != nil {
		return *new(S), err
	}
	return s.p.One(ctx, a, e, grant)
}

// List returns a page of the entities that the caller sees, without drafts and deleted ones, sorted
// by name (the default), createdAt or updatedAt; q searches name, slug and description. Errors:
// errs.Invalid for a sort or cursor that does not fit.
func (s Reader[T, S]) List(ctx context.Context, q paging.Query) (paging.Page[S], error) {
	a, err := s.p.rules.Actor(ctx)
	if err != nil {
		return paging.Page[S]{}, err
	}
	page, err := s.p.rules.Page(ctx, a, q)
	if err != nil {
		return paging.Page[S]{}, err
	}
	rows, err := s.p.All(ctx, a, page.Rows)
	return paging.Page[S]{
		Rows:  rows,
		Total: page.Total,
		More:  page.More,
		First: page.First,
		Last:  page.Last,
		Start: page.Start,
	}, err
}

// All returns all entities that the caller sees, without drafts, deleted ones and what may be long,
// ordered by name. An error ends it.
func (s Reader[T, S]) All(ctx context.Context) iter.Seq2[S, error] {
	return func(yield func(S, error) bool) {
		a, err := s.p.rules.Actor(ctx)
		if err != nil {
			yield(*new(S), err)
			return
		}
		err = s.p.rules.Each(ctx, a, func(some []T) (bool, error) {
			all, err := s.p.All(ctx, a, some)
			if err != nil {
				return false, err
			}
			for _, v := range all {
				if !yield(v, nil) {
					return false, nil
				}
			}
			return true, nil
		})
		if err != nil {
			yield(*new(S), err)
		}
	}
}

// Seen returns those of some entities that the caller sees, by id, without drafts, deleted ones and
// what may be long.
func (s Reader[T, S]) Seen(ctx context.Context, ids []string) (map[string]S, error) {
	r := s.p.rules
	a, err := r.Actor(ctx)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	some, err := r.o.Store.Heads(ctx, a.Tenant, ids)
	if err != nil {
		return nil, err
	}
	some, grants, err := r.Visible(ctx, a, slices.DeleteFunc(r.Alive(some), r.isDraft))
	if err != nil {
		return nil, err
	}
	shown, err := s.p.present(ctx, a, some, grants)
	seen := make(map[string]S, len(shown))
	for i, id := range r.ids(some[:len(shown)]) {
		seen[id] = shown[i]
	}
	return seen, err
}

// Drafts returns the drafts of the entities that the caller may change, ordered by name, without
// what may be long.
func (s Reader[T, S]) Drafts(ctx context.Context) ([]S, error) {
	a, err := s.p.rules.Actor(ctx)
	if err != nil {
		return nil, err
	}
	all, grants, err := s.p.rules.Drafts(ctx, a)
	if err != nil {
		return nil, err
	}
	return s.p.present(ctx, a, all, grants)
}

// Draft returns the draft of an entity, which may be named by either's id. It is for those who may
// change the entity.
// Errors: errs.NotFound; errs.Forbidden.
func (s Reader[T, S]) Draft(ctx context.Context, id string) (S, error) {
	a, err := s.p.rules.Actor(ctx)
	if err != nil {
		return *new(S), err
	}
	d, grant, err := s.p.rules.Draft(ctx, a, id)
	if err != nil {
		return *new(S), err
	}
	return s.p.One(ctx, a, d, grant)
}

// Edit creates the draft of an entity if there is none, locks it for the caller's credential for
// Lifetime, and returns it. While another credential holds the lock, the draft is returned with
// that lock, unless force replaces it. It needs the permission edit.
// Errors: errs.NotFound; errs.Forbidden.
func (s Reader[T, S]) Edit(ctx context.Context, id string, force bool) (S, error) {
	return s.p.InTx(ctx, func(ctx context.Context, a actor.Actor) (T, shares.Grant, error) {
		return s.p.rules.Edit(ctx, a, id, force)
	})
}

// SetOwner passes an entity and its draft on to a user or team. It needs the permission
// changeOwner. Errors: errs.NotFound; errs.Forbidden; errs.Invalid for an unknown principal and for
// a draft; errs.Conflict for a slug that the new owner has used.
func (s Reader[T, S]) SetOwner(ctx context.Context, id, owner string) (S, error) {
	return s.p.InTx(ctx, func(ctx context.Context, _ actor.Actor) (T, shares.Grant, error) {
		e, who, err := s.p.rules.SetOwner(ctx, id, owner)
		return e, who.Grant, err
	})
}
