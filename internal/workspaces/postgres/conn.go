package postgres

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/sqltext"
	"github.com/tenantcontent/tenantcontent/internal/workspaces"
)

// conn is a connection of the role of a workspace.
type conn struct {
	pg       *pgconn.PgConn
	own      string // name of the schema and of the role
	settings string // as they were after the log-in
	used     time.Time
}

// settings returns the settings that the server reports of a session.
func settings(pg *pgconn.PgConn) string {
	var all []string
	for _, name := range []string{
		"TimeZone", "DateStyle", "IntervalStyle", "client_encoding", "standard_conforming_strings",
		"session_authorization", "is_superuser", "application_name",
	} {
		all = append(all, pg.ParameterStatus(name))
	}
	return strings.Join(all, "|")
}

// Usable implements connpool.Conn: the session is as it was after the log-in, and no transaction is
// open.
func (c *conn) Usable() bool {
	return !c.pg.IsClosed() && c.pg.TxStatus() == 'I' && settings(c.pg) == c.settings
}

// lost reports whether the server has ended the session while it was idle. It pings the server if
// that was long enough ago.
func (c *conn) lost(ctx context.Context) bool {
	if time.Since(c.used) < time.Second {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return c.pg.Ping(ctx) != nil
}

// Close implements connpool.Conn. A server that does not answer is not waited for.
func (c *conn) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	_ = c.pg.Close(ctx)
}

// session is a connection in the hands of a caller. It implements tenantsql.Backend.
type session struct {
	*conn
	d *Driver
}

// Query implements tenantsql.Backend.
func (l *session) Query(ctx context.Context, s sqltext.Statement, values []any) (out json.RawMessage, err error) {
	if err := l.check(ctx, s, values); err != nil {
		return nil, err
	}
	begin := "BEGIN"
	switch {
	case workspaces.ReadOnly(ctx):
		begin = "BEGIN READ ONLY"
	case !s.Has("RETURNING"):
		return l.statement(ctx, s, values)
	}
	err = l.transaction(ctx, begin, func() (err error) {
		out, err = l.statement(ctx, s, values)
		return err
	})
	return out, err
}

// check returns an error for a statement that a tenant may not run, or that has no room.
func (l *session) check(ctx context.Context, s sqltext.Statement, values []any) error {
	if err := allowed(s); err != nil || !s.Grows() {
		return err
	}
	if !workspaces.ReadOnly(ctx) {
		if _, err := workspaces.Room(ctx, 1); err != nil {
			return err
		}
	}
	return l.d.room(ctx, l.own, s, values)
}

func allowed(s sqltext.Statement) error {
	if err := s.Allowed([]string{"TRUNCATE"}, "TABLE", "INDEX", "VIEW"); err != nil {
		return err
	}
	return names(s)
}

