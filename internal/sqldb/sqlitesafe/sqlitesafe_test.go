package sqlitesafe

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/limits/limiter"
)

func TestReadsRunBesideAWriteAndEachOther(t *testing.T) {
	is, db := is.New(t), pool(t)
	run(t, db, "INSERT INTO t (n) VALUES (1), (2)")
	tx := begin(t, db, nil)
	_, err := tx.Exec("DELETE FROM t")
	is.NoErr(err)
	open := make([]*sql.Rows, readers)
	for i := range open {
		open[i], err = db.QueryContext(t.Context(), "SELECT n FROM t WHERE n > $1", 0)
		is.NoErr(err)
		is.True(open[i].Next()) // the state before the transaction
	}
	is.Equal(count(t, tx, all), 0)
	is.NoErr(tx.Commit())
	for _, rows := range open {
		is.True(rows.Next())
		is.True(!rows.Next())
		is.NoErr(rows.Close())
	}
	is.Equal(count(t, db, all), 0)
}

func TestQueryCannotWrite(t *testing.T) {
	is, db := is.New(t), pool(t)
	for _, q := range []string{
		"INSERT INTO t (n) VALUES (1) RETURNING n", "DELETE FROM t RETURNING n", "CREATE TABLE u (n)",
	} {
		rows, err := db.QueryContext(t.Context(), q)
		if err == nil {
			rows.Next()
			err = errors.Join(rows.Err(), rows.Close())
		}
		is.True(err != nil && strings.Contains(err.Error(), "begin one for a statement that writes"))
	}
	is.Equal(count(t, db, "SELECT count(*) FROM sqlite_master WHERE name = 'u'"), 0)
	is.Equal(count(t, db, all), 0)
}

func TestExecOutsideATransaction(t *testing.T) {
	is, db := is.New(t), pool(t)
	res, err := db.ExecContext(t.Context(), "INSERT INTO t (n) VALUES ($1), ($2)", 1, 2)
	is.NoErr(err)
	n, err := res.RowsAffected()
	is.NoErr(err)
	is.Equal(n, int64(2))
	is.Equal(count(t, db, all), 2)
	_, err = db.ExecContext(t.Context(), "INSERT INTO t (id) VALUES (1)")
	is.True(err != nil) // taken
	usable(t, db)
}

// TestManyAtOnce increments a number in transactions that read first, while other reads must see
// only complete transactions.
func TestManyAtOnce(t *testing.T) {
	is, db := is.New(t), pool(t)
	run(t, db, "INSERT INTO t (who, n) VALUES ('a', 0), ('b', 0)")
	const each = 20
	var failed atomic.Value
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			for range each {
				var err error
				switch i % 4 {
				case 0, 1:
					err = inTx(t.Context(), db, addOne)
				case 2:
					_, err = db.ExecContext(t.Context(), "INSERT INTO t (who) VALUES ($1)", "c")
				default:
					var a, b int
					err = db.QueryRowContext(
						t.Context(),
						"SELECT sum(n) FILTER (WHERE who = 'a'), sum(n) FILTER (WHERE who = 'b') FROM t",
					).Scan(&a, &b)
					if a != b {
						err = errors.New("half a transaction was seen")
					}
				}
				if err != nil {
					failed.Store(err)
				}
			}
		})
	}
	wg.Wait()
	is.Equal(failed.Load(), nil)
	is.Equal(count(t, db, "SELECT sum(n) FROM t WHERE who = 'a'"), 16*each)
	is.Equal(count(t, db, "SELECT count(*) FROM t WHERE who = 'c'"), 8*each)
}

func addOne(tx *sql.Tx) error {
	var n int
	if err := tx.QueryRow("SELECT n FROM t WHERE who = $1", "a").Scan(&n); err != nil {
		return err
	}
	for _, who := range []string{"a", "b"} {
		if _, err := tx.Exec("UPDATE t SET n = $1 WHERE who = $2", n+1, who); err != nil {
			return err
		}
	}
	return nil
}

func TestReadOnlyTransactionIsASnapshot(t *testing.T) {
	is, db := is.New(t), pool(t)
	tx := begin(t, db, &sql.TxOptions{ReadOnly: true})
	is.Equal(count(t, tx, all), 0)
	run(t, db, "INSERT INTO t (n) VALUES (1)") // it does not wait for the transaction
	is.Equal(count(t, tx, all), 0)
	_, err := tx.Exec("INSERT INTO t (n) VALUES (1)")
	is.True(err != nil)
	is.NoErr(tx.Commit())
	is.Equal(count(t, db, all), 1)
}

