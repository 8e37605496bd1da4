package migrations

import (
	"context"
	"database/sql"

	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/text/fold"
)

// refold sets the folded usernames that differ from fold.Name. A user keeps the old one if another
// user already has the new one.
func refold(ctx context.Context, c bunx.Conn) error {
	tenants, err := texts(ctx, c, `SELECT tenant_id FROM tc_tenants ORDER BY tenant_id`)
	if err != nil {
		return err
	}
	for _, tenant := range tenants {
		ctx, c := bunx.For(ctx, c.DB, tenant)
		names, err := texts(ctx, c, `SELECT username FROM tc_users WHERE tenant_id = $1 ORDER BY username`, tenant)
		if err != nil {
			return err
		}
		for _, name := range names {
			key := fold.Name(name)
			if key == fold.Text(name) {
				continue
			}
			_, err := c.Exec(ctx, `UPDATE tc_users SET folded = $1 WHERE tenant_id = $2 AND username = $3
				AND NOT EXISTS (SELECT 1 FROM tc_users o WHERE o.tenant_id = $2 AND o.folded = $1)`, key, tenant, name)
			if err != nil {
				return bunx.Err(err, "")
			}
		}
	}
	return nil
}

func texts(ctx context.Context, c bunx.Conn, query string, args ...any) ([]string, error) {
	rows, err := c.Rows(ctx, query, args...)
	all, err := bunx.Scan(rows, err, func(rows *sql.Rows) (text string, err error) {
		err = rows.Scan(&text)
		return text, err
	})
	return all, bunx.Err(err, "")
}
