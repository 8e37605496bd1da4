package bunstore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/files"
	"github.com/tenantcontent/tenantcontent/internal/drafts/blobs"
	"github.com/tenantcontent/tenantcontent/internal/text/uuids"
)

// id is the id of a file in tests that make only one.
const id = "018f0000-0000-7000-8000-00000000000a"

// testService runs all checks of a Service over some empty stores, whose database is that of
// testStore. The stores are empty again at the end.
func testService(t *testing.T, store files.Store, bytes blobs.Store) {
	for name, check := range map[string]func(*testing.T, files.Options){
		"Create":                testCreate,
		"CreateFails":           testCreateFails,
		"CreateRunsFillHere":    testGoroutine,
		"CreateInTransaction":   testInTx,
		"CommitsBlobWithRow":    testBlobWithRow,
		"IgnoredErrorFails":     testIgnoredError,
		"WriterEndsWithCreate":  testLateWrite,
		"RowFails":              testRowFails,
		"Unanswered":            testUnanswered,
		"TakenIDChangesNothing": testServiceTaken,
		"Names":                 testNames,
		"ContentTypes":          testTypes,
		"IDs":                   testIDs,
		"Visible":               testVisible,
		"Isolation":             testServiceIsolation,
		"Delete":                testServiceDelete,
		"Limit":                 testLimit,
		"Quota":                 testQuota,
		"QuotaOfParallel":       testParallelQuota,
		"Expiry":                testExpiry,
		"Lifetime":              testLifetime,
		"SweepsMany":            testSweepMany,
		"SweepsAbandoned":       testAbandoned,
		"Renamed":               testRenamed,
		"Deleted":               testDeleted,
		"Dependents":            testDependents,
	} {
		t.Run(name, func(t *testing.T) {
			o := files.Options{Store: store, Blobs: bytes, Noun: "Upload", Now: func() time.Time { return monday }}
			o.NewID = func() string { return id }
			check(t, o)
			o.Now = func() time.Time { return never }
			for _, tenant := range []string{"acme", "evil"} {
				n, err := bytes.Sweep(t.Context(), tenant, never)
				is.New(t).NoErr(err)
				is.New(t).Equal(n, 0) // no blob remains without its file
				_, err = files.New(o).Hooks().Sweep(t.Context(), tenant)
				is.New(t).NoErr(err)
			}
		})
	}
}

// everyone lets a caller see every file.
func everyone(files.File) bool { return true }

// written returns a function that writes what it reads from r.
func written(r io.Reader) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.Copy(w, r)
		return err
	}
}

func zeros(n int) func(io.Writer) error { return written(bytes.NewReader(make([]byte, n))) }

// draft returns the description of a file of a user.
func draft(username string) files.Draft { return files.Draft{Username: username, Filename: "a"} }

func create(t *testing.T, s *files.Service, tenant, username string) files.File {
	t.Helper()
	f, err := s.Create(t.Context(), tenant, draft(username), written(strings.NewReader("x")))
	is.New(t).NoErr(err)
	return f
}

// found reports whether the file with the id exists. Get and Open must agree.
func found(t *testing.T, s *files.Service, tenant string, visible func(files.File) bool) bool {
	t.Helper()
	is := is.New(t)
	f, err := s.Get(t.Context(), tenant, id, visible)
	opened, r, openErr := s.Open(t.Context(), tenant, id, visible)
	is.Equal(opened, f)
	is.Equal(errs.CodeOf(openErr), errs.CodeOf(err))
	if errs.CodeOf(err) == errs.NotFound {
		is.True(r == nil)
		is.Equal(err.Error(), "Upload not found.")
		is.Equal(openErr.Error(), "Upload not found.")
		return false
	}
	is.NoErr(err)
	is.NoErr(r.Close())
	return true
}

// ids returns a function that returns a new id at each call.
func ids() func() string {
	n := 0
	return func() string { n++; return fmt.Sprintf("018f0000-0000-7000-8000-%012d", n) }
}

