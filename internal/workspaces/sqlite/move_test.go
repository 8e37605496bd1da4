package sqlite_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/workspaces"
	"github.com/tenantcontent/tenantcontent/internal/workspaces/sqlite"
)

var moved = workspaces.Workspace{Tenant: "acme", App: "0192b2a0-0000-7000-8000-000000000001"}

// applied is the table of migrations as a workspace has it.
const applied = "CREATE TABLE _migrations (name TEXT PRIMARY KEY, digest TEXT NOT NULL, applied_at TEXT NOT NULL) STRICT"

// forged returns a database that some statements have made in SQLite without a guard.
func forged(t *testing.T, statements ...string) []byte {
	t.Helper()
	is, file := is.New(t), filepath.Join(t.TempDir(), "forged.sqlite")
	db, err := sql.Open("sqlite", file)
	is.NoErr(err)
	db.SetMaxOpenConns(1)
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	is.NoErr(db.Close())
	made, err := os.ReadFile(file)
	is.NoErr(err)
	return made
}

func newDriver(t *testing.T, o sqlite.Options) *sqlite.Driver {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	d, err := sqlite.New(o)
	is.New(t).NoErr(err)
	t.Cleanup(func() { is.New(t).NoErr(d.Close()) })
	return d
}

// TestImportRefusesForgedFiles: a file has nothing that a tenant's own statements could not have
// made. SQLite would not call the authorizer for it.
func TestImportRefusesForgedFiles(t *testing.T) {
	const rewrite = "PRAGMA writable_schema = 1"
	for name, c := range map[string]struct {
		statements []string
		says       string
	}{
		"pages": {
			[]string{"PRAGMA page_size = 65536", applied},
			"refused: its page_size is 65536, and that of a workspace is 4096",
		},
		"small pages": {[]string{"PRAGMA page_size = 512", applied}, "page_size"},
		"vacuum":      {[]string{"PRAGMA auto_vacuum = 1", applied}, "auto_vacuum"},
		"encoding":    {[]string{"PRAGMA encoding = 'UTF-16le'", applied}, "encoding"},
		"check": {
			[]string{applied, "CREATE TABLE a (x, CHECK (json_patch(x, x) IS NOT NULL))"},
			`refused: the table "a": The function json_patch cannot be used in a workspace: do it in JavaScript.`,
		},
		"generated": {[]string{applied, "CREATE TABLE a (x, y AS (json_patch(x, x)))"}, "json_patch"},
		"stored":    {[]string{applied, "CREATE TABLE a (x, y AS (json_patch(x, x)) STORED)"}, "json_patch"},
		"added": {
			[]string{applied, "CREATE TABLE a (x)", "ALTER TABLE a ADD COLUMN y AS (json_patch(x, x))"},
			"json_patch",
		},
		"default": {
			[]string{applied, "CREATE TABLE a (x, y DEFAULT (json_patch('{}', '{}')))"}, "json_patch",
		},
		"index": {
			[]string{applied, "CREATE TABLE a (x)", "CREATE INDEX i ON a (json_patch(x, x))"},
			`the index "i": The function json_patch`,
		},
		"partial index": {
			[]string{applied, "CREATE TABLE a (x)", "CREATE INDEX i ON a (x) WHERE json_patch(x, x) IS NOT NULL"},
			"json_patch",
		},
		"virtual table": {
			[]string{applied, "CREATE VIRTUAL TABLE a USING fts5 (x)"},
			`the table "a": CREATE VIRTUAL is not allowed in a workspace.`,
		},
		"shadow table": {[]string{applied, "CREATE VIRTUAL TABLE a USING rtree (i, x, y)"}, `the table "a"`},
		"statistics": {
			[]string{applied, "CREATE TABLE a (x PRIMARY KEY)", "INSERT INTO a VALUES (1)", "ANALYZE"},
			`the table "sqlite_stat1"`,
		},
		"view of migrations": {
			[]string{"CREATE VIEW _migrations AS SELECT 'a' AS name, 'b' AS digest"},
			`the view "_migrations" is not what`,
		},
		"other migrations": {
			[]string{"CREATE TABLE _migrations (name TEXT PRIMARY KEY, digest, applied_at)"},
			`the table "_migrations" is not what a workspace has under this name`,
		},
		"trigger": {
			[]string{
				applied, "CREATE TABLE a (x)",
				"CREATE TRIGGER g AFTER INSERT ON _migrations BEGIN INSERT INTO a SELECT count(*) FROM dbstat; END",
			},
			`the trigger "g": The table _migrations is changed by the server alone.`,
		},
		"index on it": {
			[]string{applied, "CREATE INDEX i ON _migrations (digest)"},
			`the index "i": The table _migrations is changed`,
		},
		"sequence": {
			[]string{
				applied, "CREATE TABLE a (x INTEGER PRIMARY KEY AUTOINCREMENT)", rewrite,
				"UPDATE sqlite_schema SET sql = 'CREATE TABLE sqlite_sequence(name, seq, CHECK (1))' " +
					"WHERE name = 'sqlite_sequence'",
			},
			`the table "sqlite_sequence"`,
		},
		"name": {
			[]string{applied, "CREATE TABLE a (x)", rewrite, "UPDATE sqlite_schema SET name = 'b' WHERE name = 'a'"},
			"is damaged: database disk image is malformed: malformed database schema (b)",
		},
		"blob": {
			[]string{
				applied, "CREATE TABLE a (x)", rewrite,
				"UPDATE sqlite_schema SET sql = CAST('CREATE TABLE a (x, CHECK (json_patch(x, x) IS NOT NULL))' " +
					"AS BLOB) WHERE name = 'a'",
			},
			"refused: its schema has what is no text",
		},
		"pages twice": {
			[]string{
				applied, "CREATE TABLE a (type, name, tbl_name, rootpage, sql)", rewrite,
				"UPDATE sqlite_schema SET rootpage = 1 WHERE name = 'a'",
			},
			"is damaged: ",
		},
		"control characters": {
			[]string{applied, "CREATE TABLE \"a\n\x1b[2J\" (x, CHECK (json_patch(x, x) IS NOT NULL))"},
			`the table "a\n\x1b[2J": The function json_patch`,
		},
		"columns": {[]string{applied, "CREATE TABLE a (" + columns(300) + ")"}, `too many columns`},
		"no text": {
			[]string{
				applied, "CREATE TABLE a (x UNIQUE)", rewrite,
				"UPDATE sqlite_schema SET sql = 'SELECT 1' WHERE sql IS NULL AND tbl_name = 'a'",
			},
			"is damaged: ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			is, d := is.New(t), newDriver(t, sqlite.Options{})
			err := d.Import(t.Context(), moved.Tenant, moved.App, bytes.NewReader(forged(t, c.statements...)))
			is.Equal(errs.CodeOf(err), errs.Invalid)
			message := errs.MessageOf(err)
			is.True(strings.HasPrefix(message, "the SQL database of the app "+moved.App+" in the export is "))
			if !strings.Contains(message, c.says) || strings.ContainsAny(err.Error(), "\n\x1b") {
				t.Errorf("%q", message)
			}
			there, err := d.Export(t.Context(), moved.Tenant, moved.App, &bytes.Buffer{})
			is.NoErr(err)
			is.True(!there)
		})
	}
}

