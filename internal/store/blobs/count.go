package bunstore

import (
	"context"

	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
)

// Count returns how many blobs a tenant has.
func (s *Store) Count(ctx context.Context, tenant string) (int, error) {
	return bunx.Count(ctx, s.db, tenant, "tc_blobs")
}
