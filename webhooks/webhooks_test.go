package webhooks_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/handlers"
	"github.com/tenantcontent/tenantcontent/internal/handlers/jsvm"
	"github.com/tenantcontent/tenantcontent/internal/jobs/queue"
	"github.com/tenantcontent/tenantcontent/internal/secure/keyring"
	"github.com/tenantcontent/tenantcontent/internal/store/webhooks"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/sessions"
	"github.com/tenantcontent/tenantcontent/webhooks"
)

var (
	monday   = time.Date(2026, 11, 16, 9, 0, 0, 123456000, time.UTC)
	loopback = netip.MustParseAddr("127.0.0.1")
)

func id(n int) string { return fmt.Sprintf("00000000-0000-7000-8000-%012d", n) }

// fixture is a Service whose app a, of tenant acme, has the token t1, and whose handlers are
// functions.
type fixture struct {
	*webhooks.Service
	store   *failing
	now     time.Time
	ids     int
	secret  []byte
	env     map[string]string
	tokens  []string
	owner   error // of the owner
	lookups []string
	config  string // of the route POST /x
	run     func(in handlers.Invocation) (handlers.Outcome, error)
	ran     []handlers.Invocation
	actors  []actor.Actor
	jobs    []queue.Job
	full    error // of the queue
	bound   int
	bind    func(in *handlers.Invocation) (end func(), err error) // nil: it does nothing
}

// Put implements webhooks.Queue.
func (f *fixture) Put(_ context.Context, jobs ...queue.Job) error {
	if f.full == nil {
		f.jobs = append(f.jobs, jobs...)
	}
	return f.full
}

// failing is a Store whose writes fail on demand.
type failing struct {
	webhooks.Store
	before, after error // what Record returns instead of, and after, recording
	recorded      int
}

func (f *failing) Record(ctx context.Context, tenant string, all []webhooks.Entry) error {
	if f.before != nil {
		return f.before
	}
	f.recorded++
	return errors.Join(f.Store.Record(ctx, tenant, all), f.after)
}

// Apps.

func (f *fixture) CheckInspect(ctx context.Context, app string) (string, error) {
	a, err := actor.From(ctx)
	if err == nil && (app != "a" || a.Tenant != "acme") {
		err = errs.New(errs.NotFound, "App not found.")
	}
	return app, err
}

func (f *fixture) CheckRecords(ctx context.Context, app string) (string, error) {
	return f.CheckInspect(ctx, app)
}

func (f *fixture) CheckWrite(ctx context.Context, app string) (string, error) {
	a, _ := actor.From(ctx)
	if a.ReadOnly {
		return "", errs.New(errs.Forbidden, "This token can only read.")
	}
	return f.CheckInspect(ctx, app)
}

func (f *fixture) WebhookSecret(ctx context.Context, app string) ([]byte, error) {
	_, err := f.CheckWrite(ctx, app)
	return f.secret, err
}

// Handlers.

var routes = []handlers.Route{{Area: handlers.Webhooks, Path: "/x/:id", Methods: []string{"GET", "POST"}}}

func (f *fixture) Routes(context.Context, handlers.App, handlers.Area) ([]handlers.Route, error) {
	return routes, nil
}

func (f *fixture) Match(
	_ context.Context, app handlers.App, area handlers.Area, method, path string,
) (handlers.Route, map[string]string, error) {
	one, ok := strings.CutPrefix(path, "/x/")
	switch {
	case app != (handlers.App{Tenant: "acme", ID: "a"}) || area != handlers.Webhooks || !ok:
		return handlers.Route{}, nil, errs.New(errs.NotFound, "The app has no such route.")
	case method == "PUT":
		return routes[0], nil, handlers.NotAllowed{Methods: routes[0].Methods}
	}
	r := routes[0]
	r.Config = json.RawMessage(f.config)
	return r, map[string]string{"id": one}, nil
}

func (f *fixture) Run(ctx context.Context, in handlers.Invocation) (handlers.Outcome, error) {
	a, err := actor.From(ctx)
	f.actors, f.ran = append(f.actors, a), append(f.ran, in)
	if err != nil {
		return handlers.Outcome{}, err
	}
	return f.run(in)
}

func fine(handlers.Invocation) (handlers.Outcome, error) {
	return handlers.Outcome{
		Response: handlers.Response{Status: 200, Body: []byte("ok")},
		Result:   jsvm.Result{Outcome: jsvm.OK, PeakMemory: 7},
	}, nil
}

