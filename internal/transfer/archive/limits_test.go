package archive_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/transfer/archive"
)

// TestWriterKeepsLimitsSize: for each limit the largest archive within it can be written, and a
// Reader with the same limit accepts it. For the next larger one the Writer names the limit.
func TestWriterKeepsLimitsSize(t *testing.T) {
	row := func(w *archive.Writer, id, content string) error {
		return w.Row(entity.Row{Key: entity.Key{Kind: "tag", ID: id}, JSON: []byte(content)})
	}
	file := func(w *archive.Writer, path string, size int) error {
		return w.File("1", entity.File{Path: path, Size: int64(size)}, strings.NewReader(strings.Repeat("x", size)))
	}
	deep := func(levels int) string { return `{"type":"tagged","data":` + nested(levels) + `}` }
	entries := func(n int, entry string) archive.Header {
		h := archive.Header{}
		for range n {
			h.Entries = append(h.Entries, json.RawMessage(entry))
		}
		return h
	}
	rows := func(n int) archive.Header { return archive.Header{Counts: map[entity.Kind]int{"tag": n}} }
	none := func(*archive.Writer, int) error { return nil }
	for name, c := range map[string]struct {
		limits  archive.Limits
		last    int // the largest n that is accepted
		header  func(n int) archive.Header
		write   func(w *archive.Writer, n int) error
		message string
	}{
		"members": {archive.Limits{Members: 12}, 10, rows, func(w *archive.Writer, n int) error {
			for i := range n {
				if err := row(w, fmt.Sprint(i), "{}"); err != nil {
					return err
				}
			}
			return nil
		}, "at most 12 members"},
		"row": {archive.Limits{Row: 1000}, 1000 - len(`{"a":""}`), func(int) archive.Header { return rows(1) },
			func(w *archive.Writer, n int) error {
				return row(w, "a", `{"a":"`+strings.Repeat("x", n)+`"}`)
			}, "tag a has 1001 bytes"},
		"levels": {archive.Limits{}, 10_000, func(int) archive.Header { return rows(1) },
			func(w *archive.Writer, n int) error {
				return row(w, "a", nested(n))
			}, `"entities/tag/a.json" is not a JSON object`},
		"bytes": {archive.Limits{Bytes: 50 * 512}, 43 * 512, func(int) archive.Header { return archive.Header{} },
			func(w *archive.Writer, n int) error { return file(w, "a", n) }, "at most 25600 bytes when it is unpacked"},
		"name": {archive.Limits{}, 4096 - len("files/1/"), func(int) archive.Header { return archive.Header{} },
			func(w *archive.Writer, n int) error { return file(w, strings.Repeat("x", n), 1) }, "too long a name"},
		"names": {archive.Limits{Members: 1000}, 255, func(int) archive.Header {
			return archive.Header{}
		}, func(w *archive.Writer, n int) error {
			for i := range n {
				if err := file(w, fmt.Sprintf("%s%03d", strings.Repeat("x", 4085), i), 0); err != nil {
					return err
				}
			}
			return nil
		}, ""},
		"content type": {archive.Limits{}, 255, func(int) archive.Header {
			return archive.Header{}
		}, func(w *archive.Writer, n int) error {
			return w.File("1", entity.File{Path: "a", ContentType: strings.Repeat("x", n)}, strings.NewReader(""))
		}, "bad content type"},
		"nesting of data": {archive.Limits{}, archive.MaxNesting, func(n int) archive.Header {
			return entries(1, deep(n))
		}, none, "bundle.json"},
		"entries": {archive.Limits{}, 100_000 - 10, func(n int) archive.Header {
			return entries(n, `{}`)
		}, none, ""},
		"header": {archive.Limits{}, 16<<20 - 120, func(n int) archive.Header {
			return archive.Header{Bundle: archive.Bundle{Name: strings.Repeat("x", n)}}
		}, none, ""},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			write := func(n int) ([]byte, error) {
				var b bytes.Buffer
				w, err := archive.NewWriter(&b, c.header(n), c.limits)
				if err == nil {
					err = c.write(w, n)
				}
				if err == nil {
					err = w.Close()
				}
				return b.Bytes(), err
			}
			packed, err := write(c.last)
			is.NoErr(err)
			_, err = unpack(bytes.NewReader(packed), c.limits)
			is.NoErr(err)
			most := c.last + 1
			if c.message == "" { // it depends on the other content
				most = c.last + 20
			}
			if name == "bytes" {
				most = c.last + 512
			}
			_, err = write(most)
			is.Equal(errs.CodeOf(err), errs.Invalid)
			is.True(strings.Contains(errs.MessageOf(err), c.message))
		})
	}
}

// TestReaderNamesTooManyMembers: a Reader refuses an archive by the counts of its header, and names
// the number of members.
func TestReaderNamesTooManyMembers(t *testing.T) {
	is := is.New(t)
	var b bytes.Buffer
	w, err := archive.NewWriter(&b, archive.Header{Counts: map[entity.Kind]int{"tag": 20}}, archive.Limits{})
	is.NoErr(err)
	for i := range 20 {
		is.NoErr(w.Row(entity.Row{Key: entity.Key{Kind: "tag", ID: fmt.Sprint(i)}, JSON: []byte(`{}`)}))
	}
	is.NoErr(w.Close())
	_, err = archive.NewReader(&b, archive.Limits{Members: 21})
	is.Equal(errs.CodeOf(err), errs.Invalid)
	is.True(strings.Contains(errs.MessageOf(err), "at most 21 members, and this one has 22: "))
}

