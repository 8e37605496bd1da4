package bunstore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/drafts/libraries"
	"github.com/tenantcontent/tenantcontent/internal/testkit/fieldtest"
	"github.com/tenantcontent/tenantcontent/internal/testkit/pagingtest"
	"github.com/tenantcontent/tenantcontent/paging"
)

var (
	monday  = time.Date(2026, 11, 16, 9, 0, 0, 123456000, time.UTC)
	tuesday = monday.Add(24 * time.Hour)
	friday  = monday.Add(4 * 24 * time.Hour)
)

// testStore runs all checks. open returns an empty Store whose database has the tenants acme and
// evil.
func testStore(t *testing.T, open func(t *testing.T) libraries.Store) {
	for name, check := range map[string]func(*testing.T, libraries.Store){
		"RoundTrip":          testRoundTrip,
		"Pages":              testPages,
		"Clashes":            testClashes,
		"Remove":             testRemove,
		"Copy":               testCopy,
		"Replace":            testReplace,
		"ReplaceAny":         testReplaceAny,
		"Modified":           testModified,
		"WholeIsolation":     testWholeIsolation,
		"WholeFailedTx":      testWholeFailedTx,
		"Contents":           testContents,
		"Unshare":            testUnshare,
		"Release":            testRelease,
		"ReleaseAgain":       testReleaseAgain,
		"ReleaseUsed":        testReleaseUsed,
		"HeldStays":          testHeldStays,
		"ParallelContents":   testParallelContents,
		"Isolation":          testIsolation,
		"FailedTxWritesNone": testFailedTx,
		"CanceledWritesNone": testCanceled,
	} {
		t.Run(name, func(t *testing.T) { check(t, open(t)) })
	}
}

// file returns a file whose path is also the id of its content.
func file(path string) libraries.File {
	return libraries.File{
		Path:        path,
		ContentID:   "c-" + path,
		SHA256:      "s-" + path,
		Size:        5,
		ContentType: "text/plain",
		CreatedAt:   monday,
		UpdatedAt:   monday,
	}
}

// put stores files in a library of acme, and adds their contents if they do not exist.
func put(t *testing.T, s libraries.Store, library string, all ...libraries.File) {
	t.Helper()
	is := is.New(t)
	for _, f := range all {
		_, err := s.Add(t.Context(), "acme", libraries.Content{ID: f.ContentID, SHA256: f.SHA256, Size: f.Size})
		is.NoErr(err)
		is.NoErr(name(t.Context(), s, "acme", library, f))
	}
}

// name calls Name and returns only its error.
func name(ctx context.Context, s libraries.Store, tenant, library string, f libraries.File) error {
	_, err := s.Put(ctx, tenant, library, f)
	return err
}

func paths(t *testing.T, s libraries.Store, tenant, library string) []string {
	t.Helper()
	all, err := s.All(t.Context(), tenant, library)
	is.New(t).NoErr(err)
	found := []string{}
	for _, f := range all {
		found = append(found, f.Path)
	}
	return found
}

