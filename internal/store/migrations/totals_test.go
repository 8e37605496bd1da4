package migrations_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/matryer/is"
	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// counted are the lists of tc_totals: the rows of a table that meet a condition, by part.
var counted = []struct{ list, table, part, condition string }{
	{"ai_instructions", "tc_ai_instructions", "''", "true"},
	{"bundles", "tc_bundles", "''", "true"},
	{"bundle_entries", "tc_bundle_entries", "bundle_id", "true"},
	{"bundle_data", "tc_bundle_entries", "bundle_id", "true"}, // bytes
	{"colors", "tc_colors", "''", "true"},
	{"domains", "tc_domains", "''", "true"},
	{"teams", "tc_teams", "''", "true"},
	{"users", "tc_users", "''", "true"},
	{"apps", "tc_apps", "''", "editing_id IS NULL AND deleted_at IS NULL"},
	{"owned_apps", "tc_apps", "owner_id", "editing_id IS NULL AND deleted_at IS NULL"},
	{"assistants", "tc_assistants", "''", "editing_id IS NULL"},
	{"owned_assistants", "tc_assistants", "owner_id", "editing_id IS NULL"},
	{"entities", "tc_entities", "kind", "editing_id IS NULL"},
	{"library_files", "tc_library_files", "kind || '/' || library_id", "true"},
	{"members", "tc_memberships", "team_id", "true"},
	{"memberships", "tc_memberships", "username", "true"},
	{"activities", "tc_activities", "''", "true"},
	{"entity_activities", "tc_activities", "kind || '/' || entity_id", "true"},
	{"feed", "tc_feed", "username", "true"},
	{"notifications", "tc_notifications", "username", "true"},
	{"unread_notifications", "tc_notifications", "username", "read_at IS NULL"},
	{"upload_bytes", "tc_uploads", "username", "size > 0"}, // bytes
	{"download_bytes", "tc_downloads", "username", "size > 0"},
}

// uncounted returns the parts of a tenant's lists whose totals differ from the number of their
// rows, and the number of parts. It runs one statement for each list, so it can run while others
// write.
func uncounted(t *testing.T, db *bun.DB, tenant string) (wrong []string, parts int) {
	t.Helper()
	ctx, c := bunx.For(t.Context(), db, tenant)
	for _, l := range counted {
		each := map[string]string{
			"bundle_data":    "octet_length(data)",
			"upload_bytes":   "size",
			"download_bytes": "size",
		}[l.list]
		if each == "" {
			each = "1"
		}
		rows, err := c.Rows(ctx, `SELECT part, CAST(sum(kept) AS bigint), CAST(sum(n) AS bigint) FROM (
			SELECT part, n AS kept, 0 AS n FROM tc_totals WHERE tenant_id = $1 AND list = $2
			UNION ALL SELECT `+l.part+`, 0, `+each+` FROM `+l.table+` WHERE tenant_id = $1 AND `+l.condition+
			`) AS kept GROUP BY part`,
			tenant, l.list)
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			var part string
			var kept, n int
			if err := rows.Scan(&part, &kept, &n); err != nil {
				t.Fatal(err)
			}
			if parts++; kept != n {
				wrong = append(wrong, fmt.Sprintf("%s %q: %d, not %d", l.list, part, n, kept))
			}
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
	}
	return wrong, parts
}

// inserts returns an INSERT with the arguments $1, the tenant, and those of some columns. The other
// columns get some value.
func inserts(t *testing.T, db *bun.DB, table string, columns ...string) string {
	t.Helper()
	names, values := []string{"tenant_id"}, []string{"$1"}
	for _, column := range schemaOf(t, db)[table].columns {
		name, needed := strings.CutSuffix(column, " NOT NULL")
		if i := slices.Index(columns, name); i >= 0 {
			names, values = append(names, name), append(values, fmt.Sprintf("$%d", i+2))
		} else if needed && name != "tenant_id" {
			names, values = append(names, name), append(values, filler(t, db, table, name))
		}
	}
	return "INSERT INTO " + table + " (" + strings.Join(names, ", ") + ") VALUES (" + strings.Join(values, ", ") +
		") ON CONFLICT DO NOTHING"
}

