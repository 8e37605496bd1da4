package libraries_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/drafts/blobs"
	"github.com/tenantcontent/tenantcontent/internal/drafts/libraries"
	"github.com/tenantcontent/tenantcontent/internal/limits/cache"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	blobstore "github.com/tenantcontent/tenantcontent/internal/store/blobs"
	"github.com/tenantcontent/tenantcontent/internal/store/libraries"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// clock is the time of the tests.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// each runs a test on both databases, with files of at most 3 MiB.
func each(t *testing.T, test func(t *testing.T, db *bun.DB, l *libraries.Files, at *clock)) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		db, at := open(t), &clock{at: time.Date(2026, 11, 20, 20, 31, 0, 0, time.UTC)}
		test(t, db, libraries.New(libraries.Options{
			Store: bunstore.New(db, "library"),
			Blobs: blobstore.New(db),
			Limit: 3 << 20,
			Now:   at.now,
		}), at)
	})
}

// free is the lock of a library that nobody else has.
func free(context.Context) error { return nil }

func put(t *testing.T, l *libraries.Files, library, path, text string) libraries.File {
	t.Helper()
	f, err := l.Put(t.Context(), "acme", library, path, "", strings.NewReader(text), free)
	is.New(t).NoErr(err)
	return f
}

func read(t *testing.T, l *libraries.Files, library, path string) string {
	t.Helper()
	is := is.New(t)
	_, r, err := l.Open(t.Context(), "acme", library, path)
	is.NoErr(err)
	defer func() { _ = r.Close() }()
	text, err := io.ReadAll(r)
	is.NoErr(err)
	return string(text)
}

// sweep sweeps twice, with time for what the first one finds, and returns how many contents were
// removed.
func sweep(t *testing.T, l *libraries.Files, at *clock) (n int) {
	t.Helper()
	for range 2 {
		some, err := l.Hooks().Sweep(t.Context(), "acme")
		is.New(t).NoErr(err)
		n += some
		at.add(2 * time.Minute)
	}
	return n
}

// stored counts the blobs of acme, complete or not, and their chunks.
func stored(t *testing.T, db *bun.DB) (blobs, chunks int) {
	t.Helper()
	ctx, c := bunx.For(t.Context(), db, "acme")
	is.New(t).NoErr(c.One(ctx, "",
		`SELECT (SELECT count(*) FROM tc_blobs WHERE tenant_id = $1), (SELECT count(*) FROM tc_blob_chunks `+
			`WHERE tenant_id = $1)`,
		[]any{"acme"}, &blobs, &chunks))
	return blobs, chunks
}

// TestMediaTypeOfPath: the files of a built front end have the types that browsers need.
func TestMediaTypeOfPath(t *testing.T) {
	each(t, func(t *testing.T, _ *bun.DB, l *libraries.Files, _ *clock) {
		for path, want := range map[string]string{
			"index.html": "text/html", "a/b.MJS": "text/javascript",
			"a.js.map": "application/json", "a.wasm": "application/wasm", "a.woff": "font/woff",
			"a.ttf": "font/ttf", "favicon.ico": "image/x-icon",
			"site.webmanifest": "application/manifest+json", "a.mp4": "video/mp4",
			"LICENSE": "application/octet-stream", "a.exe": "application/octet-stream",
		} {
			is.New(t).Equal(put(t, l, "l1", path, "x").ContentType, want)
		}
	})
}

// TestEqualFilesShareBytes until the last of them has gone.
func TestEqualFilesShareBytes(t *testing.T) {
	each(t, func(t *testing.T, db *bun.DB, l *libraries.Files, at *clock) {
		is, big := is.New(t), strings.Repeat("0123456789abcdef", 1<<17) // two chunks
		f := put(t, l, "l1", "big.txt", big)
		is.Equal(f.SHA256, "9e5c630590af086d064e518b3c1d1cf98e9f4bc9df4fa7cfa32879079a250f62")
		put(t, l, "l1", "dir/copy", big)
		other := put(t, l, "l2", "big.txt", big)
		is.Equal(other.ContentID, f.ContentID)
		blobs, chunks := stored(t, db)
		is.Equal([]int{blobs, chunks}, []int{1, 2})

		put(t, l, "l1", "big.txt", "small now")
		is.NoErr(l.Delete(t.Context(), "acme", "l1", "dir/copy", free))
		at.add(time.Hour)
		is.Equal(sweep(t, l, at), 0)
		is.True(read(t, l, "l2", "big.txt") == big)
		is.Equal(read(t, l, "l1", "big.txt"), "small now")

		is.NoErr(l.Remove(t.Context(), "acme", []string{"l2"}))
		for _, want := range []int{0, 0, 1} { // somebody may still read it, also after a long transaction
			n, err := l.Hooks().Sweep(t.Context(), "acme")
			is.NoErr(err)
			is.Equal(n, want)
			at.add(2 * time.Minute)
		}
		blobs, chunks = stored(t, db)
		is.Equal([]int{blobs, chunks}, []int{1, 1})
		is.Equal(read(t, l, "l1", "big.txt"), "small now")
	})
}

