package sqlite_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/database/sqlite"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/store/engines"
)

// large makes a database of some pages, and returns its URL.
func large(t *testing.T, path string) string {
	t.Helper()
	is, url := is.New(t), "sqlite:"+path
	db, err := engines.Open(url)
	is.NoErr(err)
	for _, text := range []string{
		"CREATE TABLE t (name TEXT NOT NULL PRIMARY KEY)",
		"WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 5000) INSERT INTO t " +
			"SELECT printf('name-%09d', n) FROM c",
	} {
		_, err = db.ExecContext(t.Context(), text)
		is.NoErr(err)
	}
	is.NoErr(engines.Check(t.Context(), db))
	is.NoErr(db.Close())
	return url
}

// spoil overwrites a page in the middle of a file.
func spoil(t *testing.T, path string) {
	t.Helper()
	is := is.New(t)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	is.NoErr(err)
	info, err := f.Stat()
	is.NoErr(err)
	_, err = f.WriteAt(bytes.Repeat([]byte{0xff}, 4096), info.Size()/2/4096*4096)
	is.NoErr(err)
	is.NoErr(f.Close())
}

// TestCheckDamaged: a damaged file is refused with what to do: a page, its length, its beginning.
func TestCheckDamaged(t *testing.T) {
	is, path := is.New(t), filepath.Join(t.TempDir(), "a.db")
	url := large(t, path)
	spoil(t, path)
	db, err := engines.Open(url)
	is.NoErr(err)
	err = engines.Check(t.Context(), db)
	is.NoErr(db.Close())
	is.Equal(errs.CodeOf(err), errs.Unavailable)
	is.True(strings.Contains(err.Error(), path+" is damaged: "))
	is.True(strings.Contains(err.Error(), "--salvage"))

	is.NoErr(os.Truncate(path, 8192))
	_, err = engines.Open(url)
	is.Equal(errs.CodeOf(err), errs.Unavailable)
	is.True(strings.Contains(err.Error(), "it has 8192 bytes, and its header says "))

	f, err := os.OpenFile(path, os.O_RDWR, 0)
	is.NoErr(err)
	_, err = f.WriteAt(make([]byte, 100), 0)
	is.NoErr(err)
	is.NoErr(f.Close())
	_, err = engines.Open(url)
	is.Equal(errs.CodeOf(err), errs.Invalid)
	is.True(strings.Contains(err.Error(), "its beginning is damaged"))
}

// TestDamagedBackup: the backup of a damaged database fails, is kept beside, replaces nothing, and
// what can be read of it is restored.
func TestDamagedBackup(t *testing.T) {
	is, path, folder, to := is.New(t), filepath.Join(t.TempDir(), "a.db"), t.TempDir(), emptyPlace(t)
	files, err := engines.Files(large(t, path), "")
	is.NoErr(err)
	good := filepath.Join(folder, "backup.tar")
	_, err = sqlite.BackupFile(t.Context(), files, good, nil)
	is.NoErr(err)
	_, err = sqlite.BackupFile(t.Context(), files, good, nil)
	is.Equal(errs.CodeOf(err), errs.Invalid) // it exists
	spoil(t, path)
	for _, kept := range []string{"second.tar.damaged", "second.tar.damaged.2"} {
		_, err = sqlite.BackupFile(t.Context(), files, filepath.Join(folder, "second.tar"), nil)
		is.True(errors.Is(err, sqlite.ErrDamaged))
		is.True(strings.Contains(err.Error(), path+" is damaged: "))
		is.True(strings.Contains(err.Error(), "kept in "+filepath.Join(folder, kept)+";"))
	}
	left, err := os.ReadDir(folder)
	is.NoErr(err)
	is.Equal(len(left), 3) // and nothing temporary

	damaged, err := os.ReadFile(filepath.Join(folder, "second.tar.damaged"))
	is.NoErr(err)
	err = sqlite.Restore(t.Context(), bytes.NewReader(damaged), to, nil)
	is.Equal(errs.CodeOf(err), errs.Invalid)
	is.True(strings.Contains(err.Error(), "--salvage"))
	nothing(t, to)
	found, err := sqlite.Salvage(t.Context(), bytes.NewReader(damaged), to, nil)
	is.NoErr(err)
	is.Equal(len(found.Notes), 0)
	is.Equal(len(found.Databases), 1)
	table := found.Databases[0].Tables[0]
	is.True(table.Taken > 4000 && table.Taken <= 5000)
	db, err := engines.Open("sqlite:" + to.Database)
	is.NoErr(err)
	defer func() { _ = db.Close() }()
	var n int64
	is.NoErr(db.QueryRowContext(t.Context(), "SELECT count(*) FROM t").Scan(&n))
	is.Equal(n, table.Taken)

	cut := emptyPlace(t) // also of a file that ends too early
	found, err = sqlite.Salvage(t.Context(), bytes.NewReader(damaged[:len(damaged)*2/3]), cut, nil)
	is.NoErr(err)
	is.True(len(found.Notes) > 0)
	is.True(found.Databases[0].Tables[0].Taken > 1000)
	is.NoErr(os.Truncate(path, 200<<10)) // of a file that was cut
	_, err = sqlite.BackupFile(t.Context(), files, filepath.Join(folder, "third.tar"), nil)
	is.True(errors.Is(err, sqlite.ErrDamaged))
	is.True(strings.Contains(err.Error(), "kept in "))
	whole, err := os.ReadFile(good)
	is.NoErr(err)
	found, err = sqlite.Salvage(t.Context(), bytes.NewReader(whole), emptyPlace(t), nil)
	is.NoErr(err)
	is.Equal(len(found.Notes)+len(found.Databases), 0) // nothing is damaged
}

