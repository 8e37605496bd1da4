package httpapi_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/matryer/is"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/httpapi"
	"github.com/tenantcontent/tenantcontent/internal/dbtest"
	"github.com/tenantcontent/tenantcontent/internal/pgsafe"
	"github.com/tenantcontent/tenantcontent/tenants"
)

const queriesFile = "testdata/queries.txt"

// TestQueries: what each route asks of PostgreSQL is what testdata/queries.txt says, so that a query in a loop, or one more
// on a hot path, is seen in review. Who calls is left out: that is one more statement, or none when it was asked a moment
// ago. Other look-ups are kept for a second, too, which a busy machine may take for one request: a route that differs is asked again in
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
	var n notes
	s := stocked(t, n.open)
	for _, user := range []string{"admin", "nora"} {
		s.token(t, user)
	}
	for _, r := range httpapi.Routes() {
		s.must(t, "admin", "GET", "/api/ai-instructions?limit=0", "") // whether AI is on was asked a moment ago too
		n.take()
		a := s.call(t, who(r), r)
		if a.status >= 400 {
			t.Fatal(r.Name, a.status, a.body)
		}
		statements := slices.DeleteFunc(n.take(), func(q string) bool { return q == "SELECT tc_sessions" || r.SCIM && q == "SELECT tc_tokens" })
		route := fmt.Sprintf("%s: %d\n", r.Name, len(statements))
		for _, q := range statements {
			route += "  " + q + "\n"
		}
		all = append(all, route)
	}
	return all
}

// notes are the statements that a database was sent.
type notes struct {
	mu  sync.Mutex
	all []string
}

var table = regexp.MustCompile(`\btc_[a-z_]+`)

// add notes a statement's verb and first table.
func (n *notes) add(query string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	verb, _, _ := strings.Cut(strings.TrimSpace(query), " ")
	n.all = append(n.all, strings.TrimSpace(strings.ToUpper(verb)+" "+table.FindString(query)))
}

func (n *notes) take() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := n.all
	n.all = nil
	return all
}

// open is a dbtest.Opener of a database that notes what it is sent.
func (n *notes) open(t testing.TB) *bun.DB {
	t.Helper()
	is := is.New(t)
	u, err := url.Parse(dbtest.PostgresURL(t))
	is.NoErr(err)
	q := u.Query()
	q.Del("row_level_security")
	u.RawQuery = q.Encode()
	c, err := pgsafe.NewConnector(u.String(), pgsafe.Config{})
	is.NoErr(err)
	db := bun.NewDB(sql.OpenDB(noting{c, n}), pgdialect.New())
	t.Cleanup(func() { _ = db.Close() })
	is.NoErr(tenantcontent.Migrate(t.Context(), db))
	app, err := tenantcontent.Open(tenantcontent.Config{DB: db, SecretKey: tenantcontent.NewSecretKey()})
	is.NoErr(err)
	for _, id := range []string{"acme", "evil"} {
		_, err := app.Tenants.Unchecked().Add(t.Context(), tenants.Tenant{ID: id})
		is.NoErr(err)
	}
	return db
}

// noting is a connector whose connections note what they are sent.
type noting struct {
	driver.Connector
	notes *notes
}

func (k noting) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := k.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return notingConn{c.(conn), k.notes}, nil
}

// conn is what pgsafe's connections can do.
type conn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.QueryerContext
	driver.ExecerContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

type notingConn struct {
	conn
	notes *notes
}

func (c notingConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	c.notes.add(query)
	return c.conn.QueryContext(ctx, query, args)
}

func (c notingConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	c.notes.add(query)
	return c.conn.ExecContext(ctx, query, args)
}

func (c notingConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	c.notes.add("BEGIN")
	return c.conn.BeginTx(ctx, o)
}
