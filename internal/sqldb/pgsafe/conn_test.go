package pgsafe

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"
	"github.com/uptrace/bun/driver/pgdriver"
	"go.uber.org/goleak"
)

func TestSettings(t *testing.T) {
	is, u := is.New(t), server(t)
	db := openSafe(t, u, Config{LockTimeout: -1, IdleInTransactionTimeout: 1500 * time.Millisecond})
	for name, want := range map[string]string{
		"statement_timeout":                   "1min",
		"lock_timeout":                        "0",
		"idle_in_transaction_session_timeout": "1500ms",
		"timezone":                            "UTC",
		"jit":                                 "off",
		"client_connection_check_interval":    "1s",
		"datestyle":                           "ISO, MDY",
		"application_name":                    "tenantcontent",
	} {
		is.Equal(one[string](t, db, "select current_setting($1)", name), want)
	}
	db = openSafe(t, with(u, "statement_timeout=7s&application_name=x&search_path=a,%20b"), Config{})
	is.Equal(one[string](t, db, "show statement_timeout"), "7s")
	is.Equal(one[string](t, db, "show application_name"), "x")
	is.Equal(one[string](t, db, "show search_path"), "a, b")

	err := openSafe(t, with(u, "no_such_thing=1"), Config{}).Ping()
	is.Equal(Code(err), "42704")
}

func TestStatementTimeout(t *testing.T) {
	is, db := is.New(t), openSafe(t, server(t), Config{StatementTimeout: 500 * time.Millisecond})
	_, err := db.Exec("select pg_sleep(5)")
	is.Equal(Code(err), "57014")
	pid := one[int](t, db, "select pg_backend_pid()")
	_, err = db.Exec("select pg_sleep(5), $1::int", 1)
	is.Equal(Code(err), "57014")
	is.Equal(one[int](t, db, "select pg_backend_pid()"), pid) // an ordinary error: the connection is kept
}

func TestUnixSocket(t *testing.T) {
	own := ownServer(t)
	for _, u := range []string{own.SocketURL, "postgres:///postgres?user=postgres&host=" + own.Socket} {
		is, db := is.New(t), openSafe(t, u, Config{})
		is.Equal(one[int](t, db, "select $1::int", 1), 1)
	}
}

func TestPrepareIsRefused(t *testing.T) {
	is, db := is.New(t), openSafe(t, server(t), Config{})
	_, err := db.Prepare("select 1")
	is.True(strings.Contains(err.Error(), "Prepare is not supported"))
	_, err = db.Exec("listen x")
	is.True(strings.Contains(err.Error(), "LISTEN"))
	_, err = db.Exec("select @a", sql.Named("a", 1))
	is.True(strings.Contains(err.Error(), "named arguments"))
}

// rawConn returns a connection without database/sql.
func rawConn(t *testing.T) *conn {
	k, err := NewConnector(server(t), Config{})
	is.New(t).NoErr(err)
	c, err := k.Connect(t.Context())
	is.New(t).NoErr(err)
	t.Cleanup(func() { c.Close() })
	return c.(*conn)
}

func TestRowsEndWithTheContext(t *testing.T) {
	for _, args := range [][]driver.NamedValue{nil, {{Ordinal: 1, Value: int64(1000)}}} {
		is, c := is.New(t), rawConn(t)
		ctx, cancel := context.WithCancel(t.Context())
		query := "select repeat('x', 100), generate_series(1, 1000)"
		if args != nil {
			query = "select repeat('x', 100), generate_series(1, $1)"
		}
		rows, err := c.QueryContext(ctx, query, args)
		is.NoErr(err)
		dest := make([]driver.Value, 2)
		is.NoErr(rows.Next(dest))
		cancel()
		for !c.dead() {
			time.Sleep(time.Millisecond)
		}
		is.True(errors.Is(rows.Next(dest), context.Canceled)) // although there are rows in the buffer
		is.NoErr(rows.Close())
		is.True(!c.IsValid())
		is.Equal(c.ResetSession(t.Context()), driver.ErrBadConn)
		_, err = c.ExecContext(t.Context(), "select 1", nil)
		is.Equal(err, driver.ErrBadConn)
	}
}

