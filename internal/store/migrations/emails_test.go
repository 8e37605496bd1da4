package migrations_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/store/migrations"
)

// TestEmails: of existing e-mail addresses, those that a directory or a provider wrote identify
// users, also with row-level security.
func TestEmails(t *testing.T) {
	each(t, func(t *testing.T, url string) {
		is, db := is.New(t), open(t, url)
		is.NoErr(migrations.RunBefore(t.Context(), db, "0037"))
		if _, c := bunx.For(t.Context(), db, ""); c.Postgres() {
			_, err := migrations.EnableRowLevelSecurity(t.Context(), db)
			is.NoErr(err)
		}
		const at = "2026-11-01 00:00:00.000000Z"
		write(
			t, db, "acme",
			`INSERT INTO tc_tenants (tenant_id, name, settings, key_check, created_at, updated_at) `+
				`VALUES ($1, 'x', '{}', 'x', $2, $2)`,
			"acme", at,
		)
		for name, of := range map[string][2]any{
			"said":   {"LDAP", "Ünal@EXAMPLE.com"},
			"typed":  {nil, "boss@example.com"},
			"none":   {"LDAP", nil},
			"nobody": {nil, nil},
		} {
			write(t, db, "acme",
				`INSERT INTO tc_users (tenant_id, username, folded, label, search, domain, superuser, enabled,
					may_ai, may_create_jobs, may_view_all_teams,
				may_view_all_users, may_script, data, user_fields, login_attempts, mfa, ai_consent, created_at,
				updated_at, source, email)
				VALUES ($1, $2, $2, $2, '', 'ldap', $3, $3, $3, $3, $3, $3, $3, '{}', '{}', 0, $3, $3, $4, $4, $5, $6)`,
				"acme", name,
				false, at, of[0], of[1])
		}
		is.NoErr(migrations.Run(t.Context(), db))
		ctx, c := bunx.For(t.Context(), db, "acme")
		rows, err := c.Rows(
			ctx,
			`SELECT username || ':' || coalesce(email_key, '') || ':' || CASE WHEN email_typed THEN 'typed' ELSE `+
				`'' END FROM tc_users WHERE tenant_id = $1`,
			"acme",
		)
		all, err := bunx.Scan(rows, err, bunx.Text)
		is.NoErr(err)
		slices.Sort(all)
		is.Equal(strings.Join(all, " "), "nobody:: none:: said:Ünal@example.com: typed::typed")
	})
}
