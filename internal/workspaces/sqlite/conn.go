package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/limits/limiter"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/sqltext"
	"github.com/tenantcontent/tenantcontent/internal/workspaces"
)

// limits of a connection. That of the length of values is set for each statement.
var limits = map[int]int{
	sqlite3.SQLITE_LIMIT_SQL_LENGTH:          workspaces.MaxMigration,
	sqlite3.SQLITE_LIMIT_COLUMN:              maxColumns,
	sqlite3.SQLITE_LIMIT_EXPR_DEPTH:          500,
	sqlite3.SQLITE_LIMIT_COMPOUND_SELECT:     50,
	sqlite3.SQLITE_LIMIT_VDBE_OP:             250_000,
	sqlite3.SQLITE_LIMIT_FUNCTION_ARG:        100,
	sqlite3.SQLITE_LIMIT_ATTACHED:            0,
	sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: maxPattern,
	sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH:       10,
	sqlite3.SQLITE_LIMIT_WORKER_THREADS:      0,
}

const pageSize = 4096

var onOff = map[bool]string{true: "1", false: "0"}

// conn is a connection to a file, of one caller at a time.
type conn struct {
	path  string
	db    *sql.DB
	sql   *sql.Conn
	watch *watch
	guard *guard
	made  os.FileInfo

	schema *schema // as it was read last
	length int     // of values, as it is set
	pages  int64   // that the file can have, as it is set; 0 for those of the quota of workspaces
	broken bool
}

// connector opens connections without the hooks and functions that others in this program have
// registered for theirs.
type connector struct {
	driver *sqlite.Driver
	dsn    string
}

func (c connector) Connect(context.Context) (driver.Conn, error) { return c.driver.Open(c.dsn) }
func (c connector) Driver() driver.Driver                        { return c.driver }

// openUpgraded opens a file, which it makes with its folder when it is missing, and upgrades one of
// an earlier release.
func (d *Driver) openUpgraded(ctx context.Context, path string) (*conn, error) {
	c, err := d.open(ctx, path)
	if err != nil {
		return nil, err
	}
	if err := d.upgrade(ctx, c); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// open opens a file, which it makes with its folder when it is missing.
func (d *Driver) open(ctx context.Context, path string) (*conn, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, unavailable(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, unavailable(err)
	}
	made, err := f.Stat()
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, unavailable(err)
	}
	c, err := d.dial(ctx, uri(path), d.o.Quota, true)
	if err != nil {
		return nil, err
	}
	c.path, c.made = path, made
	return c, nil
}

// uri returns the URI of a file.
func uri(path string) string {
	return "file:" + strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23").Replace(path)
}

