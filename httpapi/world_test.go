package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"
	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/domains/ldap"
	"github.com/tenantcontent/tenantcontent/domains/oidc"
	"github.com/tenantcontent/tenantcontent/domains/saml"
	"github.com/tenantcontent/tenantcontent/httpapi"
	"github.com/tenantcontent/tenantcontent/internal/directory/scim"
	"github.com/tenantcontent/tenantcontent/internal/handlers"
	"github.com/tenantcontent/tenantcontent/internal/handlers/jsvm"
	"github.com/tenantcontent/tenantcontent/internal/handlers/quickjs"
	bindings "github.com/tenantcontent/tenantcontent/internal/scripts"
	"github.com/tenantcontent/tenantcontent/internal/secure/egress"
	"github.com/tenantcontent/tenantcontent/internal/store/principals"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/internal/testkit/logtest"
	"github.com/tenantcontent/tenantcontent/internal/text/charset"
	"github.com/tenantcontent/tenantcontent/internal/text/doctext"
	"github.com/tenantcontent/tenantcontent/internal/text/markdown"
	"github.com/tenantcontent/tenantcontent/internal/workspaces/sqlite"
	"github.com/tenantcontent/tenantcontent/principals"
)

// baseURL is what every link of a world starts with.
const baseURL = "https://content.example"

// password is everybody's.
const password = "open sesame"

// people are the users of a world. All of acme's but nora are in its team Design, with id teamID.
var people = []struct {
	tenant, username, displayName string
	superuser                     bool
	role                          actor.Role
}{
	{"acme", "admin", "", true, actor.NoRole},
	{"acme", "dana", "Dana Smith", false, actor.Designer},
	{"acme", "mia", "Mia Wong", false, actor.Member},
	{"acme", "nora", "", false, actor.NoRole},
	{"acme", "tim", "Tim Berg", false, actor.Admin},
	{"evil", "eve", "", true, actor.Admin},
}

// teamID is acme's team; that of evil is the second.
var teamID = id(1)

// id is the nth id that a world makes.
func id(n int) string { return fmt.Sprintf("00000000-0000-7000-8000-%012d", n) }

// world is the service over a real database, with two tenants and a clock that stands still.
type world struct {
	app  *tenantcontent.App
	db   *bun.DB
	http http.Handler
	log  logtest.Buffer

	dumping string // the statement of dump, once it has been made

	mu       sync.Mutex
	time     time.Time
	ids      int
	sessions map[string]string // username to token
}

// scripts runs the scripts of all worlds.
var scripts = sync.OnceValues(func() (jsvm.Runtime, error) {
	rt, err := quickjs.New(quickjs.Options{Limits: jsvm.Limits{Time: handlers.MaxTime}})
	return steadyScripts{rt}, err
})

// engine returns an engine that runs scripts with a Runtime.
func engine(rt jsvm.Runtime) jsvm.Engine {
	return jsvm.NewEngine(jsvm.Parts{
		Runtime: rt, Markdown: markdown.HTML, Extract: doctext.Extract, Decode: charset.Decode,
	}, nil)
}

// steadyScripts has the same shares on every machine.
type steadyScripts struct{ *quickjs.Runtime }

func (steadyScripts) Shares() jsvm.Shares {
	return jsvm.Shares{
		Scripts: 64, OfTenant: 32, OfKey: 17, Computing: 4,
		Slice: 100 * time.Millisecond, Window: time.Minute, TenantCPU: time.Minute, KeyCPU: 30 * time.Second,
	}
}

// Close does nothing: other worlds have the children, too.
func (steadyScripts) Close() error { return nil }

func (steadyScripts) CPUTime(string) (time.Duration, map[string]time.Duration) {
	return 1250 * time.Millisecond, map[string]time.Duration{
		"018f0000-0000-7000-8000-000000000001": 1250 * time.Millisecond,
	}
}

