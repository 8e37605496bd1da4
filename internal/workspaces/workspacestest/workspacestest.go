// Package workspacestest checks drivers of workspaces. The tests of drivers import it, those of
// hosts among them.
package workspacestest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/workspaces"
)

// Options are what a driver is opened with.
type Options struct {
	Quota  int64 // bytes of a workspace; 0: the driver's default
	Limits workspaces.Limits
}

// Open opens the driver for a test, on storage of the test's own, and closes it when the test ends.
type Open func(t *testing.T, o Options) workspaces.Driver

// The workspaces of the checks: two apps of a tenant, and one of another tenant with the id of the
// first.
var (
	one   = workspaces.Workspace{Tenant: "acme", App: "0192b2a0-0000-7000-8000-000000000001", Password: "one-secret"}
	two   = workspaces.Workspace{Tenant: "acme", App: "0192b2a0-0000-7000-8000-000000000002", Password: "two-secret"}
	other = workspaces.Workspace{Tenant: "evil", App: "0192b2a0-0000-7000-8000-000000000001", Password: "other-secret"}
)

// client is a connection in a test.
type client struct {
	t testing.TB
	c workspaces.Conn
}

func connect(t testing.TB, d workspaces.Driver, w workspaces.Workspace) client {
	t.Helper()
	c, err := d.Connect(t.Context(), w)
	is.New(t).NoErr(err)
	t.Cleanup(func() { _ = c.Close() })
	return client{t, c}
}

// params encodes the values of placeholders.
func params(values []any) json.RawMessage {
	if len(values) == 0 {
		return nil
	}
	raw, err := json.Marshal(values)
	if err != nil {
		panic(err) // a fault of the test
	}
	return raw
}

// query runs a statement that succeeds.
func (c client) query(statement string, values ...any) string {
	c.t.Helper()
	rows, err := c.c.Query(c.t.Context(), statement, params(values))
	if err != nil {
		c.t.Fatalf("%s: %v", statement, err)
	}
	return string(rows)
}

// fails runs a statement that fails with a code, and returns its message.
func (c client) fails(code errs.Code, statement string, values ...any) string {
	c.t.Helper()
	rows, err := c.c.Query(c.t.Context(), statement, params(values))
	if errs.CodeOf(err) != code {
		c.t.Errorf("%s: %s %v, want %s", statement, rows, err, code)
	}
	return errs.MessageOf(err)
}

// Test checks a driver.
func Test(t *testing.T, open Open) {
	for name, check := range map[string]func(t *testing.T, open Open){
		"Values": testValues, "Times": testTimes, "Numbers": testNumbers, "Lists": testLists,
		"Errors": testErrors, "Isolation": testIsolation, "Limits": testLimits, "Quota": testQuota, "Room": testRoom,
		"Cancel": testCancel, "Migrations": testMigrations,
		"FailedMigration": testFailedMigration, "MigrationsAtOnce": testMigrationsAtOnce,
		"Stats": testStats, "Drop": testDrop, "Callers": testCallers, "Move": testMove, "ReadOnly": testReadOnly,
	} {
		t.Run(name, func(t *testing.T) { check(t, open) })
	}
}

