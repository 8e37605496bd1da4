package cache

import (
	"context"
	"sync"
	"time"
)

const (
	// lifetime is how long an entry is valid. A change by another process becomes visible after
	// that time; a change by this process at once.
	lifetime = time.Second
	// maxEntries is the most entries of a Cache.
	maxEntries = 10000
)

// Cache caches look-ups by tenant and id for a second, so that a client with many requests costs
// one statement a second.
type Cache[T any] struct {
	changes func(tenant string) uint64 // counts changes of the rows that a look-up reads; nil: nothing is cached
	mu      sync.RWMutex
	entries map[key]entry[T]
	hit     func(ctx context.Context, tenant string) // nil: nothing is called
}

type key struct{ tenant, id string }

type entry[T any] struct {
	value   T
	version uint64
	at      time.Time
}

// New returns a Cache of values. changes returns the number of changes of the rows that the values
// of a tenant depend on, as Counter.Of does. If it is nil, nothing is cached.
func New[T any](changes func(tenant string) uint64) *Cache[T] {
	return &Cache[T]{changes: changes, entries: map[key]entry[T]{}}
}

// OnHit sets the function that Get calls when it returns a cached value. It must be called before
// Get is.
func (c *Cache[T]) OnHit(hit func(ctx context.Context, tenant string)) { c.hit = hit }

// TxKey is the key of the transaction in a context, which implements Tx.
type TxKey struct{}

// Tx is a transaction.
type Tx interface {
	// Uncached reports whether the transaction may see other rows than concurrent ones, such as
	// those that it has changed.
	Uncached() bool
}

// Get returns the cached value, or calls load and caches its result. It does not cache errors, nor
// what only the transaction in ctx may see.
func (c *Cache[T]) Get(ctx context.Context, tenant, id string, load func() (T, error)) (T, error) {
	if tx, ok := ctx.Value(TxKey{}).(Tx); c.changes == nil || ok && tx.Uncached() {
		return load()
	}
	now := entry[T]{version: c.changes(tenant), at: time.Now()} // before load: a change during it invalidates this
	at := key{tenant, id}
	c.mu.RLock()
	e, ok := c.entries[at]
	c.mu.RUnlock()
	if ok && e.version == now.version && now.at.Sub(e.at) < lifetime {
		if c.hit != nil {
			c.hit(ctx, tenant)
		}
		return e.value, nil
	}
	var err error
	if now.value, err = load(); err != nil {
		return now.value, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.entries) >= maxEntries {
		clear(c.entries)
	}
	c.entries[at] = now
	return now.value, nil
}
