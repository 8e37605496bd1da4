package migrations

import (
	"context"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
)

// RunBefore applies the migrations before the given one.
func RunBefore(ctx context.Context, db *bun.DB, name string) error {
	dir, known, err := discover(db)
	if err != nil {
		return err
	}
	return bunx.Write(ctx, db, "", func(ctx context.Context, c bunx.Conn) error {
		if err := lock(ctx, c); err != nil {
			return err
		}
		for _, known := range known {
			if known >= name {
				break
			}
			if err := apply(ctx, c, dir, known, 0); err != nil {
				return err
			}
		}
		return nil
	})
}

// AccentStatements returns the statements of foldAccents that write, by table.
func AccentStatements(c bunx.Conn) map[string]string {
	all := map[string]string{}
	for _, t := range searched {
		all[t.name] = t.write(c)
	}
	return all
}
