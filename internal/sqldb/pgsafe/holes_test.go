package pgsafe

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"
	"github.com/uptrace/bun/driver/pgdriver"
)

// Each test first shows a defect of pgdriver, so that the test can fail, and then that this package
// prevents it.

const (
	slowEcho = "select $1::text from pg_sleep(1)"
	echo     = "select $1::text"
)

func TestStaleRow(t *testing.T) {
	t.Run("bare", func(t *testing.T) {
		is, db := is.New(t), openBare(t, server(t))
		slow, err := db.Prepare(slowEcho)
		is.NoErr(err)
		fast, err := db.Prepare(echo)
		is.NoErr(err)
		var got string
		is.True(slow.QueryRowContext(soon(t), "alice").Scan(&got) != nil) // times out
		is.NoErr(fast.QueryRowContext(t.Context(), "bob").Scan(&got))
		is.Equal(got, "alice") // the defect
	})
	t.Run("safe", func(t *testing.T) {
		is, db := is.New(t), openSafe(t, server(t), Config{})
		is.Equal(one[string](t, db, echo, "warm"), "warm")
		var got string
		err := db.QueryRowContext(soon(t), slowEcho, "alice").Scan(&got)
		is.True(errors.Is(err, context.DeadlineExceeded))
		is.Equal(one[string](t, db, echo, "bob"), "bob")
	})
}

func TestStaleCopy(t *testing.T) {
	const slow, fast = "copy (select 'alice' from pg_sleep(1)) to stdout", "copy (select 'bob') to stdout"
	t.Run("bare", func(t *testing.T) {
		is := is.New(t)
		conn, err := bun.NewDB(openBare(t, server(t)), pgdialect.New()).Conn(t.Context())
		is.NoErr(err)
		defer conn.Close()
		var out bytes.Buffer
		_, err = pgdriver.CopyTo(soon(t), conn, &out, slow)
		is.True(err != nil) // times out
		_, err = pgdriver.CopyTo(t.Context(), conn, &out, fast)
		is.NoErr(err)
		is.Equal(out.String(), "alice\n") // the defect
	})
	t.Run("safe", func(t *testing.T) {
		is, db := is.New(t), openSafe(t, server(t), Config{})
		pid := one[int](t, db, "select pg_backend_pid()")
		for _, query := range []string{fast, " /* a /* b */ */ COPY t from stdin", "-- c\n;(copy t to program 'x'"} {
			_, err := db.Exec(query)
			is.True(strings.Contains(err.Error(), "COPY is not supported"))
			_, err = db.Query(query, 1)
			is.True(strings.Contains(err.Error(), "COPY is not supported"))
		}
		is.Equal(one[int](t, db, "select pg_backend_pid()"), pid) // nothing was sent to the server

		_, err := db.Exec("select 1; " + fast) // it reaches the server, and the connection is closed
		is.True(err != nil)
		is.True(one[int](t, db, "select pg_backend_pid()") != pid)
		rows, err := db.Query("select 1; " + fast)
		is.NoErr(err)
		is.True(rows.Next())
		is.True(!rows.Next())
		is.True(rows.Err() != nil)
		is.Equal(one[string](t, db, "select 'bob'"), "bob")
	})
}

func TestCancelWithoutDeadline(t *testing.T) {
	run := func(t *testing.T, db *sql.DB, sleep string, args ...any) (time.Duration, error) {
		is.New(t).NoErr(db.Ping())
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(250*time.Millisecond, cancel)
		start := time.Now()
		_, err := db.ExecContext(ctx, "select "+sleep+strings.Repeat(", $1::text", len(args)), args...)
		return time.Since(start), err
	}
	t.Run("bare", func(t *testing.T) {
		is, db := is.New(t), openBare(t, server(t))
		took, err := run(t, db, "pg_sleep(1)")
		is.NoErr(err) // the defect
		is.True(took > 900*time.Millisecond)
	})
	t.Run("safe", func(t *testing.T) {
		is, db := is.New(t), openSafe(t, server(t), Config{})
		for _, args := range [][]any{nil, {"x"}} {
			took, err := run(t, db, "pg_sleep(30)", args...)
			is.True(errors.Is(err, context.Canceled))
			is.True(took < 10*time.Second)
			is.True(!Unavailable(err))
		}
	})
}

