// Package bunstore reads how much tenants store, from PostgreSQL or SQLite. The root imports it.
package bunstore

import (
	"context"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/tenants"
)

// Store implements tenants.QuotaStore.
type Store struct{ db *bun.DB }

var _ tenants.QuotaStore = (*Store)(nil)

// New returns a Store. The tables must exist: see tenantcontent.Migrate.
func New(db *bun.DB) *Store { return &Store{db: db} }

// Each part of the list storage is a sum of bytes that triggers maintain.
var (
	measured = `SELECT t.quota, t.max_workspaces, ` + bunx.Total("storage", "= 'files'") + `, ` + bunx.Total(
		"storage", "= 'records'",
	) + `, ` + bunx.Total("storage", "= 'workspaces'")
	detailed = `, ` + bunx.Total("upload_bytes", ">= ''") + `, ` + bunx.Total(
		"download_bytes", ">= ''",
	) + `, (SELECT count(*) FROM tc_workspaces WHERE tenant_id = $1)`

	ofTenant      = ` FROM tc_tenants t WHERE t.tenant_id = $1`
	selectMeasure = measured + ofTenant
	selectUsage   = measured + detailed + ofTenant
)

// Measure implements tenants.QuotaStore.
func (s *Store) Measure(ctx context.Context, tenant string) (u tenants.Usage, own tenants.Quota, err error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	err = c.One(
		ctx, "Tenant "+tenant, selectMeasure, []any{tenant}, &own.Bytes, &own.Workspaces, &u.Files, &u.Records,
		&u.Workspaces,
	)
	return u, own, err
}

// Usage implements tenants.QuotaStore.
func (s *Store) Usage(ctx context.Context, tenant string) (u tenants.Usage, own tenants.Quota, err error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	err = c.One(ctx, "Tenant "+tenant, selectUsage, []any{tenant},
		&own.Bytes, &own.Workspaces, &u.Files, &u.Records, &u.Workspaces, &u.Uploads, &u.Downloads, &u.Count)
	return u, own, err
}
