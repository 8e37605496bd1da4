// Package httpapi adapts the services to the documented routes: it decodes, calls one service and
// encodes.
//
// A noun has a type, such as colorRoutes, with its rows of the route table above their handlers;
// routes.go lists the types. The root imports the package; a host uses it through
// tenantcontent.App.
package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tenantcontent/tenantcontent/internal/clock"
	"github.com/tenantcontent/tenantcontent/internal/rest"

	"github.com/julienschmidt/httprouter"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/ai"
	"github.com/tenantcontent/tenantcontent/aiinstr"
	"github.com/tenantcontent/tenantcontent/apps"
	"github.com/tenantcontent/tenantcontent/apps/agents"
	"github.com/tenantcontent/tenantcontent/apps/messages"
	"github.com/tenantcontent/tenantcontent/assistants"
	"github.com/tenantcontent/tenantcontent/assistants/conversation"
	"github.com/tenantcontent/tenantcontent/bundles"
	"github.com/tenantcontent/tenantcontent/colors"
	"github.com/tenantcontent/tenantcontent/comments"
	"github.com/tenantcontent/tenantcontent/content"
	"github.com/tenantcontent/tenantcontent/content/datasets"
	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/files"
	"github.com/tenantcontent/tenantcontent/inputs"
	"github.com/tenantcontent/tenantcontent/internal/directory/scim"
	"github.com/tenantcontent/tenantcontent/internal/handlers"
	"github.com/tenantcontent/tenantcontent/internal/limits/limiter"
	"github.com/tenantcontent/tenantcontent/internal/rest/view"
	"github.com/tenantcontent/tenantcontent/internal/scripts"
	"github.com/tenantcontent/tenantcontent/internal/secure/guard"
	"github.com/tenantcontent/tenantcontent/internal/workspaces"
	"github.com/tenantcontent/tenantcontent/paging"
	"github.com/tenantcontent/tenantcontent/principals"
	"github.com/tenantcontent/tenantcontent/sessions"
	"github.com/tenantcontent/tenantcontent/tenants"
	"github.com/tenantcontent/tenantcontent/webhooks"
)

// Services are what the routes call.
type Services struct {
	Agents         *agents.Service
	AIInstructions *aiinstr.Service
	Apps           *apps.Service
	Assistants     *assistants.Service
	Content        *content.Service
	Conversations  *conversation.Service
	Datasets       *datasets.Service
	Bundles        *bundles.Service
	Colors         *colors.Service
	Comments       *comments.Service
	Confirmations  *assistants.Confirmations
	Domains        *domains.Service
	Downloads      *files.Downloads
	Inputs         *inputs.Service
	Messages       *messages.Service
	Principals     *principals.Service
	Sessions       *sessions.Service
	Tenants        *tenants.Service
	Uploads        *files.Uploads
	Webhooks       *webhooks.Service
}

// Memory bounds what large answers, and large bodies, hold at once.
type Memory = rest.Memory

