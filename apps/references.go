package apps

import (
	"context"
	"slices"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/drafts"
	"github.com/tenantcontent/tenantcontent/internal/secure/guard"
	"github.com/tenantcontent/tenantcontent/internal/text/uuids"
)

// Tag is a tag of an app, by its id.
type Tag string

// Version is the same as long as the app has the tag.
func (t Tag) Version() string { return guard.Version(string(t)) }

// Tags returns the ids of the tags of an app that the caller sees, ordered. Errors: errs.NotFound.
func (s *Service) Tags(ctx context.Context, id string) ([]string, error) {
	app, err := s.seen(ctx, id)
	return app.Tags, err
}

// Datasets returns the datasets that an app is bound to which the caller sees, ordered by alias.
// Errors: errs.NotFound.
func (s *Service) Datasets(ctx context.Context, id string) ([]Dataset, error) {
	app, err := s.seen(ctx, id)
	return app.Datasets, err
}

// seen returns an app that the caller sees, without Defn.
func (s *Service) seen(ctx context.Context, id string) (App, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return App{}, err
	}
	app, _, err := s.rules.FindHead(ctx, a, id)
	return app, err
}

// PutTag adds a tag to an app. It needs the permission assignTags. Errors: errs.NotFound, also for
// a tag that is not there; errs.Forbidden; errs.Invalid for too many.
func (s *Service) PutTag(ctx context.Context, id, tag string) error {
	return s.changeBeside(ctx, id, toTag, func(ctx context.Context, who drafts.Caller, app *App) error {
		if app.EditingID != nil {
			return s.rules.IsDraft("tag the app itself")
		}
		key, at, err := findTag(ctx, *app, tag)
		switch {
		case err != nil || at >= 0:
			return err
		case len(app.Tags) == maxTags:
			return errs.New(errs.Invalid, "an app has at most %d tags", maxTags)
		}
		if err := s.rules.Known(
			ctx, who.Tenant, entity.Key{Kind: kindTag, ID: key},
		); errs.CodeOf(err) == errs.NotFound {
			return errTag
		} else if err != nil {
			return err
		}
		app.Tags = append(slices.Clone(app.Tags), key)
		slices.Sort(app.Tags)
		return nil
	})
}

// DeleteTag takes a tag off an app. It needs the permission assignTags. Errors: errs.NotFound, also
// for a tag that the app does not have; errs.Forbidden.
func (s *Service) DeleteTag(ctx context.Context, id, tag string) error {
	return s.changeBeside(ctx, id, toTag, func(ctx context.Context, _ drafts.Caller, app *App) error {
		_, at, err := findTag(ctx, *app, tag)
		if err != nil {
			return err
		}
		if at < 0 {
			return errTag
		}
		app.Tags = slices.Delete(slices.Clone(app.Tags), at, at+1)
		return nil
	})
}

var errTag = errs.New(errs.NotFound, "Tag not found.")

// findTag returns the id of a tag in lower case and its index among those of an app, or -1, and
// checks the condition of a write to it.
func findTag(ctx context.Context, app App, tag string) (id string, at int, err error) {
	id, ok := uuids.Parse(tag)
	if !ok {
		return "", -1, errTag
	}
	if at = slices.Index(app.Tags, id); at < 0 {
		return id, at, guard.Of(ctx, "app-tag").Missing()
	}
	return id, at, guard.Check(ctx, "app-tag", Tag(id))
}

// PutDataset binds an alias of an app to a dataset: edit gets the existing binding, or one that has
// only the alias. It needs the permission bind. Errors: errs.NotFound; errs.Forbidden; errs.Invalid
// naming the field, also for a dataset that does not exist.
func (s *Service) PutDataset(ctx context.Context, id, alias string, edit func(*Dataset)) (bound Dataset, err error) {
	err = s.changeBeside(ctx, id, toBind, func(ctx context.Context, who drafts.Caller, app *App) error {
		at, err := findDataset(ctx, *app, alias)
		if err != nil {
			return err
		}
		app.Datasets, bound = slices.Clone(app.Datasets), Dataset{Alias: alias}
		if at < 0 {
			at, app.Datasets = len(app.Datasets), append(app.Datasets, bound)
		}
		edit(&app.Datasets[at])
		bound = app.Datasets[at]
		if err := app.accept(); err != nil {
			return err
		}
		return s.knownDatasets(ctx, who.Tenant, []Dataset{bound})
	})
	return bound, err
}

// DeleteDataset removes the binding of an alias of an app. It needs the permission bind. Errors:
// errs.NotFound, also for an alias that is not bound; errs.Forbidden.
func (s *Service) DeleteDataset(ctx context.Context, id, alias string) error {
	return s.changeBeside(ctx, id, toBind, func(ctx context.Context, _ drafts.Caller, app *App) error {
		at, err := findDataset(ctx, *app, alias)
		if err != nil {
			return err
		}
		if at < 0 {
			return errs.New(errs.NotFound, "Dependency not found.")
		}
		app.Datasets = slices.Delete(slices.Clone(app.Datasets), at, at+1)
		return nil
	})
}

// findDataset returns the index of the binding of an alias, or -1, and checks the
// condition of a write to it.
func findDataset(ctx context.Context, app App, alias string) (int, error) {
	at := slices.IndexFunc(app.Datasets, func(d Dataset) bool { return d.Alias == alias })
	if at < 0 {
		return at, guard.Of(ctx, "app-dependency").Missing()
	}
	return at, guard.Check(ctx, "app-dependency", app.Datasets[at])
}
