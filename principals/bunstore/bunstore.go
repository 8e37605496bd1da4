// Package bunstore keeps users, teams and memberships in PostgreSQL or SQLite. The root imports it.
package bunstore

import (
	"context"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/internal/bunx"
)

// chunk is how many principals Principals reads with one statement; a smaller tenant is read at one point in time.
const chunk = 16384

// Store implements principals.Store.
type Store struct {
	db      *bun.DB
	chunk   int
	changed func(tenant string)
}

// New makes a Store. The tables must be there: see tenantcontent.Migrate.
func New(db *bun.DB) *Store { return &Store{db: db, chunk: chunk} }

// Notify makes the store call changed after each commit: it may have changed what the tenant's sessions may do.
func (s *Store) Notify(changed func(tenant string)) *Store {
	s.changed = changed
	return s
}

// write is bunx.Write, and tells of the change.
func (s *Store) write(ctx context.Context, tenant string, fn func(ctx context.Context, c bunx.Conn) error) error {
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		if s.changed != nil {
			bunx.AfterCommit(ctx, func() { s.changed(tenant) })
		}
		return fn(ctx, c)
	})
}

// InTx implements principals.Store.
func (s *Store) InTx(ctx context.Context, fn func(context.Context) error) error {
	return bunx.InTx(ctx, s.db, fn)
}

// LockTenant implements principals.Store.
func (s *Store) LockTenant(ctx context.Context, tenant string) error {
	return bunx.LockTenant(ctx, s.db, tenant)
}
