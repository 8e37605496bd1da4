package migrations

import (
	"context"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
)

// RunBefore applies the migrations before one.
func RunBefore(ctx context.Context, db *bun.DB, name string) error {
	dir, known, err := discover(db)
	if err != nil {
		return err
	}
	return bunx.Write(ctx, db, "", func(ctx context.Context, c bunx.Conn) error {
		if err := lock(ctx, c); err != nil {
			return err
		}
		for _, m := range known {
			if m.String() >= name {
				break
			}
			if err := apply(ctx, c, dir, m, 0); err != nil {
				return err
			}
		}
		return nil
	})
}
