package migrations_test

import (
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/store/migrations"
)

// TestNewChanges: changes without a position are moved into a table of their own, and so is the
// second of two at a position, also with row-level security.
func TestNewChanges(t *testing.T) {
	each(t, func(t *testing.T, url string) {
		is, db := is.New(t), open(t, url)
		is.NoErr(migrations.RunBefore(t.Context(), db, "0062"))
		if _, c := bunx.For(t.Context(), db, ""); c.Postgres() {
			_, err := migrations.EnableRowLevelSecurity(t.Context(), db)
			is.NoErr(err)
		}
		const at = "2026-11-01 00:00:00.000000Z"
		for _, tenant := range []string{"acme", "evil"} {
			write(
				t, db, tenant,
				`INSERT INTO tc_tenants (tenant_id, name, settings, key_check, created_at, updated_at) `+
					`VALUES ($1, 'x', '{}', 'x', $2, $2)`,
				tenant, at,
			)
			for i, position := range []any{1, 2, 2, nil, nil} {
				write(
					t, db, tenant,
					`INSERT INTO tc_changes (tenant_id, id, n, position, kind, entity_id, action, created_at) `+
						`VALUES ($1, $2, $3, $4, 'color', $2, 'create', $5)`,
					tenant, string(rune('a'+i)), 1+i, position, at,
				)
			}
		}
		is.NoErr(migrations.Run(t.Context(), db))
		for _, tenant := range []string{"acme", "evil"} {
			ctx, c := bunx.For(t.Context(), db, tenant)
			all := func(query string) string {
				rows, err := c.Rows(ctx, query, tenant)
				texts, err := bunx.Scan(rows, err, bunx.Text)
				is.NoErr(err)
				return strings.Join(texts, " ")
			}
			is.Equal(all(`SELECT entity_id FROM tc_changes WHERE tenant_id = $1 ORDER BY position`), "a b")
			is.Equal(all(`SELECT entity_id FROM tc_new_changes WHERE tenant_id = $1 ORDER BY n`), "c d e")
		}
	})
}
