package drafts

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

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/drafts/libraries"
)

// Diff is what a draft changes.
type Diff struct {
	Files  []FileDiff  // ordered by path
	Fields []FieldDiff // in the order of the fields
}

// FileStatus is what a draft does with a file.
type FileStatus string

// What a draft does with a file.
const (
	Added    FileStatus = "added"
	Modified FileStatus = "modified"
	Deleted  FileStatus = "deleted"
)

// FileDiff is one file that a draft changes. The texts are nil where there is no such file, for one
// that is no UTF-8 text without NUL, or has more than 256 KiB, and for all beyond 4 MiB of them.
type FileDiff struct {
	Path          string
	Status        FileStatus
	Before, After *string
	Unified       *string // the difference of the texts as a unified diff
}

// FieldDiff is one field that a draft changes, as JSON; the value of a secret is entity.Mask.
type FieldDiff struct {
	Name          string // such as name, or defn.env.TOKEN
	Before, After json.RawMessage
}

// The most of a Diff.
const (
	maxDiffFile = 256 << 10 // bytes of a file
	maxDiff     = 4 << 20   // bytes of all texts before and after
)

// Field is a field of an entity and of its draft.
type Field struct {
	Name          string
	Before, After any
}

// FieldDiffs returns which of some fields differ as JSON.
func FieldDiffs(all []Field) ([]FieldDiff, error) {
	var differ []FieldDiff
	for _, f := range all {
		before, err := json.Marshal(f.Before)
		if err != nil {
			return nil, err
		}
		after, err := json.Marshal(f.After)
		if err != nil {
			return nil, err
		}
		if !bytes.Equal(before, after) {
			differ = append(differ, FieldDiff{f.Name, before, after})
		}
	}
	return differ, nil
}

// Changed returns the secrets that a draft has with another value than its entity has. Those that
// one of them does not have are left out.
func (s Secrets) Changed(f, draft Fields) ([]FieldDiff, error) {
	values, err := s.Open(f)
	if err != nil {
		return nil, err
	}
	drafted, err := s.Open(draft)
	if err != nil {
		return nil, err
	}
	var all []FieldDiff
	masked, _ := json.Marshal(entity.Mask)
	for _, name := range slices.Sorted(maps.Keys(drafted)) {
		if was, there := values[name]; there && was != drafted[name] {
			all = append(all, FieldDiff{s.Field + "." + name, masked, masked})
		}
	}
	return all, nil
}

// FileDiffs returns what a draft changes of the files of an entity.
func (r *Rules[T]) FileDiffs(ctx context.Context, e, d T) ([]FileDiff, error) {
	tenant, library, drafted := *r.fields(&e).Tenant, *r.fields(&e).LibraryID, *r.fields(&d).LibraryID
	before, err := r.o.Files.All(ctx, tenant, library)
	if err != nil {
		return nil, err
	}
	after, err := r.o.Files.All(ctx, tenant, drafted)
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
		if diff.Before, err = r.text(ctx, tenant, library, pair.before, &rest); err != nil {
			return nil, err
		}
		if diff.After, err = r.text(ctx, tenant, drafted, pair.after, &rest); err != nil {
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
func (r *Rules[T]) text(ctx context.Context, tenant, library string, f *libraries.File, rest *int64) (*string, error) {
	if f == nil || f.Size > maxDiffFile || f.Size > *rest {
		return nil, nil
	}
	_, content, err := r.o.Files.Open(ctx, tenant, library, f.Path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = content.Close() }()
	raw, err := io.ReadAll(content)
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