func testCreate(t *testing.T, o files.Options) {
	o.NewID = nil
	is, ctx, s := is.New(t), t.Context(), files.New(o)
	const mib = 1 << 20
	for size, chunks := range map[int]int{0: 0, 1: 1, mib: 1, mib + 1: 2} {
		want := make([]byte, size)
		_, _ = rand.NewChaCha8([32]byte{byte(size)}).Read(want)
		d := files.Draft{Username: "jo", Filename: "a.json", ContentType: "application/json"}
		f, err := s.Create(ctx, "acme", d, written(bytes.NewReader(want)))
		is.NoErr(err)
		is.True(uuids.Valid(f.ID))
		is.Equal(f.ID[14], byte('7')) // the version
		is.Equal(f, files.File{
			ID: f.ID, Filename: "a.json", ContentType: "application/json", Size: int64(size), Chunks: chunks,
			Username: "jo", CreatedAt: monday, ExpiresAt: tuesday,
		})
		got, err := s.Get(ctx, "acme", f.ID, everyone)
		is.NoErr(err)
		is.Equal(got, f)
		got, r, err := s.Open(ctx, "acme", f.ID, everyone)
		is.NoErr(err)
		is.Equal(got, f)
		p, err := io.ReadAll(r)
		is.NoErr(err)
		is.True(bytes.Equal(p, want))
		end, err := r.Seek(0, io.SeekEnd) // http.ServeContent finds the size like this
		is.NoErr(err)
		is.Equal(end, int64(size))
		is.NoErr(r.Close())
	}
}

// testCreateFails: after an error, a panic and the end of the context nothing of a file remains.
func testCreateFails(t *testing.T, o files.Options) {
	is, s := is.New(t), files.New(o)
	fault := errors.New("fault")
	for _, size := range []int{0, 1, 1<<20 + 1} {
		_, err := s.Create(t.Context(), "acme", draft("jo"), func(w io.Writer) error {
			is.NoErr(zeros(size)(w))
			return fault
		})
		is.True(err == fault) // returned unchanged
		is.True(!found(t, s, "acme", everyone))

		func() {
			defer func() { is.Equal(recover(), "boom") }()
			_, _ = s.Create(t.Context(), "acme", draft("jo"), func(w io.Writer) error {
				is.NoErr(zeros(size)(w))
				panic("boom")
			})
		}()
		is.True(!found(t, s, "acme", everyone))

		ctx, cancel := context.WithCancel(t.Context())
		_, err = s.Create(ctx, "acme", draft("jo"), func(w io.Writer) error {
			is.NoErr(zeros(size)(w))
			cancel()
			return nil
		})
		is.True(errors.Is(err, context.Canceled))
		is.True(!found(t, s, "acme", everyone))
	}
	create(t, s, "acme", "jo") // the id can be used: nothing remained
}

func testGoroutine(t *testing.T, o files.Options) {
	is, stack := is.New(t), make([]byte, 1<<16)
	_, err := files.New(o).Create(t.Context(), "acme", draft("jo"), func(io.Writer) error {
		stack = stack[:runtime.Stack(stack, false)]
		return nil
	})
	is.NoErr(err)
	is.True(strings.Contains(string(stack), "testGoroutine(")) // the goroutine of the test
}

// testInTx: in a transaction fill may read rows between its writes. Everything is undone if the
// transaction is rolled back.
func testInTx(t *testing.T, o files.Options) {
	is, s := is.New(t), files.New(o)
	fault := errors.New("fault")
	for _, want := range []error{fault, nil} {
		err := o.Store.InTx(t.Context(), func(ctx context.Context) error {
			f, err := s.Create(ctx, "acme", draft("jo"), func(w io.Writer) error {
				for range 2 {
					if _, err := o.Store.Expired(ctx, "acme", monday, 10); err != nil {
						return err
					}
					if _, err := w.Write(make([]byte, 1<<20)); err != nil {
						return err
					}
				}
				return nil
			})
			is.NoErr(err)
			is.Equal(f.Chunks, 2)
			_, err = s.Get(ctx, "acme", f.ID, everyone) // visible in the transaction
			is.NoErr(err)
			return want
		})
		is.Equal(err, want)
		is.Equal(found(t, s, "acme", everyone), want == nil)
	}
	_, r, err := s.Open(t.Context(), "acme", id, everyone)
	is.NoErr(err)
	n, err := io.Copy(io.Discard, r)
	is.NoErr(err)
	is.Equal(n, int64(2<<20))
}

// insertFunc is a Store with another Insert.
type insertFunc struct {
	files.Store
	insert func(ctx context.Context, tenant string, f files.File) error
}

// Insert implements files.Store.
func (s insertFunc) Insert(ctx context.Context, tenant string, f files.File) error {
	return s.insert(ctx, tenant, f)
}