// newWorld makes a world; change may edit the configuration before it is opened.
func newWorld(t testing.TB, open dbtest.Opener, change ...func(*tenantcontent.Config)) *world {
	t.Helper()
	is := is.New(t)
	w := &world{db: open(t), time: time.Date(2026, 11, 20, 20, 31, 0, 123e6, time.UTC), sessions: map[string]string{}}
	c := tenantcontent.Config{
		DB: w.db, SecretKey: tenantcontent.NewSecretKey(), BaseURL: baseURL, Now: w.now, NewID: w.newID,
		Log: slog.New(slog.NewTextHandler(&w.log, nil)), AllowNetworks: egress.Loopback(), OpenLicenses: true,
	}
	rt, err := scripts()
	is.NoErr(err)
	c.Scripts = engine(rt)
	c.DomainDrivers = []domains.Driver{ldap.AD{}, ldap.LDAP{}, saml.Driver{}, oidc.Driver{}}
	databases, err := sqlite.New(sqlite.Options{Dir: t.TempDir()})
	is.NoErr(err)
	t.Cleanup(func() { is.NoErr(databases.Close()) })
	c.Workspaces = databases
	c.AI, err = models()
	is.NoErr(err)
	for _, f := range change {
		f(&c)
	}
	w.app, err = tenantcontent.Open(c)
	is.NoErr(err)
	w.http = w.app
	w.settle(t)
	return w
}

// settle makes the people and teams. Their passwords cost next to nothing to check.
func (w *world) settle(t testing.TB) {
	t.Helper()
	is := is.New(t)
	cheap := principals.New(principals.Options{
		Store: bunstore.New(w.db), Now: w.now, NewID: w.newID, Cost: principals.Cost{Memory: 8, Time: 1, Threads: 1},
	})
	team := map[string]string{}
	for _, tenant := range []struct{ id, team string }{{"acme", "Design"}, {"evil", "Heist"}} {
		made, err := cheap.CreateTeam(w.as(t, tenant.id), principals.Team{Name: tenant.team})
		is.NoErr(err)
		team[tenant.id] = made.ID
	}
	for _, p := range people {
		u := principals.User{Username: p.username, Superuser: p.superuser, Enabled: true}
		if p.displayName != "" {
			u.DisplayName = &p.displayName
		}
		_, err := cheap.CreateUser(w.as(t, p.tenant), u, password)
		is.NoErr(err)
		if p.role != actor.NoRole {
			_, err = cheap.PutMember(w.as(t, p.tenant), team[p.tenant], p.username, p.role)
			is.NoErr(err)
		}
	}
}

// as is the context of a superuser of a tenant, for calls without HTTP.
func (w *world) as(t testing.TB, tenant string) context.Context {
	return actor.With(t.Context(), actor.Actor{Tenant: tenant, User: "root", Superuser: true})
}

func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.time
}

func (w *world) newID() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ids++
	return id(w.ids)
}

// pass moves the clock. Sessions that have ended meanwhile are made anew when they are next needed.
func (w *world) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.time = w.time.Add(d)
	w.sessions = map[string]string{}
}

// token is a session of a user.
func (w *world) token(t testing.TB, username string) string {
	t.Helper()
	w.mu.Lock()
	token := w.sessions[username]
	w.mu.Unlock()
	if token != "" {
		return token
	}
	tenant := "acme"
	if username == "eve" {
		tenant = "evil"
	}
	l, err := w.app.Sessions.Login(t.Context(), principals.Credentials{
		Tenant: tenant, Domain: "local", Username: username, Password: password,
	})
	is.New(t).NoErr(err)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sessions[username] = l.Token
	return l.Token
}

// rebuilt serves the world's services otherwise: change edits the handler's configuration.
func (w *world) rebuilt(t testing.TB, change func(*httpapi.Config)) {
	t.Helper()
	a := w.app
	model, err := models()
	is.New(t).NoErr(err)
	c := httpapi.Config{
		AI:       model,
		Services: a.Services,
		Scripts:  bindings.New(bindings.Options{Apps: a.Apps, Datasets: a.Datasets, Messages: a.Messages}),
		SCIM: scim.New(scim.Options{
			Store:      bunstore.New(w.db),
			Principals: a.Principals.Unchecked(),
			Now:        w.now,
			NewID:      w.newID,
		}),
		InTx: a.InTx, Ready: a.Ready, BaseURL: baseURL, Now: w.now, Log: slog.New(slog.NewTextHandler(&w.log, nil)),
	}
	change(&c)
	handler, err := httpapi.New(c)
	is.New(t).NoErr(err)
	w.http = handler
}

