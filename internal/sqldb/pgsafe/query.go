package pgsafe

import (
	"context"
	"database/sql/driver"
	"slices"
)

// ExecContext runs a statement. If ctx ends when the statement is complete, its result is returned.
func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if err := check(query, args); err != nil {
		return nil, err
	}
	if err := c.release(); err != nil {
		return nil, err
	}
	if c.hold(ctx, query, args) {
		return driver.RowsAffected(0), nil
	}
	return c.execute(ctx, query, args)
}

// execute is ExecContext for a statement that is not held.
func (c *conn) execute(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	leave, err := c.enter(ctx, c.timeout(ctx, query))
	if err != nil {
		return nil, err
	}
	defer leave()
	res, err := c.exec(ctx, query, args)
	return res, c.settle(ctx, err)
}

func (c *conn) exec(ctx context.Context, query string, args []driver.NamedValue) (res driver.Result, err error) {
	if err := c.useTenant(ctx, query); err != nil {
		return nil, err
	}
	defer c.tenant.after(query)
	if len(args) == 0 {
		c.sent = true
		return c.pg.ExecContext(ctx, query, nil)
	}
	err = c.prepared(ctx, query, args, func(s *statement) error {
		c.sent = true
		res, err = s.ExecContext(ctx, args)
		return err
	})
	return res, err
}

// QueryContext runs a statement that returns rows. They end with ctx.
func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if err := check(query, args); err != nil {
		return nil, err
	}
	if err := c.release(); err != nil {
		return nil, err
	}
	leave, err := c.enter(ctx, c.timeout(ctx, query))
	if err != nil {
		return nil, err
	}
	r := &rows{c: c, ctx: ctx, leave: leave}
	if err := c.query(r, query, args); err != nil {
		leave()
		return nil, c.settle(ctx, err)
	}
	c.open = r
	return r, nil
}

// query fills r.
func (c *conn) query(r *rows, query string, args []driver.NamedValue) (err error) {
	if err := c.useTenant(r.ctx, query); err != nil {
		return err
	}
	defer c.tenant.after(query)
	if len(args) == 0 {
		c.sent = true
		if r.pg, err = c.pg.QueryContext(r.ctx, query, nil); err != nil {
			return err
		}
		r.columns = slices.Clone(r.pg.Columns()) // pgdriver reuses the slice
		return nil
	}
	return c.prepared(r.ctx, query, args, func(s *statement) (err error) {
		c.sent = true
		if r.pg, err = s.QueryContext(r.ctx, args); err != nil {
			return err
		}
		if s.columns == nil {
			s.columns = slices.Clone(r.pg.Columns())
		}
		r.columns = s.columns
		return nil
	})
}
