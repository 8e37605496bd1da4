// Package sqlitesafe makes one *sql.DB of a SQLite file that many callers can use at once.
//
// SQLite has one writer. A pool of ordinary connections finds that out by failing with SQLITE_BUSY;
// here each pooled connection reads on a connection of its own that cannot write, and transactions
// queue for the one connection that can. A program sees one pool: reads run beside each other and
// beside a write, writes run one after the other.
//
//   - Outside a transaction Query reads, and a statement that writes fails there; Exec queues for
//     the writer.
//   - A transaction queues for the writer and keeps it to its end, unless it is read-only: then it
//     is a snapshot on the connection's own reader. The queue serves one tenant after the other: a
//     tenant that writes much does not hold up the writes of others by more than one transaction.
//   - Statements with arguments are prepared once per connection, those with many so that binding
//     them costs little.
//   - A transaction that SQLite itself rolled back, because a statement in it was interrupted or
//     the disk is full, is over: its other statements fail, and so does its commit.
//   - The write-ahead log is copied back by a checkpoint each second, beside the callers and not in
//     one of them. Who writes more than the log can take waits for it after the commit, without the
//     writer. Only the last bit of a log that has grown long is copied back while the writers wait.
//   - Pages of deleted rows are given back to the file system in the background, a few at a time,
//     until a tenth of the file is free. That holds for files that this package has made; an older
//     one becomes such a file by VACUUM.
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
	// places bounds the pool. A transaction takes a place while it queues for the writer, so there
	// are many more than readers: those who wait for a long transaction shall not keep others from
	// reading.
	places = 512
	// maxWaiting is how many wait for a long transaction, so that places are left for those who
	// read. Others fail at once.
	maxWaiting = places / 4
)

// limits say when the write-ahead log is copied back, and how writers queue.
type limits struct {
	every time.Duration
	most  int64         // bytes; a longer log is emptied while the writer waits
	free  int64         // pages that stay in the file for new rows, if a tenth of it is less
	wait  time.Duration // for the writer
	// A transaction that takes longer is long: see Options.Hurried. Default 3 s.
	longAfter time.Duration
}

var usual = limits{every: time.Second, most: 64 << 20, free: 1024, wait: 30 * time.Second}

const (
	// much is how many bytes of arguments a transaction has that waits when the log is long, such
	// as a chunk of a file. One of tooMuch is an import: it does not come again at once, and has
	// kept others waiting already.
	much, tooMuch = 256 << 10, 4 << 20
	// maxDelay is how long it waits at most.
	maxDelay = 2 * time.Second
	// A long log is copied back beside the writers again and again, until that is brief or these
	// rounds are over: then as little is left as is written meanwhile.
	rounds = 16
	brief  = 20 * time.Millisecond
)

const (
	briefWait   = 50 * time.Millisecond
	busyTimeout = 10 * time.Second // for other processes
)

// timeout is how long writers wait for readers of an old state before a long log stays as it is
// until the next time.
const timeout = "100"

// Options are what Open asks of the contexts of transactions.
type Options struct {
	// Tenant returns for whom the writer is used: tenants that wait for it have it in turn.
	// Default: all are one.
	Tenant func(ctx context.Context) string
	// DryRun reports whether a transaction will be rolled back, whatever it does. It then has a
	// copy of the database for itself, which costs what it reads and writes, and does not wait for
	// the writer. Default: none.
	DryRun func(ctx context.Context) bool
	// Brief reports whether a transaction waits for the writer for a moment at most. Default: none.
	Brief func(ctx context.Context) bool
	// Hurried reports whether a transaction is not to wait for a long one: it fails when it has
	// waited for some seconds and one transaction has had the writer for as long. Default: none.
	Hurried func(ctx context.Context) bool
	// Attached is what the method Attached of the pool's driver returns, for the packages between.
	Attached any
}

// Open returns the pool of the file at path, which is made when it is missing. Closing the pool
// copies the write-ahead log back into the file.
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
	l.longAfter = cmp.Or(l.longAfter, 3*time.Second)
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
	c := &connector{limits: l, Options: o, log: path + "-wal", read: read,
		write: write, queue: queue, open: ctx, stop: stop,
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
	q := url.Values{"_pragma": append([]string{
		fmt.Sprintf("busy_timeout(%d)", busyTimeout.Milliseconds()), "foreign_keys(1)", "trusted_schema(0)",
		"cache_size(-8000)",
	}, pragmas...),
		"_dqs": {"0"}, "_timezone": {"UTC"}}
	return fileURI(path, strings.TrimPrefix(more+"&"+q.Encode(), "&"))
}

// initialize makes a new file one that can give pages back (see shrink). An existing one stays as
// it is.
func initialize(ctx context.Context, path string) error {
	if info, err := os.Stat(path); err == nil && info.Size() > 0 {
		return nil
	}
	file, err := sqlite.NewConnector(fileURI(
		path, "_pragma=busy_timeout(10000)&_pragma=auto_vacuum(2)&_pragma=journal_mode(WAL)",
	))
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

// safeDriver is by what a program that does not import this package knows its pools: see
// bunx.TakesWriters.
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

var _ io.Closer = (*connector)(nil) // sql.DB.Close calls it
