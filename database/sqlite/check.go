package sqlite

import (
	"context"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/sqlitesafe"
)

// Check returns an error if a database should not be used: a sample of its file is damaged. Call it
// before tenantcontent.Migrate. Errors: errs.Unavailable, saying what to do.
func Check(ctx context.Context, db *bun.DB) error {
	var path string
	if err := db.QueryRowContext(
		ctx, `SELECT file FROM pragma_database_list WHERE name = 'main'`,
	).Scan(&path); err != nil {
		return bunx.Err(err, "")
	}
	if err := sqlitesafe.Sample(ctx, db.DB); sqlitesafe.Damaged(err) {
		return damagedFile(path, err)
	} else if err != nil {
		return bunx.Err(err, "")
	}
	return nil
}

// damagedFile returns the error for a SQLite file that is damaged.
func damagedFile(path string, err error) error {
	if sqlitesafe.NotDatabase(err) {
		return errs.New(
			errs.Invalid,
			"the database file %s is not a SQLite database, or its beginning is damaged: %v. Name another file, "+
				"or restore the last good backup",
			path, err,
		)
	}
	return errs.New(errs.Unavailable,
		"the database file %s is damaged: %v. Restore the last good backup in an empty place, or what can be read: "+
			"`tenantcontent backup FILE` fails and keeps a copy in FILE.damaged, of which `tenantcontent restore "+
			"--salvage FILE.damaged` takes the rest",
		path, err)
}
