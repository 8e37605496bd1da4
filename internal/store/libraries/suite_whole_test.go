package bunstore_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/drafts/libraries"
)

func all(t *testing.T, s libraries.Store, tenant, library string) []libraries.File {
	t.Helper()
	files, err := s.All(t.Context(), tenant, library)
	is.New(t).NoErr(err)
	return files
}

// edited returns a file with another content, written at a time.
func edited(f libraries.File, content string, at time.Time) libraries.File {
	f.ContentID, f.SHA256, f.UpdatedAt = "c-"+content, "s-"+content, at
	return f
}

func testCopy(t *testing.T, s libraries.Store) {
	is, ctx := is.New(t), t.Context()
	old := file("dir/Ä")
	old.SHA256, old.CreatedAt, old.UpdatedAt = "", monday.Add(-time.Hour), tuesday // from before digests were stored
	is.NoErr(name(ctx, s, "acme", "l1", old))
	put(t, s, "l1", file("a"), file("b"))
	put(t, s, "l3", file("else"))
	is.NoErr(s.Copy(ctx, "acme", "l1", "l2"))
	is.Equal(all(t, s, "acme", "l2"), all(t, s, "acme", "l1"))
	is.Equal(paths(t, s, "acme", "l1"), []string{"a", "b", "dir/Ä"})
	is.Equal(errs.CodeOf(name(ctx, s, "acme", "l2", file("DIR/ä"))), errs.Conflict) // copies are checked, too
	is.Equal(errs.CodeOf(s.Copy(ctx, "acme", "l1", "l2")), errs.Conflict)           // the library has files
	is.NoErr(s.Copy(ctx, "acme", "none", "l4"))
	is.Equal(paths(t, s, "acme", "l4"), []string{})

	is.NoErr(s.Remove(ctx, "acme", []string{"l1"}, monday))
	is.Equal(release(t, s, friday), nil) // the copy uses the contents
	is.Equal(paths(t, s, "acme", "l2"), []string{"a", "b", "dir/Ä"})
	is.NoErr(s.Remove(ctx, "acme", []string{"l2"}, monday))
	is.Equal(release(t, s, friday), []string{"c-a", "c-b"})
}

// testReplace: a library gets the files of another one, and keeps its rows of equal files.
func testReplace(t *testing.T, s libraries.Store) {
	is, ctx := is.New(t), t.Context()
	put(
		t, s, "app", file("same"), file("edited"), file("typed"), file("gone"), file("Case"), file("folder"),
		file("moved"),
	)
	put(t, s, "other", file("gone"), file("app"))
	is.NoErr(s.Copy(ctx, "acme", "app", "draft"))
	again := edited(file("same"), "same", tuesday) // written again with the same content
	again.CreatedAt = tuesday
	typed := file("typed")
	typed.ContentType, typed.UpdatedAt = "text/html", tuesday
	for _, path := range []string{"gone", "Case", "folder", "moved", "same"} {
		is.NoErr(s.Delete(ctx, "acme", "draft", path, tuesday))
	}
	changes := []libraries.File{
		edited(file("case"), "Case", tuesday),
		edited(file("edited"), "fresh", tuesday), edited(file("folder/new"), "new", tuesday),
		edited(file("to"), "moved", tuesday), typed,
	}
	put(t, s, "draft", append(changes, again)...)
	is.NoErr(s.Replace(ctx, "acme", "app", "draft", tuesday))
	is.Equal(all(t, s, "acme", "app"), []libraries.File{
		changes[0], changes[1], changes[2], file("same"), changes[3], changes[4],
	})
	is.Equal(paths(t, s, "acme", "draft"), []string{})
	is.Equal(paths(t, s, "acme", "other"), []string{"app", "gone"})
	is.Equal(release(t, s, tuesday), nil)                             // they may still be read
	is.Equal(release(t, s, friday), []string{"c-edited", "c-folder"}) // all others have a file

	is.NoErr(s.Replace(ctx, "acme", "app", "draft", tuesday)) // by an empty one
	is.Equal(paths(t, s, "acme", "app"), []string{})
	is.NoErr(s.Replace(ctx, "acme", "app", "other", tuesday)) // of an empty one
	is.Equal(all(t, s, "acme", "app"), []libraries.File{file("app"), file("gone")})
	is.Equal(paths(t, s, "acme", "other"), []string{})
	is.NoErr(s.Forget(ctx, "acme", []string{"c-edited", "c-folder"}))
	is.Equal(release(t, s, friday), []string{"c-Case", "c-fresh", "c-moved", "c-new", "c-same", "c-typed"})
}

