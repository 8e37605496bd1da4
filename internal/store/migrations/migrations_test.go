package migrations_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"
	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/store/engines"
	"github.com/tenantcontent/tenantcontent/internal/store/migrations"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// TestMain also runs the other processes of some tests. They migrate the database in the
// environment when their input ends, or begin to and wait until they are killed.
func TestMain(m *testing.M) {
	url := os.Getenv("MIGRATIONS_TEST_URL")
	if url == "" {
		os.Exit(m.Run())
	}
	if err := child(context.Background(), url, os.Getenv("MIGRATIONS_TEST_HANG") != ""); err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
}

func child(ctx context.Context, url string, hang bool) error {
	db, err := engines.Open(url)
	if err != nil {
		return err
	}
	if !hang {
		_, _ = io.ReadAll(os.Stdin)
		return migrations.Run(ctx, db)
	}
	return bunx.InTx(ctx, db, func(ctx context.Context) error { // all of it joins this transaction
		if err := migrations.Run(ctx, db); err != nil {
			return err
		}
		fmt.Println("migrated, not committed")
		// select {} would end a process in which nothing else runs: "all goroutines are asleep"
		_, err := io.ReadAll(os.Stdin)
		return err
	})
}

func start(t *testing.T, url string, env ...string) (*exec.Cmd, io.Closer, *bufio.Scanner) {
	t.Helper()
	is, c := is.New(t), exec.Command(os.Args[0])
	c.Env = append(os.Environ(), append(env, "MIGRATIONS_TEST_URL="+url, "GORACE=atexit_sleep_ms=0")...)
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	is.NoErr(err)
	out, err := c.StdoutPipe()
	is.NoErr(err)
	is.NoErr(c.Start())
	return c, in, bufio.NewScanner(out)
}

// each returns the URL of an empty database of each engine.
func each(t *testing.T, test func(t *testing.T, url string)) {
	t.Run("sqlite", func(t *testing.T) { test(t, "sqlite:"+filepath.Join(t.TempDir(), "test.db")) })
	t.Run("postgres", func(t *testing.T) { test(t, dbtest.PostgresURL(t)) })
}

