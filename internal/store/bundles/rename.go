package bunstore

import (
	"context"
	"maps"
	"slices"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
)

// RenameUsers implements bundles.Store.
func (s *Store) RenameUsers(ctx context.Context, tenant string, names map[string]string) error {
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		for _, at := range []struct{ table, column, what string }{
			{"tc_bundle_entries", "type", "This entry of the bundle"}, {"tc_deployments", "kind", "Deployment"},
		} {
			for gone := range slices.Chunk(slices.Collect(maps.Values(names)), batch) {
				_, err := c.Exec(ctx, `DELETE FROM `+at.table+` WHERE tenant_id = $1 AND `+at.column+` = '`+
					string(entity.KindUser)+`' AND entity_id IN `+
					bunx.In(2, len(gone)), bunx.Args(gone, tenant)...)
				if err != nil {
					return bunx.Err(err, at.what)
				}
			}
			if err := c.Rename(
				ctx, tenant, at.table, "entity_id", names,
				bunx.Is{Column: at.column, Value: string(entity.KindUser)},
			); err != nil {
				return bunx.Err(err, at.what)
			}
		}
		return nil
	})
}
