// Package blobstest checks implementations of blobs.Store. Tests of stores import it.
package blobstest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"
	"pgregory.net/rapid"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/drafts/blobs"
)

var monday = time.Date(2026, 11, 16, 9, 0, 0, 123456000, time.UTC)

const (
	mib       = 1 << 20
	batch     = 16 * mib // a Store may delete this much at once; more shows that it continues
	unlimited = math.MaxInt64
)

// TestStore runs the checks of concurrency, interruptions and isolation; TestSize has the others.
// open returns an empty Store whose database has the tenants acme and evil, on at most eight
// connections.
func TestStore(t *testing.T, open func(t *testing.T) blobs.Store) {
	run(t, open, map[string]func(*testing.T, blobs.Store){
		"ParallelReads":       testParallelReads,
		"ParallelPutsAllLand": testParallelPuts,
		"WaitingHoldsNothing": testWaiting,
		"Isolation":           testIsolation,
		"DeleteCutShort":      testDeleteCutShort,
		"SweepEndsWriter":     testSweepEndsWriter,
		"SweepWhileCommitted": testSweepWhileCommitted,
		"CommittedStays":      testCommittedStays,
		"CanceledLeavesNone":  testCanceled,
		"ErrorsStay":          testErrorsStay,
		"ClosedReader":        testClosed,
	})
}

// TestSize runs the sequential checks that move many bytes, in which the race detector is slow and
// finds nothing. open is that of TestStore.
func TestSize(t *testing.T, open func(t *testing.T) blobs.Store) {
	run(t, open, map[string]func(*testing.T, blobs.Store){
		"RoundTrip":           testRoundTrip,
		"ReadsLikeBytes":      testReads,
		"Limit":               testLimit,
		"TakenID":             testTaken,
		"Delete":              testDelete,
		"Sweep":               testSweep,
		"UncommittedIsHidden": testHidden,
		"FailedPutLeavesNone": testFailed,
		"PanicLeavesNone":     testPanic,
	})
}

func run(t *testing.T, open func(t *testing.T) blobs.Store, checks map[string]func(*testing.T, blobs.Store)) {
	for name, check := range checks {
		t.Run(name, func(t *testing.T) { check(t, open(t)) })
	}
}

// random returns bytes that are the same for the same size. Adjacent chunks differ.
func random(size int) []byte {
	p := make([]byte, min(size, 3*mib+251), size)
	_, _ = rand.NewChaCha8([32]byte{byte(size)}).Read(p)
	for len(p) < size { // copying is much cheaper than generating
		p = append(p, p[:min(len(p), size-len(p))]...)
	}
	return p
}

func put(t *testing.T, s blobs.Store, tenant, id string, p []byte) blobs.Info {
	t.Helper()
	info, err := blobs.Put(t.Context(), s, tenant, id, unlimited, monday, bytes.NewReader(p))
	is.New(t).NoErr(err)
	return info
}

// get reads a whole blob. It returns nil if the blob does not exist.
func get(t *testing.T, s blobs.Store, tenant, id string) []byte {
	t.Helper()
	is := is.New(t)
	r, err := s.Open(t.Context(), tenant, id)
	if errs.CodeOf(err) == errs.NotFound {
		return nil
	}
	is.NoErr(err)
	p, err := io.ReadAll(r)
	is.NoErr(err)
	is.NoErr(r.Close())
	return p
}

// leavesNone checks that nothing of a failed blob remains, not even for a sweep.
func leavesNone(t *testing.T, s blobs.Store, id string) {
	t.Helper()
	is := is.New(t)
	is.Equal(get(t, s, "acme", id), nil)
	n, err := s.Sweep(t.Context(), "acme", monday.Add(time.Hour))
	is.NoErr(err)
	is.Equal(n, 0)
	put(t, s, "acme", id, []byte("again")) // the id is not in use either
	is.Equal(string(get(t, s, "acme", id)), "again")
}

func testRoundTrip(t *testing.T, s blobs.Store) {
	is := is.New(t)
	for size, chunks := range map[int]int{0: 0, 1: 1, mib - 1: 1, mib: 1, mib + 1: 2, 5 * mib: 5, 5*mib + 7: 6} {
		id, want := fmt.Sprint(size), random(size)
		info := put(t, s, "acme", id, want)
		is.Equal(info, blobs.Info{ID: id, Size: int64(size), Chunks: chunks})
		is.True(bytes.Equal(get(t, s, "acme", id), want))
		r, err := s.Open(t.Context(), "acme", id)
		is.NoErr(err)
		is.Equal(r.Info(), info)
		is.NoErr(r.Close())
	}
}

