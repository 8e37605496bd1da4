package pgsafe

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"
	"github.com/uptrace/bun/driver/pgdriver"

	"github.com/tenantcontent/tenantcontent/internal/testkit/needs"
	"github.com/tenantcontent/tenantcontent/internal/testkit/pgtest"
)

// cluster is the server of all tests but those that stop theirs; nil if the environment names
// another one.
var cluster *pgtest.Cluster

var startServer = sync.OnceValues(func() (string, error) {
	if u := os.Getenv("TENANTCONTENT_TEST_POSTGRES"); u != "" {
		return u, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := pgtest.Start(ctx)
	if err != nil {
		return "", err
	}
	cluster = c
	return c.URL, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if cluster != nil {
		cluster.Stop()
	}
	os.Exit(code)
}

// server returns the URL of the server for tests.
func server(t testing.TB) string {
	u, err := startServer()
	needs.Start(t, err, pgtest.ErrNoServer)
	return u
}

// ownServer returns a server for one test, even if the environment names another one.
func ownServer(t testing.TB) *pgtest.Cluster {
	c, err := pgtest.Start(t.Context())
	needs.Start(t, err, pgtest.ErrNoServer)
	t.Cleanup(c.Stop)
	return c
}

// inSchema makes an empty schema for one test and returns a URL whose connections use it.
func inSchema(t testing.TB) string {
	is, u := is.New(t), server(t)
	db, err := Open(u, Config{})
	is.NoErr(err)
	name := fmt.Sprintf("pgsafe_%d", time.Now().UnixNano())
	_, err = db.Exec("create schema " + name)
	is.NoErr(err)
	t.Cleanup(func() {
		_, err := db.Exec("drop schema " + name + " cascade")
		is.NoErr(err)
		is.NoErr(db.Close())
	})
	return with(u, "search_path="+name)
}

// with adds parameters to a URL.
func with(raw, query string) string {
	u, err := url.Parse(raw)
	if err != nil {
		panic(err)
	}
	u.RawQuery = strings.TrimPrefix(u.RawQuery+"&"+query, "&")
	return u.String()
}

// openSafe opens a pool of at most one connection, so that a test knows which one it uses.
func openSafe(t testing.TB, url string, cfg Config) *sql.DB {
	db, err := Open(with(url, "pool_max_conns=1"), cfg)
	is.New(t).NoErr(err)
	t.Cleanup(func() { db.Close() })
	return db
}

// openBare opens the same with only pgdriver.
func openBare(t testing.TB, url string) *sql.DB {
	target, err := parseURL(url)
	is.New(t).NoErr(err)
	params := map[string]any{}
	for _, s := range target.settings {
		params[s.name] = s.value
	}
	db := sql.OpenDB(pgdriver.NewConnector(
		pgdriver.WithNetwork(target.hosts[0].network),
		pgdriver.WithAddr(target.hosts[0].addr), pgdriver.WithTLSConfig(target.hosts[0].tls),
		pgdriver.WithUser(target.user), pgdriver.WithPassword(target.password),
		pgdriver.WithDatabase(target.database), pgdriver.WithConnParams(params),
	))
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { db.Close() })
	return db
}

func exec(t testing.TB, db *sql.DB, query string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), query, args...); err != nil {
		t.Fatal(err)
	}
}

// querier is a *sql.DB, *sql.Conn or *sql.Tx.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// one reads a single value.
func one[T any](t testing.TB, q querier, query string, args ...any) (v T) {
	t.Helper()
	if err := q.QueryRowContext(t.Context(), query, args...).Scan(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// soon returns a context that ends while a statement runs, and not before it has begun, even on a
// slow machine.
func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 250*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}
