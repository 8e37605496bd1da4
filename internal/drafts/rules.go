package drafts

import (
	"cmp"
	"context"
	"io"
	"strings"
	"time"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/clock"
	"github.com/tenantcontent/tenantcontent/internal/drafts/libraries"
	"github.com/tenantcontent/tenantcontent/internal/drafts/shares"
	"github.com/tenantcontent/tenantcontent/internal/text/fields"
	"github.com/tenantcontent/tenantcontent/paging"
)

// Access returns errs.Forbidden if an actor with a grant may not do something with an entity.
type Access[T Entity] func(a actor.Actor, e T, grant shares.Grant) error

// Noun is what the rules of one noun have of their own.
type Noun[T Entity] struct {
	Kind    entity.Kind
	Article string // the kind with its article
	Fields  func(*T) Fields
	Ref     func(T) entity.Ref

	// comes before everything else that a caller does; nil: none
	Gate    func(ctx context.Context) error
	Visible func(a actor.Actor, e T, grant shares.Grant) bool // whether an actor sees an entity that is no draft
	// whether an actor sees its insides: files, shares and names of secrets
	Inside  func(a actor.Actor, e T, grant shares.Grant) bool
	Outside error // for those who do not

	Write       Access[T] // who may change an entity sees its draft
	Edit        Access[T] // to begin and publish drafts and to write files
	Share       Access[T]
	ChangeOwner Access[T]
	// Passed is called with an entity after an actor has changed its owner, and may change it; nil:
	// it is not called.
	Passed func(a actor.Actor, e *T)
	// Reassigned is called with the entities that a reassignment has moved, in its transaction;
	// nil: it is not called.
	Reassigned func(ctx context.Context, tenant string, moved []T) error

	TopShare shares.Level // the highest level of a share
	// KnownRoles returns errs.Invalid for a role of a share that neither was there nor is known to
	// the entity; nil: there are no roles.
	KnownRoles func(ctx context.Context, e T, roles, had []string) error

	// Content returns a reader in place of the content that PutFile writes as a file of an entity,
	// which the caller may do; nil: the content itself.
	Content func(ctx context.Context, e T, path string, content io.Reader) io.Reader
	// Removed is called with entities that were removed, in the transaction; nil: it is not called.
	Removed func(ctx context.Context, tenant string, gone []T) error

	DraftsEnd bool // reassignment removes the drafts of the source principal instead of moving them

	Inherit func(draft *T, of T) // sets what a draft has from the entity that it is a draft of
	// sets what a new draft, which is a copy of its entity, has of its own; nil: nothing
	Begin  func(draft *T, of T) error
	Digest func(T) string // changes with everything of an entity that a draft changes, but the files
}

// Options configure Rules. All are required but MaxFile, Registry and CanonicalName.
type Options[T Entity] struct {
	Noun      Noun[T]
	Store     Store[T]
	Files     *libraries.Files
	MaxFile   int64 // bytes of a file that PutFile writes
	Directory Directory
	// Registry has the hooks that are called for removed entities; nil for none.
	Registry *entity.Registry
	Feed     *entity.Changes // nil: changes are not announced
	// CanonicalName returns the exact name of the user who is meant by the owner in a natural id,
	// or the name as it is; nil: only exact names are found.
	CanonicalName func(ctx context.Context, tenant, name string) (string, error)
	Now           func() time.Time // default time.Now
	NewID         func() string    // default UUIDv7
}

// Directory looks up the principals of a tenant.
type Directory interface {
	// Known returns the given principal ids that exist.
	Known(ctx context.Context, tenant string, ids []string) (map[string]bool, error)
}

// Rules are what nouns whose entities are edited in drafts, shared and have files build their
// services of. Some methods trust the actor and tenant that they are passed.
type Rules[T Entity] struct {
	o     Options[T]
	clock clock.Clock
	n     Noun[T]
}

// NewRules returns Rules.
func NewRules[T Entity](o Options[T]) *Rules[T] {
	return &Rules[T]{o, clock.New(o.Now, o.NewID), o.Noun}
}

// Actor returns who calls, once the noun's gate lets the caller pass. Errors: as actor.From, and
// those of Noun.Gate.
func (r *Rules[T]) Actor(ctx context.Context) (actor.Actor, error) {
	a, err := actor.From(ctx)
	if err != nil || r.n.Gate == nil {
		return a, err
	}
	if err := r.n.Gate(ctx); err != nil {
		return actor.Actor{}, err
	}
	return a, nil
}

// NewID returns the id of a new row.
func (r *Rules[T]) NewID() string { return r.clock.NewID() }

