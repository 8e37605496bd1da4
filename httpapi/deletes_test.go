package httpapi_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/httpapi"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// readsTenant matches a plan of SQLite that reads all rows of a table, or all those of a tenant.
var readsTenant = regexp.MustCompile(`(?m)^SCAN (\w+)(?: USING .*)?$|^SEARCH (\w+) USING .*\(tenant_id=\?\)$`)

// found are names of what statements have found so far, and no tables.
var found = map[string]bool{
	"CONSTANT": true,
	"named":    true,
	"up":       true,
	"thread":   true,
	"t":        true,
	"few":      true,
	"gone":     true,
}

// whole are the tables that are read as a whole, and why. tc_users_superusers has the superusers
// alone, and the delete of a domain looks for all that its people have.
var whole = map[string]string{
	"tc_apps":       "their references to what is deleted are in JSON: those of all apps that have some are read",
	"tc_assistants": "as those of apps",
	// an index would cost each write
	"tc_new_changes": "changes are in it until they are read or swept, at most a minute",
}

// TestDeletesSearchIndexes: whatever a DELETE asks for and changes is found by more of an index
// than the tenant, so that it costs the same in a tenant of any size. SQLite's plans do not depend
// on sizes, and both engines have the same indexes.
func TestDeletesSearchIndexes(t *testing.T) {
	db, count := dbtest.Counted(t, func(t testing.TB) *bun.DB { return dbtest.SQLite(t) })
	s := stocked(t, func(testing.TB) *bun.DB { return db })
	deletes := 0
	for _, r := range httpapi.Routes() {
		count.Take()
		if a := s.call(t, who(r), r); a.status >= 400 {
			t.Fatal(r.Name, a.status, a.body)
		}
		if r.Method != "DELETE" {
			continue
		}
		deletes++
		for _, statement := range count.Statements() {
			if !strings.Contains(statement.Text, "tc_") {
				continue
			}
			ctx, c := bunx.For(t.Context(), db, "acme")
			rows, err := c.Rows(ctx, "EXPLAIN QUERY PLAN "+statement.Text, statement.Args...)
			if err != nil {
				t.Fatal(err)
			}
			var plan strings.Builder
			for rows.Next() {
				var detail string
				if err := rows.Scan(new(int), new(int), new(int), &detail); err != nil {
					t.Fatal(err)
				}
				plan.WriteString(detail + "\n")
			}
			_ = rows.Close()
			for _, m := range readsTenant.FindAllStringSubmatch(plan.String(), -1) {
				if name := m[1] + m[2]; !found[name] && name != "tc_tenants" && whole[name] == "" &&
					!strings.Contains(m[0], "tc_users_superusers") && r.Name != "deleteDomain" {
					t.Errorf("%s: %s\n%s", r.Name, m[0], statement.Text)
				}
			}
		}
	}
	if deletes < 20 {
		t.Error("only deletes: ", deletes)
	}
}
