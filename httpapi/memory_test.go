package httpapi_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/httpapi"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// TestEveryPageIsBounded: each list of the route table that has a limit ends its pages when the
// rows pass the bound in bytes, which any row does here; following next leads through all of them.
func TestEveryPageIsBounded(t *testing.T) {
	s := stocked(t, dbtest.SQLite)
	for _, r := range httpapi.Routes() { // a second row for lists that have one
		if r.Method == http.MethodPost && strings.HasPrefix(r.Name, "create") && r.Name != "createUser" {
			s.call(t, who(r), r)
			s.call(t, who(r), r)
		}
	}
	s.must(t, "admin", "POST", "/api/colors-export", `{}`)
	s.must(t, "dana", "POST", "/api/teams/"+teamID+"/comments", `{"message": "Hi again, @admin"}`)
	s.must(t, "admin", "POST", "/api/teams", `{"name": "Second", "slug": "second"}`)
	s.must(t, "admin", "PUT", "/api/teams/second/members/mia", `{"role": "member"}`)
	registries := []string{"listBundleDrivers", "listDomainDrivers", "listLogins"} // they are in memory anyway
	s.rebuilt(t, func(c *httpapi.Config) { c.Memory.Page = 1 })
	lists := 0
	for _, r := range httpapi.Routes() {
		if r.Method != http.MethodGet || !slices.Contains(r.Query, "limit") || slices.Contains(registries, r.Name) {
			continue
		}
		t.Run(r.Name, func(t *testing.T) {
			is := is.New(t)
			first := read[page](t, s.must(t, who(r), "GET", s.target(r)+"?limit=1000", ""))
			if first.Total < 2 {
				t.Fatalf("the list has %d rows: the test needs two", first.Total)
			}
			p, rows := first, 1
			for ; p.next() != "" && rows <= first.Total; rows++ {
				is.Equal(p.Count, 1)
				is.Equal(p.Total, first.Total)
				p = read[page](t, s.must(t, who(r), "GET", p.next(), ""))
			}
			is.Equal(rows, first.Total)
		})
		lists++
	}
	is.New(t).True(lists > 30)
}

// tight is a listener whose connections keep little of what is written to them.
type tight struct{ net.Listener }

func (l tight) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		err = conn.(*net.TCPConn).SetWriteBuffer(16 << 10)
	}
	return conn, err
}

// serve serves the world at an address.
func (w *world) serve(t *testing.T) *httptest.Server {
	server := httptest.NewUnstartedServer(w.http)
	server.Listener = tight{server.Listener}
	server.Start()
	t.Cleanup(server.Close)
	return server
}

// stall asks a server for something large, with GET unless target begins with a method, and reads
// nothing of it but the status.
func (w *world) stall(t *testing.T, server *httptest.Server, user, target string) net.Conn {
	t.Helper()
	is := is.New(t)
	conn, err := net.Dial("tcp", strings.TrimPrefix(server.URL, "http://"))
	is.NoErr(err)
	t.Cleanup(func() { _ = conn.Close() })
	is.NoErr(conn.(*net.TCPConn).SetReadBuffer(4 << 10))
	if !strings.Contains(target, " ") {
		target = "GET " + target
	}
	_, err = fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n", target, w.token(t, user))
	is.NoErr(err)
	status := make([]byte, len("HTTP/1.1 200"))
	_, err = io.ReadFull(conn, status)
	is.NoErr(err)
	is.Equal(string(status), "HTTP/1.1 200")
	return conn
}

// fill makes reports that pass the bound of a page.
func (w *world) fill(t *testing.T, user string) {
	t.Helper()
	for range 5 {
		w.must(t, user, "POST", "/api/reports", `{"name": "R", "data": {"x": "`+strings.Repeat("x", 300_000)+`"}}`)
	}
}

// until waits for a condition.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for begun := time.Now(); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Since(begun) > 20*time.Second {
			t.Fatal("in vain: " + what)
		}
	}
}

