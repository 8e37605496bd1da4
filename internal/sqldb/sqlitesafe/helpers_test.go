package sqlitesafe

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// TestMain also runs the other process of some tests.
func TestMain(m *testing.M) {
	if path := os.Getenv("SQLITESAFE_TEST_WRITE"); path != "" {
		if err := child(path, os.Getenv("SQLITESAFE_TEST_ROWS")); err != nil {
			fmt.Println("failed:", err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// child writes rows, one in each transaction, and prints the number of a row after its commit.
func child(path, rows string) error {
	n, err := strconv.Atoi(rows)
	if err != nil {
		return err
	}
	db, err := Open(path, Options{})
	if err != nil {
		return err
	}
	for i := range n {
		if err := inTx(context.Background(), db, func(tx *sql.Tx) error {
			_, err := tx.Exec("INSERT INTO t (who, n) VALUES ('child', $1)", i)
			return err
		}); err != nil {
			return err
		}
		fmt.Println(i)
	}
	return db.Close()
}

func inTx(ctx context.Context, db *sql.DB, fn func(*sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if err := fn(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// file returns the path of a database with the table t.
func file(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "test.db")
	db := reopen(t, path)
	run(t, db, "CREATE TABLE t (id INTEGER PRIMARY KEY, who text, n integer) STRICT")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func pool(t testing.TB) *sql.DB {
	t.Helper()
	return reopen(t, file(t))
}

func reopen(t testing.TB, path string) *sql.DB {
	t.Helper()
	db, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func run(t testing.TB, db *sql.DB, query string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), query, args...); err != nil {
		t.Fatal(err)
	}
}

func begin(t testing.TB, db *sql.DB, opts *sql.TxOptions) *sql.Tx {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

// count returns the number that a query on a *sql.DB or a *sql.Tx returns.
func count(t testing.TB, q interface {
	QueryRowContext(context.Context, string, ...any) *sql.Row
}, query string, args ...any) (n int) {
	t.Helper()
	if err := q.QueryRowContext(t.Context(), query, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// usable fails the test unless a write and a read work at once.
func usable(t testing.TB, db *sql.DB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := inTx(ctx, db, func(tx *sql.Tx) error {
		_, err := tx.Exec("INSERT INTO t (who) VALUES ('usable')")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(ctx, "DELETE FROM t WHERE who = 'usable'"); err != nil {
		t.Fatal(err)
	}
	if n := count(t, db, "SELECT count(*) FROM t WHERE who = 'usable'"); n != 0 {
		t.Fatal(n)
	}
}

// soon returns a context that ends while a statement runs, and not before it has begun, even on a
// slow machine.
func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 250*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

const (
	all   = "SELECT count(*) FROM t"
	long  = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM r) SELECT count(*) FROM r"
	fills = "INSERT INTO t (n) WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM r LIMIT 100000000) " +
		"SELECT n FROM r"
)
