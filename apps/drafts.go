package apps

import (
	"context"
	"time"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/secure/guard"
)

// digest changes with everything of an app that a draft changes, but the files. Every change of a
// variable sets DefnUpdatedAt; the encrypted values change with the key of the program, too.
func digest(app App) string {
	return guard.Version(
		app.Name, app.Slug, app.Description, app.Defn, app.DefnUpdatedAt, app.Settings, app.FolderID,
		app.Source, app.SourceID, versionOf(app.Datasets),
	)
}

// Commit publishes the draft of an app: the app gets its name, slug, description, definition,
// settings, folder, bindings, source and files, all or nothing, and the draft is gone. It compiles
// the handlers of the draft and runs its pending migrations before, as Deploy does, and the app
// runs these handlers from then on. o.Force publishes it over changes that were made to the app
// since the draft began, and with a manifest that cannot be read, which closes the app to all
// viewers. It needs the permission edit. Errors: errs.Invalid for a manifest that cannot be read, a
// handler or a migration that is wrong, with file and line; errs.NotFound, also for an app without
// a draft; errs.Forbidden; errs.Conflict for a draft that somebody else edits, for an app that has
// changed, and for a slug that is taken by now.
func (s *Service) Commit(ctx context.Context, id string, o PublishOptions) (v Shown, err error) {
	a, err := actor.From(ctx)
	if err != nil {
		return Shown{}, err
	}
	d, _, err := s.rules.Draft(ctx, a, id)
	if err != nil {
		return Shown{}, err
	}
	p, err := s.prepare(ctx, App{Tenant: a.Tenant, ID: *d.EditingID}, d, o, func() error {
		// which may take seconds, and so comes before the transaction
		return s.store.InTx(ctx, func(ctx context.Context) error {
			_, _, _, err := s.committable(ctx, a, id, o.Force)
			return err
		})
	})
	if err != nil {
		return Shown{}, err
	}
	of := entity.Subject{Kind: Kind, ID: *d.EditingID, Action: entity.ActionDeploy}
	err = s.o.Feed.In(ctx, s.store.InTx, a.Tenant, of, func(ctx context.Context) error {
		app, grant, d, err := s.committable(ctx, a, id, o.Force)
		if err != nil {
			return err
		}
		if err := s.install(ctx, app, d.LibraryID, p); err != nil {
			return err
		}
		now := s.rules.Stamp()
		app, err = s.rules.Publish(ctx, app, d, func(app *App) error {
			app.deployedBy(a)
			return s.publish(app, d, now)
		})
		if err == nil {
			err = s.deployManifest(ctx, app)
		}
		if err != nil {
			return err
		}
		v, err = s.presenter.One(ctx, a, app, grant)
		v.Deployed = &p.Deployed
		return err
	})
	return v, err
}

// committable is Committable for a draft whose manifest can be read, too.
func (s *Service) committable(
	ctx context.Context, a actor.Actor, id string, force bool,
) (app App, grant Grant, d App, err error) {
	if app, grant, d, err = s.rules.Committable(ctx, a, id, force); err != nil || force {
		return app, grant, d, err
	}
	return app, grant, d, s.checkManifest(ctx, d)
}

// checkManifest returns errs.Invalid for a draft whose manifest cannot be read.
func (s *Service) checkManifest(ctx context.Context, d App) error {
	_, err := s.nextManifest(ctx, d.Tenant, d.LibraryID)
	if errs.CodeOf(err) == errs.Conflict {
		return errs.New(
			errs.Invalid,
			"%s\nThe app could not be viewed with this manifest: correct it, or publish it as it is with "+
				"_commit?force=true.",
			errs.MessageOf(err),
		)
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
		if err := s.env.Copy(app.fields(), d.fields()); err != nil {
			return err
		}
	}
	app.Name, app.Slug, app.Description, app.Defn, app.Settings = d.Name, d.Slug, d.Description, d.Defn, d.Settings
	app.FolderID, app.Datasets, app.Source, app.SourceID = d.FolderID, d.Datasets, d.Source, d.SourceID
	app.DefnUpdatedAt, app.DeployedAt, app.UpdatedAt = &now, &now, now
	return nil
}