// TestLeaveIsFinal: a context that ends at the same moment as its statement does not close the
// connection when the next caller has it.
func TestLeaveIsFinal(t *testing.T) {
	is := is.New(t)
	for range 1000 {
		near, far := net.Pipe()
		c := newConn(&pgdriver.Conn{}, &socket{Conn: near, raw: near}, &connector{})
		ctx, cancel := context.WithCancel(t.Context())
		leave, err := c.enter(ctx, 0)
		is.NoErr(err)
		cancel()
		leave()
		is.True(!c.IsValid())
		far.Close()
	}
}

func TestFailedConnectLeavesNothingOpen(t *testing.T) {
	is, u := is.New(t), server(t)
	admin := openSafe(t, u, Config{})
	gc := debug.SetGCPercent(-1) // which closes forgotten sockets
	defer debug.SetGCPercent(gc)
	is.Equal(Code(openSafe(t, with(u, "application_name=leak&no_such_thing=1"), Config{}).Ping()), "42704")
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if one[int](t, admin, "select count(*) from pg_stat_activity where application_name = 'leak'") == 0 {
			return
		}
	}
	t.Fatal("the connection is still open")
}

func TestRowsClosedAfterTheContext(t *testing.T) {
	is, c := is.New(t), rawConn(t)
	ctx, cancel := context.WithCancel(t.Context())
	rows, err := c.QueryContext(ctx, "select generate_series(1, 1000000)", nil)
	is.NoErr(err)
	cancel()
	is.True(errors.Is(rows.Close(), context.Canceled))
	is.True(!c.IsValid())
}

// TestRowsClosedEarly: Close does not wait for the rest of a long answer, unless a transaction
// needs the connection. A value that pgdriver cannot read leaves it in the middle of a row.
func TestRowsClosedEarly(t *testing.T) {
	is, db := is.New(t), openSafe(t, server(t), Config{})
	db.SetMaxOpenConns(1)
	closeAfterOne := func(q interface {
		QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	}, n int) {
		t.Helper()
		rows, err := q.QueryContext(t.Context(), "select repeat('x', 1000) from generate_series(1, $1::int)", n)
		is.NoErr(err)
		is.True(rows.Next())
		is.NoErr(rows.Close())
	}
	pid := one[int](t, db, "select pg_backend_pid()")
	closeAfterOne(db, 100)
	is.Equal(one[int](t, db, "select pg_backend_pid()"), pid)
	closeAfterOne(db, 100_000)
	other := one[int](t, db, "select pg_backend_pid()")
	is.True(other != pid)
	tx, err := db.Begin()
	is.NoErr(err)
	closeAfterOne(tx, 1000)
	var same int
	is.NoErr(tx.QueryRow("select pg_backend_pid()").Scan(&same))
	is.Equal(same, other)
	is.NoErr(tx.Commit())
}

func TestUnreadableValue(t *testing.T) {
	is, db := is.New(t), openSafe(t, server(t), Config{})
	pid := one[int](t, db, "select pg_backend_pid()")
	var at time.Time
	is.True(db.QueryRow("select 'infinity'::timestamptz, 'x'").Scan(&at, new(string)) != nil)
	is.True(one[int](t, db, "select pg_backend_pid()") != pid)
}

func TestServerErrorsKeepTheConnection(t *testing.T) {
	is, db := is.New(t), openSafe(t, inSchema(t), Config{})
	pid := one[int](t, db, "select pg_backend_pid()")
	exec(t, db, "create table t (k int primary key)")
	for range 2 {
		_, err := db.Exec("insert into t values (1), ($1)", 1)
		is.Equal(Code(err), "23505")
		_, err = db.Exec("nonsense")
		is.Equal(Code(err), "42601")
		var k int
		// The error comes while the rows are read.
		err = db.QueryRow("insert into t values (1), ($1) returning k", 1).Scan(&k)
		is.Equal(Code(err), "23505")
		_, err = db.Query("select $1::int", 1, 2) // never sent
		is.True(strings.Contains(err.Error(), "1 parameters, and 2 arguments"))
	}
	is.Equal(one[int](t, db, "select pg_backend_pid()"), pid)
}

