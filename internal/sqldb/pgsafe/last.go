package pgsafe

import (
	"context"
	"database/sql/driver"
	"encoding/binary"
)

// last is the last statement of a transaction, which is sent with the COMMIT.
type last struct {
	ctx   context.Context
	query string
	args  []driver.NamedValue
}

// hold keeps a statement for the COMMIT, and reports whether it does. Config.Last says which
// statements it may keep. Whatever comes in place of the COMMIT runs the statement first.
func (c *conn) hold(ctx context.Context, query string, args []driver.NamedValue) bool {
	if c.owner.cfg.Last == nil || !c.inTx || c.failed || c.held != nil || len(args) == 0 || !c.owner.cfg.Last(ctx) {
		return false
	}
	c.held = &last{ctx, query, args}
	return true
}

// release runs the statement that is held, if any.
func (c *conn) release() error {
	h := c.held
	if h == nil {
		return nil
	}
	c.held = nil
	_, err := c.execute(h.ctx, h.query, h.args)
	return err
}

// commitWith sends a statement and COMMIT at once, and reads both answers. If the statement fails,
// the server rolls back, and the error is that of the statement.
func (c *conn) commitWith(ctx context.Context, h *last) error {
	leave, err := c.enter(ctx, c.limits.of(c.limits.work(ctx), c.limits.write))
	if err != nil {
		return err
	}
	defer leave()
	err = c.useTenant(h.ctx, h.query)
	if err == nil {
		err = c.runPrepared(ctx, h.query, h.args, func(s *statement) error {
			c.sent, c.socket.next = true, message('Q', commit)
			_, err := s.ExecContext(ctx, h.args)
			return err
		})
	}
	if sent := c.socket.next == nil && c.sent; !sent || err != nil && !ordinary(err) {
		c.socket.next = nil
		err = c.settle(ctx, err)
		c.kill() // this rolls back what was not sent
		return err
	}
	c.socket.drop = true // it is sent
	if _, second := c.pg.ExecContext(ctx, commit, nil); err == nil || second != nil {
		err = second
	}
	if stale(err) {
		c.kill() // so that the statement is prepared again
	}
	return c.settle(ctx, err)
}

const commit = "commit"

// message returns a message of the protocol that has one text.
func message(kind byte, text string) []byte {
	m := binary.BigEndian.AppendUint32([]byte{kind}, uint32(4+len(text)+1))
	return append(append(m, text...), 0)
}
