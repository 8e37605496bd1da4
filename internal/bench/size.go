package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/store/engines"
	"github.com/tenantcontent/tenantcontent/internal/store/migrations"
	"github.com/tenantcontent/tenantcontent/internal/testkit/pgtest"
	"github.com/tenantcontent/tenantcontent/javascript"
	"github.com/tenantcontent/tenantcontent/principals"
	"github.com/tenantcontent/tenantcontent/tenants"
)

// sizeRowsOf are the rows of a tenant of the group size, with a million of them: how many, and the
// INSERT of those that are numbered s.i. NUMBERS, ID, NAME, WORDS and TIME are made for the engine.
var sizeRowsOf = []struct {
	share  float64 // of the tenant's size
	insert string
}{
	{
		1,
		`INSERT INTO tc_colors (tenant_id, key, search, color, created_at, updated_at) ` +
			`SELECT TENANT, NAME, NAME, '#123456', TIME, TIME FROM NUMBERS`,
	},
	{0.3,
		`INSERT INTO tc_entities (tenant_id, kind, id, name, label, search, slug, owner_id, data, system,
			created_at, updated_at)
		SELECT TENANT, 'report', ID, WORDS, NAME, WORDS, NAME, '*', '{}', false, TIME, TIME FROM NUMBERS`},
	{0.1,
		`INSERT INTO tc_users (tenant_id, username, folded, label, search, display_name, domain, superuser,
			enabled, may_ai, may_create_jobs, may_view_all_teams, may_view_all_users,
		may_script, data, user_fields, login_attempts, mfa, ai_consent, created_at, updated_at)
		SELECT TENANT, NAME, NAME, NAME, NAME, NAME, 'local', false, true, false, false, false, false, false, '{}', '{}', 0, false, false, TIME, TIME FROM NUMBERS`},
	{
		0.1,
		`INSERT INTO tc_memberships (tenant_id, team_id, username, role, created_at) ` +
			`SELECT TENANT, TEAM, NAME, 1, TIME FROM NUMBERS`,
	},
	{1.3,
		`INSERT INTO tc_comments (tenant_id, id, kind, entity_id, user_id, message, public, replies, created_at, updated_at)
		SELECT TENANT, ID, 'team', TEAM, 'admin', 'said', true, 0, TIME, TIME FROM NUMBERS`},
	{1.2, `INSERT INTO tc_activities (tenant_id, id, type, kind, entity_id, user_id, excerpt, created_at)
		SELECT TENANT, ID, 'comment', 'team', TEAM, 'admin', 'said', TIME FROM NUMBERS`},
	{
		1.2,
		`INSERT INTO tc_feed (tenant_id, activity_id, username, created_at) SELECT TENANT, ID, 'admin', TIME ` +
			`FROM NUMBERS`,
	},
}

// sizeTenants are the tenants of the group size, by their number of colors.
var sizeTenants = map[string]int{"big": 1_000_000, "small": 10_000}

type sizePage struct {
	name, path string
	most       float64
	small      string // the path in the small tenant if it is another one: of a q that matches as many rows there
}

// sizePages are pages of lists, and how often those of the big tenant may take as long as those of
// the small one; 0: as long as they take.
var sizePages = []sizePage{
	{"page of colors with total", "/api/colors?limit=20", 1.2, ""},
	{"colors by createdAt", "/api/colors?limit=20&sort=createdAt", 3, ""},
	{"colors by -updatedAt", "/api/colors?limit=20&sort=-updatedAt", 3, ""},
	{"colors, q that matches 50", "/api/colors?limit=20&q=zqx", 3, ""},
	{"colors, q that matches one", "/api/colors?limit=20&q=850d3e43", 3, ""},
	{"colors, q that matches 62,500", "/api/colors?limit=20&q=row-1", 0, ""},
	{"colors, q that matches all", "/api/colors?limit=20&q=row-", 0, ""},
	{"reports, q that matches 50", "/api/reports?limit=20&q=zqx", 3, ""},
	{
		"reports, q of common words that matches 90", "/api/reports?limit=20&q=%22delta+foxtrot+hotel+golf%22", 3,
		"/api/reports?limit=20&q=%22delta+foxtrot%22",
	},
	{
		"reports, q of common words that matches 10", "/api/reports?limit=20&q=%22delta+foxtrot+hotel+golf+bravo%22",
		3, "/api/reports?limit=20&q=%22delta+foxtrot+hotel%22",
	},
	{"reports, q of common words that matches 1,200", "/api/reports?limit=20&q=%22delta+foxtrot+hotel%22", 0, ""},
	{"reports, q of three words that matches 6", "/api/reports?limit=20&q=hotel+zqx+alpha", 3, ""},
	{"reports, q of three common words", "/api/reports?limit=20&q=golf+alpha+hotel", 0, ""},
	{"page of reports with total", "/api/reports?limit=20", 1.2, ""},
	{"reports by -createdAt", "/api/reports?limit=20&sort=-createdAt", 3, ""},
	{"page of users with total", "/api/users?limit=20", 1.2, ""},
	{"users by displayName", "/api/users?limit=20&sort=displayName", 3, ""},
	{"users by -createdAt", "/api/users?limit=20&sort=-createdAt", 3, ""},
	{"users, q that matches 50", "/api/users?limit=20&q=zqx", 3, ""},
	{"page of the members of a team with total", "/api/teams/TEAM/members?limit=20", 1.2, ""},
	{"members by username", "/api/teams/TEAM/members?limit=20&sort=username", 3, ""},
	{"page of a thread with total", "/api/teams/TEAM/comments?limit=20", 1.2, ""},
	{"page of activities with total", "/api/activities?limit=20", 1.2, ""},
	{"page of a feed with total", "/api/users/admin/feed?limit=20", 1.2, ""},
}