// testBlobWithRow: others see a blob only with its row. After a crash between two transactions, the
// blob would remain forever.
func testBlobWithRow(t *testing.T, o files.Options) {
	is, rows := is.New(t), o.Store
	o.Store = insertFunc{rows, func(ctx context.Context, tenant string, f files.File) error {
		_, err := o.Blobs.Open(t.Context(), tenant, f.ID)
		is.Equal(errs.CodeOf(err), errs.NotFound)
		_, err = o.Blobs.Open(ctx, tenant, f.ID)
		is.NoErr(err)
		return rows.Insert(ctx, tenant, f)
	}}
	_, err := files.New(o).Create(t.Context(), "acme", draft("jo"), zeros(1<<20+1))
	is.NoErr(err)
}

// unanswered is a Store that loses the answers to successful COMMITs.
type unanswered struct{ files.Store }

func (u unanswered) InTx(ctx context.Context, fn func(ctx context.Context) error) error {
	if err := u.Store.InTx(ctx, fn); err != nil {
		return err
	}
	return errs.New(errs.Unconfirmed, "The database did not answer: the change may or may not have been made.")
}

// testUnanswered: a file whose row was committed keeps its bytes, although Create returns an error.
func testUnanswered(t *testing.T, o files.Options) {
	is, whole := is.New(t), files.New(o)
	o.Store = unanswered{o.Store}
	_, err := files.New(o).Create(t.Context(), "acme", draft("jo"), written(strings.NewReader("bytes")))
	is.Equal(errs.CodeOf(err), errs.Unconfirmed)
	_, r, err := whole.Open(t.Context(), "acme", id, everyone)
	is.NoErr(err)
	text, err := io.ReadAll(r)
	is.NoErr(err)
	is.Equal(string(text), "bytes")
	is.NoErr(r.Close())
	is.NoErr(whole.Delete(t.Context(), "acme", id))
}

// testRowFails: without the row, the bytes are removed. Otherwise they would remain forever.
func testRowFails(t *testing.T, o files.Options) {
	is, fault := is.New(t), errors.New("fault")
	o.Store = insertFunc{o.Store, func(context.Context, string, files.File) error { return fault }}
	for _, size := range []int{0, 1, 1<<20 + 1} {
		_, err := files.New(o).Create(t.Context(), "acme", draft("jo"), zeros(size))
		is.Equal(err, fault)
		_, err = o.Blobs.Open(t.Context(), "acme", id)
		is.Equal(errs.CodeOf(err), errs.NotFound)
	}
}

// testIgnoredError: if fill continues after a failed Write, the file is not created.
func testIgnoredError(t *testing.T, o files.Options) {
	is, s := is.New(t), files.New(o)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := s.Create(ctx, "acme", draft("jo"), func(w io.Writer) error {
		is.NoErr(zeros(1 << 20)(w))
		cancel()
		_ = zeros(1 << 20)(w)
		return nil
	})
	is.True(errors.Is(err, context.Canceled))
	is.True(!found(t, s, "acme", everyone))
}

// testLateWrite: a Writer that is used after fill cannot add to the file.
func testLateWrite(t *testing.T, o files.Options) {
	is := is.New(t)
	var late io.Writer
	_, err := files.New(o).Create(t.Context(), "acme", draft("jo"), func(w io.Writer) error { late = w; return nil })
	is.NoErr(err)
	_, err = late.Write(make([]byte, 1<<20))
	is.True(err != nil)
}

func testServiceTaken(t *testing.T, o files.Options) {
	is, s := is.New(t), files.New(o)
	_, err := s.Create(t.Context(), "acme", draft("jo"), written(strings.NewReader("first")))
	is.NoErr(err)
	_, err = s.Create(t.Context(), "acme", draft("mia"), zeros(1<<20+1))
	is.Equal(errs.CodeOf(err), errs.Conflict)
	f, r, err := s.Open(t.Context(), "acme", id, everyone)
	is.NoErr(err)
	p, err := io.ReadAll(r)
	is.NoErr(err)
	is.Equal(f.Username+string(p), "jofirst")
}

