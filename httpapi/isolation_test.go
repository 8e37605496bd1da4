package httpapi_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"
	"github.com/uptrace/bun/dialect"

	"github.com/tenantcontent/tenantcontent/httpapi"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// tables are those of the service, with their columns and their types.
func (w *world) tables(t testing.TB) map[string][]column {
	t.Helper()
	is := is.New(t)
	query := `SELECT m.name, c.name, lower(c.type) FROM sqlite_master m, pragma_table_info(m.name) c ` +
		`WHERE m.type = 'table' AND m.name LIKE 'tc_%' ORDER BY 1, 2`
	if w.db.Dialect().Name() == dialect.PG {
		query = `SELECT table_name, column_name, data_type FROM information_schema.columns ` +
			`WHERE table_schema = current_schema() AND table_name LIKE 'tc_%' ORDER BY 1, 2`
	}
	rows, err := w.db.QueryContext(t.Context(), query)
	is.NoErr(err)
	defer func() { _ = rows.Close() }()
	all := map[string][]column{}
	for rows.Next() {
		var table string
		var c column
		is.NoErr(rows.Scan(&table, &c.name, &c.kind))
		all[table] = append(all[table], c)
	}
	is.NoErr(rows.Err())
	return all
}

type column struct{ name, kind string }

func named(name string) func(column) bool { return func(c column) bool { return c.name == name } }

// dump is all rows of a tenant as text, except for its sessions and networks of logins, which come
// and go with these.
func (w *world) dump(t testing.TB, tenant string) string {
	t.Helper()
	is := is.New(t)
	if w.dumping == "" {
		var tables []string
		for table, columns := range w.tables(t) {
			if slices.ContainsFunc(columns, named("tenant_id")) && table != "tc_sessions" &&
				table != "tc_login_networks" {
				tables = append(tables, w.rowsAsText(table, columns))
			}
		}
		w.dumping = strings.Join(tables, " UNION ALL ") + " ORDER BY 1"
	}
	ctx, c := bunx.For(t.Context(), w.db, tenant)
	rows, err := c.Rows(ctx, w.dumping, tenant)
	is.NoErr(err)
	defer func() { _ = rows.Close() }()
	var lines strings.Builder
	for rows.Next() {
		var line string
		is.NoErr(rows.Scan(&line))
		lines.WriteString(line + "\n")
	}
	is.NoErr(rows.Err())
	return lines.String()
}

// rowsAsText is a statement that reads the rows of a tenant, $1, each as one text.
func (w *world) rowsAsText(table string, columns []column) string {
	row := "'" + table + "'"
	for _, c := range columns {
		text := "CAST(" + c.name + " AS text)"
		if c.kind == "bytea" {
			text = "encode(" + c.name + ", 'escape')"
		}
		row += " || ' " + c.name + "=' || coalesce(" + text + ", 'NULL')"
	}
	from := table
	if table == "tc_totals" { // the slots that a number is spread over are no matter
		from = "(SELECT tenant_id, list, part, 0 AS slot, sum(n) AS n FROM tc_totals " +
			"GROUP BY tenant_id, list, part HAVING sum(n) <> 0) AS total"
	}
	return "SELECT " + row + " FROM " + from + " WHERE tenant_id = $1"
}