func TestContextError(t *testing.T) {
	t.Run("bare", func(t *testing.T) {
		is, db := is.New(t), openBare(t, server(t))
		is.NoErr(db.Ping())
		_, err := db.ExecContext(soon(t), "select pg_sleep(5)")
		is.True(!errors.Is(err, context.DeadlineExceeded)) // the defect
		is.True(strings.Contains(err.Error(), "i/o timeout"))
	})
	t.Run("safe", func(t *testing.T) {
		is, db := is.New(t), openSafe(t, server(t), Config{})
		is.NoErr(db.Ping())
		_, err := db.ExecContext(soon(t), "select pg_sleep(5)")
		is.True(errors.Is(err, context.DeadlineExceeded))
		_, err = db.ExecContext(soon(t), "select pg_sleep(5), $1::int", 1)
		is.True(errors.Is(err, context.DeadlineExceeded))
		_, err = db.QueryContext(soon(t), "select pg_sleep(5)")
		is.True(errors.Is(err, context.DeadlineExceeded))
	})
}

func TestStatementStopsOnTheServer(t *testing.T) {
	running := func(db *sql.DB, marker string) int {
		return one[int](t, db, "select count(*) from pg_stat_activity where query like $1 and state = 'active'",
			"select pg_sleep(30) /* "+marker+"%")
	}
	watcher := openSafe(t, server(t), Config{})
	t.Run("bare", func(t *testing.T) {
		is, db := is.New(t), openBare(t, server(t))
		is.NoErr(db.Ping())
		_, err := db.ExecContext(soon(t), "select pg_sleep(30) /* bare */")
		is.True(err != nil)
		time.Sleep(2 * time.Second)
		is.Equal(running(watcher, "bare"), 1) // the defect
		exec(
			t, watcher, "select pg_terminate_backend(pid) from pg_stat_activity where query like $1",
			"select pg_sleep(30) /* bare%",
		)
	})
	t.Run("safe", func(t *testing.T) {
		is, db := is.New(t), openSafe(t, server(t), Config{})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := db.ExecContext(ctx, "select pg_sleep(30) /* safe */")
			ended <- err
		}()
		for running(watcher, "safe") == 0 && len(ended) == 0 {
			time.Sleep(10 * time.Millisecond)
		}
		cancel()
		is.True(errors.Is(<-ended, context.Canceled))
		for end := time.Now().Add(15 * time.Second); running(watcher, "safe") > 0 && time.Now().Before(end); {
			time.Sleep(50 * time.Millisecond)
		}
		is.Equal(running(watcher, "safe"), 0)
	})
}

func TestDeadInThePool(t *testing.T) {
	admin := openSafe(t, server(t), Config{})
	end := func(t *testing.T, db *sql.DB) {
		// wait for its end
		is.New(t).True(one[bool](
			t, admin, "select pg_terminate_backend($1, 30000)", one[int](t, db, "select pg_backend_pid()"),
		))
	}
	t.Run("bare", func(t *testing.T) {
		is, db := is.New(t), openBare(t, server(t))
		end(t, db)
		_, err := db.Exec("select 1")
		is.Equal(Code(err), "57P01") // the defect
		is.True(Unavailable(err))
	})
	t.Run("safe", func(t *testing.T) {
		db := openSafe(t, server(t), Config{})
		end(t, db)
		exec(t, db, "select 1")
		end(t, db)
		exec(t, db, "select $1::int", 1)
		end(t, db)
		tx, err := db.Begin()
		is.New(t).NoErr(err)
		is.New(t).NoErr(tx.Rollback())
	})
}

func TestSeveralStatements(t *testing.T) {
	const two = "insert into t values ($1); insert into t values ($1 + 1)"
	url := inSchema(t)
	safe := openSafe(t, url, Config{})
	exec(t, safe, "create table t (k int)")
	t.Run("bare", func(t *testing.T) {
		is, db := is.New(t), openBare(t, url)
		_, err := db.Exec(two, 1)
		is.NoErr(err) // the defect
		is.Equal(one[int](t, db, "select count(*) from t"), 2)
	})
	t.Run("safe", func(t *testing.T) {
		is := is.New(t)
		_, err := safe.Exec(two, 1)
		is.Equal(Code(err), "42601") // cannot insert multiple commands into a prepared statement
		_, err = safe.Query(two, 1)
		is.Equal(Code(err), "42601")
		is.Equal(one[int](t, safe, "select count(*) from t"), 2)
	})
}

