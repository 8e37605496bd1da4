package apps

import (
	"context"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/drafts/shares"
)

var errInside = errs.New(
	errs.Forbidden, "This is for the owner of the app and for those who have a share with accessLevel 2.",
)

// inside reports whether an actor sees the insides of an app: its files as they are written, its
// variables and its shares. Its owner, the members of the owning team and actors whose share lets
// them change it see these, whatever their roles. An actor that may only run it sees only its
// pages.
func inside(a actor.Actor, app App, grant Grant) bool {
	return a.Superuser || owns(a, app) || grant.Level >= shares.Write
}

// Comparison is how the files of an app differ from others.
type Comparison struct {
	FileComparison
	App     App
	DraftID *string // of the app's draft; nil for none, for those who may not change the app, and for a draft
	MaxFile int64   // the most bytes of a file that PutFile writes
}

// Compare compares the files of an app with others: digests has the SHA-256 of each, in lower-case
// hexadecimal, by path. It is for those who see the app's insides, and does not depend on files
// that the app does not have. Errors: errs.NotFound; errs.Forbidden; errs.Invalid naming a path or
// digest, or for more than libraries.MaxCompared files.
func (s *Service) Compare(ctx context.Context, id string, digests map[string]string) (Comparison, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return Comparison{}, err
	}
	app, grant, err := s.rules.FindHead(ctx, a, id)
	if err != nil {
		return Comparison{}, err
	}
	if !inside(a, app, grant) {
		return Comparison{}, errInside
	}
	c := Comparison{App: app, MaxFile: s.o.MaxFile}
	if c.FileComparison, err = s.files.Compare(ctx, a.Tenant, app.LibraryID, digests); err != nil {
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

// OfLibrary returns the app or draft that a library belongs to, if the caller sees it, without
// Defn. Errors: errs.NotFound.
func (s *Service) OfLibrary(ctx context.Context, library string) (Shown, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return Shown{}, err
	}
	app, grant, err := s.rules.OfLibrary(ctx, a, library)
	if err != nil {
		return Shown{}, err
	}
	return s.presenter.One(ctx, a, app, grant)
}

// MaxFile returns how many bytes a file that PutFile writes has at most.
func (u Unchecked) MaxFile() int64 { return u.s.o.MaxFile }