// unmarked are, by table, the columns of texts that cannot hold just any, beside tenant_id and
// times: keys, what logins need, and JSON.
var unmarked = map[string]string{
	"tc_activities":      "id type kind entity_id comment_id user_id",
	"tc_ai_instructions": "id slug search owner_id",
	"tc_app_favorites":   "username app_id",
	"tc_app_shares":      "entity_id principal_id roles",
	"tc_app_views":       "username app_id day",
	"tc_app_visits":      "username app_id",
	"tc_apps": "id type label search slug owner_id defn env_sealed settings library_id editing_id " +
		"editing_session editing_locked_by datasets tags webhook_secret",
	"tc_confirmations":    "id assistant_id asked decision",
	"tc_assistant_shares": "entity_id principal_id roles",
	"tc_assistants": "id label search slug owner_id suggestions data skills datasets refs secrets_sealed " +
		"library_id editing_id editing_session editing_locked_by",
	"tc_blob_chunks":      "blob_id",
	"tc_blobs":            "id",
	"tc_bundle_entries":   "id bundle_id type entity_id data",
	"tc_bundles":          "id slug label search",
	"tc_colors":           "key search",
	"tc_former_users":     "username",
	"tc_removals":         "id",
	"tc_comment_threads":  "kind entity_id",
	"tc_comments":         "id kind entity_id parent_id user_id mentions",
	"tc_deployments":      "source_tenant bundle_id kind entity_id",
	"tc_domain_logins":    "id domain_id",
	"tc_domain_scans":     "domain_id id phase",
	"tc_domains":          "id label search type config secrets",
	"tc_downloads":        "id username content_type",
	"tc_entities":         "kind id label search slug owner_id data editing_id",
	"tc_events":           "id app_id search payload state",
	"tc_feed":             "activity_id username",
	"tc_job_schedules":    "kind key",
	"tc_jobs":             "id key state",
	"tc_library_contents": "id sha256",
	"tc_library_files":    "kind library_id path folded content_id content_type",
	"tc_library_released": "content_id library_id",
	"tc_login_networks":   "username network",
	"tc_memberships":      "team_id username",
	"tc_messages":         "id app_id type search data state",
	"tc_notifications":    "id username type kind entity_id comment_id",
	"tc_principals":       "id type label",
	"tc_scim_users":       "username id",
	"tc_search_docs":      "list part block ids",
	"tc_search_grams":     "list part gram docs",
	"tc_search_lists":     "list part",
	"tc_search_noted":     "list part id tx",
	"tc_search_segments":  "list part state",
	"tc_sessions":         "id username",
	"tc_teams":            "id slug label search domain",
	"tc_tenants":          "settings key_check hidden",
	"tc_totals":           "list part slot n",
	"tc_tokens":           "id type username secret_hash restriction data entity_kind entity_id",
	"tc_uploads":          "id username content_type",
	"tc_users": "username folded label search domain data user_fields password_hash last_viewed_feed " +
		"avatar_id recent_failures",

	"tc_webhook_days":        "app_id day",
	"tc_webhook_invocations": "app_id area id logs replay_of",
	"tc_webhook_requests":    "app_id id key_sealed",
	"tc_provider_sessions":   "session_id domain_id subject provider_id memory",
	"tc_workspaces":          "app_id engine password",
	"tc_agents":              "app_id name definition overrides",
	"tc_agent_runs":          "id app_id agent started_by event_id run_id input state lease",
	"tc_agent_steps":         "run_id kind calls",

	"tc_handler_calls":       "app_id day area method path",
	"tc_handler_deployments": "app_id",
	"tc_handler_programs":    "hash engine about",
	"tc_handler_routes":      "app_id area path methods config hash",
}

