package pgsafe

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"
	"go.uber.org/goleak"

	"github.com/tenantcontent/tenantcontent/internal/testkit/pgtest"
)

// impatient is how long the connections of these tests wait for a stopped server.
const impatient = 50 * time.Millisecond

// openConns opens some connections to a running server.
func openConns(t *testing.T, url string, n int) (*sql.DB, *connector, []*sql.Conn) {
	is := is.New(t)
	k := newConnector(targetOf(t, url), Config{})
	db := sql.OpenDB(k)
	t.Cleanup(func() { db.Close() })
	db.SetMaxOpenConns(n)
	db.SetMaxIdleConns(n)
	conns := make([]*sql.Conn, n)
	for i := range conns {
		var err error
		conns[i], err = db.Conn(t.Context())
		is.NoErr(err)
		t.Cleanup(func() { conns[i].Close() })
	}
	return db, k, conns
}

// hurry sets the timeout of new and open connections to impatient.
func hurry(t *testing.T, k *connector, conns []*sql.Conn) {
	k.target.connectTimeout = impatient
	for _, c := range conns {
		is.New(t).NoErr(c.Raw(func(c any) error {
			c.(*conn).limits.read, c.(*conn).limits.write = impatient, impatient
			return nil
		}))
	}
}

// TestFrozenServer: calls that wait for a server whose processes are stopped return an error within
// their timeout, for which Unavailable is true.
func TestFrozenServer(t *testing.T) {
	is, own := is.New(t), ownServer(t)
	patient := openSafe(t, own.URL, Config{})
	exec(t, patient, "create table t (k text)")
	insert := func(ctx context.Context, c *sql.Conn) *sql.Tx {
		tx, err := c.BeginTx(ctx, nil)
		is.NoErr(err)
		_, err = tx.ExecContext(ctx, "insert into t values ('x')")
		is.NoErr(err)
		return tx
	}
	uses := []struct {
		name    string
		prepare func(ctx context.Context, c *sql.Conn) func() error // before the server freezes
	}{
		{"query", func(ctx context.Context, c *sql.Conn) func() error {
			return func() error { var n int; return c.QueryRowContext(ctx, "select $1::int", 1).Scan(&n) }
		}},
		{"simple query", func(ctx context.Context, c *sql.Conn) func() error {
			return func() error { var n int; return c.QueryRowContext(ctx, "select 1").Scan(&n) }
		}},
		{"exec", func(ctx context.Context, c *sql.Conn) func() error {
			return func() error { _, err := c.ExecContext(ctx, "insert into t values ($1)", "x"); return err }
		}},
		{"rows", func(ctx context.Context, c *sql.Conn) func() error {
			// more than sockets buffer
			rows, err := c.QueryContext(ctx, "select repeat('x', 10000) from generate_series(1, $1)", 10000)
			is.NoErr(err)
			is.True(rows.Next())
			return func() error {
				for rows.Next() {
					continue
				}
				return errors.Join(rows.Err(), rows.Close())
			}
		}},
		{"ping", func(ctx context.Context, c *sql.Conn) func() error {
			return func() error { return c.PingContext(ctx) }
		}},
		{"begin", func(ctx context.Context, c *sql.Conn) func() error {
			return func() error { _, err := c.BeginTx(ctx, nil); return err }
		}},
		{"statement in a transaction", func(ctx context.Context, c *sql.Conn) func() error {
			tx := insert(ctx, c)
			return func() error {
				_, err := tx.ExecContext(ctx, "insert into t values ('y')")
				is.NoErr(tx.Rollback())
				return err
			}
		}},
		{"commit", func(ctx context.Context, c *sql.Conn) func() error { return insert(ctx, c).Commit }},
	}
	_, k, conns := openConns(t, own.URL, len(uses))
	var waits []func() error
	for i, u := range uses {
		waits = append(waits, u.prepare(t.Context(), conns[i]))
	}
	hurry(t, k, conns)
	own.Freeze()
	defer own.Thaw()
	for i, u := range uses {
		err := waits[i]()
		if !Unavailable(err) {
			t.Errorf("%s: %v", u.name, err)
		}
	}
	_, err := k.Connect(t.Context())
	is.True(Unavailable(err))
	own.Thaw()
	k = newConnector(targetOf(t, own.URL), Config{})
	again := sql.OpenDB(k)
	defer again.Close()
	// The inserts and the COMMIT that were sent may have been executed; those in other transactions
	// were not.
	is.True(one[int](t, again, "select count(*) from t") <= 2)
	is.Equal(one[int](t, again, "select count(*) from t where k = 'y'"), 0)

	manyWait(t, own)
}

