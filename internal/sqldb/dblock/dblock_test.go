package dblock_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/matryer/is"
	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/dblock"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// names checks that an error is a conflict that names this process and its purpose.
func names(t *testing.T, err error, purpose string) {
	t.Helper()
	is := is.New(t)
	is.Equal(errs.CodeOf(err), errs.Conflict)
	is.True(strings.Contains(err.Error(), purpose+" (process "+fmt.Sprint(os.Getpid())+" on "))
}

func TestManyShareOneIsAlone(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, ctx, db, other := is.New(t), t.Context(), open(t), open(t)
		one, err := dblock.Share(ctx, db, "one")
		is.NoErr(err)
		two, err := dblock.Share(ctx, db, "two")
		is.NoErr(err)
		_, err = dblock.Alone(ctx, db, "three")
		names(t, err, "one")
		names(t, err, "two")
		is.NoErr(one.Release())
		_, err = dblock.Alone(ctx, db, "three")
		names(t, err, "two")
		is.True(!strings.Contains(err.Error(), "one ("))
		is.NoErr(two.Release())

		three, err := dblock.Alone(ctx, db, "three")
		is.NoErr(err)
		_, err = dblock.Share(ctx, db, "four")
		names(t, err, "three")
		_, err = dblock.Alone(ctx, db, "four")
		names(t, err, "three")
		far, err := dblock.Alone(ctx, other, "far") // another database or schema has another lock
		is.NoErr(err)
		is.NoErr(far.Release())
		is.NoErr(three.Check(ctx))
		is.NoErr(three.Release())
		four, err := dblock.Share(ctx, db, "four")
		is.NoErr(err)
		is.NoErr(four.Release())
	})
}

// TestLostWithItsConnection: Check returns an error after the server has ended the connection.
func TestLostWithItsConnection(t *testing.T) {
	dbtest.Server(t)
	is, ctx, db := is.New(t), t.Context(), dbtest.Postgres(t)
	lock, err := dblock.Share(ctx, db, "lost")
	is.NoErr(err)
	ended, c := bunx.For(ctx, db, "")
	n, err := c.Exec(
		ended,
		`SELECT pg_terminate_backend(pid, 20000) FROM pg_stat_activity WHERE application_name LIKE 'lost (%'`,
	)
	is.NoErr(err)
	is.Equal(n, 1)
	is.True(lock.Check(ctx) != nil)
	is.NoErr(lock.Release())
}

// TestStaleLines: processes that have ended are not named, and their lines are removed.
func TestStaleLines(t *testing.T) {
	is, ctx, db := is.New(t), t.Context(), dbtest.SQLite(t)
	lock, err := dblock.Share(ctx, db, "mine")
	is.NoErr(err)
	file := lockFile(t, db)
	host, err := os.Hostname()
	is.NoErr(err)
	old, err := os.ReadFile(file)
	is.NoErr(err)
	is.NoErr(os.WriteFile(
		file,
		append([]byte("999999999 gone (process 999999999 on "+host+")\n1 far (process 1 on elsewhere)\n"), old...),
		0o600,
	))
	_, err = dblock.Alone(ctx, db, "other")
	names(t, err, "mine")
	is.True(!strings.Contains(err.Error(), "gone"))
	is.True(strings.Contains(err.Error(), "far (process 1 on elsewhere)")) // this machine cannot know whether it runs
	is.NoErr(lock.Release())
	info, err := os.Stat(file)
	is.NoErr(err)
	is.Equal(info.Mode().Perm(), os.FileMode(0o600))
}

func lockFile(t *testing.T, db *bun.DB) string {
	t.Helper()
	var path string
	is.New(t).NoErr(db.QueryRowContext(t.Context(), "SELECT file FROM pragma_database_list").Scan(&path))
	return filepath.Clean(path) + "-lock"
}

// TestOnePlace: a pool with one connection, which the lock would need, is refused.
func TestOnePlace(t *testing.T) {
	dbtest.Server(t)
	db := dbtest.Postgres(t)
	db.SetMaxOpenConns(1)
	_, err := dblock.Share(t.Context(), db, "one")
	is.New(t).Equal(errs.CodeOf(err), errs.Invalid)
}
