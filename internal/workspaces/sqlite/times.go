package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/sqltext"
	"github.com/tenantcontent/tenantcontent/internal/text/timetext"
	"github.com/tenantcontent/tenantcontent/internal/workspaces"
)

// SQLite has no type for times, and compares their texts: 2026-11-26 10:00:00, which
// CURRENT_TIMESTAMP makes, is not the text of JavaScript's 2026-11-26T10:00:00.000Z. So the columns
// that are declared with a type of times have a collation that compares what the texts mean. It is
// a part of the schema, so that indexes, UNIQUE, GROUP BY and ORDER BY have it, too. Package
// timetext compares.

// timeKind is what a column holds by its declaration.
type timeKind string

// The kinds are the names of their collations, but for the first.
const (
	notTime timeKind = ""
	instant timeKind = timetext.Timestamp
	day     timeKind = timetext.Date
)

// kindOf returns what a column of a declared type holds.
func kindOf(declared string) timeKind {
	name, _, _ := strings.Cut(declared, "(")
	if _, rest, ok := strings.Cut(declared, ")"); ok { // TIMESTAMP (3) WITH TIME ZONE
		name += " " + rest
	}
	switch strings.Join(strings.Fields(strings.ToUpper(name)), " ") {
	case "DATE":
		return day
	case "DATETIME", "TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMP WITH TIME ZONE", "TIMESTAMP WITHOUT TIME ZONE":
		return instant
	}
	return notTime
}

// addCollations registers the collations of times.
func addCollations(tls *libc.TLS, handle uintptr) error {
	for _, c := range []struct {
		kind    timeKind
		compare uintptr
	}{{instant, pointer[compareFunc](compareInstants)}, {day, pointer[compareFunc](compareDays)}} {
		if err := register(tls, string(c.kind), func(name uintptr) int32 {
			return sqlite3.Xsqlite3_create_collation_v2(tls, handle, name, sqlite3.SQLITE_UTF8, 0, c.compare, 0)
		}); err != nil {
			return err
		}
	}
	return nil
}

type compareFunc = func(tls *libc.TLS, arg uintptr, n int32, a uintptr, m int32, b uintptr) int32

func compareInstants(_ *libc.TLS, _ uintptr, n int32, a uintptr, m int32, b uintptr) int32 {
	return int32(timetext.CompareTimestamps(memoryAt(a, n), memoryAt(b, m)))
}

func compareDays(_ *libc.TLS, _ uintptr, n int32, a uintptr, m int32, b uintptr) int32 {
	return int32(timetext.CompareDates(memoryAt(a, n), memoryAt(b, m)))
}

// afterType are the words that end the type of a column.
var afterType = []string{
	"CONSTRAINT", "PRIMARY", "NOT", "NULL", "UNIQUE", "CHECK",
	"DEFAULT", "COLLATE", "REFERENCES", "GENERATED", "AS", "ON", "DEFERRABLE",
}