// TestStalledReaders: who never reads a large page keeps others of the tenant from more memory than
// it may have, and nobody else from anything; when the server stops they are cut.
func TestStalledReaders(t *testing.T) {
	is := is.New(t)
	w := newWorld(t, dbtest.SQLite)
	w.fill(t, "dana")
	w.fill(t, "eve")
	const target = "/api/reports?limit=1000"
	w.rebuilt(t, func(c *httpapi.Config) {
		c.Memory = httpapi.Memory{
			User:   1400 << 10,
			Tenant: 2800 << 10,
			All:    5600 << 10,
			Wait:   time.Millisecond,
			Page:   1 << 20,
		}
		c.LastIdle = 50 * time.Millisecond
	})
	first := read[page](t, w.must(t, "dana", "GET", target, ""))
	is.Equal(first.Total, 5)
	is.Equal(first.Count, 4)
	is.Equal(read[page](t, w.must(t, "dana", "GET", first.next(), "")).Count, 1)

	server := w.serve(t)
	w.stall(t, server, "dana", target)
	a := w.do(t, "dana", "GET", target, "")
	is.Equal(a.status, http.StatusServiceUnavailable)
	is.Equal(a.header.Get("Retry-After"), "1")
	w.must(t, "dana", "GET", "/api/reports?limit=0", "") // small ones do not count
	w.must(t, "admin", "GET", target, "")                // a second user
	w.stall(t, server, "admin", target)
	is.Equal(w.do(t, "tim", "GET", target, "").status, http.StatusServiceUnavailable) // the tenant has no more
	w.must(t, "eve", "GET", target, "")

	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	is.NoErr(w.http.(httpapi.Handler).Drain(ctx))
	w.must(t, "dana", "GET", target, "") // the memory is free again
}

// noise returns n bytes of text that do not get smaller by compression.
func noise(n int) string {
	r := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, n)
	for i := range b {
		b[i] = "abcdefghijklmnopqrstuvwxyz"[r.IntN(26)]
	}
	return string(b)
}

// TestStalledDownloads: files and archives that nobody reads hold memory as large answers do, and
// no connection to the database.
func TestStalledDownloads(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is := is.New(t)
		w := newWorld(t, open)
		id := func(a answer) string { return read[map[string]any](t, a)["id"].(string) }
		library := "/api/libraries/" + id(w.must(t, "dana", "POST", "/api/libraries", `{"name": "L"}`)) + "/contents/"
		w.must(t, "dana", "PUT", library+"large", noise(800_000), "Content-Type: text/plain")
		w.must(t, "dana", "PUT", library+"small", "small", "Content-Type: text/plain")
		report := id(w.must(t, "dana", "POST", "/api/reports", `{"name": "R", "data": {"x": "`+noise(800_000)+`"}}`))
		w.must(t, "admin", "POST", "/api/bundles", `{"name": "B"}`)
		w.must(t, "admin", "POST", "/api/bundles/b/entries", `{"type": "report", "reportId": "`+report+`"}`)
		w.rebuilt(t, func(c *httpapi.Config) {
			c.Memory = httpapi.Memory{User: 1 << 20, Tenant: 2 << 20, Wait: time.Millisecond}
			c.LastIdle = 50 * time.Millisecond
		})
		server := w.serve(t)
		const export = "POST /api/bundles/b/_export"
		status := func(user, target string) int {
			method, path, _ := strings.Cut(target, " ")
			return w.do(t, user, method, path, "").status
		}
		w.stall(t, server, "dana", library+"large")
		is.Equal(status("dana", "GET "+library+"large"), http.StatusServiceUnavailable)
		is.Equal(status("dana", "GET "+library+"small"), http.StatusOK)
		is.Equal(status("admin", export), http.StatusOK)
		w.stall(t, server, "admin", export)
		a := w.do(t, "admin", "POST", "/api/bundles/b/_export", "")
		is.Equal(a.status, http.StatusServiceUnavailable)
		is.Equal(a.header.Get("Retry-After"), "1")
		is.Equal(status("tim", "GET "+library+"large"), http.StatusServiceUnavailable) // the tenant has no more
		until(t, "no connection is in use", func() bool { return w.db.Stats().InUse == 0 })

		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		is.NoErr(w.http.(httpapi.Handler).Drain(ctx))
		is.Equal(status("dana", "GET "+library+"large"), http.StatusOK) // the memory is free again
		is.Equal(status("admin", export), http.StatusOK)
	})
}

