package bunx_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/matryer/is"
	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/store/engines"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/internal/testkit/pgtest"
)

// exec runs a write of the tenant acme.
func exec(ctx context.Context, db *bun.DB, query string, args ...any) error {
	return bunx.Write(ctx, db, "acme", func(ctx context.Context, c bunx.Conn) error {
		_, err := c.Exec(ctx, query, args...)
		return bunx.Err(err, "Thing")
	})
}

func TestErrCodes(t *testing.T) {
	const insert = "INSERT INTO tc_principals (tenant_id, id, type, label) VALUES ($1, $2, 'User', '')"
	const member = "INSERT INTO tc_memberships (tenant_id, team_id, username, role, created_at) " +
		"VALUES ('acme', 'x', 'x', 1, $1)"
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, ctx, db := is.New(t), t.Context(), open(t)
		is.NoErr(exec(ctx, db, insert, "acme", "a"))
		is.Equal(errs.CodeOf(exec(ctx, db, insert, "acme", "a")), errs.Conflict) // primary key
		is.NoErr(exec(
			ctx, db,
			"CREATE UNIQUE INDEX tc_test ON tc_principals (tenant_id, type, label) WHERE type = 'User'",
		))
		err := exec(ctx, db, insert, "acme", "b")
		is.Equal(errs.CodeOf(err), errs.Conflict) // unique index
		is.Equal(err.Error(), "Thing exists already.")
		is.Equal(errs.CodeOf(exec(ctx, db, member, bunx.At(time.Now()))), errs.Conflict) // foreign key
		is.Equal(errs.CodeOf(exec(ctx, db, "nonsense")), errs.Internal)

		ctx, c := bunx.For(ctx, db, "acme")
		err = c.One(ctx, "Color", "SELECT key FROM tc_colors WHERE key = $1", []any{"x"}, new(string))
		is.Equal(errs.CodeOf(err), errs.NotFound)
		is.Equal(errs.MessageOf(err), "Color not found.")
	})
}

func TestErrPassesOn(t *testing.T) {
	is := is.New(t)
	ours, other := errs.New(errs.Forbidden, "No."), errors.New("x")
	is.NoErr(bunx.Err(nil, ""))
	is.Equal(bunx.Err(ours, "Thing"), ours)
	is.Equal(bunx.Err(other, "Thing"), other)
	is.Equal(errs.CodeOf(bunx.Err(fmt.Errorf("scan: %w", sql.ErrNoRows), "Thing")), errs.NotFound)
	is.Equal(errs.CodeOf(bunx.Err(context.Canceled, "Thing")), errs.Canceled)
	is.Equal(errs.CodeOf(bunx.Err(context.DeadlineExceeded, "Thing")), errs.Unavailable)
}

// slow returns a statement that does not end.
func slow(c bunx.Conn) string {
	if c.Postgres() {
		return "SELECT count(pg_sleep(60))"
	}
	return "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM r) SELECT count(*) FROM r"
}

func TestErrOfEndedContexts(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, db := is.New(t), open(t)
		read := func(ctx context.Context) error {
			ctx, c := bunx.For(ctx, db, "acme")
			return c.One(ctx, "Thing", slow(c), nil, new(int))
		}
		write := func(ctx context.Context) error {
			return bunx.Write(ctx, db, "acme", func(ctx context.Context, c bunx.Conn) error {
				return c.One(ctx, "Thing", slow(c), nil, new(int))
			})
		}
		for _, run := range []func(context.Context) error{read, write} {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			is.Equal(errs.CodeOf(run(ctx)), errs.Unavailable)

			ctx, cancel = context.WithCancel(t.Context())
			time.AfterFunc(50*time.Millisecond, cancel)
			err := run(ctx)
			is.True(errors.Is(err, context.Canceled))
			is.Equal(errs.CodeOf(err), errs.Canceled)
			is.NoErr(put(t.Context(), db, fmt.Sprint(time.Now().UnixNano()), time.Now()))
		}
	})
}