func TestReadTimeout(t *testing.T) {
	is := is.New(t)
	// the defect, for a statement without a deadline
	is.Equal(pgdriver.NewConnector().Config().ReadTimeout, 10*time.Second)
	k, err := NewConnector("postgres://localhost/", Config{})
	is.NoErr(err)
	var conf pgdriver.Config
	k.(*connector).options(&socket{})(&conf)
	is.Equal(conf.ReadTimeout, time.Duration(0))
	is.Equal(conf.WriteTimeout, time.Duration(0))
}

func TestCommitOfAFailedTransaction(t *testing.T) {
	url := inSchema(t)
	safe := openSafe(t, url, Config{})
	exec(t, safe, "create table t (k int primary key)")
	failThenCommit := func(db *sql.DB) error {
		tx, err := db.Begin()
		is.New(t).NoErr(err)
		_, err = tx.Exec("insert into t values (1)")
		is.New(t).NoErr(err)
		_, err = tx.Exec("insert into t values (1)")
		is.New(t).Equal(Code(err), "23505")
		return tx.Commit()
	}
	t.Run("bare", func(t *testing.T) {
		is, db := is.New(t), openBare(t, url)
		is.NoErr(failThenCommit(db)) // the defect
		is.Equal(one[int](t, db, "select count(*) from t"), 0)
	})
	t.Run("safe", func(t *testing.T) {
		is := is.New(t)
		is.Equal(Code(failThenCommit(safe)), failedTransaction)
		is.Equal(one[int](t, safe, "select count(*) from t"), 0)

		tx, err := safe.Begin() // an error that was undone by a savepoint does not matter
		is.NoErr(err)
		for _, q := range []string{
			"insert into t values (2)", "savepoint s", "insert into t values (2)", "rollback to s",
		} {
			_, err = tx.Exec(q)
			is.True(err == nil || Code(err) == "23505")
		}
		is.NoErr(tx.Commit())
		is.Equal(one[int](t, safe, "select count(*) from t"), 1)
	})
}

func TestText(t *testing.T) {
	t.Run("bare", func(t *testing.T) {
		is, db := is.New(t), openBare(t, server(t))
		is.Equal(one[string](t, db, echo, "a\x00b"), "ab") // the defect
		is.Equal(one[string](t, db, echo, "\xff"), "\ufffd")
	})
	t.Run("safe", func(t *testing.T) {
		is, db := is.New(t), openSafe(t, server(t), Config{})
		for _, s := range []string{"a\x00b", "\xff"} {
			_, err := db.Query(echo, s)
			is.True(strings.Contains(err.Error(), "$1 is not UTF-8 text"))
		}
		_, err := db.Exec("select 1\x00")
		is.True(strings.Contains(err.Error(), "NUL"))
		is.Equal(one[string](t, db, echo, "ä'\\b"), "ä'\\b")
	})
}

func TestOpenRows(t *testing.T) {
	inTwo := func(t *testing.T, db *sql.DB) (string, error) {
		tx, err := db.Begin()
		is.New(t).NoErr(err)
		t.Cleanup(func() { tx.Rollback() })
		rows, err := tx.Query("select 'alice' from generate_series(1, 1000)")
		is.New(t).NoErr(err)
		t.Cleanup(func() { rows.Close() })
		var got string
		return got, tx.QueryRow("select 'bob'").Scan(&got)
	}
	t.Run("bare", func(t *testing.T) {
		_, err := inTwo(t, openBare(t, server(t)))
		// The defect: client and server are out of step.
		is.New(t).True(strings.Contains(err.Error(), "unexpected message"))
	})
	t.Run("safe", func(t *testing.T) {
		is, db := is.New(t), openSafe(t, server(t), Config{})
		_, err := inTwo(t, db)
		is.True(strings.Contains(err.Error(), "still open"))
	})
}

// TestColumnNames: the names of the columns are those of the statement. pgdriver returns their
// memory to a pool and often shows the names of a later statement.
func TestColumnNames(t *testing.T) {
	names := func(t *testing.T, db *sql.DB) string {
		rows, err := db.Query("select 1 as alice")
		is.New(t).NoErr(err)
		columns, err := rows.Columns()
		is.New(t).NoErr(err)
		is.New(t).NoErr(rows.Close())
		for range 20 { // a sync.Pool may drop values
			exec(t, db, "select 1")
			rows, err = db.Query("select 1 as bob")
			is.New(t).NoErr(err)
			is.New(t).NoErr(rows.Close())
		}
		return columns[0]
	}
	is.New(t).Equal(names(t, openSafe(t, server(t), Config{})), "alice")
}
