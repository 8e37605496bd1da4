package sqlite_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/database/sqlite"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/store/engines"
	"github.com/tenantcontent/tenantcontent/internal/workspaces"
)

// source returns the files of a database with one row, and of a workspace with one row that was
// just written.
func source(t *testing.T) sqlite.Files {
	t.Helper()
	is, url := is.New(t), "sqlite:"+filepath.Join(t.TempDir(), "data", "source.db")
	db, err := engines.Open(url)
	is.NoErr(err)
	t.Cleanup(func() { _ = db.Close() })
	_, err = db.ExecContext(t.Context(), "CREATE TABLE t (name TEXT)")
	is.NoErr(err)
	_, err = db.ExecContext(t.Context(), "INSERT INTO t VALUES ('kept')")
	is.NoErr(err)
	d, err := engines.OpenWorkspaces("", url, 0)
	is.NoErr(err)
	t.Cleanup(func() { _ = d.Close() })
	query(t, d, "CREATE TABLE orders (id INTEGER)")
	query(t, d, "INSERT INTO orders VALUES (7)")
	files, err := engines.Files(url, "")
	is.NoErr(err)
	return files
}

func query(t *testing.T, d workspaces.Driver, statement string) string {
	t.Helper()
	is := is.New(t)
	c, err := d.Connect(t.Context(), workspaces.Workspace{Tenant: "acme", App: "shop"})
	is.NoErr(err)
	defer func() { _ = c.Close() }()
	rows, err := c.Query(t.Context(), statement, nil)
	is.NoErr(err)
	return string(rows)
}

func backup(t *testing.T, from sqlite.Files) []byte {
	t.Helper()
	var to bytes.Buffer
	is.New(t).NoErr(sqlite.Backup(t.Context(), from, &to, t.TempDir(), nil))
	return to.Bytes()
}

func emptyPlace(t *testing.T) sqlite.Files {
	t.Helper()
	to, err := engines.Files("sqlite:"+filepath.Join(t.TempDir(), "restored", "copy.db"), "")
	is.New(t).NoErr(err)
	return to
}

