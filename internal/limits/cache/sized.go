package cache

import (
	"container/heap"
	"container/list"
	"sync"
)

// Sized keeps values that never change in memory, by tenant and id, up to a total number of bytes.
// If there are more, it removes the least recently used values of the tenant with the most bytes,
// so that one tenant cannot displace the others.
type Sized[T any] struct {
	max     int
	mu      sync.Mutex
	total   int
	tenants map[string]*keeper
	largest keepers
}

// keeper has the values of one tenant.
type keeper struct {
	tenant string
	at     int // index in the heap
	bytes  int
	byID   map[string]*list.Element
	used   list.List // of kept, the most recently used first
}

type kept[T any] struct {
	id    string
	value T
	size  int
}

// overhead is the approximate number of bytes for a value in addition to its size.
const overhead = 256

// NewSized returns a Sized of at most max bytes.
func NewSized[T any](max int) *Sized[T] { return &Sized[T]{max: max, tenants: map[string]*keeper{}} }

// Get returns a value, which must not be changed.
func (b *Sized[T]) Get(tenant, id string) (value T, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	k := b.tenants[tenant]
	if k == nil {
		return value, false
	}
	e := k.byID[id]
	if e == nil {
		return value, false
	}
	k.used.MoveToFront(e)
	return e.Value.(kept[T]).value, true
}

// Put adds a value of about size bytes, which must not be changed afterwards. It does not replace
// an existing value.
func (b *Sized[T]) Put(tenant, id string, value T, size int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	k := b.tenants[tenant]
	if k == nil {
		k = &keeper{tenant: tenant, byID: map[string]*list.Element{}}
		b.tenants[tenant] = k
		heap.Push(&b.largest, k)
	}
	if k.byID[id] != nil {
		return
	}
	one := kept[T]{id, value, size + overhead}
	k.byID[id] = k.used.PushFront(one)
	b.add(k, one.size)
	for b.total > b.max {
		b.evict(b.largest[0])
	}
}

func (b *Sized[T]) add(k *keeper, n int) {
	b.total += n
	k.bytes += n
	heap.Fix(&b.largest, k.at)
}

// evict removes the least recently used value of a tenant.
func (b *Sized[T]) evict(k *keeper) {
	one := k.used.Remove(k.used.Back()).(kept[T])
	delete(k.byID, one.id)
	b.add(k, -one.size)
	if len(k.byID) == 0 {
		heap.Remove(&b.largest, k.at)
		delete(b.tenants, k.tenant)
	}
}

// keepers is a heap; the first tenant has the most bytes.
type keepers []*keeper

func (h keepers) Len() int           { return len(h) }
func (h keepers) Less(i, j int) bool { return h[i].bytes > h[j].bytes }
func (h keepers) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i, j
}

// Push implements heap.Interface.
func (h *keepers) Push(k any) {
	k.(*keeper).at = len(*h)
	*h = append(*h, k.(*keeper))
}

// Pop implements heap.Interface.
func (h *keepers) Pop() any {
	last := len(*h) - 1
	k := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return k
}
