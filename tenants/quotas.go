package tenants

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/clock"
)

// Usage is what a tenant stores and may store. Sizes are bytes.
type Usage struct {
	Files     int64 // of uploads, downloads, libraries and pictures; equal files of libraries count once
	Uploads   int64 // those of Files that are uploads
	Downloads int64 // those of Files that are downloads
	// texts of content, comments, bundles, programs, events, messages, runs and calls: see
	// docs/quotas.md
	Records    int64
	Workspaces int64 // SQL databases of apps, as they were measured last
	Allowed    int64 // of Used

	Count    int // workspaces
	MaxCount int // of Count
}

// Used returns the bytes that count.
func (u Usage) Used() int64 { return u.Files + u.Records + u.Workspaces }

// Libraries returns the bytes of files of libraries, with pictures and what is being written.
func (u Usage) Libraries() int64 { return max(0, u.Files-u.Uploads-u.Downloads) }

// QuotaStore reads counters. The tests beside its bun-backed store say what every implementation
// must do.
type QuotaStore interface {
	// Measure returns the bytes that a tenant stores, without Uploads, Downloads and Count, and the
	// tenant's own quota. In a transaction it sees what that has written. It costs the same for any
	// number of files. Errors: errs.NotFound.
	Measure(ctx context.Context, tenant string) (Usage, Quota, error)
	// Usage returns all that a tenant stores, and its own quota. Errors: errs.NotFound.
	Usage(ctx context.Context, tenant string) (Usage, Quota, error)
}

// What the server allows a tenant by default.
const (
	DefaultQuota      = 10 << 30
	DefaultWorkspaces = 1000
)

// QuotaOptions configure Quotas. Store is required.
type QuotaOptions struct {
	Store      QuotaStore
	Bytes      int64            // that a tenant may store; default DefaultQuota
	Workspaces int              // that a tenant may have; default DefaultWorkspaces
	Now        func() time.Time // default time.Now
}

// Quotas know how much room tenants have for files, records and workspaces together.
//
// What is stored is counted by the database in the transaction that writes it, so that no write
// path can forget it. It is measured at most once a second while much room is left, and what this
// process has written since is added.
type Quotas struct {
	o     QuotaOptions
	clock clock.Clock

	mu      sync.Mutex
	tenants map[string]*room
}

// room is what is known of a tenant's storage.
type room struct {
	mu       sync.Mutex
	measured time.Time
	used     int64
	allowed  int64
	written  int64 // bytes that this process has written, ever
	pending  int64 // those of them that no counter has yet
	at       int64 // written - pending when used was measured
}

// left returns how many bytes may still be written.
func (r *room) left() int64 { return r.allowed - r.used - (r.written - r.at) }

const (
	// fresh is how long a measure is valid.
	fresh = time.Second
	// maxKnown is how many tenants are remembered.
	maxKnown = 10_000
)

// NewQuotas returns Quotas.
func NewQuotas(o QuotaOptions) *Quotas {
	if o.Bytes == 0 {
		o.Bytes = DefaultQuota
	}
	if o.Workspaces == 0 {
		o.Workspaces = DefaultWorkspaces
	}
	return &Quotas{o: o, clock: clock.New(o.Now, nil), tenants: map[string]*room{}}
}

// Usage returns what a tenant stores and may store. Errors: errs.NotFound.
func (s *Quotas) Usage(ctx context.Context, tenant string) (Usage, error) {
	u, own, err := s.o.Store.Usage(ctx, tenant)
	u.Allowed, u.MaxCount = s.allowed(own)
	return u, err
}

func (s *Quotas) allowed(own Quota) (bytes int64, workspaces int) {
	bytes, workspaces = s.o.Bytes, s.o.Workspaces
	if own.Bytes != nil {
		bytes = *own.Bytes
	}
	if own.Workspaces != nil {
		workspaces = *own.Workspaces
	}
	return bytes, workspaces
}

// of returns what is known of a tenant.
func (s *Quotas) of(tenant string) *room {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.tenants[tenant]
	if r == nil {
		if len(s.tenants) >= maxKnown {
			s.forget()
		}
		r = &room{}
		s.tenants[tenant] = r
	}
	return r
}

// forget removes tenants that nothing is being written of.
func (s *Quotas) forget() {
	for id, r := range s.tenants {
		r.mu.Lock()
		idle := r.pending == 0 && s.clock.Now().Sub(r.measured) > fresh
		r.mu.Unlock()
		if idle {
			delete(s.tenants, id)
		}
	}
}

