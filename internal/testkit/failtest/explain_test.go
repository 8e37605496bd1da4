package failtest_test

import (
	"database/sql"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/matryer/is"
	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/internal/store/engines"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/javascript"
)

// crowd fills the tables with 2,000 tenants. 100 of them have 100 users, sessions, tokens and
// colors and ten teams each; t-7 is one of these.
var crowd = []string{
	`INSERT INTO tc_tenants (tenant_id, name, settings, key_check, created_at, updated_at)
		SELECT 't-' || n, 't', '{}', '', now(), now() FROM generate_series(1, 2000) n`,
	`INSERT INTO tc_users (tenant_id, username, folded, label, search, domain, superuser, enabled, may_ai, may_create_jobs,
		may_view_all_teams, may_view_all_users, may_script, data, user_fields, login_attempts, mfa, ai_consent, created_at, updated_at)
		SELECT 't-' || n, 'u-' || i, 'u-' || i, 'u-' || i, 'u-' || i, 'local', i = 1, true, false, false, false, false, false,
		'{}', '{}', 0, false, false, now(), now() FROM generate_series(1, 100) n, generate_series(1, 100) i`,
	`INSERT INTO tc_teams (tenant_id, id, name, slug, label, search, domain, created_at, updated_at)
		SELECT 't-' || n, '01932e00-0000-7000-8000-' || lpad(i::text, 12, '0'), 'Team ' || i, 'team-' || i, 'team ' || i, 'team ' || i, 'local',
		now(), now() FROM generate_series(1, 100) n, generate_series(1, 10) i`,
	`INSERT INTO tc_memberships (tenant_id, team_id, username, role, created_at)
		SELECT 't-' || n, '01932e00-0000-7000-8000-' || lpad((i % 10 + 1)::text, 12, '0'), 'u-' || i, 1 + i % 5, now()
		FROM generate_series(1, 100) n, generate_series(1, 100) i`,
	`INSERT INTO tc_sessions (tenant_id, id, username, created_at, expires_at)
		SELECT 't-' || n, rtrim(translate(encode(sha256(('s' || i)::bytea), 'base64'), '+/', '-_'), '='), 'u-' || i, now(),
		now() + interval '1 hour' FROM generate_series(1, 100) n, generate_series(1, 100) i`,
	`INSERT INTO tc_tokens (tenant_id, id, type, username, secret_hash, read_only, requests, blocked, created_at, updated_at)
		SELECT 't-' || n, '01932e00-0000-7000-8000-' || lpad(i::text, 12, '0'), 'personal', 'u-' || i,
		rtrim(translate(encode(sha256(('s' || i)::bytea), 'base64'), '+/', '-_'), '='), false, 0, 0, now(), now()
		FROM generate_series(1, 100) n, generate_series(1, 100) i`,
	`INSERT INTO tc_colors (tenant_id, key, search, color, created_at, updated_at)
		SELECT 't-' || n, 'c-' || i, 'c-' || i, '#123456', now(), now() FROM generate_series(1, 100) n, generate_series(1, 100) i`,
	`INSERT INTO tc_search_lists (tenant_id, list, part, usable)
		SELECT 't-' || n, list, '', n <= 100 FROM generate_series(1, 2000) n, unnest(ARRAY['colors', 'users']) list ON CONFLICT DO NOTHING`,
	`INSERT INTO tc_search_noted (tenant_id, list, part, id, tx)
		SELECT 't-' || n, list, '', 'none-' || i, '1' FROM generate_series(1, 100) n, unnest(ARRAY['colors', 'users']) list, generate_series(1, 50) i`,
	`INSERT INTO tc_search_segments (tenant_id, list, part, segment, docs, state)
		SELECT 't-' || n, list, '', i, 1, 'live' FROM generate_series(1, 100) n, unnest(ARRAY['colors', 'users']) list, generate_series(1, 20) i`,
	`INSERT INTO tc_search_docs (tenant_id, list, part, block, segment, ids)
		SELECT 't-' || n, list, '', i, i, '["none"]' FROM generate_series(1, 100) n, unnest(ARRAY['colors', 'users']) list, generate_series(1, 20) i`,
	`INSERT INTO tc_search_grams (tenant_id, list, part, gram, segment, n, docs)
		SELECT 't-' || n, list, '', 'g' || i, 1 + i % 20, 1, '' FROM generate_series(1, 100) n, unnest(ARRAY['colors', 'users']) list, generate_series(1, 100) i`,
	`ANALYZE`,
}

