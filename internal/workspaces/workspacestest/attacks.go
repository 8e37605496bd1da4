package workspacestest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/workspaces"
)

// refused are statements that no engine runs for a tenant.
var refused = []string{
	"BEGIN", "begin immediate", "START TRANSACTION", "COMMIT", "END",
	"ROLLBACK", "SAVEPOINT a", "RELEASE a", "/* x */ BEGIN", "-- x\nCOMMIT", "( BEGIN )",
	"ATTACH 'other' AS o", "ATTACH DATABASE '/tmp/other' AS o", "DETACH main",
	"VACUUM", "VACUUM INTO '/tmp/stolen'", "ANALYZE", "EXPLAIN SELECT 1",
	"SET ROLE postgres", "SET SESSION AUTHORIZATION postgres", "SET statement_timeout = 0",
	"RESET ALL", "RESET ROLE", "SHOW ALL", "DISCARD ALL",
	"COPY t TO '/tmp/stolen'", "COPY t FROM PROGRAM 'id'", "COPY t TO STDOUT", "DO $$ BEGIN END $$",
	"LISTEN x", "NOTIFY x", "UNLISTEN *", "LOAD 'x'", "LOCK TABLE t",
	"PREPARE a AS SELECT 1", "EXECUTE a", "DEALLOCATE a", "DECLARE c CURSOR FOR SELECT 1",
	"FETCH c", "CALL f()", "GRANT ALL ON t TO public", "REVOKE ALL ON t FROM public",
	"CREATE ROLE x", "CREATE USER x", "CREATE DATABASE x",
	"CREATE SCHEMA x", "CREATE EXTENSION dblink", "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
	"CREATE OR REPLACE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'", "CREATE SERVER s FOREIGN DATA WRAPPER x",
	"CREATE PUBLICATION p", "CREATE EVENT TRIGGER e ON x",
	"CREATE TABLESPACE x LOCATION '/tmp'", "CREATE VIRTUAL TABLE v USING fts5(x)",
	"CREATE TEMP TABLE x (k int)", "CREATE TEMPORARY VIEW x AS SELECT 1", "CREATE MATERIALIZED VIEW m AS SELECT 1",
	"ALTER ROLE x SUPERUSER", "ALTER SYSTEM SET x = 1",
	"ALTER DATABASE postgres SET x = 1",
	"ALTER USER x PASSWORD 'y'", "ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO public",
	"DROP SCHEMA public", "DROP DATABASE postgres", "DROP ROLE x",
	"DROP OWNED BY x", "REASSIGN OWNED BY x TO y", "SECURITY LABEL ON TABLE t IS 'x'", "COMMENT ON TABLE t IS 'x'",
	"CHECKPOINT", "CLUSTER", "REINDEX SYSTEM postgres",
	"IMPORT FOREIGN SCHEMA x FROM SERVER y INTO z", "SELECT 1; COMMIT; SELECT 2", "SELECT 1; ATTACH 'x' AS y",
}

