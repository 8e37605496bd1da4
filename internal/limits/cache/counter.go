// Package cache keeps the results of queries in memory for a moment, until this process counts a
// change of the tenant.
//
// Nouns and the root import it. Other processes do not see the count.
package cache

import (
	"sync"
	"sync/atomic"
)

// Counter counts changes per tenant. The zero Counter is ready for use.
type Counter struct{ counts sync.Map }

// Of returns the tenant's count. It must be called before the cached rows are read.
func (c *Counter) Of(tenant string) uint64 {
	if n, ok := c.counts.Load(tenant); ok {
		return n.(*atomic.Uint64).Load()
	}
	return 0
}

// Bump counts a committed change.
func (c *Counter) Bump(tenant string) {
	n, ok := c.counts.Load(tenant)
	if !ok {
		n, _ = c.counts.LoadOrStore(tenant, new(atomic.Uint64))
	}
	n.(*atomic.Uint64).Add(1)
}