// answer is what a request got.
type answer struct {
	status int
	header http.Header
	body   string
}

// do sends a request as a user, "" for nobody. A body is JSON, or an archive when it is gzip,
// unless a header says otherwise; headers are "Name: value".
func (w *world) do(t testing.TB, user, method, target, body string, headers ...string) answer {
	t.Helper()
	return w.send(w.request(t, user, method, target, body, headers...))
}

func (w *world) request(t testing.TB, user, method, target, body string, headers ...string) *http.Request {
	t.Helper()
	var content io.Reader
	if body != "" {
		content = strings.NewReader(body)
	}
	r := httptest.NewRequest(method, target, content).WithContext(t.Context())
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if strings.HasPrefix(body, "\x1f\x8b") {
		r.Header.Set("Content-Type", "application/gzip")
	}
	if user != "" {
		r.Header.Set("Authorization", "Bearer "+w.token(t, user))
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	return r
}

func (w *world) send(r *http.Request) answer {
	rec := httptest.NewRecorder()
	w.http.ServeHTTP(rec, r)
	return answer{status: rec.Code, header: rec.Header(), body: rec.Body.String()}
}

// must sends a request that has to succeed.
func (w *world) must(t testing.TB, user, method, target, body string, headers ...string) answer {
	t.Helper()
	a := w.do(t, user, method, target, body, headers...)
	if a.status >= 400 {
		t.Fatalf("%s %s: %d %s", method, target, a.status, a.body)
	}
	return a
}

// message is the sentence of an answer in the error shape, with its status checked; anything else
// fails the test.
func (a answer) message(t testing.TB) string {
	t.Helper()
	if a.header.Get("Content-Type") == "application/scim+json" {
		return a.detail(t)
	}
	var p struct {
		StatusCode int
		Error      string
		Message    string
	}
	d := json.NewDecoder(strings.NewReader(a.body))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil || p.StatusCode != a.status || p.Error != http.StatusText(a.status) ||
		p.Message == "" {
		t.Fatalf("not the error shape: %d %s", a.status, a.body)
	}
	if got := a.header.Get("Content-Type"); got != "application/json; charset=utf-8" {
		t.Fatalf("an error with Content-Type %q", got)
	}
	return p.Message
}

// detail is message for an error of SCIM.
func (a answer) detail(t testing.TB) string {
	t.Helper()
	var p struct {
		Status, ScimType, Detail string
		Schemas                  []string
	}
	d := json.NewDecoder(strings.NewReader(a.body))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil || p.Status != strconv.Itoa(a.status) || p.Detail == "" ||
		len(p.Schemas) != 1 || p.Schemas[0] != scim.ErrorMessage {
		t.Fatalf("not the error of SCIM: %d %s", a.status, a.body)
	}
	return p.Detail
}

// json reads the body into a T.
func read[T any](t testing.TB, a answer) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(a.body), &v); err != nil {
		t.Fatalf("%d %s: %v", a.status, a.body, err)
	}
	return v
}

// page is a collection as a client sees it.
type page struct {
	Links               map[string]struct{ Href string } `json:"_links"`
	Start, Count, Total int
	Embedded            map[string][]map[string]any `json:"_embedded"`
}

// next is the target of the link next, "" for none.
func (p page) next() string { return strings.TrimPrefix(p.Links["next"].Href, baseURL) }

// upload stages a file and returns its id.
func (w *world) upload(t testing.TB, user, content string) string {
	t.Helper()
	return read[struct{ ID string }](t, w.must(t, user, "POST", "/api/uploads?filename=f.json", content)).ID
}