// TestDraft copies a library, changes the copy and puts it in the library's place: bytes are stored
// once, and freed when no file has them.
func TestDraft(t *testing.T) {
	each(t, func(t *testing.T, db *bun.DB, l *libraries.Files, at *clock) {
		is, ctx, begun := is.New(t), t.Context(), at.now()
		for _, path := range []string{"edited", "gone", "same"} {
			put(t, l, "app", path, path)
		}
		is.NoErr(l.Copy(ctx, "acme", "app", "draft"))
		at.add(time.Hour)
		put(t, l, "draft", "edited", "fresh")
		put(t, l, "draft", "same", "same") // written again
		is.NoErr(l.Delete(ctx, "acme", "draft", "gone", free))
		blobs, _ := stored(t, db)
		is.Equal(blobs, 4)
		is.Equal(read(t, l, "app", "edited"), "edited") // until the draft is published
		is.NoErr(l.Replace(ctx, "acme", "app", "draft"))
		for _, want := range []int{0, 2} { // somebody may still read them
			at.add(time.Hour)
			n, err := l.Hooks().Sweep(ctx, "acme")
			is.NoErr(err)
			is.Equal(n, want)
		}
		blobs, _ = stored(t, db)
		is.Equal(blobs, 2)
		is.Equal(read(t, l, "app", "edited")+" "+read(t, l, "app", "same"), "fresh same")
		all, err := l.All(ctx, "acme", "app")
		is.NoErr(err)
		is.Equal(len(all), 2)
		is.Equal(all[1].UpdatedAt, begun) // it is as it was
		modified, err := l.Modified(ctx, "acme", []string{"app", "draft"})
		is.NoErr(err)
		is.Equal(modified, map[string]time.Time{"app": begun.Add(time.Hour)})
	})
}

// TestFailedPutChangesNothing: a file that is cut, refused or too large leaves the old one, and no
// bytes.
func TestFailedPutChangesNothing(t *testing.T) {
	each(t, func(t *testing.T, db *bun.DB, l *libraries.Files, _ *clock) {
		is, ctx, fault := is.New(t), t.Context(), errors.New("fault")
		put(t, l, "l", "a", "old")
		big := bytes.Repeat([]byte("x"), 2<<20)
		for name, c := range map[string]struct {
			path, contentType string
			r                 io.Reader
			lock              func(context.Context) error
			want              error
		}{
			"cut": {"a", "", io.MultiReader(bytes.NewReader(big), broken{fault}), free, fault},
			"refused": {"a", "", bytes.NewReader(big), func(context.Context) error {
				return fault
			}, fault},
			"equal bytes, refused": {"a", "", strings.NewReader("old"), func(context.Context) error {
				return fault
			}, fault},
			"large": {
				"a", "", io.MultiReader(bytes.NewReader(big), bytes.NewReader(big)), free, errs.TooLarge,
			},
			"path":   {"../a", "", bytes.NewReader(big), free, errs.Invalid},
			"type":   {"a", "text", bytes.NewReader(big), free, errs.Invalid},
			"clash":  {"A", "", bytes.NewReader(big), free, errs.Conflict},
			"folder": {"a/b", "", bytes.NewReader(big), free, errs.Conflict},
		} {
			_, err := l.Put(ctx, "acme", "l", c.path, c.contentType, c.r, c.lock)
			if !errors.Is(err, c.want) {
				t.Errorf("%s: %v", name, err)
			}
			blobs, chunks := stored(t, db)
			is.Equal([]int{blobs, chunks}, []int{1, 1})
			is.Equal(read(t, l, "l", "a"), "old")
		}
		is.Equal(errs.CodeOf(l.Delete(ctx, "acme", "l", "../a", free)), errs.NotFound)
		is.Equal(l.Delete(ctx, "acme", "l", "a", func(context.Context) error { return fault }), fault)
		is.Equal(read(t, l, "l", "a"), "old")
	})
}

