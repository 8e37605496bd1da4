// Package tally counts in memory what many requests do, so that they do not write.
package tally

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"
)

// Tally is what was counted for each tenant since it was last written, by key.
type Tally[K comparable, V any] struct {
	add   func(have, more V) V
	write func(ctx context.Context, tenant string, counted map[K]V) error
	drop  func(V)

	mu       sync.Mutex
	byTenant map[string]*counts[K, V]
}

// counts is what was counted for one tenant. It stays when it has been written.
type counts[K comparable, V any] struct {
	writing chan struct{} // has an element while what was counted is written
	counted map[K]V
}

// The bounds of what is kept and written.
const (
	maxKeys = 100_000         // of a tenant: what has other keys is not counted while so much cannot be written
	atOnce  = 4               // how many tenants FlushAll writes at once
	timeout = 5 * time.Second // of a tenant in FlushAll
)

// New returns a Tally. add returns the sum of two values; write stores what was counted, which is
// not empty.
func New[K comparable, V any](
	add func(have, more V) V, write func(ctx context.Context, tenant string, counted map[K]V) error,
) *Tally[K, V] {
	return &Tally[K, V]{add: add, write: write, drop: func(V) {}, byTenant: map[string]*counts[K, V]{}}
}

// OnDrop sets what is called, in the middle of Add or Flush, with each value that is not counted
// because a tenant has very many keys which could not be written yet, and returns t. It is called
// before t is used.
func (t *Tally[K, V]) OnDrop(drop func(V)) *Tally[K, V] {
	t.drop = drop
	return t
}

// Add counts. It does nothing for a new key of a tenant that has very many which could not be
// written yet.
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

// of returns the counts of a tenant. The caller holds mu.
func (t *Tally[K, V]) of(tenant string) *counts[K, V] {
	c, there := t.byTenant[tenant]
	if !there {
		c = &counts[K, V]{writing: make(chan struct{}, 1), counted: map[K]V{}}
		t.byTenant[tenant] = c
	}
	return c
}

// Flush writes what was counted for a tenant. It waits for another Flush of the tenant: when it
// returns nil, all that was counted before has been written. What cannot be written is kept for the
// next time.
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

// restore adds what was counted before and could not be written: before what was counted since.
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

// FlushAll writes what was counted for every tenant, some tenants at once: one whose rows are
// locked does not keep the others waiting.
func (t *Tally[K, V]) FlushAll(ctx context.Context) error {
	t.mu.Lock()
	tenants := slices.Collect(maps.Keys(t.byTenant))
	t.mu.Unlock()
	var running sync.WaitGroup
	// one tenant's failure is not the others'
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