func TestErrOfServerLimits(t *testing.T) {
	dbtest.Server(t)
	is, db := is.New(t), dbtest.Postgres(t)
	err := bunx.Write(t.Context(), db, "acme", func(ctx context.Context, c bunx.Conn) error {
		_, err := c.Exec(ctx, "SET LOCAL statement_timeout = 50")
		is.NoErr(err)
		return c.One(ctx, "Thing", slow(c), nil, new(int))
	})
	is.Equal(errs.CodeOf(err), errs.Unavailable)

	is.NoErr(put(t.Context(), db, "a", time.Now()))
	const touch = "UPDATE tc_colors SET color = '#000' WHERE key = 'a'"
	err = bunx.Write(t.Context(), db, "acme", func(ctx context.Context, c bunx.Conn) error {
		_, err := c.Exec(ctx, touch)
		is.NoErr(err)
		// Starts another transaction.
		return bunx.Write(t.Context(), db, "acme", func(ctx context.Context, c bunx.Conn) error {
			_, err := c.Exec(ctx, "SET LOCAL lock_timeout = 50")
			is.NoErr(err)
			_, err = c.Exec(ctx, touch)
			return bunx.Err(err, "Color")
		})
	})
	is.Equal(errs.CodeOf(err), errs.Unavailable)
}

// TestErrOfLostServer kills a PostgreSQL server under an idle pool, an open transaction and a
// running statement.
func TestErrOfLostServer(t *testing.T) {
	dbtest.Server(t) // skips, or fails, without a server
	is := is.New(t)
	server, err := pgtest.Start(t.Context())
	is.NoErr(err)
	defer server.Stop()
	db, err := engines.Open(server.URL)
	is.NoErr(err)
	defer func() { _ = db.Close() }()
	read := func(query string) error {
		ctx, c := bunx.For(t.Context(), db, "acme")
		return c.One(ctx, "Thing", query, nil, new(int))
	}
	is.NoErr(read("SELECT 1"))

	running := make(chan error)
	go func() { running <- read("SELECT count(pg_sleep(60))") }()
	err = bunx.Write(t.Context(), db, "acme", func(ctx context.Context, c bunx.Conn) error {
		is.NoErr(c.One(ctx, "Thing", "SELECT 1", nil, new(int)))
		time.Sleep(50 * time.Millisecond)
		server.Kill()
		return c.One(ctx, "Thing", "SELECT 1", nil, new(int))
	})
	is.Equal(errs.CodeOf(err), errs.Unavailable)
	is.Equal(errs.CodeOf(<-running), errs.Unavailable)
	is.Equal(errs.CodeOf(read("SELECT 1")), errs.Unavailable)
	is.Equal(errs.CodeOf(exec(t.Context(), db, "SELECT 1")), errs.Unavailable)

	is.NoErr(server.Restart(t.Context()))
	is.NoErr(read("SELECT 1"))
}

// TestErrOfUnansweredCommit: a change whose commit was not answered is reported as neither made nor
// undone.
func TestErrOfUnansweredCommit(t *testing.T) {
	dbtest.Server(t) // skips, or fails, without a server
	is := is.New(t)
	server, err := pgtest.Start(t.Context())
	is.NoErr(err)
	defer server.Stop()
	db, err := engines.Open(server.URL + "&read_timeout=1s&write_timeout=1s&connect_timeout=1")
	is.NoErr(err)
	defer func() { _ = db.Close() }()
	is.NoErr(exec(t.Context(), db, "CREATE TABLE t (n int)"))
	insert := func(ctx context.Context, c bunx.Conn) error {
		_, err := c.Exec(ctx, "INSERT INTO t VALUES (1)")
		return bunx.Err(err, "Thing")
	}
	const away, unknown = "The database is not available at the moment. Try again.",
		"The database did not answer: the change may or may not have been made. Look before you try again."
	refused := func(err error, message string) {
		t.Helper()
		is.Helper()
		code := errs.Unconfirmed
		if message == away {
			code = errs.Unavailable
		}
		is.Equal(errs.CodeOf(err), code)
		is.Equal(errs.MessageOf(err), message)
	}

	refused(bunx.Write(t.Context(), db, "acme", func(ctx context.Context, c bunx.Conn) error {
		defer server.Freeze()
		return insert(ctx, c)
	}), unknown)
	refused(bunx.WriteOne(t.Context(), db, "acme", insert), away) // not sent, because there was no connection
	server.Thaw()
	for err = errors.New("not tried"); err != nil; {
		err = db.PingContext(t.Context())
	}
	refused(bunx.WriteOne(t.Context(), db, "acme", func(ctx context.Context, c bunx.Conn) error {
		server.Freeze()
		return insert(ctx, c)
	}), unknown)
	server.Thaw()
}

