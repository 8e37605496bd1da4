// Package dbtest opens both databases, migrated and empty, for tests.
//
// Tests and internal/bench import it. PostgreSQL is a throwaway server of the test's process
// (internal/testkit/pgtest), with row-level security: a statement that does not set its tenant sees
// no rows.
package dbtest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"

	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/store/engines"
	"github.com/tenantcontent/tenantcontent/internal/store/migrations"
	"github.com/tenantcontent/tenantcontent/internal/testkit/needs"
	"github.com/tenantcontent/tenantcontent/internal/testkit/pgtest"
)

// Opener opens a migrated database for one test, with the tenants acme and evil. It is closed when
// the test ends.
type Opener func(t testing.TB) *bun.DB

// Each runs a test on each database, as subtests sqlite and postgres.
func Each(t *testing.T, test func(t *testing.T, open Opener)) {
	t.Run("sqlite", func(t *testing.T) { test(t, SQLite) })
	t.Run("postgres", func(t *testing.T) {
		Server(t)
		test(t, Postgres)
	})
}

// SQLite returns an embedded database in a file for one test.
func SQLite(t testing.TB) *bun.DB {
	t.Helper()
	path := filepath.Join(t.TempDir(), "test.db")
	whole, err := template()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	return open(t, "sqlite:"+path)
}

// Shared is the environment variable with a folder that the processes of a test run share: it has a
// migrated SQLite file and a PostgreSQL cluster. Without it each process creates its own.
// .ci/test.sh sets it.
const Shared = "TENANTCONTENT_TEST_SHARED"

// template is a migrated SQLite file, kept in memory because migrating takes longer than most
// tests.
var template = sync.OnceValues(func() (whole []byte, err error) {
	dir, shared := os.Getenv(Shared), ""
	if dir != "" {
		shared = filepath.Join(dir, "template.db")
		if whole, err := os.ReadFile(shared); err == nil {
			return whole, nil
		}
	}
	own, err := os.MkdirTemp(dir, "tenantcontent-template-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(own) }()
	path := filepath.Join(own, "template.db")
	db, err := engines.Open("sqlite:" + path)
	if err != nil {
		return nil, err
	}
	err = prepare(context.Background(), db)
	if err := errors.Join(err, db.Close()); err != nil { // Close copies the log, so that the file is complete
		return nil, err
	}
	if whole, err = os.ReadFile(path); err == nil && dir != "" {
		err = os.Rename(path, shared)
	}
	return whole, err
})

// cluster is the process's PostgreSQL, with the role tester and the templates. pgtest stops it when
// the process ends, even if it is killed.
var cluster = sync.OnceValues(func() (*pgtest.Cluster, error) {
	ctx, shared := context.Background(), ""
	if dir := os.Getenv(Shared); dir != "" {
		shared = filepath.Join(dir, "cluster")
		if _, err := os.Stat(shared); err == nil {
			return pgtest.StartCopy(ctx, shared)
		}
	}
	c, err := pgtest.Start(ctx)
	if err != nil {
		return nil, err
	}
	if err := addTemplates(ctx, c); err != nil {
		return nil, err
	}
	if shared != "" {
		err = c.Save(ctx, shared)
	}
	return c, err
})

// addTemplates creates the databases that tests copy, which takes a tenth of the time of migrating.
// plain is migrated, and secured has row-level security, too. Policies do not apply to a superuser,
// so tests log in as tester.
func addTemplates(ctx context.Context, c *pgtest.Cluster) (err error) {
	admin, err := engines.Open(c.URL)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, admin.Close()) }()
	for _, make := range []string{
		"CREATE ROLE tester LOGIN CREATEDB",
		"CREATE DATABASE plain OWNER tester", "CREATE DATABASE secured OWNER tester",
	} {
		if _, err := admin.ExecContext(ctx, make); err != nil {
			return err
		}
	}
	for name, query := range map[string]string{"plain": "", "secured": "row_level_security=on"} {
		if err := fill(ctx, address(c, name, query), query != ""); err != nil {
			return err
		}
	}
	return nil
}

// Server returns the process's PostgreSQL server. Without installed server programs it skips the
// test, or fails it: see needs.Start.
func Server(t testing.TB) *pgtest.Cluster {
	t.Helper()
	c, err := cluster()
	needs.Start(t, err, pgtest.ErrNoServer)
	return c
}

var schemas atomic.Int64