func TestPanicAndRollback(t *testing.T) {
	is, db := is.New(t), pool(t)
	func() {
		defer func() { is.Equal(recover(), "oh") }()
		_ = inTx(t.Context(), db, func(tx *sql.Tx) error {
			_, err := tx.Exec("INSERT INTO t (n) VALUES (1)")
			is.NoErr(err)
			panic("oh")
		})
	}()
	is.Equal(count(t, db, all), 0)
	usable(t, db)
}

func TestNestedRowsOfOwnTx(t *testing.T) {
	is, db := is.New(t), pool(t)
	run(t, db, "INSERT INTO t (n) VALUES (1), (2), (3)")
	const query = "SELECT n FROM t WHERE n > $1 ORDER BY n"
	tx := begin(t, db, nil)
	outer, err := tx.Query(query, 0)
	is.NoErr(err)
	var pairs [][2]int
	for outer.Next() {
		var a, b int
		is.NoErr(outer.Scan(&a))
		inner, err := tx.Query(query, a)
		is.NoErr(err)
		for inner.Next() {
			is.NoErr(inner.Scan(&b))
			pairs = append(pairs, [2]int{a, b})
			_, err := tx.Exec("UPDATE t SET who = $1 WHERE n = $2", "x", b)
			is.NoErr(err)
		}
		is.NoErr(inner.Close())
	}
	is.NoErr(outer.Close())
	is.Equal(pairs, [][2]int{{1, 2}, {1, 3}, {2, 3}})
	is.NoErr(tx.Commit())
	is.Equal(count(t, db, "SELECT count(*) FROM t WHERE who = $1", "x"), 2)
}

func TestCommitWithOpenRows(t *testing.T) {
	for name, query := range map[string]string{
		"read":  "SELECT n FROM t WHERE n > $1",
		"write": "INSERT INTO t (n) SELECT n FROM t WHERE n > $1 RETURNING n",
	} {
		t.Run(name, func(t *testing.T) {
			is, db := is.New(t), pool(t)
			run(t, db, "INSERT INTO t (n) VALUES (1), (2), (3)")
			for range 3 { // also when the statement is prepared
				tx := begin(t, db, nil)
				rows, err := tx.Query(query, 2)
				is.NoErr(err)
				is.True(rows.Next())
				_, err = tx.Exec("INSERT INTO t (who) VALUES ('kept')")
				is.NoErr(err)
				is.NoErr(tx.Commit())
				is.True(!rows.Next())
			}
			is.Equal(count(t, db, "SELECT count(*) FROM t WHERE who = 'kept'"), 3)
			usable(t, db)
		})
	}
}

func TestFailedCommit(t *testing.T) {
	is, db := is.New(t), pool(t)
	run(t, db, "CREATE TABLE c (id integer REFERENCES t DEFERRABLE INITIALLY DEFERRED)")
	tx := begin(t, db, nil)
	_, err := tx.Exec("INSERT INTO c VALUES (99)")
	is.NoErr(err)
	is.True(tx.Commit() != nil)
	is.Equal(count(t, db, "SELECT count(*) FROM c"), 0)
	usable(t, db)
}

// TestLostTransaction writes after SQLite rolled the transaction back: nothing is stored.
func TestLostTransaction(t *testing.T) {
	for name, lose := range map[string]func(*testing.T, *sql.Tx) error{
		"interrupted write": func(t *testing.T, tx *sql.Tx) error {
			_, err := tx.ExecContext(soon(t), fills)
			return err
		},
		"ROLLBACK": func(t *testing.T, tx *sql.Tx) error { _, err := tx.Exec("ROLLBACK"); return err },
		"conflict": func(t *testing.T, tx *sql.Tx) error {
			_, err := tx.Exec("INSERT OR ROLLBACK INTO t (id) VALUES (7)")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			is, db := is.New(t), pool(t)
			run(t, db, "INSERT INTO t (id) VALUES (7)")
			for _, end := range []func(*sql.Tx) error{(*sql.Tx).Commit, (*sql.Tx).Rollback} {
				tx := begin(t, db, nil)
				_, err := tx.Exec("INSERT INTO t (n) VALUES (1)")
				is.NoErr(err)
				_ = lose(t, tx)
				_, err = tx.Exec("INSERT INTO t (n) VALUES (2)")
				is.Equal(err, errLost)
				is.Equal(tx.QueryRow("INSERT INTO t (n) VALUES (3) RETURNING n").Err(), errLost)
				_ = end(tx)
				is.Equal(count(t, db, all), 1)
				usable(t, db)
			}
			tx := begin(t, db, nil)
			_ = lose(t, tx)
			is.Equal(tx.Commit(), errLost)
		})
	}
}