// columns returns the names of n columns.
func columns(n int) string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprint("c", i)
	}
	return strings.Join(names, ", ")
}

// TestImportKeepsSchemas: what statements of a tenant have made, in whatever order and form,
// arrives.
func TestImportKeepsSchemas(t *testing.T) {
	is, from, to := is.New(t), newDriver(t, sqlite.Options{}), newDriver(t, sqlite.Options{})
	c, err := from.Connect(t.Context(), moved)
	is.NoErr(err)
	functions := "x" // of more than can have values of 4 MiB at once
	for range 30 {
		functions = "lower(" + functions + ")"
	}
	for _, s := range []string{
		"CREATE VIEW early AS SELECT * FROM late", "CREATE TABLE late (k integer)",
		"ALTER TABLE late ADD COLUMN m AS (k + 1)", "ALTER TABLE late ADD COLUMN n text DEFAULT 'n'",
		"CREATE TABLE counted (id integer PRIMARY KEY AUTOINCREMENT)", "DROP TABLE counted", // sqlite_sequence stays
		"CREATE TABLE IF NOT EXISTS \"odd \"\" name\" -- a comment; with a sign\n(a text UNIQUE, b REFERENCES " +
			"missing (x), /* ü */ PRIMARY KEY (a, b)) WITHOUT ROWID",
		"CREATE UNIQUE INDEX IF NOT EXISTS [an index] ON \"ODD \"\" name\" (lower(a)) WHERE b IS NOT NULL;",
		"CREATE TABLE copied AS SELECT 1 AS a, 'x' AS b",
		"CREATE VIEW pair (x, y) AS WITH p AS (SELECT 1 AS a) SELECT a, a FROM p -- behind\n",
		"CREATE TRIGGER main.g INSTEAD OF INSERT ON pair BEGIN INSERT INTO copied " +
			"SELECT new.x, 'it''s; ' || new.y; END",
		"CREATE VIEW of_migrations AS SELECT name FROM _migrations",
		"CREATE TABLE of_migration (name text REFERENCES _migrations)",
		"CREATE TABLE heavy (x text, y text NOT NULL AS (" + functions + ")) STRICT",
		"CREATE TABLE long (b blob, CHECK (length(b) > 1))", "INSERT INTO long SELECT randomblob(4000000)",
	} {
		if _, err := c.Query(t.Context(), s, nil); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	is.NoErr(c.Close())
	var file bytes.Buffer
	_, err = from.Export(t.Context(), moved.Tenant, moved.App, &file)
	is.NoErr(err)
	is.NoErr(to.Import(t.Context(), moved.Tenant, moved.App, &file))
	const all = "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY rowid"
	schema := map[*sqlite.Driver]string{}
	for _, d := range []*sqlite.Driver{from, to} {
		c, err := d.Connect(t.Context(), moved)
		is.NoErr(err)
		rows, err := c.Query(t.Context(), all, nil)
		is.NoErr(err)
		is.NoErr(c.Close())
		schema[d] = string(rows)
	}
	is.Equal(schema[from], schema[to])
}

// TestImportThatEnds: the end of the caller's context is not taken for a fault of the file.
func TestImportThatEnds(t *testing.T) {
	is, d := is.New(t), newDriver(t, sqlite.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := d.Import(ctx, moved.Tenant, moved.App, bytes.NewReader(forged(t, applied)))
	is.True(errors.Is(err, context.Canceled))
	is.Equal(errs.MessageOf(err), "")
}

// TestImportBlamesTheRightOne: what the disk or the time is to blame for can be tried again, what
// the file is cannot, and each is one line.
func TestImportBlamesTheRightOne(t *testing.T) {
	is, d := is.New(t), newDriver(t, sqlite.Options{})
	whole := forged(t, applied, "CREATE TABLE t (k)", "INSERT INTO t VALUES (hex(zeroblob(10000)))")
	for _, bad := range [][]byte{whole[:len(whole)/2], []byte(strings.Repeat("no database ", 1000)), whole[:50]} {
		err := d.Import(t.Context(), moved.Tenant, moved.App, bytes.NewReader(bad))
		is.Equal(errs.CodeOf(err), errs.Invalid)
		is.True(strings.HasPrefix(
			errs.MessageOf(err), "the SQL database of the app "+moved.App+" in the export is damaged: ",
		))
		is.True(!strings.Contains(err.Error(), "\n"))
	}
	for _, cause := range []error{
		context.DeadlineExceeded,
		errs.Wrap(errs.Unavailable, fs.ErrPermission, "The workspace cannot be opened: try again later."),
	} {
		err := sqlite.Faulty(t.Context(), moved.App, cause)
		is.Equal(errs.CodeOf(err), errs.Unavailable)
		is.True(strings.Contains(err.Error(), moved.App) && !strings.Contains(err.Error(), "\n"))
	}
}

// looking is a writer that looks into a folder with each write.
type looking struct {
	t     *testing.T
	dir   string
	bytes int
}

func (l *looking) Write(b []byte) (int, error) {
	left, err := os.ReadDir(l.dir)
	is := is.New(l.t)
	is.NoErr(err)
	is.Equal(len(left), 0)
	l.bytes += len(b)
	return len(b), nil
}

// TestKilledExportLeavesNoCopy: the copy that an export reads has no name, so that a process that
// is killed meanwhile leaves nothing.
func TestKilledExportLeavesNoCopy(t *testing.T) {
	is, d, to := is.New(t), newDriver(t, sqlite.Options{}), looking{t: t, dir: t.TempDir()}
	t.Setenv("TMPDIR", to.dir)
	c, err := d.Connect(t.Context(), moved)
	is.NoErr(err)
	for _, s := range []string{
		"CREATE TABLE t (b blob)",
		"INSERT INTO t WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10) " +
			"SELECT randomblob(1000000) FROM n",
	} {
		_, err := c.Query(t.Context(), s, nil)
		is.NoErr(err)
	}
	is.NoErr(c.Close())
	there, err := d.Export(t.Context(), moved.Tenant, moved.App, &to)
	is.NoErr(err)
	is.True(there && to.bytes > 10_000_000) // more than one step of the copy
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = d.Export(ctx, moved.Tenant, moved.App, &to)
	is.True(errors.Is(err, context.Canceled))
	left, err := os.ReadDir(to.dir)
	is.NoErr(err)
	is.Equal(len(left), 0)
}