func open(t *testing.T, url string) *bun.DB {
	t.Helper()
	db, err := engines.Open(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// list returns the first column of a query.
func list(t *testing.T, db *bun.DB, query string, args ...any) []string {
	t.Helper()
	rows, err := db.DB.QueryContext(t.Context(), query, args...)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	var all []string
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

func applied(t *testing.T, db *bun.DB) []string {
	t.Helper()
	return list(t, db, "SELECT name FROM tc_migrations ORDER BY name")
}

// names returns the names of an engine's files in the form of migrations.
func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		name, ok := strings.CutSuffix(f.Name(), ".tx.up.sql")
		if !ok {
			t.Errorf("%s/%s is no migration", dir, f.Name())
		}
		all = append(all, name)
	}
	return all
}

func TestSameFilesForEachEngine(t *testing.T) {
	is := is.New(t)
	is.True(len(names(t, "sqlite")) > 0)
	is.Equal(names(t, "sqlite"), names(t, "postgres"))
}

func TestRun(t *testing.T) {
	each(t, func(t *testing.T, url string) {
		is, ctx, db, want := is.New(t), t.Context(), open(t, url), names(t, "sqlite")
		pending, err := migrations.Pending(ctx, db)
		is.NoErr(err)
		is.Equal(pending, want)
		is.NoErr(migrations.Run(ctx, db))
		at := list(t, db, "SELECT migrated_at FROM tc_migrations ORDER BY name")
		pending, err = migrations.Pending(ctx, db)
		is.NoErr(err)
		is.Equal(len(pending), 0)
		is.NoErr(migrations.Run(ctx, db)) // does nothing
		is.Equal(applied(t, db), want)
		is.Equal(list(t, db, "SELECT migrated_at FROM tc_migrations ORDER BY name"), at)
	})
}

func TestUnknownMigrationIsRefused(t *testing.T) {
	each(t, func(t *testing.T, url string) {
		is, ctx, db := is.New(t), t.Context(), open(t, url)
		is.NoErr(migrations.Run(ctx, db))
		_, err := db.ExecContext(ctx, "INSERT INTO tc_migrations (name, migrated_at) VALUES ('9999_future', '')")
		is.NoErr(err)
		err = migrations.Run(ctx, db)
		is.Equal(errs.CodeOf(err), errs.Invalid)
		is.True(strings.Contains(errs.MessageOf(err), "9999_future"))
		_, err = migrations.Pending(ctx, db)
		is.Equal(errs.CodeOf(err), errs.Invalid)
	})
}

// TestFailedRunChangesNothing: a table that exists makes the last migration fail.
func TestFailedRunChangesNothing(t *testing.T) {
	each(t, func(t *testing.T, url string) {
		is, ctx, db := is.New(t), t.Context(), open(t, url)
		_, err := db.ExecContext(ctx, "CREATE TABLE tc_colors (mine integer)")
		is.NoErr(err)
		is.True(migrations.Run(ctx, db) != nil)
		pending, err := migrations.Pending(ctx, db)
		is.NoErr(err)
		is.Equal(pending, names(t, "sqlite"))
		_, err = db.ExecContext(ctx, "DROP TABLE tc_colors")
		is.NoErr(err)
		is.NoErr(migrations.Run(ctx, db))
	})
}

// TestProcessesAtOnce migrates an empty database from four processes.
func TestProcessesAtOnce(t *testing.T) {
	each(t, func(t *testing.T, url string) {
		is := is.New(t)
		type process struct {
			*exec.Cmd
			in  io.Closer
			out *bufio.Scanner
		}
		var all []process
		for range 4 {
			c, in, out := start(t, url)
			all = append(all, process{c, in, out})
		}
		for _, p := range all {
			is.NoErr(p.in.Close()) // start
		}
		for _, p := range all {
			for p.out.Scan() {
				t.Error(p.out.Text())
			}
			is.NoErr(p.Wait())
		}
		is.Equal(applied(t, open(t, url)), names(t, "sqlite"))
	})
}

// TestKilledMigrator: a process is killed after it has migrated everything and before the commit,
// while another one waits for it.
func TestKilledMigrator(t *testing.T) {
	each(t, func(t *testing.T, url string) {
		is := is.New(t)
		killed, _, out := start(t, url, "MIGRATIONS_TEST_HANG=1")
		is.True(out.Scan())
		is.Equal(out.Text(), "migrated, not committed")
		db := open(t, url)
		pending, err := migrations.Pending(t.Context(), db) // does not wait
		is.NoErr(err)
		is.Equal(pending, names(t, "sqlite"))

		done := make(chan error)
		go func() { done <- migrations.Run(t.Context(), db) }()
		select {
		case err := <-done:
			t.Fatal("did not wait:", err)
		case <-time.After(100 * time.Millisecond):
		}
		is.NoErr(killed.Process.Kill())
		is.True(killed.Wait() != nil)
		select {
		case err := <-done:
			is.NoErr(err)
		case <-time.After(time.Minute):
			t.Fatal("the killed process blocks others")
		}
		is.Equal(applied(t, db), names(t, "sqlite"))
	})
}

func TestRowLevelSecurityOnSQLite(t *testing.T) {
	_, err := migrations.EnableRowLevelSecurity(t.Context(), dbtest.SQLite(t))
	is.New(t).Equal(errs.CodeOf(err), errs.Invalid)
}

// TestRowLevelSecurityIsOnEveryTable: every table with a tenant has row-level security, also when
// it is enabled twice.
func TestRowLevelSecurityIsOnEveryTable(t *testing.T) {
	dbtest.Server(t)
	is, db := is.New(t), dbtest.Postgres(t)
	tables, err := migrations.EnableRowLevelSecurity(t.Context(), db)
	is.NoErr(err)
	is.Equal(len(tables), 0) // it was on already
	_, err = db.ExecContext(
		t.Context(), "ALTER TABLE tc_colors NO FORCE ROW LEVEL SECURITY; DROP POLICY tc_tenant ON tc_users",
	)
	is.NoErr(err)
	tables, err = migrations.EnableRowLevelSecurity(t.Context(), db)
	is.NoErr(err)
	is.Equal(tables, []string{"tc_colors", "tc_users"})
	open := list(t, db,
		`SELECT c.relname FROM pg_class c WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r'
		AND NOT (c.relrowsecurity AND c.relforcerowsecurity AND EXISTS (SELECT FROM pg_policy p WHERE p.polrelid = c.oid)) ORDER BY 1`)
	is.Equal(open, []string{"tc_leases", "tc_migrations", "tc_tenants"})
}

func TestTriggersKeepPrincipals(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, db := is.New(t), open(t)
		principals := func() (all []string) {
			ctx, c := bunx.For(t.Context(), db, "acme")
			rows, err := c.Rows(
				ctx,
				"SELECT type || ' ' || id || ' ' || label FROM tc_principals WHERE tenant_id = 'acme' ORDER BY 1",
			)
			is.NoErr(err)
			defer func() { _ = rows.Close() }()
			for rows.Next() {
				var s string
				is.NoErr(rows.Scan(&s))
				all = append(all, s)
			}
			return all
		}
		run := func(query string) {
			t.Helper()
			is.NoErr(bunx.Write(t.Context(), db, "acme", func(ctx context.Context, c bunx.Conn) error {
				_, err := c.Exec(ctx, query)
				return err
			}))
		}
		is.Equal(principals(), []string{"Everyone * "}) // created with the tenant
		run(insert(t, db, "tc_users", "username", "'jo'", "label", "'Jo'"))
		run(insert(t, db, "tc_teams", "id", "'7'", "label", "'Ops'"))
		is.Equal(principals(), []string{"Everyone * ", "Team 7 Ops", "User jo Jo"})
		run("UPDATE tc_users SET label = 'Jo B' WHERE username = 'jo'")
		run("UPDATE tc_teams SET label = 'Dev' WHERE id = '7'")
		run("UPDATE tc_users SET username = 'joe' WHERE username = 'jo'")
		is.Equal(principals(), []string{"Everyone * ", "Team 7 Dev", "User joe Jo B"})
		run("DELETE FROM tc_users WHERE username = 'joe'")
		run("DELETE FROM tc_teams WHERE id = '7'")
		is.Equal(principals(), []string{"Everyone * "})
		run(insert(t, db, "tc_users", "username", "'jo'"))
		run("DELETE FROM tc_tenants WHERE tenant_id = 'acme'")
		is.Equal(len(principals()), 0) // deleted with the tenant
	})
}

