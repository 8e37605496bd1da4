package dbtest

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"sync"
	"testing"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"
	"github.com/uptrace/bun/dialect/pgdialect"
	"github.com/uptrace/bun/dialect/sqlitedialect"
)

// Counter records the statements that a database runs.
type Counter struct {
	mu         sync.Mutex
	statements []Statement
}

// Statement is a statement that a database has run.
type Statement struct {
	Text string
	Args []any
}

// Take returns the statements since the last Take, in order, without BEGIN, COMMIT and ROLLBACK.
func (c *Counter) Take() []string {
	var all []string
	for _, s := range c.Statements() {
		all = append(all, s.Text)
	}
	return all
}

// Statements is Take with the arguments.
func (c *Counter) Statements() []Statement {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.statements
	c.statements = nil
	return all
}

func (c *Counter) note(statement string, args []driver.NamedValue) {
	s := Statement{Text: statement}
	for _, a := range args {
		s.Args = append(s.Args, a.Value)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.statements = append(c.statements, s)
}

// Counted opens a database whose statements are recorded, whether bun or database/sql sends them.
func Counted(t testing.TB, open Opener) (*bun.DB, *Counter) {
	t.Helper()
	c := &Counter{}
	return watch(t, open(t), func(statement string, args []driver.NamedValue) {
		if statement != "BEGIN" && statement != "COMMIT" {
			c.note(statement, args)
		}
	}), c
}

// CountedTx is Counted with BEGIN among the statements.
func CountedTx(t testing.TB, open Opener) (*bun.DB, *Counter) {
	t.Helper()
	c := &Counter{}
	return watch(t, open(t), func(statement string, args []driver.NamedValue) {
		if statement != "COMMIT" {
			c.note(statement, args)
		}
	}), c
}

// Watched returns a database on the connections of another one. It calls before with each
// statement, and with COMMIT, before it is sent.
func Watched(t testing.TB, whole *bun.DB, before func(statement string)) *bun.DB {
	t.Helper()
	return watch(t, whole, func(statement string, _ []driver.NamedValue) {
		if statement != "BEGIN" {
			before(statement)
		}
	})
}

func watch(t testing.TB, whole *bun.DB, before func(statement string, args []driver.NamedValue)) *bun.DB {
	t.Helper()
	db := sql.OpenDB(watched{whole.DB, before})
	db.SetMaxIdleConns(2) // fewer than the pool of the connections
	t.Cleanup(func() { _ = db.Close() })
	if whole.Dialect().Name() == dialect.PG {
		return bun.NewDB(db, pgdialect.New())
	}
	return bun.NewDB(db, sqlitedialect.New())
}

// watched connects with the connections of another pool, which is the only way that both engines
// support.
type watched struct {
	*sql.DB
	before func(statement string, args []driver.NamedValue)
}

// Connect implements driver.Connector.
func (c watched) Connect(ctx context.Context) (driver.Conn, error) {
	lent, err := c.Conn(ctx)
	if err != nil {
		return nil, err
	}
	out := &watchedConn{lent: lent, before: c.before}
	err = lent.Raw(func(conn any) error { // not used elsewhere until lent is closed
		out.safeConn = conn.(safeConn)
		return nil
	})
	return out, err
}

// safeConn has the methods of the connections of pgsafe and sqlitesafe.
type safeConn interface {
	driver.Conn
	driver.QueryerContext
	driver.ExecerContext
	driver.ConnBeginTx
	driver.Validator
}

type watchedConn struct {
	safeConn
	lent   *sql.Conn
	before func(statement string, args []driver.NamedValue)
}

// QueryContext implements driver.QueryerContext.
func (c *watchedConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	c.before(query, args)
	return c.safeConn.QueryContext(ctx, query, args)
}

// ExecContext implements driver.ExecerContext.
func (c *watchedConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	c.before(query, args)
	return c.safeConn.ExecContext(ctx, query, args)
}

// BeginTx implements driver.ConnBeginTx.
func (c *watchedConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	c.before("BEGIN", nil)
	tx, err := c.safeConn.BeginTx(ctx, o)
	return watchedTx{tx, c.before}, err
}

// watchedTx is a transaction of a watchedConn.
type watchedTx struct {
	driver.Tx
	before func(statement string, args []driver.NamedValue)
}

// Commit implements driver.Tx.
func (tx watchedTx) Commit() error {
	tx.before("COMMIT", nil)
	return tx.Tx.Commit()
}

// Close returns the connection to the pool.
func (c *watchedConn) Close() error { return c.lent.Close() }

// ResetSession implements driver.SessionResetter.
func (c *watchedConn) ResetSession(ctx context.Context) error {
	if r, ok := c.safeConn.(driver.SessionResetter); ok {
		return r.ResetSession(ctx)
	}
	return nil
}
