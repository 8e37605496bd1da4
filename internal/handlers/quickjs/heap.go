package quickjs

import (
	"math/bits"
	"slices"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/libquickjs"
)

// A heap is the memory of the engine in a child: one region at a fixed address. It can be saved and
// restored by copying its bytes, as all pointers of the engine point into it, so that each
// invocation starts with the same state and leaves nothing to the next one. It also counts what is
// in use exactly.
//
// The engine has an allocator of its own for small values and takes from here its chunks of 4 KiB,
// and larger values. Blocks have a header with their size; free blocks are in a list for each size
// class. Once the heap is sealed, blocks above maxClass come from libc, in a list, so that freeing
// them returns their memory.
type heap struct {
	tls       *libc.TLS
	memory    []byte
	base, end uintptr
	state
	sealed  bool
	large   uintptr // list of blocks from libc
	limit   int64
	peak    int64
	refused bool // whether an allocation was refused
}

// state is what describes the contents of the region.
type state struct {
	next uintptr // first byte that was never in use
	used int64   // bytes in use, with headers
	free [classes]uintptr
}

// snapshot is a saved state of a heap.
type snapshot struct {
	bytes []byte
	state
}

const (
	header   = 32       // before each block: its size; for large ones also the next and previous one
	maxClass = 64 << 10 // largest block that has a class
	classes  = 128 + 3*4 + 1
)

// class returns the size class of a block and the size of the blocks in it: steps of 64 bytes up to
// 8 KiB, then four for each doubling.
func class(size uintptr) (index int, full uintptr) {
	if size <= 8<<10 {
		index = int((size + 63) / 64)
		return index, uintptr(index) * 64
	}
	shift := bits.Len(uint(size-1)) - 3 // the step is a quarter of the power of two below size
	step := uintptr(1) << shift
	full = (size + step - 1) &^ (step - 1)
	return 128 + (shift-11)*4 + int(full>>shift) - 4, full
}

func newHeap(tls *libc.TLS, size int64) (*heap, error) {
	memory, err := reserve(int(size))
	if err != nil {
		return nil, err
	}
	base := uintptr(unsafe.Pointer(unsafe.SliceData(memory)))
	h := &heap{tls: tls, memory: memory, base: base, end: base + uintptr(size), limit: size}
	h.next = (base + 63) &^ 63
	return h, nil
}

// pointer returns address as a pointer. The address is outside of Go's own memory, where the rules
// for such conversions do not apply.
func pointer(address uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&address)) }

// word returns the word at address.
func word(address uintptr) *uintptr { return (*uintptr)(pointer(address)) }

// view returns the n bytes at address.
func view(address uintptr, n int) []byte { return unsafe.Slice((*byte)(pointer(address)), n) }

// save returns the state of the heap.
func (h *heap) save() *snapshot {
	return &snapshot{bytes: slices.Clone(h.memory[:h.next-h.base]), state: h.state}
}

// restore makes the heap as it was when s was saved. Nothing is left of what was written since.
func (h *heap) restore(s *snapshot) {
	for h.large != 0 {
		p := h.large
		h.large = *word(p + 8)
		libc.Xfree(h.tls, p)
	}
	n := copy(h.memory, s.bytes)
	if dirty := h.memory[n:max(int(h.next-h.base), n)]; len(dirty) > 1<<20 {
		release(dirty)
	} else {
		clear(dirty)
	}
	h.state = s.state
	h.peak, h.refused = h.used, false
}

func (h *heap) alloc(size uintptr) uintptr {
	size += header
	index, full := class(min(size, maxClass))
	small := size <= maxClass
	if !small {
		full = (size + 63) &^ 63
	}
	if size = full; int64(size) < 0 || h.used+int64(size) > h.limit {
		h.refused = true
		return 0
	}
	p := uintptr(0)
	switch {
	case small && h.free[index] != 0:
		p = h.free[index]
		h.free[index] = *word(p + header)
	case !small && h.sealed:
		if p = libc.Xmalloc(h.tls, libc.Tsize_t(size)); p != 0 {
			h.link(p)
		}
	case size <= h.end-h.next:
		p = h.next
		h.next += size
	}
	if p == 0 {
		h.refused = true
		return 0
	}
	*word(p) = size
	h.used += int64(size)
	h.peak = max(h.peak, h.used)
	return p + header
}

func (h *heap) release(p uintptr) {
	if p == 0 {
		return
	}
	p -= header
	size := *word(p)
	h.used -= int64(size)
	switch {
	case p < h.base || p >= h.end:
		h.unlink(p)
		libc.Xfree(h.tls, p)
	case size <= maxClass:
		index, _ := class(size)
		*word(p + header) = h.free[index]
		h.free[index] = p
	}
}

func (h *heap) realloc(p, size uintptr) uintptr {
	if p == 0 {
		return h.alloc(size)
	}
	old := *word(p - header) - header
	if size <= old && (old <= maxClass || size > old/2) {
		return p
	}
	if block := p - header; block < h.base || block >= h.end {
		return h.reallocLarge(block, (size+header+63)&^63)
	}
	q := h.alloc(size)
	if q == 0 {
		return 0
	}
	copy(view(q, int(min(old, size))), view(p, int(min(old, size))))
	h.release(p)
	return q
}

// reallocLarge changes the size of a block from libc, with its header.
func (h *heap) reallocLarge(p, size uintptr) uintptr {
	old := *word(p)
	if int64(size) < 0 || h.used+int64(size)-int64(old) > h.limit {
		h.refused = true
		return 0
	}
	h.unlink(p)
	q := libc.Xrealloc(h.tls, p, libc.Tsize_t(size))
	if q == 0 {
		h.link(p)
		h.refused = true
		return 0
	}
	*word(q) = size
	h.link(q)
	h.used += int64(size) - int64(old)
	h.peak = max(h.peak, h.used)
	return q + header
}

func (h *heap) link(p uintptr) {
	*word(p + 8), *word(p + 16) = h.large, 0
	if h.large != 0 {
		*word(h.large + 16) = p
	}
	h.large = p
}

func (h *heap) unlink(p uintptr) {
	next, previous := *word(p + 8), *word(p + 16)
	if next != 0 {
		*word(next + 16) = previous
	}
	if previous != 0 {
		*word(previous + 8) = next
	} else {
		h.large = next
	}
}

// The functions that the engine calls. It passes them its own counters, by which it decides when to
// collect garbage.

func engineAlloc(_ *libc.TLS, counters uintptr, size lib.Tsize_t) uintptr {
	p := machine.heap.alloc(uintptr(size))
	count(counters)
	return p
}

func engineFree(_ *libc.TLS, counters, p uintptr) {
	machine.heap.release(p)
	count(counters)
}

func engineRealloc(_ *libc.TLS, counters, p uintptr, size lib.Tsize_t) uintptr {
	defer count(counters)
	if size == 0 {
		machine.heap.release(p)
		return 0
	}
	return machine.heap.realloc(p, uintptr(size))
}

func engineUsable(_ *libc.TLS, p uintptr) lib.Tsize_t {
	if p == 0 {
		return 0
	}
	return lib.Tsize_t(*word(p - header) - header)
}

func count(counters uintptr) {
	(*lib.TJSMallocState)(pointer(counters)).Fmalloc_size = lib.Tsize_t(machine.heap.used)
}