// mark writes a tenant's mark into every column of its rows that takes one, and makes things whose
// keys have it.
func (s stock) mark(t testing.TB, tenant, superuser string) {
	t.Helper()
	is := is.New(t)
	mark := strings.ToUpper(tenant) + "MARK"
	s.must(t, superuser, "PUT", "/api/colors/"+mark, `{"color": "#ff0000"}`)
	s.must(
		t, superuser, "POST", "/api/users",
		`{"username": "`+mark+`", "data": {"m": "`+mark+`"}, "userFields": {"m": "`+mark+`"}}`,
	)
	team := read[struct{ ID string }](t, s.must(t, superuser, "POST", "/api/teams", `{"name": "`+mark+`"}`)).ID
	s.must(t, superuser, "PUT", "/api/teams/"+team+"/members/"+mark, `{"role": "member"}`)
	s.must(t, superuser, "POST", "/api/teams/"+team+"/comments", `{"message": "@`+mark+`"}`)
	s.must(t, superuser, "PUT", "/api/tenant", `{"settings": {"licenses": ["`+mark+`"]}}`)
	s.must(t, superuser, "POST", "/api/tokens", `{}`)
	s.upload(t, superuser, `[{"key": "`+mark+`", "color": "red"}]`)
	s.must(t, superuser, "POST", "/api/colors-export", `{}`)
	s.markContent(t, superuser, mark)
	s.must(t, superuser, "POST", "/api/bundles", `{"name": "`+mark+`"}`)
	s.must(
		t, superuser, "POST", "/api/bundles/"+strings.ToLower(mark)+"/entries",
		`{"type": "global", "data": {"m": "`+mark+`"}}`,
	)
	s.markRows(t, tenant, mark)
	every := s.tables(t)
	for table, columns := range unmarked {
		for _, name := range strings.Fields(columns) {
			if !slices.ContainsFunc(every[table], named(name)) {
				t.Errorf("unmarked names %s.%s, which does not exist", table, name)
			}
		}
	}
	for table, columns := range every {
		if !slices.ContainsFunc(columns, named("tenant_id")) {
			continue
		}
		if n, err := bunx.Count(t.Context(), s.db, tenant, table); err != nil || n == 0 {
			t.Errorf("%s has no row of %s to look for (%v): add one in mark", table, tenant, err)
		}
		for _, c := range columns {
			if c.kind != "text" || c.name == "tenant_id" || strings.HasSuffix(c.name, "_at") ||
				slices.Contains(strings.Fields(unmarked[table]), c.name) {
				continue
			}
			is.NoErr(bunx.Write(t.Context(), s.db, tenant, func(ctx context.Context, db bunx.Conn) error {
				_, err := db.Exec(
					ctx, "UPDATE "+table+" SET "+c.name+" = $1 WHERE tenant_id = $2", mark+" "+c.name, tenant,
				)
				return err
			}))
		}
	}
}

