package rest

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/limits/limiter"
	"github.com/tenantcontent/tenantcontent/paging"
)

// Config configures an Engine. Authenticate, InTx, MaxBody and Log are required.
type Config struct {
	// Origin and Mount are the parts of the base URL, see ParseBaseURL. A browser's requests are
	// accepted from pages of this origin.
	Origin, Mount string
	// Authenticate returns the caller of a request to a route without a Caller of its own. It
	// returns errs.Unauthenticated for a request without a caller.
	Authenticate func(r *http.Request) (actor.Actor, error)
	// InTx runs fn in one transaction, which every service called with its context joins.
	InTx func(ctx context.Context, fn func(ctx context.Context) error) error
	// Failed is called with the errors of requests that are not served. It reports whether the log
	// has the cause already. A nil Failed reports false.
	Failed func(err error) bool
	// Visible returns an error to send in place of a 401, or nil. A nil Visible returns nil.
	Visible func(ctx context.Context) error
	// Hidden returns the error of all requests below /api, or nil. A nil Hidden returns nil.
	Hidden func() error

	// New returns the Request of a route that has been called, with its Extra. Default: without.
	New func() *Request
	// Enter is called before the route is found. It returns the escaped path that is looked up, and
	// may set headers that each answer has, Request.Extra and Request.Trusted. answered: it has
	// answered the request itself. nil: the path of the request is looked up.
	Enter func(w *Response, of *http.Request, r *Request) (path string, answered bool, err error)
	// Missing returns the error of an escaped path without a route, nil for the plain 404. nil: all
	// have that.
	Missing func(path string) error
	// Problem returns the answer to a failure. ok is false for the usual one. nil: all
	// are usual.
	Problem func(r *http.Request, status int, message string, err error) (answer Reply, ok bool)
	// LoggedPath returns the path of a request for the log, without secrets. nil: as it is.
	LoggedPath func(path string) string

	MaxBody        int64          // bytes of a JSON body
	Memory         Memory         // what large answers and bodies hold at once
	Idle           time.Duration  // how long a client may take or send nothing; default 30 seconds
	LastIdle       time.Duration  // the same once Drain is called; default 2 seconds
	Heartbeat      time.Duration  // of streams of events while nothing happens; default 15 seconds
	TrustedProxies []netip.Prefix // see NewTrustedProxies
	Log            *slog.Logger
	Observer       entity.Observer // is notified of each request, and of those that wait; may be nil
	// Context returns the context of a request for the Observer, with what its headers tell of the
	// work that it is part of. nil: as it is.
	Context func(ctx context.Context, r *http.Request) context.Context
}

// Engine serves routes: it takes each request through the same stages. The route is found and the
// caller authenticated; what the route demands is checked; a heavy request waits for its place, and
// a write for its slot and transaction; the handler returns what to answer, and that is written
// after the commit, or the error in its place.
type Engine struct {
	// Transfers are the bodies and answers that are being sent.
	Transfers Transfers
	// Heavy has the places of heavy requests.
	Heavy Heavy
	// Writing has the slots for writes, by tenant.
	Writing *limiter.Limiter

	o           Config
	router      *Router
	crossOrigin *http.CrossOriginProtection
	proxies     TrustedProxies
	answers     *limiter.Limiter // bytes of large answers, by tenant and user
	bodies      *limiter.Limiter // the same of large bodies that have been received
	spooled     *limiter.Limiter // the same of those that are being received, in temporary files
}

// maxWriting is how many slots for writes a tenant has. Its writes mostly wait for each other in
// the database, each with a connection of its own. So that a tenant that sends many does not take
// the connections of all, few of them are there at once. With its log-ins (domains, principals),
// imports and scans, which have bounds of their own, a tenant has less than the 32 connections of
// package postgres.
const maxWriting = 8

// NewEngine returns an Engine without routes: see Handle. It returns errs.Invalid for proxies or an
// origin that are malformed.
func NewEngine(o Config) (*Engine, error) {
	o.Idle = cmp.Or(o.Idle, DefaultIdle)
	o.LastIdle = cmp.Or(o.LastIdle, 2*time.Second)
	o.Heartbeat = cmp.Or(o.Heartbeat, defaultHeartbeat)
	o.Memory = o.Memory.WithDefaults()
	if o.New == nil {
		o.New = func() *Request { return &Request{} }
	}
	if o.LoggedPath == nil {
		o.LoggedPath = func(path string) string { return path }
	}
	proxies, err := NewTrustedProxies(o.TrustedProxies)
	if err != nil {
		return nil, err
	}
	e := &Engine{
		o: o, proxies: proxies, crossOrigin: http.NewCrossOriginProtection(),
		Writing: limiter.New(limiter.Options{
			PerKey: maxWriting, Timeout: MaxWait, Observer: o.Observer, Kind: "write",
		}),
		answers: o.Memory.Answers(o.Observer),
		bodies:  o.Memory.Limiter(o.Memory.All/3, o.Observer, "body"),
		spooled: o.Memory.Disk().Limiter(0, o.Observer, "body_file"),
	}
	e.Transfers.Start(o.Idle, o.LastIdle)
	e.Heavy = NewHeavy(&e.Transfers, o.Observer)
	return e, e.crossOrigin.AddTrustedOrigin(o.Origin)
}

