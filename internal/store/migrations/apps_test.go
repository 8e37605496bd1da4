package migrations_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/store/migrations"
)

// TestApps: existing apps are moved into a new table, each with at most its newest draft, also with
// row-level security.
func TestApps(t *testing.T) {
	for name, secured := range map[string]bool{"plain": false, "row-level security": true} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, url string) {
				is, db := is.New(t), open(t, url)
				is.NoErr(migrations.RunBefore(t.Context(), db, "0019"))
				if _, c := bunx.For(t.Context(), db, ""); secured && c.Postgres() {
					_, err := migrations.EnableRowLevelSecurity(t.Context(), db)
					is.NoErr(err)
				}
				for _, tenant := range []string{"acme", "evil"} {
					write(t, db, tenant,
						`INSERT INTO tc_tenants (tenant_id, name, settings, key_check, created_at, updated_at)
						VALUES ($1, 'x', '{}', 'x', '2026-11-01 00:00:00.000000Z', '2026-11-01 00:00:00.000000Z')`,
						tenant)
					for _, e := range []struct {
						kind, id  string
						editingID any
						updated   string
					}{
						{"app", "one", nil, "01"}, {"app", "two", nil, "02"}, {"report", "one", nil, "03"},
						{"app", "draft-old", "one", "04"},
						{"app", "draft-new", "one", "05"}, {"app", "draft-tie", "one", "05"},
						{"app", "draft-two", "two", "06"},
						{"app", "draft-of-none", "none", "07"}, {"app", "draft-of-draft", "draft-two", "08"},
						{"report", "report-draft", "one", "09"},
					} {
						write(t, db, tenant,
							`INSERT INTO tc_entities (tenant_id, kind, id, name, label, search, slug,
								description, owner_id, data, editing_id,
							system, source, source_id, created_at, updated_at) VALUES ($1, $2, $3, 'Name',
							'name', 'sought', $3, 'text', 'jo', '{"a":1}', $4, $5,
							'from', 'there', '2026-11-01T09:00:00.123456Z', $6)`, tenant, e.kind,
							e.id, e.editingID, false, "2026-11-"+e.updated+"T09:00:00.123456Z")
					}
				}
				is.NoErr(migrations.Run(t.Context(), db))
				for _, tenant := range []string{"acme", "evil"} {
					ctx, c := bunx.For(t.Context(), db, tenant)
					read := func(query string) string {
						rows, err := c.Rows(ctx, query, tenant)
						all, err := bunx.Scan(rows, err, bunx.Text)
						is.NoErr(err)
						slices.Sort(all)
						return strings.Join(all, " ")
					}
					is.Equal(read(`SELECT id FROM tc_apps WHERE tenant_id = $1 AND slug = id AND library_id = id
						AND type = 'report' AND name = 'Name'
						AND label = 'name' AND search = 'sought' AND description = 'text' AND owner_id = 'jo'
						AND defn = '{"a":1}' AND settings = '{}'
						AND NOT shared AND NOT is_managed AND source = 'from' AND source_id = 'there' AND
						updated_at >= created_at
						AND deleted_at IS NULL AND env_sealed IS NULL`), "draft-tie draft-two one two")
					is.Equal(read(`SELECT id || ' of ' || editing_id FROM tc_apps WHERE tenant_id = $1 `+
						`AND editing_id IS NOT NULL`),
						"draft-tie of one draft-two of two")
					is.Equal(
						read(`SELECT kind || ' ' || id FROM tc_entities WHERE tenant_id = $1`),
						"report one report report-draft",
					)
					if c.Postgres() {
						var forced int
						is.NoErr(c.Row(ctx, `SELECT count(*) FROM pg_class WHERE relname IN ('tc_apps', 'tc_entities')
							AND relnamespace = current_schema()::regnamespace AND relrowsecurity AND
							relforcerowsecurity`).Scan(&forced))
						is.Equal(forced, map[bool]int{true: 2}[secured])
					}
				}
			})
		})
	}
}
