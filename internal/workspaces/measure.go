package workspaces

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync/atomic"
	"time"
)

// bounded is a Conn whose statements are bounded by the room that the tenant has.
type bounded struct {
	Conn
	s     *Service
	of    key
	wrote bool // perhaps
}

// Query implements Conn.
func (b *bounded) Query(ctx context.Context, statement string, params json.RawMessage) (json.RawMessage, error) {
	b.wrote = b.wrote || !ReadOnly(ctx)
	bound, grew := b.s.bound(ctx, b.of.tenant)
	begun := time.Now()
	rows, err := b.Conn.Query(bound, statement, params)
	if grew() {
		b.s.grown(ctx, b.of, time.Since(begun))
	}
	return rows, err
}

// Close implements Conn.
func (b *bounded) Close() error {
	err := b.Conn.Close()
	if b.wrote {
		b.s.use(b.of)
	}
	return err
}

// bound returns a context in which statements are bounded by the room that a tenant has, and
// whether one of them could make its workspace larger.
func (s *Service) bound(ctx context.Context, tenant string) (bound context.Context, grew func() bool) {
	if s.o.Room == nil {
		return ctx, func() bool { return false }
	}
	var asked atomic.Bool
	return WithRoom(ctx, func(ctx context.Context, n int64) (int64, error) {
		left, err := s.o.Room(ctx, tenant, n)
		if n > 0 && err == nil {
			asked.Store(true)
		}
		return left, err
	}), asked.Load
}

const (
	// sizedEach is how often a workspace is measured after statements that can make it larger,
	// where the driver has it measured less often by itself.
	sizedEach = 5 * time.Second
	// long is how long a statement takes that can have written much: the workspace is measured
	// after it if that was not done in the last second.
	long = 250 * time.Millisecond
)

// grown measures a workspace after a statement that can have made it larger, so that a tenant
// passes its quota by what is written in a few seconds, not in the time between two calls of
// Measure. What fails is measured by the next of these.
func (s *Service) grown(ctx context.Context, k key, took time.Duration) {
	if s.o.Driver.Bounds().Measure <= sizedEach {
		return
	}
	s.mu.Lock()
	now, last := time.Now(), s.sized[k]
	due := now.Sub(last) >= sizedEach || took >= long && now.Sub(last) >= time.Second
	if due {
		if len(s.sized) >= maxUsed {
			clear(s.sized)
		}
		s.sized[k] = now
	}
	s.mu.Unlock()
	if due {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sizedEach)
		defer cancel()
		_ = s.measure(ctx, k.tenant, []string{k.app})
	}
}

// measure stores the sizes of workspaces of a tenant.
func (s *Service) measure(ctx context.Context, tenant string, apps []string) error {
	sizes, err := s.o.Driver.Sizes(ctx, tenant, apps)
	if err == nil {
		err = s.o.Store.Measured(ctx, tenant, sizes)
	}
	return err
}

const (
	// maxUsed is how many workspaces wait to be measured. Others are measured after their next use.
	maxUsed = 10_000
	// manySizes is how many workspaces of a tenant are measured at once.
	manySizes = 100
)

// use has a workspace measured.
func (s *Service) use(k key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.used) < maxUsed {
		s.used[k] = true
	}
}

// Measure stores the sizes of the workspaces that were used since they were measured last, a
// hundred of a tenant at a time. A failure of one tenant's does not keep the others waiting; it is
// tried again by the next Measure.
func (s *Service) Measure(ctx context.Context) (failed error) {
	s.mu.Lock()
	byTenant := map[string][]string{}
	for k := range s.used {
		byTenant[k.tenant] = append(byTenant[k.tenant], k.app)
	}
	clear(s.used)
	s.mu.Unlock()
	for tenant, all := range byTenant {
		for apps := range slices.Chunk(all, manySizes) {
			if err := s.measure(ctx, tenant, apps); err != nil {
				failed = errors.Join(failed, err)
				for _, app := range apps {
					s.use(key{tenant, app})
				}
			}
		}
	}
	return failed
}