// Config configures a Handler. Services, Handlers, Workspaces, Scripts, SCIM, InTx and Ready are
// required.
type Config struct {
	Services
	// Handlers runs the handlers of apps, which httpapi checks the callers of.
	Handlers *handlers.Service
	// Workspaces are the SQL databases of apps, for their handlers.
	Workspaces *workspaces.Service
	// Quotas bound what tenants store; default nil: nothing does.
	Quotas *tenants.Quotas
	// SCIM keeps users and groups for providers of identities, which httpapi checks.
	SCIM *scim.Service
	// HostKinds are the ready kinds of content that the host keeps itself: they have no plain
	// routes here.
	HostKinds []entity.Kind
	// HostParents are the host's own kinds that can be commented: they have routes for that here.
	HostParents []comments.Parent
	// InTx runs fn in one transaction, which every service called with its context joins.
	InTx func(ctx context.Context, fn func(ctx context.Context) error) error
	// Ready fails when the database is away or not migrated.
	Ready func(ctx context.Context) error
	// Writable fails when nothing can be written, saying why. nil: that is not known.
	Writable func(ctx context.Context) error
	// Failed is called with the errors of requests that are not served. It reports whether the log
	// tells of the cause already. nil: it does not.
	Failed func(err error) bool
	// Visible returns an error if the database hides its rows from this program, so that every
	// credential looks wrong. It is called before a 401 is sent, and its error is sent instead. The
	// default always returns nil.
	Visible func(ctx context.Context) error
	// Hidden is what Visible last found, without asking the database: every request below /api is
	// refused with it. Default: nothing is refused.
	Hidden func() error
	// BaseURL starts every link; default http://127.0.0.1:8080. It may have a path, such as
	// https://example.com/content: requests are then served below /content, and also without it,
	// for a proxy or an http.StripPrefix that takes it away. No link ever comes from a request's
	// Host or X-Forwarded headers.
	BaseURL string
	// MaxBody bounds a JSON body in bytes; default 1 MiB.
	MaxBody int64
	// MaxHandlerBody bounds the body of a request to a handler of an app in bytes; default 10 MiB.
	MaxHandlerBody int64
	// Log receives one line for each request (debug) and every failure; default slog.Default.
	Log *slog.Logger
	// Authenticate returns the caller of a request; default: that of the session cookie or bearer
	// token. It returns errs.Unauthenticated if there is none.
	Authenticate func(r *http.Request) (actor.Actor, error)
	// Resume returns the actor of a user whom Authenticate has returned before, with the rights of
	// now: see tenantcontent.Config.
	Resume func(ctx context.Context, tenant, username string) (actor.Actor, error)
	// TrustedProxies are the networks of the proxies whose X-Forwarded-For or Forwarded header
	// names the client; default: none, the client is at the other end of the connection.
	TrustedProxies []netip.Prefix
	// KeepLogins keeps the routes below /api/login beside Authenticate. Without it they do not
	// exist.
	KeepLogins bool
	// Idle is how long a client may take or send nothing before its connection is cut; default 30
	// seconds. After that it must take or send 1 KiB a second on average.
	Idle time.Duration
	// LastIdle replaces Idle once Drain is called; default 2 seconds.
	LastIdle time.Duration
	// Memory bounds what large answers, and large bodies, hold at once.
	Memory Memory
	// Scripts has what the handlers of apps can call, and which rights an app has for its viewer.
	Scripts *scripts.Binder
	// Loopback answers the calls of Scripts; New connects it. nil: there are none.
	Loopback *Loopback
	// AI runs language models for chats and suggestions, within bounds of its own: see chat.Places.
	// Default ai.None.
	AI ai.Provider
	// Heartbeat is how often a stream of events sends something while nothing happens; default 15
	// seconds.
	Heartbeat time.Duration
	// AppOrigin is where each app has an origin of its own, such as https://{app}.apps.example.com;
	// default: none has.
	AppOrigin string
	// ViewKey signs the view tokens of apps, at least 32 bytes that are for nothing else. All
	// programs that serve one database must have the same one; default a random one.
	ViewKey []byte
	// Observer is told of each request; nil: nobody is.
	Observer entity.Observer
	// Now is the clock; default time.Now.
	Now func() time.Time
}

// Handler serves the routes.
type Handler interface {
	http.Handler
	// Drain waits until no request runs, for at most as long as ctx lasts, and returns the cause of
	// ctx if some still do then. From its call on, clients that take or send nothing for
	// Config.LastIdle are cut.
	Drain(ctx context.Context) error
	// Show returns the JSON that a GET of an entity shows a superuser of a tenant, and its own id;
	// nothing for a kind without a GET. row is the entity if it has just been written, else nil.
	// Errors: errs.NotFound.
	Show(ctx context.Context, tenant string, of entity.Key, row any) (id string, shown json.RawMessage, err error)
}

// api is what the routes of all nouns share.
type api struct {
	Config
	router       *rest.Router
	byName       map[string]*rest.Route
	plurals      map[entity.Kind]string // see pluralsOf
	viewHeaders  viewHeaders
	origin       string      // of BaseURL
	origins      *appOrigins // nil for none
	crossOrigin  *http.CrossOriginProtection
	secureCookie bool
	mount        string // path of BaseURL, without a slash at its end
	logins       bool   // whether to serve the routes that log in
	proxies      rest.TrustedProxies
	writing      *limiter.Limiter // by tenant
	heavy        rest.Heavy
	transfers    rest.Transfers
	viewTokens   *view.Tokens
	answers      *limiter.Limiter // bytes of large answers, by tenant and user
	bodies       *limiter.Limiter // the same of large bodies that have been received
	spooled      *limiter.Limiter // the same of those that are being received, in temporary files
}

// The writes of a tenant mostly wait for each other in the database, each with a connection of its
// own. So that a tenant that sends many does not take the connections of all, few of them are there
// at once. With its log-ins (domains, principals), imports and scans, which have bounds of their
// own, a tenant has less than the 32 connections of package postgres.
const (
	maxWriting = 8
)

