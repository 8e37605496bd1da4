package sqlite

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/sqlitesafe"
)

// Restore makes the files of an embedded server from what Backup has written. Neither the database
// nor a workspace may be there. Nothing is there either when it fails or is killed: the files get
// their names when all of them have been read and checked, the database last.
// Errors: errs.Conflict for a place that is not empty; errs.Invalid for a backup that is cut,
// changed or of a newer program.
func Restore(ctx context.Context, from io.Reader, to Files, progress Progress) error {
	return restore(ctx, to, progress, func(r *restoring) error {
		if err := r.read(tar.NewReader(from)); err != nil {
			return err
		}
		r.progress("checking "+backupDatabase, 0, 0)
		if err := sqlitesafe.Finish(ctx, r.database); err != nil {
			return errors.Join(
				ctx.Err(),
				errs.Wrap(
					errs.Invalid, err,
					"the database in the backup is damaged: %v. With --salvage, what can be read of it is restored",
					err,
				),
			)
		}
		return nil
	})
}

// restore makes the files with fill, and publishes them.
func restore(ctx context.Context, to Files, progress Progress, fill func(*restoring) error) (err error) {
	if progress == nil {
		progress = func(string, int64, int64) {}
	}
	if err := empty(to); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to.Database), 0o700); err != nil {
		return errs.Wrap(errs.Invalid, err, "the folder %s cannot be made: %v", filepath.Dir(to.Database), err)
	}
	r := restoring{ctx: ctx, to: to, database: to.Database + restoringEnd, progress: progress}
	if to.Workspaces != "" {
		r.workspaces = filepath.Clean(to.Workspaces) + restoringEnd
	}
	if err := r.clear(); err != nil { // of one that was killed
		return err
	}
	defer func() { err = errors.Join(err, r.clear()) }()
	if err := fill(&r); err != nil {
		return err
	}
	return r.publish()
}

// restoringEnd is after the names of files that Restore has not finished.
const restoringEnd = ".restoring"

// databaseEnds are behind the name of a database in the names of its files. SQLite plays a journal
// that it finds back into the database.
var databaseEnds = []string{"", "-wal", "-shm", "-journal"}

// empty returns an error if there is something at the place of a backup.
func empty(to Files) error {
	for _, end := range databaseEnds {
		if _, err := os.Stat(to.Database + end); !errors.Is(err, fs.ErrNotExist) {
			return errs.New(
				errs.Conflict,
				"there is a database at %s already, or what is left of one: restore into an empty place",
				to.Database+end,
			)
		}
	}
	if to.Workspaces == "" {
		return nil
	}
	found, err := os.ReadDir(to.Workspaces)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return errs.Wrap(errs.Invalid, err, "the folder %s cannot be read: %v", to.Workspaces, err)
	}
	if len(found) > 0 {
		return errs.New(errs.Conflict, "the folder %s is not empty: restore into an empty place", to.Workspaces)
	}
	return nil
}

// restoring is one that is being read.
type restoring struct {
	ctx                  context.Context
	to                   Files
	database, workspaces string // names of the files until they are complete; workspaces "": as in Files
	progress             Progress

	about  bool            // backup.json was read
	names  map[string]bool // of the other files
	sums   strings.Builder // of all files, as SHA256SUMS has them
	summed bool            // they are those of SHA256SUMS

	salvaged *Salvaged // nil for a backup that must be whole
}

// clear removes the files under the names that they have until they are complete.
func (r *restoring) clear() error {
	var err error
	for _, end := range databaseEnds {
		for _, path := range []string{r.database, r.database + salvagedEnd} {
			if failed := os.Remove(path + end); !errors.Is(failed, fs.ErrNotExist) {
				err = errors.Join(err, failed)
			}
		}
	}
	if r.workspaces != "" {
		err = errors.Join(err, os.RemoveAll(r.workspaces))
	}
	return err
}

// read reads all files of a backup. Errors: errs.Invalid unless all of them are there as they were
// written.
func (r *restoring) read(from *tar.Reader) error {
	r.names = map[string]bool{}
	for {
		h, err := from.Next()
		switch {
		case errors.Is(err, io.EOF) && r.summed && r.names[backupDatabase]:
			return nil
		case err != nil && r.salvaged != nil && r.names[backupDatabase]:
			r.salvaged.Notes = append(r.salvaged.Notes, "the backup is not complete")
			return nil
		case errors.Is(err, io.EOF):
			return errs.New(errs.Invalid, "the backup is not complete: it ends before %s", backupChecksums)
		case err != nil:
			return errs.Wrap(errs.Invalid, err, "this is no backup, or it is cut: %v", err)
		case h.Typeflag != tar.TypeReg || r.names[h.Name] || r.summed:
			return errs.New(errs.Invalid, "this is no backup: unexpected %q", h.Name)
		}
		if err := r.one(h, from); err != nil {
			return err
		}
	}
}