// measure reads the counters.
func (s *Quotas) measure(ctx context.Context, tenant string, r *room) error {
	r.mu.Lock()
	at, begun := r.written-r.pending, s.clock.Now()
	r.mu.Unlock()
	u, own, err := s.o.Store.Measure(ctx, tenant)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.measured, r.used, r.at = begun, u.Used(), at
	r.allowed, _ = s.allowed(own)
	return nil
}

// Room returns how many bytes a tenant may still write, 0 for none. Nothing is refused for an old
// measure: where there is not room for n bytes, it is measured anew. Errors: errs.NotFound.
func (s *Quotas) Room(ctx context.Context, tenant string, n int64) (int64, error) {
	r := s.of(tenant)
	left, err := s.room(ctx, tenant, r, n)
	return max(0, left), err
}

func (s *Quotas) room(ctx context.Context, tenant string, r *room, n int64) (int64, error) {
	r.mu.Lock()
	old, left := s.clock.Now().Sub(r.measured) > fresh, r.left()
	r.mu.Unlock()
	if old || left < max(1, n) {
		if err := s.measure(ctx, tenant, r); err != nil {
			return 0, err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.left(), nil
}

// Check returns errs.Full if a tenant has no room for n bytes, or for anything if n is 0.
func (s *Quotas) Check(ctx context.Context, tenant string, n int64) error {
	_, err := s.Left(ctx, tenant, max(1, n))
	return err
}

// Left returns how many bytes a tenant may still write, as Room does, and errs.Full if there is no
// room for n bytes.
func (s *Quotas) Left(ctx context.Context, tenant string, n int64) (int64, error) {
	left, err := s.Room(ctx, tenant, n)
	if err == nil && left < n {
		err = s.full(tenant)
	}
	return left, err
}

// CheckWorkspace returns errs.Full if a tenant has as many workspaces as it may have, or no room.
// Those that are made at the same time, on any number of servers, do not see each other and can
// pass the number together.
func (s *Quotas) CheckWorkspace(ctx context.Context, tenant string) error {
	u, err := s.Usage(ctx, tenant)
	switch {
	case err != nil:
		return err
	case u.Count >= u.MaxCount:
		return errs.New(
			errs.Full,
			"The tenant has %d of the %d SQL databases of apps that it may have: delete apps or drafts that are "+
				"not needed, or ask the operator for a larger quota.",
			u.Count, u.MaxCount,
		)
	}
	return s.Check(ctx, tenant, 0)
}

// CheckImport returns errs.Full if a tenant that is to come stores more than the server allows one.
func (s *Quotas) CheckImport(bytes int64, workspaces int) error {
	switch {
	case bytes > s.o.Bytes:
		return errs.New(
			errs.Full,
			"The storage of the tenant would be full: it stores %s, and may store %s here "+
				"(TENANTCONTENT_TENANT_QUOTA).",
			Size(bytes), Size(s.o.Bytes),
		)
	case workspaces > s.o.Workspaces:
		return errs.New(
			errs.Full,
			"The tenant has %d SQL databases of apps, and may have %d here (TENANTCONTENT_TENANT_WORKSPACES).",
			workspaces, s.o.Workspaces,
		)
	}
	return nil
}

// CheckStored returns errs.Full if a tenant stores more than it may, by a measure that is at most a
// second old. One that stores as much as it may is not refused.
func (s *Quotas) CheckStored(ctx context.Context, tenant string) error {
	left, err := s.room(ctx, tenant, s.of(tenant), 0)
	if err == nil && left < 0 {
		err = s.full(tenant)
	}
	return err
}

// full returns the error of a tenant that has no room.
func (s *Quotas) full(tenant string) error {
	r := s.of(tenant)
	r.mu.Lock()
	defer r.mu.Unlock()
	return errs.New(
		errs.Full,
		"The storage of the tenant is full: it holds %s of the %s that it may have, and this does not fit. Remove "+
			"files, content or data of apps that are not needed, or ask the operator for a larger quota.",
		Size(r.used), Size(r.allowed),
	)
}

// Size returns a number of bytes for people, such as 1.5 GiB.
func Size(n int64) string {
	for _, unit := range []struct {
		bytes int64
		name  string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n >= unit.bytes {
			return fmt.Sprintf("%.1f %s", float64(n)/float64(unit.bytes), unit.name)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}