func testRoundTrip(t *testing.T, s libraries.Store) {
	is, ctx := is.New(t), t.Context()
	want := []libraries.File{
		{
			Path:        "a.txt",
			ContentID:   "b1",
			SHA256:      strings.Repeat("0a", 32),
			Size:        5,
			ContentType: "text/plain; charset=utf-8",
			CreatedAt:   monday,
			UpdatedAt:   monday,
		},
		{
			Path:        "dir/ü 100%.js",
			ContentID:   "b2",
			Size:        1 << 40,
			ContentType: "text/javascript",
			CreatedAt:   monday,
			UpdatedAt:   tuesday,
		},
		{
			Path:        strings.Repeat("x", 1024),
			ContentID:   "b3",
			SHA256:      "1",
			ContentType: "a/b",
			CreatedAt:   monday,
			UpdatedAt:   monday,
		},
	}
	fieldtest.Full(t, want[0])
	for _, f := range want {
		is.NoErr(name(ctx, s, "acme", "l1", f))
		got, err := s.File(ctx, "acme", "l1", f.Path)
		is.NoErr(err)
		is.Equal(got, f)
	}
	all, err := s.All(ctx, "acme", "l1")
	is.NoErr(err)
	is.Equal(all, want)

	fresh := libraries.File{
		Path:        "a.txt",
		ContentID:   "b4",
		SHA256:      "2",
		Size:        6,
		ContentType: "text/x",
		CreatedAt:   tuesday,
		UpdatedAt:   tuesday,
	}
	put, err := s.Put(ctx, "acme", "l1", fresh)
	is.NoErr(err)
	got, err := s.File(ctx, "acme", "l1", "a.txt")
	is.NoErr(err)
	fresh.CreatedAt = monday // the creation time of the path does not change
	is.Equal(got, fresh)
	is.Equal(put, fresh)
	is.NoErr(s.Delete(ctx, "acme", "l1", "a.txt", tuesday))
	is.Equal(errs.CodeOf(s.Delete(ctx, "acme", "l1", "a.txt", tuesday)), errs.NotFound)
	_, err = s.File(ctx, "acme", "l1", "a.txt")
	is.Equal(errs.CodeOf(err), errs.NotFound)
	_, err = s.File(ctx, "acme", "l2", want[1].Path)
	is.Equal(errs.CodeOf(err), errs.NotFound)
}

func testPages(t *testing.T, s libraries.Store) {
	is, ctx := is.New(t), t.Context()
	late := file("dir/b")
	late.UpdatedAt = tuesday
	put(t, s, "l1", file("a.txt"), late, file("c"))
	page, err := s.Page(ctx, "acme", "l1", paging.Query{Limit: 2, Sort: "-updatedAt"})
	is.NoErr(err)
	is.Equal(page.Total, 3)
	is.Equal(page.Rows[0], late)
	page, err = s.Page(ctx, "acme", "l1", paging.Query{
		Limit: 2,
		Start: 1,
		After: &paging.Position{Value: "a.txt", Key: "a.txt"},
	})
	is.NoErr(err)
	is.Equal(page.Rows, []libraries.File{file("c"), late})
	files := func(ctx context.Context, q paging.Query) (paging.Page[libraries.File], error) {
		return s.Page(ctx, "acme", "l1", q)
	}
	pagingtest.TestBytes(t, files)
	byPath := func(a, b libraries.File) int { return strings.Compare(a.Path, b.Path) }
	pagingtest.TestOrder(t, files, "path", byPath, map[string]func(a, b libraries.File) int{
		"path":      byPath,
		"updatedAt": func(a, b libraries.File) int { return a.UpdatedAt.Compare(b.UpdatedAt) },
	})
}

func testClashes(t *testing.T, s libraries.Store) {
	is, ctx := is.New(t), t.Context()
	for _, path := range []string{"src/Main.js", "readme", "dir/sub/a", "dir-x", "dir.x", "dir0", "b%"} {
		is.NoErr(name(ctx, s, "acme", "l1", file(path)))
	}
	for _, path := range []string{
		"src/main.js", "SRC/Main.js", "README", "src", "SRC", "readme/x", "Readme/x/y", "dir", "dir/sub",
		"DIR/Sub/A/b",
	} {
		is.Equal(errs.CodeOf(name(ctx, s, "acme", "l1", file(path))), errs.Conflict)
	}
	for _, path := range []string{"src/Main.js", "src/main.jsx", "readme.md", "read", "dir/sub/b", "dir/su", "bx"} {
		is.NoErr(name(ctx, s, "acme", "l1", file(path)))
	}
	is.NoErr(name(ctx, s, "acme", "l2", file("README"))) // another library
}

func testRemove(t *testing.T, s libraries.Store) {
	is, ctx := is.New(t), t.Context()
	put(t, s, "l1", file("a"), file("b"))
	put(t, s, "l2", file("a"), file("c"))
	put(t, s, "l3", file("d"))
	is.NoErr(s.Remove(ctx, "acme", []string{"l1", "l2", "l7"}, tuesday))
	is.NoErr(s.Remove(ctx, "acme", nil, tuesday))
	is.Equal(paths(t, s, "acme", "l1"), []string{})
	is.Equal(paths(t, s, "acme", "l2"), []string{})
	is.Equal(paths(t, s, "acme", "l3"), []string{"d"})
	is.Equal(release(t, s, friday), []string{"c-a", "c-b", "c-c"})
}

