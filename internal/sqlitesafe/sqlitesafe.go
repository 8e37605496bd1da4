// Package sqlitesafe makes one *sql.DB of a SQLite file that many callers can use at once.
//
// SQLite has one writer. A pool of ordinary connections finds that out by failing with SQLITE_BUSY; here each pooled
// connection reads on a connection of its own that cannot write, and transactions queue for the one connection that
// can. A program sees one pool: reads run beside each other and beside a write, writes run one after the other.
//
//   - Outside a transaction Query reads, and a statement that writes fails there; Exec queues for the writer.
//   - A transaction queues for the writer and keeps it to its end, unless it is read-only: then it is a snapshot on the
//     connection's own reader.
//   - Statements with arguments are prepared once per connection.
//   - The write-ahead log is copied back by a checkpoint each second, beside the callers and not in one of them.
//
// Only database and tests import it.
package sqlitesafe

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"time"

	"modernc.org/sqlite"
)

// readers is how many callers can read at once.
const readers = 16

// Open gives the pool of the file at path, which is made when it is missing. Closing the pool copies the write-ahead
// log back into the file.
func Open(path string) (*sql.DB, error) {
	c, err := newConnector(path)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(c)
	// A transaction takes a place in the pool while it queues for the writer, so there are twice as many places.
	db.SetMaxOpenConns(2 * max(readers, runtime.GOMAXPROCS(0)))
	db.SetMaxIdleConns(2 * max(readers, runtime.GOMAXPROCS(0)))
	if err := db.Ping(); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// connector opens readers and owns the writer.
type connector struct {
	read   driver.Connector
	write  driver.Connector
	turn   chan struct{} // holds one token: who has it may use writer
	writer *stmtConn     // nil until the first use and after a failure
	stop   context.CancelFunc
	done   sync.WaitGroup
}

func newConnector(path string) (*connector, error) {
	read, err := sqlite.NewConnector(dsn(path, "_query_only=1"))
	if err != nil {
		return nil, err
	}
	write, err := sqlite.NewConnector(dsn(path, ""))
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	c := &connector{read: read, write: write, turn: make(chan struct{}, 1), stop: stop}
	c.turn <- struct{}{}
	// The first connection makes the file and turns write-ahead logging on, before any reader opens it.
	w, err := c.takeWriter(ctx)
	if err != nil {
		stop()
		return nil, err
	}
	c.giveWriter(w, nil)
	c.done.Go(func() { c.checkpoint(ctx) })
	return c, nil
}

// dsn names the file with the settings every connection has (NOTES: SQLite).
func dsn(path, more string) string {
	q := url.Values{"_pragma": {
		"busy_timeout(10000)", "journal_mode(WAL)", "synchronous(NORMAL)", "foreign_keys(1)", "trusted_schema(0)",
		"wal_autocheckpoint(0)", "cache_size(-16000)",
	}, "_dqs": {"0"}, "_timezone": {"UTC"}}
	escaped := strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23").Replace(path)
	return "file:" + escaped + "?" + strings.TrimPrefix(more+"&"+q.Encode(), "&")
}

func (c *connector) Driver() driver.Driver { return &sqlite.Driver{} }

func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	r, err := open(ctx, c.read)
	if err != nil {
		return nil, err
	}
	return &conn{owner: c, reader: r}, nil
}

// Close ends the checkpoints and closes the writer, which is idle once the pool is closed.
func (c *connector) Close() error {
	c.stop()
	c.done.Wait()
	<-c.turn
	if c.writer == nil {
		return nil
	}
	w := c.writer
	c.writer = nil
	_, err := w.ExecContext(context.Background(), "PRAGMA wal_checkpoint(TRUNCATE)", nil)
	return errors.Join(err, w.Close())
}