func TestOutOfMemory(t *testing.T) {
	dbtest.Server(t)
	is, db := is.New(t), dbtest.Postgres(t)
	is.True(bunx.OutOfMemory(exec(
		t.Context(), db, `DO $$ BEGIN RAISE 'out of shared memory' USING ERRCODE = '53200'; END $$`,
	)))
	is.True(!bunx.OutOfMemory(exec(t.Context(), db, `DO $$ BEGIN RAISE 'terminated' USING ERRCODE = '57P01'; END $$`)))
	is.True(!bunx.OutOfMemory(nil))
}

// TestEndedWrites ends the context of a write that waits for a lock, with each driver that a host
// can use. The error says that the write may have been made, and the server stops it. The error of
// a read does not say that.
func TestEndedWrites(t *testing.T) {
	dbtest.Server(t)
	for name, open := range map[string]dbtest.Opener{
		"pgsafe":   dbtest.Postgres,
		"pgdriver": dbtest.PGDriver,
		"pgx":      dbtest.PGX,
	} {
		for _, by := range []string{"deadline", "cancel"} {
			t.Run(name+"/"+by, func(t *testing.T) {
				is, db := is.New(t), open(t)
				is.NoErr(put(t.Context(), db, "held", time.Now()))
				waiting := func() (n int) {
					is.NoErr(
						db.NewRaw(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() `+
							`AND wait_event_type = 'Lock'`).Scan(t.Context(), &n),
					)
					return n
				}
				write := func(ctx context.Context) error {
					return bunx.WriteOne(ctx, db, "acme", func(ctx context.Context, c bunx.Conn) error {
						_, err := c.Exec(
							ctx,
							"UPDATE tc_colors SET color = '#123' WHERE tenant_id = 'acme' AND key = 'held'",
						)
						return bunx.Err(err, "Color")
					})
				}
				err := bunx.Write(t.Context(), db, "acme", func(ctx context.Context, c bunx.Conn) error {
					if _, err := c.Exec(
						ctx, "UPDATE tc_colors SET color = '#000' WHERE tenant_id = 'acme' AND key = 'held'",
					); err != nil {
						return err
					}
					limited, cancel := context.WithTimeout(t.Context(), time.Hour)
					if by == "deadline" {
						limited, cancel = context.WithTimeout(t.Context(), time.Second)
					}
					defer cancel()
					done := make(chan error, 1)
					go func() { done <- write(limited) }()
					for by == "cancel" && waiting() == 0 {
					}
					if by == "cancel" {
						cancel()
					}
					if name == "pgdriver" && by == "cancel" { // it notices only by its own time-out
						return nil
					}
					err := <-done
					is.Equal(errs.CodeOf(err), errs.Unconfirmed)
					is.Equal(
						errs.MessageOf(err),
						"The database did not answer: the change may or may not have been made. Look before you "+
							"try again.",
					)
					for waiting() > 0 { // the lock is still held
						time.Sleep(10 * time.Millisecond)
					}
					return nil
				})
				is.NoErr(err)
				if name == "pgdriver" && by == "cancel" {
					for waiting() > 0 {
						time.Sleep(10 * time.Millisecond)
					}
				}
				ctx, c := bunx.For(t.Context(), db, "acme")
				var color string
				is.NoErr(c.One(
					ctx, "Color", "SELECT color FROM tc_colors WHERE tenant_id = $1 AND key = 'held'",
					[]any{"acme"}, &color,
				))
				is.Equal(color, "#000") // the server stopped the other one
			})
		}
	}
}

// TestEndedBeforeSending: if the context ends before the statement is sent, the error says that the
// write was not made.
func TestEndedBeforeSending(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, db := is.New(t), open(t)
		db.SetMaxOpenConns(1)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		brief, cancelBrief := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancelBrief()
		insert := func(ctx context.Context) error {
			return bunx.WriteOne(ctx, db, "acme", func(ctx context.Context, c bunx.Conn) error {
				_, err := c.Exec(
					ctx,
					"INSERT INTO tc_principals (tenant_id, id, type, label) VALUES ('acme', 'x', 'User', '')",
				)
				return bunx.Err(err, "User")
			})
		}
		is.NoErr(bunx.Write(t.Context(), db, "acme", func(context.Context, bunx.Conn) error {
			// the only connection, or the only writer, is in use
			err := insert(ended)
			is.Equal(errs.CodeOf(err), errs.Canceled)
			is.True(errors.Is(err, context.Canceled))
			is.Equal(errs.CodeOf(insert(brief)), errs.Unavailable)
			return nil
		}))
		n, err := bunx.Count(t.Context(), db, "acme", "tc_principals")
		is.NoErr(err)
		is.Equal(n, 1)
	})
}
