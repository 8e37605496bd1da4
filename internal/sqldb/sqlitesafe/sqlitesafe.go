// Package sqlitesafe makes one *sql.DB of a SQLite file that many callers can use at once.
//
// SQLite has one writer. A pool of ordinary connections finds that out by failing with SQLITE_BUSY; here each pooled
// connection reads on a connection of its own that cannot write, and transactions queue for the one connection that
// can. A program sees one pool: reads run beside each other and beside a write, writes run one after the other.
//
//   - Outside a transaction Query reads, and a statement that writes fails there; Exec queues for the writer.
//   - A transaction queues for the writer and keeps it to its end, unless it is read-only: then it is a snapshot on the
//     connection's own reader. The queue serves one tenant after the other: a tenant that writes much does not hold up the
//     writes of others by more than one transaction.
//   - Statements with arguments are prepared once per connection, those with many so that binding them costs little.
//   - A transaction that SQLite itself rolled back, because a statement in it was interrupted or the disk is full, is
//     over: its other statements fail, and so does its commit.
//   - The write-ahead log is copied back by a checkpoint each second, beside the callers and not in one of them. Who writes
//     more than the log can take waits for it after the commit, without the writer. Only the last bit of a log that has
//     grown long is copied back while the writers wait.
//   - Pages of deleted rows are given back to the file system in the background, a few at a time, until a tenth of the file is free.
//     That holds for files that this package has made; an older one becomes such a file by VACUUM.
//
// Only database and tests import it.
package sqlitesafe

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"modernc.org/sqlite"

	"github.com/tenantcontent/tenantcontent/internal/limits/limiter"
)

const (
	// readers is how many callers read at once without opening a connection.
	readers = 16
	// places bounds the pool. A transaction takes a place while it queues for the writer, so there are many more than
	// readers: those who wait for a long transaction shall not keep others from reading.
	places = 512
	// maxWaiting is how many wait for a long transaction, so that places are left for those who read. Others fail at once.
	maxWaiting = places / 4
)

// limits say when the write-ahead log is copied back, and how writers queue.
type limits struct {
	every time.Duration
	most  int64         // bytes; a longer log is emptied while the writer waits
	free  int64         // pages that stay in the file for new rows, if a tenth of it is less
	wait  time.Duration // for the writer
	// A transaction that takes longer is long: see Options.Hurried. Default 3 s.
	patience time.Duration
}

var usual = limits{every: time.Second, most: 64 << 20, free: 1024, wait: 30 * time.Second}

const (
	// much is how many bytes of arguments a transaction has that waits when the log is long, such as a chunk of a file. One
	// of tooMuch is an import: it does not come again at once, and has kept others waiting already.
	much, tooMuch = 256 << 10, 4 << 20
	// brake is how long it waits at most.
	brake = 2 * time.Second
	// A long log is copied back beside the writers again and again, until that is brief or these rounds are over: then as
	// little is left as is written meanwhile.
	rounds = 16
	brief  = 20 * time.Millisecond
)

const (
	briefWait   = 50 * time.Millisecond
	busyTimeout = 10 * time.Second // for other processes
)

// timeout is how long writers wait for readers of an old state before a long log stays as it is until the next time.
const timeout = "100"

// Options are what Open asks of the contexts of transactions.
type Options struct {
	// Tenant returns for whom the writer is used: tenants that wait for it have it in turn. Default: all are one.
	Tenant func(ctx context.Context) string
	// DryRun reports whether a transaction will be rolled back, whatever it does. It then has a copy of the database for itself, which costs
	// what it reads and writes, and does not wait for the writer. Default: none.
	DryRun func(ctx context.Context) bool
	// Brief reports whether a transaction waits for the writer for a moment at most. Default: none.
	Brief func(ctx context.Context) bool
	// Hurried reports whether a transaction is not to wait for a long one: it fails when it has waited for some seconds and one transaction has had
	// the writer for as long. Default: none.
	Hurried func(ctx context.Context) bool
	// Attached is what the method Attached of the pool's driver returns, for the packages between.
	Attached any
}

// Open returns the pool of the file at path, which is made when it is missing. Closing the pool copies the write-ahead
// log back into the file.
func Open(path string, o Options) (*sql.DB, error) {
	return openPool(path, usual, o)
}