// Stamp returns the time of a write, in the precision that every database can store.
func (r *Rules[T]) Stamp() time.Time { return r.clock.Stamp() }

func (r *Rules[T]) fields(e *T) Fields { return r.n.Fields(e) }

// NotFound returns the error for an entity that is not there, or that the caller does not see.
func (r *Rules[T]) NotFound() error {
	name := string(r.n.Kind)
	return errs.New(errs.NotFound, "%s not found.", strings.ToUpper(name[:1])+name[1:])
}

// Known returns errs.NotFound if the tenant has no such entity, or only as a draft.
func (r *Rules[T]) Known(ctx context.Context, tenant string, key entity.Key) error {
	if r.o.Registry == nil {
		return nil
	}
	ref, err := r.o.Registry.Lookup(ctx, tenant, key.Kind, key.ID)
	if err == nil && (ref.ID != key.ID || ref.Draft) {
		err = errs.New(errs.NotFound, "%s not found", key.Kind)
	}
	return err
}

// IsDraft returns the error for a draft where the entity itself is needed, with what to do instead.
func (r *Rules[T]) IsDraft(instead string) error {
	return errs.New(errs.Invalid, "This is the draft of %s: %s.", r.n.Article, instead)
}

// ViewerOf returns the Viewer of what an actor sees.
func ViewerOf(a actor.Actor) Viewer {
	return Viewer{All: a.Superuser, Principals: shares.Principals(a)}
}

// Owns reports whether something of an owner belongs to an actor, or to a team of the actor.
func Owns(a actor.Actor, owner string) bool {
	_, member := a.Teams[owner]
	return a.User == owner || member
}

// Parse reads an id or a natural id. Errors: errs.NotFound.
func (r *Rules[T]) Parse(id string) (Lookup, error) {
	key, owner, slug, ok := fields.Place(id)
	if !ok {
		return Lookup{}, r.NotFound() // cannot exist, and the database may refuse the text
	}
	return Lookup{ID: key, Owner: owner, Slug: slug}, nil
}

// At calls do with the place that an id or natural id names. If nothing is there, it calls it again
// with the exact name of the owner whom a natural id spells differently.
func (r *Rules[T]) At(ctx context.Context, tenant, id string, do func(Lookup) error) error {
	at, err := r.Parse(id)
	if err != nil {
		return err
	}
	err = do(at)
	if errs.CodeOf(err) != errs.NotFound || at.Owner == "" || r.o.CanonicalName == nil {
		return err
	}
	owner, failed := r.o.CanonicalName(ctx, tenant, at.Owner)
	if failed != nil || owner == at.Owner {
		return cmp.Or(failed, err)
	}
	at.Owner = owner
	return do(at)
}

// Find returns an entity that an actor sees, and the actor's grant.
func (r *Rules[T]) Find(ctx context.Context, a actor.Actor, id string) (T, shares.Grant, error) {
	return r.granted(ctx, a, id, r.o.Store.Get)
}

// FindHead is Find without what may be long.
func (r *Rules[T]) FindHead(ctx context.Context, a actor.Actor, id string) (T, shares.Grant, error) {
	return r.granted(ctx, a, id, r.o.Store.Head)
}

// granted returns an entity that an actor sees, as get reads it, and the actor's grant.
func (r *Rules[T]) granted(
	ctx context.Context, a actor.Actor, id string, get func(context.Context, string, Lookup) (T, error),
) (e T, grant shares.Grant, err error) {
	err = r.At(ctx, a.Tenant, id, func(at Lookup) error {
		e, err = get(ctx, a.Tenant, at)
		return err
	})
	if err != nil {
		return *new(T), shares.Grant{}, err
	}
	grant, err = r.Grant(ctx, a, &e)
	return e, grant, err
}

// Head returns the entity that an id or natural id names, without what may be long.
func (r *Rules[T]) Head(ctx context.Context, tenant, id string) (e T, err error) {
	err = r.At(ctx, tenant, id, func(at Lookup) error {
		e, err = r.o.Store.Head(ctx, tenant, at)
		return err
	})
	return e, err
}

// Lock returns an entity that an actor sees, and the actor's grant. It locks the entity until the
// transaction in ctx ends.
func (r *Rules[T]) Lock(ctx context.Context, a actor.Actor, at Lookup) (T, shares.Grant, error) {
	e, err := r.o.Store.Lock(ctx, a.Tenant, at)
	if err != nil {
		return *new(T), shares.Grant{}, err
	}
	grant, err := r.Grant(ctx, a, &e)
	return e, grant, err
}

