package tenantrows

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
)

// Limits of an import.
const (
	batchBytes = 4 << 20 // bytes of rows after which they are written
	batchRows  = 500
	maxValues  = 30_000 // of a statement; SQLite supports 32,766
)

// Import reads the format that Export writes.
type Import struct {
	ctx    context.Context
	db     *bun.DB
	in     *bufio.Reader
	digest hash.Hash
	o      Options
	head   header
	tables []Table
	rows   int
	left   int             // number of rows that were left out
	files  map[string]bool // keys of rows whose files may follow
	behind []byte          // the line after a file
}

// Tenant is the tenant of an export.
type Tenant struct{ ID, Name string }

// Open reads the header of an export. It returns errs.Invalid if r is not an export, or has another
// version.
func Open(ctx context.Context, db *bun.DB, r io.Reader, o Options) (*Import, error) {
	i := &Import{
		ctx:    bunx.WithWork(ctx, bunx.Unbounded),
		db:     db,
		in:     bufio.NewReaderSize(r, 1<<20),
		digest: sha256.New(),
		o:      o,
		files:  map[string]bool{},
	}
	line, err := i.line()
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(line, &i.head); err != nil || i.head.Format == 0 {
		return nil, errs.New(errs.Invalid, "this is no export of a tenant")
	}
	if i.head.Format != format {
		return nil, errs.New(
			errs.Invalid,
			"this export has the format %d, and this program reads %d: use the version that made it",
			i.head.Format, format,
		)
	}
	if err := i.head.check(); err != nil {
		return nil, err
	}
	own, err := migrations(ctx, db)
	if err != nil {
		return nil, err
	}
	for _, m := range i.head.Migrations {
		if !slices.Contains(own, m) {
			return nil, errs.New(
				errs.Invalid, "this export is of a newer version: the database lacks the migration %s", m,
			)
		}
	}
	for _, m := range own {
		if !slices.Contains(i.head.Migrations, m) {
			return nil, errs.New(
				errs.Invalid,
				"this export is of an older version, without the migration %s: bring the database that it is of "+
					"up to this version, and export again",
				m,
			)
		}
	}
	i.tables, err = Tables(ctx, db)
	return i, err
}

// check converts the times of a header to the form that both engines use. It returns errs.Invalid
// for a time that an export cannot contain.
func (h *header) check() (err error) {
	for name, at := range map[string]*string{"createdAt": &h.CreatedAt, "updatedAt": &h.UpdatedAt} {
		if *at, err = canonicalTime(*at); err != nil {
			return errs.New(errs.Invalid, "the export is damaged: %s of its header %v", name, err)
		}
	}
	if strings.ContainsRune(h.Name, 0) || !json.Valid([]byte(h.Settings)) {
		return damaged()
	}
	return nil
}

// Tenant returns the exported tenant.
func (i *Import) Tenant() Tenant {
	return Tenant{i.head.Tenant, i.head.Name}
}

// Files returns the Kind of the files in the export, or "".
func (i *Import) Files() string { return i.head.Files }

// SetFiles sets the functions that create the files. Without it files are left out.
func (i *Import) SetFiles(f *Files) { i.o.Files = f }

// Without refuses rows of a table, because the export does not contain their files.
func (i *Import) Without(table string) { i.o.Without = append(i.o.Without, table) }

// Left returns sentences about what the tenant had and the export does not contain.
func (i *Import) Left() []string { return i.head.Left }

// Stored returns what the tenant stored when it was exported. It is zero if the export does not
// contain it.
func (i *Import) Stored() Stored { return i.head.Stored }

// line reads a line. The line is valid until the next call.
func (i *Import) line() ([]byte, error) {
	if line := i.behind; line != nil {
		i.behind = nil
		return line, nil
	}
	var long []byte
	for {
		part, err := i.in.ReadSlice('\n')
		switch {
		case err == nil && long == nil:
			return i.counted(part), nil
		case err == nil:
			return i.counted(append(long, part...)), nil
		case errors.Is(err, bufio.ErrBufferFull) && len(long)+len(part) <= maxLine:
			long = append(long, part...)
		case errors.Is(err, bufio.ErrBufferFull):
			return nil, errs.New(
				errs.Invalid, "the export is damaged: it has a line of more than %d MiB, which is no row",
				maxLine>>20,
			)
		case errors.Is(err, io.EOF):
			return nil, errs.New(errs.Invalid, "the export ends before its end: it was cut")
		default:
			return nil, err
		}
	}
}