// collated returns a statement with the collations of the columns of times that it makes: CREATE
// TABLE and ALTER TABLE … ADD. A column with a COLLATE of its own keeps that one.
func collated(s sqltext.Statement) string {
	tokens := s.Tokens
	word := func(i int, any ...string) bool {
		return i < len(tokens) && slices.ContainsFunc(any, func(w string) bool { return tokens[i].Is(w) })
	}
	sign := func(i int, c string) bool { return i < len(tokens) && tokens[i].Sign(c) }
	var text strings.Builder
	written := 0
	// column adds the collation to the definition of a column that begins at a token, and returns
	// where it ends.
	column := func(i int) int {
		from := i + 1
		end := from
		for depth := 0; end < len(tokens) && (depth > 0 || !sign(end, ",") && !sign(end, ")") &&
			!word(end, afterType...)); end++ {
			if sign(end, "(") {
				depth++
			} else if sign(end, ")") {
				depth--
			}
		}
		var declared strings.Builder
		for _, t := range tokens[from:min(end, len(tokens))] {
			declared.WriteString(" " + t.Value)
		}
		rest, own := end, false
		for depth := 0; rest < len(tokens) && (depth > 0 || !sign(rest, ",") && !sign(rest, ")")); rest++ {
			if sign(rest, "(") {
				depth++
			} else if sign(rest, ")") {
				depth--
			}
			own = own || depth == 0 && word(rest, "COLLATE")
		}
		if kind := kindOf(declared.String()); kind != notTime && !own {
			at, before, after := len(s.Text), "\n", "" // behind a comment, too
			if end < len(tokens) {
				at, before, after = tokens[end].Pos, "", " "
			}
			text.WriteString(s.Text[written:at] + before + " COLLATE " + string(kind) + after)
			written = at
		}
		return rest
	}
	switch {
	case word(0, "CREATE"):
		i := 1
		for word(i, "TEMP", "TEMPORARY") {
			i++
		}
		if !word(i, "TABLE") {
			return s.Text
		}
		for ; i < len(tokens) && !sign(i, "("); i++ {
			if word(i, "AS", "SELECT") { // the types of the columns are SQLite's
				return s.Text
			}
		}
		for i++; i < len(tokens) && !word(i, "CONSTRAINT", "PRIMARY", "UNIQUE", "CHECK", "FOREIGN"); i++ {
			if i = column(i); !sign(i, ",") {
				break
			}
		}
	case word(0, "ALTER") && word(1, "TABLE"):
		for i := 2; i < len(tokens); i++ {
			if word(i, "ADD") {
				if word(i+1, "COLUMN") {
					i++
				}
				column(i + 1)
				break
			}
		}
	}
	return text.String() + s.Text[written:]
}

// comparing returns a statement in which values that are times are compared as such with
// expressions: a column has a collation, the result of a function such as coalesce has none.
func comparing(s sqltext.Statement, values []any) string {
	var text strings.Builder
	written := 0
	isTime := func(t sqltext.Token) bool {
		n, err := strconv.Atoi(strings.TrimPrefix(t.Value, "$"))
		if t.Kind != sqltext.Parameter || err != nil || n < 1 || n > len(values) {
			return false
		}
		v, ok := values[n-1].(string)
		if !ok || len(v) <= len(time.DateOnly) {
			return false
		}
		_, ok = timetext.Parse(v)
		return ok
	}
	collate := func(t sqltext.Token) {
		end := t.Pos + len(t.Value)
		text.WriteString(s.Text[written:end] + " COLLATE " + string(instant))
		written = end
	}
	compares := func(t sqltext.Token) bool { return t.Kind == sqltext.Sign && strings.Contains("=<>!", t.Value) }
	tokens := s.Tokens
	for i, t := range tokens {
		if !isTime(t) {
			continue
		}
		before, after := i-1, i+1
		for before >= 0 && compares(tokens[before]) {
			before--
		}
		for after < len(tokens) && compares(tokens[after]) {
			after++
		}
		if before < i-1 {
			if before >= 0 && tokens[before].Sign(")") {
				collate(t)
			}
			continue
		}
		if after > i+1 && after+1 < len(tokens) && tokens[after].Kind == sqltext.Word && tokens[after+1].Sign("(") {
			collate(t)
			continue
		}
		// Of x BETWEEN $1 AND $2.
		of := i
		if i >= 2 && tokens[i-1].Is("AND") && tokens[i-2].Kind == sqltext.Parameter {
			of = i - 2
		}
		if of >= 2 && tokens[of-1].Is("BETWEEN") {
			left := of - 2
			if tokens[left].Is("NOT") {
				left--
			}
			if left >= 0 && tokens[left].Sign(")") {
				collate(t)
			}
		}
	}
	return text.String() + s.Text[written:]
}

// shown returns a value of a column as it is in results. SQLite's driver returns a time of what it
// can read in some types.
func shown(v any, declared string) any {
	kind := kindOf(declared)
	t, ok := v.(time.Time)
	if text, is := v.(string); is && (kind != notTime || declared == "" && ownForm(text)) {
		t, ok = timetext.Parse(text)
	}
	switch {
	case ok && kind == day:
		return t.UTC().Format(time.DateOnly)
	case ok:
		return t
	}
	if scale, ok := exactScale(declared); ok {
		switch n := v.(type) {
		case int64:
			return strconv.FormatInt(n, 10) + strings.TrimSuffix("."+strings.Repeat("0", scale), ".")
		case float64:
			return strconv.FormatFloat(n, 'f', scale, 64)
		}
	}
	return v
}