// LockNamed is Lock of the entity that an id or natural id names.
func (r *Rules[T]) LockNamed(ctx context.Context, a actor.Actor, id string) (e T, grant shares.Grant, err error) {
	err = r.At(ctx, a.Tenant, id, func(at Lookup) error {
		e, grant, err = r.Lock(ctx, a, at)
		return err
	})
	return e, grant, err
}

// Grant returns the grant of an actor at an entity. A draft inherits from its entity, which decides
// who may do what with it.
// Errors: errs.NotFound if the actor does not see the entity, and for the draft of a deleted one.
func (r *Rules[T]) Grant(ctx context.Context, a actor.Actor, e *T) (shares.Grant, error) {
	if id := *r.fields(e).EditingID; id != nil {
		of, err := r.o.Store.Head(ctx, a.Tenant, Lookup{ID: *id})
		if err != nil {
			return shares.Grant{}, err
		}
		r.n.Inherit(e, of)
	}
	all, err := r.Grants(ctx, a, *e)
	if err != nil {
		return shares.Grant{}, err
	}
	grant := all[r.Original(*e)]
	if !r.Sees(a, e, grant) {
		return shares.Grant{}, r.NotFound()
	}
	return grant, nil
}

// Grants returns the grants of an actor at some entities by id, for a draft by that of its entity.
func (r *Rules[T]) Grants(ctx context.Context, a actor.Actor, some ...T) (map[string]shares.Grant, error) {
	if len(some) == 0 {
		return nil, nil
	}
	return r.o.Store.Shares().Grants(ctx, a.Tenant, r.Originals(some), shares.Principals(a))
}

// Original returns the id of an entity, of a draft that of the entity that it is a draft of.
func (r *Rules[T]) Original(e T) string { return r.fields(&e).original() }

// Originals is Original for some entities.
func (r *Rules[T]) Originals(some []T) []string {
	ids := make([]string, len(some))
	for i := range some {
		ids[i] = r.fields(&some[i]).original()
	}
	return ids
}

// isDraft reports whether an entity is a draft.
func (r *Rules[T]) isDraft(e T) bool { return *r.fields(&e).EditingID != nil }

// Sees reports whether an actor sees an entity, or a draft: that is for those who may change the
// entity, also with a token that can only read. It changes nothing of e, which the look at a file
// of a page does not copy.
func (r *Rules[T]) Sees(a actor.Actor, e *T, grant shares.Grant) bool {
	if *r.fields(e).EditingID == nil {
		return r.n.Visible(a, *e, grant)
	}
	return r.mayRead(a, *e, grant) == nil
}

// mayRead is Write for those who only read, also with a token that can do nothing else.
func (r *Rules[T]) mayRead(a actor.Actor, e T, grant shares.Grant) error {
	a.ReadOnly = false
	return r.n.Write(a, e, grant)
}

// Visible returns those of some entities that an actor sees, and the actor's grants at them.
func (r *Rules[T]) Visible(ctx context.Context, a actor.Actor, some []T) ([]T, map[string]shares.Grant, error) {
	grants, err := r.Grants(ctx, a, some...)
	if err != nil {
		return nil, nil, err
	}
	seen := make([]T, 0, len(some))
	for i := range some {
		e := &some[i]
		if r.Sees(a, e, grants[r.fields(e).original()]) {
			seen = append(seen, *e)
		}
	}
	return seen, grants, nil
}

// Page is Store.Page of what an actor sees.
func (r *Rules[T]) Page(ctx context.Context, a actor.Actor, q paging.Query) (paging.Page[T], error) {
	return r.o.Store.Page(ctx, a.Tenant, ViewerOf(a), q)
}

// Each calls do with all entities that an actor sees, some at a time and ordered by name, without
// drafts, deleted entities and what may be long, until do returns false.
func (r *Rules[T]) Each(ctx context.Context, a actor.Actor, do func([]T) (bool, error)) error {
	v := ViewerOf(a)
	v.Brief = true
	for q := (paging.Query{Limit: paging.MaxLimit}); ; {
		page, err := r.o.Store.Page(ctx, a.Tenant, v, q)
		if err != nil {
			return err
		}
		if more, err := do(page.Rows); err != nil || !more || !page.More {
			return err
		}
		q.Start, q.After = q.Start+len(page.Rows), page.Last
	}
}

// Caller is an actor who changes an entity, and the grant that the actor has.
type Caller struct {
	actor.Actor
	Grant shares.Grant
}

// Change changes an entity on which its caller has access, and returns it with the caller. edit
// gets the caller and the stored entity; what no edit sets is put back.
func (r *Rules[T]) Change(
	ctx context.Context, id string, access Access[T], edit func(ctx context.Context, who Caller, e *T) error,
) (e T, who Caller, err error) {
	return r.ChangeBeside(ctx, id, access, func(ctx context.Context, who Caller, e *T) error {
		*r.fields(e).UpdatedAt = r.Stamp()
		return edit(ctx, who, e)
	})
}

