package postgres_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/internal/testkit/pgtest"
	"github.com/tenantcontent/tenantcontent/internal/workspaces"
	"github.com/tenantcontent/tenantcontent/internal/workspaces/postgres"
	"github.com/tenantcontent/tenantcontent/internal/workspaces/workspacestest"
)

var (
	databases atomic.Int64
	shared    string // URL of the database of tests that run one after the other, and leave nothing in it
)

// exec runs a statement as the superuser.
func exec(t testing.TB, address, statement string) {
	t.Helper()
	is := is.New(t)
	c, err := pgx.Connect(t.Context(), address)
	is.NoErr(err)
	_, err = c.PgConn().Exec(t.Context(), statement).ReadAll()
	is.NoErr(err)
	is.NoErr(c.Close(t.Context()))
}

// database makes a database of the test's own, and returns its URL.
func database(t testing.TB) string {
	t.Helper()
	c := dbtest.Server(t)
	name := fmt.Sprintf("workspaces%d", databases.Add(1))
	exec(t, c.URL, "CREATE DATABASE "+name)
	return in(t, c, name)
}

func in(t testing.TB, c *pgtest.Cluster, name string) string {
	u, err := url.Parse(c.URL)
	is.New(t).NoErr(err)
	u.Path = "/" + name
	return u.String()
}

func open(t *testing.T, o workspacestest.Options) workspaces.Driver {
	t.Helper()
	if shared == "" {
		shared = database(t)
	}
	return with(t, postgres.Options{URL: shared, Quota: o.Quota, Limits: o.Limits})
}

func with(t *testing.T, o postgres.Options) *postgres.Driver {
	d, err := postgres.New(o)
	is.New(t).NoErr(err)
	t.Cleanup(func() {
		all, err := pgx.Connect(context.Background(), o.URL) // roles belong to the cluster
		is.New(t).NoErr(err)
		rows, err := all.Query(context.Background(), "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'ws\\_%'")
		is.New(t).NoErr(err)
		names, err := pgx.CollectRows(rows, pgx.RowTo[string])
		is.New(t).NoErr(err)
		for _, name := range names {
			_, err := all.PgConn().Exec(
				context.Background(), "DROP SCHEMA "+name+" CASCADE; DROP OWNED BY "+name+"; DROP ROLE "+name,
			).ReadAll()
			is.New(t).NoErr(err)
		}
		is.New(t).NoErr(all.Close(context.Background()))
		is.New(t).NoErr(d.Close())
	})
	return d
}

func TestDriver(t *testing.T) { workspacestest.Test(t, open) }

func TestAttacks(t *testing.T) { workspacestest.TestAttacks(t, open) }

// TestQuotaOfOneStatement: a statement that would write without an end is canceled when its
// workspace is full, and others are told so until there is room.
func TestQuotaOfOneStatement(t *testing.T) {
	is := is.New(t)
	const quota = 8 << 20
	d := open(t, workspacestest.Options{Quota: quota})
	w := workspaces.Workspace{Tenant: "acme", App: "one statement"}
	c, err := d.Connect(t.Context(), w)
	is.NoErr(err)
	query := func(statement string) error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := c.Query(ctx, statement, nil)
		return err
	}
	is.NoErr(query("CREATE TABLE q (s text)"))
	const more = "INSERT INTO q SELECT md5(generate_series(1, 2000000000)::text)" // streamed
	for range 2 {                                                                 // the second one finds it full
		err := query(more)
		is.Equal(errs.CodeOf(err), errs.TooLarge)
		is.True(strings.HasPrefix(errs.MessageOf(err), "The workspace is full: it can have 8 MiB."))
	}
	is.NoErr(query("SELECT count(*) FROM q"))
	is.NoErr(query("TRUNCATE q"))
	is.NoErr(query("SELECT 1"))
	sizes, err := d.Sizes(t.Context(), w.Tenant, []string{w.App})
	is.NoErr(err)
	is.True(sizes[w.App] < quota)
	is.NoErr(c.Close())
}

func TestRefusedDatabases(t *testing.T) {
	is, w := is.New(t), workspaces.Workspace{Tenant: "acme", App: "a", Password: "p"}
	c := dbtest.Server(t)
	d := with(t, postgres.Options{URL: in(t, c, "plain")}) // has the tables of the service
	_, err := d.Connect(t.Context(), w)
	is.Equal(errs.CodeOf(err), errs.Invalid)
	is.Equal(
		errs.MessageOf(err),
		"The database of the service itself cannot have workspaces: name another database in "+
			"TENANTCONTENT_WORKSPACES, best in another cluster.",
	)
}