func testValues(t *testing.T, open Open) {
	is, d := is.New(t), open(t, Options{})
	c := connect(t, d, one)
	bytes := map[string]string{"sqlite": "blob", "postgres": "bytea"}[d.Engine()]
	is.Equal(
		c.query("CREATE TABLE v (k integer PRIMARY KEY, s text, n bigint, f double precision, b "+bytes+", j text)"),
		"[]",
	)
	is.Equal(c.query("INSERT INTO v (k, s, n, f, b, j) VALUES ($1, $2, $3, $4, $5, $6)",
		1, "Ümlaut \"x\" \\ <b>\n\u2028", int64(9007199254740993),
		1.5, map[string]string{"base64": "AP/+"}, map[string]any{"a": []int{1}}),
		"[]")
	is.Equal(
		c.query("INSERT INTO v (k, s, n) VALUES ($2, $1, $3) RETURNING k, s, n", nil, 2, -9007199254740991),
		`[{"k":2,"s":null,"n":-9007199254740991}]`,
	)
	is.Equal(
		c.query("SELECT n, f, b, j FROM v WHERE k = $1", 1),
		`[{"n":"9007199254740993","f":1.5,"b":"AP/+","j":"{\"a\":[1]}"}]`,
	)
	var rows []struct{ S string }
	is.NoErr(json.Unmarshal([]byte(c.query("SELECT s FROM v WHERE s IS NOT NULL")), &rows))
	is.Equal(rows[0].S, "Ümlaut \"x\" \\ <b>\n\u2028")
	// one value at two places
	is.Equal(c.query("SELECT k FROM v WHERE k > $1 AND k < $1", 5), "[]")
	// of two columns the last counts
	is.Equal(c.query("SELECT 1 AS a, 2 AS b, 3 AS a"), `[{"b":2,"a":3}]`)
	is.Equal(c.query("SELECT count(*) AS n, sum(k) AS s FROM v;"), `[{"n":2,"s":3}]`) // with a semicolon
	is.Equal(c.query("WITH x AS (SELECT 7 AS y) SELECT y FROM x -- ?"), `[{"y":7}]`)  // a comment is none
	// nor are quoted texts
	is.Equal(c.query("SELECT '?; :a $1' AS s, '--' AS \"a?b\""), `[{"s":"?; :a $1","a?b":"--"}]`)
	is.Equal(c.query("UPDATE v SET f = $1 WHERE n = $2", 2, "9007199254740993"), "[]") // as it was read
	is.Equal(c.query("SELECT f FROM v WHERE k = 1"), `[{"f":2}]`)
	is.Equal(c.query("DELETE FROM v"), "[]")
}

// testReadOnly: in a context of workspaces.WithReadOnly nothing is written, and the connection
// writes again without it.
func testReadOnly(t *testing.T, open Open) {
	is, d := is.New(t), open(t, Options{})
	c := connect(t, d, one)
	c.query("CREATE TABLE r (k integer PRIMARY KEY)")
	c.query("INSERT INTO r (k) VALUES (1)")
	reads := workspaces.WithReadOnly(t.Context())
	rows, err := c.c.Query(reads, "SELECT k FROM r WHERE k = $1", json.RawMessage("[1]"))
	is.NoErr(err)
	is.Equal(string(rows), `[{"k":1}]`)
	for _, statement := range []string{
		"INSERT INTO r (k) VALUES (2)", "INSERT INTO r (k) VALUES (2) RETURNING k", "UPDATE r SET k = 3",
		"DELETE FROM r", "DROP TABLE r", "CREATE TABLE r2 (k integer)",
		"ALTER TABLE r ADD COLUMN s text", "CREATE INDEX r_k ON r (k)", "CREATE VIEW v AS SELECT 1 AS k",
		"WITH x AS (SELECT 5 AS k) INSERT INTO r (k) SELECT k FROM x",
		"INSERT INTO r (k) VALUES (1) ON CONFLICT (k) DO UPDATE SET k = 9",
	} {
		_, err := c.c.Query(reads, statement, nil)
		if errs.CodeOf(err) != errs.Forbidden {
			t.Errorf("%s: %v", statement, err)
		}
	}
	is.Equal(c.query("SELECT k FROM r"), `[{"k":1}]`)
	is.Equal(c.query("UPDATE r SET k = 2 RETURNING k"), `[{"k":2}]`)
}