// PostgresURL returns the URL of an empty schema for one test, as a user to which row-level
// security applies.
func PostgresURL(t testing.TB) string {
	t.Helper()
	c := Server(t)
	name := fmt.Sprintf("t%d", schemas.Add(1))
	admin, err := engines.Open(c.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = admin.Close() }()
	if _, err := admin.ExecContext(t.Context(), "CREATE SCHEMA "+name+" AUTHORIZATION tester"); err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(c.URL)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.User("tester")
	q := u.Query()
	q.Set("search_path", name)
	q.Set("row_level_security", "on")
	u.RawQuery = q.Encode()
	return u.String()
}

// Postgres returns a database for one test, with row-level security.
func Postgres(t testing.TB) *bun.DB {
	t.Helper()
	return open(t, address(Server(t), borrow(t, "secured"), "row_level_security=on"))
}

// create copies a template and returns the name of the copy.
func create(t testing.TB, template string) string {
	t.Helper()
	Server(t)
	all, err := databases()
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("t%d", schemas.Add(1))
	var version int
	if err := all.NewRaw("SELECT current_setting('server_version_num')::int").Scan(t.Context(), &version); err != nil {
		t.Fatal(err)
	}
	strategy := ""
	if version >= 15_00_00 { // version 14 does not have others
		strategy = " STRATEGY FILE_COPY" // as files, which writes no log
	}
	if _, err := all.ExecContext(
		t.Context(), fmt.Sprintf("CREATE DATABASE %s TEMPLATE %s OWNER tester%s", name, template, strategy),
	); err != nil {
		t.Fatal(err)
	}
	return name
}

// drop removes a database. If a test has killed the server, the database remains.
func drop(name string) {
	if all, err := databases(); err == nil {
		_, _ = all.ExecContext(context.Background(), fmt.Sprintf("DROP DATABASE %s WITH (FORCE)", name))
	}
}

// address returns the URL of a database of the cluster for the role tester.
func address(c *pgtest.Cluster, name, query string) string {
	u, err := url.Parse(c.URL)
	if err != nil {
		panic(err) // the URL is valid
	}
	u.User, u.Path = url.User("tester"), "/"+name
	u.RawQuery += "&" + query
	return u.String()
}

// databases is a connection that creates databases.
var databases = sync.OnceValues(func() (*bun.DB, error) {
	c, err := cluster()
	if err != nil {
		return nil, err
	}
	return engines.Open(c.URL)
})

// fill prepares a template.
func fill(ctx context.Context, url string, secured bool) (err error) {
	db, err := engines.Open(url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }() // a template must not have connections
	if err := prepare(ctx, db); err != nil || !secured {
		return err
	}
	_, err = migrations.EnableRowLevelSecurity(ctx, db)
	return err
}

func open(t testing.TB, url string) *bun.DB {
	t.Helper()
	db, err := engines.Open(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// Partitions is the environment variable with the number of partitions of each table of a
// PostgreSQL. Without it the tables are not partitioned.
const Partitions = "TENANTCONTENT_TEST_PARTITIONS"

func migrate(ctx context.Context, db *bun.DB) error {
	if n := os.Getenv(Partitions); n != "" && db.Dialect().Name() == dialect.PG {
		partitions, err := strconv.Atoi(n)
		if err != nil {
			return err
		}
		return migrations.RunPartitioned(ctx, db, partitions)
	}
	return migrations.Run(ctx, db)
}

// prepare migrates a database and adds the tenants that every suite uses.
func prepare(ctx context.Context, db *bun.DB) error {
	if err := migrate(ctx, db); err != nil {
		return err
	}
	for _, id := range []string{"acme", "evil"} {
		err := bunx.Write(ctx, db, id, func(ctx context.Context, c bunx.Conn) error {
			_, err := c.Exec(ctx, `INSERT INTO tc_tenants (tenant_id, name, settings, key_check, created_at, updated_at)
				VALUES ($1, $1, '{}', '', $2, $2)`, id, bunx.Time{Time: created})
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// People adds principals with some ids to both tenants, as owners of content. They are not users,
// and cannot log in.
func People(t testing.TB, db *bun.DB, ids ...string) *bun.DB {
	t.Helper()
	if err := addPeople(t.Context(), db, ids...); err != nil {
		t.Fatal(err)
	}
	return db
}

func addPeople(ctx context.Context, db *bun.DB, ids ...string) error {
	for _, tenant := range []string{"acme", "evil"} {
		err := bunx.Write(ctx, db, tenant, func(ctx context.Context, c bunx.Conn) error {
			for _, id := range ids {
				_, err := c.Exec(ctx,
					`INSERT INTO tc_principals (tenant_id, id, type, label) VALUES ($1, $2, 'User', $2)
					ON CONFLICT DO NOTHING`, tenant, id)
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// created is the creation time of the tenants of a test.
var created = time.Date(2026, 11, 20, 20, 31, 0, 0, time.UTC)
