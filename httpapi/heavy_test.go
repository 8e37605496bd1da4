package httpapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"iter"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/httpapi"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

func TestHeavyRequests(t *testing.T) {
	for _, c := range []struct {
		method, target string
		heavy          bool
	}{
		{"GET", "/api/colors/red", false},
		{"GET", "/api/colors", false},
		{"GET", "/api/colors?q=", false},
		{"GET", "/api/colors?limit=200&start=10000", false},
		{"GET", "/api/colors?limit=many", false},
		{"PUT", "/api/colors/red?q=x", false},
		{"GET", "/api/session", false},
		{"GET", "/api/session?q=x&limit=1000&start=20000", false}, // has no such parameters
		{"GET", "/api/login/slow/sso?tenant=evil&q=1", false},
		{"GET", "/api/login/slow/sso?limit=201&start=10001", false},
		{"GET", "/api/users/dana?q=x", false},
		{"GET", "/api/colors?q=x", true},
		{"GET", "/api/reports?limit=201", true},
		{"GET", "/api/users?start=10001", true},
		{"GET", "/api/colors-list", true},
		{"GET", "/api/principal-list", true},
		{"POST", "/api/uploads", true},
		{"POST", "/api/bundles/b/_export", true},
		{"POST", "/api/_import-bundle?dryRun=true", true},
		{"POST", "/api/_restore", true},
		{"POST", "/api/_bundle-deploy", true},
		{"POST", "/api/domains/staff/driver/_scan", true},
		{"POST", "/api/domain-drivers/LDAP/_scan", true},
	} {
		if httpapi.IsHeavy(c.method, c.target) != c.heavy {
			t.Errorf("%s %s: heavy is %v", c.method, c.target, !c.heavy)
		}
	}
}

// crowded is a world with one place for brief requests and one for long ones.
func crowded(t *testing.T, timeout time.Duration) *world {
	w := newWorld(t, dbtest.SQLite)
	w.rebuilt(t, func(*httpapi.Config) {})
	httpapi.OneHeavyPlace(w.http, timeout)
	w.must(t, "admin", "PUT", "/api/colors/red", `{"color": "#ff0000"}`)
	return w
}

// TestLightRequestsPassHeavyOnes: while all places are taken, light requests are served, and heavy
// ones told when to try again.
func TestLightRequestsPassHeavyOnes(t *testing.T) {
	is, w := is.New(t), crowded(t, time.Millisecond)
	leave, err := httpapi.TakeHeavyPlaces(t.Context(), w.http, "evil")
	is.NoErr(err)
	w.must(t, "dana", "GET", "/api/colors/red", "")
	w.must(t, "dana", "GET", "/api/colors?limit=20", "")
	w.must(t, "admin", "PUT", "/api/colors/blue", `{"color": "#0000ff"}`)
	for _, target := range []string{
		"GET /api/colors?q=r", "GET /api/colors?limit=1000", "POST /api/_restore",
		"POST /api/uploads?filename=x",
	} {
		method, path, _ := strings.Cut(target, " ")
		a := w.do(t, "admin", method, path, "", "Content-Type: application/gzip")
		is.Equal(a.status, http.StatusServiceUnavailable)
		is.Equal(a.message(t), "Too much that takes long is under way in this tenant, or in all. Try again.")
		is.Equal(a.header.Get("Retry-After"), "1")
	}
	leave()
	w.must(t, "admin", "GET", "/api/colors?q=r", "")
	w.must(t, "admin", "GET", "/api/colors?q=r", "") // the first one has left its place
	is.Equal(httpapi.HeavyTenants(w.http), 0)
}

// TestHeavyRequestsAreFairToTenants: a tenant with one heavy request waits for one of a tenant with
// many, not for all.
func TestHeavyRequestsAreFairToTenants(t *testing.T) {
	is, w := is.New(t), crowded(t, time.Minute)
	leave, err := httpapi.TakeHeavyPlaces(t.Context(), w.http, "first")
	is.NoErr(err)
	admitted := make(chan string)
	for n, tenant := range []string{"acme", "acme", "acme", "acme", "evil"} {
		go func() {
			leave, err := httpapi.TakeHeavyPlaces(t.Context(), w.http, tenant)
			is.NoErr(err)
			admitted <- tenant
			leave()
		}()
		for tenants := min(2+n/4, 3); httpapi.HeavyTenants(w.http) < tenants; {
			time.Sleep(time.Millisecond)
		}
	}
	leave()
	var order []string
	for range 5 {
		order = append(order, <-admitted)
	}
	is.True(order[0] == "evil" || order[1] == "evil")
}

