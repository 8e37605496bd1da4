package workspaces

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/limiter"
)

// Folder is where the migrations of an app are in its library.
const Folder = "migrations"

// MaxMigration is the most bytes of a file of migrations.
const MaxMigration = 1 << 20

// Migration is a file of migrations.
type Migration struct {
	Name   string // as it is recorded: the file's, without the engine
	File   string // its path in the library
	SQL    string
	Digest string // SHA-256 of SQL, in hex
}

// Error is the fault of a statement of a migration, in a line of its file.
type Error struct {
	Line int // from 1; 0: unknown
	Err  error
}

// Error returns the line and the message.
func (e *Error) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Migrations returns the migrations of a library for an engine, ordered by name. A file x.sql is for all engines; x.sqlite.sql or
// x.postgres.sql is for one, and there it is in the place of x.sql. Errors: errs.Invalid naming the file.
func Migrations(files fs.FS, engine string) ([]Migration, error) {
	entries, err := fs.ReadDir(files, Folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	chosen, others := map[string]string{}, []string{}
	for _, e := range entries {
		stem, ok := strings.CutSuffix(e.Name(), ".sql")
		if !ok || e.IsDir() {
			continue
		}
		own, of := stem, ""
		for _, known := range []string{"sqlite", "postgres", engine} {
			if before, ok := strings.CutSuffix(stem, "."+known); ok {
				own, of = before, known
			}
		}
		if own == "" {
			return nil, errs.New(errs.Invalid, "%s/%s has no name before its ending.", Folder, e.Name())
		}
		switch of {
		case engine:
			chosen[own] = e.Name()
		case "":
			others = append(others, own)
		}
	}
	for _, own := range others {
		if chosen[own] == "" {
			chosen[own] = own + ".sql"
		}
	}
	var all []Migration
	for own, file := range chosen {
		m := Migration{Name: own + ".sql", File: path.Join(Folder, file)}
		if m.SQL, err = read(files, m.File); err != nil {
			return nil, err
		}
		sum := sha256.Sum256([]byte(m.SQL))
		m.Digest = hex.EncodeToString(sum[:])
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b Migration) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

func read(files fs.FS, name string) (string, error) {
	f, err := files.Open(name)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, MaxMigration+1))
	if err != nil {
		return "", err
	}
	if len(b) > MaxMigration {
		return "", errs.New(errs.Invalid, "%s is larger than %d MiB: part it.", name, MaxMigration>>20)
	}
	return string(b), nil
}

// Migrate runs the migrations of a library that are pending in the workspace of an app or draft, and returns their names. A migration
// is run once, whatever becomes of its file: see Changed. If one fails, those before it are applied and recorded.
// Errors: errs.Invalid naming the file, and its line where the engine names one; errs.Conflict and others of Conn.Query likewise;
// errs.Unavailable.
func (s *Service) Migrate(ctx context.Context, tenant, app string, files fs.FS) (applied []string, err error) {
	engine := "sqlite"
	if s.o.Driver != nil {
		engine = s.o.Driver.Engine()
	}
	all, err := Migrations(files, engine)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	w, err := s.workspace(ctx, tenant, app)
	if err != nil {
		return nil, err
	}
	limiter.Yield(ctx) // tenants' SQL has limits of its own
	applied, err = s.o.Driver.Migrate(ctx, w, all)
	return applied, named(err)
}

// FileError is the Error of a migration together with its file.
type FileError struct {
	File string
	Err  *Error
}

// Error returns the file, the line and the message.
func (e *FileError) Error() string { return e.File + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *FileError) Unwrap() error { return e.Err }

// named words the error of a migration for people.
func named(err error) error {
	fault, ok := errors.AsType[*FileError](err)
	if !ok {
		return err
	}
	code, message := errs.CodeOf(fault.Err.Err), errs.MessageOf(fault.Err.Err)
	if message == "" {
		return err
	}
	where := fault.File
	if fault.Err.Line > 0 {
		where += fmt.Sprintf(":%d", fault.Err.Line)
	}
	return errs.Wrap(code, err, "%s: %s", where, message)
}

// Changed returns the names of the migrations of a library that have been run in the workspace of an app or draft as other text. They
// are not run again: what they are to do now belongs into a new file.
func (s *Service) Changed(ctx context.Context, tenant, app string, files fs.FS) ([]string, error) {
	if s.o.Driver == nil {
		return nil, nil
	}
	all, err := Migrations(files, s.o.Driver.Engine())
	if err != nil || len(all) == 0 {
		return nil, err
	}
	w, err := s.workspace(ctx, tenant, app)
	if err != nil {
		return nil, err
	}
	applied, err := s.o.Driver.Applied(ctx, w)
	if err != nil {
		return nil, err
	}
	var changed []string
	for _, m := range all {
		if digest, ok := applied[m.Name]; ok && digest != m.Digest {
			changed = append(changed, m.Name)
		}
	}
	return changed, nil
}
