// Package tally counts in memory what many requests do, so that they do not write.
package tally

import (
	"context"
	"errors"
	"sync"
)

// Tally is what was counted for each tenant since it was last written, by key.
type Tally[K comparable, V any] struct {
	add   func(have, more V) V
	write func(ctx context.Context, tenant string, counted map[K]V) error

	mu       sync.Mutex
	byTenant map[string]map[K]V
}

// New returns a Tally. add returns the sum of two values; write stores what was counted, which is not empty.
func New[K comparable, V any](add func(have, more V) V, write func(ctx context.Context, tenant string, counted map[K]V) error) *Tally[K, V] {
	return &Tally[K, V]{add: add, write: write, byTenant: map[string]map[K]V{}}
}

// Add counts.
func (t *Tally[K, V]) Add(tenant string, key K, more V) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byTenant[tenant] == nil {
		t.byTenant[tenant] = map[K]V{}
	}
	t.byTenant[tenant][key] = t.add(t.byTenant[tenant][key], more)
}

// Flush writes what was counted for a tenant. What cannot be written is kept for the next time.
func (t *Tally[K, V]) Flush(ctx context.Context, tenant string) error {
	t.mu.Lock()
	counted := t.byTenant[tenant]
	delete(t.byTenant, tenant)
	t.mu.Unlock()
	if len(counted) == 0 {
		return nil
	}
	err := t.write(ctx, tenant, counted)
	if err != nil {
		for key, n := range counted {
			t.Add(tenant, key, n)
		}
	}
	return err
}

// FlushAll writes what was counted for every tenant.
func (t *Tally[K, V]) FlushAll(ctx context.Context) error {
	t.mu.Lock()
	tenants := make([]string, 0, len(t.byTenant))
	for tenant := range t.byTenant {
		tenants = append(tenants, tenant)
	}
	t.mu.Unlock()
	var failed []error // one tenant's failure is not the others'
	for _, tenant := range tenants {
		failed = append(failed, t.Flush(ctx, tenant))
	}
	return errors.Join(failed...)
}
