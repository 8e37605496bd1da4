package bunx_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// hostTx is a transaction of a host.
type hostTx interface {
	Commit() error
	Rollback() error
}

// eachHostTx runs a test with transactions that bun begins and with those of package sql, on all
// databases.
func eachHostTx(
	t *testing.T,
	test func(t *testing.T, db *bun.DB, begin func(ctx context.Context) (context.Context, hostTx)),
) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		t.Run("bun", func(t *testing.T) {
			db := open(t)
			test(t, db, func(ctx context.Context) (context.Context, hostTx) {
				tx, err := db.BeginTx(ctx, nil)
				if err != nil {
					t.Fatal(err)
				}
				within, err := bunx.WithTx(ctx, tx)
				if err != nil {
					t.Fatal(err)
				}
				return within, tx
			})
		})
		t.Run("sql", func(t *testing.T) {
			db := open(t)
			test(t, db, func(ctx context.Context) (context.Context, hostTx) {
				tx, err := db.DB.BeginTx(ctx, nil)
				if err != nil {
					t.Fatal(err)
				}
				within, err := bunx.WithSQLTx(ctx, db, tx)
				if err != nil {
					t.Fatal(err)
				}
				return within, tx
			})
		})
	})
}

func TestHostCommits(t *testing.T) {
	eachHostTx(t, func(t *testing.T, db *bun.DB, begin func(context.Context) (context.Context, hostTx)) {
		is := is.New(t)
		within, tx := begin(t.Context())
		ran := 0
		is.NoErr(put(within, db, "red", time.Now()))
		bunx.AfterCommit(within, func() { ran++ })
		is.NoErr(bunx.InTx(within, db, func(ctx context.Context) error {
			bunx.AfterCommit(ctx, func() { ran++ })
			return put(ctx, db, "blue", time.Now())
		}))
		ctx, c := bunx.For(within, db, "acme")
		var n int
		// bun's own statements join, too
		is.NoErr(c.NewSelect().TableExpr("tc_colors").ColumnExpr("count(*)").Scan(ctx, &n))
		is.Equal(n, 2)
		_, err := c.NewRaw("SELECT count(*) FROM tc_colors WHERE key = ?", "red").Exec(ctx)
		is.NoErr(err)
		is.NoErr(c.IDB.QueryRowContext(ctx, "SELECT count(*) FROM tc_colors WHERE key = ?", "red").Scan(&n))
		is.Equal(n, 1)
		is.Equal(errs.CodeOf(bunx.Committed(within)), errs.Invalid) // not yet
		is.Equal(ran, 0)

		is.NoErr(tx.Commit())
		is.Equal(ran, 0) // the host has not called Committed
		is.NoErr(bunx.Committed(within))
		is.Equal(ran, 2)
		is.NoErr(bunx.Committed(within))
		is.Equal(ran, 2) // once
		is.Equal(keys(t, db, "acme", "key"), []string{"blue", "red"})

		bunx.AfterCommit(within, func() { ran++ })
		is.Equal(ran, 3) // the transaction is committed
		is.Equal(errs.CodeOf(put(within, db, "late", time.Now())), errs.Invalid)
		is.NoErr(put(bunx.WithoutTx(within), db, "green", time.Now()))
		is.Equal(len(keys(t, db, "acme", "key")), 3)
	})
}

func TestHostRollsBack(t *testing.T) {
	eachHostTx(t, func(t *testing.T, db *bun.DB, begin func(context.Context) (context.Context, hostTx)) {
		is := is.New(t)
		within, tx := begin(t.Context())
		is.NoErr(put(within, db, "red", time.Now()))
		bunx.AfterCommit(within, func() { t.Error("it was rolled back") })
		is.NoErr(tx.Rollback())
		is.Equal(keys(t, db, "acme", "key"), nil)
	})
}

