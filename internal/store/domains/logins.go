package bunstore

import (
	"context"
	"time"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
)

// usedLogin is a row of tc_domain_logins.
type usedLogin struct {
	tenant, id, domain string
	until              time.Time
}

// loginTable has the columns of a login that has ended. Rows are never changed, and are removed
// when they expire.
var loginTable = bunx.NewTable("tc_domain_logins", "l", []bunx.Column[usedLogin]{
	{Name: "tenant_id", Key: true, Value: func(l *usedLogin) any { return l.tenant }},
	{Name: "id", Key: true, Value: func(l *usedLogin) any { return l.id }},
	{Name: "domain_id", Value: func(l *usedLogin) any { return l.domain }},
	{Name: "expires_at", Value: func(l *usedLogin) any { return bunx.At(l.until) }},
})

// UseLogin implements domains.Store.
func (s *Store) UseLogin(ctx context.Context, tenant, domain, id string, until time.Time) error {
	return bunx.WriteSoon(ctx, s.db, tenant, bunx.Soon{
		Run: func(ctx context.Context, c bunx.Conn) error {
			_, err := loginTable.Insert(ctx, c, "", usedLogin{tenant, id, domain, until})
			return bunx.Err(err, "This login")
		},
		Decide: func(ctx context.Context) (bunx.DeferredWrite, error) {
			used, err := s.LoginUsed(ctx, tenant, id)
			if err == nil && !used {
				_, err = s.Get(ctx, tenant, domain)
			}
			if used || errs.CodeOf(err) == errs.NotFound {
				err = errs.New(errs.Conflict, "This login exists already, or its domain does not.")
			}
			return bunx.DeferredWrite{Key: usedKey(id)}, err
		},
	})
}

// usedKey returns the key for the deferred write of a used login.
func usedKey(id string) string { return "used " + id }

// LoginUsed implements domains.Store.
func (s *Store) LoginUsed(ctx context.Context, tenant, id string) (used bool, err error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	err = bunx.FindDeferred(s.db, tenant, usedKey(id), func(deferred []any) error {
		err := c.Row(
			ctx, `SELECT EXISTS (SELECT 1 FROM tc_domain_logins WHERE tenant_id = $1 AND id = $2)`, tenant, id,
		).Scan(&used)
		used = used || len(deferred) > 0
		return bunx.Err(err, "Login")
	})
	return used, err
}

// Sweep implements domains.Store.
func (s *Store) Sweep(ctx context.Context, tenant string, before time.Time) (n int, err error) {
	return bunx.DeleteSteps(ctx, s.db, tenant, "tc_domain_logins", "id", `expires_at < $2`, bunx.At(before))
}
