package sqltext_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/sqltext"
)

const both = -1

func TestSplit(t *testing.T) {
	for _, c := range []struct {
		dialect    sqltext.Dialect
		text, want string
	}{
		{both, "", ""},
		{both, " ;; -- a\n;/* b */", ""},
		{both, "SELECT 1", "1:SELECT 1"},
		{both, "\ufeffSELECT 1;", "1:SELECT 1"},
		{both, "-- a; b\nSELECT 1;\n\nSELECT\n2 ; ", "2:SELECT 1|4:SELECT\n2"},
		{both, "SELECT ';', ';''', \";\";SELECT 2", "1:SELECT ';', ';''', \";\"|1:SELECT 2"},
		{both, "SELECT 1 /* ; */ ; SELECT 2", "1:SELECT 1 /* ; */|1:SELECT 2"},
		{sqltext.SQLite, "SELECT [;], `;`; SELECT 2 /* open ;", "1:SELECT [;], `;`|1:SELECT 2 /* open ;"},
		{sqltext.SQLite, "SELECT '\\'; SELECT 2", "1:SELECT '\\'|1:SELECT 2"},
		{sqltext.SQLite, "/* a /* b */ SELECT 1; SELECT 2", "1:SELECT 1|1:SELECT 2"},
		{sqltext.SQLite,
			"CREATE TRIGGER a AFTER INSERT ON b BEGIN SELECT CASE 1 WHEN 1 THEN 2 END; SELECT 1; END; SELECT 3",
			"1:CREATE TRIGGER a AFTER INSERT ON b BEGIN SELECT CASE 1 WHEN 1 THEN 2 END; SELECT 1; END|1:SELECT 3"},
		{sqltext.SQLite, "create temp trigger a begin select 1; end", "1:create temp trigger a begin select 1; end"},
		{sqltext.Postgres, "SELECT E'\\';'; SELECT 2", "1:SELECT E'\\';'|1:SELECT 2"},
		{
			sqltext.Postgres, "SELECT $$;$$, $a$;$$;$a$; SELECT a$1;SELECT 2",
			"1:SELECT $$;$$, $a$;$$;$a$|1:SELECT a$1|1:SELECT 2",
		},
		{sqltext.Postgres, "/* a /* ; */ ; */ SELECT U&';', U&\";\"; SELECT 2", "1:SELECT U&';', U&\";\"|1:SELECT 2"},
		{sqltext.Postgres, "CREATE TABLE trigger (a int); SELECT 2", "1:CREATE TABLE trigger (a int)|1:SELECT 2"},
		{sqltext.Postgres, "SELECT 'é', 1e-5, .5, $1", "1:SELECT 'é', 1e-5, .5, $1"},
	} {
		for _, d := range []sqltext.Dialect{sqltext.SQLite, sqltext.Postgres} {
			if c.dialect != both && c.dialect != d {
				continue
			}
			all, err := sqltext.Split(d, c.text)
			is.New(t).NoErr(err)
			var got []string
			for _, s := range all {
				got = append(got, fmt.Sprintf("%d:%s", s.Line, s.Text))
				for _, token := range s.Tokens {
					if token.Kind != sqltext.Quoted && !strings.HasPrefix(s.Text[token.Pos:], token.Value) {
						t.Errorf("%q: %q is not at %d", s.Text, token.Value, token.Pos)
					}
				}
			}
			if strings.Join(got, "|") != c.want {
				t.Errorf("%d %q: %q, want %q", d, c.text, strings.Join(got, "|"), c.want)
			}
		}
	}
	for _, text := range []string{"SELECT 'a", `SELECT "a`, "SELECT '\x00'", "SELECT '\xff'"} {
		for _, d := range []sqltext.Dialect{sqltext.SQLite, sqltext.Postgres} {
			_, err := sqltext.Split(d, text)
			is.New(t).Equal(errs.CodeOf(err), errs.Invalid)
		}
	}
	for _, text := range []string{"SELECT /* /* */", "SELECT $a$ $b$", "SELECT E'\\'"} {
		_, err := sqltext.Split(sqltext.Postgres, text)
		is.New(t).Equal(errs.CodeOf(err), errs.Invalid)
	}
	_, err := sqltext.Split(sqltext.Postgres, "SELECT 1;\nSELECT 'open")
	is.New(t).Equal(errs.MessageOf(err), "The SQL has a string without an end, which begins in line 2.")
}

