package httpapi_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"mime"
	"mime/multipart"
	"net/http/httptest"
	"net/textproto"
	"net/url"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/files"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// filenames says what is kept of a filename; "" is 400.
var filenames = map[string]string{
	"a.txt": "a.txt", "a b.txt": "a b.txt", " a ": "a",
	"grün.csv": "grün.csv", "報告.pdf": "報告.pdf", "😀": "😀", `qu"ote.txt`: `qu"ote.txt`,
	"semi;colon=1.txt": "semi;colon=1.txt", "100%25.txt": "100%25.txt",
	"../../etc/passwd": "passwd", `C:\dir\a.txt`: "a.txt", "/": "upload",
	"..": "upload", ".": "upload", "a/..": "upload",
	".hidden": ".hidden", "CON": "CON", "<script>.html": "<script>.html",
	strings.Repeat("é", 255): strings.Repeat("é", 255), strings.Repeat("a", 256): "",
	"a\nb": "", "a\r\nX-Evil: 1": "", "a\x7fb": "",
}

func TestFilenames(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		s := stocked(t, open)
		for given, want := range filenames {
			raw := s.do(t, "mia", "POST", "/api/uploads?filename="+url.QueryEscape(given), "x")
			body, kind := form(t, given, "x")
			formed := s.do(t, "mia", "POST", "/api/uploads", body, "Content-Type: "+kind)
			for _, a := range []answer{raw, formed} {
				if want == "" {
					if a.status != 400 {
						t.Errorf("%q: %d %s", given, a.status, a.body)
					}
					continue
				}
				if a.status != 201 || read[struct{ Filename string }](t, a).Filename != want {
					t.Errorf("%q: %d %s", given, a.status, a.body)
				}
			}
		}
		for _, bad := range []string{"%00", "a%00b", "%FF", "%ED%A0%80", "%zz", "%", ""} {
			if a := s.do(t, "mia", "POST", "/api/uploads?filename="+bad, "x"); a.status != 400 {
				t.Errorf("%q: %d %s", bad, a.status, a.body)
			}
		}
	})
}

// form is a multipart body with the field file.
func form(t testing.TB, filename, content string) (body, contentType string) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	h := textproto.MIMEHeader{}
	h.Set(
		"Content-Disposition",
		mime.FormatMediaType("form-data", map[string]string{"name": "file", "filename": filename}),
	)
	h.Set("Content-Type", "text/plain")
	part, err := w.CreatePart(h)
	is.New(t).NoErr(err)
	_, _ = io.WriteString(part, content)
	is.New(t).NoErr(w.Close())
	return b.String(), w.FormDataContentType()
}

// TestUploadSize: exactly the limit fits; one byte more is 413 and leaves nothing.
func TestUploadSize(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is := is.New(t)
		w := newWorld(t, open, func(c *tenantcontent.Config) { c.MaxUpload = 3000 })
		for size, status := range map[int]int{0: 201, 3000: 201, 3001: 413, 3 << 20: 413} {
			before := w.dump(t, "acme")
			content := strings.Repeat("x", size)
			body, kind := form(t, "f", content)
			raw := w.do(t, "mia", "POST", "/api/uploads?filename=f", content)
			formed := w.do(t, "mia", "POST", "/api/uploads", body, "Content-Type: "+kind)
			is.Equal([]int{raw.status, formed.status}, []int{status, status})
			is.Equal(w.dump(t, "acme") == before, status == 413)
		}
	})
}

// TestPictureSize: a picture has at most 1 MiB.
func TestPictureSize(t *testing.T) {
	is := is.New(t)
	s := stocked(t, dbtest.SQLite)
	picture := gif + strings.Repeat("x", 1<<20-len(gif))
	is.Equal(s.do(t, "mia", "PUT", "/api/users/mia/avatar", picture).status, 200)
	is.Equal(s.do(t, "mia", "PUT", "/api/users/mia/avatar", picture+"x").status, 413)
	is.Equal(s.must(t, "nora", "GET", "/api/users/mia/avatar", "").body, picture)
}