// markRows adds rows to the tables that only a directory, a provider, another tenant or a later
// sweep fills or empties.
func (s stock) markRows(t testing.TB, tenant, mark string) {
	t.Helper()
	later := bunx.At(time.Now().AddDate(1, 0, 0))
	for _, row := range []struct {
		query string
		args  []any
	}{
		{
			`INSERT INTO tc_deployments (tenant_id, source_tenant, bundle_id, kind, entity_id) ` +
				`VALUES ($1, $2, $2, 'color', $2)`,
			[]any{tenant, mark},
		},
		{
			`INSERT INTO tc_domain_logins (tenant_id, id, domain_id, expires_at) VALUES ($1, $2, 'local', $3)`,
			[]any{tenant, mark, later},
		},
		{
			`INSERT INTO tc_sessions (tenant_id, id, username, created_at, expires_at) VALUES ($1, $2, $2, $3, $3)`,
			[]any{tenant, mark, later},
		},
		{
			`INSERT INTO tc_provider_sessions (tenant_id, session_id, domain_id, subject, provider_id, memory) ` +
				`VALUES ($1, $2, 'local', $2, $2, $2)`,
			[]any{tenant, mark},
		},
		{`INSERT INTO tc_domain_scans (tenant_id, domain_id, id, phase, users, groups, written, total, dry_run, error, started_at, heard_at, finished_at)
			VALUES ($1, 'local', $2, 'done', 0, 0, 0, 0, false, '', $3, $3, $3)`, []any{tenant, mark, later}},
		{
			`INSERT INTO tc_webhook_days (tenant_id, app_id, day, method, path, calls, errors, duration) ` +
				`VALUES ($1, $2, '2026-11-20', 'GET', '/', 1, 0, 0)`,
			[]any{tenant, mark},
		},
		{`INSERT INTO tc_webhook_invocations (tenant_id, app_id, id, method, path, started_at, duration, status, memory, error, logs, logs_dropped)
			VALUES ($1, $2, $2, 'GET', '/', $3, 0, 200, 0, '', '[]', 0)`, []any{tenant, mark, later}},
		{
			`INSERT INTO tc_webhook_requests (tenant_id, app_id, id, received_at, size, key_sealed, request) ` +
				`VALUES ($1, $2, $2, $3, 0, '', $4)`,
			[]any{tenant, mark, later, []byte(mark)},
		},
		{`INSERT INTO tc_events (tenant_id, id, app_id, name, search, payload, size, state, attempts, created_at, updated_at)
			VALUES ($1, $2, $2, '', '', '{}', 0, 'pending', 0, $3, $3)`, []any{tenant, mark, later}},
		{`INSERT INTO tc_messages (tenant_id, id, app_id, type, recipient, search, title, size, state, attempts, created_at, updated_at)
			VALUES ($1, $2, $2, 'email', '', '', '', 0, 'pending', 0, $3, $3)`, []any{tenant, mark, later}},
		{
			`INSERT INTO tc_jobs (tenant_id, id, kind, payload, state, tries, due_at, created_at) ` +
				`VALUES ($1, $2, 'cron', 'null', 'dead', 0, $3, $3)`,
			[]any{tenant, mark, later},
		},
		{
			`INSERT INTO tc_job_schedules (tenant_id, kind, key, cron, zone, payload, next_at) ` +
				`VALUES ($1, 'cron', $2, '@daily', '', 'null', $3)`,
			[]any{tenant, mark, later},
		},
		{
			`INSERT INTO tc_confirmations (tenant_id, id, assistant_id, asked, decision, expires_at) ` +
				`VALUES ($1, $2, $2, $2, '', $3)`,
			[]any{tenant, mark, later},
		},
		{
			`INSERT INTO tc_agents (tenant_id, app_id, name, definition, overrides, created_at, updated_at) ` +
				`VALUES ($1, $2, $2, '{}', '{}', $3, $3)`,
			[]any{tenant, mark, later},
		},
		{`INSERT INTO tc_agent_runs (tenant_id, id, app_id, agent, started_by, input, depth, model, steps, input_tokens, output_tokens, size, lease, state, attempts, created_at, updated_at)
			VALUES ($1, $2, $2, $2, 'manual', '{}', 0, '', 0, 0, 0, 0, '', 'pending', 0, $3, $3)`,
			[]any{tenant, mark, later}},
		{`INSERT INTO tc_agent_steps (tenant_id, run_id, n, kind, content, calls, input_tokens, output_tokens, call_id, tool, arguments, result, failed, log, started_at)
			VALUES ($1, $2, 1, 'answer', '', '[]', 0, 0, '', '', '', '', $4, '', $3)`,
			[]any{tenant, mark, later, false}},
		{
			`INSERT INTO tc_changes (tenant_id, position, kind, entity_id, action, created_at) ` +
				`VALUES ($1, 1, 'color', $2, 'create', $3)`,
			[]any{tenant, mark, later},
		},
		{
			`INSERT INTO tc_new_changes (tenant_id, id, n, kind, entity_id, action, created_at) ` +
				`VALUES ($1, $2, 1, 'color', $2, 'create', $3)`,
			[]any{tenant, mark, later},
		},
		{`INSERT INTO tc_change_feeds (tenant_id, feed, last, removed) VALUES ($1, $2, 1, 0)`, []any{tenant, mark}},
		{`INSERT INTO tc_former_users (tenant_id, username, n) VALUES ($1, $2, 1)`, []any{tenant, mark}},
		{
			`INSERT INTO tc_removals (tenant_id, kind, id, times, deleted_at) VALUES ($1, 'report', $2, 1, $3)`,
			[]any{tenant, mark, later},
		},
		{
			`INSERT INTO tc_library_released (tenant_id, content_id, library_id, released_at) VALUES ($1, $2, $2, $3)`,
			[]any{tenant, mark, later},
		},
		{
			`INSERT INTO tc_scim_users (tenant_id, username, id, external_id, gone, changed_at) ` +
				`VALUES ($1, $2, $2, $2, $4, $3)`,
			[]any{tenant, mark, later, false},
		},
		{`INSERT INTO tc_search_lists (tenant_id, list, part) VALUES ($1, $2, $2)`, []any{tenant, mark}},
		{
			`INSERT INTO tc_search_noted (tenant_id, list, part, id, tx) VALUES ($1, $2, $2, $2, $2)`,
			[]any{tenant, mark},
		},
		{
			`INSERT INTO tc_search_segments (tenant_id, list, part, segment, docs, state) ` +
				`VALUES ($1, $2, $2, 1, 1, $2)`,
			[]any{tenant, mark},
		},
		{
			`INSERT INTO tc_search_docs (tenant_id, list, part, block, segment, ids) VALUES ($1, $2, $2, $2, 1, $2)`,
			[]any{tenant, mark},
		},
		{
			`INSERT INTO tc_search_grams (tenant_id, list, part, gram, segment, n, docs) ` +
				`VALUES ($1, $2, $2, $2, 1, 1, $2)`,
			[]any{tenant, mark},
		},
		{
			`INSERT INTO tc_workspaces (tenant_id, app_id, engine, password, created_at) ` +
				`VALUES ($1, $2, 'sqlite', 'sealed', $3)`,
			[]any{tenant, mark, later},
		},
	} {
		is.New(t).NoErr(bunx.Write(t.Context(), s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
			_, err := c.Exec(ctx, row.query, row.args...)
			return err
		}))
	}
}

