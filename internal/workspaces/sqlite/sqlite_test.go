package sqlite_test

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/workspaces"
	"github.com/tenantcontent/tenantcontent/internal/workspaces/sqlite"
	"github.com/tenantcontent/tenantcontent/internal/workspaces/workspacestest"
)

func open(t *testing.T, o workspacestest.Options) workspaces.Driver {
	t.Helper()
	d, err := sqlite.New(sqlite.Options{Dir: t.TempDir(), Quota: o.Quota, Limits: o.Limits})
	is.New(t).NoErr(err)
	t.Cleanup(func() { is.New(t).NoErr(d.Close()) })
	return d
}

func TestDriver(t *testing.T) { workspacestest.Test(t, open) }

func TestAttacks(t *testing.T) { workspacestest.TestAttacks(t, open) }

func connect(t *testing.T, o sqlite.Options, app string) workspaces.Conn {
	t.Helper()
	is := is.New(t)
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	d, err := sqlite.New(o)
	is.NoErr(err)
	t.Cleanup(func() { is.NoErr(d.Close()) })
	c, err := d.Connect(t.Context(), workspaces.Workspace{Tenant: "acme", App: app})
	is.NoErr(err)
	t.Cleanup(func() { is.NoErr(c.Close()) })
	return c
}

// TestTemporaryFiles: a statement that sorts without an end does not fill the disk.
func TestTemporaryFiles(t *testing.T) {
	is, c := is.New(t), connect(t, sqlite.Options{Quota: 1 << 20}, "a")
	for _, statement := range []string{
		"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n " +
			"ORDER BY i || hex(zeroblob(5000))",
		"WITH RECURSIVE n(i, s) AS (SELECT 1, hex(zeroblob(5000)) UNION SELECT i + 1, s FROM n) SELECT count(*) FROM n",
	} {
		_, err := c.Query(t.Context(), statement, nil)
		is.Equal(errs.CodeOf(err), errs.TooLarge)
	}
	rows, err := c.Query(t.Context(), "SELECT 1 AS k", nil)
	is.NoErr(err)
	is.Equal(string(rows), `[{"k":1}]`)
}

// TestWriters: a statement waits for another caller's, and ends with its context meanwhile.
func TestWriters(t *testing.T) {
	is, dir := is.New(t), t.TempDir()
	a, b := connect(t, sqlite.Options{Dir: dir}, "a"), connect(t, sqlite.Options{Dir: dir}, "a") // as of two processes
	_, err := a.Query(t.Context(), "CREATE TABLE w (k integer)", nil)
	is.NoErr(err)
	long, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := a.Query(
			long,
			"INSERT INTO w (k) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT (i + 1) % 1000 FROM n) SELECT i "+
				"FROM n WHERE i = -1 RETURNING k",
			nil,
		)
		done <- err
	}()
	for { // until it has begun
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		_, err := b.Query(ctx, "INSERT INTO w (k) VALUES (1)", nil)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) {
			break
		}
		is.NoErr(err)
	}
	rows, err := b.Query(t.Context(), "SELECT 1 AS k FROM w LIMIT 0", nil) // readers do not wait
	is.NoErr(err)
	is.Equal(string(rows), "[]")
	stop()
	is.True(errors.Is(<-done, context.Canceled))
	_, err = b.Query(t.Context(), "INSERT INTO w (k) VALUES (2)", nil)
	is.NoErr(err)
}

// TestFiles: each workspace is a file for its owner alone, whose name has no id in it, and what is
// idle is closed.
func TestFiles(t *testing.T) {
	is, dir := is.New(t), t.TempDir()
	d, err := sqlite.New(sqlite.Options{Dir: dir, Idle: time.Millisecond})
	is.NoErr(err)
	defer func() { is.NoErr(d.Close()) }()
	c, err := d.Connect(t.Context(), workspaces.Workspace{Tenant: "acme", App: "../../app"})
	is.NoErr(err)
	is.NoErr(c.Close())
	is.NoErr(filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		is.NoErr(err)
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) { // the log of a file that is being closed
			return nil
		}
		is.NoErr(err)
		if path != dir {
			is.Equal(info.Mode().Perm()&0o077, fs.FileMode(0))
		}
		is.True(!strings.Contains(strings.TrimPrefix(path, dir), "app") &&
			!strings.Contains(strings.TrimPrefix(path, dir), "acme"))
		return nil
	}))
	for !closed(t, dir) {
		time.Sleep(time.Millisecond)
	}
}

// TestDropInUse: a caller that still uses a workspace that was dropped does no harm to the one that
// is made in its place.
func TestDropInUse(t *testing.T) {
	is, dir, w := is.New(t), t.TempDir(), workspaces.Workspace{Tenant: "acme", App: "a"}
	d, err := sqlite.New(sqlite.Options{Dir: dir})
	is.NoErr(err)
	defer func() { is.NoErr(d.Close()) }()
	run := func(c workspaces.Conn, statement string) string {
		rows, err := c.Query(t.Context(), statement, nil)
		is.NoErr(err)
		return string(rows)
	}
	old, err := d.Connect(t.Context(), w)
	is.NoErr(err)
	run(old, "CREATE TABLE t (k integer)")
	is.NoErr(d.Drop(t.Context(), w.Tenant, w.App))
	made, err := d.Connect(t.Context(), w)
	is.NoErr(err)
	run(made, "CREATE TABLE t (k integer)")
	run(made, "INSERT INTO t (k) VALUES (1)")
	run(old, "INSERT INTO t (k) VALUES (2)")
	is.NoErr(old.Close())
	is.True(!closed(t, dir)) // its log is still there
	other, err := d.Connect(t.Context(), w)
	is.NoErr(err)
	is.Equal(run(other, "SELECT k FROM t"), `[{"k":1}]`)
	is.NoErr(other.Close())
	is.NoErr(made.Close())
}

// closed reports whether no log of a file is left, which the last connection removes.
func closed(t *testing.T, dir string) bool {
	logs, err := filepath.Glob(filepath.Join(dir, "*", "*-wal"))
	is.New(t).NoErr(err)
	return len(logs) == 0
}

func BenchmarkQuery(b *testing.B) {
	d, err := sqlite.New(sqlite.Options{Dir: b.TempDir()})
	is.New(b).NoErr(err)
	defer func() { is.New(b).NoErr(d.Close()) }()
	workspacestest.Benchmark(b, d)
}
