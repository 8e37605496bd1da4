package sqlitesafe

import (
	"context"
	"database/sql/driver"
	"errors"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// maxStmts is the most prepared statements of a connection. A program has a fixed set of statements
// with arguments. Further ones are not prepared.
const maxStmts = 256

// rawConn has the methods of the SQLite driver's connection.
type rawConn interface {
	driver.Conn
	driver.ConnPrepareContext
	driver.QueryerContext
	driver.ExecerContext
}

// stmtConn is a SQLite connection that keeps its statements prepared.
type stmtConn struct {
	conn  rawConn
	stmts map[string]*stmt
	lost  bool // the writer's transaction was rolled back
}

type stmt struct {
	driver.Stmt
	busy bool // its rows are open, so it cannot run again yet
}

// connect opens a connection. While another process turns on write-ahead logging or closes the
// file, turning it on fails at once, whatever the busy time-out, and connect tries again.
func connect(ctx context.Context, from driver.Connector) (*stmtConn, error) {
	c, err := from.Connect(ctx)
	for tries := 0; busy(err) && tries < 500; tries++ {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		c, err = from.Connect(ctx)
	}
	if err != nil {
		return nil, err
	}
	return &stmtConn{conn: c.(rawConn), stmts: map[string]*stmt{}}, nil
}

func busy(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	return ok && e.Code()&0xff == sqlite3.SQLITE_BUSY
}

// watchRollback makes the connection notice a transaction that ends by itself. Otherwise each later
// statement would be committed separately.
func (c *stmtConn) watchRollback() {
	c.conn.(sqlite.HookRegisterer).RegisterRollbackHook(func() { c.lost = true })
}

func (c *stmtConn) Close() error {
	for _, s := range c.stmts {
		_ = s.Close()
	}
	c.stmts = nil
	return c.conn.Close()
}

// prepared returns the idle prepared statement of a query. It returns nil if the query must run
// unprepared: it has no arguments (such text differs each time), its statement is busy, or there
// are too many.
func (c *stmtConn) prepared(ctx context.Context, query string, args []driver.NamedValue) (*stmt, error) {
	if len(args) == 0 {
		return nil, nil
	}
	if s, ok := c.stmts[query]; ok {
		if s.busy {
			return nil, nil
		}
		return s, nil
	}
	if len(c.stmts) >= maxStmts {
		return nil, nil
	}
	p, err := c.conn.PrepareContext(ctx, positional(query, len(args)))
	if err != nil {
		return nil, err
	}
	s := &stmt{Stmt: p}
	c.stmts[query] = s
	return s, nil
}

func (c *stmtConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	s, err := c.prepared(ctx, query, args)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return c.conn.QueryContext(ctx, query, args)
	}
	r, err := s.Stmt.(driver.StmtQueryContext).QueryContext(ctx, args)
	if err != nil {
		return nil, err
	}
	s.busy = true
	return &rows{Rows: r, stmt: s}, nil
}

func (c *stmtConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	s, err := c.prepared(ctx, query, args)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return c.conn.ExecContext(ctx, query, args)
	}
	return s.Stmt.(driver.StmtExecContext).ExecContext(ctx, args)
}

// rows releases its statement when it is closed.
type rows struct {
	driver.Rows
	stmt *stmt
}

func (r *rows) Close() error {
	r.stmt.busy = false
	return r.Rows.Close()
}