func newFixture(t *testing.T, limits ...webhooks.Limits) *fixture {
	t.Helper()
	keys, err := keyring.Parse(keyring.Generate())
	is.New(t).NoErr(err)
	f := &fixture{
		store: &failing{Store: bunstore.New(dbtest.SQLite(t))}, now: monday,
		secret: []byte(strings.Repeat("s", 32)), tokens: []string{"t1"}, env: map[string]string{"KEY": "Jefe"},
		config: `{}`, run: fine,
	}
	o := webhooks.Options{
		Store: f.store, Apps: f, Handlers: f, Keys: keys, Now: func() time.Time { return f.now }, Queue: f,
		Bind: func(_ context.Context, in *handlers.Invocation) (func(), error) {
			f.bound++
			if f.bind != nil {
				return f.bind(in)
			}
			return func() {}, nil
		},
		NewID: func() string {
			f.ids++
			return id(f.ids)
		},
		Target: func(_ context.Context, tenant, app string) (webhooks.Target, error) {
			f.lookups = append(f.lookups, "app")
			if tenant != "acme" || app != "a" {
				return webhooks.Target{}, errs.New(errs.NotFound, "App not found.")
			}
			return webhooks.Target{App: "a", Owner: "jo", Secret: f.secret, Env: f.env}, nil
		},
		UseToken: func(_ context.Context, tenant string, of sessions.TokensOf, id string, from netip.Addr) error {
			f.lookups = append(f.lookups, "token")
			if tenant != "acme" || of != (sessions.TokensOf{Type: sessions.Webhook, EntityID: "a"}) ||
				!slices.Contains(f.tokens, id) || from != loopback {
				return errs.New(errs.Unauthenticated, "no")
			}
			return nil
		},
		Owner: func(_ context.Context, tenant, principal string) (webhooks.Owner, error) {
			f.lookups = append(f.lookups, "owner")
			return webhooks.Owner{
				Actor: actor.Actor{Tenant: tenant, User: principal},
				User:  handlers.User{ID: principal, Type: "User"},
			}, f.owner
		},
	}
	for _, l := range limits {
		o.Limits = l
	}
	f.Service = webhooks.New(o)
	return f
}

func (f *fixture) as(t *testing.T) context.Context {
	return actor.With(t.Context(), actor.Actor{Tenant: "acme", User: "jo", Superuser: true})
}

func (f *fixture) key(t *testing.T) string {
	t.Helper()
	keys, err := f.Keys(f.as(t), "a")
	is.New(t).NoErr(err)
	key, err := keys("t1", monday)
	is.New(t).NoErr(err)
	return key
}

// call calls POST /x/1, or what change makes of it.
func (f *fixture) call(t *testing.T, change ...func(*webhooks.Call)) (handlers.Response, bool, error) {
	t.Helper()
	by, err := f.Unchecked().Admit(t.Context(), "a", f.key(t), loopback)
	is.New(t).NoErr(err)
	c := webhooks.Call{Method: "POST", Path: "/x/1", Body: func() ([]byte, error) {
		return []byte("what do ya want for nothing?"), nil
	}}
	for _, edit := range change {
		edit(&c)
	}
	return f.Unchecked().Handle(t.Context(), by, c)
}

func (f *fixture) list(t *testing.T) webhooks.Listing {
	t.Helper()
	l, err := f.Invocations(f.as(t), "a", webhooks.Filter{})
	is.New(t).NoErr(err)
	return l
}

func (f *fixture) last(t *testing.T) webhooks.Invocation {
	t.Helper()
	v, err := f.Invocation(f.as(t), "a", f.list(t).Recent[0].ID)
	is.New(t).NoErr(err)
	return v
}

// TestKey: a key is a JSON Web Token as documented, and the same as long as the secret is.
func TestKey(t *testing.T) {
	is, f := is.New(t), newFixture(t)
	key := f.key(t)
	is.Equal(key, f.key(t))
	c := jwt.MapClaims{}
	parsed, err := jwt.NewParser().ParseWithClaims(key, c, func(*jwt.Token) (any, error) { return f.secret, nil })
	is.NoErr(err)
	is.Equal(parsed.Header, map[string]any{"alg": "HS256", "typ": "JWT", "kid": "acme"})
	is.Equal(c, jwt.MapClaims{"key": "t1", "iat": float64(monday.Unix())})
	f.secret = []byte(strings.Repeat("n", 32))
	is.True(f.key(t) != key)
	_, err = f.Keys(actor.With(t.Context(), actor.Actor{Tenant: "evil", User: "eve", Superuser: true}), "a")
	is.Equal(errs.CodeOf(err), errs.NotFound)
	_, err = f.Keys(t.Context(), "a")
	is.Equal(errs.CodeOf(err), errs.Unauthenticated)
}

