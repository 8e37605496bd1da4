package pgsafe

import (
	"cmp"
	"context"
	"time"
)

// Work is the duration that the statements of a context may have.
type Work int

// The kinds of work, and the timeouts of their statements.
const (
	Short     Work = iota // ReadTimeout or WriteTimeout
	Long                  // LongTimeout: an import, or a scan of a directory
	Unbounded             // unlimited: a migration
)

// timeouts are how long the connection waits for the server; 0 is unlimited.
type timeouts struct {
	read, write, long time.Duration
	work              func(context.Context) Work
}

const (
	defaultReadTimeout  = 10 * time.Second
	defaultWriteTimeout = 30 * time.Second // longer than a wait for a lock, which the server ends with an error
	defaultLongTimeout  = 90 * time.Second // longer than the server lets a statement run
)

// newTimeouts returns the timeouts of the URL, or else of cfg.
func newTimeouts(t target, cfg Config) timeouts {
	l := timeouts{
		read:  max(cmp.Or(t.readTimeout, cfg.ReadTimeout, defaultReadTimeout), 0),
		write: max(cmp.Or(t.writeTimeout, cfg.WriteTimeout, defaultWriteTimeout), 0),
		long:  max(cmp.Or(t.longTimeout, cfg.LongTimeout, defaultLongTimeout), 0),
		work:  cfg.Work,
	}
	if l.work == nil {
		l.work = func(context.Context) Work { return Short }
	}
	return l
}

// of returns the timeout for some work; short is that of Short work.
func (l timeouts) of(w Work, short time.Duration) time.Duration {
	switch w {
	case Unbounded:
		return 0
	case Long:
		return l.long
	}
	return short
}

// timeout returns how long to wait for the server during one statement. A SELECT in a transaction
// may wait for a lock.
func (c *conn) timeout(ctx context.Context, query string) time.Duration {
	short := c.limits.write
	if !c.inTx {
		switch keyword(query) {
		case "select", "with", "values", "show", "table":
			short = c.limits.read
		}
	}
	return c.limits.of(c.limits.work(ctx), short)
}
