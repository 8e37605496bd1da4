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
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/limits/limiter"
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

// Migrations returns the migrations of a library for an engine, ordered by name. A file x.sql is
// for all engines; x.sqlite.sql or x.postgres.sql is for one, and there it is in the place of
// x.sql. It returns errs.Invalid naming the file, also for one that undoes another, as other tools
// have them: each file is run.
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
		if undoes(stem, entries) {
			return nil, errs.New(
				errs.Invalid, "%s/%s undoes another file by its name. %s", Folder, e.Name(), neverUndone,
			)
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
		if at := undoPart.FindStringIndex(m.SQL); at != nil {
			return nil, errs.New(
				errs.Invalid, "%s:%d: a part that undoes the others begins here. %s", m.File,
				1+strings.Count(m.SQL[:at[0]], "\n"), neverUndone,
			)
		}
		sum := sha256.Sum256([]byte(m.SQL))
		m.Digest = hex.EncodeToString(sum[:])
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b Migration) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

// neverUndone is the rule that files for undoing break.
const neverUndone = "Each file of the folder is applied once, in the order of the names, and nothing is ever " +
	"undone: leave it out, and write what is to be changed into a new file."

var (
	// undoWord matches a part between points of the name of a file that undoes another one.
	undoWord = regexp.MustCompile(`(?i)(^|\.)(down|undo|rollback|revert)(\.|$)`)
	// undoEnd matches the end of such a name if there is a file without it.
	undoEnd = regexp.MustCompile(`(?i)[_-](down|undo|rollback|revert)$`)
	// undoPart matches a line that begins a part of a file for undoing the rest: of dbmate, goose,
	// sql-migrate and MyBatis.
	undoPart = regexp.MustCompile(`(?im)^[ \t]*(--[ \t]*(migrate:down|\+goose[ \t]+down|\+migrate[ ` +
		`\t]+down)\b|--[ \t]*//[ \t]*@undo\b)`)
)

// undoes reports whether a name, without .sql, is that of a file that undoes another one.
func undoes(stem string, entries []fs.DirEntry) bool {
	if undoWord.MatchString(stem) {
		return true
	}
	has := func(name string) bool {
		return slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
			return strings.EqualFold(e.Name(), name+".sql")
		})
	}
	if rest, ok := strings.CutPrefix(stem, "U"); ok { // U1__init.sql of Flyway, beside V1__init.sql
		return has("V" + rest)
	}
	before := undoEnd.ReplaceAllString(stem, "")
	return before != stem && (has(before) || has(before+"_up") || has(before+"-up"))
}

// unused returns a sentence about each folder among the migrations that has files of SQL, and about
// each file whose ending is written otherwise, which are not applied.
func unused(files fs.FS) (doubts []string, err error) {
	seen := map[string]bool{}
	err = fs.WalkDir(files, Folder, func(file string, e fs.DirEntry, err error) error {
		switch dir, ending := path.Dir(file), path.Ext(file); {
		case err != nil || e.IsDir() || !strings.EqualFold(ending, ".sql") || seen[dir]:
		case dir != Folder:
			seen[dir] = true
			doubts = append(doubts, fmt.Sprintf("%s is in a folder below %s, where nothing is applied.", file, Folder))
		case ending != ".sql":
			doubts = append(doubts, file+" is not applied: its name must end in .sql, in small letters.")
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return doubts, err
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

// Migrate runs the migrations of a library that are pending in the workspace of an app or draft,
// and returns their names. A migration is run once, whatever becomes of its file: see Doubts. If
// one fails, those before it are applied and recorded. Errors: errs.Invalid naming the file, and
// its line where the engine names one; errs.Conflict and others of Conn.Query likewise;
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
	defer s.use(key{w.Tenant, w.App})
	bound, grew := s.bound(ctx, w.Tenant)
	begun := time.Now()
	applied, err = s.o.Driver.Migrate(bound, w, all)
	if grew() {
		s.grown(ctx, key{w.Tenant, w.App}, time.Since(begun))
	}
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

// Doubts returns sentences about the migrations of a library that do something else in the
// workspace of an app or draft than their order and text say: those that have been run as other
// text, which are not run again, those that are pending but come before one that has been run, and
// those in folders below, which are not run.
func (s *Service) Doubts(ctx context.Context, tenant, app string, files fs.FS) (doubts []string, err error) {
	if s.o.Driver == nil {
		return nil, nil
	}
	if doubts, err = unused(files); err != nil {
		return nil, err
	}
	all, err := Migrations(files, s.o.Driver.Engine())
	if err != nil || len(all) == 0 {
		return doubts, err
	}
	w, err := s.workspace(ctx, tenant, app)
	if err != nil {
		return nil, err
	}
	applied, err := s.o.Driver.Applied(ctx, w)
	if err != nil {
		return nil, err
	}
	last := ""
	for name := range applied {
		last = max(last, name)
	}
	for _, m := range all {
		switch digest, ran := applied[m.Name]; {
		case ran && digest != m.Digest:
			doubts = append(
				doubts,
				m.File+" has changed since it was applied, and is not applied again: what it is to do now belongs "+
					"into a new file.",
			)
		case !ran && m.Name < last:
			doubts = append(
				doubts,
				fmt.Sprintf(
					"%s comes before %s/%s, which was applied already, and is applied after it: a new file has a "+
						"name that comes last.",
					m.File, Folder, last,
				),
			)
		}
	}
	return doubts, nil
}
