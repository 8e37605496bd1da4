package draftstore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"
	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/apps"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/paging"
)

// TestPlans: a page reads only the apps that it shows, counts or may show, in every order and from
// every cursor.
func TestPlans(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		db := open(t)
		fill(t, db)
		ctx, c := bunx.For(t.Context(), db, "acme")
		s := newStore(db)
		m := s.newMerge(c, []string{"*", "jo", "team-1", "team-2"})
		for _, sort := range s.lists[false].Sorts {
			at := &paging.Position{
				Value: sort.Value(Row[apps.App]{
					label:  "name",
					Entity: apps.App{CreatedAt: time.Now(), UpdatedAt: time.Now()},
				}),
				Key: "x",
			}
			for _, q := range []paging.Query{{}, {After: at}, {Before: at}} {
				for _, desc := range []string{"", "-"} {
					q.Sort = desc + sort.Field
					r, _, err := s.lists[false].Range(q)
					is.New(t).NoErr(err)
					args := append([]any{"acme", 21, 0}, m.args...)
					if r.After != nil {
						args = append(args, at.Value, at.Key)
					}
					plan := dbtest.Explain(ctx, t, c, m.page(s.table.Qualified, r), args...)
					if wrong := misses(plan, c.Postgres(), sort.Column, r.After != nil); wrong != "" {
						t.Errorf("%s: %s\n%s", q.Sort, wrong, strings.Join(plan, "\n"))
					}
				}
			}
		}
	})
}

// newStore returns a Store of apps with some columns.
func newStore(db *bun.DB) *Store[apps.App] {
	column := func(name string, value any) bunx.Column[apps.App] {
		return bunx.Column[apps.App]{Name: name, Value: func(*apps.App) any { return value }}
	}
	return New(db, Noun[apps.App]{
		Kind: apps.Kind, Name: "App", Article: "An app",
		Table: "tc_apps", Shares: "tc_app_shares", Sealed: "env_sealed", Fields: apps.Fields,
		Columns: []bunx.Column[apps.App]{
			column("type", "report"), column("defn", "{}"), column("settings", "{}"),
			column("is_managed", false), column("datasets", "[]"), column("tags", "[]"),
		},
		Size: func(apps.App) int { return 0 }, Restorable: true,
	})
}

// fill adds apps of many owners, each with a share.
func fill(t *testing.T, db *bun.DB) {
	t.Helper()
	is, s := is.New(t), newStore(db)
	var all []apps.App
	for n := range 2000 {
		id := fmt.Sprintf("00000000-0000-7000-8000-%012d", n)
		at := time.Date(2026, 11, 16, 9, 0, n, 0, time.UTC)
		all = append(all, apps.App{ID: id, LibraryID: id,
			Name: fmt.Sprint("Name ", n), OwnerID: fmt.Sprint("team-", n%100),
			CreatedAt: at, UpdatedAt: at})
	}
	is.NoErr(s.PutAll(t.Context(), "acme", all, nil))
	is.NoErr(bunx.Write(t.Context(), db, "acme", func(ctx context.Context, c bunx.Conn) error {
		_, err := c.Exec(ctx,
			`INSERT INTO tc_app_shares (tenant_id, entity_id, principal_id, access_level, roles, created_at, updated_at)
			SELECT tenant_id, id, 'team-' || substr(id, 35), 1, '[]', created_at, updated_at FROM tc_apps WHERE tenant_id = $1`,
			"acme")
		return err
	}))
	analyze := "ANALYZE "
	if _, c := bunx.For(t.Context(), db, "acme"); c.Postgres() {
		analyze = "VACUUM ANALYZE " // an index-only scan needs rows that are known to be visible
	}
	for _, table := range []string{"tc_apps", "tc_app_shares"} {
		_, err := db.ExecContext(t.Context(), analyze+table)
		is.NoErr(err)
	}
}

// misses describes what is wrong with a plan.
func misses(plan []string, postgres bool, column string, positioned bool) string {
	index := map[string]string{
		"label":      "tc_apps_owner_label",
		"created_at": "tc_apps_owner_created",
		"updated_at": "tc_apps_owner_updated",
	}[column]
	var owned, app, share string
	for _, line := range plan {
		if strings.Contains(line, "Seq Scan") || strings.Contains(line, "SCAN tc_") ||
			strings.Contains(line, "SCAN a") || strings.Contains(line, "SCAN s ") {
			return "reads a whole table"
		}
	}
	all := strings.Join(plan, "\n")
	if postgres {
		owned, app, share = " using "+index+
			" on", "Index Scan using tc_apps_pkey", "Index Only Scan using tc_app_shares_principal"
		if positioned && !slices.ContainsFunc(plan, func(line string) bool {
			return strings.HasPrefix(line, "Index Cond:") && strings.Contains(line, "owner_id = ") &&
				strings.Contains(line, "ROW("+column+", id)")
		}) {
			return "reads what is before the page"
		}
	} else {
		owned = "SEARCH tc_apps USING INDEX " + index + " (tenant_id=? AND owner_id=?"
		if positioned {
			owned += " AND (" + column + ",id)"
		}
		app, share = "SEARCH a USING INDEX sqlite_autoindex_tc_apps_1 (tenant_id=? AND id=?)",
			"tc_app_shares_principal (tenant_id=? AND principal_id=?"
	}
	for _, must := range []string{owned, app, share} {
		if !strings.Contains(all, must) {
			return "has no " + must
		}
	}
	return ""
}