// unanswered loses the answers to COMMITs that have been made.
type unanswered struct {
	libraries.Store
	lose bool
}

func (u *unanswered) InTx(ctx context.Context, fn func(context.Context) error) error {
	err := u.Store.InTx(ctx, fn)
	if err == nil && u.lose {
		return errs.New(errs.Unconfirmed, "The database did not answer: the change may or may not have been made.")
	}
	return err
}

// TestUnansweredPut: a file whose naming was committed keeps its bytes, though Put returns an
// error.
func TestUnansweredPut(t *testing.T) {
	each(t, func(t *testing.T, db *bun.DB, _ *libraries.Files, at *clock) {
		is, s := is.New(t), &unanswered{Store: bunstore.New(db, "library")}
		l := libraries.New(libraries.Options{Store: s, Blobs: blobstore.New(db), Now: at.now})
		put(t, l, "l", "a", "old")
		for _, text := range []string{"new", strings.Repeat("large ", 1<<18)} {
			s.lose = true
			_, err := l.Put(t.Context(), "acme", "l", "a", "", strings.NewReader(text), free)
			is.Equal(errs.CodeOf(err), errs.Unconfirmed)
			s.lose = false
			is.True(read(t, l, "l", "a") == text)
			put(t, l, "l", "a", text)
			put(t, l, "other", "b", text)
			is.True(read(t, l, "l", "a") == text)
			is.True(read(t, l, "other", "b") == text)
		}
	})
}

// TestPassedOverError: a transaction that passes over the error of a Put and commits leaves no
// content without bytes.
func TestPassedOverError(t *testing.T) {
	each(t, func(t *testing.T, db *bun.DB, l *libraries.Files, _ *clock) {
		is := is.New(t)
		put(t, l, "l", "readme", "old")
		for i, text := range []string{"fresh", strings.Repeat("large ", 1<<18)} {
			is.NoErr(bunx.InTx(t.Context(), db, func(ctx context.Context) error {
				_, err := l.Put(ctx, "acme", "l", "README", "", strings.NewReader(text), free)
				is.Equal(errs.CodeOf(err), errs.Conflict)
				return nil
			}))
			blobs, _ := stored(t, db)
			is.Equal(blobs, 1+i)
			put(t, l, "l2", fmt.Sprint(i), text)
			is.True(read(t, l, "l2", fmt.Sprint(i)) == text)
		}
	})
}

// TestContentWithoutBlob: a content whose blob was lost is given to no further file, and equal
// files are shared again.
func TestContentWithoutBlob(t *testing.T) {
	each(t, func(t *testing.T, db *bun.DB, l *libraries.Files, _ *clock) {
		is := is.New(t)
		lost := put(t, l, "l", "a", "text")
		is.NoErr(blobstore.New(db).Delete(t.Context(), "acme", lost.ContentID))
		for _, path := range []string{"b", "c", "d", "a"} {
			put(t, l, "l", path, "text")
			is.Equal(read(t, l, "l", path), "text")
		}
		blobs, _ := stored(t, db)
		is.Equal(blobs, 2) // of b, and of all others
	})
}

// late is a body that takes an hour to end.
type late struct {
	io.Reader
	at *clock
}

func (l *late) Read(p []byte) (int, error) {
	n, err := l.Reader.Read(p)
	if err == io.EOF {
		l.at.add(time.Hour)
	}
	return n, err
}