// TestAdmitRefuses every bad key with the same error, after at most one look-up for a wrong
// signature.
func TestAdmitRefuses(t *testing.T) {
	f := newFixture(t)
	sign := func(method jwt.SigningMethod, secret any, kid any, claims jwt.MapClaims) string {
		token := jwt.NewWithClaims(method, claims)
		token.Header["kid"] = kid
		text, err := token.SignedString(secret)
		is.New(t).NoErr(err)
		return text
	}
	good := jwt.MapClaims{"key": "t1", "iat": monday.Unix()}
	right := sign(jwt.SigningMethodHS256, f.secret, "acme", good)
	for name, test := range map[string]struct {
		app, key string
		lookups  int
	}{
		"none":                   {"a", "", 0},
		"no token":               {"a", "x", 0},
		"another algorithm":      {"a", sign(jwt.SigningMethodHS512, f.secret, "acme", good), 0},
		"no algorithm":           {"a", sign(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, "acme", good), 0},
		"no tenant":              {"a", sign(jwt.SigningMethodHS256, f.secret, "", good), 0},
		"an odd tenant":          {"a", sign(jwt.SigningMethodHS256, f.secret, "ac\x00me", good), 0},
		"a number as tenant":     {"a", sign(jwt.SigningMethodHS256, f.secret, 1, good), 0},
		"no row":                 {"a", sign(jwt.SigningMethodHS256, f.secret, "acme", jwt.MapClaims{}), 0},
		"an odd row":             {"a", sign(jwt.SigningMethodHS256, f.secret, "acme", jwt.MapClaims{"key": "t 1"}), 0},
		"a number as row":        {"a", sign(jwt.SigningMethodHS256, f.secret, "acme", jwt.MapClaims{"key": 1}), 0},
		"a line break":           {"a", right + "\n", 0},
		"a return within":        {"a", right[:9] + "\r" + right[9:], 0},
		"another last character": {"a", right[:len(right)-1] + string(right[len(right)-1]+1), 0},
		"a long one":             {"a", right + strings.Repeat("x", 1024), 0},
		"another secret":         {"a", sign(jwt.SigningMethodHS256, []byte("other"), "acme", good), 1},
		"an empty secret":        {"a", sign(jwt.SigningMethodHS256, []byte{}, "acme", good), 1},
		"another signature":      {"a", right[:len(right)-2] + "AA", 1},
		"another app":            {"b", right, 1},
		"another tenant":         {"a", sign(jwt.SigningMethodHS256, f.secret, "evil", good), 1},
		"a tenant that is none":  {"a", sign(jwt.SigningMethodHS256, f.secret, "nobody", good), 1},
		"a revoked one":          {"a", sign(jwt.SigningMethodHS256, f.secret, "acme", jwt.MapClaims{"key": "t2"}), 2},
		"an expired one": {
			"a", sign(jwt.SigningMethodHS256, f.secret, "acme", jwt.MapClaims{"key": "t1", "exp": 1}), 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			f.lookups = nil
			_, err := f.Unchecked().Admit(t.Context(), test.app, test.key, loopback)
			is.Equal(errs.CodeOf(err), errs.Unauthenticated)
			is.Equal(errs.MessageOf(err), "The token is missing or not valid.")
			is.Equal(len(f.lookups), test.lookups)
		})
	}
	is := is.New(t)
	_, err := f.Unchecked().Admit(t.Context(), "a", right, loopback)
	is.NoErr(err)
	_, err = f.Unchecked().Admit(t.Context(), "a", right, netip.MustParseAddr("192.0.2.1"))
	is.Equal(errs.CodeOf(err), errs.Unauthenticated)
	for _, code := range []errs.Code{errs.Unauthenticated, errs.NotFound, errs.Unavailable} {
		f.owner = errs.New(code, "no")
		_, err := f.Unchecked().Admit(t.Context(), "a", right, loopback)
		want := errs.Unauthenticated
		if code == errs.Unavailable { // the key may well be right
			want = code
		}
		is.Equal(errs.CodeOf(err), want)
	}
}

func TestHandle(t *testing.T) {
	is, f := is.New(t), newFixture(t)
	ended := 0
	f.bind = func(in *handlers.Invocation) (func(), error) {
		in.Datasets = []string{"sales"}
		return func() { ended++ }, nil
	}
	answer, responded, err := f.call(t, func(c *webhooks.Call) {
		c.Query = map[string][]string{"token": {"x"}, "app_token": {"x"}, "a": {"1", "2"}}
		c.Header = map[string][]string{
			"Cookie":              {"sid=x"},
			"Proxy-Authorization": {"x"},
			"Authorization":       {"Bearer y"},
			"X-Event":             {"a", "b"},
			"Content-Type":        {"text/plain"},
		}
	})
	is.NoErr(err)
	is.True(!responded)
	is.Equal(string(answer.Body), "ok")
	is.Equal(f.bound, 1)
	is.Equal(ended, 1)
	in := f.ran[0]
	is.Equal(f.actors, []actor.Actor{{Tenant: "acme", User: "jo"}})
	is.Equal(in.Env, f.env)
	is.Equal(in.Datasets, []string{"sales"})
	is.Equal(in.Request, handlers.Request{
		Method: "POST", Path: "/x/1", Params: map[string]string{"id": "1"}, Query: map[string][]string{"a": {"1", "2"}},
		Headers:     map[string]string{"authorization": "Bearer y", "x-event": "a, b", "content-type": "text/plain"},
		Body:        []byte("what do ya want for nothing?"),
		ContentType: "text/plain", RawBody: true, User: &handlers.User{ID: "jo", Type: "User"}, Roles: []string{},
	})
	l := f.list(t)
	is.Equal(l.Routes, routes)
	is.Equal(l.Recent, []webhooks.Invocation{{
		ID:        id(1),
		App:       "a",
		Area:      handlers.Webhooks,
		Method:    "POST",
		Path:      "/x/:id",
		StartedAt: monday,
		Status:    200,
		Memory:    7,
	}})
	is.Equal(l.Days, []webhooks.Day{{Day: "2026-11-16", Calls: 1}})
}

