package indexer_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/matryer/is"
	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	colorstore "github.com/tenantcontent/tenantcontent/internal/store/colors"
	"github.com/tenantcontent/tenantcontent/internal/store/engines"
	"github.com/tenantcontent/tenantcontent/internal/store/migrations"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/paging"
)

// TestSearchesReadByPrimaryKey: the statements of searches and of the indexer find the rows of
// growing tables by primary key, on a PostgreSQL with and without statistics. If tables have
// partitions, each statement is planned over one.
func TestSearchesReadByPrimaryKey(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		db, statements := indexed(t, open)
		for _, s := range statements {
			checkPlan(t, s.Text, explain(t, db, s), wholeTable)
		}
		if db.Dialect().Name().String() == "pg" {
			_, err := db.DB.ExecContext(
				t.Context(),
				`ANALYZE tc_colors, tc_search_lists, tc_search_noted, tc_search_segments, tc_search_docs, `+
					`tc_search_grams`,
			)
			is.New(t).NoErr(err)
			for _, s := range statements { // the other tables are small
				checkPlan(
					t, s.Text, explain(t, db, s),
					regexp.MustCompile(`Seq Scan on tc_(colors|search_docs|search_grams)`),
				)
			}
		}
	})
	t.Run("partitions", func(t *testing.T) {
		dbtest.Server(t)
		db, statements := indexed(t, func(t testing.TB) *bun.DB {
			is := is.New(t)
			db, err := engines.Open(dbtest.PostgresURL(t))
			is.NoErr(err)
			t.Cleanup(func() { _ = db.Close() })
			is.NoErr(migrations.RunPartitioned(t.Context(), db, 2))
			is.NoErr(bunx.Write(t.Context(), db, "acme", func(ctx context.Context, c bunx.Conn) error {
				_, err := c.Exec(
					ctx,
					`INSERT INTO tc_tenants (tenant_id, name, settings, key_check, created_at, updated_at) `+
						`VALUES ('acme', 'Acme', '{}', '', $1, $1)`,
					bunx.At(monday),
				)
				return err
			}))
			return db
		})
		for _, s := range statements {
			plan := explain(t, db, s)
			checkPlan(t, s.Text, plan, wholeTable)
			used := map[string]bool{}
			for _, m := range regexp.MustCompile(`\btc_[a-z_]+_p(\d+)\b`).FindAllStringSubmatch(plan, -1) {
				used[m[1]] = true
			}
			if len(used) > 1 || strings.Contains(plan, "Subplans Removed") {
				t.Errorf("several partitions: %s\n%s", s.Text, plan)
			}
		}
	})
}

// wholeTable matches what a plan without statistics must not contain. The notes are so few that
// PostgreSQL may scan them.
var wholeTable = regexp.MustCompile(`Seq Scan on tc_(colors|search_(lists|segments|docs|grams))`)

// indexed returns a database with an index, and the statements of searches and of the work on the
// index, except those over all tenants.
func indexed(t *testing.T, open dbtest.Opener) (*bun.DB, map[string]dbtest.Statement) {
	t.Helper()
	is, all := is.New(t), map[string]dbtest.Statement{}
	db, sent := dbtest.Counted(t, open)
	if _, c := bunx.For(t.Context(), db, ""); c.Postgres() {
		dbtest.WithoutStatistics(
			t, db, "tc_colors", "tc_search_lists", "tc_search_segments", "tc_search_docs", "tc_search_grams",
		)
	}
	note := func(do func()) {
		sent.Take()
		do()
		for _, s := range sent.Statements() {
			if strings.Contains(s.Text, "tenant_id = $1") {
				all[s.Text] = s
			}
		}
	}
	for i := range 12 { // one segment is built, and eight are merged
		put(t, db, "acme", numbered(fmt.Sprint("row", i), 520)...)
		note(func() { run(t, db) })
	}
	for _, q := range []string{"row1-00123", "row1-0012x", "row3-0", "0012 row3"} {
		note(func() {
			_, err := colorstore.New(db).Page(t.Context(), "acme", paging.Query{Q: q, Limit: 20})
			is.NoErr(err)
		})
	}
	is.True(len(all) > 20)
	return db, all
}

// checkPlan reports an error if a plan reads whole tables or tenants.
func checkPlan(t *testing.T, statement, plan string, whole *regexp.Regexp) {
	t.Helper()
	for line := range strings.Lines(plan) {
		line = strings.TrimSpace(line)
		// of SQLite
		scan := strings.HasPrefix(line, "SCAN ") && !strings.Contains(line, "VIRTUAL TABLE") && line != "SCAN noted"
		byKey := strings.Contains(line, "(tenant_id=?") || strings.Contains(line, "(tenant_id = 'acme'")
		if scan || whole.MatchString(line) || !byKey && (strings.HasPrefix(line, "SEARCH ") ||
			strings.HasPrefix(line, "Index Cond")) {
			t.Errorf("%s\n%s\n%s", line, statement, plan)
		}
	}
}

// explain returns the plan of a statement.
func explain(t *testing.T, db *bun.DB, s dbtest.Statement) string {
	t.Helper()
	ctx, c := bunx.For(t.Context(), db, "acme")
	return strings.Join(dbtest.Explain(ctx, t, c, s.Text, s.Args...), "\n")
}