// sizeRows measures how the time of pages grows with a tenant.
func sizeRows(ctx context.Context, engine string, matches *regexp.Regexp) (all []result, err error) {
	pages := slices.DeleteFunc(slices.Clone(sizePages), func(p sizePage) bool {
		return !matches.MatchString("size: " + p.name)
	})
	deletes := slices.DeleteFunc(slices.Clone(sizeDeletes), func(d sizeDelete) bool {
		return !matches.MatchString("size: " + d.name)
	})
	if len(pages)+len(deletes) == 0 {
		return nil, nil
	}
	w := &world{engine: engine}
	defer func() { err = errors.Join(err, w.close()) }()
	if err := w.openSized(ctx); err != nil {
		return nil, err
	}
	tokens := map[string]string{}
	for tenant := range sizeTenants {
		login, err := w.app.Sessions.Login(ctx, principals.Credentials{
			Tenant: tenant, Domain: "local", Username: "admin", Password: password,
		})
		if err != nil {
			return nil, err
		}
		tokens[tenant] = login.Token
	}
	for _, p := range pages {
		fmt.Fprintf(os.Stderr, "size: %s on %s …\n", p.name, engine)
		side := func(tenant, path string) func() (float64, error) {
			path = strings.ReplaceAll(path, "TEAM", sizeTeam)
			return func() (float64, error) {
				n, err := throughput(w.ours, tokens[tenant], 1, time.Second, func(c *caller, _, _ int) error {
					n, err := c.do("GET", path, "")
					if err == nil && n < 500 { // an empty one has less
						err = fmt.Errorf("a page of %d bytes is not whole", n)
					}
					return err
				})
				return 1 / n, err
			}
		}
		big, small, ratio, err := inTurn(side("big", p.path), side("small", cmp.Or(p.small, p.path)))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
		r := result{
			name:   "size: " + p.name,
			engine: engine,
			ours:   fmt.Sprintf("%.2fms of a million", big*1000),
			bare:   fmt.Sprintf("%.2fms of 10,000", small*1000),
			ratio:  ratio,
		}
		if p.most > 0 {
			r.must, r.met = fmt.Sprintf("≤ %.2f", p.most), ratio <= p.most
		}
		all = append(all, r)
	}
	for _, d := range deletes {
		r, err := w.sizeDelete(ctx, d)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", d.name, err)
		}
		all = append(all, r)
	}
	return all, nil
}

// sizeTeam is the team that the comments are about.
const sizeTeam = "00000000-0000-7000-8000-00000000abcd"

// openSized opens the database of the group size, which is made once for each set of migrations and
// kept in the folder of temporary files.
func (w *world) openSized(ctx context.Context) (err error) {
	names, err := migrations.Names(w.engine)
	if err != nil {
		return err
	}
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("tenantcontent-bench-size-%s-%s", w.engine, names[len(names)-1]))
	key, err := os.ReadFile(filepath.Join(dir, "key")) // written when the rows are there
	filled := err == nil
	if !filled {
		key = []byte(tenantcontent.NewSecretKey())
		if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil {
			return err
		}
	}
	var cluster *pgtest.Cluster
	w.url = "sqlite:" + filepath.Join(dir, "size.db")
	if w.engine == "postgres" {
		start := pgtest.Start
		if filled {
			start = func(ctx context.Context) (*pgtest.Cluster, error) {
				return pgtest.StartCopy(ctx, filepath.Join(dir, "data"))
			}
		}
		if cluster, err = start(ctx); err != nil {
			return err
		}
		w.url, w.ends = cluster.URL, append(w.ends, func() error { cluster.Stop(); return nil })
	}
	if w.db, err = engines.Open(w.url); err != nil {
		return err
	}
	w.ends = append(w.ends, func() error { return w.db.Close() })
	if err := tenantcontent.Migrate(ctx, w.db); err != nil {
		return err
	}
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	if w.app, err = tenantcontent.Open(tenantcontent.Config{
		Scripts:        javascript.New(javascript.Options{}),
		DB:             w.db,
		SecretKey:      string(key),
		Log:            quiet,
		KeepActivities: -1,
	}); err != nil {
		return err
	}
	if !filled {
		begin := time.Now()
		if err := w.fillSized(ctx); err != nil {
			return err
		}
		if err := w.app.Sweep(ctx); err != nil { // indexes what q searches
			return err
		}
		if cluster != nil {
			if err := cluster.Save(ctx, filepath.Join(dir, "data")); err != nil {
				return err
			}
		}
		fmt.Fprintf(os.Stderr, "filled in %s\n", time.Since(begin).Round(time.Second))
		if err := os.WriteFile(filepath.Join(dir, "key"), key, 0o600); err != nil {
			return err
		}
	}
	w.ours, err = w.serve(w.app)
	return err
}

