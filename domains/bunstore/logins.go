package bunstore

import (
	"context"
	"time"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/internal/bunx"
)

// PutLogin implements domains.Store.
func (s *Store) PutLogin(ctx context.Context, tenant string, l domains.Pending) error {
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		_, err := c.Exec(ctx, `INSERT INTO tc_domain_logins (tenant_id, id, domain_id, browser, memory, return_to, expires_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7)`, tenant, l.ID, l.Domain, l.Browser, l.Memory, l.ReturnTo, bunx.At(l.ExpiresAt))
		return bunx.Err(err, "Login")
	})
}

// TakeLogin implements domains.Store.
func (s *Store) TakeLogin(ctx context.Context, tenant, id, browser string) (domains.Pending, error) {
	l := domains.Pending{ID: id, Browser: browser}
	err := bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		var ends bunx.Time
		err := c.One(ctx, "Login", `DELETE FROM tc_domain_logins WHERE tenant_id = $1 AND id = $2 AND browser = $3
			RETURNING domain_id, memory, return_to, expires_at`, []any{tenant, id, browser}, &l.Domain, &l.Memory, &l.ReturnTo, &ends)
		l.ExpiresAt = ends.Time
		return err
	})
	if err != nil {
		return domains.Pending{}, err
	}
	return l, nil
}

// Sweep implements domains.Store.
func (s *Store) Sweep(ctx context.Context, tenant string, before time.Time) (n int, err error) {
	err = bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		n, err = c.Exec(ctx, `DELETE FROM tc_domain_logins WHERE tenant_id = $1 AND expires_at < $2`, tenant, bunx.At(before))
		return bunx.Err(err, "Login")
	})
	return n, err
}