// TestTimesOfPut: a file is as new as its naming, however long its bytes took, so that those it
// replaces stay for a while; and one that replaces another is as old.
func TestTimesOfPut(t *testing.T) {
	each(t, func(t *testing.T, _ *bun.DB, l *libraries.Files, at *clock) {
		is, begun := is.New(t), at.now()
		first := put(t, l, "l", "a", "old")
		is.Equal(first.CreatedAt, begun)
		_, r, err := l.Open(t.Context(), "acme", "l", "a")
		is.NoErr(err)
		f, err := l.Put(t.Context(), "acme", "l", "a", "", &late{strings.NewReader("new"), at}, free)
		is.NoErr(err)
		is.Equal(f.CreatedAt, begun)
		is.Equal(f.UpdatedAt, begun.Add(time.Hour))
		all, err := l.All(t.Context(), "acme", "l")
		is.NoErr(err)
		is.Equal(all, []libraries.File{f})
		is.Equal(sweep(t, l, at), 0)
		text, err := io.ReadAll(r)
		is.NoErr(err)
		is.Equal(string(text), "old")
		is.NoErr(r.Close())
		is.Equal(sweep(t, l, at), 1)
	})
}

// hooked is a blobs.Store that calls a function before it opens a blob.
type hooked struct {
	blobs.Store
	before func(id string)
}

func (h hooked) Open(ctx context.Context, tenant, id string) (blobs.Reader, error) {
	h.before(id)
	return h.Store.Open(ctx, tenant, id)
}

// TestOpenReplaced: Open returns the new file when the bytes of the old one go between its row and
// its blob, and fails when there are none at all.
func TestOpenReplaced(t *testing.T) {
	each(t, func(t *testing.T, db *bun.DB, l *libraries.Files, at *clock) {
		is, store := is.New(t), blobstore.New(db)
		old := put(t, l, "l", "a", "old")
		opening := libraries.New(libraries.Options{Store: bunstore.New(db, "library"),
			Now: at.now, Blobs: hooked{store, func(id string) {
				if id == old.ContentID {
					put(t, l, "l", "a", "new")
					is.NoErr(store.Delete(t.Context(), "acme", id))
				}
			}}})
		is.Equal(read(t, opening, "l", "a"), "new")
		lost := put(t, l, "l", "lost", "lost")
		is.NoErr(store.Delete(t.Context(), "acme", lost.ContentID))
		_, _, err := l.Open(t.Context(), "acme", "l", "lost")
		is.Equal(errs.CodeOf(err), errs.NotFound)
	})
}

type broken struct{ err error }

func (b broken) Read([]byte) (int, error) { return 0, b.err }

// TestPutsAtOnce: of equal bytes that come at once every file has them, and on SQLite, where one
// comes after the other, one blob stays; sweeps in between lose none.
func TestPutsAtOnce(t *testing.T) {
	each(t, func(t *testing.T, db *bun.DB, l *libraries.Files, at *clock) {
		is := is.New(t)
		results := make(chan error, 20)
		var all sync.WaitGroup
		for i := range 10 {
			all.Go(func() {
				library := fmt.Sprint("l", i)
				_, err := l.Put(t.Context(), "acme", library, "f", "", strings.NewReader("same"), free)
				if err == nil && i%2 == 0 {
					err = l.Delete(t.Context(), "acme", library, "f", free)
				}
				results <- err
			})
			all.Go(func() {
				at.add(10 * time.Minute)
				_, err := l.Hooks().Sweep(t.Context(), "acme")
				results <- err
			})
		}
		all.Wait()
		for range cap(results) {
			is.NoErr(<-results)
		}
		at.add(time.Hour)
		sweep(t, l, at)
		for i := 1; i < 10; i += 2 {
			is.Equal(read(t, l, fmt.Sprint("l", i), "f"), "same")
		}
		blobs, _ := stored(t, db)
		is.True(blobs == 1 || blobs <= 5 && db.Dialect().Name() == dialect.PG)
	})
}

