package httpapi_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/matryer/is"
	"github.com/uptrace/bun/dialect"

	"github.com/tenantcontent/tenantcontent/httpapi"
	"github.com/tenantcontent/tenantcontent/internal/bunx"
	"github.com/tenantcontent/tenantcontent/internal/dbtest"
)

// tables are those of the service, with their columns, all or those of texts alone.
func (w *world) tables(t testing.TB, texts bool) map[string][]string {
	t.Helper()
	is := is.New(t)
	query := `SELECT m.name, c.name, lower(c.type) FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type = 'table' AND m.name LIKE 'tc_%' ORDER BY 1, 2`
	if w.db.Dialect().Name() == dialect.PG {
		query = `SELECT table_name, column_name, data_type FROM information_schema.columns WHERE table_schema = current_schema() AND table_name LIKE 'tc_%' ORDER BY 1, 2`
	}
	rows, err := w.db.QueryContext(t.Context(), query)
	is.NoErr(err)
	defer func() { _ = rows.Close() }()
	all := map[string][]string{}
	for rows.Next() {
		var table, column, kind string
		is.NoErr(rows.Scan(&table, &column, &kind))
		if kind == "text" || !texts {
			all[table] = append(all[table], column)
		}
	}
	is.NoErr(rows.Err())
	return all
}

// dump is all rows of a tenant as text, except for its sessions and networks of logins, which come and go with these.
func (w *world) dump(t testing.TB, tenant string) string {
	t.Helper()
	is := is.New(t)
	var lines []string
	for table, columns := range w.tables(t, false) {
		if !slices.Contains(columns, "tenant_id") || table == "tc_sessions" || table == "tc_login_networks" {
			continue
		}
		ctx, c := bunx.For(t.Context(), w.db, tenant)
		rows, err := c.Rows(ctx, "SELECT "+strings.Join(columns, ", ")+" FROM "+table+" WHERE tenant_id = $1", tenant)
		is.NoErr(err)
		for rows.Next() {
			row := make([]any, len(columns))
			for i := range row {
				row[i] = new(any)
			}
			is.NoErr(rows.Scan(row...))
			line := table
			for i, v := range row {
				line += fmt.Sprintf(" %s=%s", columns[i], text(*v.(*any)))
			}
			lines = append(lines, line)
		}
		is.NoErr(rows.Err())
		is.NoErr(rows.Close())
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func text(v any) string {
	if b, ok := v.([]byte); ok {
		return string(b)
	}
	return fmt.Sprint(v)
}

// unmarked are the columns of texts that cannot hold just any: keys, times, and what logins need. settings, data,
// user_fields and mentions hold JSON.
var unmarked = regexp.MustCompile(`^(tenant_id|id|.*[a-z]_id|username|folded|label|search|key|slug|type|restriction|domain|content_type|` +
	`network|recent_failures|password_hash|secret_hash|key_check|config|secrets|phase|settings|data|user_fields|kind|source_tenant|path|mentions|last_viewed_feed|.*_at)$`)

// mark writes a tenant's mark into every column of its rows that takes one, and makes things whose keys have it.
func (s stock) mark(t testing.TB, tenant, superuser string) {
	t.Helper()
	is := is.New(t)
	mark := strings.ToUpper(tenant) + "MARK"
	s.must(t, superuser, "PUT", "/api/colors/"+mark, `{"color": "#ff0000"}`)
	s.must(t, superuser, "POST", "/api/users", `{"username": "`+mark+`", "data": {"m": "`+mark+`"}, "userFields": {"m": "`+mark+`"}}`)
	team := read[struct{ ID string }](t, s.must(t, superuser, "POST", "/api/teams", `{"name": "`+mark+`"}`)).ID
	s.must(t, superuser, "PUT", "/api/teams/"+team+"/members/"+mark, `{"role": "member"}`)
	s.must(t, superuser, "POST", "/api/teams/"+team+"/comments", `{"message": "@`+mark+`"}`)
	s.must(t, superuser, "PUT", "/api/tenant", `{"settings": {"licenses": ["`+mark+`"]}}`)
	s.must(t, superuser, "POST", "/api/tokens", `{}`)
	s.upload(t, superuser, `[{"key": "`+mark+`", "color": "red"}]`)
	s.must(t, superuser, "POST", "/api/colors-export", `{}`)
	s.markContent(t, superuser, mark)
	s.must(t, superuser, "POST", "/api/bundles", `{"name": "`+mark+`"}`)
	s.must(t, superuser, "POST", "/api/bundles/"+strings.ToLower(mark)+"/entries", `{"type": "global", "data": {"m": "`+mark+`"}}`)
	for table, columns := range s.tables(t, true) {
		for _, column := range columns {
			if !slices.Contains(columns, "tenant_id") || unmarked.MatchString(column) && column != "source_id" {
				continue
			}
			is.NoErr(bunx.Write(t.Context(), s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
				_, err := c.Exec(ctx, "UPDATE "+table+" SET "+column+" = $1 WHERE tenant_id = $2", mark+" "+column, tenant)
				return err
			}))
		}
	}
}

// TestTenantsAreApart: a superuser of one tenant calls every route with ids of the other one. It gets 404, or, where keys
// are free, its own row; sees nothing of the other tenant; and changes nothing of it.
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
			if r.Name == "logout" || r.Public {
				continue
			}
			a := s.call(t, "eve", r)
			own := r.Name == "putColor" || r.Name == "deleteColor" || r.Name == "getBundleDriver" || r.Name == "getInputEditor" ||
				r.Name == "getDomainDriver" || r.Name == "scanDriver" || !strings.Contains(r.Pattern, ":")
			switch {
			case r.Name == "importColors" || r.Name == "restoreFile":
				is.Equal(a.status, 400) // the upload does not exist
			case r.Name == "deployEntries":
				is.Equal(a.message(t), `The tenant "acme" does not let evil deploy into it: see its deployFrom.`)
				continue // it names the tenant that it was given
			case own != (a.status < 400) || !own && a.status != 404:
				t.Errorf("%s: %d %s", r.Name, a.status, a.body)
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
			if r.Method == "GET" {
				if a := s.call(t, "admin", r); strings.Contains(a.body, "EVILMARK") || strings.Contains(a.body, "evil") {
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
