package blobstest

import (
	"bytes"
	"io"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/drafts/blobs"
)

// TestMemory streams 64 MiB in and out; the heap must not grow by a quarter of it.
func TestMemory(t *testing.T, s blobs.Store) {
	is := is.New(t)
	defer debug.SetGCPercent(debug.SetGCPercent(10)) // so that garbage is not counted
	heap := newHeap()
	chunk := random(mib)
	in := make([]io.Reader, 64)
	for i := range in {
		in[i] = io.TeeReader(bytes.NewReader(chunk), heap)
	}
	_, err := blobs.Put(t.Context(), s, "acme", "a", unlimited, monday, io.MultiReader(in...))
	is.NoErr(err)
	t.Logf("writing: the heap grew by %d KiB", heap.growth()>>10)
	is.True(heap.growth() < 16*mib)

	heap = newHeap()
	r, err := s.Open(t.Context(), "acme", "a")
	is.NoErr(err)
	n, err := io.Copy(heap, r)
	is.NoErr(err)
	is.Equal(n, int64(64*mib))
	t.Logf("reading: the heap grew by %d KiB", heap.growth()>>10)
	is.True(heap.growth() < 16*mib)
}

// heap is a Writer that records the most memory in use at any Write.
type heap struct{ start, peak uint64 }

func newHeap() *heap {
	runtime.GC()
	n := inUse()
	return &heap{n, n}
}

func (h *heap) Write(p []byte) (int, error) {
	h.peak = max(h.peak, inUse())
	return len(p), nil
}

func (h *heap) growth() uint64 { return h.peak - h.start }

func inUse() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
