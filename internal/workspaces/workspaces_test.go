package workspaces_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/matryer/is"
	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/limits/limiter"
	"github.com/tenantcontent/tenantcontent/internal/secure/keyring"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/store/workspaces"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/internal/workspaces"
	"github.com/tenantcontent/tenantcontent/internal/workspaces/sqlite"
)

const (
	app   = "0192b2a0-0000-7000-8000-000000000001"
	draft = "0192b2a0-0000-7000-8000-000000000002"
)

// setup is a Service on each database, with workspaces in SQLite, and the apps that there are.
type setup struct {
	*workspaces.Service
	db     *bun.DB
	driver workspaces.Driver
	exist  map[string]bool
}

func each(t *testing.T, test func(t *testing.T, s setup)) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is := is.New(t)
		d, err := sqlite.New(sqlite.Options{Dir: t.TempDir()})
		is.NoErr(err)
		t.Cleanup(func() { is.NoErr(d.Close()) })
		test(t, newSetup(t, open(t), d))
	})
}

func newSetup(t *testing.T, db *bun.DB, d workspaces.Driver) setup {
	keys, err := keyring.Parse(keyring.Generate())
	is.New(t).NoErr(err)
	s := setup{db: db, driver: d, exist: map[string]bool{app: true, draft: true}}
	s.Service = workspaces.New(workspaces.Options{
		Driver: d, Store: bunstore.New(db), Keys: keys, Kind: "app",
		Exist: func(context.Context, string, []string) (map[string]bool, error) { return s.exist, nil },
	})
	return s
}

func (s setup) query(t *testing.T, tenant, app, statement string) string {
	t.Helper()
	c, err := s.Connect(t.Context(), tenant, app)
	is.New(t).NoErr(err)
	defer func() { _ = c.Close() }()
	rows, err := c.Query(t.Context(), statement, nil)
	if err != nil {
		return errs.MessageOf(err)
	}
	return string(rows)
}

func TestConnect(t *testing.T) {
	each(t, func(t *testing.T, s setup) {
		is := is.New(t)
		is.Equal(s.query(t, "acme", app, "CREATE TABLE t (k integer)"), "[]")
		is.Equal(s.query(t, "acme", strings.ToUpper(app), "SELECT k FROM t"), "[]") // an id has one workspace
		is.Equal(s.query(t, "evil", app, "SELECT k FROM t"), "no such table: t")
		is.Equal(s.query(t, "acme", draft, "SELECT k FROM t"), "no such table: t")
		for _, bad := range []string{"", "x", "../" + app, app + "/.."} {
			_, err := s.Connect(t.Context(), "acme", bad)
			is.Equal(errs.CodeOf(err), errs.Invalid)
		}
		again := newSetup(t, s.db, s.driver) // with another key
		_, err := again.Connect(t.Context(), "acme", app)
		is.Equal(errs.CodeOf(err), errs.Internal)
	})
}

func TestWithoutDriver(t *testing.T) {
	is, s := is.New(t), newSetup(t, dbtest.SQLite(t), nil)
	_, err := s.Connect(t.Context(), "acme", app)
	is.Equal(errs.CodeOf(err), errs.Unavailable)
	is.True(strings.Contains(errs.MessageOf(err), "TENANTCONTENT_WORKSPACES"))
	_, err = s.Migrate(t.Context(), "acme", app, fstest.MapFS{"migrations/a.sql": {Data: []byte("SELECT 1")}})
	is.Equal(errs.CodeOf(err), errs.Unavailable)
	// an app without migrations needs none
	none, err := s.Migrate(t.Context(), "acme", app, fstest.MapFS{"index.html": {}})
	is.NoErr(err)
	is.Equal(len(none), 0)
	_, err = s.Stats(t.Context(), "acme", app)
	is.Equal(errs.CodeOf(err), errs.Unavailable)
	is.NoErr(s.Drop(t.Context(), "acme", []string{app}))
	is.NoErr(s.Hooks().Removed(t.Context(), "acme"))
	n, err := s.Hooks().Sweep(t.Context(), "acme")
	is.NoErr(err)
	is.Equal(n, 0)
}

