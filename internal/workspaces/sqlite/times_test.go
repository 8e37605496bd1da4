package sqlite_test

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/sqldb/sqltext"
	"github.com/tenantcontent/tenantcontent/internal/workspaces"
	"github.com/tenantcontent/tenantcontent/internal/workspaces/sqlite"
)

// TestCollated checks which columns get a collation.
func TestCollated(t *testing.T) {
	const at, day = " COLLATE timestamp ", " COLLATE date "
	for text, want := range map[string]string{
		"CREATE TABLE t (a TIMESTAMP, b text)": "CREATE TABLE t (a TIMESTAMP" +
			at + ", b text)",
		"create table if not exists t(a datetime not null default (datetime('x,')))": "create table if not exists " +
			"t(a datetime" + " " + at + "not null default (datetime('x,')))",
		"CREATE TABLE t (a DATE, PRIMARY KEY (a), CHECK (a > 1))": "CREATE TABLE t (a DATE" +
			day + ", PRIMARY KEY (a), CHECK (a > 1))",
		"CREATE TABLE t (a TIMESTAMP COLLATE NOCASE, b DATE)": "CREATE TABLE t (a TIMESTAMP COLLATE NOCASE, b DATE" +
			day + ")",
		"CREATE TABLE t (a TIMESTAMP (3) WITH TIME ZONE)": "CREATE TABLE t (a TIMESTAMP (3) WITH TIME ZONE" +
			at + ")",
		`CREATE TABLE "t" ("date" text, [at] "timestamp")`: `CREATE TABLE "t" ("date" text, [at] "timestamp"` +
			at + ")",
		"CREATE TABLE t (date, timestamp, at time)": "CREATE TABLE t (date, timestamp, at time)",
		"CREATE TABLE t AS SELECT 1 AS a":           "CREATE TABLE t AS SELECT 1 AS a",
		"CREATE INDEX i ON t (a)":                   "CREATE INDEX i ON t (a)",
		"ALTER TABLE t ADD a DATE": "ALTER TABLE t ADD a DATE\n" +
			" COLLATE date",
		"ALTER TABLE t ADD COLUMN a TIMESTAMPTZ NULL": "ALTER TABLE t ADD COLUMN a TIMESTAMPTZ" + " " + at + "NULL",
		"ALTER TABLE t RENAME COLUMN a TO b":          "ALTER TABLE t RENAME COLUMN a TO b",
		"SELECT 1":                                    "SELECT 1",
	} {
		s, err := sqltext.Single(sqltext.SQLite, text)
		is.New(t).NoErr(err)
		squeezed := func(s string) string { return strings.Join(strings.Fields(s), " ") }
		got := sqlite.Collated(s)
		if squeezed(strings.ReplaceAll(got, " ,", ",")) != squeezed(strings.ReplaceAll(want, " ,", ",")) {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
		again, err := sqltext.Single(sqltext.SQLite, got)
		is.New(t).NoErr(err)
		is.New(t).Equal(sqlite.Collated(again), got)
	}
}

// TestUpgrade checks files of releases that had no collations: their rows compare right afterwards,
// also by their indexes.
func TestUpgrade(t *testing.T) {
	is := is.New(t)
	dir := t.TempDir()
	d, err := sqlite.New(sqlite.Options{Dir: dir})
	is.NoErr(err)
	w := workspaces.Workspace{Tenant: "acme", App: "0192b2a0-0000-7000-8000-000000000001"}
	c, err := d.Connect(t.Context(), w)
	is.NoErr(err)
	is.NoErr(c.Close())
	is.NoErr(d.Close())
	var path string
	is.NoErr(filepath.WalkDir(dir, func(p string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() && strings.HasSuffix(p, ".sqlite") {
			path = p
		}
		return err
	}))
	old, err := sql.Open("sqlite", path)
	is.NoErr(err)
	for _, statement := range []string{
		"PRAGMA user_version = 0",
		"CREATE TABLE plain (k integer PRIMARY KEY, at TIMESTAMP)",
		"CREATE INDEX plain_at ON plain (at)", "CREATE VIEW all_plain AS SELECT at FROM plain",
		"INSERT INTO plain (k, at) VALUES (1, '2026-11-26 10:00:00'), (2, '2026-11-26T09:00:00.000Z'), (3, " +
			"'2026-11-26T11:00:00.000Z')",
		"CREATE TABLE twice (at DATETIME UNIQUE)",
		"INSERT INTO twice VALUES ('2026-11-26 10:00:00'), ('2026-11-26T10:00:00.000Z')",
		"CREATE TABLE rowless (at TIMESTAMP PRIMARY KEY) WITHOUT ROWID",
		"INSERT INTO rowless VALUES ('2026-11-26 10:00:00')",
	} {
		_, err := old.Exec(statement)
		is.NoErr(err)
	}
	is.NoErr(old.Close())
	d, err = sqlite.New(sqlite.Options{Dir: dir})
	is.NoErr(err)
	defer func() { _ = d.Close() }()
	for range 2 {
		c, err = d.Connect(t.Context(), w)
		is.NoErr(err)
		query := func(text string, values ...string) string {
			t.Helper()
			params := ""
			for _, v := range values {
				params += fmt.Sprintf(",%q", v)
			}
			rows, err := c.Query(t.Context(), text, []byte("["+strings.TrimPrefix(params, ",")+"]"))
			is.NoErr(err)
			return string(rows)
		}
		is.Equal(query("SELECT k FROM plain ORDER BY at"), `[{"k":2},{"k":1},{"k":3}]`)
		is.Equal(
			query("SELECT k FROM plain INDEXED BY plain_at WHERE at = $1", "2026-11-26T10:00:00.000Z"),
			`[{"k":1}]`,
		)
		is.Equal(query("SELECT count(*) AS n FROM all_plain WHERE at <= $1", "2026-11-26T10:00:00.000Z"), `[{"n":2}]`)
		is.Equal(query("SELECT count(*) AS n FROM twice"), `[{"n":2}]`)
		is.Equal(query("SELECT at FROM rowless"), `[{"at":"2026-11-26T10:00:00.000Z"}]`)
		is.NoErr(errors.Join(c.Close(), d.Close()))
		d, err = sqlite.New(sqlite.Options{Dir: dir})
		is.NoErr(err)
	}
	checked, err := sql.Open("sqlite", path)
	is.NoErr(err)
	defer func() { _ = checked.Close() }()
	var version int
	is.NoErr(checked.QueryRow("PRAGMA user_version").Scan(&version))
	is.Equal(version, 1)
}
