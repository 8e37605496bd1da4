package apps

import (
	"context"
	"time"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/guard"
	"github.com/tenantcontent/tenantcontent/shares"
)

// A draft is an app row of its own with a library of its own, whose files share their bytes with those of the app. All that changes
// a draft or its app in one of the methods below locks the app's row first, then the draft's.

// Draft returns the draft of an app, which may be named by either's id. It is for those who may change the app.
// Errors: errs.NotFound; errs.Forbidden.
func (s *Service) Draft(ctx context.Context, id string) (Shown, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return Shown{}, err
	}
	d, grant, err := s.drafted(ctx, a, id)
	if err != nil {
		return Shown{}, err
	}
	return s.show(ctx, a, d, grant)
}

// drafted returns the draft of an app, which may be named by either's id, and the actor's grant.
func (s *Service) drafted(ctx context.Context, a actor.Actor, id string) (App, shares.Grant, error) {
	app, grant, err := s.find(ctx, a, id)
	if err != nil {
		return App{}, shares.Grant{}, err
	}
	d := app
	if app.EditingID == nil {
		reads := a
		reads.ReadOnly = false // who may write with another credential may read with this one
		if err := toWrite.check(reads, app, grant); err != nil {
			return App{}, shares.Grant{}, err
		}
		if d, err = s.store.Draft(ctx, a.Tenant, app.ID); err != nil {
			return App{}, shares.Grant{}, noDraft(err)
		}
		d.inherit(app)
	}
	return d, grant, nil
}

// noDraft returns the error of a look-up of a draft. For errs.NotFound its message names the route that makes one.
func noDraft(err error) error {
	if errs.CodeOf(err) == errs.NotFound {
		return errs.New(errs.NotFound, "The app has no draft: _edit makes one.")
	}
	return err
}

// locked returns the app that is named, or whose draft is, and locks it. The actor has a permission on it.
func (s *Service) locked(ctx context.Context, a actor.Actor, named App, n need) (App, shares.Grant, error) {
	app, grant, err := s.lock(ctx, a, Lookup{ID: original(named)})
	if err != nil {
		return App{}, shares.Grant{}, err
	}
	return app, grant, n.check(a, app, grant)
}

// Edit creates the draft of an app if there is none, locks it for the caller's credential for drafts.Lifetime, and returns it. While
// another credential holds the lock, the draft is returned with that lock, unless force replaces it. It
// needs the permission edit. Errors: errs.NotFound; errs.Forbidden.
func (s *Service) Edit(ctx context.Context, id string, force bool) (v Shown, err error) {
	a, err := actor.From(ctx)
	if err != nil {
		return Shown{}, err
	}
	err = s.store.InTx(ctx, func(ctx context.Context) error {
		named, err := s.head(ctx, a.Tenant, id)
		if err != nil {
			return err
		}
		if _, err := s.store.Hold(ctx, a.Tenant, []string{named.OwnerID}); err != nil { // who is to own the draft
			return err
		}
		app, grant, err := s.locked(ctx, a, named, toEdit)
		if err != nil {
			return err
		}
		d, err := s.store.Draft(ctx, a.Tenant, app.ID)
		switch {
		case errs.CodeOf(err) == errs.NotFound:
			d, err = s.begin(ctx, a, app)
		case err == nil:
			d, err = s.take(ctx, a, d, force)
		}
		if err != nil {
			return err
		}
		d.inherit(app)
		v, err = s.show(ctx, a, d, grant)
		return err
	})
	return v, err
}

// begin adds the draft of an app, locked by the actor.
func (s *Service) begin(ctx context.Context, a actor.Actor, app App) (App, error) {
	now := s.stamp()
	d := app
	d.ID, d.LibraryID, d.EditingID, d.CreatedAt, d.UpdatedAt = s.o.NewID(), s.o.NewID(), &app.ID, now, now
	d.Shared = false
	d.Lock, _ = d.Lock.Take(a, now, true)
	if err := s.reseal(&d, app); err != nil {
		return App{}, err
	}
	var err error
	if d.Base, err = s.base(ctx, app); err != nil {
		return App{}, err
	}
	if err := s.store.Insert(ctx, a.Tenant, d); err != nil {
		return App{}, err
	}
	return d, s.files.Copy(ctx, a.Tenant, app.LibraryID, d.LibraryID)
}

// take locks a draft for an actor. Without force, a lock of another credential stays.
func (s *Service) take(ctx context.Context, a actor.Actor, d App, force bool) (App, error) {
	lock, taken := d.Lock.Take(a, s.stamp(), force)
	if !taken {
		return d, nil
	}
	return s.store.Update(ctx, a.Tenant, Lookup{ID: d.ID}, func(d *App) error {
		d.Lock = lock
		return nil
	})
}

