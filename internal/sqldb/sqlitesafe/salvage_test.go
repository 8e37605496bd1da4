package sqlitesafe_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/matryer/is"
	_ "modernc.org/sqlite" // opens files as other programs do

	"github.com/tenantcontent/tenantcontent/internal/sqldb/sqlitesafe"
)

// plain opens a file as other programs do.
func plain(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path)
	is.New(t).NoErr(err)
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// filled creates a database with rows in a table of each sort, and returns the pages of tables by
// their names.
func filled(t *testing.T, path string) map[string][]int {
	t.Helper()
	is, db := is.New(t), plain(t, path)
	for _, text := range []string{
		"CREATE TABLE numbered (id text NOT NULL, n integer NOT NULL, text text, PRIMARY KEY (id)) STRICT",
		"CREATE TABLE keyed (a text NOT NULL, b integer NOT NULL, text text, PRIMARY KEY (a, b)) STRICT, WITHOUT ROWID",
		"CREATE TABLE child (id text NOT NULL REFERENCES numbered, of text, loud text AS (upper(of)) STORED)",
		"CREATE TABLE total (n integer NOT NULL)", "CREATE INDEX child_of ON child (of)",
		"INSERT INTO total VALUES (0)",
		"CREATE TRIGGER counts AFTER INSERT ON numbered BEGIN UPDATE total SET n = n + 1; END",
		"CREATE TRIGGER counts_less AFTER DELETE ON numbered BEGIN UPDATE total SET n = n - 1; END",
		"CREATE VIEW seen AS SELECT id FROM numbered",
		"WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 2000) INSERT INTO numbered " +
			"SELECT printf('id-%05d', n), n, hex(zeroblob(50)) FROM c",
		"WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 2000) INSERT INTO keyed " +
			"SELECT printf('k%02d', n / 100), n, hex(zeroblob(50)) FROM c",
		"INSERT INTO child (id, of) SELECT id, 'x' FROM numbered",
	} {
		_, err := db.ExecContext(t.Context(), text)
		is.NoErr(err)
	}
	rows, err := db.QueryContext(t.Context(), "SELECT name, pageno FROM dbstat WHERE pagetype = 'leaf' ORDER BY path")
	is.NoErr(err)
	pages := map[string][]int{}
	for rows.Next() {
		var name string
		var page int
		is.NoErr(rows.Scan(&name, &page))
		pages[name] = append(pages[name], page)
	}
	is.NoErr(rows.Close())
	is.NoErr(db.Close())
	return pages
}

// spoil overwrites pages of a file.
func spoil(t *testing.T, path string, pages ...int) {
	t.Helper()
	is := is.New(t)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	is.NoErr(err)
	for _, page := range pages {
		_, err = f.WriteAt([]byte(strings.Repeat("\xff", 4096)), int64(page-1)*4096)
		is.NoErr(err)
	}
	is.NoErr(f.Close())
}

// TestSalvage: all rows but those on damaged pages are copied, in tables of each sort, however many
// pages are damaged.
func TestSalvage(t *testing.T) {
	middle := func(pages []int, n int) []int { return pages[len(pages)/2 : len(pages)/2+n] }
	for _, test := range []struct {
		name  string
		spoil func(pages map[string][]int) []int
		table string // in which rows are lost
		least int64  // of 2,000 rows
	}{
		{"a page in the middle", func(p map[string][]int) []int { return middle(p["numbered"], 1) }, "numbered", 1950},
		{"the first", func(p map[string][]int) []int { return p["numbered"][:1] }, "numbered", 1950},
		{"the last", func(p map[string][]int) []int { return p["numbered"][len(p["numbered"])-1:] }, "numbered", 1950},
		{"two in a row and one elsewhere", func(p map[string][]int) []int {
			return append(middle(p["numbered"], 2), p["numbered"][3])
		}, "numbered", 1880},
		{"of a table without row ids", func(p map[string][]int) []int { return middle(p["keyed"], 1) }, "keyed", 1950},
		{"of an index", func(p map[string][]int) []int { return p["child_of"][:2] }, "", 2000},
	} {
		t.Run(test.name, func(t *testing.T) {
			is, from, to := is.New(t), filepath.Join(t.TempDir(), "old"), filepath.Join(t.TempDir(), "new")
			spoil(t, from, test.spoil(filled(t, from))...)
			is.True(sqlitesafe.Check(t.Context(), from) != nil)
			all, err := sqlitesafe.Salvage(t.Context(), from, to, nil)
			is.NoErr(err)
			for _, table := range all {
				switch table.Table {
				case test.table:
					is.True(table.Taken >= test.least && table.Taken < 2000)
					if test.table == "numbered" { // its index shows the number
						is.Equal(table.Lost, 2000-table.Taken)
					}
					is.True(table.Damaged > 0)
				case "total":
					is.Equal(table, sqlitesafe.Salvaged{Table: "total", Taken: 1})
				default:
					is.Equal(table, sqlitesafe.Salvaged{Table: table.Table, Taken: 2000})
				}
			}
			is.NoErr(sqlitesafe.Check(t.Context(), to))
			var n, loud int
			is.NoErr(plain(t, to).QueryRowContext(
				t.Context(),
				"SELECT (SELECT count(*) FROM seen), (SELECT count(*) FROM child WHERE loud = 'X')",
			).Scan(&n, &loud))
			is.Equal(loud, 2000)
		})
	}
}

// TestSalvageWithRules: rows derived by triggers are correct, and rows that refer to lost ones are
// removed unless they are adopted.
func TestSalvageWithRules(t *testing.T) {
	is, from, to := is.New(t), filepath.Join(t.TempDir(), "old"), filepath.Join(t.TempDir(), "new")
	pages := filled(t, from)["numbered"]
	spoil(t, from, pages[len(pages)/2])
	adopted := 0
	all, err := sqlitesafe.Salvage(t.Context(), from, to, &sqlitesafe.Rules{
		Derived: func(table string) bool { return table == "keyed" },
		Adopt: func(ctx context.Context, db *sql.DB) error {
			adopted++
			_, err := db.ExecContext(
				ctx,
				"UPDATE child SET id = 'id-00001' WHERE rowid = (SELECT min(rowid) FROM child c "+
					"WHERE NOT EXISTS (SELECT 1 FROM numbered n WHERE n.id = c.id))",
			)
			return err
		},
	})
	is.NoErr(err)
	is.Equal(adopted, 1)
	got := map[string]sqlitesafe.Salvaged{}
	for _, table := range all {
		got[table.Table] = table
	}
	lost := got["numbered"].Lost
	is.True(lost > 0)
	is.Equal(got["child"].Removed, lost-1)
	is.Equal(got["child"].Taken, 2000-lost+1)
	_, read := got["keyed"]
	is.True(!read)
}

// TestSalvageNothing: a file that is not a database, or whose list of tables is damaged, is an
// error, and no empty database is created.
func TestSalvageNothing(t *testing.T) {
	is, from := is.New(t), filepath.Join(t.TempDir(), "old")
	filled(t, from)
	spoil(t, from, 1)
	_, err := sqlitesafe.Salvage(t.Context(), from, filepath.Join(t.TempDir(), "new"), nil)
	is.True(err != nil)
	is.True(sqlitesafe.Damaged(err))
	_, err = sqlitesafe.Salvage(t.Context(), filepath.Join(t.TempDir(), "none"), filepath.Join(t.TempDir(), "new"), nil)
	is.True(err != nil)
	is.True(!sqlitesafe.Damaged(fmt.Errorf("other")))
}
