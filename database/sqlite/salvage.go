package sqlite

import (
	"archive/tar"
	"context"
	"database/sql"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/sqlitesafe"
	"github.com/tenantcontent/tenantcontent/internal/store/tenantrows"
)

// Salvaged is what Salvage could take from a backup, and what it could not.
type Salvaged struct {
	Notes     []string // what is wrong with the backup as a file
	Databases []SalvagedDatabase
}

// SalvagedDatabase is a database that was damaged.
type SalvagedDatabase struct {
	Name   string // in the backup
	Err    error  // nothing could be taken, if it is not nil: a workspace is left out then
	Tables []SalvagedTable
}

// SalvagedTable counts the rows of a table.
type SalvagedTable struct {
	Table   string
	Taken   int64 // rows that are restored
	Lost    int64 // rows that an index names and that cannot be read; there may be more
	Removed int64 // rows that were read and refer to others that are lost
	Damaged int64 // places of the table at which reading failed
}

// salvagedEnd is after the name of a database that is being salvaged.
const salvagedEnd = ".salvaged"

// Salvage is Restore for a backup that is damaged, or of a damaged database: it takes what can be
// read. Databases that are whole are restored as they are. Of the others it takes the rows that can
// be read, and removes those that refer to lost ones; content of users and teams that are lost
// passes to a superuser of the tenant. Errors: as Restore; errs.Invalid if nothing of the service's
// database can be read.
func Salvage(ctx context.Context, from io.Reader, to Files, progress Progress) (*Salvaged, error) {
	found := new(Salvaged)
	err := restore(ctx, to, progress, func(r *restoring) error {
		r.salvaged = found
		if err := r.read(tar.NewReader(from)); err != nil {
			return err
		}
		if err := r.salvage(backupDatabase, r.database, &sqlitesafe.Rules{
			Derived: tenantrows.Derived,
			Adopt:   adopt,
		}); err != nil {
			return errors.Join(
				ctx.Err(),
				errs.Wrap(errs.Invalid, err, "nothing of the database in the backup can be read: %v", err),
			)
		}
		return r.salvageWorkspaces()
	})
	return found, err
}

// salvage makes a damaged database one of the rows that can be read.
func (r *restoring) salvage(name, path string, rules *sqlitesafe.Rules) error {
	r.progress("checking "+name, 0, 0)
	check := sqlitesafe.Finish
	if rules == nil {
		check = sqlitesafe.Check
	}
	err := check(r.ctx, path)
	if err == nil || r.ctx.Err() != nil {
		return errors.Join(err, r.ctx.Err())
	}
	r.progress("salvaging "+name, 0, 0)
	d := SalvagedDatabase{Name: name}
	whole := path + salvagedEnd
	tables, err := sqlitesafe.Salvage(r.ctx, path, whole, rules)
	d.Err = err
	for _, t := range tables {
		d.Tables = append(d.Tables, SalvagedTable(t))
	}
	r.salvaged.Databases = append(r.salvaged.Databases, d)
	for _, end := range databaseEnds {
		if err := os.Remove(path + end); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if d.Err != nil {
		_ = os.Remove(whole)
		return d.Err
	}
	return os.Rename(whole, path)
}

// salvageWorkspaces leaves out those of which nothing can be read.
func (r *restoring) salvageWorkspaces() error {
	if r.workspaces == "" {
		return nil
	}
	found, err := filepath.Glob(filepath.Join(r.workspaces, "*", "*.sqlite"))
	if err != nil {
		return err
	}
	for _, path := range found {
		name, err := filepath.Rel(r.workspaces, path)
		if err != nil {
			return err
		}
		if err := r.salvage("workspaces/"+filepath.ToSlash(name), path, nil); r.ctx.Err() != nil {
			return errors.Join(r.ctx.Err(), err)
		}
	}
	return nil
}

// adopt makes a superuser of the tenant the owner of content whose owner is lost.
func adopt(ctx context.Context, db *sql.DB) error {
	rows, err := db.QueryContext(ctx, `SELECT m.name FROM sqlite_schema m, pragma_foreign_key_list(m.name) f
		WHERE m.type = 'table' AND f."table" = 'tc_principals' AND f."from" = 'owner_id'`)
	if err != nil {
		return err
	}
	var tables []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return errors.Join(err, rows.Close())
		}
		tables = append(tables, name)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return err
	}
	for _, name := range tables {
		const superuser = `(SELECT username FROM tc_users u WHERE u.tenant_id = t.tenant_id AND u.superuser ` +
			`ORDER BY u.enabled DESC, u.username <> 'admin', u.username LIMIT 1)`
		if _, err := db.ExecContext(ctx, `UPDATE `+name+` AS t SET owner_id = `+superuser+` WHERE `+superuser+
			` IS NOT NULL
			AND NOT EXISTS (SELECT 1 FROM tc_principals p WHERE p.tenant_id = t.tenant_id AND p.id = t.owner_id)`); err != nil {
			return err
		}
	}
	return nil
}
