package httpapi_test

import (
	"context"
	"net/url"
	"strings"
	"testing"

	"github.com/matryer/is"
	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/httpapi"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// sorted are the lists that are sorted when they are read, and why.
var sorted = map[string]string{
	"listMembers":     "by when they were added: at most the members of a team",
	"listMemberships": "by when they were added: at most the teams of a user",
	"listDownloads":   "those of several names at once: at most what a user may have",
	"listApps":        "what a user sees is merged from indexes: see internal/store/draftstore",
	"listAssistants":  "what a user sees is merged from indexes: see internal/store/draftstore",
}

// TestEverySortHasAnIndex: of each list and each order that it offers, both ways, on both engines.
// Which orders these are, a refusal says.
func TestEverySortHasAnIndex(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is := is.New(t)
		db, count := dbtest.Counted(t, open)
		s := stocked(t, func(testing.TB) *bun.DB { return db })
		seen := map[string]bool{}
		for _, r := range httpapi.Routes() {
			if r.Method != "GET" || strings.HasPrefix(r.Pattern, "/api/scim/") {
				continue
			}
			target, _, _ := strings.Cut(s.target(r), "?")
			_, offered, refused := strings.Cut(
				s.do(t, who(r), "GET", target+"?sort=zzz", "").body, "sort must be one of ",
			)
			if !refused {
				continue
			}
			seen[r.Name] = true
			offered, _, _ = strings.Cut(offered, ", with a -")
			for _, sort := range strings.Split(offered, ", ") {
				for _, dir := range []string{"", "-"} {
					count.Take()
					s.must(t, who(r), "GET", target+"?limit=7&sort="+url.QueryEscape(dir+sort), "")
					pages := 0
					for _, statement := range count.Statements() {
						if !strings.Contains(statement.Text, " ORDER BY ") ||
							!strings.Contains(statement.Text, " LIMIT ") ||
							!strings.Contains(statement.Text, "SELECT ") {
							continue
						}
						pages++
						plan := explainWithIndexes(t, db, statement)
						if bySort := strings.Contains(plan, "Sort") ||
							strings.Contains(plan, "TEMP B-TREE"); bySort && sorted[r.Name] == "" {
							t.Errorf("%s sorted by %s%s has no index:\n%s\n%s", r.Name, dir, sort, statement.Text, plan)
						}
					}
					is.True(pages > 0)
				}
			}
		}
		is.True(len(seen) > 30)
		for name := range sorted {
			if !seen[name] {
				t.Errorf("sorted names %s, which is no list with orders", name)
			}
		}
	})
}

// explainWithIndexes returns the plan of a statement that uses an index wherever there is one,
// however few the rows are.
func explainWithIndexes(t *testing.T, db *bun.DB, statement dbtest.Statement) string {
	t.Helper()
	is := is.New(t)
	var plan []string
	is.NoErr(bunx.Write(t.Context(), db, "acme", func(ctx context.Context, c bunx.Conn) error {
		if c.Postgres() {
			for _, way := range []string{
				"enable_sort", "enable_seqscan", "enable_bitmapscan", "enable_hashjoin", "enable_mergejoin",
			} {
				if err := c.Row(ctx, "SELECT set_config($1, 'off', true)", way).Scan(new(string)); err != nil {
					return err
				}
			}
		}
		plan = dbtest.Explain(ctx, t, c, statement.Text, statement.Args...)
		return nil
	}))
	return strings.Join(plan, "\n")
}
