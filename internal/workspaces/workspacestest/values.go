package workspacestest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/errs"
)

// at are times in their order, each in the forms in which a column may hold it: as JavaScript's
// Date makes it, and as SQL does.
var at = [][]string{
	{"2025-12-31T23:59:59.999Z", "2025-12-31 23:59:59.999"},
	{"2026-11-26T00:00:00.000Z", "2026-11-26 00:00:00", "2026-11-26", "2026-11-26T02:00:00.000+02:00"},
	{"2026-11-26T10:00:00.000Z", "2026-11-26 10:00:00", "2026-11-26 10:00", "2026-11-26T05:00:00-05:00"},
	{"2026-11-26T10:00:00.500Z", "2026-11-26 10:00:00.5"},
	{"2026-11-26T10:00:00.500001Z", "2026-11-26 10:00:00.500001"},
	{"2026-11-27T00:00:00.000Z", "2026-11-27 00:00:00"},
}

// testTimes checks that reading, writing and comparing the columns of times agree, whatever form
// their values have.
func testTimes(t *testing.T, open Open) {
	d := open(t, Options{})
	c := connect(t, d, one)
	for n, declared := range []string{
		"TIMESTAMP", "timestamptz", "TIMESTAMP(6)", "TIMESTAMP WITH TIME ZONE", "DATETIME",
	} {
		if declared == "DATETIME" && d.Engine() == "postgres" {
			continue
		}
		t.Run(declared, func(t *testing.T) {
			is := is.New(t)
			table := fmt.Sprintf("times%d", n)
			c.query("CREATE TABLE " + table + " (k integer PRIMARY KEY, at " + declared +
				" /* of it */ NOT NULL, other " + declared + ") -- all")
			c.query("CREATE INDEX " + table + "_at ON " + table + " (at)")
			k := 0
			order := map[int]int{} // of a row by its key
			for i := range at {    // the newest first
				for _, form := range at[len(at)-1-i] {
					if strings.HasSuffix(form, ":00") && len(form) > 20 {
						// the offset of a literal is PostgreSQL's to ignore
						c.query("INSERT INTO "+table+" (k, at, other) VALUES ($1, $2, $2)", k, form)
					} else {
						c.query("INSERT INTO "+table+" (k, at, other) VALUES ($1, '"+form+"', $2)", k, form)
					}
					order[k] = len(at) - 1 - i
					k++
				}
			}
			keys := func(where string, values ...any) (all []int) {
				var rows []struct{ K int }
				is.NoErr(json.Unmarshal(
					[]byte(c.query("SELECT k FROM "+table+" WHERE "+where+" ORDER BY k", values...)), &rows,
				))
				for _, r := range rows {
					all = append(all, r.K)
				}
				return all
			}
			among := func(keep func(i int) bool) (all []int) {
				for key := range k {
					if keep(order[key]) {
						all = append(all, key)
					}
				}
				return all
			}
			for i, forms := range at {
				read := c.query("SELECT DISTINCT at, other FROM " + table + " WHERE k = " +
					fmt.Sprint(among(func(n int) bool {
						return n == i
					})[0]))
				is.Equal(read, `[{"at":"`+forms[0]+`","other":"`+forms[0]+`"}]`)
				for _, column := range []string{"at", "other", "coalesce(at, other)"} {
					same := among(func(n int) bool { return n == i })
					is.Equal(keys(column+" = $1", forms[0]), same) // as it was read
					is.Equal(keys("$1 = "+column, forms[0]), same)
					is.Equal(keys(column+" <> $1", forms[0]), among(func(n int) bool { return n != i }))
					is.Equal(keys(column+" >= $1", forms[0]), among(func(n int) bool { return n >= i }))
					is.Equal(keys(column+" < $1", forms[0]), among(func(n int) bool { return n < i }))
					is.Equal(keys(
						column+" BETWEEN $1 AND $2", forms[0], at[min(i+1, len(at)-1)][0],
					), among(func(n int) bool {
						return n == i || n == i+1
					}))
					is.Equal(keys(
						column+" NOT BETWEEN $1 AND $2", forms[0], at[min(i+1, len(at)-1)][0],
					), among(func(n int) bool {
						return n != i && n != i+1
					}))
				}
				is.Equal(keys("at IN ($1, $2)", forms[0], at[0][0]), among(func(n int) bool {
					return n == i || n == 0
				}))
				for _, form := range forms {
					is.Equal(keys("at = $1", form), among(func(n int) bool { return n == i }))
				}
			}
			is.Equal(keys("at = other"), among(func(int) bool { return true }))
			var sorted []struct{ K int }
			is.NoErr(json.Unmarshal([]byte(c.query("SELECT k FROM "+table+" ORDER BY at, k")), &sorted))
			for i := 1; i < len(sorted); i++ {
				is.True(order[sorted[i-1].K] <= order[sorted[i].K])
			}
			is.Equal(c.query("SELECT count(DISTINCT at) AS n, min(at) AS first, max(at) AS last FROM "+table),
				fmt.Sprintf(`[{"n":%d,"first":%q,"last":%q}]`, len(at), at[0][0], at[len(at)-1][0]))
			is.Equal(
				c.query("SELECT count(*) AS n FROM (SELECT at FROM "+table+" GROUP BY at) AS g"),
				fmt.Sprintf(`[{"n":%d}]`, len(at)),
			)
			c.query("DELETE FROM "+table+" WHERE at <= $1", at[len(at)-2][0])
			is.Equal(keys("at >= $1", at[0][0]), among(func(n int) bool { return n == len(at)-1 }))
			c.query("DROP TABLE " + table)
		})
	}
	t.Run("Date", func(t *testing.T) {
		is := is.New(t)
		c.query("CREATE TABLE days (k integer PRIMARY KEY, d DATE UNIQUE)")
		c.query(
			"INSERT INTO days (k, d) VALUES (1, '2026-11-25'), (2, $1), (3, '2026-11-27')",
			"2026-11-26T10:00:00.000Z",
		)
		is.Equal(
			c.query("SELECT d FROM days ORDER BY d DESC"),
			`[{"d":"2026-11-27"},{"d":"2026-11-26"},{"d":"2026-11-25"}]`,
		)
		is.Equal(c.query("SELECT k FROM days WHERE d = $1", "2026-11-26"), `[{"k":2}]`)
		is.Equal(c.query("SELECT k FROM days WHERE d = $1", "2026-11-26T23:00:00.000Z"), `[{"k":2}]`)
		is.Equal(
			c.query("SELECT k FROM days WHERE d >= $1 ORDER BY k", "2026-11-26T23:00:00.000Z"),
			`[{"k":2},{"k":3}]`,
		)
		is.Equal(
			c.query("SELECT k FROM days WHERE d BETWEEN $1 AND $2 ORDER BY k", "2026-11-25", "2026-11-26"),
			`[{"k":1},{"k":2}]`,
		)
		is.Equal(c.query("SELECT k FROM days WHERE d = $1", "2026-11-27T01:00:00+02:00"), `[{"k":2}]`) // the day in UTC
		c.fails(errs.Conflict, "INSERT INTO days (k, d) VALUES (4, '2026-11-26 12:00:00')")
	})
	t.Run("Default", func(t *testing.T) {
		is := is.New(t)
		c.query("CREATE TABLE made (k integer PRIMARY KEY, created TIMESTAMP DEFAULT CURRENT_TIMESTAMP)")
		var rows []struct{ Created string }
		is.NoErr(json.Unmarshal([]byte(c.query("INSERT INTO made (k) VALUES (1) RETURNING created")), &rows))
		is.True(strings.HasSuffix(rows[0].Created, "Z") && rows[0].Created[10] == 'T')
		is.Equal(c.query("SELECT count(*) AS n FROM made WHERE created = $1", rows[0].Created), `[{"n":1}]`)
		is.Equal(
			c.query(
				"SELECT k FROM made WHERE created >= $1 AND created < $2", "2026-01-01T00:00:00.000Z",
				"9000-01-01T00:00:00.000Z",
			),
			`[{"k":1}]`,
		)
		is.NoErr(json.Unmarshal([]byte(c.query("SELECT max(created) AS created FROM made")), &rows))
		is.Equal(c.query("SELECT count(*) AS n FROM made WHERE created = $1", rows[0].Created), `[{"n":1}]`)
	})
	t.Run("Added", func(t *testing.T) {
		is := is.New(t)
		c.query("CREATE TABLE later (k integer PRIMARY KEY)")
		c.query("ALTER TABLE later ADD COLUMN at TIMESTAMP -- when")
		c.query("INSERT INTO later (k, at) VALUES (1, '2026-11-26 10:00:00'), (2, $1)", "2026-11-26T09:59:59.000Z")
		is.Equal(c.query("SELECT k FROM later ORDER BY at"), `[{"k":2},{"k":1}]`)
		is.Equal(
			c.query("SELECT at FROM later WHERE at = $1", "2026-11-26T10:00:00.000Z"),
			`[{"at":"2026-11-26T10:00:00.000Z"}]`,
		)
	})
}

