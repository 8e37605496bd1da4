package apps

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/libraries"
)

// Diff is what a draft changes.
type Diff struct {
	Files  []FileDiff  // ordered by path
	Fields []FieldDiff // in the order of the app's fields
}

// FileStatus is what a draft does with a file.
type FileStatus string

// What a draft does with a file.
const (
	Added    FileStatus = "added"
	Modified FileStatus = "modified"
	Deleted  FileStatus = "deleted"
)

// FileDiff is one file that a draft changes. The texts are nil where there is no such file, for one that is no UTF-8 text without
// NUL, or has more than 256 KiB, and for all beyond 4 MiB of them.
type FileDiff struct {
	Path          string
	Status        FileStatus
	Before, After *string
	Unified       *string // the difference of the texts as a unified diff
}

// FieldDiff is one field that a draft changes, as JSON; the value of a variable is entity.Mask.
type FieldDiff struct {
	Name          string // such as name, or defn.env.TOKEN
	Before, After json.RawMessage
}

// The most of a Diff.
const (
	maxDiffFile = 256 << 10 // bytes of a file
	maxDiff     = 4 << 20   // bytes of all texts before and after
)

// Diff returns what the draft of an app changes. It is for those who may change the app. Errors: errs.NotFound, also for an app
// without a draft; errs.Forbidden.
func (s *Service) Diff(ctx context.Context, id string) (Diff, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return Diff{}, err
	}
	d, _, err := s.drafted(ctx, a, id)
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
	diff.Files, err = s.fileDiffs(ctx, app, d)
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

func (s *Service) fieldDiffs(app, d App) ([]FieldDiff, error) {
	var all []FieldDiff
	for _, f := range []struct {
		name          string
		before, after any
	}{
		{"name", app.Name, d.Name}, {"slug", app.Slug, d.Slug}, {"description", app.Description, d.Description}, {"defn", app.Defn, d.Defn},
		{"settings", app.Settings, d.Settings}, {"folderId", app.FolderID, d.FolderID}, {"datasets", listed(app.Datasets), listed(d.Datasets)},
		{"source", app.Source, d.Source}, {"sourceId", app.SourceID, d.SourceID},
	} {
		before, err := json.Marshal(f.before)
		if err != nil {
			return nil, err
		}
		after, err := json.Marshal(f.after)
		if err != nil {
			return nil, err
		}
		if !bytes.Equal(before, after) {
			all = append(all, FieldDiff{f.name, before, after})
		}
	}
	values, err := s.values(app)
	if err != nil {
		return nil, err
	}
	drafted, err := s.values(d)
	if err != nil {
		return nil, err
	}
	masked, _ := json.Marshal(entity.Mask)
	for _, name := range slices.Sorted(maps.Keys(drafted)) {
		if was, there := values[name]; there && was != drafted[name] { // a new one, or one less, is in defn
			all = append(all, FieldDiff{"defn.env." + name, masked, masked})
		}
	}
	return all, nil
}

// listed returns an empty list for nil, which JSON has as null.
func listed[T any](all []T) []T { return append([]T{}, all...) }

func (s *Service) fileDiffs(ctx context.Context, app, d App) ([]FileDiff, error) {
	before, err := s.files.All(ctx, app.Tenant, app.LibraryID)
	if err != nil {
		return nil, err
	}
	after, err := s.files.All(ctx, app.Tenant, d.LibraryID)
	if err != nil {
		return nil, err
	}
	var all []FileDiff
	rest := int64(maxDiff)
	for _, pair := range pairs(before, after) {
		diff := FileDiff{Path: pair.path, Status: Modified}
		switch {
		case pair.before == nil:
			diff.Status = Added
		case pair.after == nil:
			diff.Status = Deleted
		}
		if diff.Before, err = s.text(ctx, app.Tenant, app.LibraryID, pair.before, &rest); err != nil {
			return nil, err
		}
		if diff.After, err = s.text(ctx, app.Tenant, d.LibraryID, pair.after, &rest); err != nil {
			return nil, err
		}
		if (diff.Before != nil || pair.before == nil) && (diff.After != nil || pair.after == nil) {
			unified := udiff.Unified("a/"+pair.path, "b/"+pair.path, orEmpty(diff.Before), orEmpty(diff.After))
			diff.Unified = &unified
		}
		all = append(all, diff)
	}
	return all, nil
}

func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// pair is a path whose file differs; nil is no file.
type pair struct {
	path          string
	before, after *libraries.File
}

// pairs returns what differs between two lists of files that are ordered by path.
func pairs(before, after []libraries.File) []pair {
	var all []pair
	for len(before) > 0 || len(after) > 0 {
		order := 0
		switch {
		case len(before) == 0:
			order = 1
		case len(after) == 0:
			order = -1
		default:
			order = strings.Compare(before[0].Path, after[0].Path)
		}
		switch {
		case order < 0:
			all, before = append(all, pair{path: before[0].Path, before: &before[0]}), before[1:]
		case order > 0:
			all, after = append(all, pair{path: after[0].Path, after: &after[0]}), after[1:]
		default:
			if before[0].ContentID != after[0].ContentID || before[0].ContentType != after[0].ContentType {
				all = append(all, pair{before[0].Path, &before[0], &after[0]})
			}
			before, after = before[1:], after[1:]
		}
	}
	return all
}

// text returns the text of a file, nil for none, and takes its bytes from rest.
func (s *Service) text(ctx context.Context, tenant, library string, f *libraries.File, rest *int64) (*string, error) {
	if f == nil || f.Size > maxDiffFile || f.Size > *rest {
		return nil, nil
	}
	_, r, err := s.files.Open(ctx, tenant, library, f.Path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	raw, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	if !utf8.Valid(raw) || bytes.IndexByte(raw, 0) >= 0 {
		return nil, nil
	}
	*rest -= f.Size
	text := string(raw)
	return &text, nil
}