// TestBindFails: what the service has against it is in its log, not in the record that the owner
// reads.
func TestBindFails(t *testing.T) {
	for _, c := range []struct {
		err    error
		status int
		want   string
	}{
		{errors.New("secret"), 500, "The service failed; its log has the reason."},
		{
			errs.Wrap(errs.Unavailable, errors.New("secret"), "The database does not answer."), 503,
			"The database does not answer.",
		},
	} {
		is, f := is.New(t), newFixture(t)
		f.bind = func(*handlers.Invocation) (func(), error) { return nil, c.err }
		_, _, err := f.call(t)
		is.Equal(err, c.err)
		is.Equal(len(f.ran), 0)
		v := f.last(t)
		is.Equal(v.Status, c.status)
		is.Equal(*v.Error, c.want)
	}
}

// TestRecords of calls that fail, or get to no handler.
func TestRecords(t *testing.T) {
	is, f := is.New(t), newFixture(t)
	check := func(status int, path, want string) webhooks.Invocation {
		t.Helper()
		f.now = f.now.Add(time.Second)
		v := f.last(t)
		is.Equal(v.Status, status)
		is.Equal(v.Path, path)
		if want == "" {
			is.Equal(v.Error, nil)
		} else {
			is.True(v.Error != nil)
			is.True(strings.Contains(*v.Error, want))
		}
		return v
	}
	_, _, err := f.call(t, func(c *webhooks.Call) { c.Path = "/nowhere/\x00" + strings.Repeat("ü", 1000) })
	is.Equal(errs.CodeOf(err), errs.NotFound)
	v := check(404, "/nowhere/\ufffd"+strings.Repeat("ü", 244), "no such route")
	is.Equal(len(v.Path), 500)
	_, _, err = f.call(t, func(c *webhooks.Call) { c.Method = "PUT" })
	is.Equal(errs.CodeOf(err), errs.MethodNotAllowed)
	check(405, "/x/1", "no such method")
	_, _, err = f.call(t, func(c *webhooks.Call) {
		c.Body = func() ([]byte, error) { return nil, errs.New(errs.TooLarge, "too large") }
	})
	is.Equal(errs.CodeOf(err), errs.TooLarge)
	check(413, "/x/:id", "too large")
	is.Equal(len(f.ran), 0)

	f.run = func(handlers.Invocation) (handlers.Outcome, error) {
		return handlers.Outcome{Response: handlers.Response{Status: 504}, Result: jsvm.Result{
			Outcome: jsvm.Timeout, PeakMemory: 1 << 20,
			LogsDropped: 3, Error: &jsvm.Error{Name: "Error", Message: "too\x00 slow", Stack: "at a.js:1:2\n"},
			Logs: []jsvm.Log{{Time: monday, Level: "info", Text: "hello\x00"}},
		}}, nil
	}
	answer, _, err := f.call(t)
	is.NoErr(err)
	is.Equal(answer.Status, 504)
	v = check(504, "/x/:id", "Error: too\ufffd slow\nat a.js:1:2")
	is.Equal(v.Memory, int64(1<<20))
	is.Equal(v.LogsDropped, 3)
	is.Equal(v.Logs, []webhooks.Log{{Time: monday.Truncate(time.Millisecond), Level: "info", Text: "hello\ufffd"}})

	f.run = func(handlers.Invocation) (handlers.Outcome, error) {
		return handlers.Outcome{}, errs.New(errs.Unavailable, "Too many scripts run.")
	}
	_, _, err = f.call(t)
	is.Equal(errs.CodeOf(err), errs.Unavailable)
	check(503, "/x/:id", "Too many scripts run.")
	f.run = func(handlers.Invocation) (handlers.Outcome, error) {
		return handlers.Outcome{}, errors.New("secret cause")
	}
	_, _, err = f.call(t)
	is.True(err != nil)
	v = check(500, "/x/:id", "The service failed")
	is.True(!strings.Contains(*v.Error, "secret"))
	f.run = func(handlers.Invocation) (handlers.Outcome, error) {
		return handlers.Outcome{Result: jsvm.Result{Outcome: jsvm.Canceled}}, nil
	}
	_, _, err = f.call(t)
	is.Equal(errs.CodeOf(err), errs.Unavailable) // the service is stopping
	check(503, "/x/:id", "stopped")
	is.Equal(f.list(t).Days[0].Errors, int64(7))
	days, err := f.Invocations(f.as(t), "a", webhooks.Filter{Method: "POST", Path: "/x/:id"})
	is.NoErr(err)
	is.Equal(days.Days[0].Calls, int64(5)) // what no route has is not counted for one
}

