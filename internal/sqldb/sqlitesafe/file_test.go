package sqlitesafe

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"
)

// TestLogIsBounded writes without a pause, while reads overlap: a log that has grown long is
// emptied repeatedly.
func TestLogIsBounded(t *testing.T) {
	is, path := is.New(t), file(t)
	const most = 1 << 20
	db, err := openPool(path, limits{every: 20 * time.Millisecond, most: most, wait: usual.wait}, Options{})
	is.NoErr(err)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for ctx.Err() == nil {
				var n int
				_ = db.QueryRowContext(ctx, "SELECT sum(length(who)) FROM t WHERE n > $1", -1).Scan(&n)
			}
		})
	}
	wrote, cuts, last := 0, 0, int64(0)
	for cuts < 4 && wrote < 100*most { // limited by bytes, not time: a slow machine writes less between two checkpoints
		write(t, db, "INSERT INTO t (id, who, n) VALUES (1, $1, 0) ON CONFLICT (id) DO UPDATE SET who = excluded.who",
			strings.Repeat(string(rune('a'+wrote%26)), 50_001)) // SQLite does not write unchanged pages
		wrote += 50_001
		now := sizeOf(path + "-wal")
		if now < last { // an ordinary checkpoint does not shorten the file
			cuts++
		}
		last = now
	}
	cancel()
	wg.Wait()
	t.Logf("wrote %d", wrote)
	is.Equal(cuts, 4)
	is.NoErr(db.Close())
}

func write(t testing.TB, db *sql.DB, query string, args ...any) {
	t.Helper()
	if err := inTx(context.Background(), db, func(tx *sql.Tx) error {
		_, err := tx.Exec(query, args...)
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

func sizeOf(path string) int64 {
	f, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return f.Size()
}

// TestLongReadDelaysNobodyForLong: a log that is long because of an old reader is emptied later.
func TestLongReadDelaysNobodyForLong(t *testing.T) {
	is, path := is.New(t), file(t)
	db, err := openPool(path, limits{every: 20 * time.Millisecond, most: 100_000, wait: usual.wait}, Options{})
	is.NoErr(err)
	defer func() { _ = db.Close() }()
	old := begin(t, db, &sql.TxOptions{ReadOnly: true})
	is.Equal(count(t, old, all), 0)
	start := time.Now()
	for range 6 {
		write(t, db, "INSERT INTO t (who) VALUES ($1)", strings.Repeat("x", 50_000))
		time.Sleep(50 * time.Millisecond)           // a checkpoint begins
		is.True(time.Since(start) < 15*time.Second) // with the usual busy_timeout most of them would wait for 10 s each
	}
	is.Equal(count(t, old, all), 0)
	is.NoErr(old.Rollback())
	for start := time.Now(); sizeOf(path+"-wal") > 100_000 &&
		time.Since(start) < 30*time.Second; time.Sleep(10 * time.Millisecond) {
	}
	is.True(sizeOf(path+"-wal") <= 100_000)
}

func TestCloseLeavesOneFile(t *testing.T) {
	is, path := is.New(t), file(t)
	db := reopen(t, path)
	run(t, db, "INSERT INTO t (n) VALUES (1)")
	is.True(sizeOf(path+"-wal") > 0)
	is.NoErr(db.Close())
	found, err := filepath.Glob(path + "*")
	is.NoErr(err)
	is.Equal(found, []string{path})
}

// TestCloseWaitsForATransaction: connections that are used after Close return errors instead of
// waiting forever.
func TestCloseWaitsForATransaction(t *testing.T) {
	is, path := is.New(t), file(t)
	db := reopen(t, path)
	conn, err := db.Conn(t.Context())
	is.NoErr(err)
	tx := begin(t, db, nil)
	_, err = tx.Exec("INSERT INTO t (n) VALUES (1)")
	is.NoErr(err)
	closed := make(chan error)
	go func() { closed <- db.Close() }()
	time.Sleep(50 * time.Millisecond)
	is.NoErr(tx.Commit())
	is.NoErr(<-closed)
	_, err = conn.ExecContext(t.Context(), "INSERT INTO t (n) VALUES (2)")
	is.True(errors.Is(err, sql.ErrConnDone))
	is.NoErr(conn.Close())
	is.Equal(count(t, reopen(t, path), all), 1)
}

func start(t *testing.T, path, rows string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(
		os.Environ(), "SQLITESAFE_TEST_WRITE="+path, "SQLITESAFE_TEST_ROWS="+rows, "GORACE=atexit_sleep_ms=0",
	)
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	return c, bufio.NewScanner(out)
}

// TestKilledWriter: everything that was committed before kill -9 is in the file.
func TestKilledWriter(t *testing.T) {
	is, path := is.New(t), file(t)
	child, lines := start(t, path, "1000000")
	said := 0
	for said < 200 && lines.Scan() {
		said++
	}
	is.NoErr(child.Process.Kill())
	for lines.Scan() {
		said++
	}
	is.True(child.Wait() != nil)

	db := reopen(t, path)
	rows := count(t, db, all)
	is.True(said >= 200)
	is.True(rows == said || rows == said+1) // one may have been committed before its number was printed
	is.Equal(count(t, db, "SELECT max(n) + 1 FROM t"), rows)
	usable(t, db)
}

// TestTwoProcesses writes with 4 goroutines here and one in another process.
func TestTwoProcesses(t *testing.T) {
	is, path := is.New(t), file(t)
	db := reopen(t, path)
	child, lines := start(t, path, "300")
	is.True(lines.Scan()) // it has started
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 75 {
				if err := inTx(t.Context(), db, func(tx *sql.Tx) error {
					_, err := tx.Exec("INSERT INTO t (who) VALUES ($1)", "parent")
					return err
				}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	var out bytes.Buffer
	for lines.Scan() {
		out.WriteString(lines.Text() + " ")
	}
	if err := child.Wait(); err != nil {
		t.Error(err, out.String())
	}
	wg.Wait()
	is.Equal(count(t, db, "SELECT count(*) FROM t WHERE who = 'child'"), 300)
	is.Equal(count(t, db, "SELECT count(*) FROM t WHERE who = 'parent'"), 300)
}

// TestProcessesOpenAtOnce: processes can create the file at the same time.
func TestProcessesOpenAtOnce(t *testing.T) {
	is, path := is.New(t), filepath.Join(t.TempDir(), "new.db")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			child, lines := start(t, path, "0")
			for lines.Scan() {
				t.Error(lines.Text())
			}
			if err := child.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	is.Equal(count(t, reopen(t, path), "SELECT count(*) FROM sqlite_master"), 0)
}

// TestMuchWrittenWaitsForTheLog: with transactions that write much, the log does not grow without
// end, and small transactions are not delayed.
func TestMuchWrittenWaitsForTheLog(t *testing.T) {
	is, path := is.New(t), file(t)
	const most = 4 << 20
	// only checkpoints that are waited for
	db, err := openPool(path, limits{every: time.Hour, most: most, wait: usual.wait}, Options{})
	is.NoErr(err)
	defer func() { is.NoErr(db.Close()) }()
	for i := range 40 {
		write(t, db, "INSERT INTO t (id, who, n) VALUES (1, $1, 0) ON CONFLICT (id) DO UPDATE SET who = excluded.who",
			strings.Repeat(string(rune('a'+i%26)), 1<<20))
		is.True(sizeOf(path+"-wal") < 3*most)
	}
}