// testNumbers checks that a column has values of one type.
func testNumbers(t *testing.T, open Open) {
	is, d := is.New(t), open(t, Options{})
	c := connect(t, d, one)
	c.query("CREATE TABLE n (k integer PRIMARY KEY, price NUMERIC(20,4), small NUMERIC(10,2), free NUMERIC)")
	c.query(
		"INSERT INTO n (k, price, small, free) VALUES (1, 100.5, 100.5, 100.5), (2, 12345678, 3, 3), (3, $1, $1, $1)",
		2.25,
	)
	is.Equal(
		c.query("SELECT price FROM n ORDER BY k"),
		`[{"price":"100.5000"},{"price":"12345678.0000"},{"price":"2.2500"}]`,
	)
	is.Equal(
		c.query("SELECT small, free FROM n WHERE k <> 2 ORDER BY k"),
		`[{"small":100.5,"free":100.5},{"small":2.25,"free":2.25}]`,
	)
	is.Equal(c.query("SELECT k FROM n WHERE price = $1", "2.2500"), `[{"k":3}]`) // as it was read
	is.Equal(c.query("SELECT avg(x) AS a FROM (SELECT 1 AS x UNION ALL SELECT 2) AS t"), `[{"a":1.5}]`)
	is.Equal(c.query("SELECT 3 / 4.0 AS a, round(2 / 3.0, 2) AS b"), `[{"a":0.75,"b":0.67}]`)
	is.Equal(c.query("SELECT sum(k) AS s FROM n"), `[{"s":6}]`)
}

