package migrations_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/store/migrations"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/internal/text/fold"
)

// TestSearchesIgnoreAccentsOfOldRows: the rows of all tables are found without accents after the
// migration, those of an index also before it has them, and with row-level security.
func TestSearchesIgnoreAccentsOfOldRows(t *testing.T) {
	tables := map[string]string{ // and their columns with the id of a row
		"tc_ai_instructions": "id slug", "tc_apps": "id slug library_id", "tc_assistants": "id slug library_id",
		"tc_bundles": "id slug", "tc_colors": "key", "tc_domains": "id", "tc_entities": "id slug kind",
		"tc_events": "id", "tc_messages": "id", "tc_teams": "id slug", "tc_users": "username folded user_fields data",
	}
	const accented, notAccented = "Crème Brûlée ½", "plain"
	for name, secured := range map[string]bool{"plain": false, "row-level security": true} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, url string) {
				is, db := is.New(t), open(t, url)
				is.NoErr(migrations.RunBefore(t.Context(), db, "0063"))
				if _, c := bunx.For(t.Context(), db, ""); secured && c.Postgres() {
					_, err := migrations.EnableRowLevelSecurity(t.Context(), db)
					is.NoErr(err)
				}
				for _, tenant := range []string{"acme", "evil"} {
					write(t, db, tenant,
						`INSERT INTO tc_tenants (tenant_id, name, settings, key_check, created_at, updated_at) `+
							`VALUES ($1, 'x', '{}', 'x', $2, $2)`,
						tenant, "2026-11-01 00:00:00.000000Z")
					write(t, db, tenant,
						`INSERT INTO tc_search_lists (tenant_id, list, part, usable, reached) `+
							`VALUES ($1, 'colors', '', true, NULL)`, tenant)
					for table, columns := range tables {
						insert := strings.TrimSuffix(
							inserts(t, db, table, append([]string{"search"}, strings.Fields(columns)...)...),
							" ON CONFLICT DO NOTHING",
						)
						rows := 2
						if table == "tc_colors" || table == "tc_entities" {
							rows = 502 // several statements
						}
						for i := range rows {
							text := []string{accented, notAccented}[min(i, 1)]
							if i > 1 {
								text = fmt.Sprint("é", i)
							}
							args := []any{tenant, fold.Text(text)}
							for _, column := range strings.Fields(columns) {
								value, ok := map[string]string{
									"kind": []string{"a", "b"}[i%2], "user_fields": "{}", "data": "{}",
								}[column]
								if !ok {
									value = fmt.Sprintf("%s-%04d", table, i)
								}
								args = append(args, value)
							}
							write(t, db, tenant, insert, args...)
						}
					}
					write(t, db, tenant, `DELETE FROM tc_search_noted WHERE tenant_id = $1`, tenant)
				}
				is.NoErr(migrations.Run(t.Context(), db))

				for _, tenant := range []string{"acme", "evil"} {
					ctx, c := bunx.For(t.Context(), db, tenant)
					for table := range tables {
						rows, err := c.Rows(
							ctx, `SELECT search FROM `+table+` WHERE tenant_id = $1 ORDER BY 1`, tenant,
						)
						all, err := bunx.Scan(rows, err, bunx.Text)
						is.NoErr(err)
						if all[0] != "creme brulee 1⁄2" || all[len(all)-1] != notAccented {
							t.Errorf("%s of %s: %q, %q", table, tenant, all[0], all[len(all)-1])
						}
						for i, text := range all {
							if strings.Contains(text, "é") {
								t.Errorf("%s of %s: row %d is %q", table, tenant, i, text)
							}
						}
					}
					var noted int
					is.NoErr(c.Row(ctx, `SELECT count(*) FROM tc_search_noted WHERE tenant_id = $1`, tenant).Scan(&noted))
					is.Equal(noted, 501) // the changed colors
				}
				dbtest.CheckStored(t, db, "acme")
			})
		})
	}
}

// TestAccentsAreFoldedByKey: SQLite looks each row up by its key. It could compare each row of a
// tenant with each one that is written.
func TestAccentsAreFoldedByKey(t *testing.T) {
	db := dbtest.SQLite(t)
	ctx, c := bunx.For(t.Context(), db, "acme")
	for table, statement := range migrations.AccentStatements(c) {
		plan := strings.Join(dbtest.Explain(ctx, t, c, statement, "acme", `[["a","b","c"]]`), "\n")
		if strings.Contains(plan, "SCAN "+table) || !strings.Contains(plan, "SEARCH "+table) ||
			!strings.Contains(plan, "(tenant_id=? AND ") {
			t.Errorf("%s\n%s", statement, plan)
		}
	}
}
