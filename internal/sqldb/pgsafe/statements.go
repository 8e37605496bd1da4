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

// preparedStmt has the methods of the statement that pgdriver's Prepare returns.
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

// excess returns the statement that must be removed before another one is added, or nil.
func (ss *statements) excess() *statement {
	if ss.order.Len() < ss.max {
		return nil
	}
	return ss.order.Back().Value.(*statement)
}

// prepared calls run with the prepared statement of query. If the server rejects the statement
// because its tables changed, it is prepared again, once; such an error comes before execution. In
// a transaction, which has failed then, the error is returned.
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

// prepare returns the prepared statement of query. It takes a round trip the first time, and
// another one if the cache is full.
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

// drop closes s. Any error closes the connection, because pgdriver does not send the Sync that
// would bring both sides in step again.
func (c *conn) drop(s *statement) error {
	c.stmts.remove(s)
	err := s.Close()
	if err != nil {
		c.kill()
	}
	return err
}
