// Package sqlitesafe provides a *sql.DB for a SQLite file that many callers can use at once.
//
// SQLite has one writer. With a pool of ordinary connections, concurrent writes fail with
// SQLITE_BUSY. Here each pooled connection reads on a connection that cannot write, and
// transactions queue for the only connection that can. A program uses one pool: reads run
// concurrently with each other and with a write, and writes run one after the other.
//
//   - Outside a transaction Query reads, and a statement that writes fails there. Exec queues for
//     the writer.
//   - A transaction queues for the writer and has it until its end. A read-only transaction does
//     not: it is a snapshot on the connection's reader. The queue serves tenants in turn, so a
//     tenant that writes much delays the writes of others by at most one transaction.
//   - Statements with arguments are prepared once per connection. Those with many arguments are
//     rewritten so that binding them is fast.
//   - A transaction that SQLite rolled back, because a statement in it was interrupted or the disk
//     is full, has ended: its other statements fail, and so does its commit.
//   - A checkpoint copies the write-ahead log into the file each second, in the background. A
//     caller that writes more than the log can take waits for it after the commit, without the
//     writer. Writers wait only while the rest of a long log is copied.
//   - Pages of deleted rows are returned to the file system in the background, a few at a time,
//     until a tenth of the file is free. This applies to files that this package has created;
//     VACUUM converts older ones.
//
// Only packages database/sqlite and internal/workspaces/sqlite, and tests, import it.
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
	// readers is the number of readers that are kept open.
	readers = 16
	// places is the size of the pool. A transaction has a place while it queues for the writer, so
	// there are many more places than readers. Otherwise transactions that wait for a long one
	// would block reads.
	places = 512
	// maxWaiting is the most transactions that wait for a long one, so that places remain for
	// reads. Others fail at once.
	maxWaiting = places / 4
)

// limits define when the write-ahead log is copied back, and how writers queue.
type limits struct {
	every time.Duration
	most  int64         // bytes; a longer log is emptied while the writer waits
	free  int64         // pages that stay free in the file, if they are more than a tenth of it
	wait  time.Duration // for the writer
	// A transaction that takes longer is long: see Options.Hurried. Default 3 s.
	longAfter time.Duration
}

var usual = limits{every: time.Second, most: 64 << 20, free: 1024, wait: 30 * time.Second}

const (
	// much is the number of bytes of arguments from which a transaction waits when the log is long,
	// such as a chunk of a file. A transaction with tooMuch is an import, which does not wait: it
	// is not repeated at once, and has already delayed others.
	much, tooMuch = 256 << 10, 4 << 20
	// maxDelay is the most time that it waits.
	maxDelay = 2 * time.Second
	// A long log is copied back while others write, repeatedly, until that is brief or these rounds
	// are over. The rest, which is copied while writers wait, is then small.
	rounds = 16
	brief  = 20 * time.Millisecond
)

const (
	briefWait   = 50 * time.Millisecond
	busyTimeout = 10 * time.Second // for other processes
)

// timeout is how long writers wait for old readers before a long log is left for the next time.
const timeout = "100"

// Options are functions that Open calls with the contexts of transactions.
type Options struct {
	// Tenant returns the tenant for which the writer is used. Waiting tenants use the writer in
	// turn. Default: all transactions belong to one tenant.
	Tenant func(ctx context.Context) string
	// DryRun reports whether a transaction will be rolled back, whatever it does. It then runs in a
	// private copy of the database, which costs time and space for what it reads and writes, and
	// does not wait for the writer. Default: false.
	DryRun func(ctx context.Context) bool
	// Brief reports whether a transaction waits at most a moment for the writer. Default: false.
	Brief func(ctx context.Context) bool
	// Hurried reports whether a transaction does not wait for a long one. It fails if it has waited
	// for some seconds and one transaction has had the writer for as long. Default: false.
	Hurried func(ctx context.Context) bool
	// Attached is the value that the method Attached of the pool's driver returns.
	Attached any
}

// Open returns the pool of the file at path, which is created if it does not exist. Closing the
// pool copies the write-ahead log into the file.
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

// connector opens readers and has the writer.
type connector struct {
	limits
	Options
	path   string
	file   os.FileInfo // the database file when it was opened
	log    string      // path of the write-ahead log
	read   driver.Connector
	write  driver.Connector
	queue  *limiter.Limiter // of transactions that wait for the writer; one has it at a time
	end    func()           // releases the writer for the next one
	began  atomic.Int64     // when the current transaction got the writer, in nanoseconds; 0: it is free
	writer *stmtConn        // nil until the first use and after a failure
	wake   chan struct{}    // has a token when a checkpoint must begin early
	open   context.Context  // ends with Close
	stop   context.CancelFunc
	done   sync.WaitGroup

	mu     sync.Mutex
	copied chan struct{} // closed with the end of the next checkpoint
}

func newConnector(path string, l limits, o Options) (*connector, error) {
	path = filepath.Clean(path) // two slashes at the beginning would be a host
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
	// The first connection turns on write-ahead logging, before any reader opens the file.
	w, err := c.takeWriter(ctx)
	if err != nil {
		stop()
		return nil, err
	}
	c.giveWriter(w, nil)
	c.done.Go(func() { c.checkpoint(ctx) })
	return c, nil
}

// dsn returns the URI of the file with the settings of every connection, and more pragmas.
func dsn(path, more string, pragmas ...string) string {
	q := url.Values{"_pragma": append([]string{
		fmt.Sprintf("busy_timeout(%d)", busyTimeout.Milliseconds()), "foreign_keys(1)", "trusted_schema(0)",
		"cache_size(-8000)",
	}, pragmas...),
		"_dqs": {"0"}, "_timezone": {"UTC"}}
	return fileURI(path, strings.TrimPrefix(more+"&"+q.Encode(), "&"))
}

// initialize makes a new file return free pages (see shrink). It does not change an existing one.
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

// fileURI returns the URI of a file with parameters.
func fileURI(path, parameters string) string {
	return "file:" + strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23").Replace(path) + "?" + parameters
}

func (c *connector) Driver() driver.Driver { return safeDriver{&sqlite.Driver{}, c.Attached} }

// safeDriver identifies these pools to programs that do not import this package: see
// bunx.TakesWriters.
type safeDriver struct {
	*sqlite.Driver
	attached any
}

// Attached returns Options.Attached.
func (d safeDriver) Attached() any { return d.attached }

// QueuesWriters marks the driver as one whose transactions queue for the writer.
func (safeDriver) QueuesWriters() {}

func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	return &conn{owner: c}, ctx.Err()
}

// Close stops the checkpoints, waits for a running transaction and closes the writer.
func (c *connector) Close() error {
	c.stop()
	c.done.Wait()
	for { // do not release the writer
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
