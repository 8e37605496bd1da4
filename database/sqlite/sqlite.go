// Package sqlite opens a SQLite file as tenantcontent needs it, backs it up and restores it, and
// opens the SQL databases of apps in files.
//
//	db, err := sqlite.Open("app.db")
//	err = tenantcontent.Migrate(ctx, db)
//	app, err := tenantcontent.Open(tenantcontent.Config{DB: db, SecretKeyFile: "secret.key"})
//
// It links the driver of SQLite (internal/sqldb/sqlitesafe), and that of PostgreSQL is in package
// postgres. Programs import the one that they need; the library imports neither. A host may as well
// open its own *bun.DB.
package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/sqlitedialect"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/sqlitesafe"
)

// Open opens the database in a file, which is made with its folder when missing, readable by its
// owner only. It reads in parallel and queues writers. A query outside a transaction only reads:
// INSERT … RETURNING needs a transaction, which bun's insert of a row with an empty primary key
// uses, too.
//
// It makes no table: see tenantcontent.Migrate. The caller closes it. Errors: errs.Invalid for a
// path that cannot be opened; errs.Unavailable for a file that is damaged (see Check);
// errs.Conflict where a restore was ended.
func Open(path string) (*bun.DB, error) {
	switch {
	case path == "" || strings.HasPrefix(path, ":memory:"):
		return nil, errs.New(errs.Invalid, "the database must be a file: its path is empty, or names memory")
	case strings.HasPrefix(path, "sqlite:"):
		return nil, errs.New(errs.Invalid, "the database must be the path of a file, without sqlite: before it")
	}
	if unfinished := path + restoringEnd; !exists(path) && exists(unfinished) {
		return nil, errs.New(
			errs.Conflict,
			"there is no database at %s, and %s is what a restore that was ended has left: run `tenantcontent "+
				"restore` again, or remove that file to begin with an empty database",
			path, unfinished,
		)
	}
	if err := private(path); err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "the database file %s cannot be opened: %v", path, err)
	}
	if err := sqlitesafe.CheckHeader(path); sqlitesafe.Damaged(err) {
		return nil, damagedFile(path, err)
	}
	db, err := sqlitesafe.Open(path, sqlitesafe.Options{
		Tenant:   tenantOf,
		DryRun:   bunx.IsDryRun,
		Brief:    bunx.IsBrief,
		Hurried:  hurried,
		Attached: new(bunx.Deferred),
	})
	if sqlitesafe.Damaged(err) {
		return nil, damagedFile(path, err)
	}
	if err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "the database file %s cannot be opened: %v", path, err)
	}
	return bun.NewDB(db, sqlitedialect.New()), nil
}

// tenantOf returns the tenant of a statement: that of bunx.For, or else that of the caller.
func tenantOf(ctx context.Context) string {
	if t := bunx.Tenant(ctx); t != "" {
		return t
	}
	a, _ := actor.From(ctx)
	return a.Tenant
}

// hurried reports whether somebody waits for the end of a transaction who can try again: a request
// that is not long itself. Background work, and imports that wait for each other, have more
// time.
func hurried(ctx context.Context) bool {
	return actor.OriginOf(ctx).Request != "" && bunx.WorkOf(ctx) == bunx.Short
}

// exists reports whether there is a file at a path, or something that cannot be looked at.
func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// private makes the file and its folder, when missing, readable by their owner only.
func private(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}