func TestNoRequestScansATable(t *testing.T) {
	is, ctx := is.New(t), t.Context()
	db, sent := dbtest.Counted(t, func(t testing.TB) *bun.DB {
		db, err := engines.Open(plainURL(t.(*testing.T)).String())
		is.NoErr(err)
		t.Cleanup(func() { _ = db.Close() })
		return db
	})
	is.NoErr(tenantcontent.Migrate(ctx, db))
	for _, s := range crowd {
		_, err := db.DB.ExecContext(ctx, s)
		is.NoErr(err)
	}
	app, err := tenantcontent.Open(tenantcontent.Config{
		Scripts:   javascript.New(javascript.Options{}),
		DB:        db,
		SecretKey: tenantcontent.NewSecretKey(),
		Log:       slog.New(slog.DiscardHandler),
	})
	is.NoErr(err)
	const team = "01932e00-0000-7000-8000-000000000007"
	for i, c := range []struct {
		request    string
		statements int // at most, in addition to the look-up of the credential
	}{
		{"GET /api/session", 0},
		{"GET /api/colors/c-7", 1},
		{"GET /api/colors", 2},
		{"GET /api/colors?limit=10", 2},
		{"GET /api/colors?limit=10&sort=-updatedAt", 2},
		{"GET /api/colors?limit=10&sort=createdAt&start=50", 2},
		{"GET /api/colors?limit=10&q=c-1", 2},
		{"GET /api/colors-list", 1},
		{"GET /api/users", 4},
		{"GET /api/users?limit=10&sort=-createdAt", 4},
		{"GET /api/users?limit=10&q=u-1", 4},
		{"GET /api/users/u-7", 2},
		{"GET /api/users/u-7/memberships", 3},
		{"GET /api/teams", 4},
		{"GET /api/teams?limit=5&sort=-updatedAt", 4},
		{"GET /api/teams/" + team, 2},
		{"GET /api/teams/" + team + "/members", 3},
		{"GET /api/tokens", 3},
		{"GET /api/principal-list", 1},
		{"PUT /api/colors/c-7", 1},
	} {
		for _, credential := range []string{
			fmt.Sprintf("tcs.t-7.s%d", 1+i), // a different one each time, so that it is not cached
			fmt.Sprintf("tct.t-7.01932e00-0000-7000-8000-%012d.s%d", 1+i, 1+i),
		} {
			t.Run(c.request+" "+credential[:3], func(t *testing.T) {
				is := is.New(t)
				is.NoErr(app.Sessions.Unchecked().FlushAll(ctx)) // the uses of tokens so far
				sent.Take()
				method, path, _ := strings.Cut(c.request, " ")
				req := httptest.NewRequest(method, path, strings.NewReader(`{"color":"#fff"}`))
				req.Header.Set("Authorization", "Bearer "+credential)
				res := httptest.NewRecorder()
				app.ServeHTTP(res, req)
				if method == "PUT" {
					is.True(res.Code == http.StatusOK || res.Code == http.StatusForbidden)
				} else {
					is.Equal(res.Code, http.StatusOK)
				}
				ran := sent.Statements()
				is.True(len(ran) >= 1)
				for _, s := range ran {
					checkPlan(t, db.DB, s)
				}
				if n := len(queries(ran)); n > 1+c.statements {
					t.Errorf("%d statements, want at most %d: %v", n, 1+c.statements, queries(ran))
				}
			})
		}
	}
}

// queries returns the statements without those that begin and end transactions.
func queries(ran []dbtest.Statement) (texts []string) {
	for _, s := range ran {
		if strings.Contains(s.Text, "tc_") {
			texts = append(texts, s.Text)
		}
	}
	return texts
}

// checkPlan checks the plan of PostgreSQL for a statement.
func checkPlan(t *testing.T, pool *sql.DB, s dbtest.Statement) {
	t.Helper()
	if len(queries([]dbtest.Statement{s})) == 0 {
		return
	}
	is := is.New(t)
	rows, err := pool.QueryContext(t.Context(), "EXPLAIN "+s.Text, s.Args...)
	is.NoErr(err)
	defer func() { _ = rows.Close() }()
	var plan strings.Builder
	for rows.Next() {
		var line string
		is.NoErr(rows.Scan(&line))
		plan.WriteString(line + "\n")
	}
	is.NoErr(rows.Err())
	is.True(plan.Len() > 0)
	if strings.Contains(plan.String(), "Seq Scan") {
		t.Errorf("%s\n%v\nreads a whole table:\n%s", s.Text, s.Args, plan.String())
	}
}
