package sqlite

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/sqlitesafe"
)

// Files are those of an embedded server.
type Files struct {
	Database   string // path of the SQLite file
	Workspaces string // folder of the SQL databases of apps; "": they are not in files
}

// Progress is called with the phase of long work, such as "copying", and the number of bytes that
// are done, of all.
type Progress func(phase string, done, all int64)

// A backup is a tar file with these names, and the files of workspaces. The checksums, as sha256sum
// prints them, come last.
const (
	backupAbout     = "backup.json"
	backupDatabase  = "database.sqlite"
	backupChecksums = "SHA256SUMS"
)

var backupWorkspace = regexp.MustCompile(`^workspaces/[0-9a-f]{32}/[0-9a-f]{32}\.sqlite$`)

// backupFormat is increased by a change that older programs cannot read.
const backupFormat = 1

type about struct {
	Format int       `json:"format"`
	Made   time.Time `json:"made"`
}

// damagedError is an ErrDamaged with what is damaged.
type damagedError string

func (e damagedError) Error() string        { return string(e) }
func (e damagedError) Is(target error) bool { return target == ErrDamaged }

// ErrDamaged is the cause of the errors of Backup and BackupFile for databases that are damaged.
var ErrDamaged = errors.New("damaged")

// Backup writes a copy of the files of an embedded server, which may run meanwhile, and writes into
// them: each database of the copy is the state of one moment, first the service's own, then those
// of apps. The secret key is not in it. The folder temp, "" for that of temporary files, holds the
// copy of one database at a time. What a backup that was killed has left in this folder is removed.
//
// Each copy is checked. A backup with damaged databases is written to its end, for Salvage, and
// then fails with ErrDamaged, saying what is wrong with which. Other errors: errs.Invalid for files
// that cannot be read.
//
// The format is described in docs/operations.md.
func Backup(ctx context.Context, from Files, to io.Writer, temp string, progress Progress) (err error) {
	folder, err := newScratch(temp)
	if err != nil {
		return errs.Wrap(errs.Invalid, err, "the backup cannot be made: %v", err)
	}
	defer func() { err = errors.Join(err, folder.remove()) }()
	_, err = writeBackup(ctx, from, to, folder, progress)
	return err
}

// BackupFile is Backup into a new file, which is there when it is complete, and returns its size. A
// backup of damaged databases is kept beside it, in a file with .damaged after the name, and fails
// with ErrDamaged. Errors: errs.Invalid also for a file that exists.
func BackupFile(ctx context.Context, from Files, file string, progress Progress) (size int64, err error) {
	if _, err := os.Lstat(file); err == nil {
		return 0, errs.New(errs.Invalid, "%s exists already: name a new file", file)
	}
	folder, err := newScratch(filepath.Dir(file))
	if err != nil {
		return 0, errs.Wrap(errs.Invalid, err, "cannot write %s: %v", file, err)
	}
	defer func() { err = errors.Join(err, folder.remove()) }()
	part := folder.file("backup.part")
	f, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, errs.Wrap(errs.Invalid, err, "cannot write %s: %v", file, err)
	}
	complete, damaged := writeBackup(ctx, from, f, folder, progress)
	if !complete {
		return 0, errors.Join(damaged, f.Close())
	}
	err = f.Sync()
	info, unknown := f.Stat()
	if err = errors.Join(err, unknown, f.Close()); err != nil {
		return 0, err
	}
	if damaged != nil {
		if file, err = keepDamaged(part, file+".damaged"); err != nil {
			return 0, errors.Join(damaged, err)
		}
		return info.Size(), fmt.Errorf(
			"%w. The copy is kept in %s; `tenantcontent restore --salvage` takes what can be read of it",
			damaged, file,
		)
	}
	return info.Size(), publish(part, file)
}

// publish gives a file its name, if there is no file of that name. A link, unlike a rename,
// replaces nothing.
func publish(whole, name string) error {
	err := os.Link(whole, name)
	switch {
	case errors.Is(err, fs.ErrExist):
		return errs.Wrap(errs.Invalid, err, "%s exists already: name a new file", name)
	case err != nil:
		return errs.Wrap(errs.Invalid, err, "%s cannot be written: %v", name, err)
	}
	return nil
}

// keepDamaged is publish with a number after the name if there is a file of that name.
func keepDamaged(whole, name string) (string, error) {
	for n, to := 2, name; ; n, to = n+1, fmt.Sprintf("%s.%d", name, n) {
		if err := publish(whole, to); !errors.Is(err, fs.ErrExist) {
			return to, err
		}
	}
}

