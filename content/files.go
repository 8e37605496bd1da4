package content

import (
	"context"
	"io"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/paging"
)

// Files returns a page of a library's files to any session, sorted by path (the default) or
// updatedAt. The library is found by id or natural id. Errors: errs.NotFound; errs.Invalid for a
// sort or cursor that does not fit.
func (s *Service) Files(ctx context.Context, library string, q paging.Query) (paging.Page[File], error) {
	e, err := s.Get(ctx, Library, library)
	if err != nil {
		return paging.Page[File]{}, err
	}
	return s.files.Page(ctx, e.Tenant, e.ID, q)
}

// OpenFile returns a file of a library with its bytes, which the caller closes, to any session.
// Errors: errs.NotFound.
func (s *Service) OpenFile(ctx context.Context, library, path string) (File, io.ReadSeekCloser, error) {
	e, err := s.Get(ctx, Library, library)
	if err != nil {
		return File{}, nil, err
	}
	return s.files.Open(ctx, e.Tenant, e.ID, path)
}

// PutFile writes a file of a library, over the one that has the path already. It is for those who
// may change the library. Without a content type it gets that of the path's ending.
// Errors: errs.NotFound; errs.Forbidden; errs.Invalid for a bad path or content type; errs.Conflict
// for a path that differs from another one in case alone, or that is a folder; errs.TooLarge; r's
// own, as it is.
func (s *Service) PutFile(ctx context.Context, library string, f entity.File, r io.Reader) (File, error) {
	e, may, err := s.changed(ctx, library)
	if err != nil {
		return File{}, err
	}
	return s.files.Put(ctx, e.Tenant, e.ID, f.Path, f.ContentType, r, s.lockLibrary(e.Tenant, e.ID, may))
}

// DeleteFile removes a file of a library. It is for those who may change the library. Errors:
// errs.NotFound; errs.Forbidden.
func (s *Service) DeleteFile(ctx context.Context, library, path string) error {
	e, may, err := s.changed(ctx, library)
	if err != nil {
		return err
	}
	return s.files.Delete(ctx, e.Tenant, e.ID, path, s.lockLibrary(e.Tenant, e.ID, may))
}

// changed returns a library whose files the caller may change, and the check of that for the row
// when it is locked.
func (s *Service) changed(ctx context.Context, library string) (Entity, func(Entity) error, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return Entity{}, nil, err
	}
	e, err := s.find(ctx, a.Tenant, Library, library)
	if err != nil {
		return Entity{}, nil, err
	}
	allowed := func(e Entity) error { return may(a, e) }
	return e, allowed, allowed(e)
}

// lockLibrary returns a function that locks the row of a library and asks whether its files may be
// changed.
func (s *Service) lockLibrary(tenant, id string, may func(Entity) error) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		found, err := s.store.LockSome(ctx, tenant, Library, []string{id})
		switch {
		case err != nil:
			return err
		case len(found) == 0:
			return errs.New(errs.NotFound, "Library not found.")
		}
		return may(found[0])
	}
}

// removeFiles removes the files of removed entities: those of libraries, as no others have any.
func (s *Service) removeFiles(ctx context.Context, tenant string, kind entity.Kind, ids []string) error {
	if kind != Library {
		return nil
	}
	return s.files.Remove(ctx, tenant, ids)
}