func TestFailedPartIsUndone(t *testing.T) {
	eachHostTx(t, func(t *testing.T, db *bun.DB, begin func(context.Context) (context.Context, hostTx)) {
		is := is.New(t)
		within, tx := begin(t.Context())
		ran := 0
		is.NoErr(put(within, db, "red", time.Now()))
		failed := errors.New("no")
		err := bunx.InTx(within, db, func(ctx context.Context) error {
			bunx.AfterCommit(ctx, func() { t.Error("its part was undone") })
			is.NoErr(put(ctx, db, "blue", time.Now()))
			return failed
		})
		is.Equal(err, failed)
		// PostgreSQL would refuse further statements.
		is.Equal(errs.CodeOf(put(within, db, "red", time.Now())), errs.Conflict)
		func() {
			defer func() { is.Equal(recover(), "oh") }()
			_ = bunx.InTx(within, db, func(ctx context.Context) error {
				is.NoErr(put(ctx, db, "blue", time.Now()))
				panic("oh")
			})
		}()
		is.NoErr(put(within, db, "green", time.Now()))
		bunx.AfterCommit(within, func() { ran++ })
		is.NoErr(tx.Commit())
		is.NoErr(bunx.Committed(within))
		is.Equal(ran, 1)
		is.Equal(keys(t, db, "acme", "key"), []string{"green", "red"})
	})
}

func TestOneCallAtATime(t *testing.T) {
	eachHostTx(t, func(t *testing.T, db *bun.DB, begin func(context.Context) (context.Context, hostTx)) {
		is := is.New(t)
		within, tx := begin(t.Context())
		is.NoErr(bunx.InTx(within, db, func(context.Context) error {
			// The context of the whole transaction.
			is.Equal(errs.CodeOf(put(within, db, "red", time.Now())), errs.Invalid)
			return nil
		}))
		is.NoErr(put(within, db, "red", time.Now()))
		is.NoErr(tx.Commit())
	})
}

func TestCancelledPart(t *testing.T) {
	eachHostTx(t, func(t *testing.T, db *bun.DB, begin func(context.Context) (context.Context, hostTx)) {
		is := is.New(t)
		within, tx := begin(t.Context())
		is.NoErr(put(within, db, "red", time.Now()))
		gone, cancel := context.WithCancel(within)
		err := bunx.InTx(gone, db, func(ctx context.Context) error {
			is.NoErr(put(ctx, db, "blue", time.Now()))
			cancel()
			return put(ctx, db, "green", time.Now())
		})
		is.Equal(errs.CodeOf(err), errs.Canceled)
		is.NoErr(put(within, db, "yellow", time.Now())) // the transaction continues
		is.NoErr(tx.Commit())
		is.Equal(keys(t, db, "acme", "key"), []string{"red", "yellow"})

		// With the context of the whole transaction, package sql rolls back.
		whole, cancel := context.WithCancel(t.Context())
		within, tx = begin(whole)
		is.NoErr(put(within, db, "blue", time.Now()))
		cancel()
		is.Equal(errs.CodeOf(put(within, db, "green", time.Now())), errs.Canceled)
		is.True(tx.Commit() != nil)
		is.Equal(keys(t, db, "acme", "key"), []string{"red", "yellow"})
	})
}

func TestHostTransactionsInParallel(t *testing.T) {
	eachHostTx(t, func(t *testing.T, db *bun.DB, begin func(context.Context) (context.Context, hostTx)) {
		is := is.New(t)
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() {
				within, tx := begin(t.Context())
				if err := put(within, db, fmt.Sprintf("c%02d", i), time.Now()); err != nil {
					t.Error(err)
				}
				if i%2 == 0 {
					if err := errors.Join(tx.Commit(), bunx.Committed(within)); err != nil {
						t.Error(err)
					}
					return
				}
				_ = tx.Rollback()
			})
		}
		all.Wait()
		is.Equal(len(keys(t, db, "acme", "key")), 10)
	})
}