// refusedBy are statements that one engine refuses.
var refusedBy = map[string][]string{
	"sqlite": {
		"PRAGMA journal_mode = OFF", "PRAGMA writable_schema = 1",
		"PRAGMA max_page_count = 100000000", "PRAGMA temp_store_directory = '/tmp'", "PRAGMA database_list",
		"PRAGMA hard_heap_limit = 1", "PRAGMA cache_size = 100000000", "PRAGMA query_only = 1",
		"PRAGMA table_info", "PRAGMA main.wal_checkpoint", "PRAGMA key = 'x'",
		"PRAGMA locking_mode = EXCLUSIVE", "PRAGMA foreign_keys = 0",
		"PRAGMA schema_version = 1", "PRAGMA trusted_schema = 1", "PRAGMA mmap_size = 1000000000",
		"SELECT load_extension('/tmp/x.so')", "SELECT * FROM pragma_database_list",
		"SELECT file FROM pragma_database_list()",
		"SELECT * FROM pragma_table_info('t')", "SELECT * FROM sqlite_dbpage",
		"SELECT * FROM dbstat", "SELECT * FROM sqlite_stmt", "SELECT fts3_tokenizer('simple')",
		"SELECT readfile('/etc/passwd')", "SELECT writefile('/tmp/x', 'y')", "SELECT edit('x')",
		"INSERT INTO sqlite_schema (name) VALUES ('x')", "DELETE FROM sqlite_master",
		"UPDATE sqlite_schema SET sql = 'x'", "CREATE TABLE sqlite_x (k)", "DROP TABLE sqlite_schema",
		"CREATE TRIGGER g AFTER INSERT ON _migrations BEGIN DELETE FROM t; END",
		"SELECT * FROM temp.sqlite_master, dbstat",
		"CREATE TABLE temp.x (k)", "CREATE VIEW temp.x AS SELECT 1",
		"SELECT zeroblob(2147483647)", "SELECT printf('%.*c', 2000000000, 'x')",
		"SELECT replace(hex(zeroblob(2000000)), '0', hex(zeroblob(2000000)))", "SELECT sqlite_compileoption_get(1)",
		"SELECT :a", "SELECT @a", "SELECT ?1", "SELECT $a",
		"SELECT sqlite_log(1, 'x')", "SELECT json_patch('{}', '{}')",
		"SELECT json_pretty('[]')", "SELECT jsonb_group_array(1)",
		"SELECT geopoly_area('[]')", "SELECT rtreecheck('t')",
		"SELECT 1 LIKE '" + strings.Repeat("x", 201) + "'",
		"REINDEX", "REPLACE INTO _migrations VALUES ('a', 'b', 'c')",
		"CREATE TABLE x (k, CHECK (json_patch(k, k) IS NOT NULL))",
		"CREATE TABLE x (k, p AS (json_patch(k, k)))", "CREATE INDEX i ON t (json_patch(k, k))",
		"ALTER TABLE t ADD COLUMN p AS (json_patch(k, k))",
		"ALTER TABLE t ADD COLUMN p AS (\"JSON_Patch\" /* */ (k, k))",
		"ALTER TABLE t ADD COLUMN p DEFAULT (json_patch('{}', '{}'))",
	},
	"postgres": {
		"SELECT set_config('statement_timeout', '0', false)", "SELECT pg_catalog.set_config('role', 'none', true)",
		"SELECT \"set_config\"('role', 'none', true)",
		"UPDATE pg_settings SET setting = '0' WHERE name = 'statement_timeout'",
		"SELECT pg_read_file('/etc/passwd')", "SELECT pg_ls_dir('/')", "SELECT lo_import('/etc/passwd')",
		"SELECT lo_create(0)", "SELECT lo_from_bytea(0, 'x')", "SELECT pg_reload_conf()",
		"SELECT pg_advisory_lock(1)", "SELECT pg_advisory_xact_lock(1)", "SELECT pg_try_advisory_lock(1)",
		"SELECT pg_notify('a', 'b')",
		"SELECT pg_logical_emit_message(false, 'a', 'b')", "SELECT rolpassword FROM pg_authid",
		"SELECT * FROM pg_shadow", "SELECT usename, passwd FROM pg_user_mapping", "SELECT * FROM pg_hba_file_rules",
		"SELECT pg_stat_file('/etc/passwd')",
		"SELECT query_to_xml('COMMIT', true, true, '')", "SELECT pg_export_snapshot()",
		"SELECT pg_create_restore_point('x')", "SELECT pg_switch_wal()",
		"SELECT pg_stat_reset()", "SELECT dblink('x', 'y')",
		"CREATE TABLE public.x (k int)", "CREATE TABLE pg_catalog.x (k int)",
		"SELECT 1 FOR UPDATE OF pg_class", "DELETE FROM pg_class",
		"ALTER TABLE t OWNER TO postgres",
		"ALTER TABLE t SET TABLESPACE pg_global", "CREATE TABLE x (k int) TABLESPACE pg_global",
		"SELECT * FROM pg_largeobject", "CREATE TABLE pg_temp.x (k int)",
		"SELECT 1 INTO TEMP x", "CREATE INDEX i ON t ((pg_advisory_lock(1)))",
	},
}

// leaks are what no message shows, in lower case.
var leaks = []string{"/tmp", "/dev/shm", ".sqlite", "127.0.0.1", "-secret", "password authentication", "pgtest"}

