package pgsafe

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"
)

func TestIsolation(t *testing.T) {
	is, db := is.New(t), openSafe(t, server(t), Config{})
	for level, want := range map[sql.IsolationLevel]string{
		sql.LevelDefault:         "read committed",
		sql.LevelReadUncommitted: "read uncommitted",
		sql.LevelReadCommitted:   "read committed",
		sql.LevelRepeatableRead:  "repeatable read",
		sql.LevelSerializable:    "serializable",
	} {
		for _, readOnly := range []bool{false, true} {
			tx, err := db.BeginTx(t.Context(), &sql.TxOptions{Isolation: level, ReadOnly: readOnly})
			is.NoErr(err)
			is.Equal(one[string](t, tx, "show transaction_isolation"), want)
			is.Equal(one[string](t, tx, "show transaction_read_only") == "on", readOnly)
			is.NoErr(tx.Commit())
		}
	}
	_, err := db.BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelLinearizable})
	is.True(strings.Contains(err.Error(), "Linearizable"))
}

func TestReadOnlyIsEnforced(t *testing.T) {
	is, db := is.New(t), openSafe(t, inSchema(t), Config{})
	exec(t, db, "create table t (k int)")
	tx, err := db.BeginTx(t.Context(), &sql.TxOptions{ReadOnly: true})
	is.NoErr(err)
	_, err = tx.Exec("insert into t values ($1)", 1)
	is.Equal(Code(err), "25006")
	is.NoErr(tx.Rollback())
}

func TestTransactionEndsWithItsContext(t *testing.T) {
	is, db := is.New(t), openSafe(t, inSchema(t), Config{})
	exec(t, db, "create table t (k int)")

	ctx, cancel := context.WithCancel(t.Context())
	tx, err := db.BeginTx(ctx, nil)
	is.NoErr(err)
	_, err = tx.Exec("insert into t values (1)")
	is.NoErr(err)
	cancel()
	err = tx.Commit()
	// database/sql may have rolled back by then
	is.True(errors.Is(err, context.Canceled) || errors.Is(err, sql.ErrTxDone))
	is.Equal(one[int](t, db, "select count(*) from t"), 0)

	tx, err = db.Begin() // the context of a statement ends: the transaction and its connection are lost
	is.NoErr(err)
	_, err = tx.Exec("insert into t values (2)")
	is.NoErr(err)
	_, err = tx.ExecContext(soon(t), "select pg_sleep(5)")
	is.True(errors.Is(err, context.DeadlineExceeded))
	_, err = tx.Exec("insert into t values (3)")
	is.True(Unavailable(err))
	is.NoErr(tx.Rollback())
	is.Equal(one[int](t, db, "select count(*) from t"), 0)
}

func TestRollback(t *testing.T) {
	is, db := is.New(t), openSafe(t, inSchema(t), Config{})
	exec(t, db, "create table t (k int primary key)")
	pid := one[int](t, db, "select pg_backend_pid()")
	tx, err := db.Begin()
	is.NoErr(err)
	_, err = tx.Exec("insert into t values ($1), ($1)", 1)
	is.Equal(Code(err), "23505")
	is.NoErr(tx.Rollback())
	is.Equal(one[int](t, db, "select count(*) from t"), 0)
	is.Equal(one[int](t, db, "select pg_backend_pid()"), pid)
}

// TestCommitError: a deferred constraint is checked by the commit.
func TestCommitError(t *testing.T) {
	is, db := is.New(t), openSafe(t, inSchema(t), Config{})
	exec(t, db, "create table t (k int unique deferrable initially deferred)")
	tx, err := db.Begin()
	is.NoErr(err)
	_, err = tx.Exec("insert into t values (1), (1)")
	is.NoErr(err)
	is.Equal(Code(tx.Commit()), "23505")
	is.Equal(one[int](t, db, "select count(*) from t"), 0)
}

func TestCommitWaitsNoLongerThanItsContext(t *testing.T) {
	is := is.New(t)
	p := newProxy(t, server(t))
	db := openSafe(t, p.url, Config{})
	is.NoErr(db.Ping())
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	tx, err := db.BeginTx(ctx, nil)
	is.NoErr(err)
	p.mute.Store(true)                                      // the answer is not received
	defer time.AfterFunc(20*time.Second, p.closeAll).Stop() // end the test if the commit waits nevertheless
	is.True(errors.Is(tx.Commit(), context.DeadlineExceeded))
}