// counted adds a line to the digest, unless it is the last one.
func (i *Import) counted(line []byte) []byte {
	if !bytes.HasPrefix(line, []byte(`{"end"`)) {
		_, _ = i.digest.Write(line)
	}
	return line
}

// Rows adds the rows to the tenant, which must be new, in several transactions. It returns their
// number after it has read and checked the whole export.
func (i *Import) Rows() (int, error) {
	for _, t := range slices.Backward(i.tables) { // rows that the database creates with a tenant are in the export, too
		if _, made := derived[t.Name]; !made {
			if _, err := t.delete(i.ctx, i.db, i.head.Tenant, importing, func(int) {}); err != nil {
				return 0, err
			}
		}
	}
	var add func(line []byte) error
	flush := func() error { return nil }
	in, before := "", 0 // the table that rows are added to, and the number of rows before it
	for {
		line, err := i.line()
		if err != nil {
			return i.rows, err
		}
		if line[0] == '[' && add != nil {
			if err := add(line); err != nil {
				return i.rows, err
			}
			continue
		}
		if err := flush(); err != nil {
			return i.rows, err
		}
		if i.rows-before >= analyzed { // later rows may refer to them
			bunx.Analyze(i.ctx, i.db, i.head.Tenant, in)
			before = i.rows
		}
		var s section
		if err := json.Unmarshal(line, &s); err != nil {
			return i.rows, damaged()
		}
		if s.End != nil {
			if err := i.end(*s.End); err != nil {
				return i.rows, err
			}
			return i.rows, i.tenant()
		}
		if s.File != "" {
			add, flush = nil, func() error { return nil }
			if err := i.file(s.File); err != nil {
				return i.rows, err
			}
			continue
		}
		if add, flush, err = i.section(s); err != nil {
			return i.rows, err
		}
		in, before = s.Table, i.rows
	}
}

// analyzed is the number of new rows after which the statistics of a table are updated.
const analyzed = 1000

func damaged() error { return errs.New(errs.Invalid, "the export is damaged") }

// end checks that nothing is missing and that nothing follows the last line.
func (i *Import) end(e end) error {
	if e.Rows != i.rows+i.left || e.SHA256 != hex.EncodeToString(i.digest.Sum(nil)) {
		return damaged()
	}
	if _, err := i.in.ReadByte(); !errors.Is(err, io.EOF) {
		if err == nil {
			err = damaged()
		}
		return err
	}
	return nil
}

// file makes the file of a row.
func (i *Import) file(key string) error {
	content := &content{i: i}
	if i.o.Files == nil {
		_, err := io.Copy(io.Discard, content)
		return err
	}
	if !i.files[key] {
		return errs.New(errs.Invalid, "the export is damaged: the file of %q comes twice, or without its row", key)
	}
	delete(i.files, key)
	if err := i.o.Files.Import(i.ctx, key, content); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, content) // to the line after it
	return err
}

// content reads the content of a file.
type content struct {
	i    *Import
	rest []byte
	end  bool
}

