// Package engines opens databases by URL, for programs that support both engines: the command line,
// benchmarks and tests. A host imports package database/sqlite or database/postgres.
package engines

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"

	"github.com/tenantcontent/tenantcontent/database/postgres"
	"github.com/tenantcontent/tenantcontent/database/sqlite"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/workspaces"
)

// Open opens the database of a URL: sqlite:<path>, or postgres://… as described in package
// postgres. Errors: errs.Invalid; those of packages sqlite and postgres.
func Open(url string) (*bun.DB, error) {
	scheme, path, _ := strings.Cut(url, ":")
	switch scheme {
	case "sqlite":
		if path == "" || strings.HasPrefix(path, ":memory:") {
			return nil, errs.New(errs.Invalid, "the database URL must name a file: sqlite:<path>")
		}
		return sqlite.Open(path)
	case "postgres", "postgresql":
		return postgres.Open(url)
	}
	return nil, errs.New(errs.Invalid, "the database URL must start with sqlite: or postgres://")
}

// Check returns an error if a database should not be used. It calls the Check of the engine's
// package.
func Check(ctx context.Context, db *bun.DB) error {
	if db.Dialect().Name() == dialect.PG {
		return postgres.Check(ctx, db)
	}
	return sqlite.Check(ctx, db)
}

// OpenWorkspaces opens the SQL databases of apps. quota is the most bytes of a workspace; 0 means
// 256 MiB. main is the URL of the program's own database. text is one of:
//
//   - a folder, in which each app has a SQLite file;
//   - postgres://…, a separate database, in which each app has a schema and a role;
//   - "": a folder with the name of the file of main and the suffix .workspaces. If main is a
//     PostgreSQL, OpenWorkspaces returns nil.
//
// Errors: errs.Invalid. The errors do not contain passwords.
func OpenWorkspaces(text, main string, quota int64) (workspaces.Driver, error) {
	if text == "" {
		if text = workspacesBeside(main); text == "" {
			return nil, nil
		}
	}
	switch scheme, _, ok := strings.Cut(text, "://"); {
	case !ok:
		return sqlite.OpenWorkspaces(text, quota)
	case scheme != "postgres" && scheme != "postgresql":
		return nil, errs.New(errs.Invalid, "workspaces are in a folder or a PostgreSQL: name a folder or postgres://…")
	}
	return postgres.OpenWorkspaces(text, main, quota)
}

// Files returns the files of an embedded server. Its arguments are those of Open and
// OpenWorkspaces. Workspaces in a PostgreSQL are not included. Errors: errs.Invalid if the database
// is a PostgreSQL.
func Files(main, workspaces string) (sqlite.Files, error) {
	path, embedded := strings.CutPrefix(main, "sqlite:")
	if !embedded || path == "" {
		return sqlite.Files{}, errs.New(
			errs.Invalid,
			"the database is no file. A PostgreSQL is backed up by pg_dump and restored by pg_restore: see "+
				"docs/operations.md",
		)
	}
	f := sqlite.Files{Database: path, Workspaces: workspaces}
	switch {
	case workspaces == "":
		f.Workspaces = workspacesBeside(main)
	case strings.Contains(workspaces, "://"):
		f.Workspaces = ""
	}
	return f, nil
}

// workspacesBeside returns the default folder of workspaces for a database, or "" for a PostgreSQL.
func workspacesBeside(main string) string {
	path, embedded := strings.CutPrefix(main, "sqlite:")
	if !embedded || path == "" {
		return ""
	}
	return filepath.Clean(path) + ".workspaces"
}
