package tenantrows

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"slices"
	"strings"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
)

// format is the version of the format that Export writes. It consists of lines of JSON:
//
//   - The first line is a header.
//   - The rows of a table are arrays, after an object with the name of the table and its columns.
//   - Pairs of rows of a table that refer to each other follow an object with the name of the
//     table.
//   - The content of a file is lines of text in base64, after an object with the name of the file.
//   - The last line is an end.
//
// Times are texts, booleans are 1 or 0, and bytes and opened secrets are base64.
const format = 2

// maxLine is the most bytes of a line, which limits the memory for reading it. The texts of a row
// have at most 1 MiB for a body of the API, 4 MiB for all entries of a bundle, and 12 MiB for the
// answers of a conversation. JSON uses at most 6 bytes for one byte.
const maxLine = 64 << 20

// header is the first line.
type header struct {
	Format     int      `json:"tenantcontent"`
	Tenant     string   `json:"tenant"`
	Migrations []string `json:"migrations"`
	Name       string   `json:"name"`
	Settings   string   `json:"settings"`
	CreatedAt  string   `json:"createdAt"`
	UpdatedAt  string   `json:"updatedAt"`
	Files      string   `json:"files,omitempty"` // the Kind of Files, or ""
	Left       []string `json:"left,omitempty"`  // sentences about what the tenant has and the export does not contain
	Stored     Stored   `json:"stored,omitzero"`
}

// Stored is how much the tenant stored when the export began, according to the counters of its
// database.
type Stored struct {
	Bytes          int64 `json:"bytes"` // of files and records
	WorkspaceBytes int64 `json:"workspaceBytes"`
	Workspaces     int   `json:"workspaces"`
}

// section is a line before rows, or the last one.
type section struct {
	Table   string   `json:"table,omitempty"`
	Columns []string `json:"columns,omitempty"`
	Links   string   `json:"links,omitempty"`
	File    string   `json:"file,omitempty"`
	End     *end     `json:"end,omitempty"`
}

// end is the last line, with the number of rows and the digest of all lines before.
type end struct {
	Rows   int    `json:"rows"`
	SHA256 string `json:"sha256"`
}

// Secrets opens and seals the values of sealed columns.
type Secrets struct {
	Columns []entity.SealedColumn
	Open    func(tenant, table, column, row, sealed string) ([]byte, error)
	Seal    func(tenant, table, column, row string, plain []byte) (string, error)
}

// of returns the indexes of the sealed columns of a table, with those of their keys.
func (s Secrets) of(t Table) (sealed map[int]int) {
	sealed = map[int]int{}
	for _, c := range s.Columns {
		if c.Table == t.Name {
			place := func(name string) int {
				return slices.IndexFunc(t.Columns, func(c Column) bool { return c.Name == name })
			}
			sealed[place(c.Column)] = place(c.Key)
		}
	}
	return sealed
}

// Options are the options of Export and Import.
type Options struct {
	Secrets Secrets
	Without []string // tables that are never exported
	Rows    func(n int)
	Check   func() error // called before each write of an import and each piece of a file; its error ends the import
	Files   *Files       // files of an export; nil: no files
	Skip    []string     // tables whose rows an import leaves out
	Left    []string     // the result of Import.Left
	Stored  Stored       // the result of Import.Stored
}

// Files are the files of a tenant outside of the database. Each belongs to a row of a table.
type Files struct {
	Table string // the table of the rows; the first column of its key identifies the file
	Kind  string // the format of the files: Import.Files returns that of the export
	// KindOf is the column of Table that has the Kind of each file.
	KindOf string
	// Export writes a file. It reports whether the file exists.
	Export func(ctx context.Context, key string, w io.Writer) (there bool, err error)
	// Missing returns the error for a row without a file.
	Missing func(key string) error
	// Import makes a file.
	Import func(ctx context.Context, key string, r io.Reader) error
}

// leavesOut reports whether a table is not exported.
func (o Options) leavesOut(t Table) bool {
	_, made := derived[t.Name]
	return made || slices.Contains(o.Without, t.Name)
}

// lines writes lines of JSON, and their digest.
type lines struct {
	to     io.Writer
	digest hash.Hash
	json   *json.Encoder
}

func newLines(w io.Writer) *lines {
	l := &lines{to: w, digest: sha256.New()}
	l.json = json.NewEncoder(bounded{io.MultiWriter(w, l.digest)})
	l.json.SetEscapeHTML(false)
	return l
}

// bounded refuses lines that Import would not read. An encoder writes a line in one call.
type bounded struct{ io.Writer }

// Write implements io.Writer.
func (b bounded) Write(line []byte) (int, error) {
	if len(line) > maxLine {
		return 0, errs.New(errs.TooLarge, "a row has more than %d MiB, which no import reads", maxLine>>20)
	}
	return b.Writer.Write(line)
}

