package bunstore

import (
	"context"

	"github.com/tenantcontent/tenantcontent/colors"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
)

// Keys implements colors.TransferStore.
func (s *Store) Keys(ctx context.Context, tenant string) ([]string, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows, err := c.Rows(ctx, `SELECT key FROM tc_colors WHERE tenant_id = $1 ORDER BY key`, tenant)
	keys, err := bunx.Scan(rows, err, bunx.Text)
	return keys, bunx.Err(err, "Color")
}

// Some implements colors.TransferStore.
func (s *Store) Some(ctx context.Context, tenant string, keys []string) ([]colors.Color, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows, err := c.Find(ctx, bunx.Lookup{
		Columns: table.Names,
		Table:   `tc_colors`,
		Where:   `tenant_id = $1`,
		Key:     `key`,
	}, keys, tenant)
	some, err := bunx.Scan(rows, err, scanner(tenant))
	return some, bunx.Err(err, "Color")
}

// Replace implements colors.TransferStore.
func (s *Store) Replace(ctx context.Context, tenant string, all []colors.Color) error {
	if len(all) == 0 {
		return nil
	}
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		_, err := table.Insert(ctx, c, table.OnConflict+`, source = excluded.source`, rowsOf(tenant, all)...)
		return bunx.Err(err, "Color")
	})
}

// Remove implements colors.TransferStore.
func (s *Store) Remove(ctx context.Context, tenant string, keys []string) (n int, err error) {
	if len(keys) == 0 {
		return 0, nil
	}
	err = bunx.WriteOne(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) (err error) {
		n, err = c.Exec(ctx, `DELETE FROM tc_colors WHERE tenant_id = $1 AND key `+c.OneOf(2), tenant, bunx.Keys(keys))
		return bunx.Err(err, "Color")
	})
	return n, err
}