// ChangeBeside is Change for what an entity has beside its row, such as tags: its UpdatedAt stays.
func (r *Rules[T]) ChangeBeside(
	ctx context.Context, id string, access Access[T], edit func(ctx context.Context, who Caller, e *T) error,
) (e T, who Caller, err error) {
	a, err := r.Actor(ctx)
	if err != nil {
		return *new(T), Caller{}, err
	}
	err = r.o.Feed.In(ctx, r.o.Store.InTx, a.Tenant, r.updated(id), func(ctx context.Context) error {
		return r.At(ctx, a.Tenant, id, func(at Lookup) error {
			e, err = r.o.Store.Update(ctx, a.Tenant, at, func(e *T) error {
				grant, err := r.Grant(ctx, a, e)
				if err != nil {
					return err
				}
				if err := access(a, *e, grant); err != nil {
					return err
				}
				f := r.fields(e)
				if *f.EditingID != nil {
					if err := f.Lock.Check(a, r.Stamp()); err != nil {
						return err
					}
				}
				who = Caller{a, grant}
				return edit(ctx, who, e)
			})
			return err
		})
	})
	return e, who, err
}

// updated is a change of an entity.
func (r *Rules[T]) updated(id string) entity.Subject {
	return entity.Subject{Kind: r.n.Kind, ID: id, Action: entity.ActionUpdate}
}

// SetOwner passes an entity and its draft on to a user or team. Errors: errs.NotFound;
// errs.Forbidden; errs.Invalid for an unknown principal and for a draft; errs.Conflict for a slug
// that the new owner has used.
func (r *Rules[T]) SetOwner(ctx context.Context, id, owner string) (e T, who Caller, err error) {
	a, err := r.Actor(ctx)
	if err != nil {
		return *new(T), Caller{}, err
	}
	err = r.o.Store.InTx(ctx, func(ctx context.Context) error {
		owner, err := r.Principal(ctx, a.Tenant, owner)
		if err != nil {
			return err
		}
		held, err := r.o.Store.Hold(ctx, a.Tenant, []string{owner})
		if err != nil {
			return err
		}
		e, who, err = r.Change(ctx, id, r.n.ChangeOwner, func(_ context.Context, who Caller, e *T) error {
			if r.isDraft(*e) {
				return r.IsDraft("its owner is that of the " + string(r.n.Kind))
			}
			if !held[owner] || owner == shares.Everyone {
				return errs.New(errs.Invalid, "ownerId must be a user or team of this tenant")
			}
			was := *r.fields(e).OwnerID
			if *r.fields(e).OwnerID = owner; owner != was && r.n.Passed != nil {
				r.n.Passed(who.Actor, e)
			}
			return nil
		})
		if err != nil {
			return err
		}
		draft, err := r.o.Store.Draft(ctx, a.Tenant, r.Original(e))
		if errs.CodeOf(err) == errs.NotFound {
			return nil
		} else if err != nil {
			return err
		}
		_, err = r.o.Store.Update(ctx, a.Tenant, Lookup{ID: *r.fields(&draft).ID}, func(d *T) error {
			f := r.fields(d)
			*f.OwnerID, *f.UpdatedAt = owner, r.Stamp()
			return nil
		})
		if err != nil {
			return err
		}
		key := entity.Key{Kind: r.n.Kind, ID: *r.fields(&draft).ID}
		return r.o.Feed.Each(ctx, a.Tenant, entity.ActionUpdate, key)
	})
	return e, who, err
}

// Remove removes entities with all that belongs to them. The caller has locked them.
func (r *Rules[T]) Remove(ctx context.Context, tenant string, ids []string) error {
	gone, err := r.o.Store.Remove(ctx, tenant, ids)
	if err != nil || len(gone) == 0 {
		return err
	}
	libraries, keys := make([]string, len(gone)), make([]entity.Key, len(gone))
	for i := range gone {
		f := r.fields(&gone[i])
		libraries[i], keys[i] = *f.LibraryID, entity.Key{Kind: r.n.Kind, ID: *f.ID}
	}
	if err := r.o.Files.Remove(ctx, tenant, libraries); err != nil {
		return err
	}
	if r.n.Removed != nil {
		if err := r.n.Removed(ctx, tenant, gone); err != nil {
			return err
		}
	}
	if r.o.Registry == nil {
		return nil
	}
	return r.o.Registry.Deleted(ctx, tenant, keys...)
}