// testLists checks lists as values: arrays of PostgreSQL, refused with the way to do it on SQLite.
func testLists(t *testing.T, open Open) {
	is, d := is.New(t), open(t, Options{})
	c := connect(t, d, one)
	if d.Engine() == "sqlite" {
		c.query("CREATE TABLE l (id integer, tags text)")
		why := c.fails(errs.Invalid, "SELECT id FROM l WHERE id IN ($1)", []int{1, 2})
		is.True(strings.Contains(why, "params[0] is a list") && strings.Contains(why, "json_each($1)"))
		c.query("INSERT INTO l (id, tags) VALUES (1, $1), (2, $2), (3, '[]')", `["a"]`, map[string]any{"a": 1})
		is.Equal(
			c.query("SELECT id FROM l WHERE id IN (SELECT value FROM json_each($1)) ORDER BY id", "[1,3]"),
			`[{"id":1},{"id":3}]`,
		)
		return
	}
	c.query("CREATE TABLE l (id integer, tags text[], grid int[], at timestamptz[], j jsonb, js jsonb[], price " +
		"numeric(20,2)[], d date[], u uuid[], b boolean[])")
	const whole = `{"id":1,"tags":["a","b \"c\" \\ , {} ` +
		`é","NULL",null,""],"grid":[[1,2],[3,4]],"at":["2026-11-26T10:00:00.000Z"],"j":[1, {"a": ` +
		`[2]}],"js":[{"a": 1}, [2]],` +
		`"price":["1.50"],"d":["2026-11-26"],"u":["0192b2a0-0000-7000-8000-000000000001"],"b":[true,false]}`
	var row map[string]any
	is.NoErr(json.Unmarshal([]byte(whole), &row))
	names := []string{"id", "tags", "grid", "at", "j", "js", "price", "d", "u", "b"}
	var values []any
	for _, name := range names {
		values = append(values, row[name])
	}
	c.query("INSERT INTO l ("+strings.Join(names, ", ")+") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)", values...)
	same := func() {
		t.Helper()
		var rows []map[string]any
		is.NoErr(json.Unmarshal([]byte(c.query("SELECT * FROM l WHERE id = 1")), &rows))
		is.Equal(rows[0], row)
	}
	same()
	// as it was read
	c.query(
		"UPDATE l SET tags = $1, grid = $2, at = $3, js = $4 WHERE id = ANY($5)", row["tags"], row["grid"],
		row["at"], row["js"], []int{1, 7},
	)
	same()
	c.query("INSERT INTO l (id, tags) VALUES (2, $1)", []string{})
	is.Equal(c.query("SELECT tags FROM l WHERE id = 2"), `[{"tags":[]}]`)
	is.Equal(c.query("SELECT id FROM l WHERE id = ANY($1::int[]) ORDER BY id", []int{1, 2}), `[{"id":1},{"id":2}]`)
	is.Equal(c.query("SELECT id FROM l WHERE 'a' = ANY(tags)"), `[{"id":1}]`)
	is.Equal(c.query("SELECT id FROM l WHERE tags && $1", []string{"a"}), `[{"id":1}]`)
	is.Equal(c.query("SELECT $1::text AS j", []int{1}), `[{"j":"[1]"}]`) // what is no array is JSON
	c.fails(errs.Invalid, "SELECT id FROM l WHERE id = ANY($1)", []string{"x"})
	c.fails(errs.Invalid, "SELECT id FROM l WHERE id = ANY($1)", []any{[]any{[]any{[]any{[]any{[]any{[]any{1}}}}}}})
	c.fails(errs.Invalid, "UPDATE l SET grid = $1", []any{[]int{1}, []int{2, 3}})
}
