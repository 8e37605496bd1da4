package tenantcontent_test

import (
	"context"
	"database/sql"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"
	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/internal/jobs/sweep"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// TestSweepsAreFoundByIndex checks that every ready sweep declares what is due, and that it is
// found by an index that begins with the time, whatever the number of tenants. Ready jobs alone are
// read all: an index of theirs would cost every job.
func TestSweepsAreFoundByIndex(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, opener dbtest.Opener) {
		is, db := is.New(t), opener(t)
		app := open(t, db, time.Now)
		var tables []string
		for _, s := range app.Registry().Sweeps() {
			is.True(len(s.Due) > 0)
			for _, due := range s.Due {
				if due.Table == "tc_jobs" && due.Column == "due_at" {
					continue
				}
				tables = append(tables, due.Table)
				bound := `'2026-11-16T09:00:00Z'`
				query := strings.NewReplacer("$1", bound, "$2", bound, "$3", `'acme'`).Replace(sweep.Query(due))
				plan := explain(t, db, query)
				indexed := regexp.MustCompile(`(?i)(Index Cond: .*|USING .*INDEX .*)\b` + due.Column + `\b`)
				if !indexed.MatchString(plan) || strings.Contains(plan, "Sort") ||
					strings.Contains(plan, "TEMP B-TREE") {
					t.Errorf("%s:\n%s", query, plan)
				}
			}
		}
		policies, err := os.ReadFile("internal/store/migrations/rls.sql")
		is.NoErr(err)
		for _, table := range tables {
			if table != "tc_tenants" && !strings.Contains(string(policies), "'"+table+"'") {
				t.Errorf("internal/store/migrations/rls.sql has no policy that lets a sweep see %s", table)
			}
		}
		_, list, _ := strings.Cut(string(policies), "A sweep looks")
		for _, table := range regexp.MustCompile(`'(tc_[a-z_]+)'`).FindAllStringSubmatch(list, -1) {
			is.True(slices.Contains(tables, table[1]))
		}
	})
}

// explain returns the plan of a statement. PostgreSQL would rather read tables that are empty from
// end to end.
func explain(t *testing.T, db *bun.DB, query string) string {
	t.Helper()
	is := is.New(t)
	var plan []string
	is.NoErr(bunx.InTx(t.Context(), db, func(ctx context.Context) error {
		ctx, c := bunx.For(ctx, db, bunx.AllTenants)
		explain := "EXPLAIN QUERY PLAN "
		if c.Postgres() {
			explain = "EXPLAIN "
			for _, off := range []string{"enable_seqscan", "enable_sort", "enable_bitmapscan"} {
				if _, err := c.Exec(ctx, "SET LOCAL "+off+" = off"); err != nil {
					return err
				}
			}
		}
		rows, err := c.Rows(ctx, explain+query)
		plan, err = bunx.Scan(rows, err, func(rows *sql.Rows) (line string, err error) {
			if c.Postgres() {
				return line, rows.Scan(&line)
			}
			return line, rows.Scan(new(any), new(any), new(any), &line)
		})
		return err
	}))
	return strings.Join(plan, "\n")
}