// release returns, ordered, what Release returns for contents that it has found before.
func release(t *testing.T, s libraries.Store, before time.Time) []string {
	t.Helper()
	is := is.New(t)
	_, _, err := s.Release(t.Context(), "acme", before, before.Add(-time.Microsecond), 100)
	is.NoErr(err)
	ids, _, err := s.Release(t.Context(), "acme", before, before, 100)
	is.NoErr(err)
	slices.Sort(ids)
	return ids
}

func testContents(t *testing.T, s libraries.Store) {
	is, ctx := is.New(t), t.Context()
	id, err := s.Hold(ctx, "acme", "s1")
	is.NoErr(err)
	is.Equal(id, "")
	for _, c := range []libraries.Content{{ID: "c1", SHA256: "s1", Size: 1 << 40}, {ID: "c2", SHA256: "s2"}} {
		added, err := s.Add(ctx, "acme", c)
		is.NoErr(err)
		is.True(added)
	}
	added, err := s.Add(ctx, "acme", libraries.Content{ID: "c3", SHA256: "s1", Size: 1 << 40})
	is.NoErr(err)
	is.True(!added)
	id, err = s.Hold(ctx, "acme", "s1")
	is.NoErr(err)
	is.Equal(id, "c1")
}

// testUnshare: a content that is no longer shared can be added again. A content without a digest is
// never shared. A transaction can forget a content that it has added.
func testUnshare(t *testing.T, s libraries.Store) {
	is, ctx := is.New(t), t.Context()
	put(t, s, "l1", file("a"))
	is.NoErr(s.Unshare(ctx, "evil", "c-a"))
	id, err := s.Hold(ctx, "acme", "s-a")
	is.NoErr(err)
	is.Equal(id, "c-a")
	is.NoErr(s.Unshare(ctx, "acme", "c-a"))
	is.NoErr(s.Unshare(ctx, "acme", "none"))
	for _, c := range []libraries.Content{{ID: "c-2", SHA256: "s-a"}, {ID: "c-3"}, {ID: "c-4"}} {
		added, err := s.Add(ctx, "acme", c)
		is.NoErr(err)
		is.True(added)
	}
	id, err = s.Hold(ctx, "acme", "s-a")
	is.NoErr(err)
	is.Equal(id, "c-2")
	is.NoErr(s.InTx(ctx, func(ctx context.Context) error {
		added, err := s.Add(ctx, "acme", libraries.Content{ID: "c-5", SHA256: "s-5"})
		is.NoErr(err)
		is.True(added)
		return s.Forget(ctx, "acme", []string{"c-5"})
	}))
	id, err = s.Hold(ctx, "acme", "s-5")
	is.NoErr(err)
	is.Equal(id, "")
}

// testRelease: a content is released after its last file is deleted.
func testRelease(t *testing.T, s libraries.Store) {
	is, ctx := is.New(t), t.Context()
	put(t, s, "l1", file("a"), file("b"), file("stays"))
	shared := file("other")
	shared.ContentID, shared.SHA256 = "c-a", "s-a"
	put(t, s, "l2", shared)
	is.NoErr(s.Delete(ctx, "acme", "l1", "a", monday)) // the other library uses the content
	fresh := file("b")
	fresh.ContentID, fresh.SHA256, fresh.UpdatedAt = "c-fresh", "s-fresh", tuesday
	put(t, s, "l1", fresh)
	touched := file("stays") // with its old content
	touched.UpdatedAt = tuesday
	put(t, s, "l1", touched)

	is.Equal(release(t, s, monday), nil) // too early
	is.Equal(release(t, s, friday), []string{"c-b"})
	id, err := s.Hold(ctx, "acme", "s-b")
	is.NoErr(err)
	is.Equal(id, "") // it cannot be used any more
	is.NoErr(s.Forget(ctx, "acme", []string{"c-b"}))
	is.Equal(release(t, s, friday), nil)
	added, err := s.Add(ctx, "acme", libraries.Content{ID: "c-b2", SHA256: "s-b"})
	is.NoErr(err)
	is.True(added)

	is.NoErr(s.Delete(ctx, "acme", "l2", "other", tuesday))
	is.Equal(release(t, s, friday), []string{"c-a"})
	for _, sha256 := range []string{"s-fresh", "s-stays"} {
		id, err := s.Hold(ctx, "acme", sha256)
		is.NoErr(err)
		is.True(id != "")
	}
}