func testErrors(t *testing.T, open Open) {
	is, d := is.New(t), open(t, Options{})
	c := connect(t, d, one)
	c.query("CREATE TABLE e (k integer PRIMARY KEY, s text NOT NULL)")
	c.query("INSERT INTO e (k, s) VALUES (1, 'a')")
	is.True(strings.Contains(c.fails(errs.Invalid, "SELEC 1"), "SELEC"))
	is.True(strings.Contains(c.fails(errs.Invalid, "SELECT * FROM missing"), "missing"))
	is.True(strings.Contains(c.fails(errs.Conflict, "INSERT INTO e (k, s) VALUES (1, 'b')"), "e"))
	is.True(strings.Contains(strings.ToLower(c.fails(errs.Invalid, "INSERT INTO e (k) VALUES (2)")), "null"))
	is.True(strings.Contains(c.fails(errs.Invalid, "SELECT k FROM e WHERE k = ?", 1), "$1"))
	is.True(strings.Contains(c.fails(errs.Invalid, "SELECT k FROM e WHERE k = $1"), "params has 0 values"))
	is.True(strings.Contains(c.fails(errs.Invalid, "SELECT k FROM e WHERE k = $1", 1, 2), "params has 2 values"))
	is.True(strings.Contains(c.fails(errs.Invalid, "SELECT k FROM e WHERE k = $2", 1, 2), "$1"))
	is.True(strings.Contains(c.fails(errs.Invalid, "SELECT 1; SELECT 2"), "2 statements"))
	c.fails(errs.Invalid, "INSERT INTO e (k, s) VALUES (5, 'x'); DELETE FROM e")
	c.fails(errs.Invalid, "")
	c.fails(errs.Invalid, " ; -- nothing")
	c.fails(errs.Invalid, "SELECT 'open")
	c.fails(errs.Invalid, "SELECT '\x00'")
	c.fails(errs.Invalid, "SELECT $1", "a\x00b")
	for _, raw := range []string{`{}`, `1`, `"x"`, `[`, `[{"base64": "!"}]`} {
		_, err := c.c.Query(t.Context(), "SELECT $1", json.RawMessage(raw))
		is.Equal(errs.CodeOf(err), errs.Invalid)
	}
	is.Equal(c.query("SELECT k FROM e"), `[{"k":1}]`) // the connection still works, and nothing has been written
	is.NoErr(c.c.Close())
	is.NoErr(c.c.Close())
	c.fails(errs.Invalid, "SELECT 1")
}

func testIsolation(t *testing.T, open Open) {
	is, d := is.New(t), open(t, Options{})
	for i, w := range []workspaces.Workspace{one, two, other} {
		c := connect(t, d, w)
		c.query("CREATE TABLE private (k integer)")
		c.query("INSERT INTO private (k) VALUES ($1)", i)
	}
	for i, w := range []workspaces.Workspace{one, two, other} {
		is.Equal(connect(t, d, w).query("SELECT k FROM private"), fmt.Sprintf(`[{"k":%d}]`, i))
	}
	a, b := connect(t, d, one), connect(t, d, one) // two callers of one
	a.query("INSERT INTO private (k) VALUES (7)")
	is.Equal(b.query("SELECT max(k) AS k FROM private"), `[{"k":7}]`)
}