// TestHeaderCheck: Check refuses a header with which no archive can exist, before anything is
// written.
func TestHeaderCheck(t *testing.T) {
	is := is.New(t)
	counts := map[entity.Kind]int{"tag": 6, "color": 4}
	is.NoErr(archive.Header{Counts: counts}.Check(archive.Limits{Members: 12}))
	for message, c := range map[string]struct {
		header archive.Header
		limits archive.Limits
	}{
		"at most 11 members": {archive.Header{Counts: counts}, archive.Limits{Members: 11}},
		"at most 16777216 are allowed": {
			archive.Header{Bundle: archive.Bundle{Name: strings.Repeat("x", 16<<20)}}, archive.Limits{},
		},
	} {
		err := c.header.Check(c.limits)
		is.Equal(errs.CodeOf(err), errs.Invalid)
		is.True(strings.Contains(errs.MessageOf(err), message))
		var b bytes.Buffer
		_, written := archive.NewWriter(&b, c.header, c.limits)
		is.Equal(errs.MessageOf(written), errs.MessageOf(err))
	}
}

// nested returns an object of so many levels.
func nested(levels int) string {
	return strings.Repeat(`{"a":`, levels-1) + `{}` + strings.Repeat(`}`, levels-1)
}

// TestAnyRatioSize: with any configured ratio, content that packs 10,000 times smaller does not
// look like a bomb, at any byte of it.
func TestAnyRatioSize(t *testing.T) {
	for _, ratio := range []int64{1, 2, 3, 4, 10, 50, 200, 5000, 1 << 50} {
		t.Run(fmt.Sprint(ratio), func(t *testing.T) {
			is, limits := is.New(t), archive.Limits{Ratio: ratio}
			var b bytes.Buffer
			w, err := archive.NewWriter(&b, archive.Header{}, limits)
			is.NoErr(err)
			for i, content := range []string{
				"", strings.Repeat("\x00", 3<<20), random(1 << 18), strings.Repeat("x", 1<<20), random(100),
			} {
				is.NoErr(w.File(
					"1", entity.File{Path: fmt.Sprint(i), Size: int64(len(content))},
					strings.NewReader(content),
				))
			}
			is.NoErr(w.Close())
			size := b.Len()
			all, err := unpack(inDrops{&b}, limits)
			is.NoErr(err)
			is.Equal(len(all), 5)
			if ratio > 1000 {
				is.True(size < 400_000) // most of the content is not stored uncompressed
			}
		})
	}
}

// inDrops reads a few bytes at a time, so that a Reader has not read ahead of what it unpacks.
type inDrops struct{ io.Reader }

func (b inDrops) Read(p []byte) (int, error) { return b.Reader.Read(p[:min(len(p), 256)]) }

// TestWriterClashes: a Writer refuses the names of files and the content of rows that a Reader
// refuses.
func TestWriterClashes(t *testing.T) {
	row := func(kind, id, content string) func(*archive.Writer) error {
		return func(w *archive.Writer) error {
			return w.Row(entity.Row{Key: entity.Key{Kind: entity.Kind(kind), ID: id}, JSON: []byte(content)})
		}
	}
	files := func(paths ...string) func(*archive.Writer) error {
		return func(w *archive.Writer) error {
			for _, p := range paths {
				if err := w.File("1", entity.File{Path: p}, strings.NewReader("")); err != nil {
					return err
				}
			}
			return w.Close()
		}
	}
	for name, c := range map[string]struct {
		write   func(w *archive.Writer) error
		message string
	}{
		"folder":       {files("a", "a-b", "a/b"), `"files/1/a" is a file, and a folder of "files/1/a/b" too`},
		"folder first": {files("A/b", "x", "a"), `"files/1/a" is a file, and a folder of "files/1/A/b" too`},
		"case": {
			files("a/README.md", "a/readme.md"),
			`"files/1/a/readme.md" is there twice, or another one differs in case alone`,
		},
		"Unicode form":   {files("é", "e\u0301"), "differs in case alone"},
		"column twice":   {row("a", "1", `{"n": 1, "n": 2}`), `"entities/a/1.json" gives "n" twice`},
		"NUL":            {row("a", "1", `{"n": "\u0000"}`), "NUL"},
		"no JSON":        {row("a", "1", `{`), "not a JSON object"},
		"kind of two":    {row("a/b", "1", `{}`), "is not one"},
		"no kind":        {row("", "1", `{}`), "not clean"},
		"no id":          {row("a", "", `{}`), "is not one"},
		"NUL id":         {row("a", "x\x00", `{}`), "is not one"},
		"id not UTF-8":   {row("a", "x\xff", `{}`), "is not one"},
		"kind of a path": {row("..", "1", `{}`), "not clean"},
		"path up":        {files("../a"), "not clean"},
		"absolute":       {files("/a"), "not clean"},
		"backslash":      {files(`a\b`), "backslash"},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			w, err := archive.NewWriter(io.Discard, archive.Header{Counts: map[entity.Kind]int{}}, archive.Limits{})
			is.NoErr(err)
			err = c.write(w)
			is.Equal(errs.CodeOf(err), errs.Invalid)
			if !strings.Contains(errs.MessageOf(err), c.message) {
				t.Error(err)
			}
		})
	}
}

func TestBadLimits(t *testing.T) {
	is := is.New(t)
	is.NoErr(archive.Limits{}.Check())
	is.NoErr(archive.Limits{Members: 1, Bytes: 1, Row: 1, Ratio: 1}.Check())
	for name, l := range map[string]archive.Limits{
		"Members": {Members: -1},
		"Bytes":   {Bytes: -1},
		"Row":     {Row: -1},
		"Ratio":   {Ratio: -1},
	} {
		err := l.Check()
		is.Equal(errs.CodeOf(err), errs.Invalid)
		is.True(strings.Contains(errs.MessageOf(err), name))
	}
}