// base returns a digest of what a draft changes of an app: its definition and its files. Every change of a variable sets DefnUpdatedAt;
// the encrypted values change with the key of the program, too.
func (s *Service) base(ctx context.Context, app App) (string, error) {
	files, err := s.files.All(ctx, app.Tenant, app.LibraryID)
	if err != nil {
		return "", err
	}
	texts := make([]string, 0, 3*len(files))
	for _, f := range files {
		texts = append(texts, f.Path, f.ContentID, f.ContentType)
	}
	return guard.Version(app.Name, app.Slug, app.Description, app.Defn, app.DefnUpdatedAt, app.Settings, app.FolderID, app.Source, app.SourceID, versionOf(app.Datasets), texts), nil
}

// Commit publishes the draft of an app: the app gets its name, slug, description, definition, settings, folder, bindings, source and
// files, all or nothing, and the draft is gone. force publishes it over changes that were made to the app since the draft began, and with
// a manifest that cannot be read, which closes the app to all viewers. It needs the permission edit.
// Errors: errs.Invalid for a manifest that cannot be read, with line and column; errs.NotFound, also for an app without a draft; errs.Forbidden; errs.Conflict for a draft that somebody else edits, for an
// app that has changed, and for a slug that is taken by now.
func (s *Service) Commit(ctx context.Context, id string, force bool) (v Shown, err error) {
	a, err := actor.From(ctx)
	if err != nil {
		return Shown{}, err
	}
	err = s.store.InTx(ctx, func(ctx context.Context) error {
		app, grant, d, err := s.edited(ctx, a, id, toEdit)
		if err != nil {
			return err
		}
		base, err := s.base(ctx, app)
		if err != nil {
			return err
		}
		if base != d.Base && !force {
			return errs.New(errs.Conflict, "The app has changed since the draft began: see draft/diff, and publish over the changes with _commit?force=true.")
		}
		if !force {
			if err := s.checkManifest(ctx, d); err != nil {
				return err
			}
		}
		now := s.stamp()
		if err := s.files.Replace(ctx, a.Tenant, app.LibraryID, d.LibraryID); err != nil {
			return err
		}
		if err := s.remove(ctx, a.Tenant, []string{d.ID}); err != nil {
			return err
		}
		app, err = s.store.Update(ctx, a.Tenant, Lookup{ID: app.ID}, func(app *App) error { return s.publish(app, d, now) })
		if err != nil {
			return err
		}
		v, err = s.show(ctx, a, app, grant)
		return err
	})
	return v, err
}

// checkManifest returns errs.Invalid for a draft whose manifest cannot be read.
func (s *Service) checkManifest(ctx context.Context, d App) error {
	_, err := s.manifest(ctx, d)
	if errs.CodeOf(err) == errs.Conflict {
		return errs.New(errs.Invalid, "%s\nThe app could not be viewed with this manifest: correct it, or publish it as it is with _commit?force=true.", errs.MessageOf(err))
	}
	return err
}

// publish sets what a draft changes of its app.
func (s *Service) publish(app *App, d App, now time.Time) error {
	same, err := s.sameDefn(*app, d)
	if err != nil {
		return err
	}
	if !same {
		if err := s.reseal(app, d); err != nil {
			return err
		}
	}
	app.Name, app.Slug, app.Description, app.Defn, app.Settings = d.Name, d.Slug, d.Description, d.Defn, d.Settings
	app.FolderID, app.Datasets, app.Source, app.SourceID = d.FolderID, d.Datasets, d.Source, d.SourceID
	app.DefnUpdatedAt, app.UpdatedAt = &now, now
	return nil
}

// edited returns an app, on which the actor has a permission, with its draft, of which nobody but the actor holds the lock, and locks
// both rows.
func (s *Service) edited(ctx context.Context, a actor.Actor, id string, n need) (app App, grant shares.Grant, d App, err error) {
	named, err := s.head(ctx, a.Tenant, id)
	if err != nil {
		return app, grant, d, err
	}
	if app, grant, err = s.locked(ctx, a, named, n); err != nil {
		return app, grant, d, err
	}
	if d, err = s.store.LockDraft(ctx, a.Tenant, app.ID); err != nil {
		return app, grant, d, noDraft(err)
	}
	return app, grant, d, d.Lock.Check(a, s.stamp())
}

// Discard removes the draft of an app. It needs the permission write, so that a draft also goes after a deploy from another tenant has
// overwritten its app. Errors: errs.NotFound, also for an app without a draft;
// errs.Forbidden; errs.Conflict for a draft that somebody else edits.
func (s *Service) Discard(ctx context.Context, id string) error {
	a, err := actor.From(ctx)
	if err != nil {
		return err
	}
	return s.store.InTx(ctx, func(ctx context.Context) error {
		_, _, d, err := s.edited(ctx, a, id, toWrite)
		if err == nil {
			err = guard.Check(ctx, string(Kind), d)
		}
		if err != nil {
			return err
		}
		return s.remove(ctx, a.Tenant, []string{d.ID})
	})
}