// TestTenantsAreApart: a superuser of one tenant calls every route with ids of the other one. It
// gets 404, or, where keys are free, its own row; sees nothing of the other tenant; and changes
// nothing of it.
func TestTenantsAreApart(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is := is.New(t)
		s := stocked(t, open)
		s.mark(t, "acme", "admin")
		s.mark(t, "evil", "eve")
		before := s.dump(t, "acme")
		is.True(strings.Contains(before, "ACMEMARK display_name"))
		mine := s.dump(t, "evil")
		routes := httpapi.Routes()
		slices.SortStableFunc(routes, func(a, b httpapi.Route) int { // GET first: a PUT makes what it would find
			return strings.Compare(strings.TrimPrefix(a.Method, "GET"), strings.TrimPrefix(b.Method, "GET"))
		})
		for _, r := range routes {
			if r.Name == "logout" || r.Public || r.Name == "getAppSharePage" { // visitors are of the token's tenant
				continue
			}
			a := s.call(t, "eve", r)
			own := r.Name == "putColor" || r.Name == "deleteColor" || r.Name == "getBundleDriver" ||
				r.Name == "getInputEditor" ||
				r.Name == "getDomainDriver" || r.Name == "getSCIMType" || r.Name == "getSCIMSchema" ||
				r.Name == "scanDriver" || !strings.Contains(r.Pattern, ":")
			switch {
			case r.Name == "importColors" || r.Name == "restoreFile":
				is.Equal(a.status, 400) // the upload does not exist
			case r.Name == "deployEntries":
				is.Equal(a.message(t), `The tenant "acme" does not let evil deploy into it: see its deployFrom.`)
				continue // it names the tenant that it was given
			case own != (a.status < 400) || !own && a.status != 404:
				t.Errorf("%s: %d %s", r.Name, a.status, a.body)
			}
			if strings.HasPrefix(r.Name, "getOpenAPI") {
				continue // its examples are of the transcripts, whatever tenants there are
			}
			for _, of := range []string{"ACMEMARK", "acme", "Dana", "tim", s.param["uploads"], teamID} {
				if strings.Contains(strings.ReplaceAll(a.body, "timezone", ""), of) {
					t.Errorf("%s shows %s: %s", r.Name, of, a.body)
				}
			}
		}
		is.Equal(s.dump(t, "acme"), before)
		is.True(s.dump(t, "evil") != mine) // it did write its own

		for _, r := range httpapi.Routes() { // the other way round, on what everybody can list
			if r.Method == "GET" && !strings.HasPrefix(r.Name, "getOpenAPI") {
				if a := s.call(t, "admin", r); strings.Contains(a.body, "EVILMARK") ||
					strings.Contains(a.body, "evil") {
					t.Errorf("%s shows %s", r.Name, a.body)
				}
			}
		}
	})
}

// TestTotals: counts know nothing of another tenant.
func TestTotals(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is := is.New(t)
		s := stocked(t, open)
		for path, total := range map[string]int{
			"/api/colors": 0, "/api/tokens": 0, "/api/users": 1, "/api/teams": 1, "/api/teams/heist/members": 1,
			"/api/users/eve/memberships": 1, "/api/users?q=i": 0, "/api/colors?q=e": 0,
		} {
			is.Equal(read[page](t, s.must(t, "eve", "GET", path, "")).Total, total)
		}
		is.Equal(len(read[[]any](t, s.must(t, "eve", "GET", "/api/principal-list", ""))), 2)
		is.Equal(len(read[[]any](t, s.must(t, "eve", "GET", "/api/colors-list", ""))), 0)
	})
}