// writeBackup writes a backup. It is complete, with an error, if databases in it are damaged.
func writeBackup(
	ctx context.Context, from Files, to io.Writer, folder *scratch, progress Progress,
) (complete bool, err error) {
	if progress == nil {
		progress = func(string, int64, int64) {}
	}
	b := backup{ctx: ctx, tar: tar.NewWriter(to), copy: folder.file("copy.sqlite"), progress: progress}
	text, err := json.Marshal(about{Format: backupFormat, Made: time.Now().UTC().Truncate(time.Second)})
	if err != nil {
		return false, err
	}
	if err := b.add(backupAbout, bytes.NewReader(text), int64(len(text))); err != nil {
		return false, err
	}
	if err := b.copyOf(backupDatabase, from.Database); err != nil {
		return false, err
	}
	if err := b.addCopy(backupDatabase); err != nil {
		return false, err
	}
	if err := b.addWorkspaces(from.Workspaces); err != nil {
		return false, err
	}
	sums := b.sums.String()
	if err := b.add(backupChecksums, strings.NewReader(sums), int64(len(sums))); err != nil {
		return false, err
	}
	if err := b.tar.Close(); err != nil {
		return false, err
	}
	if len(b.damaged) > 0 {
		return true, damagedError(strings.Join(b.damaged, ". "))
	}
	return true, nil
}

// backup is one that is being written.
type backup struct {
	ctx      context.Context
	tar      *tar.Writer
	copy     string   // path of the copy of a database
	damaged  []string // what is wrong with databases, a sentence each
	sums     strings.Builder
	progress Progress
}

// add writes one file.
func (b *backup) add(name string, from io.Reader, size int64) error {
	if err := b.tar.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: size, Format: tar.FormatPAX}); err != nil {
		return err
	}
	sum := sha256.New()
	counted := &counter{phase: "writing " + name, all: size, progress: b.progress}
	if _, err := io.Copy(io.MultiWriter(b.tar, sum, counted), contextReader{b.ctx, from}); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(&b.sums, "%x  %s\n", sum.Sum(nil), name)
	return nil
}

// copyOf copies a SQLite file to b.copy and checks it.
func (b *backup) copyOf(name, path string) error {
	for _, end := range databaseEnds {
		if err := os.Remove(b.copy + end); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	err := sqlitesafe.Copy(b.ctx, path, b.copy, func(done, all int64) { b.progress("copying "+name, done, all) })
	switch {
	case b.ctx.Err() != nil:
		return b.ctx.Err()
	case sqlitesafe.Damaged(err):
		return damagedError(fmt.Sprintf(
			"%s is damaged so badly that it cannot be copied: %v. Keep the file, and restore the last good backup",
			path, err,
		))
	case err != nil:
		return errs.Wrap(errs.Invalid, err, "%s cannot be copied: %v", path, err)
	}
	b.progress("checking "+name, 0, 0)
	if err := sqlitesafe.Check(b.ctx, b.copy); err != nil {
		if b.ctx.Err() != nil {
			return b.ctx.Err()
		}
		b.damaged = append(b.damaged, fmt.Sprintf("%s is damaged: %v", path, err))
	}
	return nil
}

// addCopy writes b.copy.
func (b *backup) addCopy(name string) error {
	f, err := os.Open(b.copy)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return b.add(name, f, info.Size())
}

// addWorkspaces writes copies of the databases below a folder, which may be missing.
func (b *backup) addWorkspaces(folder string) error {
	if folder == "" {
		return nil
	}
	files := os.DirFS(folder)
	found, err := fs.Glob(files, "*/*.sqlite")
	if err != nil {
		return err
	}
	for _, path := range found {
		name := "workspaces/" + path
		if !backupWorkspace.MatchString(name) {
			continue
		}
		if err := b.copyOf(name, filepath.Join(folder, filepath.FromSlash(path))); err != nil {
			if _, gone := fs.Stat(files, path); errors.Is(gone, fs.ErrNotExist) && b.ctx.Err() == nil {
				continue // its app was deleted meanwhile
			}
			if errors.Is(err, ErrDamaged) {
				b.damaged = append(b.damaged, err.Error())
				continue
			}
			return err
		}
		if err := b.addCopy(name); err != nil {
			return err
		}
	}
	return nil
}

// counter counts the bytes of one file.
type counter struct {
	phase     string
	done, all int64
	progress  Progress
}

func (c *counter) Write(p []byte) (int, error) {
	c.done += int64(len(p))
	c.progress(c.phase, c.done, c.all)
	return len(p), nil
}

// contextReader fails when its context has ended.
type contextReader struct {
	ctx  context.Context
	from io.Reader
}

func (r contextReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.from.Read(p)
}