func testNames(t *testing.T, o files.Options) {
	o.NewID = ids()
	s := files.New(o)
	for given, want := range map[string]string{
		"": "upload", " ": "upload", "/": "upload", "..": "upload", "a/..": "upload", ".": "upload",
		"a.json": "a.json", " a b.json ": "a b.json", ".hidden": ".hidden", "日本 🎨": "日本 🎨",
		"../../etc/passwd": "passwd", `C:\Users\jo\a.json`: "a.json", `a/b\c`: "c", "a\x00/b": "b",
		strings.Repeat("ü", 255): strings.Repeat("ü", 255),
	} {
		is := is.New(t)
		f, err := s.Create(t.Context(), "acme", files.Draft{Username: "jo", Filename: given}, zeros(1))
		is.NoErr(err)
		is.Equal(f.Filename, want)
	}
	for _, bad := range []string{"a\x00b", "a\nb", "a\u0085b", "a\x7f", "\xff", strings.Repeat("ü", 256)} {
		_, err := s.Create(t.Context(), "acme", files.Draft{Username: "jo", Filename: bad}, zeros(1))
		is.New(t).Equal(errs.CodeOf(err), errs.Invalid)
	}
}

func testTypes(t *testing.T, o files.Options) {
	o.NewID = ids()
	s := files.New(o)
	for given, want := range map[string]string{
		"": "application/octet-stream", "text/csv": "text/csv", "TEXT/CSV; Charset=utf-8": "text/csv; charset=utf-8",
		`text/plain; a="b c"`: `text/plain; a="b c"`,
	} {
		is := is.New(t)
		f, err := s.Create(t.Context(), "acme", files.Draft{Username: "jo", ContentType: given}, zeros(1))
		is.NoErr(err)
		is.Equal(f.ContentType, want)
	}
	for _, bad := range []string{
		"text", "text/", "/", ";", "text/csv; a", "text/a b", "text/csv\r\nX: y",
		"text/" + strings.Repeat("a", 255),
	} {
		_, err := s.Create(t.Context(), "acme", files.Draft{Username: "jo", ContentType: bad}, zeros(1))
		is.New(t).Equal(errs.CodeOf(err), errs.Invalid)
	}
}

func testIDs(t *testing.T, o files.Options) {
	is, ctx, s := is.New(t), t.Context(), files.New(o)
	create(t, s, "acme", "jo")
	f, err := s.Get(ctx, "acme", strings.ToUpper(id), everyone)
	is.NoErr(err)
	is.Equal(f.ID, id)
	for _, bad := range []string{
		"", "a", "{" + id + "}", "urn:uuid:" + id, strings.ReplaceAll(id, "-", ""), id + " ", id + "\x00",
		id[:35] + "b", id[:35] + "x",
	} {
		_, err := s.Get(ctx, "acme", bad, everyone)
		is.Equal(errs.CodeOf(err), errs.NotFound)
		_, _, err = s.Open(ctx, "acme", bad, everyone)
		is.Equal(errs.CodeOf(err), errs.NotFound)
	}
}

func testVisible(t *testing.T, o files.Options) {
	is, s := is.New(t), files.New(o)
	want := create(t, s, "acme", "jo")
	for _, visible := range []bool{true, false} {
		is.Equal(found(t, s, "acme", func(f files.File) bool { is.Equal(f, want); return visible }), visible)
	}
}

func testServiceIsolation(t *testing.T, o files.Options) {
	is, s := is.New(t), files.New(o)
	create(t, s, "acme", "jo")
	is.True(!found(t, s, "evil", everyone))
	_, err := s.Create(t.Context(), "evil", draft("mia"), zeros(4))
	is.NoErr(err) // another tenant's id is not taken
	is.NoErr(s.Delete(t.Context(), "evil", id))
	f, err := s.Get(t.Context(), "acme", id, everyone)
	is.NoErr(err)
	is.Equal(f.Username, "jo")
	is.True(found(t, s, "acme", everyone)) // with its bytes
}

func testServiceDelete(t *testing.T, o files.Options) {
	is, s := is.New(t), files.New(o)
	create(t, s, "acme", "jo")
	for range 2 {
		is.NoErr(s.Delete(t.Context(), "acme", id))
		is.True(!found(t, s, "acme", everyone))
	}
	create(t, s, "acme", "jo") // the bytes are removed, too: the id can be used
}

func testLimit(t *testing.T, o files.Options) {
	o.Limit = 1<<20 + 5
	is, s := is.New(t), files.New(o)
	_, err := s.Create(t.Context(), "acme", draft("jo"), zeros(int(o.Limit)+1))
	is.Equal(errs.CodeOf(err), errs.TooLarge)
	is.True(!found(t, s, "acme", everyone))
	f, err := s.Create(t.Context(), "acme", draft("jo"), zeros(int(o.Limit)))
	is.NoErr(err)
	is.Equal(f.Size, o.Limit)
}

