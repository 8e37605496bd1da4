package pgsafe

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"
)

type lastKey struct{}

// withLast returns a pool whose statements with the context are held for the COMMIT.
func withLast(t *testing.T, u string) (*sql.DB, context.Context) {
	db := openSafe(t, u, Config{Last: func(ctx context.Context) bool { return ctx.Value(lastKey{}) != nil }})
	db.SetMaxOpenConns(8)
	return db, context.WithValue(t.Context(), lastKey{}, true)
}

// TestLastStatementGoesWithCommit: it is committed, also if another statement follows it.
func TestLastStatementGoesWithCommit(t *testing.T) {
	is := is.New(t)
	db, last := withLast(t, inSchema(t))
	exec(t, db, "create table t (k int primary key)")
	for i := range 3 { // prepared, and then from the cache
		tx, err := db.Begin()
		is.NoErr(err)
		_, err = tx.ExecContext(last, "insert into t values ($1)", 2*i)
		is.NoErr(err)
		is.Equal(one[int](t, db, "select count(*) from t where k = $1", 2*i), 0)
		if i == 1 {
			_, err = tx.ExecContext(last, "insert into t values ($1)", 2*i+1)
			is.NoErr(err)
			is.Equal(one[int](t, tx, "select count(*) from t where k >= $1", 2*i), 2) // of both
		}
		is.NoErr(tx.Commit())
		is.Equal(one[int](t, db, "select count(*) from t where k = $1", 2*i), 1)
	}
	is.Equal(one[int](t, db, "select count(*) from t"), 4)

	tx, err := db.Begin()
	is.NoErr(err)
	_, err = tx.ExecContext(last, "insert into t values ($1)", 100)
	is.NoErr(err)
	is.NoErr(tx.Rollback())
	is.Equal(one[int](t, db, "select count(*) from t"), 4)

	_, err = db.ExecContext(last, "insert into t values ($1)", 100) // not in a transaction
	is.NoErr(err)
	is.Equal(one[int](t, db, "select count(*) from t"), 5)
}

// TestFailedLastStatement: Commit returns its error, and nothing is committed. The connection stays
// in step.
func TestFailedLastStatement(t *testing.T) {
	is := is.New(t)
	db, last := withLast(t, inSchema(t))
	db.SetMaxOpenConns(1)
	exec(t, db, "create table t (k int primary key, v int, unique (v) deferrable initially deferred)")
	exec(t, db, "insert into t values (1, 1)")
	pid := one[int](t, db, "select pg_backend_pid()")
	insert := func(k, v int) error {
		tx, err := db.Begin()
		is.NoErr(err)
		_, err = tx.Exec("insert into t values ($1, 50 + $1)", 10*k)
		is.NoErr(err)
		_, err = tx.ExecContext(last, "insert into t values ($1, $2)", k, v)
		is.NoErr(err)
		return tx.Commit()
	}
	is.NoErr(insert(2, 2))
	is.Equal(Code(insert(1, 3)), "23505") // the statement
	is.Equal(Code(insert(3, 1)), "23505") // the commit
	is.Equal(one[int](t, db, "select count(*) from t"), 3)
	is.Equal(one[int](t, db, "select pg_backend_pid()"), pid)

	tx, err := db.Begin()
	is.NoErr(err)
	_, err = tx.ExecContext(last, "insert into t values ($1)", 1)
	is.NoErr(err)
	_, err = tx.Exec("insert into t values ($1)", 7)
	is.Equal(Code(err), "23505") // of the one before
	is.True(tx.Commit() != nil)

	tx, err = db.Begin()
	is.NoErr(err)
	_, err = tx.ExecContext(last, "insert into nowhere values ($1)", 1)
	is.NoErr(err)
	is.Equal(Code(tx.Commit()), "42P01")
	is.Equal(one[int](t, db, "select count(*) from t"), 3)
}

// TestStaleLastStatement: a table that has changed makes one transaction fail, at most.
func TestStaleLastStatement(t *testing.T) {
	is := is.New(t)
	db, last := withLast(t, inSchema(t))
	db.SetMaxOpenConns(1)
	exec(t, db, "create table t (k int primary key)")
	insert := func(k int) error {
		tx, err := db.Begin()
		is.NoErr(err)
		_, err = tx.ExecContext(last, "insert into t select $1::int returning *", k)
		is.NoErr(err)
		return tx.Commit()
	}
	is.NoErr(insert(1))
	exec(t, db, "alter table t add column v int")
	_ = insert(2)
	is.NoErr(insert(3))
}

// TestLastStatementIsSent: a connection that is lost after the statement and COMMIT were sent
// leaves open whether they were executed.
func TestLastStatementIsSent(t *testing.T) {
	is := is.New(t)
	p := newProxy(t, inSchema(t))
	db, last := withLast(t, p.url)
	db.SetMaxOpenConns(1)
	exec(t, db, "create table t (k int primary key)")
	exec(t, db, "insert into t values ($1)", 0) // prepares it
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	tx, err := db.BeginTx(ctx, nil)
	is.NoErr(err)
	_, err = tx.ExecContext(last, "insert into t values ($1)", 1)
	is.NoErr(err)
	p.mute.Store(true)
	defer time.AfterFunc(20*time.Second, p.closeAll).Stop()
	err = tx.Commit()
	is.True(errors.Is(err, context.DeadlineExceeded))
	var marked interface{ StatementSent() bool }
	is.True(errors.As(err, &marked))
}

// TestLastStatementsAtOnce do not read each other's answers.
func TestLastStatementsAtOnce(t *testing.T) {
	is := is.New(t)
	db, last := withLast(t, inSchema(t))
	exec(t, db, "create table t (k int primary key)")
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for i := range 40 {
				tx, err := db.Begin()
				is.NoErr(err)
				is.Equal(one[int](t, tx, "select $1::int", i), i)
				_, err = tx.ExecContext(last, "insert into t values ($1)", (g/2)*1000+i) // half of them are taken
				is.NoErr(err)
				if err := tx.Commit(); err != nil {
					is.Equal(Code(err), "23505")
				}
				is.Equal(one[int](t, db, "select $1::int", i), i)
			}
		})
	}
	all.Wait()
	is.Equal(one[int](t, db, "select count(*) from t"), 160)
}
