package sqlitesafe

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"

	sqlite3 "modernc.org/sqlite/lib"
)

// conn is one connection of the pool: a reader, and the writer while a transaction has it.
type conn struct {
	owner  *connector
	reader *stmtConn // nil until the first read, since a wait for the writer does not need one
	tx     *stmtConn // runs the statements of a transaction; nil outside
	wrote  int       // bytes of the arguments in this transaction
	broken bool      // the reader's state is not known
}

// errBusy is the error of a transaction for which the writer was not free in time. It has SQLite's
// code SQLITE_BUSY.
type errBusy struct{ long bool }

func (errBusy) Error() string { return "sqlitesafe: another transaction has been writing for too long" }

func (errBusy) Code() int { return 5 }

// HeldLong reports whether one transaction, and not many short ones, had the writer for long.
func (e errBusy) HeldLong() bool { return e.long }

var errLost = errors.New("sqlitesafe: the transaction was rolled back when a statement in it failed")

var errPrepare = errors.New("sqlitesafe: explicit Prepare is not supported; statements with arguments are " +
	"prepared by themselves")

func (c *conn) Prepare(string) (driver.Stmt, error) { return nil, errPrepare }

func (c *conn) Begin() (driver.Tx, error) { return c.BeginTx(context.Background(), driver.TxOptions{}) }

// read returns the reader.
func (c *conn) read(ctx context.Context) (*stmtConn, error) {
	if c.reader == nil {
		r, err := connect(ctx, c.owner.read)
		if err != nil {
			return nil, err
		}
		c.reader = r
	}
	return c.reader, nil
}

func (c *conn) Ping(ctx context.Context) error {
	r, err := c.read(ctx)
	if err != nil {
		return err
	}
	return r.conn.(driver.Pinger).Ping(ctx)
}

func (c *conn) Close() error {
	if c.reader == nil {
		return nil
	}
	return c.reader.Close()
}

func (c *conn) IsValid() bool {
	return !c.broken && (c.reader == nil || c.reader.conn.(driver.Validator).IsValid())
}

func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if c.tx != nil {
		if c.tx.lost {
			return nil, errLost
		}
		return c.tx.QueryContext(ctx, query, args)
	}
	r, err := c.read(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := r.QueryContext(ctx, query, args)
	if primaryCode(err) == sqlite3.SQLITE_READONLY {
		err = fmt.Errorf(
			"a query outside a transaction only reads on SQLite: begin one for a statement that writes and returns "+
				"rows, such as INSERT … RETURNING, or use Exec: %w", err,
		)
	}
	return rows, err
}

func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if c.tx != nil {
		if c.tx.lost {
			return nil, errLost
		}
		c.wrote += size(args)
		return c.tx.ExecContext(ctx, query, args)
	}
	w, err := c.owner.takeWriter(ctx)
	if err != nil {
		return nil, err
	}
	res, err := w.ExecContext(ctx, query, args)
	c.owner.giveWriter(w, ctx.Err()) // an interrupted statement leaves no transaction, but that is not certain
	c.owner.slow(size(args))
	return res, err
}

func (c *conn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	if opts.ReadOnly {
		r, err := c.beginRead(ctx)
		if err != nil {
			return nil, err
		}
		c.tx = r
		return &tx{conn: c}, nil
	}
	if c.owner.DryRun(ctx) {
		return c.beginPrivate(ctx)
	}
	w, err := c.owner.takeWriter(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.owner.begin(ctx, w); err != nil {
		c.owner.giveWriter(w, err)
		return nil, err
	}
	w.lost = false
	c.tx, c.wrote = w, 0
	return &tx{conn: c, writes: true}, nil
}

// beginRead begins a transaction on the reader.
func (c *conn) beginRead(ctx context.Context) (*stmtConn, error) {
	r, err := c.read(ctx)
	if err != nil {
		return nil, err
	}
	// BEGIN does not wait. With another context the driver could report its end although the BEGIN
	// took effect.
	if _, err := r.ExecContext(context.Background(), "BEGIN", nil); err != nil {
		c.broken = true
		return nil, err
	}
	return r, nil
}

// tx is a running transaction of a conn.
type tx struct {
	conn   *conn
	writes bool
}

func (t *tx) Commit() error {
	if t.conn.tx.lost {
		t.leave(nil)
		return errLost
	}
	err := t.end("COMMIT")
	if err == nil && t.writes {
		t.conn.owner.slow(t.conn.wrote)
	}
	return err
}

func (t *tx) Rollback() error {
	if t.conn.tx.lost {
		t.leave(nil)
		return nil
	}
	return t.end("ROLLBACK")
}

func (t *tx) end(how string) error {
	_, err := t.conn.tx.ExecContext(context.Background(), how, nil)
	var broken error
	if err != nil && !t.conn.tx.lost { // a failed COMMIT leaves the transaction open
		_, broken = t.conn.tx.ExecContext(context.Background(), "ROLLBACK", nil)
	}
	t.leave(broken)
	return err
}

// leave releases the connection of the transaction. If broken is not nil, the state of the
// connection is not known.
func (t *tx) leave(broken error) {
	on := t.conn.tx
	t.conn.tx = nil
	if t.writes {
		t.conn.owner.giveWriter(on, broken)
	} else {
		t.conn.broken = t.conn.broken || broken != nil
	}
}
