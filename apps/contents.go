package apps

import (
	"context"
	"io"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/uuids"
	"github.com/tenantcontent/tenantcontent/libraries"
	"github.com/tenantcontent/tenantcontent/paging"
	"github.com/tenantcontent/tenantcontent/shares"
)

// inside returns an app whose insides an actor may see: its files as they are written, its variables and its shares. That is for its
// owner, the members of the owning team and those whose share lets them change it, whatever their roles. Who may only run it is
// shown its pages. Errors: errs.NotFound; errs.Forbidden.
func (s *Service) inside(ctx context.Context, a actor.Actor, id string) (App, error) {
	app, grant, err := s.findHead(ctx, a, id)
	if err != nil {
		return App{}, err
	}
	if inside(a, app, grant) {
		return app, nil
	}
	return App{}, errInside
}

var errInside = errs.New(errs.Forbidden, "This is for the owner of the app and for those who have a share with accessLevel 2.")

func inside(a actor.Actor, app App, grant shares.Grant) bool {
	return a.Superuser || owns(a, app) || grant.Level >= shares.Write
}

// Files returns a page of an app's files, sorted by path (the default) or updatedAt, to those who see its insides.
// Errors: errs.NotFound; errs.Forbidden; errs.Invalid for a sort or cursor that does not fit.
func (s *Service) Files(ctx context.Context, id string, q paging.Query) (paging.Page[libraries.File], error) {
	a, err := actor.From(ctx)
	if err != nil {
		return paging.Page[libraries.File]{}, err
	}
	app, err := s.inside(ctx, a, id)
	if err != nil {
		return paging.Page[libraries.File]{}, err
	}
	return s.files.Page(ctx, a.Tenant, app.LibraryID, q)
}

// Comparison is how the files of an app differ from others.
type Comparison struct {
	libraries.Comparison
	App     App
	DraftID *string // of the app's draft; nil for none, for those who may not change the app, and for a draft
	MaxFile int64   // the most bytes of a file that PutFile writes
}

// Compare compares the files of an app with others: digests has the SHA-256 of each, in lower-case hexadecimal, by path. It is for those
// who see the app's insides, and does not depend on files that the app does not have. Errors: errs.NotFound; errs.Forbidden;
// errs.Invalid naming a path or digest, or for more than libraries.MaxCompared files.
func (s *Service) Compare(ctx context.Context, id string, digests map[string]string) (Comparison, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return Comparison{}, err
	}
	app, grant, err := s.findHead(ctx, a, id)
	if err != nil {
		return Comparison{}, err
	}
	if !inside(a, app, grant) {
		return Comparison{}, errInside
	}
	c := Comparison{App: app, MaxFile: s.o.MaxFile}
	if c.Comparison, err = s.files.Compare(ctx, a.Tenant, app.LibraryID, digests); err != nil {
		return Comparison{}, err
	}
	if app.EditingID != nil || !PermissionsOf(a, app, grant).Write {
		return c, nil
	}
	d, err := s.store.Draft(ctx, a.Tenant, app.ID)
	switch {
	case err == nil:
		c.DraftID = &d.ID
	case errs.CodeOf(err) != errs.NotFound:
		return Comparison{}, err
	}
	return c, nil
}

// OpenFile returns a file of an app with its bytes, which the caller closes, to those who see its insides. Errors: errs.NotFound;
// errs.Forbidden.
func (s *Service) OpenFile(ctx context.Context, id, path string) (libraries.File, io.ReadSeekCloser, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return libraries.File{}, nil, err
	}
	app, err := s.inside(ctx, a, id)
	if err != nil {
		return libraries.File{}, nil, err
	}
	return s.files.Open(ctx, a.Tenant, app.LibraryID, path)
}

// PutFile writes a file of an app or draft, over the one that has the path already. It needs the permission edit. Without a content
// type it gets that of the path's extension. The row of the app stays as it is. After an error the file is as it was.
// Errors: errs.NotFound; errs.Forbidden; errs.Invalid for a bad path or content type; errs.Conflict for a path that differs from
// another one in case alone, or that is a folder, and for a draft that somebody else edits; errs.TooLarge; r's own, as it is.
func (s *Service) PutFile(ctx context.Context, id, path, contentType string, r io.Reader) (libraries.File, error) {
	app, lock, err := s.written(ctx, id)
	if err != nil {
		return libraries.File{}, err
	}
	return s.files.Put(ctx, app.Tenant, app.LibraryID, path, contentType, &limited{r, s.o.MaxFile, s.o.MaxFile}, lock)
}

// limited is a reader that fails with errs.TooLarge after most bytes.
type limited struct {
	r          io.Reader
	left, most int64
}

func (l *limited) Read(p []byte) (int, error) {
	if int64(len(p)) > l.left+1 {
		p = p[:l.left+1]
	}
	n, err := l.r.Read(p)
	if l.left -= int64(n); l.left < 0 {
		return n, errs.New(errs.TooLarge, "A file of an app must have at most %d bytes.", l.most)
	}
	return n, err
}

// DeleteFile removes a file of an app or draft. It needs the permission edit. Errors: errs.NotFound; errs.Forbidden; errs.Conflict
// for a draft that somebody else edits.
func (s *Service) DeleteFile(ctx context.Context, id, path string) error {
	app, lock, err := s.written(ctx, id)
	if err != nil {
		return err
	}
	return s.files.Delete(ctx, app.Tenant, app.LibraryID, path, lock)
}

// written returns an app whose files the caller may write, and a function that locks it and checks that again.
func (s *Service) written(ctx context.Context, id string) (App, func(ctx context.Context) error, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return App{}, nil, err
	}
	app, grant, err := s.findHead(ctx, a, id)
	if err != nil {
		return App{}, nil, err
	}
	if err := s.mayWriteFiles(a, app, grant); err != nil {
		return App{}, nil, err
	}
	return app, func(ctx context.Context) error {
		app, grant, err := s.lock(ctx, a, Lookup{ID: app.ID})
		if err != nil {
			return err
		}
		return s.mayWriteFiles(a, app, grant)
	}, nil
}

func (s *Service) mayWriteFiles(a actor.Actor, app App, grant shares.Grant) error {
	if err := toEdit.check(a, app, grant); err != nil {
		return err
	}
	if app.EditingID == nil {
		return nil
	}
	return app.Lock.Check(a, s.stamp())
}

// OfLibrary returns the app or draft that a library belongs to, if the caller sees it, without Defn. Errors: errs.NotFound.
func (s *Service) OfLibrary(ctx context.Context, library string) (Shown, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return Shown{}, err
	}
	id, ok := uuids.Parse(library)
	if !ok {
		return Shown{}, notFound()
	}
	app, err := s.store.Head(ctx, a.Tenant, Lookup{Library: id})
	if err != nil {
		return Shown{}, err
	}
	grant, err := s.grant(ctx, a, &app)
	if err != nil {
		return Shown{}, err
	}
	return s.show(ctx, a, app, grant)
}
