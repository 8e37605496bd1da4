package bunstore

import (
	"context"
	"database/sql"

	"github.com/tenantcontent/tenantcontent/colors"
	"github.com/tenantcontent/tenantcontent/internal/bunx"
	"github.com/tenantcontent/tenantcontent/internal/fold"
)

// Keys implements colors.TransferStore.
func (s *Store) Keys(ctx context.Context, tenant string) ([]string, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows, err := c.Rows(ctx, `SELECT key FROM tc_colors WHERE tenant_id = $1 ORDER BY key`, tenant)
	keys, err := bunx.Scan(rows, err, func(rows *sql.Rows) (key string, err error) { return key, rows.Scan(&key) })
	return keys, bunx.Err(err, "Color")
}

// Some implements colors.TransferStore.
func (s *Store) Some(ctx context.Context, tenant string, keys []string) ([]colors.Color, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows, err := c.Find(ctx, bunx.Lookup{
		Columns: `key, color, source, created_at, updated_at`, Table: `tc_colors`, Where: `tenant_id = $1`, Key: `key`,
	}, keys, tenant)
	some, err := bunx.Scan(rows, err, func(rows *sql.Rows) (colors.Color, error) {
		r := row{TenantID: tenant}
		err := rows.Scan(&r.Key, &r.Color, &r.Source, &r.CreatedAt, &r.UpdatedAt)
		return r.color(), err
	})
	return some, bunx.Err(err, "Color")
}

// Replace implements colors.TransferStore.
func (s *Store) Replace(ctx context.Context, tenant string, all []colors.Color) error {
	if len(all) == 0 {
		return nil
	}
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		const columns = 7
		args := make([]any, 0, columns*len(all))
		for _, color := range all {
			args = append(args, tenant, color.Key, fold.Text(color.Key), color.Color, color.Source, bunx.At(color.CreatedAt), bunx.At(color.UpdatedAt))
		}
		_, err := c.Exec(ctx, `INSERT INTO tc_colors (tenant_id, key, search, color, source, created_at, updated_at) VALUES `+
			bunx.Values(len(all), columns)+
			` ON CONFLICT (tenant_id, key) DO UPDATE SET color = excluded.color, source = excluded.source, updated_at = excluded.updated_at`, args...)
		return bunx.Err(err, "Color")
	})
}

// Remove implements colors.TransferStore.
func (s *Store) Remove(ctx context.Context, tenant string, keys []string) (n int, err error) {
	if len(keys) == 0 {
		return 0, nil
	}
	err = bunx.WriteOne(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) (err error) {
		n, err = c.Exec(ctx, `DELETE FROM tc_colors WHERE tenant_id = $1 AND key IN `+c.Among(2, 1), tenant, bunx.Keys(keys))
		return bunx.Err(err, "Color")
	})
	return n, err
}