// New returns a handler that serves all routes. It returns errs.Invalid if BaseURL is malformed.
func New(c Config) (Handler, error) {
	if c.BaseURL == "" {
		c.BaseURL = "http://127.0.0.1:8080"
	}
	if c.MaxBody == 0 {
		c.MaxBody = 1 << 20
	}
	if c.MaxHandlerBody == 0 {
		c.MaxHandlerBody = 10 << 20
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	c.Now = clock.New(c.Now, nil).Now
	if c.AI == nil {
		c.AI = ai.None{}
	}
	if c.Heartbeat == 0 {
		c.Heartbeat = defaultHeartbeat
	}
	origin, mount, err := rest.ParseBaseURL(c.BaseURL)
	if err != nil {
		return nil, err
	}
	c.BaseURL = origin + mount
	if c.Idle == 0 {
		c.Idle = rest.DefaultIdle
	}
	if c.LastIdle == 0 {
		c.LastIdle = 2 * time.Second
	}
	c.Memory = c.Memory.WithDefaults()
	proxies, err := rest.NewTrustedProxies(c.TrustedProxies)
	if err != nil {
		return nil, err
	}
	viewTokens, err := newViewTokens(c.ViewKey)
	if err != nil {
		return nil, err
	}
	origins, err := parseAppOrigin(c.AppOrigin, c.BaseURL)
	if err != nil {
		return nil, err
	}
	a := &api{
		origin: origin, origins: origins,
		viewTokens: viewTokens,
		Config:     c, crossOrigin: http.NewCrossOriginProtection(),
		secureCookie: strings.HasPrefix(origin, "https:"), mount: mount,
		logins:  c.Authenticate == nil || c.KeepLogins,
		proxies: proxies,
		writing: limiter.New(limiter.Options{PerKey: maxWriting, Timeout: rest.MaxWait}),
		answers: c.Memory.Answers(), bodies: c.Memory.Limiter(c.Memory.All / 3), spooled: c.Memory.Disk().Limiter(0),
	}
	a.transfers.Start(c.Idle, c.LastIdle)
	a.heavy = rest.NewHeavy(&a.transfers)
	if err := a.crossOrigin.AddTrustedOrigin(origin); err != nil {
		return nil, err
	}
	if a.Authenticate == nil {
		a.Authenticate = a.authenticate
	}
	routes := slices.DeleteFunc(a.routes(), func(r rest.Route) bool { return r.Login && !a.logins })
	a.byName = make(map[string]*rest.Route, len(routes))
	for i := range routes {
		a.byName[routes[i].Name] = &routes[i]
	}
	a.plurals = pluralsOf(a.byName)
	if err := a.checkPlurals(routes); err != nil {
		return nil, err
	}
	if a.router, err = rest.NewRouter(routes); err != nil {
		return nil, err
	}
	if c.Loopback != nil {
		c.Loopback.to = a
	}
	return a, nil
}

// ServeHTTP serves one request: it finds the route and the caller, calls the handler and writes its
// reply.
func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.transfers.Running.Add(1)
	defer a.transfers.Running.Add(-1)
	out := a.newResponse(w)
	out.ID = rest.RequestID(r)
	out.Sender = rest.NewSender(out, r)
	ctx := actor.WithOrigin(r.Context(), actor.Origin{Address: a.proxies.Client(r), Request: out.ID})
	if rest.IsRead(r.Method) {
		ctx = a.readLimits(ctx, out)
	}
	r = r.WithContext(ctx)
	out.Header().Set("X-Request-Id", out.ID)
	defer out.End()
	if a.Observer != nil {
		defer a.observe(out, r, time.Now())
	}
	defer a.finish(out, r)
	if err := a.serve(out, r); err != nil {
		a.fail(out, r, err)
	}
}

// readLimits returns a context that bounds what is read for an answer.
func (a *api) readLimits(ctx context.Context, out *rest.Response) context.Context {
	return paging.WithLimits(ctx, paging.Limits{MaxBytes: a.Memory.Page, Hold: out.Memory.Hold})
}

func (a *api) newResponse(w http.ResponseWriter) *rest.Response {
	return rest.NewResponse(w, &a.transfers, a.answers, a.Memory)
}