// testReads compares a Reader with a bytes.Reader, and writes of any size with one write.
func testReads(t *testing.T, s blobs.Store) {
	is := is.New(t)
	for _, size := range []int{0, mib, 2*mib + 17} {
		id, want := fmt.Sprint(size), random(size)
		w, err := s.Create(t.Context(), "acme", id, int64(size), monday)
		is.NoErr(err)
		for rest := want; len(rest) > 0; {
			n := min(len(rest), 1+rand.IntN(mib+mib/2))
			m, err := w.Write(rest[:n])
			is.NoErr(err)
			is.Equal(m, n)
			rest = rest[n:]
		}
		_, err = w.Commit(t.Context())
		is.NoErr(err)
		r, err := s.Open(t.Context(), "acme", id)
		is.NoErr(err)
		rapid.Check(t, func(t *rapid.T) { sameReads(t, r, bytes.NewReader(want)) })
		is.NoErr(r.Close())
	}
}

func sameReads(t *rapid.T, got blobs.Reader, want *bytes.Reader) {
	if _, err := got.Seek(0, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	near := rapid.OneOf(rapid.Int64Range(-10, want.Size()+10), rapid.Int64Range(mib-3, mib+3))
	size := rapid.OneOf(rapid.IntRange(0, 10), rapid.IntRange(0, 10), rapid.IntRange(0, mib+10))
	read := func(t *rapid.T, a, b func(p []byte) (int, error)) {
		p := make([]byte, size.Draw(t, "size"))
		q := make([]byte, len(p))
		n, err := a(p)
		m, wantErr := b(q)
		if n != m || !bytes.Equal(p[:n], q[:m]) || (err == io.EOF) != (wantErr == io.EOF) ||
			(err == nil) != (wantErr == nil) {
			t.Fatalf("read of %d: %d %v, want %d %v", len(p), n, err, m, wantErr)
		}
	}
	ops := []func(*rapid.T){
		func(t *rapid.T) { // Read
			full := func(r io.Reader) func([]byte) (int, error) {
				return func(p []byte) (int, error) { return io.ReadFull(r, p) }
			}
			read(t, full(got), full(want))
		},
		func(t *rapid.T) { // ReadAt
			off := max(0, near.Draw(t, "off"))
			at := func(r io.ReaderAt) func([]byte) (int, error) {
				return func(p []byte) (int, error) { return r.ReadAt(p, off) }
			}
			read(t, at(got), at(want))
		},
		func(t *rapid.T) { // Seek
			off, whence := near.Draw(t, "off"), rapid.IntRange(0, 2).Draw(t, "whence")
			a, err := got.Seek(off, whence)
			b, wantErr := want.Seek(off, whence)
			if a != b && err == nil || (err == nil) != (wantErr == nil) {
				t.Fatalf("seek %d %d: %d %v, want %d %v", off, whence, a, err, b, wantErr)
			}
		},
	}
	for range rapid.IntRange(1, 8).Draw(t, "steps") { // t.Repeat runs 30 steps, each of a chunk
		ops[rapid.IntRange(0, len(ops)-1).Draw(t, "op")](t)
	}
}

func testParallelReads(t *testing.T, s blobs.Store) {
	is := is.New(t)
	want := random(4 * mib)
	put(t, s, "acme", "a", want)
	r, err := s.Open(t.Context(), "acme", "a")
	is.NoErr(err)
	var wg sync.WaitGroup
	same := make(chan bool, 8)
	for i := range 8 {
		wg.Go(func() {
			p := make([]byte, mib)
			off := i * mib * 3 / 8
			_, err := r.ReadAt(p, int64(off))
			same <- err == nil && bytes.Equal(p, want[off:off+mib])
		})
	}
	wg.Wait()
	for range 8 {
		is.True(<-same)
	}
	is.NoErr(r.Close())
}

func testParallelPuts(t *testing.T, s blobs.Store) {
	is := is.New(t)
	var wg sync.WaitGroup
	fails := make(chan error, 10)
	for i := range 10 {
		wg.Go(func() {
			_, err := blobs.Put(
				t.Context(), s, "acme", fmt.Sprint(i), unlimited, monday, bytes.NewReader(random(mib+i)),
			)
			fails <- err
		})
	}
	wg.Wait()
	for i := range 10 {
		is.NoErr(<-fails)
		is.True(bytes.Equal(get(t, s, "acme", fmt.Sprint(i)), random(mib+i)))
	}
}

// testWaiting: more slow writers and readers than the pool has connections do not block others.
func testWaiting(t *testing.T, s blobs.Store) {
	is := is.New(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	put(t, s, "acme", "read", random(2*mib))
	var writers []blobs.Writer
	var readers []blobs.Reader
	for i := range 10 {
		w, err := s.Create(ctx, "acme", fmt.Sprint(i), unlimited, monday)
		is.NoErr(err)
		_, err = w.Write(random(mib + 1))
		is.NoErr(err)
		r, err := s.Open(ctx, "acme", "read")
		is.NoErr(err)
		_, err = r.Read(make([]byte, 10))
		is.NoErr(err)
		writers, readers = append(writers, w), append(readers, r)
	}
	_, err := blobs.Put(ctx, s, "acme", "other", unlimited, monday, bytes.NewReader(random(2*mib)))
	is.NoErr(err)
	for i, w := range writers {
		_, err := w.Commit(ctx)
		is.NoErr(err)
		is.NoErr(readers[i].Close())
	}
}

func testLimit(t *testing.T, s blobs.Store) {
	is, ctx := is.New(t), t.Context()
	for i, limit := range []int{0, 1, mib, 2*mib + 5} {
		exact, over := fmt.Sprint("exact", i), fmt.Sprint("over", i)
		info, err := blobs.Put(ctx, s, "acme", exact, int64(limit), monday, bytes.NewReader(random(limit)))
		is.NoErr(err)
		is.Equal(info.Size, int64(limit))
		// not a bytes.Reader, which would be read at once
		_, err = blobs.Put(
			ctx, s, "acme", over, int64(limit), monday,
			io.MultiReader(bytes.NewReader(random(limit)), bytes.NewReader([]byte{1})),
		)
		is.Equal(errs.CodeOf(err), errs.TooLarge)
		leavesNone(t, s, over)
	}
}

func testTaken(t *testing.T, s blobs.Store) {
	is, ctx := is.New(t), t.Context()
	for _, size := range []int{1, 2 * mib} {
		id := fmt.Sprint(size)
		put(t, s, "acme", id, random(size))
		_, err := blobs.Put(ctx, s, "acme", id, unlimited, monday, bytes.NewReader(random(3*mib)))
		is.Equal(errs.CodeOf(err), errs.Conflict)
		is.True(bytes.Equal(get(t, s, "acme", id), random(size))) // the first one is not changed
	}
}

func testIsolation(t *testing.T, s blobs.Store) {
	is, ctx := is.New(t), t.Context()
	put(t, s, "acme", "a", random(mib+1))
	put(t, s, "evil", "b", []byte("b"))

	_, err := s.Open(ctx, "evil", "a")
	is.Equal(errs.CodeOf(err), errs.NotFound) // another tenant sees nothing
	is.NoErr(s.Delete(ctx, "evil", "a"))
	put(t, s, "evil", "a", []byte("evil")) // nor which ids are in use
	is.Equal(string(get(t, s, "evil", "a")), "evil")

	w, err := s.Create(ctx, "acme", "half", unlimited, monday)
	is.NoErr(err)
	_, err = w.Write(random(mib + 1))
	is.NoErr(err)
	n, err := s.Sweep(ctx, "evil", monday.Add(time.Hour))
	is.NoErr(err)
	is.Equal(n, 0)
	_, err = w.Commit(ctx)
	is.NoErr(err)
	is.True(bytes.Equal(get(t, s, "acme", "half"), random(mib+1))) // another tenant cannot change it
	is.True(bytes.Equal(get(t, s, "acme", "a"), random(mib+1)))
}

func testDelete(t *testing.T, s blobs.Store) {
	is, ctx := is.New(t), t.Context()
	put(t, s, "acme", "small", []byte("x"))
	put(t, s, "acme", "big", random(2*batch+mib))
	put(t, s, "acme", "kept", random(2*mib))
	r, err := s.Open(ctx, "acme", "big")
	is.NoErr(err)
	for _, id := range []string{"small", "big", "none", "big"} {
		is.NoErr(s.Delete(ctx, "acme", id))
		is.Equal(get(t, s, "acme", id), nil)
	}
	_, err = r.ReadAt(make([]byte, 10), 2*batch)
	is.Equal(errs.CodeOf(err), errs.NotFound) // an open Reader fails, and returns no other bytes
	is.True(bytes.Equal(get(t, s, "acme", "kept"), random(2*mib)))
	leavesNone(t, s, "big")
}

// testDeleteCutShort: a blob that was deleted in part is not found, and is swept.
func testDeleteCutShort(t *testing.T, s blobs.Store) {
	is := is.New(t)
	size := 2*batch + 2*mib
	put(t, s, "acme", "a", random(size))
	r, err := s.Open(t.Context(), "acme", "a")
	is.NoErr(err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error)
	go func() { done <- s.Delete(ctx, "acme", "a") }()
	for err == nil {
		_, err = r.ReadAt(make([]byte, 2), int64(size-mib-1)) // across two chunks, because a Reader keeps the last one
	}
	cancel()
	<-done
	is.Equal(get(t, s, "acme", "a"), nil)
	_, err = s.Sweep(t.Context(), "acme", monday.Add(time.Hour))
	for errs.CodeOf(err) == errs.Conflict { // the server may still run the interrupted delete
		_, err = s.Sweep(t.Context(), "acme", monday.Add(time.Hour))
	}
	is.NoErr(err)
	leavesNone(t, s, "a")
}

func testSweep(t *testing.T, s blobs.Store) {
	is, ctx := is.New(t), t.Context()
	put(t, s, "acme", "complete", random(mib))
	for i := range 3 { // the process ends without Commit or Abort
		w, err := s.Create(ctx, "acme", fmt.Sprint(i), unlimited, monday.Add(time.Duration(i)*time.Hour))
		is.NoErr(err)
		_, err = w.Write(random(batch + mib))
		is.NoErr(err)
	}
	for _, want := range []int{2, 0} {
		n, err := s.Sweep(ctx, "acme", monday.Add(2*time.Hour)) // the third one was begun at that time, not before
		is.NoErr(err)
		is.Equal(n, want)
	}
	n, err := s.Sweep(ctx, "acme", monday.Add(3*time.Hour))
	is.NoErr(err)
	is.Equal(n, 1)
	is.True(bytes.Equal(get(t, s, "acme", "complete"), random(mib)))
}

func testSweepEndsWriter(t *testing.T, s blobs.Store) {
	is, ctx := is.New(t), t.Context()
	for i, rest := range []int{0, 1, 2 * mib} {
		id := fmt.Sprint(i)
		w, err := s.Create(ctx, "acme", id, unlimited, monday)
		is.NoErr(err)
		_, err = w.Write(random(mib))
		is.NoErr(err)
		n, err := s.Sweep(ctx, "acme", monday.Add(time.Hour))
		is.NoErr(err)
		is.Equal(n, 1)
		_, write := w.Write(random(rest))
		_, commit := w.Commit(ctx)
		is.True(errors.Join(write, commit) != nil)
		w.Abort()
		leavesNone(t, s, id)
	}
}

// testSweepWhileCommitted: a blob that is committed during a sweep is either removed, and Commit
// fails, or is complete.
func testSweepWhileCommitted(t *testing.T, s blobs.Store) {
	is, ctx := is.New(t), t.Context()
	begin := func(id string) blobs.Writer {
		w, err := s.Create(ctx, "acme", id, unlimited, monday)
		is.NoErr(err)
		_, err = w.Write(random(mib))
		is.NoErr(err)
		return w
	}
	committed := make([]blobs.Writer, 8)
	for i := range committed {
		begin(fmt.Sprint("stale", i))
		committed[i] = begin(fmt.Sprint(i))
	}
	swept := make(chan error, 1)
	go func() {
		_, err := s.Sweep(ctx, "acme", monday.Add(time.Hour))
		swept <- err
	}()
	for i, w := range slices.Backward(committed) {
		_, err := w.Commit(ctx)
		w.Abort()
		is.Equal(get(t, s, "acme", fmt.Sprint(i)) != nil, err == nil)
	}
	is.NoErr(<-swept)
	for i := range committed {
		if p := get(t, s, "acme", fmt.Sprint(i)); p != nil {
			is.True(bytes.Equal(p, random(mib)))
		}
	}
}

// testCommittedStays: Abort does not remove a committed blob, as after a COMMIT whose answer was
// lost.
func testCommittedStays(t *testing.T, s blobs.Store) {
	is, ctx := is.New(t), t.Context()
	for _, size := range []int{0, 1, 2*mib + 1} {
		id := fmt.Sprint(size)
		w, err := s.Create(ctx, "acme", id, unlimited, monday)
		is.NoErr(err)
		_, err = w.Write(random(size))
		is.NoErr(err)
		_, err = w.Commit(ctx)
		is.NoErr(err)
		w.Abort()
		is.True(bytes.Equal(get(t, s, "acme", id), random(size)))
	}
}

func testHidden(t *testing.T, s blobs.Store) {
	is, ctx := is.New(t), t.Context()
	w, err := s.Create(ctx, "acme", "a", unlimited, monday)
	is.NoErr(err)
	is.Equal(get(t, s, "acme", "a"), nil)
	_, err = w.Write(random(2*mib + 1))
	is.NoErr(err)
	is.Equal(get(t, s, "acme", "a"), nil)
	_, err = w.Commit(ctx)
	is.NoErr(err)
	is.True(bytes.Equal(get(t, s, "acme", "a"), random(2*mib+1)))

	w, err = s.Create(ctx, "acme", "b", unlimited, monday)
	is.NoErr(err)
	_, err = w.Write(random(2*mib + 1))
	is.NoErr(err)
	w.Abort()
	w.Abort()
	_, err = w.Commit(ctx)
	is.True(err != nil)
	leavesNone(t, s, "b")
}

// faulty returns a Reader of n bytes that then calls then.
func faulty(n int, then func() error) io.Reader {
	return io.MultiReader(bytes.NewReader(random(n)), readFunc(func([]byte) (int, error) { return 0, then() }))
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

var sizes = []int{0, 1, mib, batch + 1}

func testFailed(t *testing.T, s blobs.Store) {
	is := is.New(t)
	fault := errors.New("fault")
	for _, size := range sizes {
		_, err := blobs.Put(t.Context(), s, "acme", "a", unlimited, monday, faulty(size, func() error { return fault }))
		is.True(err == fault) // returned unchanged
		leavesNone(t, s, "a")
		is.NoErr(s.Delete(t.Context(), "acme", "a"))
	}
}

func testPanic(t *testing.T, s blobs.Store) {
	for _, size := range sizes {
		func() {
			defer func() { is.New(t).Equal(recover(), "boom") }()
			_, _ = blobs.Put(t.Context(), s, "acme", "a", unlimited, monday, faulty(size, func() error {
				panic("boom")
			}))
		}()
		leavesNone(t, s, "a")
		is.New(t).NoErr(s.Delete(t.Context(), "acme", "a"))
	}
}

func testCanceled(t *testing.T, s blobs.Store) {
	is := is.New(t)
	for _, size := range sizes {
		ctx, cancel := context.WithCancel(t.Context())
		_, err := blobs.Put(ctx, s, "acme", "a", unlimited, monday, io.MultiReader(
			faulty(size, func() error { cancel(); return io.EOF }), bytes.NewReader(random(mib))))
		is.True(errors.Is(err, context.Canceled))
		leavesNone(t, s, "a")
		_, err = s.Open(ctx, "acme", "a")
		is.True(errors.Is(err, context.Canceled))
		is.NoErr(s.Delete(t.Context(), "acme", "a"))
	}

	put(t, s, "acme", "a", random(2*mib))
	ctx, cancel := context.WithCancel(t.Context())
	r, err := s.Open(ctx, "acme", "a")
	is.NoErr(err)
	_, err = r.Read(make([]byte, 10))
	is.NoErr(err)
	cancel()
	_, err = r.ReadAt(make([]byte, 10), mib)
	is.True(errors.Is(err, context.Canceled))
}

func testErrorsStay(t *testing.T, s blobs.Store) {
	is, ctx := is.New(t), t.Context()
	w, err := s.Create(ctx, "acme", "a", 10, monday)
	is.NoErr(err)
	_, err = w.Write(random(11))
	is.Equal(errs.CodeOf(err), errs.TooLarge)
	_, err = w.Write(random(1)) // a caller that ignores the error cannot create a blob with a hole
	is.Equal(errs.CodeOf(err), errs.TooLarge)
	_, err = w.Commit(ctx)
	is.Equal(errs.CodeOf(err), errs.TooLarge)
	w.Abort()
	leavesNone(t, s, "a")
}

func testClosed(t *testing.T, s blobs.Store) {
	is := is.New(t)
	put(t, s, "acme", "a", random(10))
	r, err := s.Open(t.Context(), "acme", "a")
	is.NoErr(err)
	_, err = r.ReadAt(make([]byte, 5), 0)
	is.NoErr(err)
	is.NoErr(r.Close())
	is.NoErr(r.Close())
	_, err = r.ReadAt(make([]byte, 5), 0)
	is.True(err != nil)
}
