package colors

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/limits/limiter"
	"github.com/tenantcontent/tenantcontent/internal/text/escapes"
	"github.com/tenantcontent/tenantcontent/internal/text/rawjson"
)

const (
	// batch is how many colors an import writes at once.
	batch = 500
	// maxElements bounds an import, which keeps SQLite's other writers waiting.
	maxElements = 250000
	// maxElement is how many bytes an element may have, with what is read ahead of it.
	maxElement = 256 << 10

	// maxImports is how many imports write at once, each with a connection and another one to read
	// its file. Imports of one tenant would hold theirs while they wait for each other.
	maxImports = 4
	maxWait    = 30 * time.Second
)

// exported is one element of an export.
type exported struct {
	Key   string `json:"key"`
	Color string `json:"color"`
}

// Export writes the palette as a JSON array of {key, color}, ordered by key, only the colors with
// this source when it is not "". It needs the role Designer. Errors: errs.Forbidden, before the
// first byte.
func (s *Service) Export(ctx context.Context, source string, w io.Writer) error {
	a, err := actor.Allowed(ctx, actor.ColorWrite)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(w, 64<<10)
	before := "["
	for c, err := range s.store.All(ctx, a.Tenant, source) {
		if err != nil {
			return err
		}
		element, err := json.Marshal(exported{c.Key, c.Color})
		if err != nil {
			return err
		}
		_, _ = out.WriteString(before) // bufio keeps the error for Flush
		_, _ = out.Write(element)
		before = ",\n"
	}
	if before == "[" {
		_, _ = out.WriteString("[")
	}
	_, _ = out.WriteString("]\n")
	return out.Flush()
}

// Import reads a JSON array of {key, color, source?} and adds or overwrites the colors in one
// transaction; a key given twice has the values of its last element, and a color keeps its source
// if no element has one. It returns the number of distinct keys. It needs the role Designer.
//
// The file is read twice: once to check it, before a transaction begins, and once to write it. Both
// stream it, so that memory grows with the number of keys and not with the size of the file.
// Imports into a tenant wait for each other, up to 30 seconds.
// Errors: errs.Forbidden; errs.Invalid naming the first bad element and what is wrong with it, and
// nothing is written; errs.Unavailable when other imports take too long.
func (s *Service) Import(ctx context.Context, r io.ReadSeeker) (int, error) {
	a, err := actor.Allowed(ctx, actor.ColorWrite)
	if err != nil {
		return 0, err
	}
	seen := map[string]struct{}{}
	err = elements(r, func(c Color) error {
		seen[c.Key] = struct{}{}
		return nil
	})
	if err != nil {
		return 0, err
	}
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return 0, err
	}
	leave, err := s.importing.Acquire(ctx, 1, a.Tenant)
	if err != nil {
		return 0, limiter.Unavailable(err, "Other imports are under way. Try again.")
	}
	defer leave()
	in := importer{store: s.store, feed: s.feed, tenant: a.Tenant, at: map[string]int{}}
	err = s.store.InTx(ctx, func(ctx context.Context) error {
		if err := s.store.Lock(ctx, a.Tenant); err != nil {
			return err
		}
		now := s.clock.Stamp()
		err := elements(r, func(c Color) error {
			c.Tenant, c.CreatedAt, c.UpdatedAt = a.Tenant, now, now
			return in.add(ctx, c)
		})
		if err != nil {
			return err
		}
		return in.flush(ctx)
	})
	return len(seen), err
}

// importer gathers colors and writes them in batches.
type importer struct {
	store  Store
	feed   *entity.Changes
	tenant string
	batch  []Color
	at     map[string]int // key to its place in batch
}

func (in *importer) add(ctx context.Context, c Color) error {
	if at, ok := in.at[c.Key]; ok {
		if c.Source == nil {
			c.Source = in.batch[at].Source
		}
		in.batch[at] = c
		return nil
	}
	in.at[c.Key] = len(in.batch)
	in.batch = append(in.batch, c)
	if len(in.batch) < batch {
		return nil
	}
	return in.flush(ctx)
}

func (in *importer) flush(ctx context.Context) error {
	if len(in.batch) == 0 {
		return nil
	}
	err := in.store.PutAll(ctx, in.tenant, in.batch)
	if err == nil && in.feed != nil {
		keys := make([]entity.Key, len(in.batch))
		for i, c := range in.batch {
			keys[i] = entity.Key{Kind: Kind, ID: c.Key}
		}
		err = in.feed.Each(ctx, in.tenant, entity.ActionUpdate, keys...)
	}
	in.batch = in.batch[:0]
	clear(in.at)
	return err
}

