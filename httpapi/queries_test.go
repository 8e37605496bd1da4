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
	r := &recorder{migrate: tenantcontent.Migrate}
	s := stocked(t, r.open)
	for _, user := range []string{"admin", "nora"} {
		s.token(t, user)
	}
	for _, route := range httpapi.Routes() {
		s.must(t, "admin", "GET", "/api/ai-instructions?limit=0", "") // whether AI is on was asked a moment ago too
		r.take()
		a := s.call(t, who(route), route)
		if a.status >= 400 {
			t.Fatal(route.Name, a.status, a.body)
		}
		var texts []string
		for _, one := range r.take() {
			if q := one.summary(); q != "SELECT tc_sessions" && !(route.SCIM && q == "SELECT tc_tokens") {
				texts = append(texts, "  "+q+"\n")
			}
		}
		all = append(all, fmt.Sprintf("%s: %d\n%s", route.Name, len(texts), strings.Join(texts, "")))
	}
	return all
}

// recorder records the statements that a database is sent, with their arguments.
type recorder struct {
	migrate func(ctx context.Context, db *bun.DB) error
	plain   *sql.DB // whose statements are not recorded

	mu  sync.Mutex
	all []statement
}

type statement struct {
	query string
	args  []any
}

var table = regexp.MustCompile(`\btc_[a-z_]+`)

// summary returns a statement's verb and first table.
func (s statement) summary() string {
	return strings.TrimSpace(s.verb() + " " + table.FindString(s.query))
}

func (s statement) verb() string {
	verb, _, _ := strings.Cut(strings.TrimSpace(s.query), " ")
	return strings.ToUpper(verb)
}

func (r *recorder) add(query string, args []driver.NamedValue) {
	one := statement{query: query}
	for _, a := range args {
		one.args = append(one.args, a.Value)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, one)
}

// take returns what was recorded since the last take.
func (r *recorder) take() []statement {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.all
	r.all = nil
	return all
}

// open is a dbtest.Opener of a database whose statements are recorded.
func (r *recorder) open(t testing.TB) *bun.DB {
	t.Helper()
	is := is.New(t)
	u, err := url.Parse(dbtest.PostgresURL(t))
	is.NoErr(err)
	q := u.Query()
	q.Del("row_level_security")
	u.RawQuery = q.Encode()
	c, err := pgsafe.NewConnector(u.String(), pgsafe.Config{})
	is.NoErr(err)
	r.plain = sql.OpenDB(c)
	db := bun.NewDB(sql.OpenDB(recording{c, r}), pgdialect.New())
	t.Cleanup(func() { _, _ = db.Close(), r.plain.Close() })
	is.NoErr(r.migrate(t.Context(), db))
	app, err := tenantcontent.Open(tenantcontent.Config{DB: db, SecretKey: tenantcontent.NewSecretKey()})
	is.NoErr(err)
	for _, id := range []string{"acme", "evil"} {
		_, err := app.Tenants.Unchecked().Add(t.Context(), tenants.Tenant{ID: id})
		is.NoErr(err)
	}
	return db
}

// recording is a connector whose connections record what they are sent.
type recording struct {
	driver.Connector
	to *recorder
}

func (k recording) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := k.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return recordingConn{c.(conn), k.to}, nil
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

type recordingConn struct {
	conn
	to *recorder
}

func (c recordingConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	c.to.add(query, args)
	return c.conn.QueryContext(ctx, query, args)
}

func (c recordingConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	c.to.add(query, args)
	return c.conn.ExecContext(ctx, query, args)
}

func (c recordingConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	c.to.add("BEGIN", nil)
	return c.conn.BeginTx(ctx, o)
}
