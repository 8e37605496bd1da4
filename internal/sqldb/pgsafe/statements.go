package pgsafe

import (
	"container/list"
	"context"
	"database/sql/driver"
	"fmt"
)

// statement is one prepared statement of a connection.
type statement struct {
	preparedStmt
	text    string
	columns []string // known after the first query
}

// preparedStmt is what pgdriver's Prepare returns.
type preparedStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// statements are the prepared statements of a connection, the least recently used last.
type statements struct {
	max    int
	order  *list.List // of *statement
	byText map[string]*list.Element
}

func newStatements(max int) *statements {
	return &statements{max: max, order: list.New(), byText: map[string]*list.Element{}}
}

func (ss *statements) get(text string) *statement {
	e := ss.byText[text]
	if e == nil {
		return nil
	}
	ss.order.MoveToFront(e)
	return e.Value.(*statement)
}

func (ss *statements) add(s *statement) { ss.byText[s.text] = ss.order.PushFront(s) }

func (ss *statements) remove(s *statement) {
	if e := ss.byText[s.text]; e != nil {
		ss.order.Remove(e)
		delete(ss.byText, s.text)
	}
}

// excess returns the statement that must go before another one comes, or nil.
func (ss *statements) excess() *statement {
	if ss.order.Len() < ss.max {
		return nil
	}
	return ss.order.Back().Value.(*statement)
}

// prepared calls run with the prepared statement of query. When the server has no use for the
// statement any more, because its tables changed, it is prepared again, once: such an error comes
// before anything is executed. In a transaction, which has failed then, the caller gets the error.
func (c *conn) prepared(ctx context.Context, query string, args []driver.NamedValue, run func(*statement) error) error {
	err := c.runPrepared(ctx, query, args, run)
	if !stale(err) {
		return err
	}
	if s := c.stmts.get(query); s != nil {
		if err := c.drop(s); err != nil {
			return err
		}
	}
	if c.inTx {
		return err
	}
	again := c.runPrepared(ctx, query, args, run)
	if Code(again) == failedTransaction {
		return err
	}
	return again
}

func (c *conn) runPrepared(
	ctx context.Context, query string, args []driver.NamedValue, run func(*statement) error,
) error {
	s, err := c.prepare(ctx, query)
	if err != nil {
		return err
	}
	if n := s.NumInput(); n >= 0 && n != len(args) { // unknown for a statement without rows: the server refuses it
		return refusal(fmt.Sprintf("the statement has %d parameters, and %d arguments are given", n, len(args)))
	}
	return run(s)
}

// prepare returns the prepared statement of query. It is a round trip the first time, and another
// one when the cache is full.
func (c *conn) prepare(ctx context.Context, query string) (*statement, error) {
	if s := c.stmts.get(query); s != nil {
		return s, nil
	}
	if old := c.stmts.excess(); old != nil {
		if err := c.drop(old); err != nil {
			return nil, err
		}
	}
	pg, err := c.pg.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	s := &statement{preparedStmt: pg.(preparedStmt), text: query}
	c.stmts.add(s)
	return s, nil
}

// drop closes s. Any error ends the connection: pgdriver sends no Sync that would put the two sides
// in step again.
func (c *conn) drop(s *statement) error {
	c.stmts.remove(s)
	err := s.Close()
	if err != nil {
		c.kill()
	}
	return err
}
