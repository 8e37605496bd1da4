// Package port is what Porters share: reading the columns of a row that comes from elsewhere, the rules of an import,
// and whom its rows belong to.
//
// Nouns with a Porter import it.
package port

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
)

// Batch is how many rows a Porter reads or writes with one statement.
const Batch = 500

// timeText is how a row has a time: UTC, whole microseconds.
const timeText = "2006-01-02T15:04:05.000000Z"

// Time writes a time as a row has it.
func Time(t time.Time) string { return t.UTC().Format(timeText) }

// Row makes a row of columns, a struct with json tags. The same columns give the same bytes, and raw JSON in them stays
// as it is.
func Row(kind entity.Kind, id string, columns any) (entity.Row, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(columns)
	return entity.Row{Key: entity.Key{Kind: kind, ID: id}, JSON: bytes.TrimSuffix(b.Bytes(), []byte("\n"))}, err
}

// Bad is errs.Invalid about a row.
func Bad(k entity.Key, format string, args ...any) error {
	return errs.New(errs.Invalid, "%s %s: %s", k.Kind, Short(k.ID), fmt.Sprintf(format, args...))
}

// Why is errs.Invalid about a row, for the reason that another error gives; errors of other codes are passed on.
func Why(k entity.Key, err error) error {
	if errs.CodeOf(err) != errs.Invalid {
		return err
	}
	return errs.Wrap(errs.Invalid, err, "%s %s: %s", k.Kind, Short(k.ID), errs.MessageOf(err))
}

// Short keeps a message short however long the text is that it quotes.
func Short(s string) string {
	if r := []rune(s); len(r) > 64 {
		return string(r[:64]) + "…"
	}
	return s
}

// Check refuses rows of another kind and ids given twice. Errors: errs.Invalid.
func Check(kind entity.Kind, rows []entity.Row) error {
	seen := make(map[string]bool, len(rows))
	for _, r := range rows {
		if r.Kind != kind {
			return Bad(r.Key, "is not of the kind %s", kind)
		}
		if seen[r.ID] {
			return Bad(r.Key, "is given twice")
		}
		seen[r.ID] = true
	}
	return nil
}

// Arrive says what an import does with each row. Errors: errs.Conflict naming the first row that is there when the rule
// is Fail; errs.Invalid for an unknown rule.
func Arrive(rows []entity.Row, there func(id string) bool, rule entity.Rule) ([]entity.Arrival, error) {
	if !slices.Contains([]entity.Rule{entity.Skip, entity.Overwrite, entity.Fail}, rule) {
		return nil, errs.New(errs.Invalid, "updateRule must be one of skip, overwrite and fail")
	}
	out := make([]entity.Arrival, len(rows))
	for i, r := range rows {
		switch {
		case !there(r.ID):
			out[i] = entity.Created
		case rule == entity.Fail:
			return nil, errs.New(errs.Conflict, "%s %s exists already.", r.Kind, r.ID)
		case rule == entity.Overwrite:
			out[i] = entity.Updated
		default:
			out[i] = entity.Skipped
		}
	}
	return out, nil
}

// Owner gives a row's owner where the tenant knows it, else that of the landing, with a warning when the row has one.
func Owner(k entity.Key, owner string, known map[string]bool, l entity.Landing, warnings *[]string) string {
	switch {
	case owner == "":
		return l.Owner
	case known[owner] && owner != "*": // everyone is a principal, and owns nothing
		return owner
	}
	*warnings = append(*warnings, fmt.Sprintf("%s %s: its owner %s is not known here; %s owns it now.", k.Kind, k.ID, Short(owner), l.Owner))
	return l.Owner
}

// Chunks gives consecutive parts of at most Batch elements.
func Chunks[T any](all []T) func(yield func([]T) bool) {
	return slices.Chunk(all, Batch)
}

// Columns are the columns of a row that comes from elsewhere. The first one that is wrong stays the error. Names are
// matched exactly, and columns that nobody asks for are passed over.
type Columns struct {
	key     entity.Key
	members map[string]json.RawMessage
	err     error
}

