package database

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
	"github.com/tenantcontent/tenantcontent/internal/sqlitesafe"
)

// Files are those of an embedded server.
type Files struct {
	Database   string // path of the SQLite file
	Workspaces string // folder of the SQL databases of apps; "": they are not in files
}

// FilesOf returns the files of an embedded server by the URL of its database and the place of its workspaces, as Open and
// OpenWorkspaces take them. Workspaces in a PostgreSQL are not among the files. Errors: errs.Invalid if the database is a PostgreSQL.
func FilesOf(main, workspaces string) (Files, error) {
	path, embedded := strings.CutPrefix(main, "sqlite:")
	if !embedded || path == "" {
		return Files{}, errs.New(errs.Invalid, "the database is no file. A PostgreSQL is backed up by pg_dump and restored by pg_restore: see docs/operations.md")
	}
	f := Files{Database: path, Workspaces: workspaces}
	switch {
	case workspaces == "":
		f.Workspaces = workspacesBeside(main)
	case strings.Contains(workspaces, "://"):
		f.Workspaces = ""
	}
	return f, nil
}

// Progress is called with the phase of long work, such as "copying", and the number of bytes that are done, of all.
type Progress func(phase string, done, all int64)

// A backup is a tar file with these names, and the files of workspaces. The checksums, as sha256sum prints them, come last.
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

// Backup writes a copy of the files of an embedded server, which may run meanwhile, and writes into them: each database of the copy is the
// state of one moment, first the service's own, then those of apps. The secret key is not in it. The folder temp holds the copy of one
// database at a time. Errors: errs.Invalid for files that cannot be read.
//
// The format is described in docs/operations.md.
func Backup(ctx context.Context, from Files, to io.Writer, temp string, progress Progress) (err error) {
	if progress == nil {
		progress = func(string, int64, int64) {}
	}
	folder, err := os.MkdirTemp(temp, ".backup-*")
	if err != nil {
		return errs.Wrap(errs.Invalid, err, "the backup cannot be made: %v", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	b := backup{ctx: ctx, tar: tar.NewWriter(to), copy: filepath.Join(folder, "copy.sqlite"), progress: progress}
	text, err := json.Marshal(about{Format: backupFormat, Made: time.Now().UTC().Truncate(time.Second)})
	if err != nil {
		return err
	}
	if err := b.add(backupAbout, bytes.NewReader(text), int64(len(text))); err != nil {
		return err
	}
	if err := b.copyOf(backupDatabase, from.Database); err != nil {
		return err
	}
	if err := b.addCopy(backupDatabase); err != nil {
		return err
	}
	if err := b.addWorkspaces(from.Workspaces); err != nil {
		return err
	}
	sums := b.sums.String()
	if err := b.add(backupChecksums, strings.NewReader(sums), int64(len(sums))); err != nil {
		return err
	}
	return b.tar.Close()
}

// backup is one that is being written.
type backup struct {
	ctx      context.Context
	tar      *tar.Writer
	copy     string // path of the copy of a database
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

// copyOf copies a SQLite file to b.copy.
func (b *backup) copyOf(name, path string) error {
	if err := os.Remove(b.copy); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := sqlitesafe.Copy(b.ctx, path, b.copy, func(done, all int64) { b.progress("copying "+name, done, all) }); err != nil {
		return errors.Join(b.ctx.Err(), errs.Wrap(errs.Invalid, err, "%s cannot be copied: %v", path, err))
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