func testQuota(t *testing.T, o files.Options) {
	o.Quota, o.NewID = 5, ids()
	is, s := is.New(t), files.New(o)
	for _, c := range []struct {
		tenant, user string
		size         int
		want         errs.Code
	}{
		{"acme", "jo", 3, ""},
		{"acme", "jo", 3, errs.Full}, // 2 bytes are left
		{"acme", "jo", 2, ""},
		{"acme", "jo", 0, errs.Full},
		{"acme", "mia", 5, ""}, // each user has the same quota
		{"evil", "jo", 5, ""},
	} {
		_, err := s.Create(t.Context(), c.tenant, draft(c.user), zeros(c.size))
		if c.want == "" {
			is.NoErr(err)
		} else {
			is.Equal(errs.CodeOf(err), c.want)
		}
	}

	read := false
	_, err := s.Create(blobs.WithSize(t.Context(), 6), "acme", draft("mo"), func(io.Writer) error {
		read = true
		return nil
	})
	is.Equal(errs.CodeOf(err), errs.Full) // before any byte is read
	is.True(!read)
	_, err = s.Create(t.Context(), "acme", draft("mo"), func(w io.Writer) error {
		_, _ = w.Write(make([]byte, 6)) // the error is ignored
		_, _ = w.Write(make([]byte, 2))
		return nil
	})
	is.Equal(errs.CodeOf(err), errs.Full)
	used, allowed, err := s.Used(t.Context(), "acme", "mo")
	is.NoErr(err)
	is.Equal(used, int64(0))
	is.Equal(allowed, int64(5))
}

// testParallelQuota: of files that are created at the same time, only as many are kept as fit the
// quota.
func testParallelQuota(t *testing.T, o files.Options) {
	o.Quota, o.NewID = 5, func() string { return uuid.Must(uuid.NewV7()).String() }
	is, s := is.New(t), files.New(o)
	const n = 6
	var begun, done sync.WaitGroup
	var kept atomic.Int32
	begun.Add(n)
	for range n {
		done.Go(func() {
			_, err := s.Create(t.Context(), "acme", draft("jo"), func(w io.Writer) error {
				begun.Done()
				begun.Wait() // each has checked the quota
				_, err := w.Write([]byte("xx"))
				return err
			})
			if err == nil {
				kept.Add(1)
			} else if errs.CodeOf(err) != errs.Full {
				t.Error(err)
			}
		})
	}
	done.Wait()
	is.Equal(kept.Load(), int32(2))
	held, err := o.Store.UsedBytes(t.Context(), "acme", "jo")
	is.NoErr(err)
	is.Equal(held, int64(4))
	more, err := s.Hooks().RemoveRest(t.Context(), "acme", entity.Key{Kind: entity.KindUser, ID: "jo"}, 10)
	is.NoErr(err)
	is.True(!more)
	held, err = o.Store.UsedBytes(t.Context(), "acme", "jo")
	is.NoErr(err)
	is.Equal(held, int64(0))
}

func testExpiry(t *testing.T, o files.Options) {
	is, now := is.New(t), monday
	o.Now = func() time.Time { return now }
	s := files.New(o)
	sweep := func(tenant string, want int) {
		t.Helper()
		n, err := s.Hooks().Sweep(t.Context(), tenant)
		is.NoErr(err)
		is.Equal(n, want)
	}
	_, err := s.Create(t.Context(), "acme", draft("jo"), zeros(1<<20+1))
	is.NoErr(err)
	now = tuesday.Add(-time.Microsecond)
	sweep("acme", 0)
	is.True(found(t, s, "acme", everyone))
	now = tuesday
	is.True(!found(t, s, "acme", everyone)) // at once, before the sweep
	sweep("evil", 0)
	sweep("acme", 1)
	sweep("acme", 0)
	now = monday
	is.True(!found(t, s, "acme", everyone))
	create(t, s, "acme", "jo") // the bytes are removed, too: the id can be used
}

func testLifetime(t *testing.T, o files.Options) {
	o.Lifetime, o.NewID = time.Minute, ids()
	is, s := is.New(t), files.New(o)
	for own, want := range map[time.Duration]time.Duration{0: time.Minute, 7 * time.Hour: 7 * time.Hour} {
		d := draft("jo")
		d.Lifetime = own
		f, err := s.Create(t.Context(), "acme", d, zeros(1))
		is.NoErr(err)
		is.Equal(f.ExpiresAt, monday.Add(want))
	}
}