// TestRolledBackWorkspace: a workspace whose row was rolled back is connected to all the same.
func TestRolledBackWorkspace(t *testing.T) {
	each(t, func(t *testing.T, s setup) {
		is, undone := is.New(t), errors.New("undone")
		is.Equal(bunx.InTx(t.Context(), s.db, func(ctx context.Context) error {
			_, err := s.Migrate(ctx, "acme", app, fstest.MapFS{"migrations/a.sql": {
				Data: []byte("CREATE TABLE t (k integer)"),
			}})
			is.NoErr(err)
			return undone
		}), undone)
		is.Equal(s.query(t, "acme", app, "SELECT k FROM t"), "[]") // what migrations did is no part of the transaction
		all, err := bunstore.New(s.db).Loose(t.Context(), "acme")
		is.NoErr(err)
		is.Equal(all, []string{app})
	})
}

func TestDrop(t *testing.T) {
	each(t, func(t *testing.T, s setup) {
		is, undone := is.New(t), errors.New("undone")
		for _, tenant := range []string{"acme", "evil"} {
			for _, id := range []string{app, draft} {
				is.Equal(s.query(t, tenant, id, "CREATE TABLE t (k integer)"), "[]")
			}
		}
		gone := []entity.Key{{Kind: "app", ID: app}, {Kind: "report", ID: draft}}
		is.Equal(bunx.InTx(t.Context(), s.db, func(ctx context.Context) error {
			is.NoErr(s.Hooks().Deleted(ctx, "acme", gone...))
			return undone
		}), undone)
		is.Equal(s.query(t, "acme", app, "SELECT k FROM t"), "[]")
		is.NoErr(s.Hooks().Deleted(t.Context(), "acme", gone...))
		stats, err := s.Stats(t.Context(), "acme", app)
		is.NoErr(err)
		is.Equal(len(stats.Tables), 0)
		is.Equal(s.query(t, "acme", app, "SELECT k FROM t"), "no such table: t")
		is.Equal(s.query(t, "acme", draft, "SELECT k FROM t"), "[]")

		s.exist[app] = false
		n, err := s.Hooks().Sweep(t.Context(), "acme")
		is.NoErr(err)
		is.Equal(n, 1)
		s.exist[draft] = false
		n, err = s.Hooks().Sweep(t.Context(), "acme")
		is.NoErr(err)
		is.Equal(n, 1)
		is.Equal(s.query(t, "acme", draft, "SELECT k FROM t"), "no such table: t")
		is.Equal(s.query(t, "evil", app, "SELECT k FROM t"), "[]")
		is.NoErr(s.Hooks().Removed(t.Context(), "evil"))
		is.Equal(s.query(t, "evil", app, "SELECT k FROM t"), "no such table: t")
	})
}

