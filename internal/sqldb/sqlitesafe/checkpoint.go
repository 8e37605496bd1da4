package sqlitesafe

import (
	"context"
	"time"
)

// checkpoint copies the write-ahead log into the file repeatedly, as far as readers permit.
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

// copyBack makes one checkpoint. While writers never pause, a checkpoint does not reach the end of
// the log, which then cannot be reused from its beginning and grows. So a long log is emptied while
// no transaction writes.
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
		return ctx.Err() // a busy writer is not a failure: it is tried again
	}
	defer c.end()
	_, err := own.ExecContext(ctx, "PRAGMA busy_timeout("+timeout+"); PRAGMA wal_checkpoint(TRUNCATE)", nil)
	return err
}