// TestAttacks checks that a tenant's SQL harms nobody: it reaches no other workspace, no setting,
// file or role, and ends.
func TestAttacks(t *testing.T, open Open) {
	t.Run("Refused", func(t *testing.T) { testRefused(t, open) })
	t.Run("Neighbours", func(t *testing.T) { testNeighbours(t, open) })
	t.Run("Endless", func(t *testing.T) { testEndless(t, open) })
	t.Run("Large", func(t *testing.T) { testLarge(t, open) })
	t.Run("Migrations", func(t *testing.T) { testAttacksOfMigrations(t, open) })
	t.Run("Names", func(t *testing.T) { testNames(t, open) })
}

func testRefused(t *testing.T, open Open) {
	is, d := is.New(t), open(t, Options{})
	c := connect(t, d, one)
	c.query("CREATE TABLE t (k integer)")
	c.query("INSERT INTO t (k) VALUES (1)")
	for _, statement := range append(append([]string{}, refused...), refusedBy[d.Engine()]...) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		rows, err := c.c.Query(ctx, statement, nil)
		cancel()
		message := errs.MessageOf(err)
		if code := errs.CodeOf(err); code != errs.Invalid && code != errs.TooLarge || message == "" {
			t.Errorf("%s: %s %v", statement, rows, err)
		}
		for _, leak := range leaks {
			if strings.Contains(strings.ToLower(message), leak) && !strings.Contains(strings.ToLower(statement), leak) {
				t.Errorf("%s: the message shows %q: %s", statement, leak, message)
			}
		}
	}
	is.Equal(c.query("SELECT k FROM t"), `[{"k":1}]`)
}

// testNeighbours: another workspace is neither read nor written, nor are its objects seen.
func testNeighbours(t *testing.T, open Open) {
	is, d := is.New(t), open(t, Options{})
	for _, w := range []workspaces.Workspace{two, other} {
		c := connect(t, d, w)
		c.query("CREATE TABLE neighbour (unguessable text)")
		c.query("INSERT INTO neighbour (unguessable) VALUES ('treasure')")
	}
	c := connect(t, d, one)
	c.query("CREATE TABLE mine (k integer)")
	statements := map[string][]string{
		"sqlite": {"SELECT name FROM sqlite_schema", "SELECT sql FROM sqlite_master"},
		"postgres": {
			"SELECT table_schema, table_name FROM information_schema.tables",
			"SELECT column_name FROM information_schema.columns", "SELECT schemaname, tablename FROM pg_tables",
			"SELECT query FROM pg_stat_activity WHERE query <> ''",
			"SELECT relname FROM pg_stat_user_tables", "SELECT schema_name FROM information_schema.schemata",
			"SELECT datname FROM pg_stat_database", "SELECT most_common_vals::text AS v FROM pg_stats",
		},
	}[d.Engine()]
	for _, statement := range statements {
		rows, err := c.c.Query(t.Context(), statement, nil)
		if strings.Contains(string(rows), "neighbour") || strings.Contains(string(rows), "unguessable") ||
			strings.Contains(string(rows), "treasure") {
			t.Errorf("%s: %s %v", statement, rows, err)
		}
	}
	for _, name := range Names(t, d, two, other) {
		for _, statement := range []string{
			"SELECT * FROM " + name + ".neighbour", "INSERT INTO " + name + ".neighbour VALUES ('x')",
			"DROP TABLE " + name + ".neighbour", "CREATE TABLE " + name + ".mine (k integer)",
			"CREATE VIEW peek AS SELECT * FROM " + name + ".neighbour",
			"CREATE INDEX i ON " + name + ".neighbour (unguessable)", "ALTER TABLE mine SET SCHEMA " + name,
		} {
			c.fails(errs.Invalid, statement)
		}
	}
	for _, w := range []workspaces.Workspace{two, other} {
		is.Equal(connect(t, d, w).query("SELECT unguessable FROM neighbour"), `[{"unguessable":"treasure"}]`)
	}
}