func TestMigrate(t *testing.T) {
	each(t, func(t *testing.T, s setup) {
		is := is.New(t)
		files := fstest.MapFS{
			"migrations/0001_init.sql":           {Data: []byte("CREATE TABLE t (k integer);")},
			"migrations/0002_more.postgres.sql":  {Data: []byte("SELECT no_such_function()")},
			"migrations/0003_both.sql":           {Data: []byte("SELECT no_such_function()")},
			"migrations/0003_both.sqlite.sql":    {Data: []byte("INSERT INTO t (k) VALUES (3);")},
			"migrations/0003_both.postgres.sql":  {Data: []byte("SELECT no_such_function()")},
			"migrations/old/0000.sql":            {Data: []byte("SELECT no_such_function()")},
			"migrations/0004_loud.SQL":           {Data: []byte("SELECT no_such_function()")},
			"migrations/README.md":               {Data: []byte("no SQL")},
			"server/migrations/0000_not_one.sql": {Data: []byte("SELECT no_such_function()")},
		}
		yielded := false
		applied, err := s.Migrate(limiter.WithYield(t.Context(), func() { yielded = true }), "acme", app, files)
		is.True(yielded) // no place of a limiter is held while the SQL runs
		is.NoErr(err)
		is.Equal(applied, []string{"0001_init.sql", "0003_both.sql"})
		is.Equal(s.query(t, "acme", app, "SELECT k FROM t"), `[{"k":3}]`)
		files["migrations/0001_init.sql"] = &fstest.MapFile{Data: []byte("CREATE TABLE u (k integer);")}
		files["migrations/0003_both.sql"] = &fstest.MapFile{Data: []byte("SELECT 1")} // is not the one of this engine
		files["migrations/0004_bad.sql"] = &fstest.MapFile{Data: []byte("-- a\n\nINSERT INTO t\n(l) VALUES (1)")}
		files["migrations/0005_good.sql"] = &fstest.MapFile{Data: []byte("SELECT 1")}
		files["migrations/0002_late.sql"] = &fstest.MapFile{Data: []byte("SELECT 1")}
		doubts, err := s.Doubts(t.Context(), "acme", app, files)
		is.NoErr(err)
		is.Equal(doubts, []string{
			"migrations/0004_loud.SQL is not applied: its name must end in .sql, in small letters.",
			"migrations/old/0000.sql is in a folder below migrations, where nothing is applied.",
			"migrations/0001_init.sql has changed since it was applied, and is not applied again: what it is to " +
				"do now belongs into a new file.",
			"migrations/0002_late.sql comes before migrations/0003_both.sql, which was applied already, and is " +
				"applied after it: a new file has a name that comes last.",
		})
		delete(files, "migrations/0002_late.sql")
		applied, err = s.Migrate(t.Context(), "acme", app, files)
		is.Equal(len(applied), 0)
		is.Equal(errs.CodeOf(err), errs.Invalid)
		is.Equal(errs.MessageOf(err), "migrations/0004_bad.sql:3: table t has no column named l")
		stats, err := s.Stats(t.Context(), "acme", app)
		is.NoErr(err)
		is.Equal(len(stats.Tables), 1)
		is.Equal(stats.Tables[0].Rows, int64(1))
		files["migrations/0004_bad.sql"] = &fstest.MapFile{Data: make([]byte, workspaces.MaxMigration+1)}
		_, err = s.Migrate(t.Context(), "acme", app, files)
		is.Equal(errs.MessageOf(err), "migrations/0004_bad.sql is larger than 1 MiB: part it.")
	})
}

