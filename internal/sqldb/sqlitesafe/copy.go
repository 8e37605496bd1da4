package sqlitesafe

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"sync"

	"modernc.org/sqlite"

	"github.com/tenantcontent/tenantcontent/internal/text/timetext"
)

// copyStep is the number of pages that are copied at once. The end of a context is noticed between
// two steps.
const copyStep = 1024

// Copy copies a database, page by page, to a file that does not exist yet. The copy is a snapshot:
// it is read in one transaction, while this and other processes read and write. progress, if not
// nil, is called with the number of bytes that have been copied and that of the database. Copy
// executes no SQL of the database, such as expressions of its indexes.
func Copy(ctx context.Context, from, to string, progress func(done, all int64)) (err error) {
	source, err := sqlite.NewConnector(fileURI(
		from, "mode=rw&_pragma=busy_timeout(10000)&_pragma=query_only(1)&_pragma=writable_schema(1)",
	))
	if err != nil {
		return err
	}
	db := sql.OpenDB(source)
	defer func() { err = errors.Join(err, db.Close()) }()
	c, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	// Outside of a transaction the copy would begin again after each write of another connection.
	// The first read begins the snapshot.
	if _, err := c.ExecContext(ctx, "BEGIN"); err != nil {
		return err
	}
	// These read no table, and with writable_schema a file may be shorter than its header says. So
	// damaged files can be copied, too.
	var version, pageSize int64
	if err := errors.Join(
		c.QueryRowContext(ctx, "PRAGMA schema_version").Scan(&version),
		c.QueryRowContext(ctx, "PRAGMA page_size").Scan(&pageSize),
	); err != nil {
		return err
	}
	return c.Raw(func(raw any) error {
		b, err := raw.(interface {
			NewBackup(uri string) (*sqlite.Backup, error)
		}).NewBackup(fileURI(to, "_pragma=journal_mode(OFF)&_pragma=synchronous(OFF)"))
		if err != nil {
			return err
		}
		return errors.Join(copyPages(ctx, b, func(done, all int) {
			if progress != nil {
				progress(int64(done)*pageSize, int64(all)*pageSize)
			}
		}), b.Finish())
	})
}

func copyPages(ctx context.Context, b *sqlite.Backup, copied func(done, all int)) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		more, err := b.Step(copyStep)
		if err != nil {
			return err
		}
		copied(b.PageCount()-b.Remaining(), b.PageCount())
		if !more {
			return nil
		}
	}
}

// Check reads a whole database and returns an error that describes what is damaged. No other
// connection may be open. It does not evaluate CHECK constraints, which may have been written by
// tenants.
func Check(ctx context.Context, path string) error {
	return with(path, "mode=rw&_pragma=trusted_schema(0)&_pragma=ignore_check_constraints(1)", func(db *sql.DB) error {
		return quickCheck(ctx, db)
	})
}

// Finish checks a database as Check does and prepares it for use. A database that cannot return
// free pages (see shrink) is converted to one that can.
func Finish(ctx context.Context, path string) error {
	return with(path, "mode=rw&_pragma=auto_vacuum(2)&_pragma=trusted_schema(0)", func(db *sql.DB) error {
		var shrinks int
		if err := errors.Join(
			quickCheck(ctx, db), db.QueryRowContext(ctx, "PRAGMA auto_vacuum").Scan(&shrinks),
		); err != nil || shrinks != 0 {
			return err
		}
		_, err := db.ExecContext(ctx, "VACUUM")
		return err
	})
}

// withTimes opens connections that have the collations of workspaces.
var withTimes = sync.OnceValue(func() *sqlite.Driver {
	d := &sqlite.Driver{}
	d.MustRegisterCollationUtf8(timetext.Timestamp, timetext.CompareTimestamps[string])
	d.MustRegisterCollationUtf8(timetext.Date, timetext.CompareDates[string])
	return d
})

// timesConnector is a driver.Connector of withTimes.
type timesConnector struct{ uri string }

func (c timesConnector) Connect(context.Context) (driver.Conn, error) { return c.Driver().Open(c.uri) }
func (timesConnector) Driver() driver.Driver                          { return withTimes() }

// with calls fn with one connection to a file, which may be a workspace.
func with(path, parameters string, fn func(*sql.DB) error) (err error) {
	db := sql.OpenDB(timesConnector{fileURI(path, parameters)})
	db.SetMaxOpenConns(1)
	defer func() { err = errors.Join(err, db.Close()) }()
	return fn(db)
}

// shownFaults is the most faults of a database in an error.
const shownFaults = 5

// quickCheck returns an error with the first faults of a database.
func quickCheck(ctx context.Context, db *sql.DB) error {
	rows, err := db.QueryContext(ctx, fmt.Sprintf("PRAGMA main.quick_check(%d)", shownFaults))
	if err != nil {
		return err
	}
	return faults(rows)
}

// faults reads the rows of a check.
func faults(rows *sql.Rows) (err error) {
	defer func() { err = errors.Join(err, rows.Close()) }()
	var all []string
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return err
		}
		if text != "ok" {
			all = append(all, strings.Join(strings.Fields(text), " ")) // some have several lines
		}
	}
	if err := rows.Err(); err != nil || len(all) == 0 {
		return err
	}
	return errors.New(strings.Join(all, "; "))
}

// Damaged reports whether an error is SQLite's for a file that is damaged or is not a database.
func Damaged(err error) bool { return primaryCode(err) == 11 || NotDatabase(err) }

// NotDatabase reports whether an error is SQLite's for a file that does not begin as a database.
func NotDatabase(err error) bool { return primaryCode(err) == 26 }

// primaryCode returns the result code of SQLite in an error, or 0.
func primaryCode(err error) int {
	var lite interface{ Code() int }
	if !errors.As(err, &lite) {
		return 0
	}
	return lite.Code() & 0xff
}