// slowPaper is paper whose directory says nothing until the test lets it go on.
type slowPaper struct {
	paper
	asked, goOn chan struct{}
}

func (p slowPaper) Open(config json.RawMessage) (domains.Realm, error) {
	return p.OpenWithKeys(config, domains.Keys{})
}

func (p slowPaper) OpenWithKeys(config json.RawMessage, keys domains.Keys) (domains.Realm, error) {
	realm, err := p.paper.OpenWithKeys(config, keys)
	if err == nil {
		p.paper = realm.(paper)
	}
	return p, err
}

func (p slowPaper) Entries(ctx context.Context) iter.Seq2[domains.Entry, error] {
	p.asked <- struct{}{}
	<-p.goOn
	return p.paper.Entries(ctx)
}

// TestScansTakeTheirPlaceLate: a scan has no place while it waits for its directory, and waits for
// one before it writes.
func TestScansTakeTheirPlaceLate(t *testing.T) {
	is := is.New(t)
	slow := slowPaper{asked: make(chan struct{}), goOn: make(chan struct{})}
	w := newWorld(t, dbtest.SQLite, func(c *tenantcontent.Config) { c.DomainDrivers = append(c.DomainDrivers, slow) })
	w.rebuilt(t, func(*httpapi.Config) {})
	httpapi.OneHeavyPlace(w.http, time.Minute)
	w.must(t, "admin", "POST", "/api/domains", `{"name": "Books", "type": "paper", "config": {"secret": "s"}}`)
	scanned := make(chan answer)
	go func() { scanned <- w.do(t, "admin", "POST", "/api/domains/books/driver/_scan", `{"force": true}`) }()
	<-slow.asked
	is.Equal(httpapi.LongTenants(w.http), 0)
	leave, err := httpapi.TakeHeavyPlaces(t.Context(), w.http, "evil") // at once
	is.NoErr(err)
	slow.goOn <- struct{}{}
	for httpapi.WaitingForLong(w.http) == 0 {
		time.Sleep(time.Millisecond)
	}
	w.must(t, "admin", "PUT", "/api/colors/red", `{"color": "#ff0000"}`) // it holds no writer meanwhile
	is.Equal(w.do(t, "admin", "GET", "/api/users/zoe", "").status, 404)
	leave()
	is.Equal((<-scanned).status, 200)
	w.must(t, "admin", "GET", "/api/users/zoe", "")
	is.Equal(httpapi.LongTenants(w.http), 0)
}

// stalled is a client that takes no byte of its answer until it goes on.
type stalled struct {
	*httptest.ResponseRecorder
	writing chan struct{}
	goOn    chan struct{}
}

func (s stalled) Write(p []byte) (int, error) {
	s.writing <- struct{}{}
	<-s.goOn
	return s.ResponseRecorder.Write(p)
}

// TestSlowFormsHoldNoPlace: who sends a form slowly, before its file or in it, keeps nobody of any
// tenant waiting.
func TestSlowFormsHoldNoPlace(t *testing.T) {
	for _, target := range []string{"/api/_restore-from-file", "/api/_import-bundle", "/api/uploads"} {
		t.Run(target, func(t *testing.T) {
			is, w := is.New(t), crowded(t, time.Minute)
			whole, kind := formOf(t, "file=no archive")
			at := strings.Index(whole, "no archive")
			body, sent := io.Pipe()
			slow := w.request(t, "admin", "POST", target, "", "Content-Type: "+kind)
			slow.Body, slow.ContentLength = body, -1
			answered := make(chan answer)
			go func() { answered <- w.send(slow) }()
			for _, part := range []string{whole[:10], whole[10 : at+2], whole[at+2:]} {
				_, err := io.WriteString(sent, part) // was read
				is.NoErr(err)
				leave, err := httpapi.TakeHeavyPlaces(t.Context(), w.http, "evil")
				is.NoErr(err)
				leave()
			}
			is.NoErr(sent.Close())
			a := <-answered
			is.True(a.status == http.StatusCreated || a.status == http.StatusBadRequest) // the archive is none
			is.Equal(httpapi.HeavyTenants(w.http), 0)
		})
	}
}