// insertMany inserts rows of more files than are deleted at once.
func insertMany(t *testing.T, o files.Options, username string) (n int) {
	t.Helper()
	newID := ids()
	is.New(t).NoErr(o.Store.InTx(t.Context(), func(ctx context.Context) error {
		for n = range 105 {
			if err := o.Store.Insert(ctx, "acme", of(username, newID())); err != nil {
				return err
			}
		}
		return nil
	}))
	return n + 1
}

func testSweepMany(t *testing.T, o files.Options) {
	is := is.New(t)
	want := insertMany(t, o, "jo")
	o.Now = func() time.Time { return tuesday }
	n, err := files.New(o).Hooks().Sweep(t.Context(), "acme")
	is.NoErr(err)
	is.Equal(n, want)
}

func testAbandoned(t *testing.T, o files.Options) {
	is := is.New(t)
	w, err := o.Blobs.Create(t.Context(), "acme", id, 10<<20, monday) // the process ends while it writes
	is.NoErr(err)
	_, err = w.Write(make([]byte, 1<<20))
	is.NoErr(err)
	o.Now = func() time.Time { return tuesday.Add(time.Microsecond) }
	n, err := files.New(o).Hooks().Sweep(t.Context(), "acme")
	is.NoErr(err)
	is.Equal(n, 0) // it was not a file yet
	n, err = o.Blobs.Sweep(t.Context(), "acme", never)
	is.NoErr(err)
	is.Equal(n, 0) // and was removed
}

func testRenamed(t *testing.T, o files.Options) {
	is, s := is.New(t), files.New(o)
	create(t, s, "acme", "jo")
	is.NoErr(s.Hooks().Renamed(t.Context(), "evil", map[string]string{"jo": "Joe"}))
	is.NoErr(s.Hooks().Renamed(t.Context(), "acme", map[string]string{"jo": "joe"}))
	f, err := s.Get(t.Context(), "acme", id, everyone)
	is.NoErr(err)
	is.Equal(f.Username, "joe")
}

func testDeleted(t *testing.T, o files.Options) {
	is, s := is.New(t), files.New(o)
	create(t, s, "acme", "jo")
	insertMany(t, o, "mia")
	remove := func(tenant string, kind entity.Kind, account string) {
		t.Helper()
		for more, steps := true, 0; more; steps++ {
			is.True(steps < 1000)
			var err error
			more, err = s.Hooks().RemoveRest(t.Context(), tenant, entity.Key{Kind: kind, ID: account}, 7)
			is.NoErr(err)
		}
	}
	remove("evil", entity.KindUser, "jo")
	remove("acme", entity.KindUser, "mia")
	remove("acme", "team", "jo")
	is.Equal(ofUsers(t, o.Store, "acme", 10, "mia"), "")
	is.True(found(t, s, "acme", everyone)) // files of other tenants and users are kept
	remove("acme", entity.KindUser, "jo")
	is.True(!found(t, s, "acme", everyone)) // at once
	n, err := s.Hooks().Sweep(t.Context(), "acme")
	is.NoErr(err)
	is.True(n > 1)
	_, err = o.Blobs.Open(t.Context(), "acme", id)
	is.Equal(errs.CodeOf(err), errs.NotFound) // the bytes are removed, too
}

func testDependents(t *testing.T, o files.Options) {
	is := is.New(t)
	insert(t, o.Store, "acme", of("jo", "a"), of("mia", "b"))
	insert(t, o.Store, "evil", of("jo", "c"), of("jo", "d"))
	count := files.New(o).Hooks().Dependents
	for _, c := range []struct {
		tenant string
		ids    []string
		want   string
	}{
		{"acme", []string{"jo", "mia", "mo"}, "2 files"}, {"acme", []string{"jo"}, "1 file"},
		{"evil", []string{"jo"}, "2 files"},
	} {
		got, err := count(t.Context(), c.tenant, entity.KindUser, c.ids, monday)
		is.NoErr(err)
		is.Equal(len(got), 1)
		is.Equal(got[0].String(), c.want)
	}
	got, err := count(t.Context(), "acme", "team", []string{"jo"}, monday) // a team does not have files
	is.NoErr(err)
	is.Equal(len(got), 0)
}