func openPool(path string, l limits, o Options) (*sql.DB, error) {
	c, err := newConnector(path, l, o)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(c)
	db.SetMaxOpenConns(places)
	db.SetMaxIdleConns(2 * max(readers, runtime.GOMAXPROCS(0)))
	if err := db.Ping(); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// connector opens readers and owns the writer.
type connector struct {
	limits
	Options
	path   string
	file   os.FileInfo // of the database when it was opened
	log    string      // the write-ahead log's file
	read   driver.Connector
	write  driver.Connector
	queue  *limiter.Limiter // of who waits for writer; one has it at once
	end    func()           // lets the next one have it
	began  atomic.Int64     // when the one who has the writer got it, in nanoseconds; 0: nobody has it
	writer *stmtConn        // nil until the first use and after a failure
	wake   chan struct{}    // has a token when a checkpoint is to begin before its time
	open   context.Context  // ends with Close
	stop   context.CancelFunc
	done   sync.WaitGroup

	mu     sync.Mutex
	copied chan struct{} // closed with the end of the next checkpoint
}

func newConnector(path string, l limits, o Options) (*connector, error) {
	path = filepath.Clean(path) // two slashes at its start would name a host
	wal := []string{"journal_mode(WAL)", "synchronous(NORMAL)", "wal_autocheckpoint(0)"}
	read, err := sqlite.NewConnector(dsn(path, "_query_only=1", wal...))
	if err != nil {
		return nil, err
	}
	write, err := sqlite.NewConnector(dsn(path, "", wal...))
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	if o.Tenant == nil {
		o.Tenant = func(context.Context) string { return "" }
	}
	l.patience = cmp.Or(l.patience, 3*time.Second)
	never := func(context.Context) bool { return false }
	if o.DryRun == nil {
		o.DryRun = never
	}
	if o.Brief == nil {
		o.Brief = never
	}
	if o.Hurried == nil {
		o.Hurried = never
	}
	queue := limiter.New(limiter.Options{Capacity: 1, Timeout: l.wait})
	c := &connector{limits: l, Options: o, log: path + "-wal", read: read, write: write, queue: queue, open: ctx, stop: stop,
		wake: make(chan struct{}, 1), copied: make(chan struct{})}
	if err := initialize(ctx, path); err != nil {
		stop()
		return nil, err
	}
	c.path = path
	if c.file, err = os.Stat(path); err != nil {
		stop()
		return nil, err
	}
	// The first connection turns write-ahead logging on, before any reader opens the file.
	w, err := c.takeWriter(ctx)
	if err != nil {
		stop()
		return nil, err
	}
	c.giveWriter(w, nil)
	c.done.Go(func() { c.checkpoint(ctx) })
	return c, nil
}

// dsn names the file with the settings every connection has, and more pragmas.
func dsn(path, more string, pragmas ...string) string {
	q := url.Values{"_pragma": append([]string{fmt.Sprintf("busy_timeout(%d)", busyTimeout.Milliseconds()), "foreign_keys(1)", "trusted_schema(0)", "cache_size(-8000)"}, pragmas...),
		"_dqs": {"0"}, "_timezone": {"UTC"}}
	return fileURI(path, strings.TrimPrefix(more+"&"+q.Encode(), "&"))
}

// initialize makes a new file one that can give pages back (see shrink). An existing one stays as it is.
func initialize(ctx context.Context, path string) error {
	if info, err := os.Stat(path); err == nil && info.Size() > 0 {
		return nil
	}
	file, err := sqlite.NewConnector(fileURI(path, "_pragma=busy_timeout(10000)&_pragma=auto_vacuum(2)&_pragma=journal_mode(WAL)"))
	if err != nil {
		return err
	}
	c, err := connect(ctx, file)
	if err != nil {
		return err
	}
	return c.Close()
}

// fileURI names a file with parameters.
func fileURI(path, parameters string) string {
	return "file:" + strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23").Replace(path) + "?" + parameters
}

func (c *connector) Driver() driver.Driver { return safeDriver{&sqlite.Driver{}, c.Attached} }

// safeDriver is by what a program that does not import this package knows its pools: see bunx.TakesWriters.
type safeDriver struct {
	*sqlite.Driver
	attached any
}

// Attached returns Options.Attached.
func (d safeDriver) Attached() any { return d.attached }

// QueuesWriters marks the driver as one whose transactions wait for each other.
func (safeDriver) QueuesWriters() {}

func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	return &conn{owner: c}, ctx.Err()
}