// maxText is the most bytes of SHA256SUMS, of 500,000 workspaces.
const maxText = 64 << 20

func (r *restoring) one(h *tar.Header, from io.Reader) error {
	if !r.about && h.Name != backupAbout {
		return errs.New(errs.Invalid, "this is no backup: it does not begin with %s", backupAbout)
	}
	r.names[h.Name] = true
	switch {
	case h.Name == backupAbout || h.Name == backupChecksums:
		var text strings.Builder
		if h.Size > maxText {
			return errs.New(errs.Invalid, "this is no backup: %s is too large", h.Name)
		}
		if err := r.write(h, from, &text); err != nil {
			return err
		}
		if h.Name == backupAbout {
			return r.begin(text.String())
		}
		return r.compare(text.String())
	case h.Name == backupDatabase:
		return r.file(h, from, r.database)
	case backupWorkspace.MatchString(h.Name):
		if r.workspaces == "" {
			return errs.New(
				errs.Invalid,
				"the backup has SQL databases of apps in files: name a folder for them with --workspaces",
			)
		}
		return r.file(
			h, from, filepath.Join(r.workspaces, filepath.FromSlash(strings.TrimPrefix(h.Name, "workspaces/"))),
		)
	}
	return errs.New(errs.Invalid, "this is no backup: unexpected %q", h.Name)
}

// begin checks the format of a backup.
func (r *restoring) begin(text string) error {
	var a about
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		return errs.Wrap(errs.Invalid, err, "this is no backup: %s is not JSON", backupAbout)
	}
	if a.Format != backupFormat {
		return errs.New(
			errs.Invalid,
			"the backup has the format %d, and this program reads %d: use the program that made it, or a newer one",
			a.Format, backupFormat,
		)
	}
	r.about = true
	return nil
}

// compare checks the checksums. Those of the files that were read have been noted in their order.
func (r *restoring) compare(text string) error {
	own := r.sums.String()
	own = own[:strings.LastIndexByte(strings.TrimSuffix(own, "\n"), '\n')+1] // without that of SHA256SUMS
	if own != text && r.salvaged != nil {
		r.salvaged.Notes = append(r.salvaged.Notes, "files of the backup are not those of its "+backupChecksums)
	} else if own != text {
		return errs.New(errs.Invalid, "the backup is damaged: its files are not those of its %s", backupChecksums)
	}
	r.summed = true
	return nil
}

// file writes one file.
func (r *restoring) file(h *tar.Header, from io.Reader, path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = r.write(h, from, f)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// write writes the content of one file and notes its checksum.
func (r *restoring) write(h *tar.Header, from io.Reader, to io.Writer) error {
	sum := sha256.New()
	counted := &counter{phase: "restoring " + h.Name, all: h.Size, progress: r.progress}
	n, err := io.Copy(io.MultiWriter(to, sum, counted), contextReader{r.ctx, from})
	switch {
	case r.ctx.Err() != nil:
		return r.ctx.Err()
	case r.salvaged != nil && errors.Is(err, io.ErrUnexpectedEOF):
		r.salvaged.Notes = append(r.salvaged.Notes, fmt.Sprintf("the backup is cut in the middle of %s", h.Name))
	case errors.Is(err, io.ErrUnexpectedEOF) || err == nil && n != h.Size:
		return errs.New(errs.Invalid, "the backup is cut in the middle of %s", h.Name)
	case err != nil:
		return errs.Wrap(errs.Invalid, err, "%s cannot be restored: %v", h.Name, err)
	}
	_, _ = fmt.Fprintf(&r.sums, "%x  %s\n", sum.Sum(nil), h.Name)
	return nil
}

// publish renames the files to their final names.
func (r *restoring) publish() error {
	if r.workspaces != "" {
		if err := os.Remove(r.to.Workspaces); err != nil && !errors.Is(err, fs.ErrNotExist) { // an empty folder
			return err
		}
		if err := os.Rename(r.workspaces, r.to.Workspaces); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return os.Rename(r.database, r.to.Database)
}