// testReleaseAgain: contents that were released before a crash are returned again until they are
// forgotten. Release returns at most n.
func testReleaseAgain(t *testing.T, s libraries.Store) {
	is, ctx := is.New(t), t.Context()
	for i := range 5 {
		put(t, s, "l1", file(fmt.Sprint(i)))
	}
	is.NoErr(s.Remove(ctx, "acme", []string{"l1"}, monday))
	for _, want := range []int{2, 2, 1, 0} { // found
		ids, looked, err := s.Release(ctx, "acme", tuesday, tuesday, 2)
		is.NoErr(err)
		is.Equal(len(ids), 0) // their readers have begun by then
		is.Equal(looked, want)
	}
	seen := map[string]bool{}
	for _, want := range []int{2, 2, 1, 0} {
		ids, looked, err := s.Release(ctx, "acme", friday, friday, 2)
		is.NoErr(err)
		is.Equal(looked, want)
		again, _, err := s.Release(ctx, "acme", friday, friday, 2)
		is.NoErr(err)
		slices.Sort(ids)
		slices.Sort(again)
		is.Equal(ids, again)
		is.Equal(len(ids), want)
		for _, id := range ids {
			is.True(!seen[id])
			seen[id] = true
		}
		is.NoErr(s.Forget(ctx, "acme", ids))
	}
	is.Equal(len(seen), 5)
}

// testReleaseUsed: contents that other files use are checked once, and counted.
func testReleaseUsed(t *testing.T, s libraries.Store) {
	is, ctx := is.New(t), t.Context()
	for i := range 3 {
		put(t, s, "l1", file(fmt.Sprint(i)))
		put(t, s, "l2", file(fmt.Sprint(i)))
	}
	put(t, s, "l3", file("unused"))
	is.NoErr(s.Remove(ctx, "acme", []string{"l2"}, monday))
	is.NoErr(s.Remove(ctx, "acme", []string{"l3"}, tuesday))
	for _, want := range []int{2, 2, 0} {
		ids, looked, err := s.Release(ctx, "acme", friday, friday, 2)
		is.NoErr(err)
		is.Equal(len(ids), 0)
		is.Equal(looked, want)
	}
	is.Equal(release(t, s, friday.Add(time.Hour)), []string{"c-unused"})
}

// testHeldStays: a content that a transaction holds is not released, even after that transaction
// has stored a file with it.
func testHeldStays(t *testing.T, s libraries.Store) {
	is, ctx := is.New(t), t.Context()
	put(t, s, "l1", file("a"))
	is.NoErr(s.Delete(ctx, "acme", "l1", "a", monday))
	held, sweep := make(chan bool), make(chan error, 1)
	go func() {
		<-held
		ids, _, err := s.Release(ctx, "acme", friday, tuesday, 100) // on SQLite it waits for the only writer
		sweep <- errors.Join(err, expect(len(ids) == 0, "released %q", ids))
	}()
	err := s.InTx(ctx, func(ctx context.Context) error {
		id, err := s.Hold(ctx, "acme", "s-a")
		is.NoErr(err)
		is.Equal(id, "c-a")
		close(held)
		time.Sleep(20 * time.Millisecond) // so that Release runs; the result must be the same either way
		return name(ctx, s, "acme", "l2", file("a"))
	})
	is.NoErr(err)
	is.NoErr(<-sweep)
	is.Equal(release(t, s, friday), nil)
	is.Equal(paths(t, s, "acme", "l2"), []string{"a"})
}

func expect(ok bool, format string, args ...any) error {
	if ok {
		return nil
	}
	return fmt.Errorf(format, args...)
}