// Close ends the checkpoints, waits for a running transaction and closes the writer.
func (c *connector) Close() error {
	c.stop()
	c.done.Wait()
	for { // and keeps the writer
		if _, err := c.queue.Acquire(context.Background(), 1); err == nil {
			break
		}
	}
	if c.writer == nil {
		return nil
	}
	w := c.writer
	c.writer = nil
	_, err := w.ExecContext(context.Background(), "PRAGMA wal_checkpoint(TRUNCATE)", nil)
	return errors.Join(err, w.Close())
}

// waitForWriter waits until the writer is free. Before that it releases what the caller's context can release (limiter.Yield), as callers
// that only read may wait for it. It returns the context's error if that ends first, errBusy if the writer is not free in time, and
// sql.ErrConnDone after Close.
func (c *connector) waitForWriter(ctx context.Context) error {
	either, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.open, cancel)()
	limiter.Yield(ctx)
	if c.Brief(ctx) {
		short, cancel := context.WithTimeoutCause(either, briefWait, limiter.ErrBusy)
		defer cancel()
		either = short
	}
	if c.Hurried(ctx) && c.began.Load() != 0 {
		hurried, stop := c.hurry(either)
		defer stop()
		either = hurried
	}
	end, err := c.queue.Acquire(either, 1, c.Tenant(ctx))
	switch {
	case err == nil:
		c.began.Store(time.Now().UnixNano())
		c.end = func() {
			c.began.Store(0)
			end()
		}
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case c.open.Err() != nil:
		return sql.ErrConnDone
	}
	return errBusy{long: c.held() >= c.patience}
}

// held returns for how long somebody has had the writer.
func (c *connector) held() time.Duration {
	began := c.began.Load()
	if began == 0 {
		return 0
	}
	return time.Since(time.Unix(0, began))
}

// hurry returns a context that ends, with the cause limiter.ErrBusy, when a transaction has had the writer for long and its caller has waited as long,
// or when many others wait for it.
func (c *connector) hurry(ctx context.Context) (hurried context.Context, stop func()) {
	hurried, cancel := context.WithCancelCause(ctx)
	if c.held() >= c.patience && c.queue.Waiting() >= maxWaiting {
		cancel(limiter.ErrBusy)
	}
	go func() {
		wait := time.NewTimer(c.patience)
		defer wait.Stop()
		for {
			select {
			case <-hurried.Done():
				return
			case <-wait.C:
			}
			if c.held() >= c.patience {
				cancel(limiter.ErrBusy)
				return
			}
			wait.Reset(c.patience / 8)
		}
	}()
	return hurried, func() { cancel(nil) }
}

// takeWriter waits for the writer. Errors: as waitForWriter.
func (c *connector) takeWriter(ctx context.Context) (*stmtConn, error) {
	if err := c.waitForWriter(ctx); err != nil {
		return nil, err
	}
	if err := c.gone(); err != nil {
		c.end()
		return nil, err
	}
	if c.writer != nil {
		return c.writer, nil
	}
	w, err := connect(ctx, c.write)
	if err != nil {
		c.end()
		return nil, err
	}
	w.watchRollback()
	c.writer = w
	return w, nil
}

// gone returns an error if the file of the database was removed or replaced: what is written into
// the old one is lost with this process.
func (c *connector) gone() error {
	now, err := os.Stat(c.path)
	if err == nil && os.SameFile(now, c.file) {
		return nil
	}
	return errGone{path: c.path}
}

// errGone has SQLite's own code for a database that was moved.
type errGone struct{ path string }

func (e errGone) Error() string {
	return "sqlitesafe: the database file " + e.path + " was removed or replaced while it is open"
}
func (errGone) Code() int { return 1032 }

// begin begins a transaction that writes. Another process may have the file.
func (c *connector) begin(ctx context.Context, w *stmtConn) error {
	begin := "BEGIN IMMEDIATE"
	if c.Brief(ctx) {
		begin = fmt.Sprintf("PRAGMA busy_timeout(%d); BEGIN IMMEDIATE; PRAGMA busy_timeout(%d)", briefWait.Milliseconds(), busyTimeout.Milliseconds())
	}
	_, err := w.ExecContext(ctx, begin, nil)
	return err
}

// giveWriter frees the writer; if broken, its state is not known and the next writer opens another connection.
func (c *connector) giveWriter(w *stmtConn, broken error) {
	if broken != nil {
		_ = w.Close()
		c.writer = nil
	}
	c.end()
}