// TestPutWaitsForNoDigest: on PostgreSQL nobody waits for a transaction, such as an import, that
// puts the same bytes, not even two of them that put several in different order.
func TestPutWaitsForNoDigest(t *testing.T) {
	is, db := is.New(t), dbtest.Postgres(t)
	l := libraries.New(libraries.Options{Store: bunstore.New(db, "library"), Blobs: blobstore.New(db)})
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second) // less than a statement waits for a lock
	defer cancel()
	in := func(ctx context.Context, library, path string) {
		_, err := l.Put(ctx, "acme", library, path, "", strings.NewReader(path), free)
		is.NoErr(err)
	}
	in(ctx, "before", "known")
	is.NoErr(bunx.InTx(ctx, db, func(one context.Context) error {
		in(one, "one", "a")
		in(one, "one", "known")
		is.NoErr(bunx.InTx(ctx, db, func(two context.Context) error {
			in(two, "two", "b")
			in(one, "one", "b")
			in(two, "two", "a")
			in(ctx, "three", "a")
			in(ctx, "three", "known")
			return nil
		}))
		return nil
	}))
	for _, library := range []string{"one", "two", "three"} {
		is.Equal(read(t, l, library, "a"), "a")
	}
	shared := put(t, l, "late", "a", "a")
	f, _, err := l.Open(ctx, "acme", "one", "a")
	is.NoErr(err)
	is.Equal(shared.ContentID, f.ContentID) // the first one's
	blobs, _ := stored(t, db)
	is.Equal(blobs, 6) // one of known, three of a, two of b
}

// TestKeep: files that are not among the paths go.
func TestKeep(t *testing.T) {
	each(t, func(t *testing.T, _ *bun.DB, l *libraries.Files, _ *clock) {
		is := is.New(t)
		for _, path := range []string{"a", "b", "dir/c"} {
			put(t, l, "l", path, path)
		}
		is.NoErr(l.Keep(t.Context(), "acme", "l", []string{"dir/c", "none"}))
		all, err := l.All(t.Context(), "acme", "l")
		is.NoErr(err)
		is.Equal(len(all), 1)
		is.Equal(all[0].Path, "dir/c")
	})
}

// TestSet: a library has exactly the files of another kind's that it is given, with their bytes,
// and those that it has already stay as they are.
func TestSet(t *testing.T) {
	each(t, func(t *testing.T, db *bun.DB, l *libraries.Files, at *clock) {
		is, ctx := is.New(t), t.Context()
		other := libraries.New(libraries.Options{
			Store: bunstore.New(db, "other"),
			Blobs: blobstore.New(db),
			Now:   at.now,
		})
		one, two := put(t, l, "l", "one", "1"), put(t, l, "l", "two", "2")
		set := func(files ...libraries.File) []libraries.File {
			is.NoErr(other.Set(ctx, "acme", "l", files))
			all, err := other.All(ctx, "acme", "l")
			is.NoErr(err)
			return all
		}
		is.Equal(set(one), []libraries.File{one})
		is.Equal(set(one, two), []libraries.File{one, two})
		at.add(time.Minute)
		is.Equal(set(two), []libraries.File{two})
		changed := put(t, l, "l", "two", "changed")
		is.NoErr(l.Delete(ctx, "acme", "l", "one", free))
		all := set(changed)
		is.Equal(len(all), 1)
		_, r, err := other.Open(ctx, "acme", "l", "two")
		is.NoErr(err)
		text, err := io.ReadAll(r)
		is.NoErr(err)
		is.NoErr(r.Close())
		is.Equal(string(text), "changed")
		is.Equal(len(set()), 0)
	})
}