// transaction runs fn between the statement begin and COMMIT.
func (l *session) transaction(ctx context.Context, begin string, fn func() error) (err error) {
	if err := l.exec(ctx, begin); err != nil {
		return err
	}
	defer func() {
		if err == nil || l.pg.IsClosed() {
			return
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = l.exec(ctx, "ROLLBACK") // a connection in a transaction is not used again
	}()
	if err := fn(); err != nil {
		return err
	}
	return l.exec(ctx, "COMMIT")
}

// exec runs a statement of the host.
func (l *session) exec(ctx context.Context, statement string, values ...string) error {
	raw := make([][]byte, len(values))
	for i, v := range values {
		raw[i] = []byte(v)
	}
	result := l.pg.ExecParams(ctx, statement, raw, nil, nil, nil).Read()
	return l.worded(ctx, result.Err, sqltext.Statement{})
}

// statement runs a statement of the tenant.
func (l *session) statement(
	ctx context.Context, s sqltext.Statement, values []any,
) (out json.RawMessage, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	types, err := l.types(ctx, s, values)
	if err != nil {
		return nil, err
	}
	raw := make([][]byte, len(values))
	for i, v := range values {
		if types != nil {
			raw[i], err = encodeAs(types[i], v)
		} else {
			raw[i] = encode(v)
		}
		if err != nil {
			return nil, errs.New(errs.Invalid, "params[%d]: %s", i, errs.MessageOf(err))
		}
	}
	if s.Grows() {
		stop := l.d.watch(ctx, l.own, cancel)
		defer func() {
			if stop() && err != nil {
				out, err = nil, l.d.full()
			}
		}()
	}
	result := l.pg.ExecParams(ctx, s.Text, raw, types, nil, nil)
	fields := result.FieldDescriptions()
	columns := make([]string, len(fields))
	for i, f := range fields {
		columns[i] = f.Name
	}
	rows := workspaces.NewRows(columns, l.d.o.Limits)
	row := make([]any, len(fields))
	var failed error
	for failed == nil && result.NextRow() {
		for i, v := range result.Values() {
			row[i] = decode(fields[i].DataTypeOID, fields[i].TypeModifier, v)
		}
		failed = rows.Add(row)
	}
	if failed != nil {
		cancel() // what is not read
		_, _ = result.Close()
		return nil, failed
	}
	if _, err := result.Close(); err != nil {
		return nil, l.worded(ctx, err, s)
	}
	if len(fields) == 0 {
		return json.RawMessage("[]"), nil
	}
	return rows.JSON(), nil
}

// worded turns an error of PostgreSQL into one for the tenant.
func (l *session) worded(ctx context.Context, err error, s sqltext.Statement) error {
	if err == nil {
		return nil
	}
	e, ok := errors.AsType[*pgconn.PgError](err)
	if ctx.Err() != nil && (!ok || e.Code == "57014") {
		if l.pg.IsClosed() { // the server did not answer the cancellation
			go l.d.terminate(l.conn)
		}
		return ctx.Err()
	}
	if !ok {
		return errs.Wrap(errs.Unavailable, err, "The connection to the workspace was lost: try again later.")
	}
	message := strings.NewReplacer(
		l.own+".", "", `"`+l.own+`"`, "of the workspace", l.own, "the workspace",
	).Replace(e.Message)
	switch class := e.Code[:min(2, len(e.Code))]; {
	case e.Code == "23505":
		return errs.Wrap(errs.Conflict, err, "%s", message)
	case e.Code == "25006" && workspaces.ReadOnly(ctx):
		return workspaces.ErrWrites
	case e.Code == "53400", e.Code == "53100":
		return errs.Wrap(
			errs.TooLarge, err,
			"The statement needs too much room for temporary files: read fewer rows, or sort fewer.",
		)
	case e.Code == "57014":
		return errs.Wrap(errs.Unavailable, err, "The statement took too long.")
	case e.Code == "55P03":
		return errs.Wrap(errs.Unavailable, err, "The workspace is being written: try again later.")
	case class == "40":
		return errs.Wrap(errs.Unavailable, err, "%s: try again.", message)
	case class == "08", class == "53", class == "57", class == "58", class == "XX", class == "F0":
		return errs.Wrap(errs.Unavailable, err, "The workspace failed: try again later.")
	}
	if strings.Contains(s.Text, "?") && !s.Has("$1") {
		message += ". " + sqltext.PlaceholderHint
	}
	return errs.Wrap(errs.Invalid, err, "%s", message)
}

// terminate ends what a connection runs at the server.
func (d *Driver) terminate(c *conn) {
	_ = d.asAdmin(context.Background(), func(ctx context.Context, admin *pgx.Conn) error {
		_, err := admin.Exec(
			ctx, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = $1 AND usename = $2",
			c.pg.PID(), c.own,
		)
		return err
	})
}

// Line implements tenantsql.Backend.
func (c *conn) Line(s sqltext.Statement, err error) int {
	e, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || e.Position < 1 {
		return 0
	}
	at := 0
	for range e.Position - 1 { // which counts characters
		_, size := utf8.DecodeRuneInString(s.Text[at:])
		at += size
	}
	return sqltext.LineOf(s.Text, at) - 1
}

// types returns the types that the parameters of a statement have, nil if no value depends on them:
// a list is an array or JSON, and a time with an offset is one of UTC where the type has no zone.
func (l *session) types(ctx context.Context, s sqltext.Statement, values []any) ([]uint32, error) {
	if !slices.ContainsFunc(values, func(v any) bool {
		if raw, ok := v.(json.RawMessage); ok {
			return raw[0] == '['
		}
		text, ok := v.(string)
		return ok && offsetTime.MatchString(text)
	}) {
		return nil, nil
	}
	described, err := l.pg.Prepare(ctx, "", s.Text, nil)
	if err != nil {
		return nil, l.worded(ctx, err, s)
	}
	return described.ParamOIDs, nil
}

// offsetTime matches a time with an offset from UTC.
var offsetTime = regexp.MustCompile(`^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?[+-]\d\d(:?\d\d)?$`)

// encodeAs returns a parameter as PostgreSQL reads it for a type. It returns errs.Invalid for a
// list that is not one of the type.
func encodeAs(oid uint32, v any) ([]byte, error) {
	switch v := v.(type) {
	case json.RawMessage:
		if element, ok := elementOf(oid); ok && v[0] == '[' {
			return appendArray(nil, v, element, 0)
		}
	case string:
		if offsetTime.MatchString(v) && (oid == pgtype.TimestampOID || oid == pgtype.DateOID) {
			for _, layout := range []string{
				"2006-01-02T15:04:05.999999999Z07:00", "2006-01-02T15:04Z07:00",
				"2006-01-02T15:04:05.999999999Z0700", "2006-01-02T15:04:05.999999999Z07",
			} {
				if t, err := time.Parse(layout, strings.Replace(v, " ", "T", 1)); err == nil {
					return []byte(t.UTC().Format("2006-01-02T15:04:05.999999999Z")), nil
				}
			}
		}
	}
	return encode(v), nil
}

// appendArray appends the literal of an array for a list of JSON.
func appendArray(out []byte, list json.RawMessage, element uint32, depth int) ([]byte, error) {
	const deepest = 6 // dimensions of an array of PostgreSQL
	var all []json.RawMessage
	if err := json.Unmarshal(list, &all); err != nil || depth == deepest {
		return nil, errs.New(errs.Invalid, "it is not a list of values of at most %d levels.", deepest)
	}
	out = append(out, '{')
	for i, one := range all {
		if i > 0 {
			out = append(out, ',')
		}
		if one = bytes.TrimSpace(one); one[0] == '[' && element != pgtype.JSONOID && element != pgtype.JSONBOID {
			var err error
			if out, err = appendArray(out, one, element, depth+1); err != nil {
				return nil, err
			}
			continue
		}
		v, err := workspaces.Param(one)
		if err != nil {
			return nil, err
		}
		if v == nil {
			out = append(out, "NULL"...)
			continue
		}
		text, err := encodeAs(element, v)
		if err != nil {
			return nil, err
		}
		out = append(out, '"')
		for _, c := range text {
			if c == '"' || c == '\\' {
				out = append(out, '\\')
			}
			out = append(out, c)
		}
		out = append(out, '"')
	}
	return append(out, '}'), nil
}

// encode returns a parameter as PostgreSQL reads it for whatever type it has in the statement.
func encode(v any) []byte {
	switch v := v.(type) {
	case nil:
		return nil
	case bool:
		return strconv.AppendBool(nil, v)
	case int64:
		return strconv.AppendInt(nil, v, 10)
	case float64:
		return strconv.AppendFloat(nil, v, 'g', -1, 64)
	case []byte:
		return []byte(`\x` + hex.EncodeToString(v))
	case json.RawMessage:
		return v
	}
	return fmt.Append(nil, v)
}

// decode returns a value of a result. Modifier is that of its type, which has the digits of a
// numeric.
func decode(oid uint32, modifier int32, raw []byte) any {
	if raw == nil {
		return nil
	}
	text := string(raw)
	switch oid {
	case pgtype.BoolOID:
		return text == "t"
	case pgtype.Int2OID, pgtype.Int4OID, pgtype.Int8OID, pgtype.OIDOID:
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n
		}
	case pgtype.Float4OID, pgtype.Float8OID:
		if f, err := strconv.ParseFloat(text, 64); err == nil {
			return f
		}
	case pgtype.NumericOID:
		return numeric(text, modifier)
	case pgtype.ByteaOID:
		if b, err := hex.DecodeString(strings.TrimPrefix(text, `\x`)); err == nil {
			return b
		}
	case pgtype.JSONOID, pgtype.JSONBOID:
		return json.RawMessage(text)
	case pgtype.TimestamptzOID:
		if t, err := time.Parse("2006-01-02 15:04:05.999999Z07", text); err == nil {
			return t
		}
	case pgtype.TimestampOID: // counts as UTC
		if t, err := time.Parse("2006-01-02 15:04:05.999999", text); err == nil {
			return t
		}
	}
	if element, ok := elementOf(oid); ok && oid != pgtype.ByteaArrayOID {
		if all, rest, ok := array(text, element, modifier); ok && rest == "" {
			return all
		}
	}
	return text
}

