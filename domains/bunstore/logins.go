package bunstore

import (
	"context"
	"time"

	"github.com/tenantcontent/tenantcontent/internal/bunx"
)

// UseLogin implements domains.Store.
func (s *Store) UseLogin(ctx context.Context, tenant, domain, id string, until time.Time) error {
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		_, err := c.Exec(ctx, `INSERT INTO tc_domain_logins (tenant_id, id, domain_id, expires_at) VALUES ($1, $2, $3, $4)`,
			tenant, id, domain, bunx.At(until))
		return bunx.Err(err, "This login")
	})
}

// Sweep implements domains.Store.
func (s *Store) Sweep(ctx context.Context, tenant string, before time.Time) (n int, err error) {
	err = bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		n, err = c.Exec(ctx, `DELETE FROM tc_domain_logins WHERE tenant_id = $1 AND expires_at < $2`, tenant, bunx.At(before))
		return bunx.Err(err, "Login")
	})
	return n, err
}