// Export writes all rows of a tenant, as of one point in time, and returns their number. Its memory
// does not depend on the number. It returns errs.NotFound if the tenant does not exist.
func Export(ctx context.Context, db *bun.DB, tenant string, w io.Writer, o Options) (rows int, err error) {
	all, err := Tables(ctx, db)
	if err != nil {
		return 0, err
	}
	ctx, c := bunx.For(bunx.WithWork(ctx, bunx.Unbounded), db, tenant)
	tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: isolation(c), ReadOnly: true})
	if err != nil {
		return 0, bunx.Err(err, "Tenant")
	}
	defer func() { _ = tx.Rollback() }()
	e := export{ctx: ctx, db: db, c: bunx.TxConn(db, tx), tenant: tenant, out: newLines(w), o: o}
	keep := func(t Table) func(row []any) {
		if o.Files == nil || t.Name != o.Files.Table {
			return func([]any) {}
		}
		at := slices.IndexFunc(t.Columns, func(c Column) bool { return c.Name == t.Key[0] })
		e.key = t.Key[0]
		return func(row []any) { e.files = append(e.files, row[at].(string)) }
	}
	if err := e.header(); err != nil {
		return 0, err
	}
	for _, t := range all {
		if o.leavesOut(t) {
			continue
		}
		if err := e.table(t, keep(t)); err != nil {
			return e.rows, fmt.Errorf("export %s: %w", t.Name, err)
		}
	}
	_ = tx.Rollback() // the transaction has only read
	for _, key := range e.files {
		if err := e.file(key); err != nil {
			return e.rows, err
		}
	}
	if err := e.stillThere(); err != nil {
		return e.rows, err
	}
	last := section{End: &end{Rows: e.rows, SHA256: hex.EncodeToString(e.out.digest.Sum(nil))}}
	return e.rows, json.NewEncoder(w).Encode(last)
}

// isolation returns the isolation level of a transaction that reads as of one point in time. On
// SQLite all levels do.
func isolation(c bunx.Conn) sql.IsolationLevel {
	if c.Postgres() {
		return sql.LevelRepeatableRead
	}
	return sql.LevelDefault
}

type export struct {
	ctx    context.Context
	db     *bun.DB
	c      bunx.Conn
	tenant string
	out    *lines
	o      Options
	rows   int
	key    string   // name of the column with the keys of files
	files  []string // the keys
}

func (e *export) header() (err error) {
	h := header{Format: format, Tenant: e.tenant, Left: e.o.Left, Stored: e.o.Stored}
	if e.o.Files != nil {
		h.Files = e.o.Files.Kind
	}
	var created, updated bunx.Time
	err = e.c.Row(
		e.ctx,
		`SELECT name, settings, created_at, updated_at FROM tc_tenants WHERE tenant_id = $1 AND hidden IS NULL`,
		e.tenant,
	).
		Scan(&h.Name, &h.Settings, &created, &updated)
	if err != nil {
		return bunx.Err(err, "Tenant")
	}
	h.CreatedAt, h.UpdatedAt = created.String(), updated.String()
	if h.Migrations, err = migrations(e.ctx, e.db); err != nil {
		return err
	}
	return e.out.json.Encode(h)
}

// migrations returns the names of the migrations that a database has.
func migrations(ctx context.Context, db *bun.DB) ([]string, error) {
	ctx, c := bunx.For(ctx, db, "")
	rows, err := c.Rows(ctx, `SELECT name FROM tc_migrations`)
	names, err := bunx.Scan(rows, err, bunx.Text)
	slices.Sort(names)
	return names, bunx.Err(err, "Migration")
}

// file writes a file. The object before its content is written with its first piece, because the
// file may not exist.
func (e *export) file(key string) error {
	pieces := &pieces{out: e.out, key: key}
	there, err := e.o.Files.Export(e.ctx, key, pieces)
	if err != nil {
		return err
	}
	if there {
		return pieces.flush()
	}
	t := e.o.Files.Table
	kept, err := e.holds(`SELECT EXISTS (SELECT 1 FROM `+t+` WHERE tenant_id = $1 AND `+e.key+` = $2)`, key)
	if err == nil && kept {
		err = e.o.Files.Missing(key)
	}
	return err
}

// stillThere returns errs.Conflict if the tenant has been deleted since, and its files with it.
func (e *export) stillThere() error {
	there, err := e.holds(`SELECT EXISTS (SELECT 1 FROM tc_tenants WHERE tenant_id = $1 AND hidden IS NULL)`)
	if err == nil && !there {
		err = errs.New(errs.Conflict, "the tenant %s was deleted while it was exported", e.tenant)
	}
	return err
}