// TestServe: calls of server routes that fail or log are recorded apart from those of webhooks,
// some in a minute.
func TestServe(t *testing.T) {
	is, f := is.New(t), newFixture(t, webhooks.Limits{Served: 3})
	in := handlers.Invocation{
		App:     handlers.App{Tenant: "acme", ID: "a"},
		Route:   handlers.Route{Area: handlers.Server, Path: "/x/:id"},
		Request: handlers.Request{Method: "HEAD"},
	}
	serve := func(want errs.Code, run func(handlers.Invocation) (handlers.Outcome, error)) {
		t.Helper()
		f.run = func(in handlers.Invocation) (handlers.Outcome, error) {
			f.now = f.now.Add(time.Second)
			return run(in)
		}
		_, err := f.Unchecked().Serve(f.as(t), in)
		is.Equal(errs.CodeOf(err), want)
	}
	ended := func(status int, r jsvm.Result) func(handlers.Invocation) (handlers.Outcome, error) {
		return func(handlers.Invocation) (handlers.Outcome, error) {
			return handlers.Outcome{Response: handlers.Response{Status: status}, Result: r}, nil
		}
	}
	line := jsvm.Log{Time: monday, Level: "info", Text: "hello"}
	serve("", fine)
	serve("", ended(500, jsvm.Result{Outcome: jsvm.Canceled, Logs: []jsvm.Log{line}}))
	serve("", ended(500, jsvm.Result{
		Outcome:    jsvm.Thrown,
		PeakMemory: 7,
		Error:      &jsvm.Error{Name: "Error", Message: "no", Stack: "at a.js:1:2\n"},
	}))
	serve("", ended(201, jsvm.Result{Outcome: jsvm.OK, Logs: []jsvm.Log{line}, LogsDropped: 2}))
	serve(errs.Unavailable, func(handlers.Invocation) (handlers.Outcome, error) {
		return handlers.Outcome{}, errs.New(errs.Unavailable, "Too many scripts run.")
	})
	serve("", ended(500, jsvm.Result{Outcome: jsvm.Thrown})) // one too many
	all, err := f.ServedInvocations(f.as(t), "a")
	is.NoErr(err)
	no, busy := "Error: no\nat a.js:1:2", "Too many scripts run."
	want := func(n, status int, memory int64, text *string) webhooks.Invocation {
		return webhooks.Invocation{
			ID: id(n), App: "a", Area: handlers.Server,
			Method: "GET", Path: "/x/:id",
			StartedAt: monday.Add(time.Duration(n+1) * time.Second), Duration: time.Second,
			Status: status, Memory: memory, Error: text,
		}
	}
	is.Equal(all, []webhooks.Invocation{want(3, 503, 0, &busy), want(2, 201, 0, nil), want(1, 500, 7, &no)})
	v, err := f.ServedInvocation(f.as(t), "a", strings.ToUpper(id(2)))
	is.NoErr(err)
	is.Equal(v.Logs, []webhooks.Log{{Time: monday.Truncate(time.Millisecond), Level: "info", Text: "hello"}})
	is.Equal(v.LogsDropped, 2)
	l := f.list(t)
	is.Equal(len(l.Recent)+len(l.Days), 0)
	f.now = f.now.Add(time.Minute)
	serve("", ended(200, jsvm.Result{Outcome: jsvm.OK, Logs: []jsvm.Log{line}}))
	all, err = f.ServedInvocations(f.as(t), "a")
	is.NoErr(err)
	is.Equal(len(all), 4)

	f.run = fine
	_, _, err = f.call(t)
	is.NoErr(err)
	refused := func(ctx context.Context, app, id string, want errs.Code) {
		t.Helper()
		_, err := f.ServedInvocation(ctx, app, id)
		is.Equal(errs.CodeOf(err), want)
	}
	refused(f.as(t), "a", f.last(t).ID, errs.NotFound) // a call of a webhook
	refused(f.as(t), "a", "x", errs.NotFound)
	refused(f.as(t), "b", id(1), errs.NotFound)
	refused(t.Context(), "a", id(1), errs.Unauthenticated)
	eve := actor.With(t.Context(), actor.Actor{Tenant: "evil", User: "eve", Superuser: true})
	_, err = f.ServedInvocations(eve, "a")
	is.Equal(errs.CodeOf(err), errs.NotFound)
}

// TestRespond: a call is recorded when its answer is complete, and again at the end, and counts
// once.
func TestRespond(t *testing.T) {
	is, f := is.New(t), newFixture(t)
	f.run = func(in handlers.Invocation) (handlers.Outcome, error) {
		f.now = f.now.Add(time.Second)
		in.Respond(handlers.Response{Status: 202})
		early := f.last(t)
		is.Equal(early.Status, 202)
		is.Equal(early.Duration, time.Second)
		is.Equal(early.Error, nil)
		is.Equal(f.list(t).Days, []webhooks.Day{{Day: "2026-11-16", Calls: 1, Duration: time.Second}})
		f.now = f.now.Add(2 * time.Second)
		return handlers.Outcome{
			Response:  handlers.Response{Status: 202},
			Responded: true,
			Result:    jsvm.Result{Outcome: jsvm.Thrown, Error: &jsvm.Error{Name: "Error", Message: "late"}},
		}, nil
	}
	var got []handlers.Response
	_, responded, err := f.call(t, func(c *webhooks.Call) {
		c.Respond = func(r handlers.Response) { got = append(got, r) }
	})
	is.NoErr(err)
	is.True(responded)
	is.Equal(got, []handlers.Response{{Status: 202}})
	v := f.last(t)
	is.Equal(v.Status, 202)
	is.Equal(*v.Error, "Error: late")
	is.Equal(v.Duration, 3*time.Second)
	is.Equal(f.list(t).Days, []webhooks.Day{{Day: "2026-11-16", Calls: 1, Errors: 1, Duration: 3 * time.Second}})
	is.Equal(len(f.list(t).Recent), 1)

	f.run = func(in handlers.Invocation) (handlers.Outcome, error) { // both are written together
		in.Respond(handlers.Response{Status: 202})
		return handlers.Outcome{
			Response:  handlers.Response{Status: 202},
			Responded: true,
			Result:    jsvm.Result{Outcome: jsvm.OK},
		}, nil
	}
	_, _, err = f.call(t)
	is.NoErr(err)
	is.Equal(f.list(t).Days, []webhooks.Day{{Day: "2026-11-16", Calls: 2, Errors: 1, Duration: 3 * time.Second}})
}

