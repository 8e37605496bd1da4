package httpapi_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/matryer/is"
	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/httpapi"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// TestPartitions: no statement of a request is planned over more than one partition of a table,
// where each has four.
func TestPartitions(t *testing.T) {
	is := is.New(t)
	var sent *dbtest.Counter
	s := stocked(t, counted(&sent, func(ctx context.Context, db *bun.DB) error {
		return tenantcontent.MigratePartitioned(ctx, db, 4)
	}))
	for _, user := range []string{"admin", "nora"} {
		s.token(t, user)
	}
	plans, all := 0, map[string]bool{}
	for _, route := range httpapi.Routes() {
		sent.Take()
		if a := s.call(t, who(route), route); a.status >= 400 {
			t.Fatal(route.Name, a.status, a.body)
		}
		for _, one := range sent.Statements() {
			if !slices.Contains([]string{"SELECT", "INSERT", "UPDATE", "DELETE", "WITH"}, verb(one.Text)) {
				continue
			}
			plan, err := explain(t.Context(), s.db, one)
			if err != nil {
				t.Fatalf("%s: %v: %s", route.Name, err, one.Text)
			}
			used := partitions(plan)
			for _, n := range used {
				all[n] = true
			}
			if plans++; len(used) > 1 {
				t.Errorf("%s uses the partitions %v: %s\n%s", route.Name, used, one.Text, plan)
			}
		}
	}
	t.Logf("%d plans", plans)
	is.True(plans > len(httpapi.Routes()))
	is.Equal(len(all), 1) // that of acme
}

var partition = regexp.MustCompile(`\btc_[a-z_]+_p(\d+)\b`)

// partitions returns the numbers of the partitions in a plan.
func partitions(plan string) (all []string) {
	for _, m := range partition.FindAllStringSubmatch(plan, -1) {
		if !slices.Contains(all, m[1]) {
			all = append(all, m[1])
		}
	}
	if strings.Contains(plan, "Subplans Removed") { // when the statement runs: before that it opens and locks all
		all = append(all, "others")
	}
	return all
}

// explain returns the plan of a statement, which does nothing.
func explain(ctx context.Context, db *bun.DB, one dbtest.Statement) (string, error) {
	rows, err := db.DB.QueryContext(ctx, "EXPLAIN "+one.Text, one.Args...)
	if err != nil {
		return "", err
	}
	defer func() { _ = rows.Close() }()
	var plan strings.Builder
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			return "", err
		}
		_, _ = fmt.Fprintln(&plan, line)
	}
	return plan.String(), rows.Err()
}
