// Package tally counts in memory what many requests do, so that they need not write to the
// database.
package tally

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"
)

// Tally has, for each tenant, the values by key that were counted since the last write.
type Tally[K comparable, V any] struct {
	add   func(have, more V) V
	write func(ctx context.Context, tenant string, counted map[K]V) error
	drop  func(V)

	mu       sync.Mutex
	byTenant map[string]*counts[K, V]
}

// counts has the values of one tenant. It is kept after they are written.
type counts[K comparable, V any] struct {
	writing chan struct{} // has an element during a write
	counted map[K]V
}

// Limits of what is kept and written.
const (
	maxKeys = 100_000         // of a tenant; further keys are not counted until these can be written
	atOnce  = 4               // number of tenants that FlushAll writes concurrently
	timeout = 5 * time.Second // for one tenant in FlushAll
)

// New returns a Tally. add returns the sum of two values. write stores the counted values, which
// are not empty.
func New[K comparable, V any](
	add func(have, more V) V, write func(ctx context.Context, tenant string, counted map[K]V) error,
) *Tally[K, V] {
	return &Tally[K, V]{add: add, write: write, drop: func(V) {}, byTenant: map[string]*counts[K, V]{}}
}

// OnDrop sets a function and returns t. Add and Flush call it with each value that is not counted
// because a tenant has too many keys that could not be written yet. It must be called before t is
// used.
func (t *Tally[K, V]) OnDrop(drop func(V)) *Tally[K, V] {
	t.drop = drop
	return t
}

// Add counts more for a key. It drops a new key of a tenant that has too many keys that could not
// be written yet.
func (t *Tally[K, V]) Add(tenant string, key K, more V) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.of(tenant)
	if have, there := c.counted[key]; there || len(c.counted) < maxKeys {
		c.counted[key] = t.add(have, more)
	} else {
		t.drop(more)
	}
}

// of returns the counts of a tenant. The caller must hold mu.
func (t *Tally[K, V]) of(tenant string) *counts[K, V] {
	c, there := t.byTenant[tenant]
	if !there {
		c = &counts[K, V]{writing: make(chan struct{}, 1), counted: map[K]V{}}
		t.byTenant[tenant] = c
	}
	return c
}

// Flush writes the counted values of a tenant. It waits for other calls for the tenant. When it
// returns nil, everything that was counted before has been written. Values that cannot be written
// are kept for the next call.
func (t *Tally[K, V]) Flush(ctx context.Context, tenant string) error {
	t.mu.Lock()
	c, there := t.byTenant[tenant]
	t.mu.Unlock()
	if !there {
		return nil
	}
	select {
	case c.writing <- struct{}{}:
		defer func() { <-c.writing }()
	case <-ctx.Done():
		return ctx.Err()
	}
	t.mu.Lock()
	counted := c.counted
	c.counted = map[K]V{}
	t.mu.Unlock()
	if len(counted) == 0 {
		return nil
	}
	err := t.write(ctx, tenant, counted)
	if err != nil {
		t.restore(c, counted)
	}
	return err
}

// restore adds the values that could not be written, as older than those counted since.
func (t *Tally[K, V]) restore(c *counts[K, V], before map[K]V) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, since := range c.counted {
		if have, there := before[key]; there {
			before[key] = t.add(have, since)
		} else if len(before) < maxKeys {
			before[key] = since
		} else {
			t.drop(since)
		}
	}
	c.counted = before
}

// FlushAll writes the counted values of all tenants, several tenants concurrently, so that a tenant
// whose rows are locked does not delay the others.
func (t *Tally[K, V]) FlushAll(ctx context.Context) error {
	t.mu.Lock()
	tenants := slices.Collect(maps.Keys(t.byTenant))
	t.mu.Unlock()
	var running sync.WaitGroup
	// the failure of one tenant does not affect the others
	failed, places := make([]error, len(tenants)), make(chan struct{}, atOnce)
	for i, tenant := range tenants {
		places <- struct{}{}
		running.Go(func() {
			defer func() { <-places }()
			ctx, cancel := context.WithTimeout(ctx, timeout)
			defer cancel()
			failed[i] = t.Flush(ctx, tenant)
		})
	}
	running.Wait()
	return errors.Join(failed...)
}