// manyWait: callers that wait for one of few connections get an error together with the first of
// them. Later callers can use the server.
func manyWait(t *testing.T, own *pgtest.Cluster) {
	is := is.New(t)
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	db, k, conns := openConns(t, own.URL, 2)
	hurry(t, k, conns)
	own.Freeze()
	defer own.Thaw()
	for _, c := range conns {
		is.NoErr(c.Close())
	}
	var all sync.WaitGroup
	began := time.Now()
	for range 1000 {
		all.Go(func() {
			_, err := db.ExecContext(t.Context(), "select $1::int", 1)
			is.True(Unavailable(err))
		})
	}
	all.Wait()
	is.True(time.Since(began) < 20*time.Second) // two at a time, each for a twentieth of a second, they would take 25 s
	own.Thaw()
	for k.hosts[0].isSilent() != nil {
		time.Sleep(10 * time.Millisecond)
	}
	k.target.connectTimeout = defaultConnectTimeout
	is.NoErr(db.Ping())
	is.NoErr(db.Close())
}

// TestTimeoutsByWork: how long a server may be silent while it works.
func TestTimeoutsByWork(t *testing.T) {
	type key struct{}
	cfg := Config{
		ReadTimeout: 20 * time.Millisecond, WriteTimeout: 21 * time.Millisecond, LongTimeout: time.Minute,
		Work: func(ctx context.Context) Work { w, _ := ctx.Value(key{}).(Work); return w },
	}
	for _, c := range []struct {
		query string
		work  Work
		ok    bool
	}{
		{"select pg_sleep(0.3)", Short, false},
		{"select pg_sleep(0.3), $1::int", Short, false},
		{"do 'begin perform pg_sleep(0.3); end'", Short, false},
		{"select pg_sleep(0.3)", Long, true},
		{"select pg_sleep(0.3)", Unbounded, true},
	} {
		t.Run(c.query, func(t *testing.T) {
			is, db := is.New(t), openSafe(t, server(t), cfg)
			ctx := context.WithValue(t.Context(), key{}, c.work)
			var args []any
			if strings.Contains(c.query, "$1") {
				args = []any{1}
			}
			_, err := db.ExecContext(ctx, c.query, args...)
			is.Equal(err == nil, c.ok)
			is.Equal(errors.Is(err, os.ErrDeadlineExceeded), !c.ok)
			is.Equal(Unavailable(err), !c.ok)
		})
	}
}

// TestTimeoutIsOfTheServerAlone: neither an idle connection nor one with a slow reader is closed.
func TestTimeoutIsOfTheServerAlone(t *testing.T) {
	is, db := is.New(t), openSafe(t, server(t), Config{ReadTimeout: time.Second})
	pid := one[int](t, db, "select pg_backend_pid()")
	time.Sleep(1100 * time.Millisecond)
	is.Equal(one[int](t, db, "select pg_backend_pid()"), pid)
	rows, err := db.QueryContext(t.Context(), "select repeat('x', 1000) from generate_series(1, $1)", 1000)
	is.NoErr(err)
	is.True(rows.Next())
	time.Sleep(1100 * time.Millisecond)
	n := 1
	for rows.Next() {
		n++
	}
	is.NoErr(rows.Err())
	is.Equal(n, 1000)
}

func TestTimeoutsInTheURL(t *testing.T) {
	is := is.New(t)
	target, err := parseURL("postgres://h/d?read_timeout=3&write_timeout=250ms&long_timeout=2m")
	is.NoErr(err)
	limits := newTimeouts(target, Config{ReadTimeout: time.Second})
	is.Equal(
		[]time.Duration{limits.read, limits.write, limits.long},
		[]time.Duration{3 * time.Second, 250 * time.Millisecond, 2 * time.Minute},
	)
	limits = newTimeouts(targetOf(t, "postgres://h/d"), Config{WriteTimeout: -1})
	is.Equal(
		[]time.Duration{limits.read, limits.write, limits.long},
		[]time.Duration{10 * time.Second, 0, 90 * time.Second},
	)
	for _, bad := range []string{
		"read_timeout=0", "write_timeout=-1s", "long_timeout=soon", "read_timeout=2h", "read_timeout=3601",
	} {
		_, err := parseURL("postgres://h/d?" + bad)
		name, _, _ := strings.Cut(bad, "=")
		is.True(err != nil && strings.Contains(err.Error(), name))
	}
}

func targetOf(t *testing.T, url string) target {
	u, err := parseURL(url)
	is.New(t).NoErr(err)
	return u
}