// Handle sets the routes. It fails for two that cannot be told apart.
func (e *Engine) Handle(routes []Route) (err error) {
	e.router, err = NewRouter(routes)
	return err
}

// Drain waits until no request runs: see Transfers.Drain.
func (e *Engine) Drain(ctx context.Context) error { return e.Transfers.Drain(ctx) }

// ServeHTTP serves one request.
func (e *Engine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.Answer(w, r, func(w *Response, r *http.Request) error { return e.Serve(w, r, nil) })
}

// Answer has a function serve a request within the bounds of all requests, and answers with the
// error that it returns.
func (e *Engine) Answer(w http.ResponseWriter, r *http.Request, serve func(w *Response, r *http.Request) error) {
	e.Transfers.Running.Add(1)
	defer e.Transfers.Running.Add(-1)
	out := NewResponse(w, &e.Transfers, e.answers, e.o.Memory)
	out.ID = RequestID(r)
	out.Sender = NewSender(out, r)
	ctx := actor.WithOrigin(r.Context(), actor.Origin{Address: e.proxies.Client(r), Request: out.ID})
	if IsRead(r.Method) {
		ctx = e.readLimits(ctx, out)
	}
	if e.o.Observer != nil {
		if e.o.Context != nil {
			ctx = e.o.Context(ctx, r)
		}
		ctx = entity.Begin(ctx, e.o.Observer, entity.RequestWork, r.Method)
	}
	r = r.WithContext(ctx)
	out.Header().Set("X-Request-Id", out.ID)
	if e.o.Observer != nil {
		defer e.observe(out, r, time.Now())
	}
	defer out.End()
	defer e.finish(out, r)
	if err := serve(out, r); err != nil {
		e.fail(out, r, err)
	}
}

// readLimits returns a context that bounds what is read for an answer.
func (e *Engine) readLimits(ctx context.Context, out *Response) context.Context {
	return paging.WithLimits(ctx, paging.Limits{MaxBytes: e.o.Memory.Page, Hold: out.Memory.Hold})
}

// As is how a request is served that another one leads to.
type As struct {
	// Caller returns the caller, in place of Route.Caller.
	Caller func(r *Request) (actor.Actor, error)
	// Check returns the error of a route that cannot be called so. nil: each one can be.
	Check func(route *Route) error
	// Trusted: the caller's pages have been checked already.
	Trusted bool
	// Redirects is the error of an answer that is a redirect. nil: there may be one.
	Redirects error
}

// Serve finds the route of a request, calls its handler and writes what that returns. as is nil for
// a request as it came. The error has not been answered.
func (e *Engine) Serve(w *Response, of *http.Request, as *As) error {
	of = Unmounted(of, e.o.Mount)
	r, path := e.o.New(), of.URL.EscapedPath()
	if e.o.Enter != nil {
		looked, answered, err := e.o.Enter(w, of, r)
		if answered || err != nil {
			return err
		}
		path = looked
	}
	if err := PlainText(of); err != nil {
		return err
	}
	if err := oneAuthorization(of); err != nil {
		return err
	}
	route, params, err := e.router.Find(of.Method, path)
	if e.o.Missing != nil && errs.CodeOf(err) == errs.NotFound {
		if missing := e.o.Missing(path); missing != nil {
			err = missing
		}
	}
	if err != nil {
		return err
	}
	w.Route, w.Who = route, &r.Who
	r.begin(e, w, of, route, params)
	if err := e.enter(w, r, as); err != nil {
		return err
	}
	if !route.Public {
		if err := e.authorize(r, as); err != nil {
			if route.Ask == nil || as != nil {
				return err
			}
			page, ok := route.Ask(r, err)
			if !ok {
				return err
			}
			w.Header().Del("Content-Disposition")
			return page.Write(w, of)
		}
	}
	if err := e.negotiate(w, r); err != nil {
		return err
	}
	if route.Admit != nil {
		if err := route.Admit(r); err != nil {
			return err
		}
	}
	if w.Place, err = e.Heavy.Place(r, Weigh(route, of)); err != nil {
		return err
	}
	defer w.Place.Leave()
	defer r.Bodies.Release()
	return e.resolved(w, r)
}

