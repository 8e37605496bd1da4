package sqlite

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/sqlitesafe"
	"github.com/tenantcontent/tenantcontent/internal/workspaces"
)

var _ workspaces.Mover = (*Driver)(nil)

// Export implements workspaces.Mover. The copy of the file is in the folder for temporary files
// meanwhile. Where the system allows it, it has no name from the first pages on, so that it is gone
// with the process, however that ends.
func (d *Driver) Export(ctx context.Context, tenant, app string, to io.Writer) (there bool, err error) {
	path := d.file(tenant, app)
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	f, err := os.CreateTemp("", "tenantcontent-workspace-*") // for its owner alone
	if err != nil {
		return false, err
	}
	defer func() {
		_ = f.Close()
		if left := os.Remove(f.Name()); left != nil && !errors.Is(left, os.ErrNotExist) {
			err = errors.Join(err, left)
		}
	}()
	opened := func(int64, int64) { _ = os.Remove(f.Name()) }
	if err := sqlitesafe.Copy(ctx, path, f.Name(), opened); err != nil {
		return false, errors.Join(
			ctx.Err(),
			errs.Wrap(errs.Unavailable, err, "the SQL database of the app %s cannot be copied: %v", app, err),
		)
	}
	_, err = io.Copy(to, f)
	return err == nil, err
}

// partial ends the name of a file that is not yet written and checked.
const partial = ".partial"

// Import implements workspaces.Mover. The whole file is checked before it gets its name.
func (d *Driver) Import(ctx context.Context, tenant, app string, from io.Reader) (err error) {
	path := d.file(tenant, app)
	temporary := path + partial
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return unavailable(err)
	}
	defer func() { err = errors.Join(err, remove(temporary)) }()
	if err := errors.Join(d.Drop(ctx, tenant, app), remove(temporary)); err != nil {
		// what another tenant of this id has left
		return err
	}
	if err := d.write(temporary, app, from); err != nil {
		return err
	}
	if err := d.check(ctx, temporary); err != nil {
		return faulty(ctx, app, err)
	}
	if err := os.Rename(temporary, path); err != nil {
		return unavailable(err)
	}
	return nil
}

// write writes a new file of at most the size of a workspace.
func (d *Driver) write(path, app string, from io.Reader) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return unavailable(err)
	}
	n, err := io.Copy(f, io.LimitReader(from, d.o.Quota+1))
	if err == nil && n > d.o.Quota {
		err = errs.New(
			errs.TooLarge,
			"the SQL database of the app %s is larger than the %d MiB that one may have here: raise "+
				"TENANTCONTENT_WORKSPACE_QUOTA",
			app, d.o.Quota>>20,
		)
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// remove removes the files of a database, if there are any.
func remove(path string) error {
	var failed []error
	for _, end := range []string{"", "-wal", "-shm", "-journal"} {
		if err := os.Remove(path + end); err != nil && !errors.Is(err, os.ErrNotExist) {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}
