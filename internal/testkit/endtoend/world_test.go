package endtoend_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/matryer/is"
	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/domains/ldap"
	"github.com/tenantcontent/tenantcontent/domains/oidc"
	"github.com/tenantcontent/tenantcontent/domains/saml"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/directory/dirsync"
	"github.com/tenantcontent/tenantcontent/internal/secure/egress"
	"github.com/tenantcontent/tenantcontent/internal/store/principals"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/internal/testkit/logtest"
	"github.com/tenantcontent/tenantcontent/javascript"
	"github.com/tenantcontent/tenantcontent/principals"
)

// password is the password of admin, the superuser of each tenant.
const password = "correct horse battery"

// world is the server on a database with the tenants acme and evil, over HTTP.
type world struct {
	app   *tenantcontent.App
	db    *bun.DB
	url   string
	log   logtest.Buffer
	way   *http.Transport // for requests to it
	admin *caller         // of acme

	mu    sync.Mutex        // guards pages
	pages map[string]string // pages of the host program, by path
}

func newWorld(t *testing.T, open dbtest.Opener, change ...func(*tenantcontent.Config)) *world {
	t.Helper()
	return serve(t, open(t), tenantcontent.NewSecretKey(), nil, change...)
}

// serve serves a database, over TLS if a configuration for it is given. It creates the superusers
// if they do not exist. change may edit the configuration before the App is opened.
func serve(t *testing.T, db *bun.DB, key string, secure *tls.Config, change ...func(*tenantcontent.Config)) *world {
	t.Helper()
	// its certificate is self-signed
	is, w := is.New(t), &world{db: db, way: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	t.Cleanup(w.way.CloseIdleConnections)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		page, ok := w.pages[r.URL.Path]
		w.mu.Unlock()
		if ok {
			rw.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = io.WriteString(rw, page)
			return
		}
		w.app.ServeHTTP(rw, r)
	}))
	scheme, start := "http", server.Start
	if server.TLS = secure; secure != nil {
		scheme, start = "https", server.StartTLS
	}
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	is.NoErr(err)
	w.url = scheme + "://localhost:" + port
	c := tenantcontent.Config{
		DomainDrivers: []domains.Driver{ldap.AD{}, ldap.LDAP{}, saml.Driver{}, oidc.Driver{}},
		Scripts:       javascript.New(javascript.Options{}),
		DB:            db,
		SecretKey:     key,
		BaseURL:       w.url,
		AllowNetworks: egress.Loopback(),
		Log:           slog.New(slog.NewTextHandler(&w.log, nil)),
	}
	for _, f := range change {
		f(&c)
	}
	w.url = c.BaseURL
	w.way.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		// whatever its names resolve to
		return new(net.Dialer).DialContext(ctx, network, server.Listener.Addr().String())
	}
	w.app, err = tenantcontent.Open(c)
	is.NoErr(err)
	start()
	t.Cleanup(server.Close)
	for _, tenant := range []string{"acme", "evil"} {
		if _, err := w.app.Principals.Unchecked().AddSuperuser(
			t.Context(), principals.Credentials{Tenant: tenant, Username: "admin", Password: password},
		); errs.CodeOf(err) != errs.Conflict {
			is.NoErr(err)
		}
	}
	w.admin = w.in(t, "acme", "local", "admin", password)
	return w
}

// host sets the pages of the host program.
func (w *world) host(pages map[string]string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pages = pages
}

// sync returns a dirsync.Service beside the server.
func (w *world) sync() *dirsync.Service {
	return dirsync.New(dirsync.Options{Store: bunstore.New(w.db), Principals: w.app.Principals.Unchecked()})
}

// caller sends requests with a token, or without one if it is "".
type caller struct {
	w     *world
	token string
}

// in logs a user in; the login must succeed.
func (w *world) in(t testing.TB, tenant, domain, username, password string) *caller {
	t.Helper()
	a := w.login(t, tenant, domain, username, password)
	if a.status != http.StatusOK {
		t.Fatalf("%s of %s cannot log in: %d %s", username, domain, a.status, a.body)
	}
	return &caller{w, read[struct{ Token string }](t, a).Token}
}