func TestCancelWhileWaitingForTheWriter(t *testing.T) {
	is, db := is.New(t), pool(t)
	tx := begin(t, db, nil)
	_, err := db.BeginTx(soon(t), nil)
	is.True(errors.Is(err, context.DeadlineExceeded))
	_, err = db.ExecContext(soon(t), "INSERT INTO t (n) VALUES (1)")
	is.True(errors.Is(err, context.DeadlineExceeded))
	is.NoErr(tx.Commit())
	is.Equal(count(t, db, all), 0)
	usable(t, db)
}

func TestCancelALongStatement(t *testing.T) {
	query := func(q interface {
		QueryRowContext(context.Context, string, ...any) *sql.Row
	}) func(context.Context) error {
		return func(ctx context.Context) error {
			var n int
			return q.QueryRowContext(ctx, long).Scan(&n)
		}
	}
	for name, with := range map[string]func(t *testing.T, db *sql.DB) func(context.Context) error{
		"query": func(_ *testing.T, db *sql.DB) func(context.Context) error { return query(db) },
		"exec": func(_ *testing.T, db *sql.DB) func(context.Context) error {
			return func(ctx context.Context) error { _, err := db.ExecContext(ctx, fills); return err }
		},
		"query in a transaction": func(t *testing.T, db *sql.DB) func(context.Context) error {
			return query(begin(t, db, nil))
		},
		"query in a read-only one": func(t *testing.T, db *sql.DB) func(context.Context) error {
			return query(begin(t, db, &sql.TxOptions{ReadOnly: true}))
		},
		"exec with the transaction's context": func(_ *testing.T, db *sql.DB) func(context.Context) error {
			return func(ctx context.Context) error {
				return inTx(ctx, db, func(tx *sql.Tx) error { _, err := tx.ExecContext(ctx, fills); return err })
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			is, db := is.New(t), pool(t)
			statement := with(t, db)
			start := time.Now()
			err := statement(soon(t))
			is.True(errors.Is(err, context.DeadlineExceeded))
			is.True(time.Since(start) < 20*time.Second) // it would run for minutes
			if name == "query in a transaction" || name == "query in a read-only one" {
				return // still open; the cleanup closes it
			}
			is.Equal(count(t, db, all), 0)
			usable(t, db)
		})
	}
}

// TestTransactionAfterCancelledRead: a transaction continues after an interrupted read.
func TestTransactionAfterCancelledRead(t *testing.T) {
	is, db := is.New(t), pool(t)
	tx := begin(t, db, nil)
	_, err := tx.Exec("INSERT INTO t (n) VALUES (1)")
	is.NoErr(err)
	var n int
	is.True(errors.Is(tx.QueryRowContext(soon(t), long).Scan(&n), context.DeadlineExceeded))
	_, err = tx.Exec("INSERT INTO t (n) VALUES (2)")
	is.NoErr(err)
	is.NoErr(tx.Commit())
	is.Equal(count(t, db, all), 2)
	usable(t, db)
}

func TestOddPaths(t *testing.T) {
	for _, name := range []string{
		"a?b", "a#b", "a%b", "a%3fb", "a b", "a&b=c", "ä", "a;b'c\"d", "?mode=memory", ":memory:",
	} {
		t.Run(name, func(t *testing.T) {
			is, path := is.New(t), filepath.Join(t.TempDir(), name)
			db, err := Open("/"+path, Options{}) // two slashes at the beginning
			is.NoErr(err)
			run(t, db, "CREATE TABLE t (id INTEGER PRIMARY KEY)")
			is.NoErr(db.Close())
			found, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*"))
			is.NoErr(err)
			is.Equal(found, []string{path})
			is.Equal(count(t, reopen(t, path), all), 0)
		})
	}
}

func TestRelativePath(t *testing.T) {
	is := is.New(t)
	t.Chdir(t.TempDir())
	db := reopen(t, "test.db")
	run(t, db, "CREATE TABLE t (n)")
	found, err := filepath.Glob("test.db")
	is.NoErr(err)
	is.Equal(len(found), 1)
}

func TestOpenFails(t *testing.T) {
	is := is.New(t)
	_, err := Open(filepath.Join(t.TempDir(), "missing", "test.db"), Options{})
	is.True(err != nil)
	_, err = Open(t.TempDir(), Options{}) // a directory
	is.True(err != nil)
}

func TestPrepareIsRefused(t *testing.T) {
	_, err := pool(t).PrepareContext(t.Context(), all)
	is.New(t).Equal(err, errPrepare)
}