// Names returns the names of schemas, where the engine has some, that the SQL of some workspaces
// runs in.
func Names(t testing.TB, d workspaces.Driver, some ...workspaces.Workspace) []string {
	t.Helper()
	if d.Engine() != "postgres" {
		return []string{"main2", "temp"}
	}
	var names []string
	for _, w := range some {
		var rows []struct{ Name string }
		is.New(t).NoErr(json.Unmarshal([]byte(connect(t, d, w).query("SELECT current_schema() AS name")), &rows))
		names = append(names, rows[0].Name)
	}
	return names
}

func testEndless(t *testing.T, open Open) {
	is, d := is.New(t), open(t, Options{})
	c := connect(t, d, one)
	c.query("CREATE TABLE c (k integer)")
	for i := range 50 {
		c.query("INSERT INTO c (k) VALUES ($1)", i)
	}
	statements := []string{
		"SELECT count(*) FROM c a, c b, c d, c e, c f, c g, c h",
		"SELECT a.k FROM c a, c b, c d, c e, c f, c g, c h ORDER BY a.k * b.k % 7 + d.k, h.k",
	}
	if d.Engine() == "postgres" {
		statements = append(
			statements, "SELECT pg_sleep(60)",
			"SELECT repeat('a', 100) ~ repeat('(a?){1,50}', 4) AS x, pg_sleep(60)",
		)
	}
	for _, statement := range statements {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		started := time.Now()
		_, err := c.c.Query(ctx, statement, nil)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) && errs.CodeOf(err) != errs.Invalid {
			t.Errorf("%s: %v", statement, err)
		}
		is.True(time.Since(started) < 10*time.Second)
		_ = c.c.Close()
		c = connect(t, d, one)
	}
	is.Equal(c.query("SELECT count(*) AS n FROM c"), `[{"n":50}]`)
}

// testLarge: statements that expand to much are refused or run, and the server goes on.
func testLarge(t *testing.T, open Open) {
	is, d := is.New(t), open(t, Options{})
	c := connect(t, d, one)
	c.query("CREATE TABLE v0 (k integer)")
	if d.Engine() == "sqlite" {
		c.query("CREATE VIEW \"\u00c9x\" AS SELECT * FROM v20") // which is not there yet
	}
	for i := range 20 { // each view joins another one twice
		if d.Engine() == "sqlite" { // the last one first, of views that are not there yet
			i = 19 - i
		} else if i > 5 {
			break
		}
		c.query(fmt.Sprintf("CREATE VIEW v%d AS SELECT a.k FROM v%d a, v%d b", i+1, i, i))
	}
	var expressions strings.Builder
	for i := range 24 {
		fmt.Fprintf(&expressions, ", e%d AS (SELECT a.k FROM e%d a, e%d b)", i+1, i, i)
	}
	run := func(statement string) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.c.Query(ctx, statement, nil)
		if code := errs.CodeOf(err); err != nil && code != errs.Invalid && code != errs.TooLarge &&
			!errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%.80s: %v", statement, err)
		}
	}
	nested := "SELECT 1 AS k"
	for range 20 {
		nested = "WITH e AS (" + nested + ") SELECT a.k FROM e a, e b"
	}
	if d.Engine() == "sqlite" { // other spellings of names, and expressions within views
		c.query("CREATE VIEW chain AS WITH f0 AS (SELECT 1 AS k)" + strings.ReplaceAll(
			expressions.String()[:strings.Index(expressions.String(), ", e6 ")], "e", "f",
		) + " SELECT k FROM f5")
		c.query("SELECT count(*) AS n FROM chain")
		for _, statement := range []string{
			"SELECT * FROM \u00c9x", "SELECT * FROM \"\u00c9X\"", "SELECT * FROM main.V20",
			"SELECT * FROM \"V20\"", "SELECT 1 FROM chain" + strings.Repeat(" NATURAL JOIN chain", 8), nested,
			"CREATE TRIGGER g AFTER INSERT ON v0 BEGIN INSERT INTO v0 SELECT k FROM v20; END",
			"SELECT 1 IN v20", "SELECT * FROM (((v20)))",
			"WITH a AS (SELECT * FROM v8), b AS (SELECT * FROM a, a AS c) SELECT * FROM b, b AS d",
		} {
			c.fails(errs.Invalid, statement)
		}
		c.query("CREATE TABLE g (a integer, b integer AS (a + 1), c integer AS (a + 2))") // these are no expressions
		c.query("SELECT sum(a) OVER w AS x, (SELECT max(b) OVER w FROM g WINDOW w AS (ORDER BY b)) AS y " +
			"FROM g WINDOW w AS (ORDER BY a)")
	}
	if d.Engine() == "sqlite" { // PostgreSQL bounds the time to plan these, in a process of its own
		for _, statement := range []string{
			"SELECT count(*) FROM v20",
			"WITH e0 AS (SELECT 1 AS k)" + expressions.String() + " SELECT count(*) FROM e24",
			"ALTER TABLE v0 RENAME COLUMN k TO l", "PRAGMA table_info(v20)",
			"CREATE TABLE copy AS SELECT * FROM v20", "INSERT INTO v0 SELECT k FROM v20",
			"SELECT 1 WHERE EXISTS (SELECT * FROM 'v20')", "SELECT count(*) FROM [v20]",
		} {
			c.fails(errs.Invalid, statement)
		}
	}
	for _, statement := range []string{
		"SELECT " + strings.Repeat("(", 5000) + "1" + strings.Repeat(")", 5000),
		"SELECT 1" + strings.Repeat(" + 1", 50_000), "SELECT " + strings.Repeat("1, ", 5000) + "1",
		"SELECT 1" + strings.Repeat(" UNION ALL SELECT 1", 5000),
		"SELECT '" + strings.Repeat("a", 2<<20) + "' LIKE '" + strings.Repeat("%a", 3000) + "'",
		"WITH RECURSIVE n(s) AS (SELECT 'x' UNION ALL SELECT s || s FROM n) SELECT length(s) FROM n",
	} {
		run(statement)
	}
	_ = c.c.Close()
	is.Equal(connect(t, d, one).query("SELECT count(*) AS n FROM v0"), `[{"n":0}]`)
}