// dial opens a database by a URI, with at most quota bytes. A defensive connection cannot write the
// schema as a table.
func (d *Driver) dial(ctx context.Context, uri string, quota int64, defensive bool) (_ *conn, err error) {
	if err := registerVFS(); err != nil {
		return nil, unavailable(err)
	}
	q := url.Values{"_pragma": {
		"busy_timeout(50)", fmt.Sprintf("page_size(%d)", pageSize),
		"journal_mode(WAL)", "synchronous(NORMAL)", "foreign_keys(1)",
		"trusted_schema(0)", "cell_size_check(1)", "temp_store(1)",
		"cache_size(-2000)", "journal_size_limit(1048576)", "mmap_size(0)",
		fmt.Sprintf("max_page_count(%d)", pagesOf(quota)),
	}, "_dqs": {"0"}, "_defensive": {onOff[defensive]}, "_timezone": {"UTC"}, "_error_rc": {"1"}, "vfs": {vfsName}}
	c := &conn{
		guard:  &guard{host: true},
		db:     sql.OpenDB(connector{&sqlite.Driver{}, uri + "?" + q.Encode()}),
		length: -1,
	}
	c.db.SetMaxOpenConns(1)
	defer func() {
		if err != nil {
			c.Close()
		}
	}()
	for tries := 0; ; tries++ {
		if c.sql, err = c.db.Conn(ctx); err == nil {
			break
		}
		// Turning write-ahead logging on fails at once while another connection does.
		if e, ok := errors.AsType[*sqlite.Error](err); !ok || e.Code()&0xff != sqlite3.SQLITE_BUSY || tries == 200 {
			return nil, unavailable(err)
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	for id, n := range limits {
		if _, err := sqlite.Limit(c.sql, id, n); err != nil {
			return nil, unavailable(err)
		}
	}
	err = c.sql.Raw(func(raw any) error {
		if c.watch = newWatch(raw, 2*d.o.Quota); c.watch == nil {
			return errors.New("sqlite: the connection of the driver has no fields db and tls, which SQLite is " +
				"called with")
		}
		if err := errors.Join(
			replaceFunctions(c.watch.tls, c.watch.handle), addCollations(c.watch.tls, c.watch.handle),
		); err != nil {
			return err
		}
		return raw.(sqlite.AuthorizerRegisterer).RegisterAuthorizer(c.guard.authorize)
	})
	if err != nil {
		return nil, unavailable(err)
	}
	if err := c.exec(
		ctx,
		"CREATE TABLE IF NOT EXISTS "+recorded+
			" (name TEXT PRIMARY KEY, digest TEXT NOT NULL, applied_at TEXT NOT NULL) STRICT",
	); err != nil {
		return nil, err
	}
	return c, nil
}

func unavailable(err error) error {
	return errs.Wrap(errs.Unavailable, err, "The workspace cannot be opened: try again later.")
}

// Usable implements connpool.Conn: the file is still the one that the connection has opened.
func (c *conn) Usable() bool {
	if c.broken {
		return false
	}
	now, err := os.Stat(c.path)
	return err == nil && os.SameFile(c.made, now)
}

// Close implements connpool.Conn.
func (c *conn) Close() {
	if c.watch != nil {
		c.watch.close()
	}
	if c.sql != nil {
		_ = c.sql.Close()
	}
	_ = c.db.Close()
}

// session is a connection in the hands of a caller. It implements tenantsql.Backend.
type session struct {
	*conn
	d *Driver
	w workspaces.Workspace

	wrote bool // perhaps
	// used pages of the file when the room of the tenant was first less than a workspace may have;
	// -1 before
	begun int64
}

// slackPages is how much a statement that frees room can need for it.
const slackPages = 16

// tie bounds the pages of the file by the room that the tenant has. It returns the error of a
// tenant without room for a statement that can make the file larger.
func (s *session) tie(ctx context.Context, statement sqltext.Statement) error {
	if workspaces.ReadOnly(ctx) {
		return nil
	}
	s.wrote = true
	var least, pages int64
	if statement.Grows() {
		least = 1
	}
	left, err := workspaces.Room(ctx, least)
	if err != nil {
		return err
	}
	if left < s.d.o.Quota {
		if s.begun < 0 {
			if s.begun, err = s.usedPages(ctx); err != nil {
				return err
			}
		}
		pages = min(s.begun+max(left/pageSize, slackPages), pagesOf(s.d.o.Quota))
	}
	if pages == s.pages {
		return nil
	}
	most := pages
	if most == 0 {
		most = pagesOf(s.d.o.Quota)
	}
	s.pages = pages
	return s.exec(ctx, fmt.Sprintf("PRAGMA max_page_count = %d", most))
}

// usedPages returns how many pages of the file hold something, with those that are only in its
// write-ahead log.
func (c *conn) usedPages(ctx context.Context) (n int64, err error) {
	err = c.read(ctx,
		"SELECT p.page_count - f.freelist_count FROM pragma_page_count p, pragma_freelist_count f",
		func(row []driver.Value) error {
			n, _ = row[0].(int64)
			return nil
		})
	return n, err
}

// pagesOf returns how many pages some bytes are.
func pagesOf(quota int64) int64 { return max(2, quota/pageSize) }

// turn waits until a statement may run.
func (s *session) turn(ctx context.Context) (end func(), err error) {
	end, err = s.d.statements.Acquire(ctx, 1, s.w.Tenant, s.w.App)
	return end, limiter.Unavailable(err, "Too many statements run in workspaces at once: try again later.")
}

// Query implements tenantsql.Backend.
func (s *session) Query(
	ctx context.Context, statement sqltext.Statement, values []any,
) (out json.RawMessage, err error) {
	end, err := s.turn(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	if err := s.tie(ctx, statement); err != nil {
		return nil, err
	}
	if !statement.Has("RETURNING") {
		return s.statement(ctx, statement, values, s.d.o)
	}
	err = s.transaction(ctx, func() (err error) {
		out, err = s.statement(ctx, statement, values, s.d.o)
		return err
	})
	return out, err
}

// transaction runs fn between BEGIN IMMEDIATE and COMMIT.
func (c *conn) transaction(ctx context.Context, fn func() error) (err error) {
	if err := c.exec(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	defer func() {
		if err != nil && c.exec(context.Background(), "ROLLBACK") != nil {
			c.broken = !c.watch.autocommit()
		}
	}()
	if err := fn(); err != nil {
		return err
	}
	return c.exec(ctx, "COMMIT")
}

// allowed returns errs.Invalid unless a statement is of a kind that tenants may run.
func allowed(s sqltext.Statement) error {
	return s.Allowed([]string{"REPLACE", "PRAGMA"}, "TABLE", "INDEX", "VIEW", "TRIGGER")
}

// statement runs a statement of the tenant.
func (c *conn) statement(ctx context.Context, s sqltext.Statement, values []any, o Options) (json.RawMessage, error) {
	if err := allowed(s); err != nil {
		return nil, err
	}
	if s.Tokens[0].Is("ALTER") {
		if err := callsRefused(s); err != nil {
			return nil, err
		}
	}
	if err := c.bound(ctx, s); err != nil {
		return nil, err
	}
	text := collated(s)
	if text == s.Text {
		text = comparing(s, values)
	}
	return c.guarded(ctx, text, values, o)
}

// guarded runs a statement that may do what those of tenants may.
func (c *conn) guarded(ctx context.Context, text string, values []any, o Options) (json.RawMessage, error) {
	c.guard.host, c.guard.reads = false, workspaces.ReadOnly(ctx)
	defer func() { c.guard.host = true }()
	args := make([]driver.NamedValue, len(values))
	for i, v := range values {
		if raw, ok := v.(json.RawMessage); ok {
			if raw[0] == '[' {
				return nil, errs.New(
					errs.Invalid,
					"params[%d] is a list, which SQLite has no type for: pass JSON.stringify(list), and read it "+
						"with IN (SELECT value FROM json_each($%d)).",
					i, i+1,
				)
			}
			v = string(raw)
		}
		args[i] = driver.NamedValue{Ordinal: i + 1, Value: v}
	}
	var rows *workspaces.Rows
	var types []string
	err := c.run(ctx, text, args, func(columns, declared []string) {
		rows = workspaces.NewRows(columns, o.Limits)
		types = declared
	}, func(row []driver.Value) error {
		values := make([]any, len(row))
		for i, v := range row {
			values[i] = shown(v, types[i])
		}
		return rows.Add(values)
	})
	if err != nil {
		return nil, c.worded(ctx, err, o)
	}
	return rows.JSON(), nil
}

// exec runs a statement of the host.
func (c *conn) exec(ctx context.Context, statement string, args ...any) error {
	return c.read(ctx, statement, nil, args...)
}

// read runs a statement of the host and calls row for each row.
func (c *conn) read(ctx context.Context, statement string, row func([]driver.Value) error, args ...any) error {
	c.setLength(maxLength)
	named := make([]driver.NamedValue, len(args))
	for i, v := range args {
		named[i] = driver.NamedValue{Ordinal: i + 1, Value: v}
	}
	if row == nil {
		row = func([]driver.Value) error { return nil }
	}
	err := c.run(ctx, statement, named, func([]string, []string) {}, row)
	if err != nil {
		return c.worded(ctx, err, Options{})
	}
	return nil
}

// timeout is how long a statement waits for another one that writes.
const timeout = 10 * time.Second

// run runs a statement. It ends soon after ctx.
func (c *conn) run(
	ctx context.Context, statement string, args []driver.NamedValue, head func(columns, types []string),
	row func([]driver.Value) error,
) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c.guard.refused, c.guard.wrote = "", false
	c.watch.begin()
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		c.watch.end()
	})
	defer func() {
		if !stop() {
			<-ended // so that the next statement is not interrupted
		}
	}()
	for started := time.Now(); ; {
		began := false
		err := c.try(statement, args, head, func(values []driver.Value) error {
			began = true
			return row(values)
		})
		e, ok := errors.AsType[*sqlite.Error](err)
		if !ok || began || e.Code()&0xff != sqlite3.SQLITE_BUSY || ctx.Err() != nil || time.Since(started) > timeout {
			return err
		}
	}
}

// try runs a statement. SQLite waits for others that write, for a moment that is not interrupted.
func (c *conn) try(
	statement string, args []driver.NamedValue, head func(columns, types []string),
	row func([]driver.Value) error,
) error {
	var failed error
	err := c.sql.Raw(func(raw any) error {
		// The driver would take the place of the watch if the context could end.
		found, err := raw.(driver.QueryerContext).QueryContext(context.Background(), statement, args)
		if err != nil {
			failed = err
			return nil
		}
		failed = drain(found, head, row)
		if err := found.Close(); failed == nil {
			failed = err
		}
		return nil
	})
	return errors.Join(failed, err)
}

func drain(found driver.Rows, head func(columns, types []string), row func([]driver.Value) error) error {
	columns := found.Columns()
	types := make([]string, len(columns))
	if typed, ok := found.(driver.RowsColumnTypeDatabaseTypeName); ok {
		for i := range types {
			types[i] = typed.ColumnTypeDatabaseTypeName(i)
		}
	}
	head(columns, types)
	values := make([]driver.Value, len(columns))
	for len(columns) > 0 {
		switch err := found.Next(values); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if err := row(values); err != nil {
			return err
		}
	}
	return nil
}

var trailingCode = regexp.MustCompile(` \([0-9]+\)( \(SQLITE_BUSY\))?$`)

// worded turns an error of the driver into one for the tenant.
func (c *conn) worded(ctx context.Context, err error, o Options) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	e, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		if errs.CodeOf(err) == errs.Internal {
			c.broken = true
		}
		return err
	}
	message := trailingCode.ReplaceAllString(e.Error(), "")
	if _, detail, ok := strings.Cut(message, ": "); ok {
		message = detail
	}
	if c.guard.wrote {
		return workspaces.ErrWrites
	}
	if c.guard.refused != "" {
		return errs.Wrap(errs.Invalid, err, "%s", c.guard.refused)
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_FULL:
		if c.watch.spill.full.Load() {
			return errs.Wrap(
				errs.TooLarge, err,
				"The statement writes more than %d MiB to temporary files: sort fewer rows, or make an index.",
				c.watch.spill.limit>>20,
			)
		}
		if c.pages > 0 {
			if _, full := workspaces.Room(ctx, o.Quota); full != nil {
				return full
			}
		}
		return errs.Wrap(
			errs.TooLarge, err, "The workspace is full: it can have %d MiB. Delete rows that are not needed.",
			o.Quota>>20,
		)
	case sqlite3.SQLITE_TOOBIG:
		return errs.Wrap(
			errs.TooLarge, err, "A text or blob is larger than the %d bytes that this statement may handle.",
			c.length,
		)
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return errs.Wrap(errs.Unavailable, err, "The workspace is being written: try again later.")
	case sqlite3.SQLITE_NOMEM:
		return errs.Wrap(errs.TooLarge, err, "The statement needs too much memory.")
	case sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_NOTADB,
		sqlite3.SQLITE_PROTOCOL,
		sqlite3.SQLITE_READONLY, sqlite3.SQLITE_INTERNAL, sqlite3.SQLITE_MISUSE:
		c.broken = true
		return unavailable(err)
	case sqlite3.SQLITE_INTERRUPT:
		return errs.Wrap(errs.Unavailable, err, "The statement was interrupted.")
	}
	if code := e.Code(); code == sqlite3.SQLITE_CONSTRAINT_UNIQUE || code == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY {
		return errs.Wrap(errs.Conflict, err, "%s", message)
	}
	return errs.Wrap(errs.Invalid, err, "%s", message)
}