// ownForm reports whether a text is a time as SQLite's functions write it.
func ownForm(s string) bool {
	const layout = "2006-01-02 15:04:05"
	return len(s) >= len(layout) && s[10] == ' ' && s[13] == ':' && s[16] == ':' &&
		strings.Trim(s[len(layout):], ".0123456789") == ""
}

// exactScale returns the digits after the point of a NUMERIC or DECIMAL of more digits than
// JavaScript's numbers have. Its values are texts, as on PostgreSQL.
func exactScale(declared string) (scale int, ok bool) {
	name, rest, _ := strings.Cut(strings.ToUpper(declared), "(")
	if name = strings.TrimSpace(name); name != "NUMERIC" && name != "DECIMAL" {
		return 0, false
	}
	digits, after, _ := strings.Cut(strings.TrimSuffix(strings.TrimSpace(rest), ")"), ",")
	n, err := strconv.Atoi(strings.TrimSpace(digits))
	if err != nil || n <= workspaces.NumberDigits {
		return 0, false
	}
	scale, _ = strconv.Atoi(strings.TrimSpace(after))
	return min(max(scale, 0), n), true
}

// withCollations is the version of a file (PRAGMA user_version) whose columns of times have
// collations.
const withCollations = 1

// upgrade gives the columns of times of a file their collations, once. A table in which two rows
// are the same by them, and one without row ids, is left as it is: times are compared there as
// texts.
func (d *Driver) upgrade(ctx context.Context, c *conn) error {
	if version, err := c.pragma(ctx, "user_version"); err != nil || version >= withCollations {
		return err
	}
	w, err := d.dial(ctx, uri(c.path), 2*d.o.Quota, false)
	if err != nil {
		return err
	}
	defer w.Close()
	var left []string
	for {
		failed, err := w.collateTables(ctx, left)
		if failed == "" || err == nil {
			if len(left) > 0 {
				slog.WarnContext(ctx,
					"times in tables of a workspace are compared as texts: two rows have the same time in a "+
						"unique column",
					"file", c.path, "tables", left)
			}
			return err
		}
		if code := errs.CodeOf(err); code != errs.Conflict && code != errs.Invalid {
			return err
		}
		left = append(left, failed)
	}
}

// collateTables is upgrade without some tables, in a transaction. It returns the table that failed.
func (c *conn) collateTables(ctx context.Context, without []string) (failed string, err error) {
	err = c.transaction(ctx, func() error {
		all, err := c.objects(ctx)
		if err != nil {
			return err
		}
		var changed []string
		for _, o := range all {
			if o.kind != "table" || o.implied || o.name == recorded || slices.Contains(without, o.name) {
				continue
			}
			s, err := sqltext.Single(sqltext.SQLite, o.sql)
			if err != nil || s.Has("ROWID") {
				continue
			}
			text := collated(s)
			if text == o.sql {
				continue
			}
			if len(changed) == 0 {
				if err := c.exec(ctx, "PRAGMA writable_schema = 1"); err != nil {
					return err
				}
			}
			if err := c.exec(
				ctx, "UPDATE sqlite_schema SET sql = $1 WHERE type = 'table' AND name = $2", text, o.name,
			); err != nil {
				return err
			}
			changed = append(changed, o.name)
		}
		if len(changed) > 0 {
			version, err := c.pragma(ctx, "schema_version")
			if err != nil {
				return err
			}
			if err := c.exec(ctx, fmt.Sprintf("PRAGMA schema_version = %d", version+1)); err != nil {
				return err
			}
			if err := c.exec(ctx, "PRAGMA writable_schema = RESET"); err != nil {
				return err
			}
			for _, name := range changed {
				if err := c.exec(ctx, "REINDEX "+quote(name)); err != nil {
					failed = name
					return err
				}
			}
		}
		return c.exec(ctx, fmt.Sprintf("PRAGMA user_version = %d", withCollations))
	})
	return failed, err
}

// pragma returns a number of the file.
func (c *conn) pragma(ctx context.Context, name string) (n int64, err error) {
	err = c.read(ctx, "PRAGMA "+name, func(row []driver.Value) error {
		n, _ = row[0].(int64)
		return nil
	})
	return n, err
}
