package pgsafe

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"time"
)

// levels are the names of isolation levels in SQL.
var levels = map[sql.IsolationLevel]string{
	sql.LevelDefault:         "",
	sql.LevelReadUncommitted: " isolation level read uncommitted",
	sql.LevelReadCommitted:   " isolation level read committed",
	sql.LevelRepeatableRead:  " isolation level repeatable read",
	sql.LevelSerializable:    " isolation level serializable",
}

// Begin implements driver.Conn. database/sql calls BeginTx instead.
func (c *conn) Begin() (driver.Tx, error) { return c.BeginTx(context.Background(), driver.TxOptions{}) }

// BeginTx begins a transaction for the tenant of ctx. The end of ctx rolls it back.
func (c *conn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	level, ok := levels[sql.IsolationLevel(opts.Isolation)]
	if !ok {
		return nil, refusal("isolation level " + sql.IsolationLevel(opts.Isolation).String() + " is not supported")
	}
	if c.inTx {
		return nil, refusal("the connection is in a transaction")
	}
	begin := "begin" + level
	if opts.ReadOnly {
		begin += " read only"
	}
	leave, err := c.enter(ctx, c.limits.read)
	if err != nil {
		return nil, err
	}
	defer leave()
	if err := c.switchTenant(ctx); err != nil {
		return nil, c.settle(ctx, err)
	}
	if _, err := c.pg.ExecContext(ctx, begin, nil); err != nil {
		return nil, c.settle(ctx, err)
	}
	c.inTx, c.readOnly, c.failed, c.tenant.inTx = true, opts.ReadOnly, false, false
	return &tx{c: c, ctx: ctx}, nil
}

type tx struct {
	c   *conn
	ctx context.Context // of BeginTx
}

// Commit returns an error if the server rolled back instead, as it does, without an error, after a
// failed statement. After an error that is not the server's, it is not known whether the
// transaction was committed.
func (t *tx) Commit() error {
	c := t.c
	h, query := c.held, commit
	if c.failed {
		query = "select 1; commit" // the select fails if the transaction has failed
	}
	c.inTx, c.held = false, nil
	defer func() { c.readOnly = false }()
	var err error
	if h != nil {
		err = c.commitWith(t.ctx, h)
	} else {
		_, err = c.control(t.ctx, c.limits.of(c.limits.work(t.ctx), c.limits.write), query)
	}
	if err == nil {
		return nil
	}
	c.tenant.known = c.tenant.known && !c.tenant.inTx
	if !ordinary(err) || Code(err) == failedTransaction {
		c.kill() // this rolls back
	}
	return err
}

// rollbackTimeout is how long the server may take to roll back before the connection is closed
// instead.
const rollbackTimeout = 5 * time.Second

// Rollback always succeeds: if the server does not answer, it closes the connection, which rolls
// back, too.
func (t *tx) Rollback() error {
	c := t.c
	c.inTx, c.readOnly, c.held = false, false, nil
	c.tenant.known = c.tenant.known && !c.tenant.inTx
	timeout := rollbackTimeout
	if c.limits.read > 0 {
		timeout = min(timeout, c.limits.read)
	}
	if _, err := c.control(t.ctx, timeout, "rollback"); err != nil {
		c.kill()
	}
	return nil
}
