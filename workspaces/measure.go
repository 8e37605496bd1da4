package workspaces

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
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
	return b.Conn.Query(b.s.bound(ctx, b.of.tenant), statement, params)
}

// Close implements Conn.
func (b *bounded) Close() error {
	err := b.Conn.Close()
	if b.wrote {
		b.s.use(b.of)
	}
	return err
}

// bound returns a context in which statements are bounded by the room that a tenant has.
func (s *Service) bound(ctx context.Context, tenant string) context.Context {
	if s.o.Room == nil {
		return ctx
	}
	return WithRoom(ctx, func(ctx context.Context, n int64) (int64, error) { return s.o.Room(ctx, tenant, n) })
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
			sizes, err := s.o.Driver.Sizes(ctx, tenant, apps)
			if err == nil {
				err = s.o.Store.Measured(ctx, tenant, sizes)
			}
			if err != nil {
				failed = errors.Join(failed, err)
				for _, app := range apps {
					s.use(key{tenant, app})
				}
			}
		}
	}
	return failed
}