// testAttacksOfMigrations: a migration can do no more than a query.
func testAttacksOfMigrations(t *testing.T, open Open) {
	is, d := is.New(t), open(t, Options{})
	for _, statement := range append(append([]string{}, refused...), refusedBy[d.Engine()]...) {
		applied, err := d.Migrate(t.Context(), one, migrations(t, d, map[string]string{
			"migrations/x.sql": "CREATE TABLE x (k integer);\n" + statement + ";",
		}))
		fault, ok := errors.AsType[*workspaces.FileError](err)
		if !ok || len(applied) > 0 || errs.MessageOf(fault.Err.Err) == "" || fault.Err.Line == 0 {
			t.Errorf("%s: %v", statement, err)
		}
	}
	connect(t, d, one).fails(errs.Invalid, "SELECT * FROM x")
	applied, err := d.Applied(t.Context(), one)
	is.NoErr(err)
	is.Equal(len(applied), 0)
}

// testNames: ids of any form lead into no other workspace.
func testNames(t *testing.T, open Open) {
	is, d := is.New(t), open(t, Options{})
	all := []workspaces.Workspace{
		{Tenant: "a", App: "b/c", Password: "p"}, {Tenant: "a/b", App: "c", Password: "p"},
		{Tenant: "../a", App: "b", Password: "p"}, {Tenant: "..", App: "a", Password: "p"},
		{Tenant: "A", App: "b/c", Password: "p"},
		{Tenant: `a"; DROP SCHEMA x; --`, App: `'`, Password: "p'"},
		{Tenant: strings.Repeat("x", 300), App: "y", Password: "p"},
		{Tenant: strings.Repeat("x", 300), App: "yz", Password: "p"},
		{Tenant: "a", App: "%00?mode=memory#", Password: "p"},
	}
	for i, w := range all {
		c := connect(t, d, w)
		c.query("CREATE TABLE n (k integer)")
		c.query("INSERT INTO n (k) VALUES ($1)", i)
	}
	for i, w := range all {
		is.Equal(connect(t, d, w).query("SELECT k FROM n"), fmt.Sprintf(`[{"k":%d}]`, i))
	}
}