// TestVerify: what the sender has not signed costs no run, and a secret that is missing lets nobody
// in.
func TestVerify(t *testing.T) {
	is, f := is.New(t), newFixture(t)
	f.config = `{"verify": {"preset": "shopify", "secret": "env.KEY"}}`
	signed := func(c *webhooks.Call) {
		c.Header = map[string][]string{"X-Shopify-Hmac-Sha256": {"W9zBRr9gdU5qBCQmCJV1x1oAPwidJzmDnexYuWTsOEM="}}
	}
	_, _, err := f.call(t, signed)
	is.NoErr(err)
	is.Equal(len(f.ran), 1)
	_, _, err = f.call(t)
	is.Equal(errs.CodeOf(err), errs.Unauthenticated)
	is.Equal(*f.last(t).Error, "the header x-shopify-hmac-sha256 is missing")
	is.Equal(f.last(t).Status, 401)
	f.env = nil
	answer, _, err := f.call(t, signed)
	is.NoErr(err)
	is.Equal(answer.Status, 500)
	is.True(!strings.Contains(string(answer.Body), "KEY"))
	is.True(strings.Contains(*f.last(t).Error, "the app has no variable KEY"))
	f.env = map[string]string{"KEY": ""}
	answer, _, err = f.call(t, signed)
	is.NoErr(err)
	is.Equal(answer.Status, 500)
	is.Equal(len(f.ran), 1)
}

func TestCheckConfig(t *testing.T) {
	is := is.New(t)
	for _, ok := range []string{
		`{}`, `{"keep": true, "timeout": 1}`, `{"keep": false}`, `{"later": true}`,
		`{"verify": {"preset": "stripe", "secret": "env.S"}}`,
	} {
		is.NoErr(webhooks.CheckConfig(json.RawMessage(ok)))
	}
	for _, bad := range []string{
		`1`, `{"keep": 1}`, `{"keep": "true"}`, `{"later": 1}`, `{"verify": true}`,
		`{"verify": null, "keep": {}}`, `{"verify": {"preset": "x", "secret": "env.S"}}`,
	} {
		is.Equal(errs.CodeOf(webhooks.CheckConfig(json.RawMessage(bad))), errs.Invalid)
	}
}

// TestRefusalsAreBounded: beyond some a minute they are counted and not recorded.
func TestRefusalsAreBounded(t *testing.T) {
	is, f := is.New(t), newFixture(t, webhooks.Limits{Refusals: 3})
	for range 10 {
		_, _, err := f.call(t, func(c *webhooks.Call) { c.Path = "/nowhere" })
		is.Equal(errs.CodeOf(err), errs.NotFound)
	}
	usual := f.run
	f.run = func(handlers.Invocation) (handlers.Outcome, error) {
		return handlers.Outcome{}, errs.New(errs.Unavailable, "busy")
	}
	_, _, err := f.call(t)
	is.Equal(errs.CodeOf(err), errs.Unavailable)
	f.run = usual
	l := f.list(t)
	is.Equal(len(l.Recent), 3)
	is.Equal(l.Days, []webhooks.Day{{Day: "2026-11-16", Calls: 11, Errors: 11}})
	_, _, err = f.call(t)
	is.NoErr(err)
	is.Equal(len(f.list(t).Recent), 4)
	f.now = f.now.Add(time.Minute)
	_, _, err = f.call(t, func(c *webhooks.Call) { c.Path = "/nowhere" })
	is.Equal(errs.CodeOf(err), errs.NotFound)
	is.Equal(len(f.list(t).Recent), 5)
}

// TestTextsAreBounded: beyond some bytes an hour calls are recorded without their logs, and with
// the beginnings of their errors.
func TestTextsAreBounded(t *testing.T) {
	is, f := is.New(t), newFixture(t, webhooks.Limits{HourBytes: 3000})
	f.run = func(handlers.Invocation) (handlers.Outcome, error) {
		return handlers.Outcome{Response: handlers.Response{Status: 500}, Result: jsvm.Result{
			Outcome: jsvm.Thrown, Error: &jsvm.Error{Name: "Error", Message: strings.Repeat("x", 1000)}, LogsDropped: 1,
			Logs: []jsvm.Log{{Time: monday, Text: strings.Repeat("x", 500)}, {Time: monday, Text: "y"}},
		}}, nil
	}
	last := func() webhooks.Invocation {
		_, _, err := f.call(t)
		is.NoErr(err)
		v, err := f.Invocation(f.as(t), "a", f.list(t).Recent[0].ID)
		is.NoErr(err)
		return v
	}
	is.Equal(len(last().Logs), 2)
	v := last()
	is.Equal(len(v.Logs), 0)
	is.Equal(v.LogsDropped, 3)
	is.Equal(len(*v.Error), 300)
	f.now = f.now.Add(time.Hour)
	is.Equal(len(last().Logs), 2)
}

