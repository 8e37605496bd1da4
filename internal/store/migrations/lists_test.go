package migrations_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	comments "github.com/tenantcontent/tenantcontent/internal/store/comments"
	"github.com/tenantcontent/tenantcontent/internal/store/migrations"
	"github.com/tenantcontent/tenantcontent/paging"
)

// TestListsAndComments: existing rows are counted in the totals of lists. Existing comments are
// present, and their deleted authors are still deleted. Both hold with row-level security, too.
func TestListsAndComments(t *testing.T) {
	for name, secured := range map[string]bool{"plain": false, "row-level security": true} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, url string) {
				is, db := is.New(t), open(t, url)
				is.NoErr(migrations.RunBefore(t.Context(), db, "0037"))
				if _, c := bunx.For(t.Context(), db, ""); secured && c.Postgres() {
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
					add := func(table, columns string, args ...any) {
						t.Helper()
						write(t, db, tenant, strings.TrimSuffix(
							inserts(t, db, table, strings.Fields(columns)...), " ON CONFLICT DO NOTHING",
						), append([]any{tenant}, args...)...)
					}
					for _, user := range []string{"ann", "bob"} {
						add("tc_users", "username folded user_fields data", user, user, "{}", "{}")
					}
					for _, l := range counted { // lists whose rows need no other rows
						if c := strings.Fields(`tc_ai_instructions tc_bundles tc_colors tc_domains tc_teams ` +
							`tc_apps tc_assistants tc_entities`); slices.Contains(c, l.table) {
							_, key, _ := strings.Cut(map[string]string{"tc_colors": "=key"}[l.table]+"=id", "=")
							key, _, _ = strings.Cut(key, "=")
							write(t, db, tenant, inserts(t, db, l.table, key), tenant, "one")
						}
					}
					add("tc_memberships", "team_id username", "one", "ann")
					add("tc_bundle_entries", "id bundle_id", "e", "one")
					add("tc_library_files", "kind library_id path folded", "app", "l", "a", "a")
					add("tc_uploads", "id username size", "u", "ann", 5)
					add("tc_downloads", "id username size", "d", "ann", 5)
					add("tc_comment_threads", "kind entity_id total", "app", "one", 2)
					for id, gone := range map[string]bool{"here": false, "gone": true} {
						add(
							"tc_comments",
							"id kind entity_id user_id message author_gone replies created_at updated_at", id,
							"app", "one", "ann", id, gone, map[string]int{"here": 1}[id], at, at,
						)
						add(
							"tc_activities", "id kind entity_id comment_id user_id author_gone created_at", id,
							"app", "one", id, "ann", gone, at,
						)
						add("tc_feed", "activity_id username", id, "bob")
						add(
							"tc_notifications", "id username type state comment_id", id, "bob", "mention",
							"delivered", id,
						)
					}
					add(
						"tc_comments",
						"id kind entity_id parent_id user_id message author_gone created_at updated_at",
						"reply", "app", "one", "here", "ann", "reply", true, at, at,
					)
				}
				is.NoErr(migrations.Run(t.Context(), db))

				for _, tenant := range []string{"acme", "evil"} {
					wrong, parts := uncounted(t, db, tenant)
					is.Equal(wrong, nil)
					is.Equal(parts, len(counted))
					store := comments.New(db)
					one := entity.Key{Kind: "app", ID: "one"}
					page, err := store.List(t.Context(), tenant, one, paging.Query{Limit: 10})
					is.NoErr(err)
					is.Equal(page.Total, 2)
					var authors []string
					for _, c := range page.Rows {
						authors = append(authors, c.ID+map[bool]string{true: " without an author"}[c.AuthorGone])
					}
					slices.Sort(authors)
					is.Equal(authors, []string{"gone without an author", "here"})
				}
			})
		})
	}
}
