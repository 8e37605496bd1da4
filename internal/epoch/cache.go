package epoch

import (
	"sync"
	"time"
)

const (
	// fresh is how long a look-up is used again: what another process changes is seen here after that time. What this
	// process changes is seen at once.
	fresh = time.Second
	// maxKept bounds the look-ups in memory.
	maxKept = 10000
)

// Cache keeps look-ups for a moment, so that who sends many requests costs one statement a second and not one each.
type Cache[T any] struct {
	changes *Counter // of what a look-up depends on; nil: nothing is kept
	mu      sync.RWMutex
	kept    map[place]kept[T]
}

type place struct{ tenant, id string }

type kept[T any] struct {
	value T
	epoch uint64
	at    time.Time
}

// NewCache makes a Cache of what depends on the rows whose changes are counted. Without a counter it keeps nothing.
func NewCache[T any](changes *Counter) *Cache[T] {
	return &Cache[T]{changes: changes, kept: map[place]kept[T]{}}
}

// Get returns what load gave a moment ago, or loads it. A failure is not kept.
func (c *Cache[T]) Get(tenant, id string, load func() (T, error)) (T, error) {
	if c.changes == nil {
		return load()
	}
	now := kept[T]{epoch: c.changes.Of(tenant), at: time.Now()} // before load: a change meanwhile makes it old
	at := place{tenant, id}
	c.mu.RLock()
	k, ok := c.kept[at]
	c.mu.RUnlock()
	if ok && k.epoch == now.epoch && now.at.Sub(k.at) < fresh {
		return k.value, nil
	}
	var err error
	if now.value, err = load(); err != nil {
		return now.value, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.kept) >= maxKept {
		clear(c.kept)
	}
	c.kept[at] = now
	return now.value, nil
}