// TestDamagedWorkspace: a backup checks the SQL databases of apps, those with indexes of times
// among them, and what can be read of a damaged one is restored.
func TestDamagedWorkspace(t *testing.T) {
	is, folder, to := is.New(t), t.TempDir(), emptyPlace(t)
	url := large(t, filepath.Join(folder, "a.db"))
	d, err := engines.OpenWorkspaces("", url, 0)
	is.NoErr(err)
	query(
		t, d,
		"CREATE TABLE orders (id INTEGER PRIMARY KEY, at TIMESTAMP, day DATE, note TEXT, CHECK (length(note) > 0))",
	)
	query(t, d, "CREATE INDEX orders_at ON orders (at)")
	query(t, d, "CREATE UNIQUE INDEX orders_day ON orders (day, id)")
	query(t, d, "CREATE TABLE kept (at TIMESTAMP UNIQUE)")
	query(t, d, "INSERT INTO kept VALUES ('2026-11-26 10:00:00'), ('2026-11-26T11:00:00.000Z')")
	query(
		t, d,
		"WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 4000) INSERT INTO orders "+
			"SELECT n, datetime(n, 'unixepoch'), date(n * 86400, 'unixepoch'), printf('note %0100d', n) FROM c",
	)
	is.NoErr(d.Close())
	files, err := engines.Files(url, "")
	is.NoErr(err)
	whole := backup(t, files)
	is.NoErr(sqlite.Restore(t.Context(), bytes.NewReader(whole), emptyPlace(t), nil))

	found, err := filepath.Glob(filepath.Join(files.Workspaces, "*", "*.sqlite"))
	is.NoErr(err)
	is.Equal(len(found), 1)
	spoil(t, found[0])
	var file bytes.Buffer
	err = sqlite.Backup(t.Context(), files, &file, folder, nil)
	is.True(errors.Is(err, sqlite.ErrDamaged))
	is.True(strings.Contains(err.Error(), found[0]+" is damaged: "))
	is.True(!strings.Contains(err.Error(), "collation"))
	salvaged, err := sqlite.Salvage(t.Context(), &file, to, nil)
	is.NoErr(err)
	is.Equal(len(salvaged.Databases), 1)
	is.NoErr(salvaged.Databases[0].Err)
	is.True(strings.HasPrefix(salvaged.Databases[0].Name, "workspaces/"))
	d, err = engines.OpenWorkspaces(to.Workspaces, "", 0)
	is.NoErr(err)
	defer func() { is.NoErr(d.Close()) }()
	is.Equal(query(t, d, "SELECT count(*) AS n FROM kept WHERE at = '2026-11-26T10:00:00.000Z'"), `[{"n":1}]`)
	is.Equal(
		query(
			t, d,
			"SELECT count(*) BETWEEN 3000 AND 4000 AS n FROM orders INDEXED BY orders_at WHERE at >= '1970-01-01'",
		),
		`[{"n":1}]`,
	)
}

// TestUncopyable: a database that cannot be copied leaves no backup.
func TestUncopyable(t *testing.T) {
	is, path, folder := is.New(t), filepath.Join(t.TempDir(), "a.db"), t.TempDir()
	files, err := engines.Files(large(t, path), "")
	is.NoErr(err)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	is.NoErr(err)
	_, err = f.WriteAt(make([]byte, 100), 0)
	is.NoErr(err)
	is.NoErr(f.Close())
	_, err = sqlite.BackupFile(t.Context(), files, filepath.Join(folder, "b.tar"), nil)
	is.True(errors.Is(err, sqlite.ErrDamaged))
	is.True(strings.Contains(err.Error(), "cannot be copied"))
	left, err := os.ReadDir(folder)
	is.NoErr(err)
	is.Equal(len(left), 0)
}

// TestLeftovers: the next backup removes what a killed one has left, and nothing of one that runs
// or of others.
func TestLeftovers(t *testing.T) {
	is, folder, from := is.New(t), t.TempDir(), source(t)
	killed := filepath.Join(folder, ".backup-123")
	others := filepath.Join(folder, ".backup-2024")
	for _, path := range []string{killed, others} {
		is.NoErr(os.Mkdir(path, 0o700))
		is.NoErr(os.WriteFile(filepath.Join(path, "copy.sqlite"), []byte("half"), 0o600))
	}
	is.NoErr(os.WriteFile(filepath.Join(killed, "lock"), []byte("tenantcontent backup\n"), 0o600))
	var file bytes.Buffer
	is.NoErr(sqlite.Backup(t.Context(), from, &file, folder, func(string, int64, int64) {
		is.NoErr(sqlite.Backup(t.Context(), from, &bytes.Buffer{}, folder, nil)) // beside the other one
	}))
	left, err := os.ReadDir(folder)
	is.NoErr(err)
	is.Equal(len(left), 1)
	is.Equal(left[0].Name(), ".backup-2024")
}