func testLimits(t *testing.T, open Open) {
	is, d := is.New(t), open(t, Options{Limits: workspaces.Limits{Rows: 10, Bytes: 1000}})
	c := connect(t, d, one)
	c.query("CREATE TABLE l (k integer, s text)")
	for i := range 10 {
		c.query("INSERT INTO l (k, s) VALUES ($1, 'x')", i)
	}
	is.True(strings.HasPrefix(c.query("SELECT k FROM l"), "[{"))
	is.True(strings.Contains(
		c.fails(errs.TooLarge, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"),
		"10 rows",
	))
	is.True(strings.Contains(c.fails(errs.TooLarge, "SELECT $1 AS s", strings.Repeat("x", 1001)), "1000 bytes"))
	is.True(strings.Contains(
		c.fails(errs.TooLarge, "SELECT a.s, $1 AS t FROM l a", strings.Repeat("x", 150)), "1000 bytes",
	))
	c.query("INSERT INTO l (k, s) VALUES (10, 'x')")
	c.fails(errs.TooLarge, "DELETE FROM l RETURNING k")
	is.Equal(c.query("SELECT count(*) AS n FROM l"), `[{"n":11}]`) // nothing was deleted
	c.fails(errs.TooLarge, "INSERT INTO l (k, s) SELECT k, s FROM l RETURNING k")
	is.Equal(c.query("SELECT count(*) AS n FROM l"), `[{"n":11}]`)
}

func testQuota(t *testing.T, open Open) {
	is, d := is.New(t), open(t, Options{Quota: 1 << 20})
	b := d.Bounds()
	is.Equal(b.Size, int64(1<<20))
	is.True(b.Result == b.Result.WithDefaults() && b.Result.Rows > 0 && b.Time > 0 && b.Tokens > 0 &&
		b.PerWorkspace > 0)
	is.True(b.PerWorkspace <= b.PerTenant && b.PerTenant <= b.Connections)
	c := connect(t, d, one)
	c.query("CREATE TABLE q (s text)")
	text, full := strings.Repeat("0123456789abcdef", 4096), "" // PostgreSQL compresses it
	for i := range 200 {
		noise := make([]byte, 0, 64<<10)
		for j := range 8 << 10 {
			noise = fmt.Appendf(noise, "%08x", (i*8192+j)*2654435761%(1<<32))
		}
		_, err := c.c.Query(t.Context(), "INSERT INTO q (s) VALUES ($1)", params([]any{text[:16] + string(noise)}))
		if err != nil {
			is.Equal(errs.CodeOf(err), errs.TooLarge)
			full = errs.MessageOf(err)
			break
		}
	}
	is.True(strings.Contains(full, "full"))
	c.query("SELECT count(*) AS n FROM q") // it can be read, and emptied
	c.query("DELETE FROM q")
	connect(t, d, two).query("CREATE TABLE q (s text)") // others are not full
}

// endless are statements that compute without an end, before their first row and behind it.
var endless = []string{
	"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n",
	"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT (i + 1) % 1000000 FROM n) SELECT i FROM n WHERE i = 1 OR i = -1",
	"INSERT INTO c (k) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT (i + 1) % 1000 FROM n) SELECT i FROM n " +
		"WHERE i = -1",
}

func testCancel(t *testing.T, open Open) {
	is, d := is.New(t), open(t, Options{})
	c := connect(t, d, one)
	c.query("CREATE TABLE c (k integer)")
	for _, statement := range endless {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		started := time.Now()
		_, err := c.c.Query(ctx, statement, nil)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", statement, err)
		}
		is.True(time.Since(started) < 10*time.Second)
		_ = c.c.Close()
		c = connect(t, d, one)
		is.Equal(c.query("SELECT count(*) AS n FROM c"), `[{"n":0}]`)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := c.c.Query(ctx, "SELECT 1", nil)
	is.True(errors.Is(err, context.Canceled))
}

// files returns the files of a library.
func files(all map[string]string) fstest.MapFS {
	fs := fstest.MapFS{}
	for name, text := range all {
		fs[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return fs
}

// testRoom: a tenant without room can read and make room, and nothing that stores more; sizes are
// those of the workspaces of one tenant.
func testRoom(t *testing.T, open Open) {
	is, d := is.New(t), open(t, Options{})
	full := errs.New(errs.Full, "full")
	left := int64(1 << 40)
	ctx := workspaces.WithRoom(t.Context(), func(_ context.Context, n int64) (int64, error) {
		if n > left {
			return left, full
		}
		return left, nil
	})
	c := connect(t, d, one).c
	run := func(statement string) error {
		_, err := c.Query(ctx, statement, nil)
		return err
	}
	const fill = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n " +
		"WHERE i < 5000) INSERT INTO notes SELECT i, 'a text of a note, and some more of it' FROM n"
	size := func() int64 {
		all, err := d.Sizes(t.Context(), one.Tenant, []string{one.App, two.App})
		is.NoErr(err)
		_, ok := all[two.App]
		is.True(!ok) // it is not there
		return all[one.App]
	}
	for _, statement := range []string{
		"CREATE TABLE notes (id INTEGER, body TEXT)", "CREATE TABLE others (id INTEGER)", fill,
	} {
		is.NoErr(run(statement))
	}
	is.NoErr(c.Close())
	before := size()
	is.True(before >= 5000*36)
	all, err := d.Sizes(t.Context(), other.Tenant, []string{one.App})
	is.NoErr(err)
	is.Equal(len(all), 0) // another tenant's

	left = 0
	c = connect(t, d, one).c
	for _, statement := range []string{
		"INSERT INTO notes VALUES (1, 'a')", "UPDATE notes SET body = 'b'",
		"CREATE TABLE more (id INTEGER)", "CREATE INDEX i ON notes (id)",
		"ALTER TABLE notes ADD COLUMN more TEXT", "WITH n AS (SELECT 1) INSERT INTO notes SELECT 1, 'a' FROM n", fill,
	} {
		is.Equal(run(statement), full)
	}
	_, err = d.Migrate(
		ctx, one, migrations(t, d, map[string]string{"migrations/0001.sql": "CREATE TABLE more (id INTEGER);"}),
	)
	is.Equal(errs.CodeOf(err), errs.Full)
	rows, err := c.Query(ctx, "SELECT count(*) AS n FROM notes", nil)
	is.NoErr(err)
	is.Equal(string(rows), `[{"n":5000}]`)
	_, err = c.Query(workspaces.WithReadOnly(ctx), "SELECT id FROM notes LIMIT 1", nil)
	is.NoErr(err)
	for _, statement := range []string{"DELETE FROM notes WHERE id > 10", "DELETE FROM notes", "DROP TABLE notes"} {
		is.NoErr(run(statement))
	}
	left = 1 << 40
	is.NoErr(run("INSERT INTO others VALUES (1)"))
	is.NoErr(c.Close())
}

func migrations(t testing.TB, d workspaces.Driver, all map[string]string) []workspaces.Migration {
	t.Helper()
	some, err := workspaces.Migrations(files(all), d.Engine())
	is.New(t).NoErr(err)
	return some
}

func testMigrations(t *testing.T, open Open) {
	is, d := is.New(t), open(t, Options{})
	all := map[string]string{
		"migrations/0001.sql": "-- people; and more\nCREATE TABLE p (k integer PRIMARY KEY, s text);\nINSERT INTO " +
			"p (k, s) VALUES (1, 'a;b');\n",
		"migrations/0002.sql": "UPDATE p SET s = s || '2';;\n",
		"migrations/none.sql": "-- nothing\n",
	}
	applied, err := d.Migrate(t.Context(), one, migrations(t, d, all))
	is.NoErr(err)
	is.Equal(applied, []string{"0001.sql", "0002.sql", "none.sql"})
	c := connect(t, d, one)
	is.Equal(c.query("SELECT s FROM p"), `[{"s":"a;b2"}]`)
	all["migrations/0002.sql"] = "UPDATE p SET s = 'changed'" // has been run
	all["migrations/0003.sql"] = "ALTER TABLE p ADD COLUMN n integer"
	applied, err = d.Migrate(t.Context(), one, migrations(t, d, all))
	is.NoErr(err)
	is.Equal(applied, []string{"0003.sql"})
	is.Equal(c.query("SELECT s, n FROM p"), `[{"s":"a;b2","n":null}]`)
	digests, err := d.Applied(t.Context(), one)
	is.NoErr(err)
	is.Equal(len(digests), 4)
	for _, m := range migrations(t, d, all) {
		is.Equal(digests[m.Name] == m.Digest, m.Name != "0002.sql")
	}
	is.Equal(
		c.query("SELECT name FROM _migrations ORDER BY name"),
		`[{"name":"0001.sql"},{"name":"0002.sql"},{"name":"0003.sql"},{"name":"none.sql"}]`,
	)
	for _, statement := range []string{
		"DELETE FROM _migrations",
		"INSERT INTO _migrations (name, digest, applied_at) VALUES ('x', 'y', 'z')",
		"UPDATE _migrations SET name = 'x'",
		"DROP TABLE _migrations", "ALTER TABLE _migrations ADD COLUMN x text", `DELETE FROM "_migrations"`,
	} {
		c.fails(errs.Invalid, statement)
	}
	digests, err = d.Applied(t.Context(), two)
	is.NoErr(err)
	is.Equal(len(digests), 0)
}

func testFailedMigration(t *testing.T, open Open) {
	is, d := is.New(t), open(t, Options{})
	all := map[string]string{
		"migrations/a.sql": "CREATE TABLE a (k integer)",
		"migrations/b.sql": "CREATE TABLE b (k integer);\nINSERT INTO b (k) " +
			"VALUES (1);\n\nINSERT INTO missing (k)\n  VALUES (1);",
		"migrations/c.sql": "CREATE TABLE c (k integer)",
	}
	applied, err := d.Migrate(t.Context(), one, migrations(t, d, all))
	is.Equal(applied, []string{"a.sql"})
	fault, ok := errors.AsType[*workspaces.FileError](err)
	is.True(ok)
	is.Equal(fault.File, "migrations/b.sql")
	is.Equal(fault.Err.Line, 4)
	is.True(strings.Contains(errs.MessageOf(fault.Err.Err), "missing"))
	c := connect(t, d, one)
	is.Equal(c.query("SELECT k FROM a"), "[]")
	c.fails(errs.Invalid, "SELECT k FROM b")
	for name, sql := range map[string]string{
		"commit":    "CREATE TABLE x (k integer); COMMIT; CREATE TABLE y (k integer)",
		"begin":     "BEGIN; CREATE TABLE x (k integer); COMMIT",
		"parameter": "INSERT INTO a (k) VALUES ($1)", "open": "SELECT 'x", "record": "DELETE FROM _migrations",
	} {
		_, err := d.Migrate(t.Context(), one, migrations(t, d, map[string]string{"migrations/d.sql": sql}))
		if fault, ok := errors.AsType[*workspaces.FileError](err); !ok || errs.CodeOf(fault.Err.Err) != errs.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	c.fails(errs.Invalid, "SELECT k FROM x")
	all["migrations/b.sql"] = "CREATE TABLE b (k integer)" // is mended
	applied, err = d.Migrate(t.Context(), one, migrations(t, d, all))
	is.NoErr(err)
	is.Equal(applied, []string{"b.sql", "c.sql"})
}

func testMigrationsAtOnce(t *testing.T, open Open) {
	is, d := is.New(t), open(t, Options{})
	all := map[string]string{"migrations/0.sql": "CREATE TABLE m (k integer)"}
	for i := range 5 {
		all[fmt.Sprintf("migrations/1%d.sql", i)] = fmt.Sprintf("INSERT INTO m (k) VALUES (%d)", i)
	}
	some := migrations(t, d, all)
	var mu sync.Mutex
	var ran []string
	var running sync.WaitGroup
	for range 4 {
		running.Go(func() {
			applied, err := d.Migrate(t.Context(), one, some)
			mu.Lock()
			defer mu.Unlock()
			is.NoErr(err)
			ran = append(ran, applied...)
		})
	}
	running.Wait()
	slices.Sort(ran)
	is.Equal(ran, []string{"0.sql", "10.sql", "11.sql", "12.sql", "13.sql", "14.sql"})
	is.Equal(connect(t, d, one).query("SELECT count(*) AS n FROM m"), `[{"n":5}]`)
}

func testStats(t *testing.T, open Open) {
	is, d := is.New(t), open(t, Options{Quota: 8 << 20})
	c := connect(t, d, one)
	c.query(`CREATE TABLE "odd "" name" (k integer PRIMARY KEY, s text)`)
	c.query("CREATE TABLE empty (k integer)")
	for i := range 3 {
		c.query(`INSERT INTO "odd "" name" (k, s) VALUES ($1, 'x')`, i)
	}
	c.query("CREATE VIEW v AS SELECT * FROM empty")
	s, err := d.Stats(t.Context(), one)
	is.NoErr(err)
	is.True(s.Bytes > 0 && s.Limit == 8<<20)
	is.Equal(len(s.Tables), 2) // _migrations and views are none
	is.Equal(s.Tables[0].Name, "empty")
	is.Equal(s.Tables[0].Rows, int64(0))
	is.Equal(s.Tables[1].Name, `odd " name`)
	is.Equal(s.Tables[1].Rows, int64(3))
	is.True(s.Tables[1].Bytes > 0)
	is.Equal(len(s.Tables[1].Columns), 2)
	is.Equal(s.Tables[1].Columns[1].Name, "s")
	is.Equal(strings.ToLower(s.Tables[1].Columns[1].Type), "text")
}

func testDrop(t *testing.T, open Open) {
	is, d := is.New(t), open(t, Options{})
	for _, w := range []workspaces.Workspace{one, two, other} {
		c := connect(t, d, w)
		c.query("CREATE TABLE d (k integer)")
		is.NoErr(c.c.Close())
	}
	has := func(w workspaces.Workspace) bool {
		c := connect(t, d, w)
		_, err := c.c.Query(t.Context(), "SELECT k FROM d", nil)
		_ = c.c.Close()
		return err == nil
	}
	some := func(tenant string) bool {
		there, err := d.Has(t.Context(), tenant)
		is.NoErr(err)
		return there
	}
	is.Equal([]bool{some("acme"), some("evil"), some("nobody")}, []bool{true, true, false})
	used := connect(t, d, one)
	is.NoErr(d.Drop(t.Context(), one.Tenant, one.App))
	is.NoErr(d.Drop(t.Context(), one.Tenant, one.App)) // there is none
	_, _ = used.c.Query(t.Context(), "SELECT k FROM d", nil)
	is.NoErr(used.c.Close())
	is.Equal([]bool{has(one), has(two), has(other)}, []bool{false, true, true})
	is.NoErr(d.DropTenant(t.Context(), "acme"))
	is.NoErr(d.DropTenant(t.Context(), "nobody"))
	is.Equal([]bool{some("acme"), some("evil")}, []bool{false, true})
	is.Equal([]bool{has(one), has(two), has(other)}, []bool{false, false, true})
	changed := one
	changed.Password = "another-secret" // of an app that is made again
	is.NoErr(d.Drop(t.Context(), one.Tenant, one.App))
	is.True(!has(changed))
}

// testCallers: many callers write at once, and none is lost.
func testCallers(t *testing.T, open Open) {
	is, d := is.New(t), open(t, Options{})
	connect(t, d, one).query("CREATE TABLE n (k integer)")
	var running sync.WaitGroup
	for i := range 12 {
		running.Go(func() {
			c, err := d.Connect(t.Context(), one)
			is.NoErr(err)
			defer func() { is.NoErr(c.Close()) }()
			for range 3 {
				_, err := c.Query(t.Context(), "INSERT INTO n (k) VALUES ($1)", params([]any{i}))
				is.NoErr(err)
			}
		})
	}
	running.Wait()
	is.Equal(connect(t, d, one).query("SELECT count(*) AS n FROM n"), `[{"n":36}]`)
}

// Benchmark measures an invocation with one query of a driver: connect, read a row by its key,
// close.
func Benchmark(b *testing.B, d workspaces.Driver) {
	is := is.New(b)
	c := connect(b, d, one)
	c.query("CREATE TABLE IF NOT EXISTS b (k integer PRIMARY KEY, s text)")
	for i := range 100 {
		c.query("INSERT INTO b (k, s) VALUES ($1, 'text') ON CONFLICT DO NOTHING", i)
	}
	is.NoErr(c.c.Close())
	for b.Loop() {
		c, err := d.Connect(b.Context(), one)
		is.NoErr(err)
		_, err = c.Query(b.Context(), "SELECT k, s FROM b WHERE k = $1", json.RawMessage("[50]"))
		is.NoErr(err)
		is.NoErr(c.Close())
	}
}