// enter checks what is known of a request before its caller is.
func (e *Engine) enter(w *Response, r *Request, as *As) error {
	route := r.Route
	if as != nil {
		r.Trusted = r.Trusted || as.Trusted
		if as.Redirects != nil {
			w.Redirects = as.Redirects
		}
		if as.Check != nil {
			if err := as.Check(route); err != nil {
				return err
			}
		}
	}
	if route.Begin != nil {
		route.Begin(w, r)
	}
	if e.o.Hidden != nil && strings.HasPrefix(route.Pattern, "/api") {
		if err := e.o.Hidden(); err != nil {
			return err
		}
	}
	err := e.crossOrigin.Check(r.Request)
	if err != nil && !r.Trusted && !route.Foreign && (route.Public || !HasBearer(r.Request)) {
		return errs.Wrap(errs.Forbidden, err, "This request came from a page of another origin.")
	}
	return nil
}

// authorize authenticates the caller and checks the permission that the route table demands.
func (e *Engine) authorize(r *Request, as *As) (err error) {
	switch {
	case as != nil:
		r.Who, err = as.Caller(r)
	case r.Route.Caller != nil:
		r.Who, err = r.Route.Caller(r)
	default:
		r.Who, err = e.o.Authenticate(r.Request)
	}
	if err != nil {
		r.Who = actor.Actor{}
		return err
	}
	r.Ctx = actor.With(r.Ctx, r.Who)
	if r.Route.Guard != nil {
		if err := r.Route.Guard(r); err != nil {
			return err
		}
	}
	if r.Who.ReadOnly && !IsRead(r.Method) && !r.Admitted {
		return r.Who.OnlyReads()
	}
	return r.Who.Require(r.Route.Permission)
}

// negotiate reads which media type the client prefers, and the conditions of the request.
func (e *Engine) negotiate(w *Response, r *Request) (err error) {
	if !r.Route.AnyType && r.Method != http.MethodDelete { // whose answer is empty
		name, acceptable := MediaType(r.Header)
		if !acceptable {
			return Failure{
				Status: http.StatusNotAcceptable,
				Message: "This route answers application/json or application/hal+json: name one of them in the " +
					"header Accept.",
			}
		}
		w.HAL = name == TypeHAL
		w.Header().Add("Vary", "Accept")
	}
	if r.Conditions, err = NewConditions(r.Header); err != nil && !r.Route.AnyType {
		// http.ServeContent reads those of files
		return err
	}
	w.Conditions, w.Secret = r.Conditions, r.Route.Secret
	return nil
}

// resolved answers a request whose parameters Route.Resolve spells as the rows do. A read, which
// mostly names them exactly, has them spelled so when it has found nothing.
func (e *Engine) resolved(w *Response, r *Request) error {
	resolve := r.Route.Resolve
	if resolve == nil {
		return e.answer(w, r)
	}
	if IsRead(r.Method) {
		err := e.answer(w, r)
		if errs.CodeOf(err) != errs.NotFound {
			return err
		}
		if again, failed := resolve(r); failed != nil || !again {
			return err
		}
		return e.answer(w, r)
	}
	if _, err := resolve(r); err != nil {
		return err
	}
	return e.answer(w, r)
}

// Get returns what a GET of an escaped path replies to a caller, without the checks of a request.
func (e *Engine) Get(ctx context.Context, path string, who actor.Actor) (Reply, error) {
	route, params, err := e.router.Find(http.MethodGet, path)
	if err != nil {
		return Reply{}, err
	}
	ctx = actor.With(ctx, who)
	of := (&http.Request{
		Method: http.MethodGet,
		URL:    &url.URL{Path: path},
		Header: http.Header{},
		Body:   http.NoBody,
	}).WithContext(ctx)
	return route.Handle(&Request{
		Request: of,
		Ctx:     ctx,
		Route:   route,
		Params:  params,
		Who:     who,
		MaxBody: e.o.MaxBody,
		engine:  e,
	})
}

// HasBearer reports whether a request has a bearer token, which no browser adds by itself. Any
// other credential, including one for a host's own Authenticate, may be one that a browser adds.
func HasBearer(r *http.Request) bool {
	scheme, _, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.EqualFold(scheme, "Bearer")
}

// oneAuthorization returns errs.Invalid for a request with several Authorization headers: a proxy
// may believe another one than this service.
func oneAuthorization(r *http.Request) error {
	if len(r.Header.Values("Authorization")) > 1 {
		return errs.New(errs.Invalid, "The request has several Authorization headers: send one.")
	}
	return nil
}
