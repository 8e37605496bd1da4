package sqlite

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/sqltext"
)

// refused is why a file is refused that is whole, and damaged why another one is, for people.
type (
	refused string
	damaged string
)

func (r refused) Error() string { return string(r) }
func (d damaged) Error() string { return string(d) }

// ofSystem are the codes of failures that are not the file's.
var ofSystem = []int{
	sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_NOMEM,
	sqlite3.SQLITE_BUSY, sqlite3.SQLITE_INTERRUPT,
}

// check returns an error unless a file is a whole database that the statements of a tenant could
// have made. That is checked first: SQLite does not call the authorizer for expressions that come
// with a schema, and reading all of a table evaluates some.
func (d *Driver) check(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeout(ctx, max(d.o.Time, time.Minute))
	defer cancel()
	c, err := d.open(ctx, path)
	if err != nil {
		return err
	}
	defer c.Close()
	empty, err := d.dial(ctx, "file::memory:", d.o.Quota, true)
	if err != nil {
		return err
	}
	defer empty.Close()
	if err := sameFormat(ctx, c, empty); err != nil {
		return err
	}
	length, err := repeat(ctx, c, empty, d.o)
	if err != nil {
		return err
	}
	if err := c.exec(ctx, "PRAGMA ignore_check_constraints = 1"); err != nil {
		return err
	}
	c.setLength(length)
	found := ""
	err = c.run(ctx, "PRAGMA quick_check(1)", nil, func([]string, []string) {}, func(row []driver.Value) error {
		found, _ = row[0].(string)
		return nil
	})
	if err == nil && found != "ok" {
		return damaged(found)
	}
	return err
}

// faulty returns the error of Import for one of check: errs.Invalid for a fault of the file,
// errs.Unavailable for one of the disk, or of the time.
func faulty(ctx context.Context, app string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if why, ok := errors.AsType[refused](err); ok {
		return errs.New(
			errs.Invalid, "the SQL database of the app %s in the export is refused: %s", app,
			oneLine(why.Error()),
		)
	}
	why, ok := errors.AsType[damaged](err)
	if e, of := errors.AsType[*sqlite.Error](err); of && !slices.Contains(ofSystem, e.Code()&0xff) {
		why, ok = damaged(trailingCode.ReplaceAllString(e.Error(), "")), true
	}
	if ok {
		return errs.New(
			errs.Invalid, "the SQL database of the app %s in the export is damaged: %s", app,
			oneLine(why.Error()),
		)
	}
	return errs.Wrap(
		errs.Unavailable, err, "the SQL database of the app %s cannot be read: import the tenant again later",
		app,
	)
}

// oneLine returns a text without line ends and other controls.
func oneLine(s string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsPrint(c) {
			return c
		}
		return ' '
	}, s)
}

// sameFormat refuses a database of another format than an empty one: its size is counted in pages,
// and functions get its encoding.
func sameFormat(ctx context.Context, c, empty *conn) error {
	for _, name := range []string{"page_size", "auto_vacuum", "encoding"} {
		var values [2]any
		for i, in := range []*conn{c, empty} {
			if err := in.read(ctx, "PRAGMA "+name, func(row []driver.Value) error {
				values[i] = row[0]
				return nil
			}); err != nil {
				return err
			}
		}
		if values[0] != values[1] {
			return refused(fmt.Sprintf("its %s is %v, and that of a workspace is %v", name, values[0], values[1]))
		}
	}
	return nil
}

// object is a row of sqlite_schema.
type object struct {
	kind, name, table, sql string
	implied                bool // has no SQL, as the index of a UNIQUE
}

func (o object) String() string { return fmt.Sprintf("%s %q", o.kind, o.name) }

// sequence is what SQLite itself makes for AUTOINCREMENT, and keeps when no table has one any more.
var sequence = object{
	kind:  "table",
	name:  "sqlite_sequence",
	table: "sqlite_sequence",
	sql:   "CREATE TABLE sqlite_sequence(name,seq)",
}

// objects returns the schema of a database.
func (c *conn) objects(ctx context.Context) (all []object, err error) {
	err = c.read(ctx, "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY rowid",
		func(row []driver.Value) error {
			var texts [4]string
			for i, v := range row {
				text, ok := v.(string)
				if !ok && (i < 3 || v != nil) {
					return refused("its schema has what is no text")
				}
				texts[i] = text
			}
			if o := (object{texts[0], texts[1], texts[2], texts[3], row[3] == nil}); o != sequence {
				all = append(all, o)
			}
			return nil
		})
	return all, err
}

// repeat makes the schema of a database in an empty one, by statements that may do what those of
// tenants may, and refuses it if one fails or makes something else than what is there. It returns
// how long values may be when the generated columns of a table are computed.
func repeat(ctx context.Context, c, empty *conn, o Options) (length int, err error) {
	there, err := c.objects(ctx)
	if err != nil {
		return 0, err
	}
	length = maxLength
	for i := range there {
		made := &there[i]
		if made.name == recorded || made.implied {
			continue
		}
		n, err := empty.create(ctx, made.sql, o)
		if code := errs.CodeOf(err); code == errs.Invalid || code == errs.TooLarge || code == errs.Conflict {
			return 0, refused(fmt.Sprintf("the %v: %s", made, errs.MessageOf(err)))
		} else if err != nil {
			return 0, err
		}
		if made.kind == "table" {
			length = min(length, n)
		}
		made.sql = ""
	}
	want, err := empty.objects(ctx)
	if err != nil {
		return 0, err
	}
	for i := range want {
		if want[i].name != recorded {
			want[i].sql = ""
		}
	}
	compare := func(a, b object) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name), cmp.Compare(a.table, b.table))
	}
	slices.SortFunc(there, compare)
	slices.SortFunc(want, compare)
	for i, o := range there {
		if i >= len(want) || o != want[i] {
			return 0, refused(fmt.Sprintf("the %v is not what a workspace has under this name", o))
		}
	}
	if len(want) > len(there) {
		return 0, refused(fmt.Sprintf("the %v is not there", want[len(there)]))
	}
	return length, nil
}

// create runs a statement of a schema as one of a tenant. It returns how long values may be in it
// if it is of a table with generated columns.
func (c *conn) create(ctx context.Context, text string, o Options) (length int, err error) {
	s, err := sqltext.Single(sqltext.SQLite, text)
	if err != nil {
		return 0, err
	}
	if err := allowed(s); err != nil {
		return 0, err
	}
	of, err := newScope(s.Tokens)
	if err != nil {
		return 0, err
	}
	if length, err = new(schema).total(of).length(); err != nil {
		return 0, err
	}
	if !s.Has("AS") {
		length = maxLength
	}
	_, err = c.guarded(ctx, s.Text, nil, o)
	return length, err
}