// elements reads and checks the elements of an import, one after the other.
func elements(r io.Reader, one func(Color) error) error {
	src := &source{r: r, i: -1}
	in := bufio.NewReaderSize(src, 64<<10)
	if mark, _ := in.Peek(3); string(mark) == "\xef\xbb\xbf" { // a byte order mark
		_, _ = in.Discard(len(mark))
	}
	dec := json.NewDecoder(in)
	start, err := dec.Token()
	if err != nil {
		return src.fault(err, "The file is not JSON.")
	}
	if start != json.Delim('[') {
		return errs.New(errs.Invalid, "The file is not a JSON array.")
	}
	for i := 0; dec.More(); i++ {
		if i == maxElements {
			return errs.New(errs.Invalid, "The file has more than %d elements: split it.", maxElements)
		}
		src.next(i)
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return src.fault(err, "Element %d is not JSON.", i)
		}
		c, err := element(raw)
		if err != nil {
			return errs.Wrap(errs.Invalid, err, "Element %d: %s.", i, errs.MessageOf(err))
		}
		if err := one(c); err != nil {
			return err
		}
	}
	if _, err := dec.Token(); err != nil {
		return src.fault(err, "The file ends in the middle of the array.")
	}
	src.next(-1)
	if _, err := dec.Token(); err != io.EOF {
		return src.fault(err, "The file goes on after the array.")
	}
	return nil
}

// element reads and checks {key, color, source?}. Names are matched exactly: encoding/json would
// take "KEY" for "key". Of a name given twice the last one counts.
func element(raw json.RawMessage) (Color, error) {
	var key, color, source json.RawMessage
	object := rawjson.Each(raw, func(name string, value json.RawMessage) {
		switch name {
		case "key":
			key = value
		case "color":
			color = value
		case "source":
			source = value
		}
	})
	if !object {
		return Color{}, errs.New(errs.Invalid, "not an object")
	}
	var c Color
	var err error
	if c.Key, err = text("key", key); err != nil {
		return Color{}, err
	}
	if c.Color, err = text("color", color); err != nil {
		return Color{}, err
	}
	if source != nil && string(source) != "null" {
		from, err := text("source", source)
		if err != nil {
			return Color{}, err
		}
		if from != "" {
			c.Source = &from
		}
	}
	return c, c.check(raw)
}

// text reads a member that must be a string.
func text(name string, value json.RawMessage) (string, error) {
	if value == nil {
		return "", errs.New(errs.Invalid, "%s is missing", name)
	}
	s, ok := rawjson.Text(value)
	if !ok {
		return "", errs.New(errs.Invalid, "%s is not a string", name)
	}
	return s, nil
}

// check returns errs.Invalid for an element that cannot be imported.
func (c Color) check(raw json.RawMessage) error {
	if err := validKey(c.Key); err != nil {
		return err
	}
	if !utf8.Valid(raw) || escapes.Bad(raw) {
		return errs.New(errs.Invalid, "not UTF-8, or with NUL characters or halves of surrogate pairs")
	}
	if !Valid(c.Color) {
		return errs.New(errs.Invalid, "%q is neither a hex nor a palette color", short(c.Color))
	}
	if c.Source != nil && (utf8.RuneCountInString(*c.Source) > 255 || strings.Contains(*c.Source, "\x00")) {
		return errs.New(errs.Invalid, "source must have at most 255 characters and no NUL")
	}
	return nil
}

// short shortens a text for a message.
func short(s string) string {
	if r := []rune(s); len(r) > 40 {
		return string(r[:40]) + "…"
	}
	return s
}

// source reads a file. It distinguishes an invalid file from one that could not be read, and limits
// the length of elements.
type source struct {
	r    io.Reader
	err  error
	i    int // the element that is being read
	left int // bytes until it is too long
}

// next begins an element.
func (s *source) next(i int) { s.i, s.left = i, maxElement }

func (s *source) Read(p []byte) (int, error) {
	if s.i >= 0 && s.left <= 0 && s.err == nil {
		s.err = errs.New(errs.Invalid, "Element %d is too long.", s.i)
	}
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.r.Read(p)
	s.left -= n
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

func (s *source) fault(err error, format string, args ...any) error {
	if s.err != nil {
		return s.err
	}
	return errs.Wrap(errs.Invalid, err, format, args...)
}