// numeric returns a number, or the text of a column that is declared with more digits than
// JavaScript's numbers have, so that all values of a column have one type. An integer beyond 2^53
// is a text, as one of a bigint is.
func numeric(text string, modifier int32) any {
	if precision := (modifier - 4) >> 16 & 0xffff; modifier >= 4 && precision > workspaces.NumberDigits {
		return text
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || !strings.Contains(text, ".") { // more digits than an int64 has
		return text
	}
	return f
}

// builtin are the types that every PostgreSQL has.
var builtin = pgtype.NewMap()

// elementOf returns the type of the elements of an array, false if the type is not an array.
func elementOf(oid uint32) (element uint32, ok bool) {
	known, ok := builtin.TypeForOID(oid)
	if !ok {
		return 0, false
	}
	codec, ok := known.Codec.(*pgtype.ArrayCodec)
	if !ok {
		return 0, false
	}
	return codec.ElementType.OID, true
}

// array reads a literal such as {1,NULL,"a b",{2}} as JSON.
func array(text string, element uint32, modifier int32) (all json.RawMessage, rest string, ok bool) {
	if !strings.HasPrefix(text, "{") {
		return nil, "", false
	}
	values := []json.RawMessage{}
	for rest = text[1:]; ; rest = rest[1:] {
		var value json.RawMessage
		switch {
		case strings.HasPrefix(rest, "{"):
			if value, rest, ok = array(rest, element, modifier); !ok {
				return nil, "", false
			}
		case strings.HasPrefix(rest, `"`):
			var b strings.Builder
			i := 1
			for ; i < len(rest) && rest[i] != '"'; i++ {
				if rest[i] == '\\' && i+1 < len(rest) {
					i++
				}
				b.WriteByte(rest[i])
			}
			if i == len(rest) {
				return nil, "", false
			}
			value, rest = item(element, modifier, []byte(b.String())), rest[i+1:]
		default:
			end := strings.IndexAny(rest, ",}")
			if end < 0 {
				return nil, "", false
			}
			if word := rest[:end]; word == "NULL" {
				value = json.RawMessage("null")
			} else if word != "" {
				value = item(element, modifier, []byte(word))
			}
			rest = rest[end:]
		}
		if value != nil {
			values = append(values, value)
		}
		if strings.HasPrefix(rest, "}") {
			all, err := json.Marshal(values)
			return all, rest[1:], err == nil
		}
		if !strings.HasPrefix(rest, ",") {
			return nil, "", false
		}
	}
}

// item encodes an element of an array as a value of a row is.
func item(oid uint32, modifier int32, raw []byte) json.RawMessage {
	one := workspaces.NewRows([]string{""}, workspaces.Limits{Bytes: 1 << 30})
	if err := one.Add([]any{decode(oid, modifier, raw)}); err != nil {
		return json.RawMessage("null")
	}
	const front, back = len(`[{"":`), len(`}]`)
	out := one.JSON()
	return slices.Clone(out[front : len(out)-back])
}
