package pgsafe

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/uptrace/bun/driver/pgdriver"
)

// conn is one safe connection. database/sql calls it from one goroutine at a time, and the end of
// a context kills it from another.
type conn struct {
	pg     *pgdriver.Conn
	socket *socket

	owner   *connector
	born    int64     // time in nanoseconds
	recheck time.Time // when it is to be made anew; zero: never
	cancel  func()    // has the server stop the statement; it does not wait

	open     *rows // being read: the connection has no room for another statement
	stmts    *statements
	inTx     bool
	readOnly bool // this transaction, because its caller wants that
	failed   bool // an error in this transaction
	sent     bool // the statement in use was sent to be executed
	tenant   tenantState
	limits   timeouts
}

var (
	_ driver.ConnPrepareContext = (*conn)(nil)
	_ driver.ConnBeginTx        = (*conn)(nil)
	_ driver.ExecerContext      = (*conn)(nil)
	_ driver.QueryerContext     = (*conn)(nil)
	_ driver.Pinger             = (*conn)(nil)
	_ driver.SessionResetter    = (*conn)(nil)
	_ driver.Validator          = (*conn)(nil)
)

func newConn(pg *pgdriver.Conn, s *socket, k *connector) *conn {
	return &conn{
		owner:  k,
		cancel: func() {},
		born:   time.Now().UnixNano(),
		limits: k.limits,
		pg:     pg,
		socket: s,
		stmts:  newStatements(k.cfg.StatementCache),
		tenant: tenantState{of: k.cfg.Tenant, known: true}, // set to '' by the connector
	}
}

// kill closes the connection for good, at once.
func (c *conn) kill() { c.socket.kill() }

// abandon closes the connection and has the server stop the statement that runs on it.
func (c *conn) abandon() {
	c.kill()
	c.cancel()
}

// dead reports whether the connection was killed.
func (c *conn) dead() bool { return c.socket.killed.Load() }

// enter begins the use of the connection for one statement: until leave is called the end of ctx
// kills the connection, and so does a server that is silent for the timeout. It fails before
// anything was sent.
func (c *conn) enter(ctx context.Context, timeout time.Duration) (leave func(), err error) {
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case !c.IsValid():
		return nil, driver.ErrBadConn
	case c.open != nil:
		return nil, refusal("the rows of an earlier statement are still open on this connection")
	}
	c.socket.timeout, c.sent = timeout, false
	if ctx.Done() == nil {
		return func() {}, nil
	}
	stop := context.AfterFunc(ctx, c.abandon)
	return func() {
		if !stop() {
			c.kill() // now, not when the other goroutine gets to it and the next caller has the connection
		}
	}, nil
}

// settle closes the connection if the error of a statement left it unusable, and returns the error
// for the caller.
func (c *conn) settle(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if _, refused := errors.AsType[refusal](err); refused {
		return err
	}
	c.failed = true
	if Code(err) == readOnlyTransaction && !c.readOnly {
		c.kill()
		c.owner.demote()
		return err
	}
	if ordinary(err) {
		return err
	}
	c.kill()
	_, server := errors.AsType[pgdriver.Error](err)
	switch {
	case server:
		return err
	case ctx.Err() != nil && c.sent:
		return lostError{ctx.Err(), true}
	case ctx.Err() != nil:
		return ctx.Err()
	case c.socket.timedOut.Load():
		c.cancel()
		return lostError{
			fmt.Errorf("pgsafe: the server has not answered within %s: %w", c.socket.timeout, os.ErrDeadlineExceeded),
			c.sent,
		}
	case errors.Is(err, driver.ErrBadConn): // pgdriver: nothing was written
		return driver.ErrBadConn
	}
	return lostError{fmt.Errorf("pgsafe: the connection is lost: %w", err), c.sent}
}

// IsValid reports whether the connection can be used again; database/sql asks before it keeps one.
func (c *conn) IsValid() bool { return !c.dead() && c.pg.IsValid() }

// ResetSession is called before the connection is taken from the pool.
func (c *conn) ResetSession(context.Context) error {
	old := c.born < c.owner.demoted.Load() || !c.recheck.IsZero() && time.Now().After(c.recheck)
	if old || !c.IsValid() || c.inTx || c.open != nil || c.socket.quiet() != nil {
		c.kill()
		return driver.ErrBadConn
	}
	return nil
}

// Ping checks the connection with a round trip to the server.
func (c *conn) Ping(ctx context.Context) error {
	_, err := c.control(ctx, c.limits.read, "select 1")
	return err
}

// control runs a statement of this package's own: no arguments, no tenant.
func (c *conn) control(ctx context.Context, timeout time.Duration, query string) (driver.Result, error) {
	leave, err := c.enter(ctx, timeout)
	if err != nil {
		return nil, err
	}
	defer leave()
	c.sent = true
	res, err := c.pg.ExecContext(ctx, query, nil)
	return res, c.settle(ctx, err)
}

// terminate is the Terminate message of the protocol.
var terminate = []byte{'X', 0, 0, 0, 4}

// Close sends the server a Terminate message, within a second, and closes the connection.
func (c *conn) Close() error {
	if c.IsValid() && c.open == nil {
		c.socket.timeout = time.Second
		_, _ = c.pg.Conn().Write(terminate)
	}
	c.kill()
	_ = c.pg.Close()
	return nil
}

// Prepare is refused: statements with arguments are prepared by themselves.
func (c *conn) Prepare(string) (driver.Stmt, error) {
	return nil, refusal("Prepare is not supported: run the statement with its arguments, it is prepared once by itself")
}

// PrepareContext is refused like Prepare.
func (c *conn) PrepareContext(_ context.Context, query string) (driver.Stmt, error) {
	return c.Prepare(query)
}