// TestWaitingReadersOfAStoppingServer: a server that stops ends the waits for memory and in queues
// at once, with an error to try again.
func TestWaitingReadersOfAStoppingServer(t *testing.T) {
	is := is.New(t)
	w := newWorld(t, dbtest.SQLite)
	w.fill(t, "dana")
	w.rebuilt(t, func(c *httpapi.Config) {
		c.Memory = httpapi.Memory{User: 1400 << 10, Wait: time.Hour, Page: 1 << 20}
		c.LastIdle = time.Minute
	})
	httpapi.OneHeavyPlace(w.http, time.Hour)
	server := w.serve(t)
	w.stall(t, server, "dana", "/api/reports?limit=1000")
	ask := func(target string) <-chan int {
		answer := make(chan int, 1)
		go func() { answer <- w.do(t, "dana", "GET", target, "").status }()
		return answer
	}
	refused := func(answer <-chan int) {
		t.Helper()
		select {
		case status := <-answer:
			is.Equal(status, http.StatusServiceUnavailable)
		case <-time.After(30 * time.Second):
			t.Fatal("the read still waits")
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	waiting := ask("/api/reports?limit=1000")
	go func() { _ = w.http.(httpapi.Handler).Drain(ctx) }()
	refused(waiting)
	leave, err := httpapi.TakeHeavyPlaces(t.Context(), w.http, "acme")
	is.NoErr(err)
	defer leave()
	refused(ask("/api/reports?q=nothing"))
	w.must(t, "dana", "GET", "/api/reports?limit=0", "")
}

// TestStalledReaderIsCut after Config.Idle.
func TestStalledReaderIsCut(t *testing.T) {
	w := newWorld(t, dbtest.SQLite)
	w.fill(t, "dana")
	w.rebuilt(t, func(c *httpapi.Config) { c.Idle, c.Memory.Page = 50*time.Millisecond, 1<<20 })
	server := w.serve(t)
	conn := w.stall(t, server, "dana", "/api/reports?limit=1000")
	until(t, "the answer is cut", func() bool { return strings.Contains(w.log.String(), "i/o timeout") })
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err == nil {
		_, err = io.Copy(io.Discard, res.Body)
	}
	is.New(t).True(err != nil) // nobody takes it for a whole page
}

// TestStalledSenderIsCut: a body that does not come is a bad request.
func TestStalledSenderIsCut(t *testing.T) {
	is := is.New(t)
	w := newWorld(t, dbtest.SQLite)
	w.rebuilt(t, func(c *httpapi.Config) { c.Idle = 2 * time.Second }) // also the time for the answer
	server, open := w.serve(t), map[string]net.Conn{}
	for _, route := range []string{"POST /api/reports", "POST /api/uploads?filename=x"} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(server.URL, "http://"))
		is.NoErr(err)
		_, err = fmt.Fprintf(
			conn, "%s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: 100\r\n\r\n{", route,
			w.token(t, "dana"),
		)
		is.NoErr(err)
		open[route] = conn
	}
	for route, conn := range open {
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(route, err, w.log.String())
		}
		is.Equal(res.StatusCode, http.StatusBadRequest)
		is.NoErr(conn.Close())
	}
}

// sending sends the beginning of a body and returns how to send the rest, which ends it when
// closed, and the answer.
func (w *world) sending(
	t *testing.T, user, method, target, body string, headers ...string,
) (*io.PipeWriter, <-chan answer) {
	t.Helper()
	in, sent := io.Pipe()
	r := w.request(t, user, method, target, "", headers...)
	r.Body, r.ContentLength = in, -1
	answered := make(chan answer, 1)
	go func() {
		defer func() { _ = in.Close() }() // what is not read is not waited for
		answered <- w.send(r)
	}()
	_, err := io.WriteString(sent, body)
	is.New(t).NoErr(err)
	return sent, answered
}

// largeUser is a change of a user of 100 KB.
var largeUser = `{"displayName": "Ada", "_links": {"notes": "` + strings.Repeat("x", 100_000) + `"}}`

// TestFormFields: the fields before the file of an import count as other bodies do.
func TestFormFields(t *testing.T) {
	is := is.New(t)
	w := newWorld(t, dbtest.SQLite)
	w.rebuilt(t, func(c *httpapi.Config) {
		c.Memory = httpapi.Memory{User: 300 << 10, Tenant: 300 << 10, All: 300 << 10, Wait: time.Millisecond}
	})
	form, kind := formOf(t, "owner="+strings.Repeat("x", 300_000), "updateRule="+strings.Repeat("x", 10_000))
	sent, answered := w.sending(t, "admin", "POST", "/api/_import-bundle", form[:200_000], "Content-Type: "+kind)
	is.Equal(w.do(t, "admin", "PUT", "/api/users/admin", largeUser).status, http.StatusOK) // the field is on its way
	_, err := io.WriteString(sent, form[200_000:len(form)-5_000])
	is.NoErr(err)
	until(t, "the field counts", func() bool {
		return w.do(t, "admin", "PUT", "/api/users/admin", largeUser).status == http.StatusServiceUnavailable
	})
	is.NoErr(sent.Close())
	is.True((<-answered).status >= http.StatusBadRequest)
	is.Equal(w.do(t, "admin", "PUT", "/api/users/admin", largeUser).status, http.StatusOK)
}