func TestWithTxRefuses(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, db, other := is.New(t), open(t), open(t)
		ctx := t.Context()
		refused := func(_ context.Context, err error) {
			t.Helper()
			is.Equal(errs.CodeOf(err), errs.Invalid)
		}
		refused(bunx.WithTx(ctx, bun.Tx{}))
		refused(bunx.WithSQLTx(ctx, db, nil))
		tx, err := other.DB.BeginTx(ctx, nil)
		is.NoErr(err)
		refused(bunx.WithTx(ctx, bun.Tx{Tx: tx}))
		refused(bunx.WithSQLTx(ctx, nil, tx))
		refused(bunx.WithSQLTx(ctx, db, tx)) // a transaction of another pool
		within, err := bunx.WithSQLTx(ctx, other, tx)
		is.NoErr(err)
		refused(bunx.WithSQLTx(within, other, tx))   // ctx has a transaction
		is.NoErr(put(within, db, "red", time.Now())) // another database: it does not join
		is.NoErr(tx.Rollback())
		is.Equal(keys(t, db, "acme", "key"), []string{"red"})
		is.Equal(errs.CodeOf(bunx.Committed(ctx)), errs.Invalid)
		is.NoErr(bunx.InTx(ctx, db, func(ctx context.Context) error {
			is.Equal(errs.CodeOf(bunx.Committed(ctx)), errs.Invalid) // the host did not begin it
			return nil
		}))
		is.Equal(errs.CodeOf(bunx.DryRun(within, other, func(context.Context) error { return nil })), errs.Invalid)
	})
}

// TestAnotherBunDBOfThePool: a statement joins the transaction of the same pool, even with another
// bun.DB.
func TestAnotherBunDBOfThePool(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, db := is.New(t), open(t)
		twin := bun.NewDB(db.DB, db.Dialect())
		tx, err := twin.BeginTx(t.Context(), nil)
		is.NoErr(err)
		within, err := bunx.WithTx(t.Context(), tx)
		is.NoErr(err)
		is.NoErr(put(within, db, "red", time.Now()))
		is.NoErr(tx.Rollback())
		is.Equal(keys(t, db, "acme", "key"), nil)
	})
}

// TestLongPartAnalyzes: statistics of the tables that a part of a transaction wrote are updated
// after the commit.
func TestLongPartAnalyzes(t *testing.T) {
	eachHostTx(t, func(t *testing.T, db *bun.DB, begin func(context.Context) (context.Context, hostTx)) {
		if db.Dialect().Name() != dialect.PG {
			return // SQLite has no statistics
		}
		is := is.New(t)
		dbtest.WithoutStatistics(t, db, "tc_colors")
		within, tx := begin(t.Context())
		is.NoErr(bunx.Write(bunx.WithWork(within, bunx.Long), db, "acme", func(ctx context.Context, c bunx.Conn) error {
			_, err := c.Exec(ctx, `INSERT INTO tc_colors (tenant_id, key, search, color, created_at, updated_at)
				SELECT 'acme', n, n, '#fff', now(), now() FROM generate_series(1, 2000) AS n`)
			return err
		}))
		rows := func() (n int) {
			is.NoErr(db.QueryRowContext(
				t.Context(), `SELECT reltuples FROM pg_class WHERE oid = 'tc_colors'::regclass`,
			).Scan(&n))
			return n
		}
		is.NoErr(tx.Commit())
		is.True(rows() < 2000)
		is.NoErr(bunx.Committed(within))
		is.Equal(rows(), 2000)
	})
}

func TestSQLTxBeginsNoOther(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, db := is.New(t), open(t)
		tx, err := db.DB.BeginTx(t.Context(), nil)
		is.NoErr(err)
		defer func() { _ = tx.Rollback() }()
		within, err := bunx.WithSQLTx(t.Context(), db, tx)
		is.NoErr(err)
		_, c := bunx.For(within, db, "acme")
		_, err = c.BeginTx(within, &sql.TxOptions{})
		is.Equal(errs.CodeOf(err), errs.Invalid)
		is.Equal(errs.CodeOf(c.RunInTx(within, nil, nil)), errs.Invalid)
	})
}