// Read reads a row.
func Read(r entity.Row) *Columns {
	c := &Columns{key: r.Key}
	if !utf8.Valid(r.JSON) || json.Unmarshal(r.JSON, &c.members) != nil || c.members == nil {
		c.err = Bad(r.Key, "is not a JSON object")
	}
	return c
}

// Err is the first fault: errs.Invalid naming the row and the column.
func (c *Columns) Err() error { return c.err }

// read fills dst with a column. It reports false when the column is left out, null or wrong.
func (c *Columns) read(name string, dst any, want string) bool {
	raw, given := c.members[name]
	if !given || c.err != nil || string(raw) == "null" {
		return false
	}
	if json.Unmarshal(raw, dst) != nil {
		c.err = Bad(c.key, "%s must be %s", name, want)
		return false
	}
	return true
}

// Text gives a text, "" when it is left out.
func (c *Columns) Text(name string) string {
	if s := c.TextOrNull(name); s != nil {
		return *s
	}
	return ""
}

// TextOrNull gives a text, nil when it is left out.
func (c *Columns) TextOrNull(name string) *string {
	var s string
	if !c.read(name, &s, "a string") {
		return nil
	}
	if strings.IndexByte(s, 0) >= 0 {
		c.err = Bad(c.key, "%s must not have NUL characters", name)
		return nil
	}
	return &s
}

// Flag gives true or false, otherwise when it is left out.
func (c *Columns) Flag(name string, otherwise bool) bool {
	v := otherwise
	c.read(name, &v, "true or false")
	return v
}

// JSON gives raw JSON, nil when it is left out.
func (c *Columns) JSON(name string) json.RawMessage {
	var raw json.RawMessage
	c.read(name, &raw, "JSON")
	return raw
}

// Texts gives an object of texts, nil when it is left out.
func (c *Columns) Texts(name string) map[string]string {
	var all map[string]string
	c.read(name, &all, "an object of strings")
	return all
}

// Time gives a time as every database can keep it, otherwise when it is left out.
func (c *Columns) Time(name string, otherwise time.Time) time.Time {
	t := otherwise
	if c.read(name, &t, "a time such as 2026-11-20T20:31:00.123456Z") && (t.UTC().Year() < 1 || t.UTC().Year() > 9999) {
		c.err = Bad(c.key, "%s must be of the years 1 to 9999", name)
	}
	return t.UTC().Truncate(time.Microsecond)
}

// IDs gives the ids of rows.
func IDs(rows []entity.Row) []string {
	ids := make([]string, len(rows))
	for i, r := range rows {
		ids[i] = r.ID
	}
	return ids
}

// In gives a test for the ids of some values.
func In[T any](some []T, id func(T) string) func(id string) bool {
	there := make(map[string]bool, len(some))
	for _, v := range some {
		there[id(v)] = true
	}
	return func(id string) bool { return there[id] }
}

// Directory knows the principals of a tenant.
type Directory interface {
	Known(ctx context.Context, tenant string, ids []string) (map[string]bool, error)
}

// Known asks a directory for some principals, each once; "" is none.
func Known(ctx context.Context, d Directory, tenant string, ids []string) (map[string]bool, error) {
	ids = slices.Clone(ids)
	slices.Sort(ids)
	ids = slices.DeleteFunc(slices.Compact(ids), func(id string) bool { return id == "" })
	if len(ids) == 0 {
		return map[string]bool{}, nil
	}
	return d.Known(ctx, tenant, ids)
}

// Export gives rows in the order of ids, loaded batch by batch, so that it holds no connection while its caller works on
// a row. missing makes the error for one that is not there.
func Export(ids []string, load func(batch []string) (map[string]entity.Row, error), missing func(id string) error) iter.Seq2[entity.Row, error] {
	return func(yield func(entity.Row, error) bool) {
		for batch := range Chunks(ids) {
			rows, err := load(batch)
			if err != nil {
				yield(entity.Row{}, err)
				return
			}
			for _, id := range batch {
				row, ok := rows[id]
				if !ok {
					yield(entity.Row{}, missing(id))
					return
				}
				if !yield(row, nil) {
					return
				}
			}
		}
	}
}