// TestSlowSenders: a large body holds no memory before it has been received, and those that are
// being received hold some disk space at most. None waits for another.
func TestSlowSenders(t *testing.T) {
	is := is.New(t)
	w := newWorld(t, dbtest.SQLite)
	w.rebuilt(t, func(c *httpapi.Config) {
		c.Memory = httpapi.Memory{User: 100 << 10, Tenant: 100 << 10, All: 150 << 10, Wait: time.Millisecond}
	})
	put := func(user, body string) (*io.PipeWriter, <-chan answer) {
		return w.sending(t, user, "PUT", "/api/users/"+user, body)
	}
	begin := `{"displayName": "Ada", "_links": {"notes": "` + strings.Repeat("x", 380<<10)
	first, one := put("dana", begin)
	second, two := put("tim", begin)
	// disk space of the tenant
	is.Equal(w.do(t, "dana", "PUT", "/api/users/dana", largeUser).status, http.StatusServiceUnavailable)
	is.Equal(w.do(t, "eve", "PUT", "/api/users/eve", largeUser).status, http.StatusOK)
	// small ones do not count
	is.Equal(w.do(t, "dana", "PUT", "/api/users/dana", `{"displayName": "Ada"}`).status, http.StatusOK)
	_, err := io.WriteString(first, `"}}`)
	is.NoErr(err)
	is.NoErr(first.Close())
	is.Equal((<-one).status, http.StatusOK)
	_, err = io.WriteString(second, strings.Repeat("x", 300<<10)+`"}}`)
	is.NoErr(err)
	is.NoErr(second.Close())
	is.Equal((<-two).status, http.StatusOK)
	is.Equal(w.do(t, "dana", "PUT", "/api/users/dana", largeUser).status, http.StatusOK) // all is free again
}

// TestNoTemporaryFolder: what cannot be kept while it is received is refused, small bodies are not.
func TestNoTemporaryFolder(t *testing.T) {
	is := is.New(t)
	w := newWorld(t, dbtest.SQLite)
	is.Equal(w.do(t, "dana", "PUT", "/api/users/dana", largeUser).status, http.StatusOK)
	t.Setenv("TMPDIR", t.TempDir()+"/none")
	a := w.do(t, "dana", "PUT", "/api/users/dana", largeUser)
	is.Equal(a.status, http.StatusServiceUnavailable)
	is.Equal(a.message(t), "The server has no room for a large body at the moment. Try again.")
	is.Equal(w.do(t, "dana", "PUT", "/api/users/dana", `{"displayName": "Ada"}`).status, http.StatusOK)
}

// TestAnswerOfWrite: a write whose large answer exceeds the limit has been done, and the answer
// comes whole.
func TestAnswerOfWrite(t *testing.T) {
	is := is.New(t)
	w := newWorld(t, dbtest.SQLite)
	w.fill(t, "dana")
	w.rebuilt(t, func(c *httpapi.Config) {
		c.Memory = httpapi.Memory{User: 1 << 20, Wait: time.Millisecond, Page: 600 << 10}
	})
	row := read[page](t, w.must(t, "dana", "GET", "/api/reports?limit=1", "")).Embedded["inf:report"][0]
	target := "/api/reports/" + row["id"].(string)
	w.stall(t, w.serve(t), "dana", "/api/reports?limit=1000")
	is.Equal(w.do(t, "dana", "GET", target, "").status, http.StatusServiceUnavailable)
	a := w.do(t, "dana", "PUT", target, `{"name": "Renamed"}`)
	is.Equal(a.status, http.StatusOK)
	is.Equal(a.header.Get("Content-Length"), strconv.Itoa(len(a.body)))
	got := read[map[string]any](t, a)
	is.Equal(got["name"], "Renamed")
	is.Equal(got["data"], row["data"])
}