// checkpoint copies the write-ahead log back into the file, as far as readers let it, again and again.
func (c *connector) checkpoint(ctx context.Context) {
	tick := time.NewTicker(c.every)
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
		case <-c.wake:
		}
		var err error
		if own == nil {
			if own, err = connect(ctx, c.write); err != nil {
				continue
			}
		}
		if err = c.copyBack(ctx, own); err == nil {
			err = c.shrink(ctx, own)
		}
		if err != nil {
			_ = own.Close()
			own = nil
		}
		c.mu.Lock()
		close(c.copied)
		c.copied = make(chan struct{})
		c.mu.Unlock()
	}
}

// copyBack is one checkpoint. Under writers that never pause, a checkpoint beside them never reaches the end of the log,
// which then cannot start again from its beginning and grows: a long log is emptied while no other writes.
func (c *connector) copyBack(ctx context.Context, own *stmtConn) error {
	for range rounds {
		began := time.Now()
		if _, err := own.ExecContext(ctx, "PRAGMA wal_checkpoint(PASSIVE)", nil); err != nil {
			return err
		}
		if !c.long() {
			return nil
		}
		if time.Since(began) < brief {
			break
		}
	}
	if err := c.waitForWriter(ctx); err != nil {
		return ctx.Err() // a busy writer is no failure: it is tried again
	}
	defer c.end()
	_, err := own.ExecContext(ctx, "PRAGMA busy_timeout("+timeout+"); PRAGMA wal_checkpoint(TRUNCATE)", nil)
	return err
}

// long reports whether the log is to be copied back to its end.
func (c *connector) long() bool {
	f, err := os.Stat(c.log)
	return err == nil && f.Size() > c.most
}

// slow has a caller wait that has committed so many bytes, until a checkpoint has ended, when the log is long. Without that
// it would grow faster than it is copied back, and all writers wait for all of it in the end.
func (c *connector) slow(bytes int) {
	if bytes < much || bytes >= tooMuch || !c.long() {
		return
	}
	c.mu.Lock()
	copied := c.copied
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
	limit := time.NewTimer(brake)
	defer limit.Stop()
	select {
	case <-copied:
	case <-limit.C:
	case <-c.open.Done():
	}
}

// size returns how many bytes of text and blobs some arguments have.
func size(args []driver.NamedValue) (n int) {
	for _, a := range args {
		switch v := a.Value.(type) {
		case string:
			n += len(v)
		case []byte:
			n += len(v)
		}
	}
	return n
}

// conn is one place in the pool: a reader, and the writer while a transaction has it.
type conn struct {
	owner  *connector
	reader *stmtConn // nil until the first read: who only waits for the writer needs none
	tx     *stmtConn // what statements run on inside a transaction; nil outside
	wrote  int       // bytes of the arguments in this transaction
	broken bool      // the reader's state is not known
}

// errBusy is the error of a transaction for which the writer was not free in time. It has SQLite's own code for that.
type errBusy struct{ long bool }

func (errBusy) Error() string { return "sqlitesafe: another transaction has been writing for too long" }
func (errBusy) Code() int     { return 5 }

// HeldLong reports whether one transaction had the writer for long, and not many one after the other.
func (e errBusy) HeldLong() bool { return e.long }

var errLost = errors.New("sqlitesafe: the transaction was rolled back when a statement in it failed")

var errPrepare = errors.New("sqlitesafe: explicit Prepare is not supported; statements with arguments are prepared by themselves")

func (c *conn) Prepare(string) (driver.Stmt, error) { return nil, errPrepare }
func (c *conn) Begin() (driver.Tx, error)           { return c.BeginTx(context.Background(), driver.TxOptions{}) }

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
	return r.QueryContext(ctx, query, args)
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
	c.owner.giveWriter(w, ctx.Err()) // an interrupted statement leaves no transaction, but doubt
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

// beginRead begins a transaction of the reader.
func (c *conn) beginRead(ctx context.Context) (*stmtConn, error) {
	r, err := c.read(ctx)
	if err != nil {
		return nil, err
	}
	// It waits for nothing. The driver reports the end of a context as an error also of a BEGIN that took effect.
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

// leave releases the connection of the transaction; if broken, its state is not known.
func (t *tx) leave(broken error) {
	on := t.conn.tx
	t.conn.tx = nil
	if t.writes {
		t.conn.owner.giveWriter(on, broken)
	} else {
		t.conn.broken = t.conn.broken || broken != nil
	}
}

var _ io.Closer = (*connector)(nil) // sql.DB.Close calls it
