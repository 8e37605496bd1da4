package drafts

import (
	"context"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/drafts/shares"
	"github.com/tenantcontent/tenantcontent/internal/secure/guard"
)

// A draft is a row of its own with a library of its own, whose files share their bytes with those
// of its entity. All that changes a draft or its entity in one of the methods below locks the
// entity's row first, then the draft's.

// Draft returns the draft of an entity, which may be named by either's id, and the actor's grant.
// It is for those who may change the entity. Errors: errs.NotFound; errs.Forbidden.
func (r *Rules[T]) Draft(ctx context.Context, a actor.Actor, id string) (T, shares.Grant, error) {
	e, grant, err := r.Find(ctx, a, id)
	if err != nil || r.isDraft(e) {
		return e, grant, err
	}
	if err := r.mayRead(a, e, grant); err != nil {
		return *new(T), shares.Grant{}, err
	}
	d, err := r.o.Store.Draft(ctx, a.Tenant, r.Original(e))
	if err != nil {
		return *new(T), shares.Grant{}, r.noDraft(err)
	}
	r.n.Inherit(&d, e)
	return d, grant, nil
}

// noDraft returns the error of a look-up of a draft. For errs.NotFound its message names the route
// that makes one.
func (r *Rules[T]) noDraft(err error) error {
	if errs.CodeOf(err) == errs.NotFound {
		return errs.New(errs.NotFound, "The %s has no draft: _edit makes one.", r.n.Kind)
	}
	return err
}

// locked returns the entity that is named, or whose draft is, and locks it. The actor has access to
// it.
func (r *Rules[T]) locked(ctx context.Context, a actor.Actor, named T, access Access[T]) (T, shares.Grant, error) {
	e, grant, err := r.Lock(ctx, a, Lookup{ID: r.Original(named)})
	if err != nil {
		return *new(T), shares.Grant{}, err
	}
	return e, grant, access(a, e, grant)
}

// Edit creates the draft of an entity if there is none, locks it for the actor's credential for
// Lifetime, and returns it. While another credential holds the lock, the draft is returned with
// that lock, unless force replaces it. Errors: errs.NotFound; errs.Forbidden.
func (r *Rules[T]) Edit(
	ctx context.Context, a actor.Actor, id string, force bool,
) (d T, grant shares.Grant, err error) {
	err = r.o.Store.InTx(ctx, func(ctx context.Context) error {
		named, err := r.Head(ctx, a.Tenant, id)
		if err != nil {
			return err
		}
		if _, err := r.o.Store.Hold(ctx, a.Tenant, []string{*r.fields(&named).OwnerID}); err != nil {
			// who is to own the draft
			return err
		}
		var e T
		if e, grant, err = r.locked(ctx, a, named, r.n.Edit); err != nil {
			return err
		}
		d, err = r.o.Store.Draft(ctx, a.Tenant, r.Original(e))
		switch {
		case errs.CodeOf(err) == errs.NotFound:
			if d, err = r.begin(ctx, a, e); err == nil {
				key := entity.Key{Kind: r.n.Kind, ID: *r.fields(&d).ID}
				err = r.o.Feed.Announce(ctx, a.Tenant, entity.ActionCreate, key)
			}
		case err == nil:
			d, err = r.take(ctx, a, d, force)
		}
		if err == nil {
			r.n.Inherit(&d, e)
		}
		return err
	})
	return d, grant, err
}

// begin adds the draft of an entity, locked by the actor.
func (r *Rules[T]) begin(ctx context.Context, a actor.Actor, of T) (T, error) {
	d, from := of, r.fields(&of)
	f, now, id := r.fields(&d), r.Stamp(), *from.ID
	*f.ID, *f.LibraryID, *f.EditingID, *f.CreatedAt, *f.UpdatedAt, *f.Shared =
		r.clock.NewID(), r.clock.NewID(), &id, now, now, false
	*f.Lock, _ = f.Lock.Take(a, now, true)
	if r.n.Begin != nil {
		if err := r.n.Begin(&d, of); err != nil {
			return d, err
		}
	}
	var err error
	if *f.Base, err = r.base(ctx, of); err != nil {
		return d, err
	}
	if err := r.o.Store.Insert(ctx, a.Tenant, d); err != nil {
		return d, err
	}
	return d, r.o.Files.Copy(ctx, a.Tenant, *from.LibraryID, *f.LibraryID)
}

