package bunstore

import (
	"context"
	"slices"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/sessions"
)

// providerSession is a row of tc_provider_sessions.
type providerSession struct {
	tenant, session string
	sessions.StoredProviderSession
}

// providerTable has the columns of a session at a provider. Readers pass the tenant and the
// session.
var providerTable = bunx.NewTable("tc_provider_sessions", "p", []bunx.Column[providerSession]{
	{Name: "tenant_id", Key: true, Value: func(p *providerSession) any { return p.tenant }},
	{Name: "session_id", Key: true, Value: func(p *providerSession) any { return p.session }},
	{Name: "domain_id", Field: func(p *providerSession) any { return &p.Domain }},
	{Name: "subject", Field: func(p *providerSession) any { return &p.Subject }},
	{Name: "provider_id", Field: func(p *providerSession) any { return &p.ID }},
	{Name: "memory", Field: func(p *providerSession) any { return bunx.TextOrNull(&p.Sealed) }},
})

var selectProviderSession = providerTable.Select(`WHERE tenant_id = $1 AND session_id = $2`)

// ProviderSession implements sessions.Store.
func (s *Store) ProviderSession(
	ctx context.Context, tenant, session string,
) (at sessions.StoredProviderSession, err error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	err = bunx.FindDeferred(s.db, tenant, sessionKey(session), func(values []any) error {
		p, err := providerTable.Scan(c.Row(ctx, selectProviderSession, tenant, session))
		at, err = p.StoredProviderSession, bunx.Err(err, "Session")
		if late, ok := waitingIn(values); ok && late.Provider != nil && errs.CodeOf(err) == errs.NotFound {
			at, err = *late.Provider, nil
		}
		return err
	})
	return at, err
}

// DeleteProviderSessions implements sessions.Store.
func (s *Store) DeleteProviderSessions(
	ctx context.Context, tenant, domain, subject string, ids []string,
) (n int, err error) {
	if subject == "" && len(ids) == 0 {
		return 0, nil
	}
	err = bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		these, args := `SELECT session_id FROM tc_provider_sessions WHERE tenant_id = $1 AND domain_id = $2`,
			[]any{tenant, domain}
		if subject != "" {
			these, args = these+` AND subject = $3`, append(args, subject)
		}
		if len(ids) > 0 {
			these += ` AND provider_id ` + c.OneOf(len(args)+1)
			args = append(args, bunx.Keys(ids))
		}
		s.notifier.AfterCommit(ctx, tenant)
		n, err = c.Exec(ctx, `DELETE FROM tc_sessions WHERE tenant_id = $1 AND id IN (`+these+`)`, args...)
		n += s.dropWaiting(ctx, tenant, func(x sessions.Session) bool {
			p := x.Provider
			return p != nil && p.Domain == domain && (subject == "" || p.Subject == subject) && (len(ids) == 0 ||
				slices.Contains(ids, p.ID))
		})
		return bunx.Err(err, "Session")
	})
	return n, err
}

// DeleteSessionsOfDomains implements sessions.Store.
func (s *Store) DeleteSessionsOfDomains(ctx context.Context, tenant string, domains []string) error {
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		s.notifier.AfterCommit(ctx, tenant)
		s.dropWaiting(ctx, tenant, func(x sessions.Session) bool {
			return x.Provider != nil && slices.Contains(domains, x.Provider.Domain)
		})
		_, err := c.Exec(ctx, `DELETE FROM tc_sessions WHERE tenant_id = $1 AND id IN
			(SELECT session_id FROM tc_provider_sessions WHERE tenant_id = $1 AND domain_id `+c.OneOf(2)+`)`,
			tenant, bunx.Keys(domains))
		return bunx.Err(err, "Session")
	})
}
