package pgsafe

import (
	"context"
	"database/sql/driver"
	"io"
)

// rows are the rows of one statement. They occupy the connection until the last one is read or
// Close is called.
type rows struct {
	c       *conn
	ctx     context.Context // of the statement
	leave   func()
	pg      driver.Rows
	columns []string
	done    bool
}

func (r *rows) Columns() []string { return r.columns }

// Next reads a row. After the end of the context it returns the context's error, even if pgdriver
// has more rows in its buffer.
func (r *rows) Next(dest []driver.Value) error {
	if r.done {
		return io.EOF
	}
	if r.c.dead() {
		return r.finish(io.ErrUnexpectedEOF)
	}
	switch err := r.pg.Next(dest); err {
	case nil:
		return nil
	case io.EOF:
		r.finish(nil)
		return io.EOF
	default:
		return r.finish(err)
	}
}

// maxRest is the most bytes of further rows that Close reads in order to keep the connection.
const maxRest = 256 << 10

// Close reads the rest of the rows. Outside a transaction it closes the connection if that fails or
// the rest is long, because the server would send all of it.
func (r *rows) Close() error {
	if r.done {
		return nil
	}
	if r.c.inTx {
		if r.c.dead() {
			return r.finish(io.ErrUnexpectedEOF)
		}
		return r.finish(r.pg.Close())
	}
	dest := make([]driver.Value, len(r.columns))
	for rest := 0; rest <= maxRest; {
		switch err := r.Next(dest); err {
		case nil:
		case io.EOF:
			return nil
		default:
			return err
		}
		for _, v := range dest {
			switch v := v.(type) {
			case string:
				rest += len(v)
			case []byte:
				rest += len(v)
			}
			rest += 8
		}
	}
	r.c.kill()
	return r.finish(r.ctx.Err())
}

// finish returns the connection to the pool.
func (r *rows) finish(err error) error {
	r.done = true
	r.c.open = nil
	err = r.c.settle(r.ctx, err)
	r.leave()
	return err
}
