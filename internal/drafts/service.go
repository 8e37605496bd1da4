package drafts

import (
	"context"
	"io"
	"slices"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/drafts/libraries"
	"github.com/tenantcontent/tenantcontent/internal/drafts/shares"
	"github.com/tenantcontent/tenantcontent/internal/secure/guard"
	"github.com/tenantcontent/tenantcontent/internal/text/uuids"
	"github.com/tenantcontent/tenantcontent/paging"
)

// Service has the methods that are the same for all nouns whose entities are edited in drafts: the
// services of nouns embed it.
type Service[T Entity] struct{ rules *Rules[T] }

// Service returns the methods that check what the caller may do.
func (r *Rules[T]) Service() Service[T] { return Service[T]{r} }

// Discard removes the draft of an entity. It is for those who may change the entity, so that a
// draft also goes after a deploy from another tenant has overwritten its entity. Errors:
// errs.NotFound, also for an entity without a draft; errs.Forbidden; errs.Conflict for a draft that
// somebody else edits.
func (s Service[T]) Discard(ctx context.Context, id string) error {
	r := s.rules
	a, err := s.rules.Actor(ctx)
	if err != nil {
		return err
	}
	return r.o.Store.InTx(ctx, func(ctx context.Context) error {
		_, _, d, err := r.edited(ctx, a, id, r.n.Write)
		if err == nil {
			err = guard.Check(ctx, string(r.n.Kind), d)
		}
		if err != nil {
			return err
		}
		return r.Remove(ctx, a.Tenant, []string{*r.fields(&d).ID})
	})
}

// Ref returns a reference to an entity that the caller sees, found by id or natural id, or to a
// draft. Errors: errs.NotFound.
func (s Service[T]) Ref(ctx context.Context, id string) (entity.Ref, error) {
	a, err := s.rules.Actor(ctx)
	if err != nil {
		return entity.Ref{}, err
	}
	e, _, err := s.rules.FindHead(ctx, a, id)
	if err != nil {
		return entity.Ref{}, err
	}
	return s.rules.n.Ref(e), nil
}

// Inside returns an entity whose insides the caller may see, without what may be long: its files as
// they are written, the names of its secrets and its shares. Errors: errs.NotFound; errs.Forbidden.
func (r *Rules[T]) Inside(ctx context.Context, id string) (T, error) {
	a, err := r.Actor(ctx)
	if err != nil {
		return *new(T), err
	}
	e, grant, err := r.FindHead(ctx, a, id)
	if err != nil {
		return *new(T), err
	}
	if !r.n.Inside(a, e, grant) {
		return *new(T), r.n.Outside
	}
	return e, nil
}

// Files returns a page of an entity's files, sorted by path (the default) or updatedAt, to those
// who see its insides.
// Errors: errs.NotFound; errs.Forbidden; errs.Invalid for a sort or cursor that does not fit.
func (s Service[T]) Files(ctx context.Context, id string, q paging.Query) (paging.Page[libraries.File], error) {
	e, err := s.rules.Inside(ctx, id)
	if err != nil {
		return paging.Page[libraries.File]{}, err
	}
	f := s.rules.fields(&e)
	return s.rules.o.Files.Page(ctx, *f.Tenant, *f.LibraryID, q)
}

// OpenFile returns a file of an entity with its bytes, which the caller closes, to those who see
// its insides. Errors: errs.NotFound; errs.Forbidden.
func (s Service[T]) OpenFile(ctx context.Context, id, path string) (libraries.File, io.ReadSeekCloser, error) {
	e, err := s.rules.Inside(ctx, id)
	if err != nil {
		return libraries.File{}, nil, err
	}
	f := s.rules.fields(&e)
	return s.rules.o.Files.Open(ctx, *f.Tenant, *f.LibraryID, path)
}

// PutFile writes a file of an entity or draft, over the one that has the path already. It is for
// those who may edit it. Without a content type it gets that of the path's extension. The row of
// the entity stays as it is. After an error the file is as it was.
// Errors: errs.NotFound; errs.Forbidden; errs.Invalid for a bad path or content type; errs.Conflict
// for a path that differs from another one in case alone, or that is a folder, and for a draft that
// somebody else edits; errs.TooLarge; content's own, as it is.
func (s Service[T]) PutFile(
	ctx context.Context, id string, file entity.File, content io.Reader,
) (libraries.File, error) {
	r := s.rules
	e, lock, err := r.written(ctx, id)
	if err != nil {
		return libraries.File{}, err
	}
	f := r.fields(&e)
	content = &limited{content, r.o.MaxFile, r.o.MaxFile, r.n.Article}
	if r.n.Content != nil {
		content = r.n.Content(ctx, e, file.Path, content)
	}
	return r.o.Files.Put(ctx, *f.Tenant, *f.LibraryID, file.Path, file.ContentType, content, lock)
}