// TestFailedWrites lose nothing and count nothing twice, also when the database has written and
// could not say so.
func TestFailedWrites(t *testing.T) {
	is, f := is.New(t), newFixture(t)
	away := errs.New(errs.Unavailable, "away")
	f.store.before = away
	_, _, err := f.call(t)
	is.NoErr(err)
	_, err = f.Invocations(f.as(t), "a", webhooks.Filter{})
	is.Equal(errs.CodeOf(err), errs.Unavailable)
	f.store.before, f.store.after = nil, away
	is.True(f.Unchecked().FlushAll(t.Context()) != nil)
	f.store.after = nil
	_, _, err = f.call(t)
	is.NoErr(err)
	l := f.list(t)
	is.Equal(len(l.Recent), 2)
	is.Equal(l.Days[0].Calls, int64(2))
	f.store.recorded = 0
	is.NoErr(f.Unchecked().FlushAll(t.Context()))
	is.Equal(f.store.recorded, 0) // nothing is left
}

func TestReplay(t *testing.T) {
	is, f := is.New(t), newFixture(t)
	f.config = `{"keep": true, "verify": {"preset": "shopify", "secret": "env.KEY"}}`
	_, _, err := f.call(t, func(c *webhooks.Call) {
		c.Header = map[string][]string{
			"X-Shopify-Hmac-Sha256": {"W9zBRr9gdU5qBCQmCJV1x1oAPwidJzmDnexYuWTsOEM="},
			"Cookie":                {"x"},
			"Content-Type":          {"text/plain"},
		}
		c.Query = map[string][]string{"a": {"1"}, "token": {"x"}}
	})
	is.NoErr(err)
	is.True(f.last(t).Kept)
	kept, err := f.store.Kept(t.Context(), "acme", "a", id(1))
	is.NoErr(err)
	is.True(!strings.Contains(string(kept.Request), "nothing"))
	f.now = f.now.Add(time.Hour) // no signature would be valid
	f.env = map[string]string{"KEY": "other"}
	ended := 0
	f.bind = func(*handlers.Invocation) (func(), error) { return func() { ended++ }, nil }
	v, err := f.Replay(f.as(t), "a", strings.ToUpper(id(1)))
	is.NoErr(err)
	is.Equal(ended, 1)
	is.Equal(*v.ReplayOf, id(1))
	is.Equal(v.Status, 200)
	is.Equal(v.Path, "/x/:id")
	is.True(!v.Kept)
	want := f.ran[0].Request
	want.Replay = true
	is.Equal(f.ran[1].Request, want)
	is.Equal(f.ran[1].Env, f.env)
	is.Equal(f.actors[1], actor.Actor{Tenant: "acme", User: "jo"})
	is.Equal(f.list(t).Days, []webhooks.Day{{Day: "2026-11-16", Calls: 2}})

	refused := func(ctx context.Context, app, id string, want errs.Code) {
		t.Helper()
		_, err := f.Replay(ctx, app, id)
		is.Equal(errs.CodeOf(err), want)
	}
	evil := actor.With(t.Context(), actor.Actor{Tenant: "evil", User: "eve", Superuser: true})
	refused(evil, "a", id(1), errs.NotFound)
	refused(f.as(t), "b", id(1), errs.NotFound)
	refused(f.as(t), "a", id(2), errs.NotFound) // the replay itself is not kept
	refused(f.as(t), "a", "x", errs.NotFound)
	refused(t.Context(), "a", id(1), errs.Unauthenticated)
	refused(
		actor.With(t.Context(), actor.Actor{Tenant: "acme", User: "jo", ReadOnly: true}), "a", id(1),
		errs.Forbidden,
	)
	f.owner = errs.New(errs.Unauthenticated, "gone")
	refused(f.as(t), "a", id(1), errs.Conflict)
	is.Equal(len(f.ran), 2)
}