// fillSized makes the tenants and their rows.
func (w *world) fillSized(ctx context.Context) error {
	if _, _, err := w.app.FirstStart(ctx, password); err != nil {
		return err
	}
	for tenant, size := range sizeTenants {
		if _, err := w.app.Tenants.Unchecked().Add(ctx, tenants.Tenant{ID: tenant}); err != nil {
			return err
		}
		as := actor.With(ctx, actor.Actor{Tenant: tenant, User: "admin", Superuser: true})
		if _, err := w.app.Principals.CreateUser(
			as, principals.User{Username: "admin", Enabled: true, Superuser: true}, password,
		); err != nil {
			return err
		}
		now := bunx.At(time.Now())
		_, err := w.write(ctx, tenant,
			`INSERT INTO tc_teams (tenant_id, id, name, slug, label, search, domain, created_at, updated_at)
			VALUES ($1, $2, 'Team', 'team', 'team', 'team', 'local', $3, $3)`, tenant, sizeTeam, now)
		if err != nil {
			return err
		}
		for _, rows := range sizeRowsOf {
			const step = 50_000 // so that a statement is short
			n := int(float64(size) * rows.share)
			for from := 1; from <= n; from += step {
				fmt.Fprintf(os.Stderr, "\rfilling %s: %s … %d   ", tenant, strings.Fields(rows.insert)[2], from)
				if _, err := w.write(
					ctx, tenant, w.numbered(rows.insert, tenant, from, min(from+step-1, n)),
				); err != nil {
					return err
				}
			}
			if err := w.analyze(ctx); err != nil {
				// else the foreign keys of the next rows may be checked without an index that fits
				return err
			}
		}
		_, err = w.write(ctx, tenant, `INSERT INTO tc_comment_threads (tenant_id, kind, entity_id, total)
			SELECT tenant_id, kind, entity_id, count(*) FROM tc_comments WHERE tenant_id = $1
				GROUP BY tenant_id, kind, entity_id`,
			tenant)
		if err != nil {
			return err
		}
	}
	return w.analyze(ctx)
}

// write runs one statement in a transaction.
func (w *world) write(ctx context.Context, tenant, query string, args ...any) (n int, err error) {
	err = bunx.Write(bunx.WithWork(ctx, bunx.Unbounded), w.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		n, err = c.Exec(ctx, query, args...)
		return err
	})
	return n, err
}

// numbered completes an INSERT of sizeRowsOf for the rows from one number to another.
func (w *world) numbered(insert, tenant string, from, to int) string {
	numbers := fmt.Sprintf(`generate_series(%d, %d) AS s (i)`, from, to)
	hex := func(digits int, n string) string { return fmt.Sprintf(`lpad(to_hex(%s), %d, '0')`, n, digits) }
	at := `to_timestamp(1700000000 + CAST(s.i AS bigint) * 7919 % 60000000)`
	if w.engine != "postgres" {
		numbers = fmt.Sprintf(
			`(WITH RECURSIVE n (i) AS (SELECT %d UNION ALL SELECT i + 1 FROM n WHERE i < %d) SELECT i FROM n) AS s`,
			from, to,
		)
		hex = func(digits int, n string) string { return fmt.Sprintf(`printf('%%0%dx', %s)`, digits, n) }
		at = `strftime('%Y-%m-%dT%H:%M:%S.000000Z', 1700000000 + s.i * 7919 % 60000000, 'unixepoch')`
	}
	number := "CAST(s.i AS bigint) * 2654435761 % 4294967296"
	name := `CASE WHEN s.i <= 50 THEN 'zqx-' ELSE 'row-' END || `
	words := fmt.Sprintf(`CAST(1000000 + %s %% 1000000 AS text)`, number) // six behind the 1
	for i, word := range []string{
		"alpha", "bravo", "charlie", "delta", "echo", "foxtrot", "golf", "hotel", "india", "november",
	} {
		words = fmt.Sprintf(`replace(%s, '%d', '%s ')`, words, i, word)
	}
	return strings.NewReplacer(
		"WORDS", name+words, "TENANT", "'"+tenant+"'", "TEAM", "'"+sizeTeam+"'",
		"NUMBERS", numbers, "TIME", at, "ID", `'00000000-0000-7000-8000-' || `+hex(12, "s.i"),
		"NAME", name+hex(8, number),
	).Replace(insert)
}