// limited is a reader that fails with errs.TooLarge after most bytes.
type limited struct {
	content    io.Reader
	left, most int64
	of         string
}

func (l *limited) Read(p []byte) (int, error) {
	if int64(len(p)) > l.left+1 {
		p = p[:l.left+1]
	}
	n, err := l.content.Read(p)
	if l.left -= int64(n); l.left < 0 {
		return n, errs.New(errs.TooLarge, "A file of %s must have at most %d bytes.", l.of, l.most)
	}
	return n, err
}

// DeleteFile removes a file of an entity or draft. It is for those who may edit it. Errors:
// errs.NotFound; errs.Forbidden; errs.Conflict for a draft that somebody else edits.
func (s Service[T]) DeleteFile(ctx context.Context, id, path string) error {
	e, lock, err := s.rules.written(ctx, id)
	if err != nil {
		return err
	}
	f := s.rules.fields(&e)
	return s.rules.o.Files.Delete(ctx, *f.Tenant, *f.LibraryID, path, lock)
}

// written returns an entity whose files the caller may write, and a function that locks it and
// checks that again.
func (r *Rules[T]) written(ctx context.Context, id string) (T, func(ctx context.Context) error, error) {
	a, err := r.Actor(ctx)
	if err != nil {
		return *new(T), nil, err
	}
	e, grant, err := r.FindHead(ctx, a, id)
	if err != nil {
		return *new(T), nil, err
	}
	if err := r.mayWriteFiles(a, e, grant); err != nil {
		return *new(T), nil, err
	}
	key := *r.fields(&e).ID
	return e, func(ctx context.Context) error {
		e, grant, err := r.Lock(ctx, a, Lookup{ID: key})
		if err != nil {
			return err
		}
		return r.mayWriteFiles(a, e, grant)
	}, nil
}

func (r *Rules[T]) mayWriteFiles(a actor.Actor, e T, grant shares.Grant) error {
	if err := r.n.Edit(a, e, grant); err != nil || !r.isDraft(e) {
		return err
	}
	return r.fields(&e).Lock.Check(a, r.Stamp())
}

// OfLibrary returns the entity or draft that a library belongs to, if an actor sees it, without
// what may be long, and the actor's grant.
// Errors: errs.NotFound.
func (r *Rules[T]) OfLibrary(ctx context.Context, a actor.Actor, library string) (e T, grant shares.Grant, err error) {
	id, ok := uuids.Parse(library)
	if !ok {
		return e, grant, r.NotFound()
	}
	if e, err = r.o.Store.Head(ctx, a.Tenant, Lookup{Library: id}); err != nil {
		return e, grant, err
	}
	grant, err = r.Grant(ctx, a, &e)
	return e, grant, err
}

// Shares returns the shares of an entity, ordered by principal, to those who see its insides. A
// draft has those of its entity.
// Errors: errs.NotFound; errs.Forbidden.
func (s Service[T]) Shares(ctx context.Context, id string) ([]shares.Share, error) {
	e, err := s.rules.Inside(ctx, id)
	if err != nil {
		return nil, err
	}
	return s.rules.o.Store.Shares().All(ctx, *s.rules.fields(&e).Tenant, s.rules.Original(e))
}

// Share returns the share of one principal. It is for those for whom Shares is. Errors:
// errs.NotFound; errs.Forbidden.
func (s Service[T]) Share(ctx context.Context, id, principal string) (shares.Share, error) {
	r := s.rules
	e, err := r.Inside(ctx, id)
	if err != nil {
		return shares.Share{}, err
	}
	tenant := *r.fields(&e).Tenant
	if principal, err = r.Principal(ctx, tenant, principal); err != nil {
		return shares.Share{}, err
	}
	return r.o.Store.Shares().One(ctx, tenant, r.Original(e), principal)
}

// Principal returns the exact id of the principal that is meant by one: UUIDs are in lower case,
// and names of users may be spelled differently. An unknown one is returned as it is.
func (r *Rules[T]) Principal(ctx context.Context, tenant, id string) (string, error) {
	if team, ok := uuids.Parse(id); ok {
		return team, nil
	}
	if r.o.CanonicalName == nil {
		return id, nil
	}
	return r.o.CanonicalName(ctx, tenant, id)
}