// TestFormTakesItsPlace: an archive in a form has a place from the end of the form on, also when
// the body has not ended.
func TestFormTakesItsPlace(t *testing.T) {
	is, w := is.New(t), crowded(t, time.Minute)
	whole, kind := formOf(t, "file=no archive")
	body, sent := io.Pipe()
	restore := w.request(t, "admin", "POST", "/api/_restore", "", "Content-Type: "+kind)
	restore.Body, restore.ContentLength = body, -1
	answered := make(chan answer)
	go func() { answered <- w.send(restore) }()
	_, err := io.WriteString(sent, whole[:10])
	is.NoErr(err)
	leave, err := httpapi.TakeHeavyPlaces(t.Context(), w.http, "evil")
	is.NoErr(err)
	_, err = io.WriteString(sent, whole[10:])
	is.NoErr(err)
	for begun := time.Now(); httpapi.LongTenants(w.http) < 2; time.Sleep(time.Millisecond) {
		if time.Since(begun) > 20*time.Second {
			t.Fatal("the restore has not asked for a place")
		}
	}
	leave()
	is.Equal((<-answered).status, http.StatusBadRequest) // it is no archive
	is.NoErr(sent.Close())
}

// TestTurnedAwayAfterTheBody: who sends all of a large body before the answer is read gets the
// whole 503.
func TestTurnedAwayAfterTheBody(t *testing.T) {
	is, w := is.New(t), crowded(t, time.Millisecond)
	leave, err := httpapi.TakeHeavyPlaces(t.Context(), w.http, "evil")
	is.NoErr(err)
	defer leave()
	server := httptest.NewServer(w.http)
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	is.NoErr(err)
	defer func() { _ = conn.Close() }()
	is.NoErr(conn.(*net.TCPConn).SetWriteBuffer(64 << 10))
	answers := bufio.NewReader(conn)
	for range 2 { // and the connection stays
		r := w.request(
			t, "admin", "POST", "/api/_restore", strings.Repeat("x", 8<<20), "Content-Type: application/gzip",
		)
		is.NoErr(r.Write(conn)) // all of it was taken
		res, err := http.ReadResponse(answers, r)
		is.NoErr(err)
		is.Equal(res.StatusCode, http.StatusServiceUnavailable)
		is.Equal(res.Header.Get("Retry-After"), "1")
		text, err := io.ReadAll(res.Body)
		is.NoErr(err)
		is.True(strings.Contains(string(text), "Try again."))
		is.NoErr(res.Body.Close())
	}
}

// TestSlowClientsHoldNoPlace: who sends a file or takes a list slowly keeps nobody waiting.
func TestSlowClientsHoldNoPlace(t *testing.T) {
	is, w := is.New(t), crowded(t, time.Minute)
	body, sent := io.Pipe()
	upload := w.request(t, "dana", "POST", "/api/uploads?filename=x", "")
	upload.Body, upload.ContentLength = body, -1
	uploaded := make(chan answer)
	go func() { uploaded <- w.send(upload) }()
	_, err := sent.Write([]byte("some")) // was read
	is.NoErr(err)

	reader := stalled{httptest.NewRecorder(), make(chan struct{}), make(chan struct{})}
	listed := make(chan struct{})
	list := w.request(t, "dana", "GET", "/api/colors-list", "")
	go func() {
		defer close(listed)
		w.http.ServeHTTP(reader, list)
	}()
	<-reader.writing

	w.must(t, "mia", "GET", "/api/colors?q=r", "")
	w.must(t, "eve", "GET", "/api/colors?limit=1000", "")

	close(reader.goOn)
	<-listed
	is.Equal(reader.Code, http.StatusOK)
	is.NoErr(sent.Close())
	is.Equal((<-uploaded).status, http.StatusCreated)
	is.Equal(httpapi.HeavyTenants(w.http), 0)
}