// TestRole: what the role of a workspace can do when it logs in by itself is what its SQL may do,
// without any check of texts.
func TestRole(t *testing.T) {
	is, address := is.New(t), database(t)
	d := with(t, postgres.Options{URL: address, Quota: 4 << 20})
	w := workspaces.Workspace{Tenant: "acme", App: "a", Password: "p"}
	c, err := d.Connect(t.Context(), w)
	is.NoErr(err)
	rows, err := c.Query(t.Context(), "SELECT current_user AS name", nil)
	is.NoErr(err)
	is.NoErr(c.Close())
	var names []struct{ Name string }
	is.NoErr(json.Unmarshal(rows, &names))
	u, err := url.Parse(address)
	is.NoErr(err)
	u.User = url.UserPassword(names[0].Name, "p")
	role, err := pgx.Connect(t.Context(), u.String())
	is.NoErr(err)
	defer func() { is.NoErr(role.Close(t.Context())) }()
	for _, statement := range []string{
		"SELECT * FROM pg_class", "SELECT * FROM pg_roles", "SELECT * FROM pg_stat_activity",
		"SELECT * FROM pg_settings", "SELECT set_config('role', 'none', true)", "SELECT pg_advisory_lock(1)",
		"SELECT pg_notify('a', 'b')", "SELECT lo_create(0)", "SELECT query_to_xml('SELECT 1', true, true, '')",
		"SELECT pg_get_viewdef(1)", "SELECT inet_server_addr()",
		"CREATE TEMP TABLE x (k int)", "CREATE TABLE public.x (k int)",
		"CREATE SCHEMA x", "DROP SCHEMA " + names[0].Name, "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
		"DO $$ BEGIN END $$", "SET ROLE postgres", "CREATE ROLE x", "COPY _migrations TO '/tmp/x'",
		"DELETE FROM _migrations", "UPDATE _migrations SET name = 'x'", "DROP TABLE _migrations",
		"TRUNCATE _migrations", "SET temp_file_limit = -1",
		"SELECT pg_total_relation_size(1)", "ALTER ROLE CURRENT_USER CREATEDB",
	} {
		_, err := role.Exec(t.Context(), statement)
		if e, ok := errors.AsType[*pgconn.PgError](err); !ok || e.Code != "42501" {
			t.Errorf("%s: %v", statement, err)
		}
	}
	_, err = role.Exec(
		t.Context(),
		"CREATE TABLE "+names[0].Name+".x (k serial PRIMARY KEY, t timestamptz DEFAULT now()); INSERT INTO "+
			names[0].Name+".x DEFAULT VALUES",
	)
	is.NoErr(err)
	var n int
	is.NoErr(role.QueryRow(
		t.Context(), "SELECT count(*) FROM information_schema.tables WHERE table_schema LIKE 'ws%'",
	).Scan(&n))
	is.Equal(n, 2)
	is.NoErr(role.QueryRow(
		t.Context(),
		"SELECT count(*) FROM information_schema.columns WHERE table_name = 'x' AND column_default IS NOT NULL",
	).Scan(&n))
	is.Equal(n, 2)
}

// TestTypes: values of PostgreSQL's own types.
func TestTypes(t *testing.T) {
	is, d := is.New(t), open(t, workspacestest.Options{})
	c, err := d.Connect(t.Context(), workspaces.Workspace{Tenant: "acme", App: "a", Password: "p"})
	is.NoErr(err)
	defer func() { is.NoErr(c.Close()) }()
	for expression, want := range map[string]string{
		"true": "true", "NULL::int": "null", "1.50::numeric": "1.5",
		"12345678901234567890::numeric": `"12345678901234567890"`, "0.1::numeric": "0.1", "'NaN'::float8": `"NaN"`,
		"'{\"a\": [1]}'::jsonb": `{"a": [1]}`, "'\\x00ff'::bytea": `"AP8="`,
		"'2026-11-20 20:31:00.123456+01'::timestamptz": `"2026-11-20T19:31:00.123456Z"`,
		"'2026-11-20 20:31:00'::timestamp":             `"2026-11-20T20:31:00.000Z"`,
		"'2026-11-20'::date":                           `"2026-11-20"`, "'infinity'::timestamptz": `"infinity"`,
		"ARRAY[1, NULL, 3]":              "[1,null,3]",
		`ARRAY['a', 'b,"}', 'NULL', '']`: `["a","b,\"}","NULL",""]`, "ARRAY[[1, 2], [3, 4]]": "[[1,2],[3,4]]",
		"'{}'::int[]": "[]", "9007199254740993": `"9007199254740993"`, "'1 day'::interval": `"P1D"`,
		"ARRAY[true, false]": "[true,false]", "'a'::char(3)": `"a  "`, "ARRAY['{\"a\":1}'::jsonb]": `[{"a":1}]`,
		"'0192b2a0-0000-7000-8000-000000000001'::uuid": `"0192b2a0-0000-7000-8000-000000000001"`,
	} {
		rows, err := c.Query(t.Context(), "SELECT "+expression+" AS v", nil)
		is.NoErr(err)
		is.Equal(string(rows), `[{"v":`+want+`}]`)
	}
	_, err = c.Query(t.Context(), "CREATE TABLE p (b bytea, j jsonb, t timestamptz, a text[], n numeric)", nil)
	is.NoErr(err)
	_, err = c.Query(
		t.Context(), "INSERT INTO p VALUES ($1, $2, $3, $4, $5)",
		json.RawMessage(`[{"base64": "AP8="}, {"x": [1]}, "2026-11-20T20:31:00.123Z", "{a,b}", 1.25]`),
	)
	is.NoErr(err)
	rows, err := c.Query(t.Context(), "SELECT * FROM p WHERE j ? 'x'", nil) // an operator, no placeholder
	is.NoErr(err)
	is.Equal(string(rows), `[{"b":"AP8=","j":{"x": [1]},"t":"2026-11-20T20:31:00.123Z","a":["a","b"],"n":1.25}]`)
	_, err = c.Query(t.Context(), "SELECT * FROM p WHERE n = ?", nil)
	is.True(strings.Contains(errs.MessageOf(err), "Placeholders are $1"))
	for _, statement := range []string{
		`SELECT U&"\0070g_sleep"(1)`, "SELECT 16384::regclass", "SELECT 'x'::REGROLE",
		`SELECT * FROM "pg_class"`, "SELECT * FROM pg_catalog.pg_class", "SELECT current_setting('role')",
	} {
		_, err := c.Query(t.Context(), statement, nil)
		is.True(strings.Contains(errs.MessageOf(err), "cannot be used in a workspace"))
	}
}

