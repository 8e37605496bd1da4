package cache

import (
	"container/heap"
	"container/list"
	"sync"
)

// Bytes keeps contents that never change in memory, by tenant and id, up to a number of bytes in all. When there are more, the
// tenant that has most gives up what it has not used for longest, so that none displaces the others.
type Bytes struct {
	max     int
	mu      sync.Mutex
	total   int
	tenants map[string]*keeper
	largest keepers
}

// keeper is what is kept of a tenant.
type keeper struct {
	tenant string
	at     int // index in the heap
	bytes  int
	byID   map[string]*list.Element
	used   list.List // of kept, the last used first
}

type kept struct {
	id      string
	content []byte
}

// overhead is about what a content takes beside its bytes.
const overhead = 256

func (k kept) size() int { return len(k.content) + overhead }

// NewBytes returns a Bytes of at most max bytes.
func NewBytes(max int) *Bytes { return &Bytes{max: max, tenants: map[string]*keeper{}} }

// Get returns a content, which must not be changed.
func (b *Bytes) Get(tenant, id string) ([]byte, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	k := b.tenants[tenant]
	if k == nil {
		return nil, false
	}
	e := k.byID[id]
	if e == nil {
		return nil, false
	}
	k.used.MoveToFront(e)
	return e.Value.(kept).content, true
}

// Put adds a content, which must not be changed any more. One that is there already stays.
func (b *Bytes) Put(tenant, id string, content []byte) {
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
	one := kept{id, content}
	k.byID[id] = k.used.PushFront(one)
	b.add(k, one.size())
	for b.total > b.max {
		b.evict(b.largest[0])
	}
}

func (b *Bytes) add(k *keeper, n int) {
	b.total += n
	k.bytes += n
	heap.Fix(&b.largest, k.at)
}

// evict removes what a tenant has not used for longest.
func (b *Bytes) evict(k *keeper) {
	one := k.used.Remove(k.used.Back()).(kept)
	delete(k.byID, one.id)
	b.add(k, -one.size())
	if len(k.byID) == 0 {
		heap.Remove(&b.largest, k.at)
		delete(b.tenants, k.tenant)
	}
}

// keepers is a heap whose first one has the most bytes.
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