// login tries to log a user in.
func (w *world) login(t testing.TB, tenant, domain, username, password string) answer {
	t.Helper()
	body, err := json.Marshal(map[string]string{"tenant": tenant, "username": username, "password": password})
	is.New(t).NoErr(err)
	return (&caller{w, ""}).do(t, "POST", "/api/login/"+domain, string(body))
}

// answer is the answer to a request.
type answer struct {
	status int
	header http.Header
	body   string
}

// do sends a request. A body is JSON.
func (c *caller) do(t testing.TB, method, path, body string) answer {
	t.Helper()
	is := is.New(t)
	r, err := http.NewRequestWithContext(t.Context(), method, c.w.url+path, strings.NewReader(body))
	is.NoErr(err)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	res, err := c.w.way.RoundTrip(r)
	is.NoErr(err)
	return received(t, res)
}

func received(t testing.TB, res *http.Response) answer {
	t.Helper()
	body, err := io.ReadAll(res.Body)
	is.New(t).NoErr(err)
	is.New(t).NoErr(res.Body.Close())
	return answer{res.StatusCode, res.Header, string(body)}
}

// must sends a request that must succeed.
func (c *caller) must(t testing.TB, method, path, body string) answer {
	t.Helper()
	a := c.do(t, method, path, body)
	if a.status >= 300 {
		t.Fatalf("%s %s: %d %s", method, path, a.status, a.body)
	}
	return a
}

// refused checks that a request fails with a status, and returns the sentence.
func (a answer) refused(t testing.TB, status int) string {
	t.Helper()
	p := read[struct {
		StatusCode int
		Message    string
	}](t, a)
	if a.status != status || p.StatusCode != status || p.Message == "" {
		t.Fatalf("want %d, got %d %s", status, a.status, a.body)
	}
	return p.Message
}

// stranger checks that a login or a credential is refused in the same way as every other one.
func (a answer) stranger(t testing.TB) {
	t.Helper()
	if m := a.refused(t, http.StatusUnauthorized); m != "Unable to log in" &&
		!strings.HasSuffix(m, "Log in first.") || len(a.header.Values("Set-Cookie")) > 0 {
		t.Fatalf("%s %v", a.body, a.header)
	}
}

// read reads an answer's body.
func read[T any](t testing.TB, a answer) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.body), &v); err != nil {
		t.Fatalf("%d %s: %v", a.status, a.body, err)
	}
	return v
}

// who returns the user of the caller.
func (c *caller) who(t testing.TB) string {
	t.Helper()
	return read[struct{ User string }](t, c.must(t, "GET", "/api/session", "")).User
}

// user has the fields of a user that the tests check.
type user struct {
	Username, Domain, Email, DisplayName, SourceID string
	Enabled, Superuser                             bool
}

func (c *caller) user(t testing.TB, name string) user {
	t.Helper()
	return read[user](t, c.must(t, "GET", "/api/users/"+name, ""))
}

// users returns the users of a domain by name.
func (c *caller) users(t testing.TB, domain string) map[string]user {
	t.Helper()
	all := map[string]user{}
	list := read[struct {
		Embedded map[string][]user `json:"_embedded"`
	}](t, c.must(t, "GET", "/api/users?limit=1000", ""))
	for _, u := range list.Embedded["inf:user"] {
		if u.Domain == domain {
			all[u.Username] = u
		}
	}
	return all
}

// create sends a POST and returns the id of the new entity.
func (c *caller) create(t testing.TB, path, body string) string {
	t.Helper()
	return read[struct{ ID string }](t, c.must(t, "POST", path, body)).ID
}

// domain creates a domain, whose provider need not be running, and returns its id.
func (c *caller) domain(t testing.TB, name, driver string, config any) string {
	t.Helper()
	body, err := json.Marshal(map[string]any{"name": name, "type": driver, "config": config})
	is.New(t).NoErr(err)
	return c.create(t, "/api/domains?check=false", string(body))
}

// reconfigure changes the configuration of a domain.
func (c *caller) reconfigure(t testing.TB, id, driver string, config any) {
	t.Helper()
	body, err := json.Marshal(map[string]any{"id": id, "type": driver, "config": config})
	is.New(t).NoErr(err)
	c.must(t, "PUT", "/api/domains/"+id+"?check=false", string(body))
}