// TestUnlockedDatabase: an admin who is no superuser needs a database that a superuser has locked.
func TestUnlockedDatabase(t *testing.T) {
	is, address, w := is.New(t), database(t), workspaces.Workspace{Tenant: "acme", App: "a", Password: "p"}
	u, err := url.Parse(address)
	is.NoErr(err)
	name := strings.TrimPrefix(u.Path, "/")
	exec(t, address, "CREATE ROLE keeper_"+name+" LOGIN CREATEROLE")
	u.User = url.User("keeper_" + name)
	d, err := postgres.New(postgres.Options{URL: u.String()})
	is.NoErr(err)
	t.Cleanup(func() { is.NoErr(d.Close()) })
	_, err = d.Connect(t.Context(), w)
	is.Equal(
		errs.MessageOf(err),
		"The database of workspaces is not locked: let a superuser run in it what docs/workspaces.md says.",
	)
	exec(t, address, postgres.Lockdown(name, "keeper_"+name))
	c, err := d.Connect(t.Context(), w)
	is.NoErr(err)
	_, err = c.Query(t.Context(), "CREATE TABLE t (k integer)", nil)
	is.NoErr(err)
	is.NoErr(c.Close())
	s, err := d.Stats(t.Context(), w)
	is.NoErr(err)
	is.Equal(len(s.Tables), 1)
	is.NoErr(d.DropTenant(t.Context(), "acme"))
	s, err = d.Stats(t.Context(), w)
	is.NoErr(err)
	is.Equal(len(s.Tables), 0)
	is.NoErr(d.DropTenant(t.Context(), "acme"))
}

// TestLostConnection: a session that the server has ended while it was idle is replaced, and a
// workspace that another process has dropped is made again.
func TestLostConnection(t *testing.T) {
	is, address := is.New(t), database(t)
	d, w := with(t, postgres.Options{URL: address}), workspaces.Workspace{Tenant: "acme", App: "a", Password: "p"}
	query := func() (string, error) {
		c, err := d.Connect(t.Context(), w)
		if err != nil {
			return "", err
		}
		defer func() { is.NoErr(c.Close()) }()
		rows, err := c.Query(t.Context(), "SELECT 1 AS k", nil)
		return string(rows), err
	}
	for _, end := range []func(){
		func() {
			exec(t, address, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename LIKE 'ws%'")
		},
		func() { is.NoErr(with(t, postgres.Options{URL: address}).Drop(t.Context(), "acme", "a")) },
	} {
		_, err := query()
		is.NoErr(err)
		end()
		_, err = query() // finds it out, at the latest
		is.True(err == nil || errs.CodeOf(err) == errs.Unavailable)
		rows, err := query()
		is.NoErr(err)
		is.Equal(rows, `[{"k":1}]`)
	}
}

func BenchmarkQuery(b *testing.B) {
	d, err := postgres.New(postgres.Options{URL: database(b)})
	is.New(b).NoErr(err)
	defer func() { is.New(b).NoErr(d.Close()) }()
	workspacestest.Benchmark(b, d)
}

// TestDocumentation: docs/workspaces.md has what a superuser runs.
func TestDocumentation(t *testing.T) {
	is := is.New(t)
	text, err := os.ReadFile("../../../docs/workspaces.md")
	is.NoErr(err)
	is.True(strings.Contains(string(text), postgres.Lockdown("workspaces", "workspaces")))
}
