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

// conn is one safe connection. database/sql calls it from one goroutine at a time. The end of a
// context kills it from another goroutine.
type conn struct {
	pg     *pgdriver.Conn
	socket *socket

	owner   *connector
	born    int64     // time in nanoseconds
	recheck time.Time // when it is to be replaced; zero: never
	cancel  func()    // has the server stop the statement; it does not wait

	open     *rows // rows being read: the connection cannot run another statement
	stmts    *statements
	inTx     bool
	held     *last // for the COMMIT
	readOnly bool  // this transaction is read-only because the caller requested it
	failed   bool  // an error in this transaction
	sent     bool  // the current statement was sent for execution
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

// kill closes the connection at once.
func (c *conn) kill() { c.socket.kill() }

// abandon closes the connection and makes the server stop the statement that runs on it.
func (c *conn) abandon() {
	c.kill()
	c.cancel()
}

// dead reports whether the connection was killed.
func (c *conn) dead() bool { return c.socket.killed.Load() }

// enter begins the use of the connection for one statement. Until leave is called, the connection
// is killed if ctx ends or the server is silent for the timeout. If enter fails, nothing was sent.
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
			c.kill() // kill it now, not when the other goroutine runs and the next caller has the connection
		}
	}, nil
}

// settle closes the connection if the error of a statement made it unusable, and returns the error
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

// IsValid reports whether the connection can be used again. database/sql calls it before it keeps a
// connection.
func (c *conn) IsValid() bool { return !c.dead() && c.pg.IsValid() }

// ResetSession is called before the pool returns the connection to a caller.
func (c *conn) ResetSession(context.Context) error {
	old := c.born < c.owner.demoted.Load() || !c.recheck.IsZero() && time.Now().After(c.recheck)
	c.held = nil
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

// control runs a statement of this package, without arguments or a tenant.
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

// Close sends the server a Terminate message, for at most a second, and closes the connection.
func (c *conn) Close() error {
	if c.IsValid() && c.open == nil {
		c.socket.timeout = time.Second
		_, _ = c.pg.Conn().Write(terminate)
	}
	c.kill()
	_ = c.pg.Close()
	return nil
}

// Prepare returns an error: statements with arguments are prepared automatically.
func (c *conn) Prepare(string) (driver.Stmt, error) {
	return nil, refusal("Prepare is not supported: run the statement with its arguments, it is prepared once by itself")
}

// PrepareContext returns an error as Prepare does.
func (c *conn) PrepareContext(_ context.Context, query string) (driver.Stmt, error) {
	return c.Prepare(query)
}