func TestFatalErrorEndsTheConnection(t *testing.T) {
	for _, args := range [][]driver.NamedValue{nil, {{Ordinal: 1, Value: true}}} {
		is, c := is.New(t), rawConn(t)
		_, err := c.ExecContext(t.Context(), "select pg_terminate_backend(pg_backend_pid())"+
			strings.Repeat(" where $1", len(args)), args)
		is.Equal(Code(err), "57P01")
		is.True(!c.IsValid())
	}
}

func TestArgumentTypes(t *testing.T) {
	is, db := is.New(t), openSafe(t, server(t), Config{})
	at := time.Date(2026, 11, 3, 4, 5, 6, 789000, time.UTC)
	is.Equal(one[time.Time](t, db, "select $1::timestamptz", at).UTC(), at)
	is.Equal(one[bool](t, db, "select $1::bool", true), true)
	is.Equal(one[float64](t, db, "select $1::float8", 1.5), 1.5)
	is.Equal(one[[]byte](t, db, "select $1::bytea", []byte{0, 255}), []byte{0, 255})
	is.Equal(one[string](t, db, "select $1::jsonb ->> 'a'", `{"a":"b"}`), "b")
	is.Equal(one[sql.NullString](t, db, "select $1::text", nil), sql.NullString{})
}

// TestManyCallersSeeTheirOwnRows: with statements that end early in all ways, no caller gets a row
// of another one.
func TestManyCallersSeeTheirOwnRows(t *testing.T) {
	db, err := Open(with(server(t), "pool_max_conns=4"), Config{StatementCache: 3})
	is.New(t).NoErr(err)
	defer db.Close()
	end := time.Now().Add(time.Second)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := 0; time.Now().Before(end); i++ {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(4000))*time.Microsecond)
				want, got := fmt.Sprint(g, "/", i), ""
				err := db.QueryRowContext(
					ctx, fmt.Sprintf("select $1::text, pg_sleep(0.001) -- %d", i%5), want,
				).Scan(&got, new(string))
				cancel()
				if err == nil && got != want {
					t.Errorf("%s got the row of %s", want, got)
				}
				if err != nil && !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

func TestNoGoroutineStays(t *testing.T) {
	u := server(t)
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	db, err := Open(u, Config{Tenant: func(context.Context) string { return "t" }})
	is.New(t).NoErr(err)
	defer db.Close()
	for range 20 {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel() // the contexts outlive their statements
		is.New(t).NoErr(db.QueryRowContext(ctx, "select $1::int", 1).Scan(new(int)))
	}
	_, _ = db.ExecContext(soon(t), "select pg_sleep(1)")
	ctx, end := context.WithCancel(t.Context())
	tx, err := db.BeginTx(ctx, nil)
	is.New(t).NoErr(err)
	end()
	is.New(t).True(tx.Commit() != nil)
}

func TestServerComesBack(t *testing.T) {
	is, own := is.New(t), ownServer(t)
	db, err := Open(own.URL, Config{})
	is.NoErr(err)
	defer db.Close()
	exec(t, db, "create table t (k int)")
	exec(t, db, "insert into t values ($1)", 1)
	own.Kill()
	_, err = db.Exec("insert into t values ($1)", 2)
	is.True(Unavailable(err))
	is.NoErr(own.Restart(t.Context()))
	exec(t, db, "insert into t values ($1)", 3) // it does not fail first
	is.Equal(one[int](t, db, "select count(*) from t where k in (1, 3)"), 2)
}