// TestCompare: the result depends on the bytes of the library alone, not on those that another one
// has.
func TestCompare(t *testing.T) {
	each(t, func(t *testing.T, db *bun.DB, l *libraries.Files, _ *clock) {
		is, ctx := is.New(t), t.Context()
		digest := func(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }
		compare := func(digests map[string]string) libraries.Comparison {
			t.Helper()
			c, err := l.Compare(ctx, "acme", "l", digests)
			is.NoErr(err)
			return c
		}
		is.Equal(compare(nil), libraries.Comparison{Digests: map[string]string{}})
		put(t, l, "other", "secret", "secret")
		for _, path := range []string{"same", "b/old", "extra", "b/also"} {
			put(t, l, "l", path, path)
		}
		is.Equal(compare(map[string]string{
			"same": digest("same"), "b/old": digest("new"),
			"b/also": digest("same"), "secret": digest("secret"), "a": digest("same"),
		}), libraries.Comparison{Missing: []string{"a", "secret"}, Differs: []string{"b/also", "b/old"},
			Extra: []string{"extra"}, Unchanged: 1, Digests: map[string]string{
				"b/also": digest("b/also"), "b/old": digest("b/old"), "extra": digest("extra"),
			}})

		c, cn := bunx.For(ctx, db, "acme")
		_, err := cn.Exec(
			c,
			`UPDATE tc_library_files SET sha256 = NULL WHERE tenant_id = $1 AND library_id = $2 AND path = $3`,
			"acme", "l", "same",
		)
		is.NoErr(err)
		unknown := compare(map[string]string{"same": digest("same")})
		is.Equal(unknown.Differs, []string{"same"}) // a file without digest is unknown
		is.Equal(unknown.Digests["same"], "")

		many := map[string]string{}
		for i := range libraries.MaxCompared {
			many[fmt.Sprint(i)] = digest("")
		}
		is.Equal(len(compare(many).Missing), libraries.MaxCompared)
		many["more"] = digest("")
		for says, digests := range map[string]map[string]string{
			"files must have at most 10000 paths": many,
			`"../a": path must be relative`:       {"../a": digest("")},
			`"` + strings.Repeat("a", 100) + `…"`: {strings.Repeat("a", 1025): digest("")},
			`the value of "a" must be`:            {"a": strings.ToUpper(digest("a"))},
			`the value of "b" must be`:            {"b": digest("")[1:]},
			`the value of "c" must be`:            {"c": ""},
		} {
			_, err := l.Compare(ctx, "acme", "l", digests)
			is.Equal(errs.CodeOf(err), errs.Invalid)
			if !strings.Contains(errs.MessageOf(err), says) {
				t.Error(errs.MessageOf(err))
			}
		}
	})
}

// countingBlobs counts how often blobs are opened.
type countingBlobs struct {
	blobs.Store
	opened int
}

func (c *countingBlobs) Open(ctx context.Context, tenant, id string) (blobs.Reader, error) {
	c.opened++
	return c.Store.Open(ctx, tenant, id)
}

// TestOpenCached: readers of pages see what this process has committed at once, what another one
// has a second later, and read the bytes of a small file once.
func TestOpenCached(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, db := is.New(t), open(t)
		var changes cache.Counter
		bytes := &countingBlobs{Store: blobstore.New(db)}
		here := libraries.New(libraries.Options{
			Store:   bunstore.New(db, "library").Notify(changes.Bump),
			Changes: changes.Of,
			Blobs:   bytes,
		})
		other := libraries.New(libraries.Options{Store: bunstore.New(db, "library"), Blobs: bytes})
		text := func(library, path string) string {
			f, r, err := here.OpenCached(t.Context(), "acme", library, path)
			if errs.CodeOf(err) == errs.NotFound {
				return "none"
			}
			is.NoErr(err)
			defer func() { _ = r.Close() }()
			all, err := io.ReadAll(r)
			is.NoErr(err)
			is.Equal(int(f.Size), len(all))
			return string(all)
		}
		is.Equal(text("l1", "a.js"), "none")
		put(t, here, "l1", "a.js", "one")
		is.Equal(text("l1", "a.js"), "one")
		is.Equal(text("l2", "a.js"), "none") // of another library
		_, _, err := here.OpenCached(t.Context(), "evil", "l1", "a.js")
		is.Equal(errs.CodeOf(err), errs.NotFound)
		before := bytes.opened
		is.Equal(text("l1", "a.js"), "one")
		is.Equal(bytes.opened, before)

		put(t, here, "l1", "a.js", "two")
		is.Equal(text("l1", "a.js"), "two")
		is.NoErr(here.Delete(t.Context(), "acme", "l1", "a.js", free))
		is.Equal(text("l1", "a.js"), "none")
		put(t, here, "l2", "a.js", "three")
		is.NoErr(here.Copy(t.Context(), "acme", "l2", "l1"))
		is.Equal(text("l1", "a.js"), "three")
		is.NoErr(here.Remove(t.Context(), "acme", []string{"l1"}))
		is.Equal(text("l1", "a.js"), "none")

		put(t, other, "l1", "a.js", "four") // by another process
		for end := time.Now().Add(time.Minute); text("l1", "a.js") != "four"; time.Sleep(10 * time.Millisecond) {
			is.True(time.Now().Before(end))
		}

		large := strings.Repeat("x", 300<<10)
		put(t, here, "l1", "large.js", large)
		for range 2 {
			before = bytes.opened
			is.Equal(text("l1", "large.js"), large)
			is.Equal(bytes.opened, before+1) // a large one is not kept
		}
	})
}
