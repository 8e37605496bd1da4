package sessions

import (
	"sync"
	"time"

	"github.com/tenantcontent/tenantcontent/internal/epoch"
)

const (
	// fresh is how long a look-up is used again: what another process changes is seen here after that time. What this
	// process changes is seen at once.
	fresh = time.Second
	// maxKept bounds the look-ups in memory.
	maxKept = 10000
)

// cache keeps the look-ups of credentials for a moment, so that a caller who sends many requests costs one statement a
// second and not one each.
type cache[T any] struct {
	changes *epoch.Counter // of what a look-up depends on; nil: nothing is kept
	mu      sync.RWMutex
	kept    map[place]kept[T]
}

type place struct{ tenant, id string }

type kept[T any] struct {
	value T
	epoch uint64
	at    time.Time
}

func newCache[T any](changes *epoch.Counter) *cache[T] {
	return &cache[T]{changes: changes, kept: map[place]kept[T]{}}
}

// get gives what load gave a moment ago, or loads it. A failure is not kept.
func (c *cache[T]) get(tenant, id string, load func() (T, error)) (T, error) {
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