func (a *api) serve(w *rest.Response, r *http.Request) error {
	label, ofLabel, there, err := a.origins.find(r.Host)
	if err != nil {
		return err
	}
	if there {
		return a.serveApp(w, r, label, ofLabel)
	}
	r = rest.Unmounted(r, a.mount)
	path := r.URL.EscapedPath()
	at := viewAddressOf(path)
	below := at.files && at.token != ""
	if below {
		a.setViewHeaders(w.Header(), r, &at)
		if r.Method == http.MethodOptions {
			return preflight().Write(w, r)
		}
	}
	if err := rest.PlainText(r); err != nil {
		return err
	}
	if err := oneAuthorization(r); err != nil {
		return err
	}
	if call, ok := at.server(originOf(r.Context()) != nil); ok && at.files { // the routes are those of view/api
		path = "/api/apps/" + url.PathEscape(at.app) + "/view/api/_server"
		if call != "" {
			path += "/" + call
		}
	}
	route, params, err := a.router.Find(r.Method, path)
	if missing, ok := notInSCIM[path]; ok && errs.CodeOf(err) == errs.NotFound {
		err = missing
	}
	if err != nil {
		return err
	}
	w.Route = route
	if fromApp(r.Context()) {
		if err := closedToApps(route); err != nil {
			return err
		}
	}
	if route.View && !below {
		at.app = params.ByName("id") // also of its share page, which is not below its view
		a.setViewHeaders(w.Header(), r, &at)
	}
	if a.Hidden != nil && strings.HasPrefix(route.Pattern, "/api") {
		if err := a.Hidden(); err != nil {
			return err
		}
	}
	trusted := below || originOf(r.Context()) != nil // the token is the credential; serveApp has checked
	if err := a.crossOrigin.Check(r); err != nil && !trusted && !route.Foreign && (route.Public || !hasBearer(r)) {
		return errs.Wrap(errs.Forbidden, err, "This request came from a page of another origin.")
	}
	all := &struct {
		rest.Request
		visit
	}{visit: visit{view: at}}
	req := &all.Request
	req.Begin(w, r, route, params, rest.Limits{
		MaxBody: a.MaxBody,
		Memory:  a.Memory,
		Bodies:  a.bodies,
		Spooled: a.spooled,
	})
	req.Extra = &all.visit
	w.Who = &req.Who
	if !route.Public {
		if err := a.authorize(req, route); err != nil {
			if page, ok := a.loginPage(req, route, err); ok {
				w.Header().Del("Content-Disposition")
				return page.Write(w, r)
			}
			return err
		}
	}
	if !route.AnyType && r.Method != http.MethodDelete { // whose answer is empty
		name, acceptable := rest.MediaType(r.Header)
		if !acceptable {
			return rest.Failure{
				Status: http.StatusNotAcceptable,
				Message: "This route answers application/json or application/hal+json: name one of them in the " +
					"header Accept.",
			}
		}
		w.HAL = name == rest.TypeHAL
		w.Header().Add("Vary", "Accept")
	}
	if req.Conditions, err = rest.NewConditions(r.Header); err != nil && !route.AnyType {
		// http.ServeContent reads those of files
		return err
	}
	w.Conditions, w.Secret = req.Conditions, route.Secret
	if err := a.room(req, route); err != nil {
		return err
	}
	if w.Place, err = a.heavy.Place(req, rest.Weigh(route, r)); err != nil {
		return err
	}
	defer w.Place.Leave()
	defer req.Bodies.Release()
	if rest.IsRead(r.Method) {
		err := a.answer(w, route, req)
		if errs.CodeOf(err) != errs.NotFound {
			return err
		}
		if again, failed := a.resolveUsername(req); failed != nil || !again {
			return err
		}
		return a.answer(w, route, req)
	}
	if _, err := a.resolveUsername(req); err != nil {
		return err
	}
	return a.answer(w, route, req)
}

// resolveUsername replaces the path parameter username by the exact spelling of the user it names,
// and reports whether that is another one: usernames that are the same without case and after
// Unicode's NFKC name one user. A read looks only when it finds nobody.
func (a *api) resolveUsername(r *rest.Request) (changed bool, err error) {
	i := slices.IndexFunc(r.Params, func(p httprouter.Param) bool { return p.Key == "username" })
	if i < 0 || r.Who.User == "" {
		return false, nil
	}
	name, err := a.Principals.CanonicalName(r.Context(), r.Params[i].Value)
	changed = err == nil && name != r.Params[i].Value
	if changed {
		r.Params[i].Value = name
	}
	return changed, err
}

// authorize authenticates the caller and checks the permission that the route table demands.
func (a *api) authorize(r *rest.Request, route *rest.Route) error {
	who, err := a.callerOf(r, route)
	if err != nil {
		return err
	}
	r.Who = who
	r.Ctx = actor.With(r.Ctx, who)
	if route.Guard != nil {
		if err := route.Guard(r); err != nil {
			return err
		}
	}
	if talks := route.Chatter && visitOf(r).visitor != nil; who.ReadOnly && !rest.IsRead(r.Method) && !talks {
		return who.OnlyReads()
	}
	return who.Require(route.Permission)
}