func TestParameters(t *testing.T) {
	for _, c := range []struct {
		text string
		n    int
		want string
	}{
		{"SELECT 1", 0, ""}, {"SELECT $1, $2, $1", 2, ""}, {"SELECT '$1', \"$2\", a$3 -- $4", 0, ""},
		{"SELECT $1", 0, "The statement has the placeholder $1, but params has 0 values."},
		{"SELECT $1", 2, "params has 2 values, but the highest placeholder of the statement is $1."},
		{
			"SELECT 1", 1,
			"params has 1 value, but the statement has no placeholders. Placeholders are $1, $2 and so on.",
		},
		{"SELECT $1, $3", 3, "The statement has no placeholder $2, but params has a value for it."},
		{"SELECT ?", 1, "The statement has the placeholder ?. Placeholders are $1, $2 and so on."},
		{"SELECT $01", 1, "The statement has the placeholder $01. Placeholders are $1, $2 and so on."},
		{"SELECT $0", 1, "The statement has the placeholder $0. Placeholders are $1, $2 and so on."},
		{"SELECT :a", 1, "The statement has the placeholder :a. Placeholders are $1, $2 and so on."},
		{"SELECT $99999", 1, "The statement has the placeholder $99999. Placeholders are $1, $2 and so on."},
	} {
		s, err := sqltext.Single(sqltext.SQLite, c.text)
		is.New(t).NoErr(err)
		is.New(t).Equal(errs.MessageOf(s.Parameters(c.n)), c.want)
	}
}

func TestAllowed(t *testing.T) {
	allowed := func(text string) bool {
		s, err := sqltext.Single(sqltext.Postgres, text)
		is.New(t).NoErr(err)
		err = s.Allowed([]string{"REPLACE"}, "TABLE", "INDEX", "VIEW")
		is.New(t).True(err == nil || errs.CodeOf(err) == errs.Invalid && errs.MessageOf(err) != "")
		return err == nil
	}
	for _, text := range []string{
		"SELECT 1", "( (select 1) )", "with a AS (SELECT 1) SELECT 1", "values (1)",
		"INSERT INTO a VALUES (1)", "/* x */ update a set b = 1", "DELETE FROM a", "REPLACE INTO a VALUES (1)",
		"CREATE TABLE a (b int)", "create unique index a ON b (c)", "CREATE OR REPLACE VIEW a AS SELECT 1",
		"CREATE RECURSIVE VIEW a AS SELECT 1", "DROP TABLE a",
		"ALTER INDEX a RENAME TO b", "CREATE UNLOGGED TABLE a (b int)",
	} {
		if !allowed(text) {
			t.Errorf("%s is refused", text)
		}
	}
	for _, text := range []string{
		"BEGIN", "(BEGIN)", "CREATE FUNCTION a", "CREATE OR REPLACE FUNCTION a",
		"CREATE", "CREATE TEMP TABLE a", "DROP", "ALTER ROLE a",
		"PRAGMA a", "1", "'SELECT'", "\"SELECT\"",
		"SELECTS", "CREATE TRIGGER a", "CREATE \"TABLE\" a", "create role table",
		"SELECT " + strings.Repeat("1,", sqltext.MaxTokens),
	} {
		if allowed(text) {
			t.Errorf("%.50s is allowed", text)
		}
	}
}

// FuzzSplit: statements are parts of the text, and splitting a statement returns only that
// statement.
func FuzzSplit(f *testing.F) {
	for _, text := range []string{
		"SELECT 1; SELECT 2", "SELECT ';' -- ;", "CREATE TRIGGER a BEGIN SELECT 1; END; SELECT 2",
		"SELECT $$;$$", "/* /* */ */ ;",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, d := range []sqltext.Dialect{sqltext.SQLite, sqltext.Postgres} {
			all, err := sqltext.Split(d, text)
			if err != nil {
				continue
			}
			for _, s := range all {
				if !strings.Contains(text, s.Text) || len(s.Tokens) == 0 {
					t.Errorf("%q: %q", text, s.Text)
				}
				if again, err := sqltext.Single(d, s.Text); err != nil || again.Text != s.Text {
					t.Errorf("%q: %q %v", s.Text, again.Text, err)
				}
			}
		}
	})
}