// testReplaceAny: after operations on random libraries exactly the expected files and contents
// exist.
func testReplaceAny(t *testing.T, s libraries.Store) {
	is, ctx, random := is.New(t), t.Context(), rand.New(rand.NewPCG(10, 4))
	names := []string{"a", "A", "a/b", "b", "b/C", "b/c"}
	for round := range 30 {
		library, by := fmt.Sprint("library", round), fmt.Sprint("by", round)
		for _, l := range []string{library, by} {
			for _, path := range names {
				if random.IntN(2) == 0 {
					continue
				}
				f := edited(
					file(path), fmt.Sprint(random.IntN(3)),
					monday.Add(time.Duration(random.IntN(100))*time.Second),
				)
				err := s.InTx(ctx, func(ctx context.Context) error { // without the content if the path clashes
					_, err := s.Add(ctx, "acme", libraries.Content{ID: f.ContentID, SHA256: f.SHA256, Size: f.Size})
					is.NoErr(err)
					return name(ctx, s, "acme", l, f)
				})
				is.True(err == nil || errs.CodeOf(err) == errs.Conflict)
			}
		}
		was, want := map[string]libraries.File{}, all(t, s, "acme", by)
		for _, f := range all(t, s, "acme", library) {
			was[f.Path] = f
		}
		for i, f := range want {
			if old, ok := was[f.Path]; ok && old.Version() == f.Version() {
				want[i] = old
			}
		}
		is.NoErr(s.Replace(ctx, "acme", library, by, tuesday))
		is.Equal(all(t, s, "acme", library), want)
		is.Equal(paths(t, s, "acme", by), []string{})
		is.NoErr(s.Remove(ctx, "acme", []string{library}, tuesday))
		is.NoErr(s.Forget(ctx, "acme", release(t, s, friday)))
		for content := range 3 {
			id, err := s.Hold(ctx, "acme", fmt.Sprint("s-", content))
			is.NoErr(err)
			is.Equal(id, "") // freed
		}
	}
}

func testModified(t *testing.T, s libraries.Store) {
	is, ctx := is.New(t), t.Context()
	late := file("b")
	late.UpdatedAt = tuesday
	put(t, s, "l1", file("a"), late, file("c"))
	put(t, s, "l2", file("a"))
	put(t, s, "l3", edited(file("x"), "x", friday))
	got, err := s.Modified(ctx, "acme", []string{"l1", "l2", "none", "l1"})
	is.NoErr(err)
	is.Equal(got, map[string]time.Time{"l1": tuesday, "l2": monday})
	got, err = s.Modified(ctx, "acme", nil)
	is.NoErr(err)
	is.Equal(len(got), 0)
	is.NoErr(s.Delete(ctx, "acme", "l1", "b", friday))
	got, err = s.Modified(ctx, "acme", []string{"l1"})
	is.NoErr(err)
	is.Equal(got, map[string]time.Time{"l1": monday})
}

// testWholeIsolation: Copy, Replace and Modified do not access other tenants.
func testWholeIsolation(t *testing.T, s libraries.Store) {
	is, ctx := is.New(t), t.Context()
	put(t, s, "l1", file("a"), file("b"))
	put(t, s, "l2", file("b"), file("c"))
	is.NoErr(s.Copy(ctx, "evil", "l1", "l3"))
	is.Equal(paths(t, s, "evil", "l3"), []string{})
	theirs := file("a")
	theirs.UpdatedAt = friday
	is.NoErr(name(ctx, s, "evil", "l1", theirs))
	is.NoErr(s.Copy(ctx, "evil", "l1", "l2"))
	is.NoErr(s.Replace(ctx, "evil", "l1", "l2", tuesday))
	is.NoErr(s.Replace(ctx, "evil", "l1", "none", tuesday))
	is.Equal(paths(t, s, "evil", "l1"), []string{})
	is.NoErr(name(ctx, s, "evil", "l1", theirs))
	is.Equal(paths(t, s, "acme", "l1"), []string{"a", "b"})
	is.Equal(paths(t, s, "acme", "l2"), []string{"b", "c"})
	is.Equal(release(t, s, friday), nil)
	got, err := s.Modified(ctx, "acme", []string{"l1"})
	is.NoErr(err)
	is.Equal(got, map[string]time.Time{"l1": monday})
	got, err = s.Modified(ctx, "evil", []string{"l1", "l2"})
	is.NoErr(err)
	is.Equal(got, map[string]time.Time{"l1": friday})
}

// testWholeFailedTx: a failed transaction copies and replaces nothing.
func testWholeFailedTx(t *testing.T, s libraries.Store) {
	is, fault := is.New(t), errors.New("fault")
	put(t, s, "l1", file("a"), file("b"))
	put(t, s, "l2", file("b"), file("c"))
	err := s.InTx(t.Context(), func(ctx context.Context) error {
		is.NoErr(s.Replace(ctx, "acme", "l1", "l2", tuesday))
		is.NoErr(s.Copy(ctx, "acme", "l1", "l3"))
		return fault
	})
	is.Equal(err, fault)
	is.Equal(strings.Join(paths(t, s, "acme", "l1"), ""), "ab")
	is.Equal(strings.Join(paths(t, s, "acme", "l2"), ""), "bc")
	is.Equal(paths(t, s, "acme", "l3"), []string{})
	is.Equal(release(t, s, friday), nil)
}