// writeSlot waits for one of the slots for writes of the caller's tenant: call does as Route.Writes
// says, a handler that first waits for its client or another server when it has done so. Errors:
// errs.Unavailable.
func (a *api) writeSlot(r *rest.Request) (leave func(), err error) {
	leave, err = a.writing.Acquire(r.Context(), 1, r.Who.Tenant)
	return leave, limiter.Unavailable(err, "Too much is written in this tenant at the moment. Try again.")
}

// call runs the handler, in one transaction if the route is transactional. The reply is written
// after the commit, so that a 2xx means that the change is stored.
func (a *api) call(route *rest.Route, r *rest.Request) (rest.Reply, error) {
	var err error
	if route.Options != nil {
		err = r.ReadOptions(route)
	} else {
		err = r.CheckQuery(route)
	}
	if err != nil {
		return rest.Reply{}, err
	}
	g, err := r.Guarded(route)
	if err != nil {
		return rest.Reply{}, err
	}
	if route.Writes == rest.Unbound || route.Writes == rest.ByService && g == nil {
		return a.handleGuarded(r.Context(), route, r, g)
	}
	if err := r.ReadAhead(); err != nil {
		return rest.Reply{}, err
	}
	handle := func() (rest.Reply, error) { return a.handleGuarded(r.Context(), route, r, g) }
	if route.Writes == rest.InSlot && g == nil {
		return a.inSlot(r, handle)
	}
	return a.inTx(r, handle)
}

// inSlot waits for a slot for writes and calls do.
func (a *api) inSlot(r *rest.Request, do func() (rest.Reply, error)) (rest.Reply, error) {
	leave, err := a.writeSlot(r)
	if err != nil {
		return rest.Reply{}, err
	}
	defer leave()
	return do()
}

// inTx waits for a slot for writes and calls do in one transaction.
func (a *api) inTx(r *rest.Request, do func() (rest.Reply, error)) (answer rest.Reply, err error) {
	return a.inSlot(r, func() (rest.Reply, error) {
		plain := r.Ctx
		err = a.InTx(plain, func(ctx context.Context) error {
			r.Ctx = ctx
			answer, err = do()
			return err
		})
		r.Ctx = plain
		return answer, err
	})
}

// handleGuarded runs the handler of a conditional write in the transaction in ctx, if it has one. A
// write that no store has checked wrote to a row that does not exist, which is for the condition to
// decide too; without a transaction the store itself decides that.
func (a *api) handleGuarded(
	ctx context.Context, route *rest.Route, r *rest.Request, g *guard.Guard,
) (rest.Reply, error) {
	if err := a.nameEntities(r); err != nil {
		return rest.Reply{}, err
	}
	if g == nil {
		return route.Handle(r)
	}
	plain := r.Ctx
	defer func() { r.Ctx = plain }()
	r.Ctx = guard.With(ctx, g)
	answer, err := route.Handle(r)
	if err != nil {
		return rest.Reply{}, err
	}
	return answer, g.Missing()
}

// answer calls the handler and writes its reply. If there is no memory for the large answer to a
// read, answer waits for some, with neither memory nor a database connection, and calls the handler
// again.
func (a *api) answer(w *rest.Response, route *rest.Route, r *rest.Request) error {
	r.Answer = &w.Memory
	r.Count(r.Who.Tenant, r.Who.User)
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return a.answerOnce(w, route, r)
	}
	w.Repeatable = true
	for range 3 {
		err := a.answerOnce(w, route, r)
		if !errors.Is(err, rest.ErrNoMemory) {
			return err
		}
		w.Place.Yield()
		ctx, done := a.transfers.Waiting(r.Context())
		err = w.Memory.Wait(ctx, a.Memory.Wait)
		if done(); err != nil {
			return err
		}
		w.Place.Resume()
	}
	return a.answerOnce(w, route, r)
}

func (a *api) answerOnce(w *rest.Response, route *rest.Route, r *rest.Request) error {
	answer, err := a.call(route, r)
	r.WarnOfDropped(w, a.Log)
	if err != nil {
		return err
	}
	return answer.Write(w, r.Request)
}

// Drain implements Handler.
func (a *api) Drain(ctx context.Context) error { return a.transfers.Drain(ctx) }
