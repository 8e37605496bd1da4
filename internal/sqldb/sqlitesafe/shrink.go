package sqlitesafe

import (
	"context"
	"database/sql/driver"
	"fmt"
	"time"
)

const (
	// shrinkStep is the number of pages that a step frees while other writers wait, for some
	// milliseconds.
	shrinkStep = 256
	// shrinkTime is the most time of a round of steps. The next round begins with the next
	// checkpoint.
	shrinkTime = 250 * time.Millisecond
)

// shrink returns free pages to the file system, in steps between which other transactions can
// write.
func (c *connector) shrink(ctx context.Context, own *stmtConn) error {
	for began := time.Now(); time.Since(began) < shrinkTime && !c.long(); {
		free, err := own.spare(ctx, c.free)
		if err != nil || free <= 0 {
			return err
		}
		if err := c.waitForWriter(ctx); err != nil {
			return ctx.Err() // a busy writer is not a failure: it is tried again
		}
		_, err = own.ExecContext(ctx, fmt.Sprintf("PRAGMA incremental_vacuum(%d)", min(free, shrinkStep)), nil)
		c.end()
		if busy(err) { // another process is writing
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// spare returns how many pages can be returned to the file system if at least keep pages and a
// tenth of the file stay free. It returns 0 if the database cannot return pages: its auto_vacuum is
// not 2, INCREMENTAL.
func (c *stmtConn) spare(ctx context.Context, keep int64) (int64, error) {
	rows, err := c.QueryContext(ctx,
		`SELECT CASE auto_vacuum WHEN 2 THEN freelist_count - max(page_count / 10, $1) ELSE 0 END
		FROM pragma_auto_vacuum, pragma_freelist_count, pragma_page_count`,
		[]driver.NamedValue{{Ordinal: 1, Value: keep}})
	if err != nil {
		return 0, err
	}
	defer func() { _ = rows.Close() }()
	row := make([]driver.Value, 1)
	if err := rows.Next(row); err != nil {
		return 0, err
	}
	n, _ := row[0].(int64)
	return n, nil
}
