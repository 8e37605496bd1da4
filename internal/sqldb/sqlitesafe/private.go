package sqlitesafe

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"maps"
	"strconv"
	"sync"
	"sync/atomic"

	"modernc.org/sqlite"

	"github.com/tenantcontent/tenantcontent/internal/limits/spool"
)

// private is a copy of the database for one transaction that is rolled back in the end, such as a
// dry run. It reads pages in the state that the database had when the transaction began, and stores
// the pages that it writes in a temporary file. So it does everything that a transaction does, and
// does not block others.
type private struct {
	name     string
	from     *stmtConn // in a read transaction
	pageSize int64

	mu    sync.Mutex      // one goroutine at a time uses a connection; the mutex is for the race detector
	pages int64           // number of pages of the copy
	first int64           // the first pages are those of the database, unless they are in own
	own   map[int64]int64 // offsets of the written pages in file, by number
	file  *spool.File
	next  int64 // offset of the next one
	ended bool  // writes fail
}

// selectPage reads one page of the main database. The package needs SQLite's table sqlite_dbpage.
const selectPage = "SELECT data FROM sqlite_dbpage WHERE pgno = ?1"

// copies numbers the private copies of the process, for their names.
var copies atomic.Int64

// openPrivate returns a private copy of the database that from reads, and a connection to it. from
// is in a read transaction until the copy is closed.
func openPrivate(ctx context.Context, from *stmtConn) (p *private, c *stmtConn, err error) {
	if err := registerVFS(); err != nil {
		return nil, nil, err
	}
	p = &private{name: "/tenantcontent-" + strconv.FormatInt(copies.Add(1), 10), from: from, own: map[int64]int64{}}
	if p.pageSize, err = p.number("SELECT page_size FROM pragma_page_size WHERE ?1"); err == nil {
		p.pages, err = p.number("SELECT page_count FROM pragma_page_count WHERE ?1")
	}
	if err != nil {
		return nil, nil, err
	}
	p.first = p.pages
	if p.file, err = spool.New(); err != nil {
		return nil, nil, err
	}
	privates.Store(p.name, p)
	to, err := sqlite.NewConnector(dsn(
		p.name, "vfs="+vfsName, "journal_mode(DELETE)", "synchronous(OFF)", "locking_mode(EXCLUSIVE)",
	))
	if err == nil {
		c, err = connect(ctx, to)
	}
	if err != nil {
		return nil, nil, errors.Join(err, p.close())
	}
	c.watchRollback()
	return p, c, nil
}

// close deletes the written pages.
func (p *private) close() error {
	privates.Delete(p.name)
	return p.file.Close()
}

// end makes the copy refuse writes, so that closing its connection does not undo them one by one.
func (p *private) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
}

// number returns the only number that a query returns. The query has the argument 1, so that it is
// kept prepared.
func (p *private) number(query string) (int64, error) {
	v, err := p.value(query, 1)
	n, ok := v.(int64)
	if err == nil && !ok {
		err = errors.New("sqlitesafe: not a number")
	}
	return n, err
}

// value returns the only value that a query returns. It runs in the middle of a statement of
// another connection, which ends with the context of that connection.
func (p *private) value(query string, arg int64) (driver.Value, error) {
	rows, err := p.from.QueryContext(context.Background(), query, []driver.NamedValue{{Ordinal: 1, Value: arg}})
	if err != nil {
		return nil, err
	}
	row := make([]driver.Value, 1)
	err = rows.Next(row)
	return row[0], errors.Join(err, rows.Close())
}

// page returns a page.
func (p *private) page(n int64) ([]byte, error) {
	if at, own := p.own[n]; own {
		data := make([]byte, p.pageSize)
		_, err := p.file.ReadAt(data, at)
		return data, err
	}
	if n > p.first {
		return make([]byte, p.pageSize), nil
	}
	v, err := p.value(selectPage, n)
	if err != nil {
		return nil, err
	}
	data, ok := v.([]byte)
	if !ok || int64(len(data)) != p.pageSize {
		return nil, io.ErrUnexpectedEOF
	}
	if n == 1 { // in its header: the copy does not use a write-ahead log
		const readVersion, writeVersion, rollbackJournal = 19, 18, 1
		data[readVersion], data[writeVersion] = rollbackJournal, rollbackJournal
	}
	return data, nil
}

// readAt reads the contents of the copy at an offset, within one page. It returns io.EOF beyond the
// end.
func (p *private) readAt(to []byte, at int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	n, from := at/p.pageSize, at%p.pageSize
	if n >= p.pages || from+int64(len(to)) > p.pageSize {
		return io.EOF
	}
	data, err := p.page(n + 1)
	copy(to, data[min(from, int64(len(data))):])
	return err
}

var errEnded = errors.New("sqlitesafe: the transaction of the private copy has ended")

// writeAt writes a page.
func (p *private) writeAt(data []byte, at int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended || at%p.pageSize != 0 || int64(len(data)) != p.pageSize {
		return errEnded
	}
	n := at/p.pageSize + 1
	place, own := p.own[n]
	if !own {
		place, p.next = p.next, p.next+p.pageSize
	}
	if _, err := p.file.WriteAt(data, place); err != nil {
		return err
	}
	p.own[n], p.pages = place, max(p.pages, n)
	return nil
}

// truncate changes the number of pages. If it grows again, the new pages are zero.
func (p *private) truncate(size int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pages = size / p.pageSize
	p.first = min(p.first, p.pages)
	maps.DeleteFunc(p.own, func(n, _ int64) bool { return n > p.pages })
}

func (p *private) size() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pages * p.pageSize
}

// beginPrivate begins a transaction in a private copy.
func (c *conn) beginPrivate(ctx context.Context) (driver.Tx, error) {
	r, err := c.beginRead(ctx)
	if err != nil {
		return nil, err
	}
	t := &privateTx{conn: c}
	if t.copy, c.tx, err = openPrivate(ctx, r); err == nil {
		_, err = c.tx.ExecContext(ctx, "BEGIN IMMEDIATE", nil)
	}
	if err != nil {
		return nil, errors.Join(err, t.Rollback())
	}
	return t, nil
}

// privateTx is a running transaction in a private copy.
type privateTx struct {
	conn *conn
	copy *private
}

// Commit returns an error.
func (t *privateTx) Commit() error {
	return errors.Join(errors.New("sqlitesafe: a dry run cannot be committed"), t.Rollback())
}

func (t *privateTx) Rollback() (err error) {
	if t.copy != nil {
		t.copy.end()
		err = errors.Join(t.conn.tx.Close(), t.copy.close())
	}
	t.conn.tx = nil
	if _, ended := t.conn.reader.ExecContext(context.Background(), "ROLLBACK", nil); ended != nil {
		t.conn.broken = true
	}
	return err
}
