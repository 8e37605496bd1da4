package httpapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/colors"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/httpapi"
	"github.com/tenantcontent/tenantcontent/internal/store/colors"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/paging"
)

// broken is a store of colors that fails, or panics, after so many rows of a list.
type broken struct {
	colors.Store
	after  int
	err    error
	panics bool
}

func (b broken) fail() error {
	if b.panics {
		panic("the store is broken: SELECT secret FROM tc_colors")
	}
	return b.err
}

func (b broken) Get(context.Context, string, string) (colors.Color, error) {
	return colors.Color{}, b.fail()
}

func (b broken) Page(context.Context, string, paging.Query) (paging.Page[colors.Color], error) {
	return paging.Page[colors.Color]{}, b.fail()
}

func (b broken) Put(context.Context, string, colors.Color) (colors.Color, error) {
	return colors.Color{}, b.fail()
}

func (b broken) PutAll(context.Context, string, []colors.Color) error { return b.fail() }

func (b broken) Delete(context.Context, string, string) error { return b.fail() }

func (b broken) All(ctx context.Context, tenant, source string) iter.Seq2[colors.Color, error] {
	return func(yield func(colors.Color, error) bool) {
		n := 0
		for c, err := range b.Store.All(ctx, tenant, source) {
			if n == b.after || !yield(c, err) {
				break
			}
			n++
		}
		if n == b.after {
			yield(colors.Color{}, b.fail())
		}
	}
}

// breaks puts a broken store under a stocked world.
func (s stock) breaks(t testing.TB, b broken) {
	t.Helper()
	if b.Store == nil {
		b.Store = bunstore.New(s.db)
	}
	s.rebuilt(t, func(c *httpapi.Config) { c.Colors = colors.New(colors.Options{Store: b, Now: s.now}) })
}

// colorCalls are the routes that ask the store of colors.
var colorCalls = [][3]string{
	{"GET", "/api/colors", ""}, {"GET", "/api/colors-list", ""},
	{"GET", "/api/colors/red", ""}, {"GET", "/api/colors/red/permissions", ""},
	{"PUT", "/api/colors/red", `{"color": "#000"}`},
	{"DELETE", "/api/colors/red", ""}, {"POST", "/api/colors-export", `{}`},
	{"POST", "/api/colors-export?download=true", `{}`}, {"POST", "/api/colors-import", `{"uploadId": "UPLOAD"}`},
}

// TestStoreFails: 503 while the database is away, 500 for anything unexpected, and 422 for either
// in colors-list. No answer says what went wrong inside.
func TestStoreFails(t *testing.T) {
	away := errs.Wrap(
		errs.Unavailable, errors.New("dial tcp: SELECT secret"),
		"The database is not available at the moment. Try again.",
	)
	for name, b := range map[string]struct {
		broken
		status int
	}{
		"away":  {broken{err: away}, 503},
		"odd":   {broken{err: errors.New("pq: syntax error at SELECT secret")}, 500},
		"panic": {broken{panics: true}, 500},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			s := stocked(t, dbtest.SQLite)
			s.breaks(t, b.broken)
			before := s.dump(t, "acme")
			for _, call := range colorCalls {
				a := s.do(t, "admin", call[0], call[1], strings.ReplaceAll(call[2], "UPLOAD", s.param["uploads"]))
				want := b.status
				if call[1] == "/api/colors-list" && !b.panics {
					want = 422
				}
				is.Equal(a.status, want)
				a.message(t)
				is.True(!strings.Contains(a.body, "SELECT"))
				is.True(!strings.Contains(a.body, "goroutine"))
				is.Equal(a.header.Get("Content-Disposition"), "")
				is.Equal(a.header.Get("Retry-After") != "", want == 503)
			}
			is.Equal(s.dump(t, "acme"), before)
			if b.status == 500 {
				is.True(strings.Contains(s.log.String(), "SELECT secret")) // the log says it
			}
			s.http = s.app // and the service goes on
			s.must(t, "admin", "PUT", "/api/colors/red", `{"color": "#000"}`)
		})
	}
}

// TestCutStreams: a list that fails in the middle ends in the middle, so that nobody takes it for
// whole.
func TestCutStreams(t *testing.T) {
	for name, b := range map[string]broken{
		"error": {Store: endless{n: 5000}, after: 4000, err: errs.New(errs.Unavailable, "away")},
		"panic": {Store: endless{n: 5000}, after: 4000, panics: true},
	} {
		for _, call := range [][2]string{{"GET", "/api/colors-list"}, {"POST", "/api/colors-export?download=true"}} {
			t.Run(name+call[1], func(t *testing.T) {
				is := is.New(t)
				s := stocked(t, dbtest.SQLite)
				s.breaks(t, b)
				server := httptest.NewServer(s.http)
				defer server.Close()
				res, body, err := s.fetch(t, server, call[0], call[1])
				is.Equal(res.StatusCode, 200) // it had begun
				is.True(errors.Is(err, io.ErrUnexpectedEOF))
				is.True(len(body) > 64<<10)
				is.True(!json.Valid(body))
				is.True(!strings.Contains(string(body), "statusCode"))
				res, _, err = s.fetch(t, server, "GET", "/api/session") // the server goes on
				is.NoErr(err)
				is.Equal(res.StatusCode, 200)
			})
		}
	}
}