// PutShare shares an entity with a principal, or changes the share: edit gets the share that is
// there, or one of shares.None. It is for those who may share the entity. A role that it adds must
// be known. Errors: errs.NotFound; errs.Forbidden; errs.Invalid naming the field, also for an
// unknown principal; errs.Conflict for roles that cannot be read.
func (s Service[T]) PutShare(
	ctx context.Context, id, principal string, edit func(*shares.Share),
) (put shares.Share, err error) {
	r := s.rules
	err = r.reshare(ctx, id, principal, func(ctx context.Context, e T, who string, known bool) error {
		f := r.fields(&e)
		share, err := r.o.Store.Shares().One(ctx, *f.Tenant, *f.ID, who)
		if err != nil && errs.CodeOf(err) != errs.NotFound {
			return err
		}
		now := r.Stamp()
		if err != nil {
			share = shares.Share{PrincipalID: who, CreatedAt: now}
		}
		had := slices.Clone(share.Roles)
		edit(&share)
		if err := share.Accept(r.n.TopShare); err != nil {
			return err
		}
		if err := r.knownRoles(ctx, e, share.Roles, had); err != nil {
			return err
		}
		if !known {
			return errs.New(errs.Invalid, "principalId: %q is no user or team of this tenant", who)
		}
		share.UpdatedAt = now
		put, err = r.o.Store.Shares().Put(ctx, *f.Tenant, *f.ID, share)
		return err
	})
	return put, err
}

func (r *Rules[T]) knownRoles(ctx context.Context, e T, roles, had []string) error {
	switch {
	case r.n.KnownRoles != nil:
		return r.n.KnownRoles(ctx, e, roles, had)
	case len(roles) > 0:
		return errs.New(errs.Invalid, "roles: %s has no roles", r.n.Article)
	}
	return nil
}

// DeleteShare ends a share. It is for those who may share the entity. Errors: errs.NotFound;
// errs.Forbidden.
func (s Service[T]) DeleteShare(ctx context.Context, id, principal string) error {
	r := s.rules
	return r.reshare(ctx, id, principal, func(ctx context.Context, e T, who string, _ bool) error {
		f := r.fields(&e)
		return r.o.Store.Shares().Delete(ctx, *f.Tenant, *f.ID, who)
	})
}

// reshare calls change with an entity that the caller may share and the exact id of a principal,
// and whether the tenant has that.
func (r *Rules[T]) reshare(
	ctx context.Context, id, principal string,
	change func(ctx context.Context, e T, who string, known bool) error,
) error {
	a, err := r.Actor(ctx)
	if err != nil {
		return err
	}
	who, err := r.Principal(ctx, a.Tenant, principal)
	if err != nil {
		return err
	}
	return r.sharing(ctx, id, who, func(ctx context.Context, e T, known bool) error {
		if err := change(ctx, e, who, known); err != nil {
			return err
		}
		key := entity.Key{Kind: r.n.Kind, ID: *r.fields(&e).ID}
		if err := r.o.Store.SetShared(ctx, a.Tenant, []string{key.ID}); err != nil {
			return err
		}
		return r.o.Feed.Announce(ctx, a.Tenant, entity.ActionShare, key)
	})
}

// sharing calls do with an entity that the caller may share, and whether the tenant has a
// principal. It holds the principal, then locks the entity.
func (r *Rules[T]) sharing(
	ctx context.Context, id, principal string, do func(ctx context.Context, e T, known bool) error,
) error {
	a, err := r.Actor(ctx)
	if err != nil {
		return err
	}
	return r.o.Store.InTx(ctx, func(ctx context.Context) error {
		held, err := r.o.Store.Hold(ctx, a.Tenant, []string{principal})
		if err != nil {
			return err
		}
		e, grant, err := r.LockNamed(ctx, a, id)
		if err != nil {
			return err
		}
		if r.isDraft(e) {
			return r.IsDraft("share the " + string(r.n.Kind) + " itself")
		}
		if err := r.n.Share(a, e, grant); err != nil {
			return err
		}
		return do(ctx, e, held[principal])
	})
}

// Sharing calls do with the id of an entity that the caller may share, in a transaction in which
// nobody else changes or removes the entity. Errors: those of do; errs.NotFound; errs.Forbidden;
// errs.Invalid for a draft and for unknown roles; errs.Conflict for roles that cannot be read.
func (s Service[T]) Sharing(
	ctx context.Context, id string, roles []string, do func(ctx context.Context, id string) error,
) error {
	a, err := s.rules.Actor(ctx)
	if err != nil {
		return err
	}
	r := s.rules
	return r.sharing(ctx, id, a.User, func(ctx context.Context, e T, _ bool) error {
		if err := r.knownRoles(ctx, e, roles, nil); err != nil {
			return err
		}
		return do(ctx, *r.fields(&e).ID)
	})
}

// CheckShare returns an error for an entity that an actor may not share, also not with a token that
// can do more than read, and for a draft.
func (r *Rules[T]) CheckShare(a actor.Actor, e T, grant shares.Grant) error {
	if r.isDraft(e) {
		return r.IsDraft("share the " + string(r.n.Kind) + " itself")
	}
	a.ReadOnly = false
	return r.n.Share(a, e, grant)
}