// insert runs an INSERT with the given values and some value in every other required column.
func insert(t *testing.T, db *bun.DB, table string, given ...string) string {
	t.Helper()
	names, values := []string{"tenant_id"}, []string{"'acme'"}
	for pair := range slices.Chunk(given, 2) {
		names, values = append(names, pair[0]), append(values, pair[1])
	}
	for _, c := range schemaOf(t, db)[table].columns {
		name, required := strings.CutSuffix(c, " NOT NULL")
		if required && !slices.Contains(names, name) {
			names, values = append(names, name), append(values, filler(t, db, table, name))
		}
	}
	return fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s)", table, strings.Join(names, ", "), strings.Join(values, ", "))
}

// TestPartitions: every table with a tenant has the requested number of partitions, which later
// runs do not change.
func TestPartitions(t *testing.T) {
	open := func() *bun.DB {
		db, err := engines.Open(dbtest.PostgresURL(t))
		is.New(t).NoErr(err)
		t.Cleanup(func() { _ = db.Close() })
		return db
	}
	is, db := is.New(t), open()
	is.NoErr(migrations.RunPartitioned(t.Context(), db, 3))
	is.NoErr(migrations.RunPartitioned(t.Context(), db, 3))
	is.NoErr(migrations.Run(t.Context(), db))
	whole := list(
		t, db,
		`SELECT c.relname FROM pg_class c WHERE c.relnamespace = current_schema()::regnamespace `+
			`AND c.relkind = 'r' AND NOT c.relispartition ORDER BY 1`,
	)
	is.Equal(whole, []string{"tc_leases", "tc_migrations", "tc_tenants"})
	others := list(t, db,
		`SELECT c.relname FROM pg_class c WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'p'
		AND (SELECT count(*) FROM pg_inherits WHERE inhparent = c.oid) <> 3`)
	is.Equal(len(others), 0)
	// Settings of a column are set on each partition, whose statistics are used to plan statements
	// of one tenant.
	told := func() []string {
		return list(
			t, db,
			`SELECT attrelid::regclass || ' ' || o FROM pg_attribute, unnest(attoptions) AS o `+
				`WHERE o LIKE 'n\_distinct=%' AND attrelid::regclass::text LIKE 'tc%' ORDER BY 1`,
		)
	}
	all := []string{
		"tc_comments n_distinct=-0.2", "tc_comments_p0 n_distinct=-0.2", "tc_comments_p1 n_distinct=-0.2",
		"tc_comments_p2 n_distinct=-0.2",
	}
	is.Equal(told(), all)
	for _, before := range []string{ // like a database whose partitions are older than those settings
		"ALTER TABLE tc_comments_p0 ALTER COLUMN parent_id RESET (n_distinct)",
		"ALTER TABLE tc_comments_p1 ALTER COLUMN parent_id RESET (n_distinct)",
		"ALTER TABLE tc_comments_p2 ALTER COLUMN parent_id RESET (n_distinct)",
		"DELETE FROM tc_migrations WHERE name LIKE '0051%'",
	} {
		_, err := db.ExecContext(t.Context(), before)
		is.NoErr(err)
	}
	is.Equal(told(), all[:1])
	is.NoErr(migrations.Run(t.Context(), db))
	is.Equal(told(), all)
	tables, err := migrations.EnableRowLevelSecurity(t.Context(), db)
	is.NoErr(err)
	is.True(slices.Contains(tables, "tc_users"))
	tables, err = migrations.EnableRowLevelSecurity(t.Context(), db)
	is.NoErr(err)
	is.Equal(len(tables), 0)

	for _, n := range []int{0, 2, migrations.MaxPartitions + 1} {
		is.Equal(errs.CodeOf(migrations.RunPartitioned(t.Context(), db, n)), errs.Invalid)
	}
	plain := open()
	is.NoErr(migrations.Run(t.Context(), plain))
	is.Equal(errs.CodeOf(migrations.RunPartitioned(t.Context(), plain, 3)), errs.Invalid)
	is.Equal(errs.CodeOf(migrations.RunPartitioned(t.Context(), dbtest.SQLite(t), 3)), errs.Invalid)
}