// take locks a draft for an actor. Without force, a lock of another credential stays.
func (r *Rules[T]) take(ctx context.Context, a actor.Actor, d T, force bool) (T, error) {
	lock, taken := r.fields(&d).Lock.Take(a, r.Stamp(), force)
	if !taken {
		return d, nil
	}
	id := *r.fields(&d).ID
	d, err := r.o.Store.Update(ctx, a.Tenant, Lookup{ID: id}, func(d *T) error {
		*r.fields(d).Lock = lock
		return nil
	})
	if err != nil {
		return d, err
	}
	return d, r.o.Feed.Announce(ctx, a.Tenant, entity.ActionUpdate, entity.Key{Kind: r.n.Kind, ID: id})
}

// base returns a digest of what a draft changes of an entity: its fields and its files.
func (r *Rules[T]) base(ctx context.Context, e T) (string, error) {
	f := r.fields(&e)
	files, err := r.o.Files.All(ctx, *f.Tenant, *f.LibraryID)
	if err != nil {
		return "", err
	}
	texts := make([]string, 0, 3*len(files))
	for _, file := range files {
		texts = append(texts, file.Path, file.ContentID, file.ContentType)
	}
	return guard.Version(r.n.Digest(e), texts), nil
}

// Committable returns an entity with its draft, which the actor may publish, and locks both rows.
// Errors: errs.NotFound, also for an entity without a draft; errs.Forbidden; errs.Conflict for a
// draft that somebody else edits and, unless force, for an entity that has changed since the draft
// began.
func (r *Rules[T]) Committable(
	ctx context.Context, a actor.Actor, id string, force bool,
) (e T, grant shares.Grant, d T, err error) {
	if e, grant, d, err = r.edited(ctx, a, id, r.n.Edit); err != nil || force {
		return e, grant, d, err
	}
	base, err := r.base(ctx, e)
	if err == nil && base != *r.fields(&d).Base {
		err = errs.New(
			errs.Conflict,
			"The %s has changed since the draft began: see draft/diff, and publish over the changes with "+
				"_commit?force=true.",
			r.n.Kind,
		)
	}
	return e, grant, d, err
}

// Publish replaces the files of an entity by those of its draft, removes the draft, and changes the
// entity as publish does. The caller has them from Committable in the same transaction.
func (r *Rules[T]) Publish(ctx context.Context, e, d T, publish func(e *T) error) (T, error) {
	f, of := r.fields(&e), r.fields(&d)
	if err := r.o.Files.Replace(ctx, *f.Tenant, *f.LibraryID, *of.LibraryID); err != nil {
		return *new(T), err
	}
	if err := r.Remove(ctx, *f.Tenant, []string{*of.ID}); err != nil {
		return *new(T), err
	}
	return r.o.Store.Update(ctx, *f.Tenant, Lookup{ID: *f.ID}, publish)
}

// edited returns an entity, to which the actor has access, with its draft, of which nobody but the
// actor holds the lock, and locks both rows.
func (r *Rules[T]) edited(
	ctx context.Context, a actor.Actor, id string, access Access[T],
) (e T, grant shares.Grant, d T, err error) {
	named, err := r.Head(ctx, a.Tenant, id)
	if err != nil {
		return e, grant, d, err
	}
	if e, grant, err = r.locked(ctx, a, named, access); err != nil {
		return e, grant, d, err
	}
	if d, err = r.o.Store.LockDraft(ctx, a.Tenant, r.Original(e)); err != nil {
		return e, grant, d, r.noDraft(err)
	}
	return e, grant, d, r.fields(&d).Lock.Check(a, r.Stamp())
}

// Drafts returns the drafts of the entities that an actor may change, ordered by name, without what
// may be long, and the actor's grants.
func (r *Rules[T]) Drafts(ctx context.Context, a actor.Actor) ([]T, map[string]shares.Grant, error) {
	all, err := r.o.Store.Drafts(ctx, a.Tenant, ViewerOf(a))
	if err != nil {
		return nil, nil, err
	}
	some, err := r.o.Store.Heads(ctx, a.Tenant, r.Originals(all))
	if err != nil {
		return nil, nil, err
	}
	of := make(map[string]T, len(some))
	for _, e := range r.Alive(some) {
		of[*r.fields(&e).ID] = e
	}
	drafts := make([]T, 0, len(all))
	for _, d := range all {
		if e, there := of[r.Original(d)]; there {
			r.n.Inherit(&d, e)
			drafts = append(drafts, d)
		}
	}
	return r.Visible(ctx, a, drafts)
}

// Alive returns those of some entities that are not deleted.
func (r *Rules[T]) Alive(some []T) []T {
	alive := make([]T, 0, len(some))
	for _, e := range some {
		if !r.fields(&e).deleted() {
			alive = append(alive, e)
		}
	}
	return alive
}