// TestTotalsAreExact: totals are exact during concurrent transactions, in each of their snapshots,
// after slots are added up, and after the tenant was deleted.
func TestTotalsAreExact(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, db := is.New(t), open(t)
		var changes []func(int) (string, []any)
		add := func(query string, args ...func(i int) any) {
			changes = append(changes, func(i int) (string, []any) {
				var values []any
				for _, a := range args {
					values = append(values, a(i))
				}
				return query, values
			})
		}
		some := func(prefix string, n int) func(int) any {
			return func(int) any { return fmt.Sprint(prefix, rand.IntN(n)) }
		}
		insert := func(table string, columns string, args ...func(int) any) {
			add(inserts(t, db, table, strings.Fields(columns)...), args...)
		}
		user, team, kind, id := some("u", 9), some("t", 5), some("k", 3), some("", 60)

		insert("tc_users", "username folded", user, some("u", 9))
		insert("tc_users", "username folded", user, some("u", 9))
		insert("tc_teams", "id slug", team, team)
		insert("tc_memberships", "team_id username", team, user)
		insert("tc_memberships", "team_id username", team, user)
		insert("tc_ai_instructions", "id slug", id, id)
		insert("tc_bundles", "id slug", team, team)
		insert("tc_bundle_entries", "id bundle_id entity_id data", id, team, id, user)
		add(`UPDATE tc_bundle_entries SET data = data || $2 WHERE tenant_id = $1 AND bundle_id = $3`, user, team)
		insert("tc_domains", "id", id)
		insert("tc_apps", "id owner_id library_id slug", id, user, id, id)
		insert("tc_assistants", "id owner_id library_id slug", id, user, id, id)
		insert("tc_entities", "id kind slug", id, kind, id)
		insert("tc_library_files", "kind library_id path folded", kind, team, id, id)
		insert("tc_activities", "id kind entity_id", id, kind, team)
		insert("tc_feed", "activity_id username", id, user)
		insert("tc_notifications", "id username", id, user)
		size := func(int) any { return rand.IntN(3) << 30 }
		for _, table := range []string{"tc_uploads", "tc_downloads"} {
			insert(table, "id username size", id, user, size)
			add(`UPDATE `+table+` SET username = $2 WHERE tenant_id = $1 AND username = $3`, user, user)
			add(`DELETE FROM `+table+` WHERE tenant_id = $1 AND id = $2`, id)
		}
		length := func(int) any { return strings.Repeat("ü", rand.IntN(300)) }
		content := func(int) any { return []byte(fmt.Sprint(length(0))) }
		before := len(changes)
		for i := range 5 {
			insert("tc_blobs", "id", func(int) any { return fmt.Sprint("t", i) })
		}
		for n := range 3 {
			insert("tc_blob_chunks", "blob_id number bytes", team, func(int) any { return n }, content)
		}
		add(`DELETE FROM tc_blob_chunks WHERE tenant_id = $1 AND blob_id = $2 AND number > 0`, team)
		add(`DELETE FROM tc_blobs WHERE tenant_id = $1 AND id = $2`, team)
		for table, columns := range map[string]string{ // the changed columns, the key, and bytes
			"tc_workspaces": "bytes app_id", "tc_agent_runs": "size id",
			"tc_agents": "overrides app_id", "tc_ai_instructions": "content id", "tc_apps": "defn id",
			"tc_assistants": "instructions id", "tc_comments": "message id",
			"tc_entities": "data id", "tc_events": "size id", "tc_handler_deployments": "sources app_id",
			"tc_handler_programs": "code hash map", "tc_messages": "size id",
			"tc_webhook_invocations": "logs id", "tc_webhook_requests": "size id request",
		} {
			some := strings.Fields(columns)
			column, key := some[0], some[1]
			of := map[string]func(int) any{"bytes": size, "size": size, "sources": content, "code": content}[column]
			if of == nil {
				of = length
			}
			insert(table, columns, []func(int) any{of, id, content}[:len(some)]...)
			add(`UPDATE `+table+` SET `+column+` = $2 WHERE tenant_id = $1 AND `+key+` = $3`, of, id)
			add(`DELETE FROM `+table+` WHERE tenant_id = $1 AND `+key+` = $2`, id)
		}
		for _, change := range changes[before:] { // all of them can be parsed
			query, args := change(0)
			is.NoErr(bunx.Write(t.Context(), db, "acme", func(ctx context.Context, c bunx.Conn) error {
				_, err := c.Exec(ctx, query, append([]any{"acme"}, args...)...)
				return err
			}))
			dbtest.CheckStored(t, db, "acme")
		}
		color := inserts(t, db, "tc_colors", "key")
		add(color, id)
		add(strings.Replace(color, "DO NOTHING", "(tenant_id, key) DO UPDATE SET color = excluded.color", 1), id)
		one := strings.TrimSuffix(color[strings.Index(color, "("):], " ON CONFLICT DO NOTHING")
		_, values, _ := strings.Cut(one, " VALUES ")
		many := []string{}
		for i := range 50 {
			many = append(many, strings.Replace(values, "$2", fmt.Sprintf("$2 || '-%d'", i), 1))
		}
		add(strings.Replace(color, values, strings.Join(many, ", "), 1), team) // an import
		add(`DELETE FROM tc_colors WHERE tenant_id = $1 AND key LIKE $2 || '-%'`, team)
		for table, column := range map[string]string{
			"tc_users": "username", "tc_teams": "id", "tc_memberships": "username",
			"tc_bundles": "id", "tc_bundle_entries": "id", "tc_apps": "id", "tc_colors": "key",
			"tc_assistants": "id", "tc_entities": "id", "tc_activities": "id",
			"tc_notifications": "id", "tc_library_files": "path", "tc_feed": "activity_id", "tc_ai_instructions": "id",
		} {
			with := map[string]func(int) any{"username": user, "tc_teams": team, "tc_bundles": team}
			of := with[column]
			if of == nil {
				of = with[table]
			}
			if of == nil {
				of = id
			}
			add(`DELETE FROM `+table+` WHERE tenant_id = $1 AND `+column+` = $2`, of)
		}
		add(`UPDATE tc_users SET username = $2, folded = $2 WHERE tenant_id = $1 AND username = $3`, user, user)
		add(`UPDATE tc_apps SET owner_id = $2 WHERE tenant_id = $1 AND owner_id = $3`, user, user)
		for table, columns := range map[string][]string{
			"tc_apps": {"editing_id", "deleted_at"}, "tc_assistants": {"editing_id"},
			"tc_entities": {"editing_id"}, "tc_notifications": {"read_at"},
		} {
			for _, column := range columns {
				value := map[bool]string{
					true:  "'2026-11-20T20:31:00.000000Z'",
					false: "id",
				}[strings.HasSuffix(column, "_at")]
				add(
					`UPDATE `+table+` SET `+column+` = `+value+` WHERE tenant_id = $1 AND id = $2 AND `+column+
						` IS NULL`,
					id,
				)
				add(`UPDATE `+table+` SET `+column+` = NULL WHERE tenant_id = $1 AND id = $2`, id)
			}
		}

		_, parts := uncounted(t, db, "acme")
		is.True(parts >= 1) // the domain of each tenant
		var writers sync.WaitGroup
		done := make(chan struct{})
		for w := range 6 {
			writers.Go(func() {
				tenant := []string{"acme", "evil"}[w%2]
				for range 120 {
					_ = bunx.Write(t.Context(), db, tenant, func(ctx context.Context, c bunx.Conn) error {
						// it is rolled back after an error, and sometimes without one
						for range 1 + rand.IntN(4) {
							query, args := changes[rand.IntN(len(changes))](w)
							if _, err := c.Exec(ctx, query, append([]any{tenant}, args...)...); err != nil {
								return err
							}
						}
						if rand.IntN(4) == 0 {
							return context.Canceled
						}
						return nil
					})
				}
			})
		}
		go func() { writers.Wait(); close(done) }()
		folded := 0
		for running := true; running; {
			select {
			case <-done:
				running = false
			default:
			}
			n, err := bunx.FoldTotals(t.Context(), db)
			is.NoErr(err)
			folded += n
			for _, tenant := range []string{"acme", "evil"} {
				wrong, _ := uncounted(t, db, tenant)
				is.Equal(wrong, nil)
				dbtest.CheckStored(t, db, tenant)
			}
		}
		_, err := bunx.FoldTotals(t.Context(), db)
		is.NoErr(err)
		is.True(len(dbtest.CheckStored(t, db, "acme")) > 0) // which parts have rows at the end is random
		_, parts = uncounted(t, db, "acme")
		is.True(parts > 30) // the changes had effects
		ctx, c := bunx.For(t.Context(), db, "acme")
		var slots, empty int
		is.NoErr(c.Row(
			ctx,
			`SELECT count(CASE WHEN slot <> 0 THEN 1 END), count(CASE WHEN n = 0 AND part <> '' THEN 1 END) `+
				`FROM tc_totals WHERE tenant_id = $1`,
			"acme",
		).Scan(&slots, &empty))
		is.Equal(slots, 0)
		is.Equal(empty, 0)
		is.Equal(folded > 0, c.Postgres())

		is.NoErr(bunx.Write(t.Context(), db, "evil", func(ctx context.Context, c bunx.Conn) error {
			_, err := c.Exec(ctx, `DELETE FROM tc_tenants WHERE tenant_id = $1`, "evil")
			return err
		}))
		ctx, c = bunx.For(t.Context(), db, "evil")
		var left int
		is.NoErr(c.Row(ctx, `SELECT count(*) FROM tc_totals WHERE tenant_id = $1`, "evil").Scan(&left))
		is.Equal(left, 0)
	})
}
