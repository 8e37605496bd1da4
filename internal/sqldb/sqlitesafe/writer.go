package sqlitesafe

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"os"
	"time"

	"github.com/tenantcontent/tenantcontent/internal/limits/limiter"
)

// waitForWriter waits until the writer is free. It first releases what the caller's context can
// release (limiter.Yield), for which callers that only read may wait. It returns the context's
// error if that ends first, errBusy if the writer is not free in time, and sql.ErrConnDone after
// Close.
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
	return errBusy{long: c.held() >= c.longAfter}
}

// held returns how long the current transaction has had the writer, or 0.
func (c *connector) held() time.Duration {
	began := c.began.Load()
	if began == 0 {
		return 0
	}
	return time.Since(time.Unix(0, began))
}

// hurry returns a context that ends, with the cause limiter.ErrBusy, when a transaction has had the
// writer for long and its caller has waited as long. It also ends when many others wait for the
// writer.
func (c *connector) hurry(ctx context.Context) (hurried context.Context, stop func()) {
	hurried, cancel := context.WithCancelCause(ctx)
	if c.held() >= c.longAfter && c.queue.Waiting() >= maxWaiting {
		cancel(limiter.ErrBusy)
	}
	go func() {
		wait := time.NewTimer(c.longAfter)
		defer wait.Stop()
		for {
			select {
			case <-hurried.Done():
				return
			case <-wait.C:
			}
			if c.held() >= c.longAfter {
				cancel(limiter.ErrBusy)
				return
			}
			wait.Reset(c.longAfter / 8)
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

// gone returns an error if the file of the database was removed or replaced. What is written into
// the old file is lost when this process ends.
func (c *connector) gone() error {
	now, err := os.Stat(c.path)
	if err == nil && os.SameFile(now, c.file) {
		return nil
	}
	return errGone{path: c.path}
}

// errGone has SQLite's code for a database that was moved.
type errGone struct{ path string }

func (e errGone) Error() string {
	return "sqlitesafe: the database file " + e.path + " was removed or replaced while it is open"
}

func (errGone) Code() int { return 1032 }

// begin begins a transaction that writes. It waits while another process writes.
func (c *connector) begin(ctx context.Context, w *stmtConn) error {
	begin := "BEGIN IMMEDIATE"
	if c.Brief(ctx) {
		begin = fmt.Sprintf(
			"PRAGMA busy_timeout(%d); BEGIN IMMEDIATE; PRAGMA busy_timeout(%d)", briefWait.Milliseconds(),
			busyTimeout.Milliseconds(),
		)
	}
	_, err := w.ExecContext(ctx, begin, nil)
	return err
}

// giveWriter releases the writer. If broken is not nil, its state is not known and the next
// transaction opens another connection.
func (c *connector) giveWriter(w *stmtConn, broken error) {
	if broken != nil {
		_ = w.Close()
		c.writer = nil
	}
	c.end()
}

// long reports whether the log must be copied back to its end.
func (c *connector) long() bool {
	f, err := os.Stat(c.log)
	return err == nil && f.Size() > c.most
}

// slow makes a caller that has committed so many bytes wait for the end of a checkpoint if the log
// is long. Otherwise the log would grow faster than it is copied back, and in the end all writers
// would wait for all of it.
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
	limit := time.NewTimer(maxDelay)
	defer limit.Stop()
	select {
	case <-copied:
	case <-limit.C:
	case <-c.open.Done():
	}
}

// size returns the number of bytes of text and blobs in some arguments.
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