// TestRangesSize reads parts of a file of three chunks over a connection.
func TestRangesSize(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is := is.New(t)
		s := stocked(t, open)
		want := make([]byte, 3<<20)
		_, _ = rand.NewChaCha8([32]byte{}).Read(want)
		ctx := actor.With(t.Context(), actor.Actor{Tenant: "acme", User: "admin"})
		d, err := s.app.Downloads.Create(ctx, files.Draft{Filename: "big"}, func(w io.Writer) error {
			_, err := w.Write(want)
			return err
		})
		is.NoErr(err)
		server := httptest.NewServer(s.http)
		defer server.Close()
		target := "/api/downloads/" + d.ID + "/content"
		res, body, err := s.fetch(t, server, "GET", target)
		is.NoErr(err)
		is.True(bytes.Equal(body, want))
		is.Equal(res.Header.Get("Accept-Ranges"), "bytes")
		is.Equal(res.Header.Get("X-Content-Type-Options"), "nosniff")
		for _, r := range [][2]int{
			{0, 0}, {0, 9}, {1048570, 1048590}, {2097151, 2097152}, {3145727, 3145727}, {100, 3000000},
		} {
			res, body, err := s.fetch(t, server, "GET", target, fmt.Sprintf("Range: bytes=%d-%d", r[0], r[1]))
			is.NoErr(err)
			is.Equal(res.StatusCode, 206)
			is.Equal(res.Header.Get("Content-Range"), fmt.Sprintf("bytes %d-%d/3145728", r[0], r[1]))
			is.True(bytes.Equal(body, want[r[0]:r[1]+1]))
		}
		far := "99999999999999999999" // beyond int64
		for value, want := range map[string]struct {
			status int
			header string // Content-Range
		}{
			"bytes=3145728-": {416, "bytes */3145728"},
			"bytes=-0":       {416, "bytes */3145728"}, "bytes=" + far + "-": {416, "bytes */3145728"},
			"bytes=" + far + "-" + far: {416, "bytes */3145728"}, "bytes=-0,3145728-": {416, "bytes */3145728"},
			"bytes=3145720-" + far: {206, "bytes 3145720-3145727/3145728"},
			"bytes=-" + far:        {206, "bytes 0-3145727/3145728"},
			"bytes=-99999999":      {206, "bytes 0-3145727/3145728"},
			"Bytes=0-0":            {206, "bytes 0-0/3145728"}, "bytes= 0-0 ,": {206, "bytes 0-0/3145728"},
			"bytes=-0,0-0": {206, "bytes 0-0/3145728"},
			"bytes=007-8":  {206, "bytes 7-8/3145728"}, "bytes=0-0,2-2": {206, ""},
			"": {200, ""}, "bytes=x": {200, ""}, "bytes=5-1": {200, ""},
			"bytes=0-1,5-2": {200, ""}, "lines=1-2": {200, ""}, "bytes=-": {200, ""},
			"bytes": {200, ""}, "bytes=": {200, ""}, "bytes=,": {200, ""},
			"bytes=+1-2": {200, ""}, "bytes=--1": {200, ""}, "bytes=1-2-3": {200, ""},
			"bytes=0 - 1": {200, ""}, "bytes 0-1": {200, ""}, "bytes=" + strings.Repeat("0-0,", 9): {200, ""},
		} {
			a := s.do(t, "admin", "GET", target, "", "Range: "+value)
			if a.status != want.status || a.header.Get("Content-Range") != want.header {
				t.Errorf("%s: %d %s", value, a.status, a.header.Get("Content-Range"))
			}
			if a.status == 416 {
				is.Equal(a.message(t), "The file has no bytes in this range.")
			}
		}
	})
}

// TestDispositions: whatever a file is called, the header says it and nothing else.
func TestDispositions(t *testing.T) {
	is := is.New(t)
	s := stocked(t, dbtest.SQLite)
	ctx := actor.With(t.Context(), actor.Actor{Tenant: "acme", User: "admin"})
	for given, want := range filenames {
		if want == "" {
			continue
		}
		d, err := s.app.Downloads.Create(ctx, files.Draft{
			Filename: given, ContentType: "text/html",
		}, func(io.Writer) error { return nil })
		is.NoErr(err)
		a := s.must(t, "admin", "GET", "/api/downloads/"+d.ID+"/content", "")
		kind, params, err := mime.ParseMediaType(a.header.Get("Content-Disposition"))
		is.NoErr(err)
		is.Equal(kind, "attachment")
		is.Equal(params["filename"], strings.Replace(want, "upload", "download", 1))
	}
}

// TestRoundTrip: what one tenant exports another imports, and exports the same.
func TestRoundTrip(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is := is.New(t)
		w := newWorld(t, open)
		w.paint(t, 1203) // several batches
		for _, key := range []string{"ü 😀/%", `"\`, "<&>", "\u2028", " ", "..", "e\u0301", "é"} {
			w.must(t, "dana", "PUT", "/api/colors/"+url.PathEscape(key), `{"color": "#AbC"}`)
		}
		upload := w.upload(t, "dana", `[{"key": "named", "color": "blueGrey:900", "source": "s"}]`)
		w.must(t, "dana", "POST", "/api/colors-import", `{"uploadId": "`+upload+`"}`)

		file := w.must(t, "dana", "POST", "/api/colors-export?download=true", "").body
		d := read[struct{ ID string }](t, w.must(t, "dana", "POST", "/api/colors-export", "")).ID
		is.Equal(w.must(t, "dana", "GET", "/api/downloads/"+d+"/content", "").body, file)

		n := w.must(t, "eve", "POST", "/api/colors-import", `{"uploadId": "`+w.upload(t, "eve", file)+`"}`)
		is.Equal(n.body, `{"colorsImported":1212}`)
		is.Equal(w.must(t, "eve", "POST", "/api/colors-export?download=true", "").body, file)
	})
}