// TestLater: with config.later, a request that cannot run is kept, and runs as its first call when
// it can.
func TestLater(t *testing.T) {
	for _, config := range []string{`{"later": true}`, `{"later": true, "keep": true}`} {
		t.Run(config, func(t *testing.T) {
			is, f := is.New(t), newFixture(t)
			f.config = config
			crowded := func(handlers.Invocation) (handlers.Outcome, error) {
				return handlers.Outcome{}, errs.New(errs.Unavailable, "Too many scripts run.")
			}
			f.run = crowded
			answer, _, err := f.call(t)
			is.NoErr(err)
			is.Equal(answer.Status, 202)
			is.Equal(string(answer.Body), fmt.Sprintf(`{"invocationId":%q}`, id(1)))
			v := f.last(t)
			is.Equal(v.Status, 202)
			is.Equal(v.Error, nil)
			is.True(v.Kept)
			is.Equal(f.list(t).Days, []webhooks.Day{{Day: "2026-11-16", Calls: 1}})
			is.Equal(len(f.jobs), 1)
			is.Equal(f.jobs[0].Tenant, "acme")
			is.Equal(f.jobs[0].Kind, webhooks.JobLater)

			do := f.Unchecked().Workers()[0].Do
			f.now = f.now.Add(time.Minute)
			is.Equal(errs.CodeOf(do(t.Context(), f.jobs[0])), errs.Unavailable) // still no place: it waits on
			is.Equal(f.last(t).Status, 202)
			f.run = fine
			is.NoErr(do(t.Context(), f.jobs[0]))
			v = f.last(t)
			is.Equal(v.ID, id(1))
			is.Equal(v.Status, 200)
			is.Equal(v.ReplayOf, nil)
			is.Equal(v.StartedAt, monday)
			is.Equal(f.list(t).Days, []webhooks.Day{{Day: "2026-11-16", Calls: 1}}) // one call
			is.Equal(f.bound, 3)
			last := f.ran[len(f.ran)-1]
			is.Equal(last.Request, f.ran[0].Request)
			is.Equal(f.actors[len(f.actors)-1], actor.Actor{Tenant: "acme", User: "jo"})

			f.owner = errs.New(errs.Unauthenticated, "gone") // the record says why it cannot run
			is.NoErr(do(t.Context(), f.jobs[0]))
			is.True(strings.Contains(*f.last(t).Error, "disabled or gone"))
			f.owner = nil
			is.NoErr(f.store.Remove(t.Context(), "acme", []string{"a"}))
			is.NoErr(do(t.Context(), f.jobs[0])) // the app is gone

			f.run, f.full = crowded, errs.New(errs.Unavailable, "The queue is full.")
			_, _, err = f.call(t)
			is.Equal(errs.CodeOf(err), errs.Unavailable)
			is.Equal(f.last(t).Status, 503)
		})
	}
}

// TestLaterIsBounded: what waits is not removed for others, so no more is taken than can be kept.
func TestLaterIsBounded(t *testing.T) {
	is, f := is.New(t), newFixture(t, webhooks.Limits{Kept: 2})
	f.config = `{"later": true}`
	f.run = func(handlers.Invocation) (handlers.Outcome, error) {
		return handlers.Outcome{}, errs.New(errs.Unavailable, "Too many scripts run.")
	}
	for range 2 {
		answer, _, err := f.call(t)
		is.NoErr(err)
		is.Equal(answer.Status, 202)
	}
	_, _, err := f.call(t)
	is.Equal(errs.CodeOf(err), errs.Unavailable)
	is.Equal(len(f.jobs), 2)
	f.run = fine
	for _, j := range f.jobs {
		is.NoErr(f.Unchecked().Workers()[0].Do(t.Context(), j))
	}
	is.Equal(len(f.ran), 5)
	f.config = `{}` // without it, nothing is kept
	f.run = func(handlers.Invocation) (handlers.Outcome, error) {
		return handlers.Outcome{}, errs.New(errs.Unavailable, "Too many scripts run.")
	}
	_, _, err = f.call(t)
	is.Equal(errs.CodeOf(err), errs.Unavailable)
}

func TestReadsAreForTheApp(t *testing.T) {
	is, f := is.New(t), newFixture(t)
	_, _, err := f.call(t)
	is.NoErr(err)
	evil := actor.With(t.Context(), actor.Actor{Tenant: "evil", User: "eve", Superuser: true})
	for _, ctx := range []context.Context{evil, t.Context()} {
		_, err := f.Invocations(ctx, "a", webhooks.Filter{})
		is.True(err != nil)
		_, err = f.Invocation(ctx, "a", id(1))
		is.True(err != nil)
	}
	_, err = f.Invocation(f.as(t), "a", "1")
	is.Equal(errs.CodeOf(err), errs.NotFound)
	_, err = f.Invocation(f.as(t), "a", id(9))
	is.Equal(errs.CodeOf(err), errs.NotFound)
}

// TestHooks: records go with their apps, and when they are old.
func TestHooks(t *testing.T) {
	is, f := is.New(t), newFixture(t)
	f.config = `{"keep": true}`
	_, _, err := f.call(t)
	is.NoErr(err)
	f.list(t)
	hooks := f.Unchecked().Hooks()
	some, err := hooks.Dependents(t.Context(), "acme", "app", []string{"a"}, f.now)
	is.NoErr(err)
	is.Equal(some[0].Count, entity.Count{N: 1, Of: "webhook call"})
	some, err = hooks.Dependents(t.Context(), "acme", "report", []string{"a"}, f.now)
	is.NoErr(err)
	is.Equal(len(some), 0)
	sweep := func(after time.Duration, want int) {
		t.Helper()
		f.now = monday.Add(after)
		n, err := hooks.Sweep(t.Context(), "acme")
		is.NoErr(err)
		is.Equal(n, want)
	}
	sweep(7*24*time.Hour, 0)
	sweep(7*24*time.Hour+time.Second, 1) // the request
	sweep(31*24*time.Hour, 2)
	f.now = monday
	_, _, err = f.call(t)
	is.NoErr(err)
	f.list(t)
	is.NoErr(hooks.Deleted(t.Context(), "acme", entity.Key{Kind: "report", ID: "a"}, entity.Key{Kind: "app", ID: "b"}))
	is.Equal(len(f.list(t).Recent), 1)
	is.NoErr(hooks.Deleted(t.Context(), "acme", entity.Key{Kind: "app", ID: "a"}))
	is.Equal(len(f.list(t).Recent), 0)
}