func TestWaitingWritersKeepNobodyFromReading(t *testing.T) {
	db := pool(t)
	run(t, db, "CREATE TABLE n (i integer)")
	long := begin(t, db, nil)
	ctx, stop := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	for range 4 * readers {
		waiting.Go(func() {
			if tx, err := db.BeginTx(ctx, nil); err == nil {
				_ = tx.Rollback()
			}
		})
	}
	for s := db.Stats(); s.InUse <= 4*readers && s.WaitCount == 0; s = db.Stats() { // the long one and its waiters
		time.Sleep(time.Millisecond)
	}
	// a transaction that waits for a place of a writer waits as long as that one
	patient, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	is.New(t).NoErr(db.QueryRowContext(patient, "SELECT count(*) FROM n").Err())
	stop()
	waiting.Wait()
	is.New(t).NoErr(long.Rollback())
}

func TestWriterThatIsNotFreeInTime(t *testing.T) {
	is := is.New(t)
	db, err := openPool(file(t), limits{every: time.Second, most: 1 << 20, wait: 20 * time.Millisecond}, Options{})
	is.NoErr(err)
	defer func() { is.NoErr(db.Close()) }()
	long := begin(t, db, nil)
	_, err = db.BeginTx(t.Context(), nil)
	is.True(errors.Is(err, errBusy{}))
	_, err = db.ExecContext(t.Context(), "CREATE TABLE n (i integer)")
	is.True(errors.Is(err, errBusy{}))
	is.NoErr(long.Rollback())
	_, err = db.ExecContext(t.Context(), "CREATE TABLE n (i integer)")
	is.NoErr(err)
}

// TestHurriedWriters: hurried transactions do not wait for a long one, and wait for short ones as
// others do.
func TestHurriedWriters(t *testing.T) {
	is := is.New(t)
	type key struct{}
	c, err := newConnector(file(t), limits{
		every:     time.Second,
		most:      1 << 20,
		wait:      time.Minute,
		longAfter: 20 * time.Millisecond,
	},
		Options{Hurried: func(ctx context.Context) bool { return ctx.Value(key{}) != nil }})
	is.NoErr(err)
	db := sql.OpenDB(c)
	defer func() { is.NoErr(db.Close()) }()
	hurried := context.WithValue(t.Context(), key{}, true)
	long := begin(t, db, nil)
	_, err = db.ExecContext(hurried, "INSERT INTO t (n) VALUES (1)")
	is.True(errors.Is(err, errBusy{long: true}))
	for c.held() < c.longAfter {
		time.Sleep(time.Millisecond)
	}
	var all sync.WaitGroup
	for range maxWaiting { // not hurried
		all.Go(func() {
			if _, err := db.ExecContext(t.Context(), "INSERT INTO t (n) VALUES (2)"); err != nil {
				t.Error(err)
			}
		})
	}
	for c.queue.Waiting() < maxWaiting {
		time.Sleep(time.Millisecond)
	}
	at, cancel := c.hurry(t.Context()) // at once
	is.True(errors.Is(context.Cause(at), limiter.ErrBusy))
	cancel()
	is.NoErr(long.Rollback())
	all.Wait()
	_, err = db.ExecContext(hurried, "INSERT INTO t (n) VALUES (1)")
	is.NoErr(err)
	is.Equal(count(t, db, "SELECT count(*) FROM t"), maxWaiting+1)
}

// TestWriterIsFairToTenants: a tenant with one write waits for at most one of a tenant with many.
func TestWriterIsFairToTenants(t *testing.T) {
	is := is.New(t)
	type key struct{}
	c, err := newConnector(file(t), usual, Options{Tenant: func(ctx context.Context) string {
		who, _ := ctx.Value(key{}).(string)
		return who
	}})
	is.NoErr(err)
	db := sql.OpenDB(c)
	defer func() { is.NoErr(db.Close()) }()
	run(t, db, "CREATE TABLE queue (n INTEGER PRIMARY KEY, who TEXT) STRICT")
	long := begin(t, db, nil)
	var writers sync.WaitGroup
	for n, who := range []string{"a", "a", "a", "a", "a", "b"} {
		writers.Go(func() {
			_, err := db.ExecContext(
				context.WithValue(t.Context(), key{}, who), "INSERT INTO queue (who) VALUES (?)", who,
			)
			is.NoErr(err)
		})
		for c.queue.Waiting() < n+1 {
			time.Sleep(time.Millisecond)
		}
	}
	is.NoErr(long.Rollback())
	writers.Wait()
	is.True(count(t, db, "SELECT n FROM queue WHERE who = 'b'") <= 2)
}
