package engines_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/store/engines"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

func TestBadURLs(t *testing.T) {
	for _, url := range []string{
		"", "sqlite", "sqlite:", "sqlite::memory:", "mysql://u:hunter2@h/d", "hunter2", "file:hunter2", "postgres",
		"postgres://u:hunter2%zz@h/d", "postgres://u:hunter2@h:port/d",
		"postgres://u:hunter2@h:99999/d", "postgres://u:hunter2@[::1/d",
		"postgres://u:hunter2@h/d?pool_max_conns=hunter2",
		"postgres://u:hunter2@h/d?pool_max_conns=0", "postgres://u:hunter2@h/d?sslmode=hunter2",
		"postgres://u:hunter2#x@h/d", "postgres:u:hunter2@h/d",
		"postgres://u:hun ter2@h/d\x00", "postgres://u:hunter2@h/d?connect_timeout=hunter2",
		"postgres://u:x@h/d?password=hunter2&timezone=hunter2",
		"postgres://h/d?a;b=hunter2", "postgres://u:hunter2/x@h/d",
		"postgres://u:hunter2@h/d?row_level_security=on&a%zz=1", " postgres://u:hunter2@h/d",
		"postgres://u:hunter2@h/d?row_level_security=maybe",
		"postgres://u:hunter2@h/d?row_level_security=on&row_level_security=off",
	} {
		t.Run(url, func(t *testing.T) {
			is := is.New(t)
			db, err := engines.Open(url)
			if err == nil {
				_ = db.Close()
			}
			is.Equal(errs.CodeOf(err), errs.Invalid)
			is.True(!strings.Contains(err.Error(), "hunter2"))
			is.True(!strings.Contains(errs.MessageOf(err), "hunter2"))
			is.True(!strings.Contains(err.Error(), "ter2"))
		})
	}
}

// TestUnreachableServer: the error of a failed connection does not contain the password.
func TestUnreachableServer(t *testing.T) {
	is := is.New(t)
	db, err := engines.Open("postgres://u:hunter2@127.0.0.1:1/d?sslmode=disable")
	is.NoErr(err)
	defer func() { _ = db.Close() }()
	err = bunx.Err(db.PingContext(t.Context()), "")
	is.Equal(errs.CodeOf(err), errs.Unavailable)
	is.True(!strings.Contains(err.Error(), "hunter2"))
}

func TestFileModes(t *testing.T) {
	is, path := is.New(t), filepath.Join(t.TempDir(), "data", "deep", "test.db")
	db, err := engines.Open("sqlite:" + path)
	is.NoErr(err)
	defer func() { _ = db.Close() }()
	_, err = db.ExecContext(t.Context(), "CREATE TABLE t (n)")
	is.NoErr(err)
	for _, folder := range []string{filepath.Dir(path), filepath.Dir(filepath.Dir(path))} {
		info, err := os.Stat(folder)
		is.NoErr(err)
		is.Equal(info.Mode().Perm(), os.FileMode(0o700))
	}
	for _, file := range []string{path, path + "-wal", path + "-shm"} {
		info, err := os.Stat(file)
		is.NoErr(err)
		is.Equal(info.Mode().Perm(), os.FileMode(0o600))
	}
}

func TestSQLiteKeepsWhatIsThere(t *testing.T) {
	is, path := is.New(t), filepath.Join(t.TempDir(), "a?b #%.db")
	for i := range 2 {
		db, err := engines.Open("sqlite:" + path)
		is.NoErr(err)
		if i == 0 {
			_, err = db.ExecContext(t.Context(), "CREATE TABLE t (n)")
			is.NoErr(err)
		}
		var n int
		is.NoErr(db.QueryRowContext(t.Context(), "SELECT count(*) FROM t").Scan(&n))
		is.NoErr(db.Close())
	}
}

func TestNotADatabase(t *testing.T) {
	is, dir := is.New(t), t.TempDir()
	text := filepath.Join(dir, "notes.txt")
	is.NoErr(os.WriteFile(text, []byte(strings.Repeat("not a database ", 1000)), 0o600))
	for _, path := range []string{dir, text, filepath.Join(text, "x.db")} {
		_, err := engines.Open("sqlite:" + path)
		is.Equal(errs.CodeOf(err), errs.Invalid)
		is.True(strings.Contains(errs.MessageOf(err), path))
	}
}

// TestRowLevelSecurity: row_level_security in a URL is not passed to the server, which has the
// setting row_security.
func TestRowLevelSecurity(t *testing.T) {
	dbtest.Server(t)
	for _, value := range []string{"on", "off"} {
		is := is.New(t)
		db, err := engines.Open(strings.Replace(
			dbtest.PostgresURL(t), "row_level_security=on", "row_level_security="+value, 1,
		))
		is.NoErr(err)
		defer func() { _ = db.Close() }()
		ctx, c := bunx.For(t.Context(), db, "acme")
		var tenant, setting string
		is.NoErr(c.One(
			ctx, "",
			"SELECT coalesce(current_setting('tenantcontent.tenant', true), ''), current_setting('row_security')",
			nil, &tenant, &setting,
		))
		is.Equal(tenant, map[string]string{"on": "acme", "off": ""}[value])
		is.Equal(setting, "on")
	}
}
