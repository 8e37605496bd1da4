package httpapi_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/matryer/is"
	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/httpapi"
	"github.com/tenantcontent/tenantcontent/internal/store/engines"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/tenants"
)

const queriesFile = "testdata/queries.txt"

// TestQueries: what each route asks of PostgreSQL is what testdata/queries.txt says, so that a
// query in a loop, or one more on a hot path, is seen in review. Who calls is left out: that is one
// more statement, or none when it was asked a moment ago. Other look-ups are kept for a second,
// too, which a busy machine may take for one request: a route that differs is asked again in
// another world, and must do as the file says once.
func TestQueries(t *testing.T) {
	is := is.New(t)
	if *update {
		is.NoErr(os.WriteFile(queriesFile, []byte(strings.Join(queriesOf(t), "")), 0o644))
		return
	}
	file, err := os.ReadFile(queriesFile)
	is.NoErr(err)
	differs := func(route string) bool { return !strings.Contains("\n"+string(file), "\n"+route) }
	got := queriesOf(t)
	for tries := 1; tries < 3 && slices.ContainsFunc(got, differs); tries++ {
		for i, route := range queriesOf(t) {
			if differs(got[i]) {
				t.Logf("asked again: %s", got[i])
				got[i] = route
			}
		}
	}
	compare(t, queriesFile, string(file), strings.Join(got, ""))
}

// queriesOf returns the statements of each route, as queries.txt has them.
func queriesOf(t *testing.T) (all []string) {
	t.Helper()
	var sent *dbtest.Counter
	s := stocked(t, counted(&sent, tenantcontent.Migrate))
	for _, user := range []string{"admin", "nora"} {
		s.token(t, user)
	}
	for _, route := range httpapi.Routes() {
		s.must(t, "admin", "GET", "/api/ai-instructions?limit=0", "") // whether AI is on was asked a moment ago too
		sent.Take()
		a := s.call(t, who(route), route)
		if a.status >= 400 {
			t.Fatal(route.Name, a.status, a.body)
		}
		var texts []string
		for _, one := range sent.Take() {
			q, ofSCIM := summary(one), strings.HasPrefix(route.Pattern, "/api/scim/")
			if q != "SELECT tc_sessions" && !(ofSCIM && q == "SELECT tc_tokens") {
				texts = append(texts, "  "+q+"\n")
			}
		}
		all = append(all, fmt.Sprintf("%s: %d\n%s", route.Name, len(texts), strings.Join(texts, "")))
	}
	return all
}

var table = regexp.MustCompile(`\btc_[a-z_]+`)

// summary returns a statement's verb and first table.
func summary(statement string) string {
	return strings.TrimSpace(verb(statement) + " " + table.FindString(statement))
}

func verb(statement string) string {
	verb, _, _ := strings.Cut(strings.TrimSpace(statement), " ")
	return strings.ToUpper(verb)
}

// counted returns a dbtest.Opener of a PostgreSQL without row-level security, and sets the Counter
// of its statements.
func counted(sent **dbtest.Counter, migrate func(ctx context.Context, db *bun.DB) error) dbtest.Opener {
	return func(t testing.TB) *bun.DB {
		t.Helper()
		is := is.New(t)
		u, err := url.Parse(dbtest.PostgresURL(t))
		is.NoErr(err)
		q := u.Query()
		q.Del("row_level_security")
		u.RawQuery = q.Encode()
		var db *bun.DB
		db, *sent = dbtest.CountedTx(t, func(t testing.TB) *bun.DB {
			db, err := engines.Open(u.String())
			is.NoErr(err)
			t.Cleanup(func() { _ = db.Close() })
			return db
		})
		is.NoErr(migrate(t.Context(), db))
		app, err := tenantcontent.Open(tenantcontent.Config{DB: db, SecretKey: tenantcontent.NewSecretKey()})
		is.NoErr(err)
		for _, id := range []string{"acme", "evil"} {
			_, err := app.Tenants.Unchecked().Add(t.Context(), tenants.Tenant{ID: id})
			is.NoErr(err)
		}
		return db
	}
}