// holds reports whether a condition is met for the tenant now.
func (e *export) holds(query string, args ...any) (is bool, err error) {
	ctx, c := bunx.For(e.ctx, e.db, e.tenant)
	err = c.Row(ctx, query, append([]any{e.tenant}, args...)...).Scan(&is)
	return is, bunx.Err(err, "Row")
}

// pieces writes the content of a file.
type pieces struct {
	out    *lines
	key    string
	begun  bool
	buffer []byte
}

const pieceBytes = 48 << 10

// Write implements io.Writer.
func (p *pieces) Write(b []byte) (n int, err error) {
	for n < len(b) {
		some := min(len(b)-n, pieceBytes-len(p.buffer))
		p.buffer = append(p.buffer, b[n:n+some]...)
		if n += some; len(p.buffer) == pieceBytes {
			if err := p.flush(); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

func (p *pieces) flush() error {
	if !p.begun {
		p.begun = true
		if err := p.out.json.Encode(section{File: p.key}); err != nil {
			return err
		}
	}
	err := p.out.json.Encode(p.buffer) // as base64
	p.buffer = p.buffer[:0]
	return err
}

// table writes the rows of a table. References to rows of the same table follow after all rows. It
// calls keep with the values of each row.
func (e *export) table(t Table, keep func(row []any)) error {
	names, line := make([]string, len(t.Columns)), make([]any, len(t.Columns))
	self := -1
	for i, c := range t.Columns {
		if names[i] = c.Name; c.Name == t.Self {
			self = i
		}
	}
	if err := e.out.json.Encode(section{Table: t.Name, Columns: names}); err != nil {
		return err
	}
	sealed := e.o.Secrets.of(t)
	err := e.each(t, `SELECT `+strings.Join(names, ", ")+` FROM `+t.Name+
		` WHERE tenant_id = $1`, t.Columns, func(row []any) error {
		copy(line, row)
		keep(row)
		for i, key := range sealed {
			if text, ok := row[i].(string); ok && text != "" {
				plain, err := e.o.Secrets.Open(e.tenant, t.Name, names[i], row[key].(string), text)
				if err != nil {
					return errs.Wrap(
						errs.Invalid, err, "%s.%s of %q opens under no key of this program", t.Name, names[i],
						row[key],
					)
				}
				line[i] = base64.StdEncoding.EncodeToString(plain)
			}
		}
		if self >= 0 {
			line[self] = nil
		}
		e.rows++
		e.o.Rows(1)
		return e.out.json.Encode(line)
	})
	if err != nil || self < 0 {
		return err
	}
	if err := e.out.json.Encode(section{Links: t.Name}); err != nil {
		return err
	}
	pair := []Column{{t.Key[0], Text}, t.Columns[self]}
	return e.each(t, fmt.Sprintf(
		`SELECT %s, %s FROM %s WHERE tenant_id = $1 AND %s IS NOT NULL`, t.Key[0], t.Self, t.Name, t.Self,
	), pair,
		func(row []any) error { return e.out.json.Encode(row) })
}

// each calls do with the values of each row of a table, in the written form.
func (e *export) each(t Table, query string, columns []Column, do func(row []any) error) (err error) {
	rows, err := e.c.Rows(e.ctx, query, e.tenant)
	if err != nil {
		return bunx.Err(err, "Row")
	}
	defer func() { _ = rows.Close() }()
	dest, row := make([]any, len(columns)), make([]any, len(columns))
	for i := range dest {
		dest[i] = new(any)
	}
	for rows.Next() {
		if err := rows.Scan(dest...); err != nil {
			return err
		}
		for i, c := range columns {
			if row[i], err = written(c, *dest[i].(*any)); err != nil {
				return errs.Wrap(
					errs.Conflict, err, "%s.%s has a value that is no %s: correct it, and export again", t.Name,
					c.Name, c.Type,
				)
			}
		}
		if err := do(row); err != nil {
			return err
		}
	}
	return bunx.Err(rows.Err(), "Row")
}

// written returns the written form of a value of the database.
func written(c Column, value any) (any, error) {
	switch v := value.(type) {
	case nil:
		return nil, nil
	case bool:
		return map[bool]int{true: 1}[v], nil
	case int64:
		return v, nil
	case string:
		if c.Type == Time {
			return instant(v)
		}
		return v, nil
	case []byte:
		if c.Type == Bytes {
			return base64.StdEncoding.EncodeToString(v), nil
		}
		return string(v), nil
	}
	if c.Type == Time {
		return instant(value)
	}
	return nil, fmt.Errorf("tenantrows: the column %s has a %T, which has no place here", c.Name, value)
}

func instant(value any) (string, error) {
	var t bunx.Time
	err := t.Scan(value)
	return t.String(), err
}