// TestBackup: what is restored is what was there, in the database and in workspaces, while both are
// in use.
func TestBackup(t *testing.T) {
	is, from, to := is.New(t), source(t), emptyPlace(t)
	var phases []string
	progress := func(phase string, done, all int64) {
		if len(phases) == 0 || phases[len(phases)-1] != phase {
			phases = append(phases, phase)
		}
		is.True(done <= all)
	}
	var file bytes.Buffer
	temp := t.TempDir()
	is.NoErr(sqlite.Backup(t.Context(), from, &file, temp, progress))
	is.NoErr(sqlite.Restore(t.Context(), bytes.NewReader(file.Bytes()), to, progress))
	is.Equal(phases[1], "copying database.sqlite")
	is.Equal(phases[len(phases)-1], "checking database.sqlite")
	left, err := os.ReadDir(temp)
	is.NoErr(err)
	is.Equal(len(left), 0)
	left, err = os.ReadDir(filepath.Dir(to.Database))
	is.NoErr(err)
	is.Equal(len(left), 2) // the database and the folder of workspaces

	db, err := engines.Open("sqlite:" + to.Database)
	is.NoErr(err)
	defer func() { _ = db.Close() }()
	var name string
	is.NoErr(db.QueryRowContext(t.Context(), "SELECT name FROM t").Scan(&name))
	is.Equal(name, "kept")
	d, err := engines.OpenWorkspaces("", "sqlite:"+to.Database, 0)
	is.NoErr(err)
	defer func() { _ = d.Close() }()
	is.Equal(query(t, d, "SELECT id FROM orders"), `[{"id":7}]`)

	is.Equal(errs.CodeOf(sqlite.Restore(t.Context(), bytes.NewReader(file.Bytes()), to, nil)), errs.Conflict)
	for _, end := range []string{"-wal", "-shm", "-journal"} { // which SQLite would play into the restored database
		left := emptyPlace(t)
		is.NoErr(os.MkdirAll(filepath.Dir(left.Database), 0o700))
		is.NoErr(os.WriteFile(left.Database+end, []byte("left"), 0o600))
		is.Equal(errs.CodeOf(sqlite.Restore(t.Context(), bytes.NewReader(file.Bytes()), left, nil)), errs.Conflict)
		is.True(!exists(left.Database))
	}
	other := emptyPlace(t)
	other.Workspaces = to.Workspaces
	is.Equal(errs.CodeOf(sqlite.Restore(t.Context(), bytes.NewReader(file.Bytes()), other, nil)), errs.Conflict)
	is.Equal(query(t, d, "SELECT id FROM orders"), `[{"id":7}]`)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// nothing checks that a failed restore has left nothing.
func nothing(t *testing.T, to sqlite.Files) {
	t.Helper()
	left, err := os.ReadDir(filepath.Dir(to.Database))
	if err == nil && len(left) > 0 {
		t.Errorf("%s is left", left[0].Name())
	} else if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// TestRestoreRefuses: a file that is cut anywhere, or has another byte anywhere, restores nothing.
func TestRestoreRefuses(t *testing.T) {
	whole := backup(t, source(t))
	refuse := func(t *testing.T, file []byte, reason string) {
		t.Helper()
		is, to := is.New(t), emptyPlace(t)
		err := sqlite.Restore(t.Context(), bytes.NewReader(file), to, nil)
		is.Equal(errs.CodeOf(err), errs.Invalid)
		if !strings.Contains(errs.MessageOf(err), reason) {
			t.Errorf("%v does not contain %q", err, reason)
		}
		nothing(t, to)
	}
	end := bytes.LastIndex(whole, []byte("SHA256SUMS")) // of the last file's header
	for cut := 0; cut < end+512; cut += 509 {
		refuse(t, whole[:cut], "")
	}
	for _, text := range []string{"kept", "database.sqlite", "orders"} {
		changed := bytes.Clone(whole)
		changed[bytes.Index(changed, []byte(text))]++
		refuse(t, changed, "")
	}
	refuse(t, nil, "not complete")
	refuse(t, []byte(strings.Repeat("no tar ", 1000)), "no backup")
	refuse(t, bytes.Replace(whole, []byte(`"format":1`), []byte(`"format":2`), 1), "format 2")
	for _, name := range []string{"../evil", "/evil", "workspaces/../../evil.sqlite", "evil", "workspaces/x/y.sqlite"} {
		refuse(t, withFile(t, whole, name), "unexpected")
	}
	refuse(t, withFile(t, whole, "database.sqlite"), "unexpected")
}

// withFile returns a backup with a file more before the last one.
func withFile(t *testing.T, whole []byte, name string) []byte {
	t.Helper()
	is := is.New(t)
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for r := tar.NewReader(bytes.NewReader(whole)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		is.NoErr(err)
		if h.Name == "SHA256SUMS" {
			is.NoErr(w.WriteHeader(&tar.Header{Name: name, Size: 4, Mode: 0o600}))
			_, err = w.Write([]byte("evil"))
			is.NoErr(err)
		}
		is.NoErr(w.WriteHeader(h))
		_, err = io.Copy(w, r)
		is.NoErr(err)
	}
	is.NoErr(w.Close())
	return out.Bytes()
}

// TestBackupEnds: with its context, and what a killed restore has left is no obstacle.
func TestBackupEnds(t *testing.T) {
	is, from, to, temp := is.New(t), source(t), emptyPlace(t), t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	err := sqlite.Backup(ctx, from, io.Discard, temp, func(string, int64, int64) { cancel() })
	is.True(errors.Is(err, context.Canceled))
	left, err := os.ReadDir(temp)
	is.NoErr(err)
	is.Equal(len(left), 0)

	ctx, cancel = context.WithCancel(t.Context())
	file := backup(t, from)
	err = sqlite.Restore(ctx, bytes.NewReader(file), to, func(string, int64, int64) { cancel() })
	is.True(errors.Is(err, context.Canceled))
	nothing(t, to)

	for _, name := range []string{
		to.Database + ".restoring", to.Database + ".restoring-journal",
		filepath.Join(to.Workspaces+".restoring", "x", "y.sqlite"),
	} {
		is.NoErr(os.MkdirAll(filepath.Dir(name), 0o700))
		is.NoErr(os.WriteFile(name, []byte("half"), 0o600))
	}
	is.NoErr(sqlite.Restore(t.Context(), bytes.NewReader(file), to, nil))

	missing := sqlite.Files{Database: filepath.Join(t.TempDir(), "none.db")}
	is.Equal(errs.CodeOf(sqlite.Backup(t.Context(), missing, io.Discard, temp, nil)), errs.Invalid)
	_, err = engines.Files("postgres://localhost/x", "")
	is.Equal(errs.CodeOf(err), errs.Invalid)
	kept, err := engines.Files("sqlite:a.db", "postgres://localhost/x")
	is.NoErr(err)
	is.Equal(kept, sqlite.Files{Database: "a.db"})
}
