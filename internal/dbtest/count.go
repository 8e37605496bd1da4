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

// Counter notes the statements that a database runs.
type Counter struct {
	mu         sync.Mutex
	statements []string
}

// Take gives the statements since the last Take, in order. BEGIN, COMMIT and ROLLBACK are none.
func (c *Counter) Take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.statements
	c.statements = nil
	return all
}

func (c *Counter) note(statement string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.statements = append(c.statements, statement)
}

// Counted opens a database whose statements are noted, whoever sends them: bun's builder or database/sql.
func Counted(t testing.TB, open Opener) (*bun.DB, *Counter) {
	t.Helper()
	whole, c := open(t), &Counter{}
	db := sql.OpenDB(counted{whole.DB, c})
	db.SetMaxIdleConns(2) // fewer than the pool that they are taken from
	t.Cleanup(func() { _ = db.Close() })
	if whole.Dialect().Name() == dialect.PG {
		return bun.NewDB(db, pgdialect.New()), c
	}
	return bun.NewDB(db, sqlitedialect.New()), c
}

// counted connects with the connections of another pool, as that is all which both engines show.
type counted struct {
	*sql.DB
	counter *Counter
}

// Connect implements driver.Connector.
func (c counted) Connect(ctx context.Context) (driver.Conn, error) {
	lent, err := c.Conn(ctx)
	if err != nil {
		return nil, err
	}
	out := &countedConn{lent: lent, counter: c.counter}
	err = lent.Raw(func(conn any) error { // nobody else uses it until lent is closed
		out.safeConn = conn.(safeConn)
		return nil
	})
	return out, err
}

// safeConn is what the connections of pgsafe and sqlitesafe have.
type safeConn interface {
	driver.Conn
	driver.QueryerContext
	driver.ExecerContext
	driver.ConnBeginTx
	driver.Validator
}

type countedConn struct {
	safeConn
	lent    *sql.Conn
	counter *Counter
}

// QueryContext implements driver.QueryerContext.
func (c *countedConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	c.counter.note(query)
	return c.safeConn.QueryContext(ctx, query, args)
}

// ExecContext implements driver.ExecerContext.
func (c *countedConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	c.counter.note(query)
	return c.safeConn.ExecContext(ctx, query, args)
}

// Close gives the connection back.
func (c *countedConn) Close() error { return c.lent.Close() }

// ResetSession implements driver.SessionResetter.
func (c *countedConn) ResetSession(ctx context.Context) error {
	if r, ok := c.safeConn.(driver.SessionResetter); ok {
		return r.ResetSession(ctx)
	}
	return nil
}
