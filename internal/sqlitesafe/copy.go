package sqlitesafe

import (
	"context"
	"database/sql"
	"errors"

	"modernc.org/sqlite"
)

// copyStep is how many pages are copied at once. The end of a context is noticed between two steps.
const copyStep = 1024

// Copy copies a database, page by page, to a file that does not exist yet. The copy is the state of one moment: it is read in one
// transaction, beside which this and other processes go on reading and writing. progress is called with the bytes that have been
// copied and those of the database; nil is allowed. No SQL that the database contains runs, such as the expressions of its indexes.
func Copy(ctx context.Context, from, to string, progress func(done, all int64)) (err error) {
	source, err := sqlite.NewConnector(fileURI(from, "mode=rw&_pragma=busy_timeout(10000)&_pragma=query_only(1)"))
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
	// A copy outside of a transaction would begin anew with each write of another connection. The first read begins the snapshot.
	if _, err := c.ExecContext(ctx, "BEGIN"); err != nil {
		return err
	}
	var tables, pageSize int64
	if err := c.QueryRowContext(ctx, "SELECT (SELECT count(*) FROM sqlite_schema), page_size FROM pragma_page_size").Scan(&tables, &pageSize); err != nil {
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

// Check reads a whole database and returns an error that describes what is damaged. A database that cannot give pages back (see shrink)
// becomes one that can. No other connection may be open.
func Check(ctx context.Context, path string) (err error) {
	file, err := sqlite.NewConnector(fileURI(path, "mode=rw&_pragma=auto_vacuum(2)&_pragma=trusted_schema(0)"))
	if err != nil {
		return err
	}
	db := sql.OpenDB(file)
	db.SetMaxOpenConns(1)
	defer func() { err = errors.Join(err, db.Close()) }()
	var found string
	var shrinks int
	if err := db.QueryRowContext(ctx, "SELECT quick_check, auto_vacuum FROM pragma_quick_check, pragma_auto_vacuum LIMIT 1").Scan(&found, &shrinks); err != nil {
		return err
	}
	if found != "ok" {
		return errors.New(found)
	}
	if shrinks == 0 {
		_, err = db.ExecContext(ctx, "VACUUM")
	}
	return err
}