// TestUndoing checks that what other tools have for undoing is not applied.
func TestUndoing(t *testing.T) {
	for name, text := range map[string]string{
		"0001_init.down.sql": "", "0001_init.DOWN.sql": "", "0001_init.undo.sql": "",
		"0001.rollback.sqlite.sql": "", "0001.down.postgres.sql": "", "down.sql": "", "0001_init.revert.sql": "",
		"0001_init_down.sql": "", "0001_init-undo.sql": "", "U1__init.sql": "",
		"a.sql": "-- migrate:up\nSELECT 1;\n\n-- migrate:down\nDROP TABLE t",
		"b.sql": "SELECT 1;\n -- +goose Down\nDROP TABLE t",
		"c.sql": "-- +migrate Down", "d.sql": "-- //@UNDO\nDROP TABLE t",
	} {
		files := fstest.MapFS{
			"migrations/0001_init.sql": {Data: []byte("SELECT 1")},
			"migrations/V1__init.sql":  {Data: []byte("SELECT 1")}, "migrations/" + name: {Data: []byte(text)},
		}
		for _, engine := range []string{"sqlite", "postgres"} {
			_, err := workspaces.Migrations(files, engine)
			if errs.CodeOf(err) != errs.Invalid || !strings.Contains(errs.MessageOf(err), "migrations/"+name) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	for _, name := range []string{
		"0001.up.sql", "0002_slow_down.sql", "0003_undo_log.sql", "0004_downloads.sql", "Users.sql",
		"U2__x.sql", "0005_markdown.sql", "x/README.md",
	} {
		all, err := workspaces.Migrations(fstest.MapFS{
			"migrations/" + name: {Data: []byte("-- the way down: migrate:down is not here\nSELECT 1")},
		}, "sqlite")
		is.New(t).NoErr(err)
		is.New(t).True(len(all) == 1 || name == "x/README.md")
	}
}

func TestRows(t *testing.T) {
	is := is.New(t)
	r := workspaces.NewRows([]string{"a"}, workspaces.Limits{})
	for _, v := range []any{nil, true, int64(-5), int64(1) << 53, 2.5, "a\tb", []byte{0xff}, json.RawMessage(`{"x":1}`),
		time.Date(2026, 11, 20, 20, 31, 0, 0, time.UTC),
		time.Date(2026, 11, 20, 20, 31, 0, 123456789, time.FixedZone("", 3600))} {
		is.NoErr(r.Add([]any{v}))
	}
	is.Equal(string(r.JSON()),
		`[{"a":null},{"a":true},{"a":-5},{"a":"9007199254740992"},{"a":2.5},{"a":"a\tb"},{"a":"/w=="},{"a":{"x":1}},`+
			`{"a":"2026-11-20T20:31:00.000Z"},{"a":"2026-11-20T19:31:00.123456Z"}]`)
}

func TestParams(t *testing.T) {
	is := is.New(t)
	for _, none := range []string{"", "null", " [] "} {
		all, err := workspaces.Params(json.RawMessage(none))
		is.NoErr(err)
		is.Equal(len(all), 0)
	}
	all, err := workspaces.Params(
		json.RawMessage(`[null, true, 7, 9223372036854775808, 1e2, "x", {"base64": "/w=="}, {"base64": "x", "y": ` +
			`1}, [1]]`),
	)
	is.NoErr(err)
	is.Equal(all, []any{
		nil, true, int64(7), "9223372036854775808", 100.0, "x", []byte{0xff},
		json.RawMessage(`{"base64": "x", "y": 1}`), json.RawMessage(`[1]`),
	})
	_, err = workspaces.Params(json.RawMessage(`[1, 1e999]`))
	is.Equal(errs.MessageOf(err), "params[1]: 1e999 is no number that a database holds.")
}

// fixed is a Driver whose workspaces do not travel, and located one that names where they are.
type fixed struct{ workspaces.Driver }

type located struct{ fixed }

func (fixed) Engine() string                  { return "duckdb" }
func (located) Location(tenant string) string { return "the files of " + tenant }

// TestMovable: what does not travel is refused in words that are right for any driver.
func TestMovable(t *testing.T) {
	is, db := is.New(t), dbtest.SQLite(t)
	files, err := sqlite.New(sqlite.Options{Dir: t.TempDir()})
	is.NoErr(err)
	t.Cleanup(func() { is.NoErr(files.Close()) })
	s := newSetup(t, db, located{fixed{files}})
	n, err := s.Movable(t.Context(), "acme")
	is.NoErr(err)
	is.Equal(n, 0)
	is.Equal(s.query(t, "acme", app, "CREATE TABLE t (k integer)"), "[]")
	n, err = s.Movable(t.Context(), "acme")
	is.Equal(n, 1)
	is.Equal(errs.CodeOf(err), errs.Conflict)
	is.Equal(
		errs.MessageOf(err),
		"The tenant acme has 1 SQL databases of apps in duckdb, which do not travel in the file: leave them "+
			"behind (--without-workspaces), and move the files of acme with the tools of duckdb",
	)
	is.Equal(
		s.Left("acme", 1),
		"1 SQL databases of apps: move the files of acme with the tools of duckdb, or publish the apps again, "+
			"which makes empty tables",
	)
	_, err = newSetup(t, db, fixed{files}).Movable(t.Context(), "acme")
	is.Equal(
		errs.MessageOf(err),
		"The tenant acme has 1 SQL databases of apps in duckdb, which do not travel in the file: leave them "+
			"behind (--without-workspaces)",
	)
	_, err = newSetup(t, db, files).Movable(t.Context(), "acme")
	is.True(strings.HasPrefix(
		errs.MessageOf(err),
		"1 SQL databases of apps of the tenant acme were made with duckdb, and workspaces here are sqlite: ",
	))

	elsewhere, err := sqlite.New(sqlite.Options{Dir: t.TempDir()})
	is.NoErr(err)
	t.Cleanup(func() { is.NoErr(elsewhere.Close()) })
	n, err = newSetup(t, db, fixed{elsewhere}).Reachable(t.Context(), "acme")
	is.Equal(n, 1)
	is.True(strings.HasPrefix(
		errs.MessageOf(err), "1 SQL databases of apps of the tenant acme are not among the workspaces here: ",
	))
}