// TestUploadBehindAWriter: an upload that waits for SQLite's one writer keeps nobody from
// searching.
func TestUploadBehindAWriter(t *testing.T) {
	is, w := is.New(t), crowded(t, time.Minute)
	for _, user := range []string{"dana", "mia", "eve"} {
		w.token(t, user) // a login writes
	}
	writing, written, ended := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		ended <- w.app.InTx(t.Context(), func(context.Context) error {
			close(writing)
			<-written
			return nil
		})
	}()
	<-writing
	uploaded := make(chan answer)
	upload := w.request(
		t, "dana", "POST", "/api/uploads?filename=x", strings.Repeat("x", 1<<20+1), "Content-Type: text/plain",
	)
	reading := make(chan struct{})
	upload.Body = &begun{ReadCloser: upload.Body, reading: reading}
	go func() { uploaded <- w.send(upload) }()
	<-reading
	until(t, "the upload has no place", func() bool { return httpapi.HeavyTenants(w.http) == 0 })
	w.must(t, "mia", "GET", "/api/colors?q=r", "")
	w.must(t, "eve", "GET", "/api/colors?limit=1000", "")
	close(written)
	is.NoErr(<-ended)
	is.Equal((<-uploaded).status, http.StatusCreated)
	is.Equal(httpapi.HeavyTenants(w.http), 0)
}

// TestFileTakesWriteSlot: a file of a library needs a slot to write after it has been received, not
// before.
func TestFileTakesWriteSlot(t *testing.T) {
	is, w := is.New(t), crowded(t, time.Minute)
	w.must(t, "dana", "POST", "/api/libraries", `{"name": "L", "slug": "l"}`)
	body, sent := io.Pipe()
	put := w.request(t, "dana", "PUT", "/api/libraries/dana:l/contents/a", "", "Content-Type: text/plain")
	put.Body, put.ContentLength = body, -1
	answered := make(chan answer)
	go func() { answered <- w.send(put) }()
	_, err := sent.Write([]byte("some")) // was read
	is.NoErr(err)
	is.Equal(httpapi.WritingTenants(w.http), 0)

	writing, written, ended := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		ended <- w.app.InTx(t.Context(), func(context.Context) error {
			close(writing)
			<-written
			return nil
		})
	}()
	<-writing
	is.NoErr(sent.Close())
	until(t, "the file has a slot, and no place", func() bool {
		return httpapi.WritingTenants(w.http) == 1 && httpapi.HeavyTenants(w.http) == 0
	})
	close(written)
	is.NoErr(<-ended)
	is.Equal((<-answered).status, http.StatusOK)
	is.Equal(httpapi.WritingTenants(w.http), 0)
}

// begun is a body that closes reading when a megabyte of it has been read.
type begun struct {
	io.ReadCloser
	read    int
	reading chan<- struct{}
	once    sync.Once
}

func (b *begun) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.read += n; b.read >= 1<<20 {
		b.once.Do(func() { close(b.reading) })
	}
	return n, err
}

// TestEpilogue: an import waits for its place at the end of the form, also when the body goes on
// behind it.
func TestEpilogue(t *testing.T) {
	is, w := is.New(t), crowded(t, time.Minute)
	form, kind := formOf(t, "file=\x1f\x8bno archive")
	body, sent := io.Pipe()
	r := w.request(t, "admin", "POST", "/api/_import-bundle", "", "Content-Type: "+kind)
	r.Body, r.ContentLength = body, -1
	answered := make(chan answer, 1)
	go func() { answered <- w.send(r) }()
	_, err := io.WriteString(sent, form[:1])
	is.NoErr(err) // it has been admitted, and rests
	leave, err := httpapi.TakeHeavyPlaces(t.Context(), w.http, "other")
	is.NoErr(err)
	_, err = io.WriteString(sent, form[1:]+"behind")
	is.NoErr(err)
	until(t, "the import waits", func() bool { return httpapi.WaitingForLong(w.http) == 1 })
	is.Equal(len(answered), 0)
	leave()
	is.Equal((<-answered).status, http.StatusBadRequest)
	is.NoErr(sent.Close())
}