// Read implements io.Reader.
func (c *content) Read(b []byte) (int, error) {
	for len(c.rest) == 0 {
		if c.end {
			return 0, io.EOF
		}
		line, err := c.i.line()
		if err != nil {
			return 0, err
		}
		if line[0] != '"' {
			c.end, c.i.behind = true, bytes.Clone(line)
			return 0, io.EOF
		}
		if err := json.Unmarshal(line, &c.rest); err != nil {
			return 0, damaged()
		}
		if err := c.i.o.Check(); err != nil {
			return 0, err
		}
	}
	n := copy(b, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// tenant writes the exported row of the tenant itself.
func (i *Import) tenant() error {
	return i.write(func(ctx context.Context, c bunx.Conn) error {
		_, err := c.Exec(ctx,
			`UPDATE tc_tenants SET name = $1, settings = $2, created_at = $3, updated_at = $4 WHERE tenant_id = $5`,
			i.head.Name, i.head.Settings, i.head.CreatedAt, i.head.UpdatedAt, i.head.Tenant)
		return err
	})
}

// section returns a function that adds the rows of a section, and one that writes the rows of an
// incomplete batch.
func (i *Import) section(s section) (add func(line []byte) error, flush func() error, err error) {
	at := slices.IndexFunc(i.tables, func(t Table) bool { return t.Name == s.Table || t.Name == s.Links })
	if at < 0 || i.o.leavesOut(i.tables[at]) {
		return nil, nil, damaged()
	}
	t := i.tables[at]
	if slices.Contains(i.o.Skip, t.Name) {
		return func([]byte) error {
			i.left++
			return nil
		}, func() error { return nil }, nil
	}
	var columns []Column
	var sealed map[int]int
	write := i.insert
	if s.Links != "" {
		if t.Self == "" {
			return nil, nil, damaged()
		}
		columns, write = []Column{{t.Key[0], Text}, {t.Self, Text}}, i.link
	} else {
		for _, name := range s.Columns {
			c := slices.IndexFunc(t.Columns, func(c Column) bool { return c.Name == name })
			if c < 0 || slices.Contains(columns, t.Columns[c]) {
				return nil, nil, errs.New(
					errs.Invalid, "the export is damaged: %s has no column %q, or twice", t.Name, name,
				)
			}
			columns = append(columns, t.Columns[c])
		}
		if len(columns) < len(t.Columns) {
			return nil, nil, errs.New(errs.Invalid, "the export is damaged: %s lacks columns", t.Name)
		}
	}
	if t.Columns = columns; s.Links == "" {
		sealed = i.o.Secrets.of(t)
	}
	var batch [][]any
	size := 0
	flush = func() error {
		if len(batch) == 0 {
			return nil
		}
		err := write(t, batch)
		batch, size = batch[:0], 0
		return err
	}
	most := min(batchRows, maxValues/(len(columns)+1))
	return func(line []byte) error {
		row, err := i.read(t, sealed, line)
		if err == nil {
			err = i.expect(t, row)
		}
		if err != nil {
			return err
		}
		batch = append(batch, row)
		if size += len(line); len(batch) < most && size < batchBytes {
			return nil
		}
		return flush()
	}, flush, nil
}

// expect records that the file of a row may follow, if the row can have one.
func (i *Import) expect(t Table, row []any) error {
	f := i.o.Files
	if f == nil || f.Table != t.Name {
		return nil
	}
	value := func(column string) string {
		text, _ := row[slices.IndexFunc(t.Columns, func(c Column) bool { return c.Name == column })].(string)
		return text
	}
	if value(f.KindOf) != i.head.Files {
		return errs.New(
			errs.Invalid, "the export is damaged: %s.%s is not the %s of its header", t.Name, f.KindOf,
			i.head.Files,
		)
	}
	i.files[value(t.Key[0])] = true
	return nil
}

// read returns the values of a row in the form of the database. sealed maps the indexes of secrets
// to those of their keys.
func (i *Import) read(t Table, sealed map[int]int, line []byte) ([]any, error) {
	if !json.Valid(line) {
		return nil, damaged()
	}
	line = bytes.TrimSpace(line)
	rest, more := line[1:len(line)-1], true
	row := make([]any, len(t.Columns))
	for n, c := range t.Columns {
		if !more {
			return nil, damaged()
		}
		var value []byte
		var err error
		value, rest, more = element(rest)
		if row[n], err = c.value(value); err != nil {
			return nil, errs.New(errs.Invalid, "the export is damaged: %s.%s %v", t.Name, c.Name, err)
		}
	}
	if more {
		return nil, damaged()
	}
	for n, key := range sealed {
		if row[n] == nil || row[n] == "" {
			continue
		}
		var err error
		if row[n], err = i.seal(t, t.Columns[n], row[n], row[key]); err != nil {
			return nil, err
		}
	}
	return row, nil
}

// element returns the first element of the inside of a valid JSON array, and the rest after the
// comma, if any. It does not allocate memory.
func element(inside []byte) (first, rest []byte, more bool) {
	depth, quoted := 0, false
	for i := 0; i < len(inside); i++ {
		switch b := inside[i]; {
		case quoted && b == '\\':
			i++
		case b == '"':
			quoted = !quoted
		case quoted:
		case b == '[' || b == '{':
			depth++
		case b == ']' || b == '}':
			depth--
		case b == ',' && depth == 0:
			return bytes.TrimSpace(inside[:i]), inside[i+1:], true
		}
	}
	return bytes.TrimSpace(inside), nil, false
}

// seal seals a secret with the key of this program.
func (i *Import) seal(t Table, c Column, text, row any) (any, error) {
	encoded, _ := text.(string)
	key, ok := row.(string)
	plain, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || !ok {
		return nil, damaged()
	}
	return i.o.Secrets.Seal(i.head.Tenant, t.Name, c.Name, key, plain)
}

// value returns a written value in the form of the database. Its errors are written after the name
// of the column.
func (c Column) value(written []byte) (any, error) {
	if string(written) == "null" {
		return nil, nil
	}
	if c.Type == Integer || c.Type == Bool {
		n, err := strconv.ParseInt(string(written), 10, 64)
		switch {
		case err != nil:
			return nil, errors.New("has something else than a whole number")
		case c.Type == Bool:
			return n != 0, nil
		}
		return n, nil
	}
	text, err := unquoted(written)
	if err != nil {
		return nil, errors.New("has something else than a text")
	}
	switch c.Type {
	case Bytes:
		b, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return nil, errors.New("has a text that is no base64")
		}
		if b == nil {
			b = []byte{}
		}
		return b, nil
	case Time:
		return canonicalTime(text)
	}
	if !utf8.Valid(written) || strings.ContainsRune(text, 0) {
		return nil, errors.New("has a text with NUL, or that is no UTF-8")
	}
	return text, nil
}

// unquoted returns the text of a JSON string. It uses the decoder only if the string has escapes.
func unquoted(written []byte) (text string, err error) {
	if n := len(written); n > 1 && written[0] == '"' && !bytes.ContainsRune(written, '\\') {
		return string(written[1 : n-1]), nil
	}
	err = json.Unmarshal(written, &text)
	return text, err
}

// canonicalTime returns a time in the form in which both engines store and order it. Other forms
// would break statements that read the times of all tenants, such as those of the queue.
func canonicalTime(text string) (string, error) {
	var t bunx.Time
	if err := t.Scan(text); err != nil || t.Year() < 1 || t.Year() > 9999 {
		return "", errors.New("has a text that is no time of the years 1 to 9999")
	}
	return t.String(), nil
}

// insert adds rows of a table.
func (i *Import) insert(t Table, rows [][]any) error {
	names, args := []string{"tenant_id"}, make([]any, 0, len(rows)*(len(t.Columns)+1))
	for _, c := range t.Columns {
		names = append(names, c.Name)
	}
	for _, row := range rows {
		args = append(append(args, i.head.Tenant), row...)
	}
	err := i.write(func(ctx context.Context, c bunx.Conn) error {
		_, err := c.Exec(ctx, `INSERT INTO `+t.Name+` (`+strings.Join(names, ", ")+`) VALUES `+
			bunx.Values(len(rows), len(names)), args...)
		return err
	})
	if err != nil {
		return fmt.Errorf("import %s: %w", t.Name, err)
	}
	i.rows += len(rows)
	i.o.Rows(len(rows))
	return nil
}

// link sets the references of rows of a table to other rows of it.
func (i *Import) link(t Table, rows [][]any) error {
	query := fmt.Sprintf(`UPDATE %s SET %s = $1 WHERE tenant_id = $2 AND %s = $3`, t.Name, t.Self, t.Key[0])
	return i.write(func(ctx context.Context, c bunx.Conn) error {
		for _, row := range rows {
			if _, err := c.Exec(ctx, query, row[1], i.head.Tenant, row[0]); err != nil {
				return err
			}
		}
		return nil
	})
}

func (i *Import) write(fn func(ctx context.Context, c bunx.Conn) error) error {
	if err := i.o.Check(); err != nil {
		return err
	}
	return bunx.Write(i.ctx, i.db, i.head.Tenant, func(ctx context.Context, c bunx.Conn) error {
		return bunx.Err(fn(ctx, c), "A row")
	})
}