// takeWriter waits for the writer. Errors: the context's, when it ends first.
func (c *connector) takeWriter(ctx context.Context) (*stmtConn, error) {
	select {
	case <-c.turn:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if c.writer != nil {
		return c.writer, nil
	}
	w, err := open(ctx, c.write)
	if err != nil {
		c.turn <- struct{}{}
		return nil, err
	}
	c.writer = w
	return w, nil
}

// giveWriter gives the writer back; broken says that its state is not known, so that the next one opens another.
func (c *connector) giveWriter(w *stmtConn, broken error) {
	if broken != nil {
		_ = w.Close()
		c.writer = nil
	}
	c.turn <- struct{}{}
}

// checkpoint copies the write-ahead log back into the file, as far as readers let it, once a second.
func (c *connector) checkpoint(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var own *stmtConn
	defer func() {
		if own != nil {
			_ = own.Close()
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if own == nil {
			var err error
			if own, err = open(ctx, c.write); err != nil {
				continue
			}
		}
		if _, err := own.ExecContext(ctx, "PRAGMA wal_checkpoint(PASSIVE)", nil); err != nil {
			_ = own.Close()
			own = nil
		}
	}
}

// conn is one place in the pool: a reader, and the writer while a transaction has it.
type conn struct {
	owner  *connector
	reader *stmtConn
	tx     *stmtConn // what statements run on inside a transaction; nil outside
}

var errPrepare = errors.New("sqlitesafe: explicit Prepare is not supported; statements with arguments are prepared by themselves")

func (c *conn) Prepare(string) (driver.Stmt, error) { return nil, errPrepare }
func (c *conn) Begin() (driver.Tx, error)           { return c.BeginTx(context.Background(), driver.TxOptions{}) }
func (c *conn) Ping(ctx context.Context) error      { return c.reader.conn.(driver.Pinger).Ping(ctx) }
func (c *conn) Close() error                        { return c.reader.Close() }
func (c *conn) IsValid() bool                       { return c.reader.conn.(driver.Validator).IsValid() }

func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if c.tx != nil {
		return c.tx.QueryContext(ctx, query, args)
	}
	return c.reader.QueryContext(ctx, query, args)
}

func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if c.tx != nil {
		return c.tx.ExecContext(ctx, query, args)
	}
	w, err := c.owner.takeWriter(ctx)
	if err != nil {
		return nil, err
	}
	res, err := w.ExecContext(ctx, query, args)
	c.owner.giveWriter(w, ctx.Err()) // an interrupted statement leaves no transaction, but doubt
	return res, err
}

func (c *conn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	if opts.ReadOnly {
		if _, err := c.reader.ExecContext(ctx, "BEGIN", nil); err != nil {
			return nil, err
		}
		c.tx = c.reader
		return &tx{conn: c}, nil
	}
	w, err := c.owner.takeWriter(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := w.ExecContext(ctx, "BEGIN IMMEDIATE", nil); err != nil {
		c.owner.giveWriter(w, err)
		return nil, err
	}
	c.tx = w
	return &tx{conn: c, writes: true}, nil
}

// tx is a running transaction of a conn.
type tx struct {
	conn   *conn
	writes bool
}

func (t *tx) Commit() error   { return t.end("COMMIT") }
func (t *tx) Rollback() error { return t.end("ROLLBACK") }

func (t *tx) end(how string) error {
	on := t.conn.tx
	t.conn.tx = nil
	_, err := on.ExecContext(context.Background(), how, nil)
	if err != nil { // a failed COMMIT leaves the transaction open
		_, undo := on.ExecContext(context.Background(), "ROLLBACK", nil)
		if how == "ROLLBACK" && strings.Contains(err.Error(), "no transaction is active") {
			err, undo = nil, nil // SQLite had rolled back by itself, on a full disk for example
		}
		if undo != nil && t.writes {
			t.conn.owner.giveWriter(on, undo)
			return err
		}
	}
	if t.writes {
		t.conn.owner.giveWriter(on, nil)
	}
	return err
}

var _ io.Closer = (*connector)(nil) // sql.DB.Close calls it
