package dblock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/gofrs/flock"
	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
)

// file is a lock on a file. The file has a line for each holder, beginning with its process id. The
// lines only serve to name the holders to people.
type file struct {
	database string
	lock     *flock.Flock
	line     string
}

// newFile returns a lock of a SQLite database that is not held yet, on the file whose name is that
// of the database with end appended. It returns nil for a database in memory.
func newFile(ctx context.Context, db *bun.DB, end, holder string) (*file, error) {
	var path string
	if err := db.QueryRowContext(
		ctx, `SELECT file FROM pragma_database_list WHERE name = 'main'`,
	).Scan(&path); err != nil {
		return nil, bunx.Err(err, "")
	}
	if path == "" {
		return nil, nil
	}
	return &file{
		database: path,
		lock:     flock.New(path+end, flock.SetPermissions(0o600)),
		line:     fmt.Sprintf("%d %s", os.Getpid(), holder),
	}, nil
}

// take takes the lock, and reports whether it could.
func (f *file) take(shared bool) (bool, error) {
	try := f.lock.TryLock
	if shared {
		try = f.lock.TryRLock
	}
	got, err := try()
	if err != nil {
		return false, errs.Wrap(errs.Invalid, err, "The lock file %s cannot be used: %v", f.lock.Path(), err)
	}
	if got {
		f.save(append(f.living(), f.line))
	}
	return got, nil
}

// lockFile takes the lock of the secrets of a SQLite database. It returns nil for a database in
// memory.
func lockFile(ctx context.Context, db *bun.DB, holder string, shared bool) (*file, error) {
	f, err := newFile(ctx, db, "-lock", holder)
	if err != nil || f == nil {
		return nil, err
	}
	got, err := f.take(shared)
	if err != nil {
		return nil, err
	}
	if !got {
		return nil, taken(shared, names(f.living()))
	}
	return f, nil
}

func (f *file) unlock() error {
	lines := f.living()
	if i := slices.Index(lines, f.line); i >= 0 {
		f.save(slices.Delete(lines, i, i+1))
	}
	return f.lock.Unlock()
}

// living returns the lines of running processes, and those of other machines.
func (f *file) living() []string {
	text, err := os.ReadFile(f.lock.Path())
	if err != nil {
		return nil
	}
	host, _ := os.Hostname()
	return slices.DeleteFunc(strings.Split(strings.TrimSpace(string(text)), "\n"), func(line string) bool {
		id, _, _ := strings.Cut(line, " ")
		pid, err := strconv.Atoi(id)
		return err != nil || strings.HasSuffix(line, " on "+host+")") && !runs(pid)
	})
}

// save writes the lines. If two processes write at the same time, or it fails, messages lack a
// name.
func (f *file) save(lines []string) {
	_ = os.WriteFile(f.lock.Path(), []byte(strings.Join(lines, "\n")), 0o600)
}

// names returns the lines without their processes.
func names(lines []string) []string {
	for i, line := range lines {
		_, lines[i], _ = strings.Cut(line, " ")
	}
	return lines
}

// runs reports whether a process of this machine is running.
func runs(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	err = p.Signal(syscall.Signal(0))
	return err == nil || errors.Is(err, os.ErrPermission)
}
