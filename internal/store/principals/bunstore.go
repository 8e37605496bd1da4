// Package bunstore stores users, teams and memberships in PostgreSQL or SQLite. The root imports
// it.
package bunstore

import (
	"context"
	"slices"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
)

// chunk is the number of principals that Principals reads with one statement. A smaller tenant is
// read as of one point in time.
const chunk = 16384

// Store implements principals.Store and dirsync.Store.
type Store struct {
	db       *bun.DB
	chunk    int
	notifier bunx.Notifier
}

// New returns a Store. The tables must exist: see tenantcontent.Migrate.
func New(db *bun.DB) *Store { return &Store{db: db, chunk: chunk} }

// Notify makes the store call changed after each commit that may change the rights of the tenant's
// sessions.
func (s *Store) Notify(changed func(tenant string)) *Store {
	s.notifier.Set(changed)
	return s
}

// InTx implements principals.Store.
func (s *Store) InTx(ctx context.Context, fn func(context.Context) error) error {
	return bunx.InTx(ctx, s.db, fn)
}

// LockPrincipals implements principals.Store.
func (s *Store) LockPrincipals(ctx context.Context, tenant string, ids []string) error {
	ctx, c := bunx.For(ctx, s.db, tenant)
	if !c.Postgres() { // a transaction is the only writer anyway
		return nil
	}
	rows := bunx.Lookup{Columns: "id", Table: "tc_principals", Where: "tenant_id = $1", Key: "id", Lock: true}
	for some := range slices.Chunk(slices.Sorted(slices.Values(ids)), batch) {
		if _, err := texts(c.Find(ctx, rows, some, tenant)); err != nil {
			return bunx.Err(err, "Principal")
		}
	}
	return nil
}

// LockTenant implements principals.Store.
func (s *Store) LockTenant(ctx context.Context, tenant string) error {
	return bunx.LockTenant(ctx, s.db, tenant)
}
