package apps

import (
	"context"
	"maps"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/internal/drafts"
)

// Diff is what a draft changes.
type Diff = drafts.Diff

// Diff returns what the draft of an app changes. The caller must be allowed to change the app.
// Errors: errs.NotFound, also for an app without a draft; errs.Forbidden.
func (s *Service) Diff(ctx context.Context, id string) (Diff, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return Diff{}, err
	}
	d, _, err := s.rules.Draft(ctx, a, id)
	if err != nil {
		return Diff{}, err
	}
	app, err := s.store.Get(ctx, a.Tenant, Lookup{ID: *d.EditingID})
	if err != nil {
		return Diff{}, err
	}
	var diff Diff
	if diff.Fields, err = s.fieldDiffs(app, d); err != nil {
		return Diff{}, err
	}
	diff.Files, err = s.rules.FileDiffs(ctx, app, d)
	return diff, err
}

// sameDefn reports whether two apps have the same definition, with the same values of variables.
func (s *Service) sameDefn(a, b App) (bool, error) {
	if string(a.Defn) != string(b.Defn) {
		return false, nil
	}
	one, err := s.values(a)
	if err != nil {
		return false, err
	}
	other, err := s.values(b)
	return maps.Equal(one, other), err
}

// fieldDiffs returns the fields that a draft changes; a variable that is new, or one less, is in
// defn.
func (s *Service) fieldDiffs(app, d App) ([]drafts.FieldDiff, error) {
	all, err := drafts.FieldDiffs([]drafts.Field{
		{Name: "name", Before: app.Name, After: d.Name}, {Name: "slug", Before: app.Slug, After: d.Slug},
		{Name: "description", Before: app.Description, After: d.Description},
		{Name: "defn", Before: app.Defn, After: d.Defn},
		{Name: "settings", Before: app.Settings, After: d.Settings},
		{Name: "folderId", Before: app.FolderID, After: d.FolderID},
		{Name: "datasets", Before: listed(app.Datasets), After: listed(d.Datasets)},
		{Name: "source", Before: app.Source, After: d.Source},
		{Name: "sourceId", Before: app.SourceID, After: d.SourceID},
	})
	if err != nil {
		return nil, err
	}
	changed, err := s.env.Changed(app.fields(), d.fields())
	return append(all, changed...), err
}

// listed returns an empty list for nil, which JSON has as null.
func listed[T any](all []T) []T { return append([]T{}, all...) }