// fetch sends a request over a connection and reads the answer as far as it comes.
func (w *world) fetch(
	t testing.TB, server *httptest.Server, method, target string, headers ...string,
) (*http.Response, []byte, error) {
	t.Helper()
	r, err := http.NewRequest(method, server.URL+target, nil)
	is.New(t).NoErr(err)
	r.Header.Set("Authorization", "Bearer "+w.token(t, "admin"))
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	res, err := server.Client().Do(r)
	is.New(t).NoErr(err)
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	return res, body, err
}

// TestLongListMemory: the flat list of 30,000 colors is whole, and what the service holds of it
// meanwhile does not grow with it.
func TestLongListMemory(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is := is.New(t)
		s := stocked(t, open)
		s.paint(t, 30_000)
		server := httptest.NewServer(s.http)
		defer server.Close()
		r, err := http.NewRequest("GET", server.URL+"/api/colors-list", nil)
		is.NoErr(err)
		r.Header.Set("Authorization", "Bearer "+s.token(t, "mia"))
		before := heap()
		res, err := server.Client().Do(r)
		is.NoErr(err)
		defer func() { _ = res.Body.Close() }()
		dec := json.NewDecoder(res.Body)
		_, err = dec.Token()
		is.NoErr(err)
		n, most := 0, uint64(0)
		for ; dec.More(); n++ {
			var row struct{ Key, Hex, CreatedAt string }
			is.NoErr(dec.Decode(&row))
			if n%5000 == 0 {
				most = max(most, heap())
			}
		}
		_, err = dec.Token()
		is.NoErr(err)
		is.Equal(n, 30_002)
		t.Logf("the list has %d rows; the heap grew by %d KiB", n, (int64(most)-int64(before))>>10)
		is.True(most < before+12<<20) // what the store reads at once, not the 6 MiB of the answer and its rows
	})
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// endless is a store with so many made-up colors that they fit nowhere.
type endless struct {
	colors.Store
	n int
}

func (e endless) All(context.Context, string, string) iter.Seq2[colors.Color, error] {
	return func(yield func(colors.Color, error) bool) {
		for range e.n {
			if !yield(colors.Color{Tenant: "acme", Key: strings.Repeat("k", 255), Color: "#ABCDEF"}, nil) {
				return
			}
		}
	}
}

// sink takes an answer, looks at the heap now and then, and keeps nothing.
type sink struct {
	http.ResponseWriter
	size, looked int
	most         uint64
}

func (s *sink) Write(p []byte) (int, error) {
	if s.size += len(p); s.size > s.looked {
		s.looked += 16 << 20
		s.most = max(s.most, heap())
	}
	return len(p), nil
}

// TestListIsNotHeldMemory: of 200,000 rows, more than 70 MiB, httpapi holds next to none.
func TestListIsNotHeldMemory(t *testing.T) {
	is := is.New(t)
	s := stocked(t, dbtest.SQLite)
	s.rebuilt(t, func(c *httpapi.Config) {
		c.Colors = colors.New(colors.Options{Store: endless{n: 200_000}, Now: s.now})
	})
	r := s.request(t, "mia", "GET", "/api/colors-list", "")
	before := heap()
	out := &sink{ResponseWriter: httptest.NewRecorder()}
	s.http.ServeHTTP(out, r)
	is.True(out.size > 70<<20)
	is.True(out.most < before+8<<20) // what else the process does meanwhile is in it
}

// TestReady: 503 while the database is away, also without credentials.
func TestReady(t *testing.T) {
	is := is.New(t)
	w := newWorld(t, dbtest.SQLite)
	w.rebuilt(t, func(c *httpapi.Config) {
		c.Ready = func(context.Context) error { return errs.New(errs.Unavailable, "The database is away.") }
	})
	a := w.do(t, "", "GET", "/readyz", "")
	is.Equal(a.status, 503)
	is.True(strings.Contains(a.body, `"write":false,"reason":"The database is away."`))
	is.Equal(w.do(t, "", "GET", "/healthz", "").status, 200)
}

// TestReadyToWrite: 503 with the reason while nothing can be written, unless reads are all that is
// asked for.
func TestReadyToWrite(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	w.rebuilt(t, func(c *httpapi.Config) {
		c.Writable = func(context.Context) error { return errs.New(errs.Full, "The disk is full.") }
	})
	type state struct {
		StatusCode int
		Write      bool
		Reason     string
	}
	for _, path := range []string{"/readyz", "/readyz?for=write"} {
		a := w.do(t, "", "GET", path, "")
		is.Equal(a.status, 503)
		is.True(strings.Contains(a.body, `"write":false`))
		is.Equal(read[state](t, a), state{503, false, "The disk is full."})
	}
	is.Equal(w.do(t, "", "GET", "/readyz?for=read", "").status, 200)
	is.Equal(w.do(t, "", "GET", "/readyz?for=lunch", "").status, 400)
	w.rebuilt(t, func(c *httpapi.Config) { c.Writable = func(context.Context) error { return nil } })
	is.Equal(w.do(t, "", "GET", "/readyz", "").status, 200)
}

// TestReadyWithWarnings: a server that serves stays ready.
func TestReadyWithWarnings(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	var warnings []string
	w.rebuilt(t, func(c *httpapi.Config) { c.Warnings = func() []string { return warnings } })
	is.Equal(w.do(t, "", "GET", "/readyz", "").body, `{"status":"ready"}`)
	warnings = []string{"The disk is full."}
	a := w.do(t, "", "GET", "/readyz", "")
	is.Equal(a.status, 200)
	is.Equal(a.body, `{"status":"ready","warnings":["The disk is full."]}`)
}