// testParallelContents: of many concurrent calls that add equal bytes, one shares its content. The
// others use it or their own.
func testParallelContents(t *testing.T, s libraries.Store) {
	is, ctx := is.New(t), t.Context()
	var all sync.WaitGroup
	results := make(chan error, 10)
	for i := range 10 {
		all.Go(func() {
			results <- s.InTx(ctx, func(ctx context.Context) error {
				f := file(fmt.Sprint(i))
				f.SHA256 = "same"
				added, err := s.Add(ctx, "acme", libraries.Content{ID: f.ContentID, SHA256: f.SHA256})
				if err != nil {
					return err
				}
				if !added {
					if f.ContentID, err = s.Hold(ctx, "acme", f.SHA256); err != nil {
						return err
					}
				}
				return name(ctx, s, "acme", fmt.Sprint("l", i), f)
			})
		})
	}
	all.Wait()
	shared, err := s.Hold(ctx, "acme", "same")
	is.NoErr(err)
	is.True(shared != "")
	for i := range 10 {
		is.NoErr(<-results)
		f, err := s.File(ctx, "acme", fmt.Sprint("l", i), fmt.Sprint(i))
		is.NoErr(err)
		is.True(f.ContentID == shared || f.ContentID == "c-"+f.Path)
	}
	added, err := s.Add(ctx, "acme", libraries.Content{ID: "late", SHA256: "same"})
	is.NoErr(err)
	is.True(!added)
}

func testIsolation(t *testing.T, s libraries.Store) {
	is, ctx := is.New(t), t.Context()
	put(t, s, "l1", file("f"), file("gone"))
	is.NoErr(s.Delete(ctx, "acme", "l1", "gone", monday))

	_, err := s.File(ctx, "evil", "l1", "f")
	is.Equal(errs.CodeOf(err), errs.NotFound)
	page, err := s.Page(ctx, "evil", "l1", paging.Query{Limit: 5})
	is.NoErr(err)
	is.Equal(page.Total, 0)
	is.Equal(paths(t, s, "evil", "l1"), []string{})
	is.Equal(errs.CodeOf(s.Delete(ctx, "evil", "l1", "f", monday)), errs.NotFound)
	is.NoErr(s.Remove(ctx, "evil", []string{"l1"}, monday))
	id, err := s.Hold(ctx, "evil", "s-f")
	is.NoErr(err)
	is.Equal(id, "") // equal bytes are shared only within a tenant
	ids, _, err := s.Release(ctx, "evil", friday, friday, 100)
	is.NoErr(err)
	is.Equal(len(ids), 0)
	is.NoErr(s.Forget(ctx, "evil", []string{"c-f", "c-gone"}))
	added, err := s.Add(ctx, "evil", libraries.Content{ID: "c-f", SHA256: "s-f"})
	is.NoErr(err)
	is.True(added)
	theirs := file("f")
	theirs.ContentType = "evil/evil"
	is.NoErr(name(ctx, s, "evil", "l1", theirs))

	got, err := s.File(ctx, "acme", "l1", "f")
	is.NoErr(err)
	is.Equal(got, file("f")) // untouched
	is.Equal(release(t, s, friday), []string{"c-gone"})
}

func testFailedTx(t *testing.T, s libraries.Store) {
	is, ctx, fault := is.New(t), t.Context(), errors.New("fault")
	put(t, s, "l1", file("a"))
	err := s.InTx(ctx, func(ctx context.Context) error {
		put := file("b")
		_, err := s.Add(ctx, "acme", libraries.Content{ID: put.ContentID, SHA256: put.SHA256})
		is.NoErr(err)
		is.NoErr(name(ctx, s, "acme", "l1", put))
		is.NoErr(s.Delete(ctx, "acme", "l1", "a", monday))
		return fault
	})
	is.Equal(err, fault)
	is.Equal(paths(t, s, "acme", "l1"), []string{"a"})
	id, err := s.Hold(ctx, "acme", "s-b")
	is.NoErr(err)
	is.Equal(id, "")
	is.Equal(release(t, s, friday), nil)
}

func testCanceled(t *testing.T, s libraries.Store) {
	is := is.New(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	is.True(errors.Is(name(ctx, s, "acme", "l1", file("a")), context.Canceled))
	is.Equal(paths(t, s, "acme", "l1"), []string{})
}
