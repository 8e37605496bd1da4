// Package transfer implements entity.Transferer for any kind with functions of the kind, and reads
// the columns of rows from archives.
//
// Nouns with a Transferer import it.
package transfer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/text/escapes"
	"github.com/tenantcontent/tenantcontent/internal/text/rawjson"
	"github.com/tenantcontent/tenantcontent/internal/text/uuids"
)

// timeText is the format of times in rows: UTC, with microseconds.
const timeText = "2006-01-02T15:04:05.000000Z"

// Time formats a time for a row.
func Time(t time.Time) string { return t.UTC().Format(timeText) }

// Bad returns an errs.Invalid that names a row.
func Bad(k entity.Key, format string, args ...any) error {
	return errs.New(errs.Invalid, "%s %s: %s", k.Kind, Short(k.ID), fmt.Sprintf(format, args...))
}

// Why returns an errs.Invalid that names a row, with the message and the cause of err. It returns
// errors with other codes unchanged.
func Why(k entity.Key, err error) error {
	why, ok := errors.AsType[*errs.Error](err)
	if !ok || why.Code != errs.Invalid {
		return err
	}
	return errs.Wrap(errs.Invalid, why.Cause, "%s %s: %s", k.Kind, Short(k.ID), why.Message)
}

// Unfit returns the reason why valid JSON cannot be a part of a row, as the end of a sentence, or
// "". A kind whose entities have free JSON must refuse such JSON, because an archive cannot contain
// it.
func Unfit(data json.RawMessage) string {
	switch {
	case escapes.Bad(data):
		return "must not have NUL characters or halves of surrogate pairs"
	case TooDeep(data):
		return fmt.Sprintf("must not be nested more than %d levels deep", MaxNesting)
	}
	return ""
}

// MaxNesting is the most levels of free JSON. A document that contains such JSON in a list is
// within the limits of common decoders: 512 levels in PHP, about 1,000 in Java and Python, 10,000
// in Go.
const MaxNesting = 500

// TooDeep reports whether valid JSON is nested deeper than MaxNesting.
func TooDeep(data json.RawMessage) bool {
	if bytes.Count(data, []byte("{"))+bytes.Count(data, []byte("[")) <= MaxNesting {
		return false
	}
	deep, _ := rawjson.Shape(data)
	return deep > MaxNesting
}

// Short shortens a text for a message.
func Short(s string) string {
	if r := []rune(s); len(r) > 64 {
		return string(r[:64]) + "…"
	}
	return s
}

// Chunks returns consecutive parts of at most 500 elements.
func Chunks[T any](all []T) iter.Seq[[]T] { return slices.Chunk(all, chunk) }

// Columns reads the columns of a row from an archive. Its error is that of the first invalid
// column. Names are matched exactly, and columns that are not read are ignored.
type Columns struct {
	key     entity.Key
	members map[string]json.RawMessage
	err     error
}

// Read returns the Columns of a row.
func Read(r entity.Row) *Columns {
	c, ok := &Columns{key: r.Key}, false
	if c.members, ok = rawjson.Members(r.JSON); !ok || !utf8.Valid(r.JSON) {
		c.err = Bad(r.Key, "is not a JSON object")
	}
	return c
}

// ReadUUID is Read for a row whose id must be a UUID in lower case.
func ReadUUID(r entity.Row) *Columns {
	if id, ok := uuids.Parse(r.ID); !ok || id != r.ID {
		return &Columns{err: Bad(r.Key, "the id must be a UUID in lower case")}
	}
	return Read(r)
}

// Accept returns the first error, or else that of accept, naming the row.
func (c *Columns) Accept(accept func() error) error {
	if c.err != nil {
		return c.err
	}
	return Why(c.key, accept())
}

// read stores a column in dst. It returns false if the column is missing, null or of another type.
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

// Text returns a text, or "" if the column is missing.
func (c *Columns) Text(name string) string {
	if s := c.TextOrNull(name); s != nil {
		return *s
	}
	return ""
}

// TextOrNull returns a text, or nil if the column is missing.
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

// Flag returns a boolean, or otherwise if the column is missing.
func (c *Columns) Flag(name string, otherwise bool) bool {
	v := otherwise
	c.read(name, &v, "true or false")
	return v
}

// JSON returns raw JSON, or nil if the column is missing.
func (c *Columns) JSON(name string) json.RawMessage {
	raw := c.members[name]
	if c.err != nil || string(raw) == "null" {
		return nil
	}
	return raw
}

// Texts returns an object of texts, or nil if the column is missing.
func (c *Columns) Texts(name string) map[string]string {
	var all map[string]string
	c.read(name, &all, "an object of strings")
	return all
}

// Time returns a time with the precision that every database can store, or otherwise if the column
// is missing.
func (c *Columns) Time(name string, otherwise time.Time) time.Time {
	t := otherwise
	if c.read(name, &t, "a time such as 2026-11-20T20:31:00.123456Z") && (t.UTC().Year() < 1 || t.UTC().Year() > 9999) {
		c.err = Bad(c.key, "%s must be of the years 1 to 9999", name)
	}
	t = t.UTC().Truncate(time.Microsecond)
	if t.IsZero() && c.err == nil { // which is stored as a missing time
		c.err = Bad(c.key, "%s must be later than 0001-01-01T00:00:00Z", name)
	}
	return t
}

// IDs returns the ids of some values.
func IDs[T any](some []T, id func(T) string) []string {
	ids := make([]string, len(some))
	for i, v := range some {
		ids[i] = id(v)
	}
	return ids
}

// Set returns the set of some ids.
func Set(ids []string) map[string]bool {
	set := make(map[string]bool, len(ids))
	for _, id := range ids {
		set[id] = true
	}
	return set
}

// Directory looks up the principals of a tenant.
type Directory interface {
	Known(ctx context.Context, tenant string, ids []string) (map[string]bool, error)
}

// Known returns which of some principals exist. It passes each id to the directory once, and does
// not pass "".
func Known(ctx context.Context, d Directory, tenant string, ids []string) (map[string]bool, error) {
	asked := Set(ids)
	delete(asked, "")
	known := make(map[string]bool, len(asked))
	for batch := range Chunks(slices.Sorted(maps.Keys(asked))) {
		some, err := d.Known(ctx, tenant, batch)
		if err != nil {
			return nil, err
		}
		maps.Copy(known, some)
	}
	return known, nil
}
