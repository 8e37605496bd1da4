// Package cache keeps the results of queries in memory for a moment, until a change of the tenant
// that this process has counted.
//
// Nouns and the root import it. The count is this process's: another process does not see it.
package cache

import (
	"sync"
	"sync/atomic"
)

// Counter counts changes per tenant. The zero Counter is ready to use.
type Counter struct{ counts sync.Map }

// Of returns the tenant's count. Read it before the rows that are to be cached.
func (c *Counter) Of(tenant string) uint64 {
	if n, ok := c.counts.Load(tenant); ok {
		return n.(*atomic.Uint64).Load()
	}
	return 0
}

// Bump counts a change that has been committed.
func (c *Counter) Bump(tenant string) {
	n, ok := c.counts.Load(tenant)
	if !ok {
		n, _ = c.counts.LoadOrStore(tenant, new(atomic.Uint64))
	}
	n.(*atomic.Uint64).Add(1)
}
