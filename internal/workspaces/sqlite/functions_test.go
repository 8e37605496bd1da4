package sqlite_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"
	_ "modernc.org/sqlite" // the driver that nothing is replaced in

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/workspaces/sqlite"
)

// TestFunctions: the functions that are replaced have the results of SQLite's own.
func TestFunctions(t *testing.T) {
	is, c := is.New(t), connect(t, sqlite.Options{}, "a")
	db, err := sql.Open("sqlite", ":memory:")
	is.NoErr(err)
	t.Cleanup(func() { is.NoErr(db.Close()) })
	const binary = "x'00'"
	values := []string{
		"NULL", "''", "'a'", "'abcabc'", "'äöüä'", "'ö'", "' a b '", "'--4A-4b--'", "'-'", "5", "55.5", "1e300",
		"9e999", "x''", "x'6162'", "x'62'", binary, "x'80'", "x'c3a4'", "'a' || char(0) || 'b'", "'日本語'",
		"json('[1]')", `'"\' || char(1, 8, 9, 10, 12, 13, 31, 127)`,
	}
	var statements []string
	for i, x := range values {
		var all []string
		for j, y := range values {
			for _, f := range []string{"instr", "trim", "ltrim", "rtrim", "unhex"} {
				all = append(all, fmt.Sprintf("quote(%s(%s, %s))", f, x, y))
			}
			for _, z := range []string{"NULL", "'äxx'", "5"} {
				all = append(all, fmt.Sprintf("quote(replace(%s, %s, %s))", x, y, z))
			}
			if x == binary || y == binary || (i+j)%7 > 0 { // binary is JSON in SQLite's own form
				continue
			}
			statements = append(statements,
				fmt.Sprintf("(SELECT json_group_array(v) FROM (SELECT %s AS v UNION ALL SELECT %s))", x, y),
				fmt.Sprintf(
					"(SELECT json_group_object(k, v) FROM (SELECT %s AS k, %s AS v UNION ALL SELECT 'l', 1))",
					x, y,
				),
				fmt.Sprintf(
					"(SELECT json_group_array(v) OVER (ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) "+
						"FROM (SELECT 1 AS v UNION ALL SELECT %s UNION ALL SELECT %s) LIMIT 1 OFFSET 2)",
					x, y,
				))
		}
		statements = append(statements, strings.Join(all, " || ' ' || "))
	}
	statements = append(statements, "(SELECT json_group_array(1) WHERE 0)",
		"(SELECT json_group_object('a', 1) WHERE 0)", "json_array((SELECT json_group_array(json_object('a', 1))))",
		"(SELECT json_group_array(v) FILTER (WHERE v > 1) FROM (SELECT 1 AS v UNION ALL SELECT 2))",
		"(SELECT json_group_array(DISTINCT v) FROM (SELECT 1 AS v UNION ALL SELECT 1))")
	for _, s := range statements {
		s = "SELECT quote(" + s + ") AS k"
		var want any
		wrong := db.QueryRow(s).Scan(&want)
		rows, err := c.Query(t.Context(), s, nil)
		if (wrong != nil) != (err != nil) {
			t.Errorf("%s: %v, where SQLite has %v", s, err, wrong)
			continue
		}
		if expected, _ := json.Marshal([]map[string]any{{"k": want}}); err == nil && string(rows) != string(expected) {
			t.Errorf("%s: %s, where SQLite has %s", s, rows, expected)
		}
	}
	for _, s := range []string{
		"CREATE TABLE t (a text, b integer AS (instr(a, 'b')), CHECK (trim(a, 'x') <> ''))",
		"CREATE INDEX i ON t (replace(a, 'b', 'c'))", "INSERT INTO t (a) VALUES ('ab')",
	} {
		_, err := c.Query(t.Context(), s, nil)
		is.NoErr(err)
	}
}

// TestFunctionsMemory: no function takes time or memory beyond the limits of its statement.
func TestFunctionsMemory(t *testing.T) {
	is, c := is.New(t), connect(t, sqlite.Options{}, "a")
	long := "replace(hex(zeroblob(%d)), '0', 'a')"
	hay, needle := fmt.Sprintf(long, 400_000), fmt.Sprintf(long, 200_000)+" || 'b'"
	object := func(p string) string {
		m := map[string]int{}
		for i := range 30_000 {
			m[fmt.Sprint(p, i)] = 1
		}
		b, err := json.Marshal(m)
		is.NoErr(err)
		return string(b)
	}
	for statement, params := range map[string]json.RawMessage{
		"SELECT instr(" + hay + ", " + needle +
			")": nil,
		"SELECT length(replace(" + hay + ", " + needle +
			", 'x'))": nil,
		"SELECT length(trim(" + hay +
			", replace(hex(zeroblob(200000)), '0', 'b') || 'a'))": nil,
		"SELECT unhex(replace(" + hay + ", 'a', '-'), " + strings.ReplaceAll(needle, "'b'", "'-'") +
			")": nil,
		"SELECT length(json_patch($1, $2))": json.RawMessage(
			`["` + "{}" + `", ` + quoted(object("k")) + `]`,
		),
		"SELECT length(json_pretty($1, $2))": json.RawMessage(`["[[]]", "x"]`),
		"SELECT " + hay + " LIKE '%' || " + fmt.Sprintf(long, 400) +
			" || 'b%'": nil,
		"SELECT length(json_group_array(x)) FROM (SELECT replace(" + hay +
			", 'a', char(1)) AS x FROM json_each('[1,2,3]'))": nil,
		"SELECT json_array(" + strings.Repeat("x, ", 60) + "x) FROM (SELECT " + hay +
			" AS x)": nil,
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		started := time.Now()
		_, err := c.Query(ctx, statement, params)
		cancel()
		if code := errs.CodeOf(err); err != nil && code != errs.Invalid && code != errs.TooLarge {
			t.Errorf("%.100s: %v", statement, err)
		}
		t.Logf("%.60s: %s %v", statement, time.Since(started), err)
	}
}

func quoted(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}
