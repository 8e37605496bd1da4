package migrations_test

import (
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/store/migrations"
)

// TestUsersKeepTheirRowsInAccounts: users whose names earlier users had before accounts existed
// keep their rows, also with row-level security.
func TestUsersKeepTheirRowsInAccounts(t *testing.T) {
	for name, secured := range map[string]bool{"plain": false, "row-level security": true} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, url string) {
				is, db := is.New(t), open(t, url)
				is.NoErr(migrations.RunBefore(t.Context(), db, "0049"))
				if _, c := bunx.For(t.Context(), db, ""); secured && c.Postgres() {
					_, err := migrations.EnableRowLevelSecurity(t.Context(), db)
					is.NoErr(err)
				}
				tables := map[string]string{
					"tc_feed": "activity_id", "tc_notifications": "id", "tc_app_favorites": "app_id",
					"tc_app_visits": "app_id", "tc_app_views": "app_id",
					"tc_uploads": "id size", "tc_downloads": "id size",
				}
				for _, tenant := range []string{"acme", "evil"} {
					write(t, db, tenant,
						`INSERT INTO tc_tenants (tenant_id, name, settings, key_check, created_at, updated_at) `+
							`VALUES ($1, 'x', '{}', 'x', $2, $2)`,
						tenant, "2026-11-01 00:00:00.000000Z")
					add := func(table, columns string, args ...any) {
						t.Helper()
						write(t, db, tenant, strings.TrimSuffix(
							inserts(t, db, table, strings.Fields(columns)...), " ON CONFLICT DO NOTHING",
						), append([]any{tenant}, args...)...)
					}
					add("tc_apps", "id", "a")
					add("tc_activities", "id", "a")
					for _, user := range []string{"ann", "bob"} {
						add("tc_users", "username folded user_fields data", user, user, "{}", "{}")
						for table, columns := range tables {
							id := "a"
							if strings.HasPrefix(columns, "id") {
								id = user
							}
							add(table, columns+" username", append(
								[]any{id, 7}[:len(strings.Fields(columns))], user,
							)...)
						}
					}
				}
				write(
					t, db, "acme",
					`INSERT INTO tc_comment_authors (tenant_id, username, author_no) VALUES ($1, 'ann', 2)`,
					"acme",
				)
				is.NoErr(migrations.Run(t.Context(), db))

				for tenant, want := range map[string]string{"acme": "ann/2 bob", "evil": "ann bob"} {
					ctx, c := bunx.For(t.Context(), db, tenant)
					for table := range tables {
						rows, err := c.Rows(
							ctx, `SELECT username FROM `+table+` WHERE tenant_id = $1 ORDER BY username`,
							tenant,
						)
						all, err := bunx.Scan(rows, err, bunx.Text)
						is.NoErr(err)
						if got := strings.Join(all, " "); got != want {
							t.Errorf("%s of %s has rows of %s, not %s", table, tenant, got, want)
						}
					}
					var account string
					is.NoErr(c.Row(ctx, `SELECT `+bunx.Account("$2"), tenant, "ann").Scan(&account))
					is.Equal(account, strings.Fields(want)[0])
					wrong, _ := uncounted(t, db, tenant)
					is.Equal(wrong, nil)
				}
			})
		})
	}
}
