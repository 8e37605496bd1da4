// Package httpapi adapts the services to the documented routes: it decodes, calls one service and
// encodes.
//
// A noun has a type, such as colorRoutes, with its rows of the route table above their handlers;
// routes.go lists the types. The root imports the package; a host uses it through
// tenantcontent.App.
package httpapi

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

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
	"github.com/tenantcontent/tenantcontent/files"
	"github.com/tenantcontent/tenantcontent/inputs"
	"github.com/tenantcontent/tenantcontent/internal/clock"
	"github.com/tenantcontent/tenantcontent/internal/directory/scim"
	"github.com/tenantcontent/tenantcontent/internal/handlers"
	"github.com/tenantcontent/tenantcontent/internal/limits/limiter"
	"github.com/tenantcontent/tenantcontent/internal/rest"
	"github.com/tenantcontent/tenantcontent/internal/rest/view"
	"github.com/tenantcontent/tenantcontent/internal/scripts"
	"github.com/tenantcontent/tenantcontent/internal/tracing"
	"github.com/tenantcontent/tenantcontent/internal/workspaces"
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
	// Warnings returns what an operator is to mend although requests are served; may be nil.
	Warnings func() []string
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
	// Loopback answers the calls of Scripts; New connects it. nil: Scripts make no calls.
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
	// Observer is notified of each request, and of those that wait; may be nil.
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
	// OpenAPI returns the description of all routes, as JSON. It is made once.
	OpenAPI() ([]byte, error)
}

// api is what the nouns share.
type api struct {
	Config
	*rest.Engine
	chatting     *limiter.Limiter       // of open conversations, by tenant and person
	plurals      map[entity.Kind]string // see pluralsOf
	byName       map[string]*rest.Route
	table        []rest.Route
	description  description
	viewHeaders  viewHeaders
	viewTokens   *view.Tokens
	origin       string      // of BaseURL
	mount        string      // path of BaseURL, without a slash at its end
	origins      *appOrigins // nil for none
	secureCookie bool
	noLogins     bool // the host authenticates callers; the routes of log-in do not exist
}

// New returns a handler that serves all routes. It returns errs.Invalid if BaseURL is malformed.
func New(c Config) (Handler, error) {
	c.BaseURL = cmp.Or(c.BaseURL, "http://127.0.0.1:8080")
	c.MaxBody = cmp.Or(c.MaxBody, 1<<20)
	c.MaxHandlerBody = cmp.Or(c.MaxHandlerBody, 10<<20)
	if c.Log == nil {
		c.Log = slog.Default()
	}
	c.Now = clock.New(c.Now, nil).Now
	if c.AI == nil {
		c.AI = ai.None{}
	}
	a := &api{chatting: newChatting(), noLogins: c.Authenticate != nil && !c.KeepLogins}
	var err error
	if a.origin, a.mount, err = rest.ParseBaseURL(c.BaseURL); err != nil {
		return nil, err
	}
	c.BaseURL = a.origin + a.mount
	a.secureCookie = strings.HasPrefix(a.origin, "https:")
	if a.viewTokens, err = newViewTokens(c.ViewKey); err != nil {
		return nil, err
	}
	if a.origins, err = parseAppOrigin(c.AppOrigin, c.BaseURL); err != nil {
		return nil, err
	}
	if c.Authenticate == nil {
		c.Authenticate = loginFlow{a}.authenticate
	}
	a.Config = c
	a.Engine, err = rest.NewEngine(rest.Config{
		Origin: a.origin, Mount: a.mount, Authenticate: c.Authenticate, InTx: c.InTx,
		Failed: c.Failed, Visible: c.Visible, Hidden: c.Hidden,
		New: newRequest, Enter: a.enter, Missing: missingInSCIM, Problem: a.problem, LoggedPath: loggedPath,
		MaxBody: c.MaxBody, Memory: c.Memory, Idle: c.Idle, LastIdle: c.LastIdle, Heartbeat: c.Heartbeat,
		TrustedProxies: c.TrustedProxies, Log: c.Log, Observer: c.Observer, Context: tracing.Extract,
	})
	if err != nil {
		return nil, err
	}
	routes := a.routes()
	a.table = routes
	a.byName = make(map[string]*rest.Route, len(routes))
	for i := range routes {
		a.complete(&routes[i])
		a.byName[routes[i].Name] = &routes[i]
	}
	a.plurals = pluralsOf(a.byName)
	if err := (commentRoutes{a}).checkPlurals(routes); err != nil {
		return nil, err
	}
	if c.Loopback != nil {
		c.Loopback.to = a
	}
	return a, a.Handle(routes)
}

// complete adds to a route what several nouns need.
func (a *api) complete(route *rest.Route) {
	if a.Quotas != nil && !rest.IsRead(route.Method) && grows(route) {
		route.Admit = a.room
	}
	if strings.Contains(route.Pattern, "/:username") {
		route.Resolve = a.resolveUsername
	}
	if handle := route.Handle; namesEntities(route.Pattern) {
		route.Handle = func(r *rest.Request) (rest.Reply, error) {
			if err := a.nameEntities(r); err != nil {
				return rest.Reply{}, err
			}
			return handle(r)
		}
	}
}

// ServeHTTP serves one request: at the origin of an app its pages, and elsewhere the routes.
func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	label, app, there, err := a.origins.find(r.Host)
	if !there && err == nil {
		a.Engine.ServeHTTP(w, r)
		return
	}
	a.Answer(w, r, func(w *rest.Response, r *http.Request) error {
		if err != nil {
			return err
		}
		return views{a}.serveApp(w, r, label, app)
	})
}

// newRequest returns a request with its visit.
func newRequest() *rest.Request {
	all := &struct {
		rest.Request
		visit
	}{}
	all.Extra = &all.visit
	return &all.Request
}

// enter reads what the path of a request names of a view, whose answers have headers whatever they
// are, and returns the path whose route is called.
func (a *api) enter(w *rest.Response, of *http.Request, r *rest.Request) (path string, answered bool, err error) {
	path = of.URL.EscapedPath()
	at := &visitOf(r).view
	*at = viewAddressOf(path)
	if at.belowToken() {
		r.Trusted = true // the token is the credential
		views{a}.setViewHeaders(w.Header(), of, at)
		if of.Method == http.MethodOptions {
			return "", true, preflight().Write(w, of)
		}
	}
	call, ok := at.server(originOf(of.Context()) != nil)
	if !ok || !at.files {
		return path, false, nil
	}
	path = "/api/apps/" + url.PathEscape(at.app) + "/view/api/_server" // the routes are those of view/api
	if call != "" {
		path += "/" + call
	}
	return path, false, nil
}

// problem returns the errors of SCIM, which have a form of their own.
func (a *api) problem(r *http.Request, status int, message string, err error) (rest.Reply, bool) {
	if !strings.HasPrefix(rest.Unmounted(r, a.mount).URL.Path, scimRoot+"/") {
		return rest.Reply{}, false
	}
	return scimProblem(status, message, err), true
}

// resolveUsername replaces the path parameter username by the exact spelling of the user it names,
// and reports whether that is another one: usernames that are the same without case and after
// Unicode's NFKC name one user.
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
