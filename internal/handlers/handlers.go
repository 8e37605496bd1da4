// Package handlers builds, deploys and runs the JavaScript that an app runs on the server: the
// files of its folders server and webhooks, each of which is a route, and those of its folder
// tools, each of which is a tool of the app's agents.
//
// It checks no rights and serves no requests: its callers, which are the noun apps, httpapi and the
// root, do so. internal/store/handlers stores what is deployed.
package handlers

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io/fs"
	"strings"
	"time"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/clock"
	"github.com/tenantcontent/tenantcontent/internal/handlers/jsvm"
	"github.com/tenantcontent/tenantcontent/internal/limits/cache"
	"github.com/tenantcontent/tenantcontent/internal/limits/limiter"
	"github.com/tenantcontent/tenantcontent/internal/limits/tally"
)

// Area is a folder of handlers.
type Area string

// The areas. Each has the methods that its handlers can export.
const (
	Server   Area = "server"   // GET, POST, PUT, PATCH and DELETE
	Webhooks Area = "webhooks" // GET, POST and PUT
	Tools    Area = "tools"    // the default export
)

// methodsOf are the methods of each area, in the order of Route.Methods.
var methodsOf = map[Area][]string{
	Server:   {"GET", "POST", "PUT", "PATCH", "DELETE"},
	Webhooks: {"GET", "POST", "PUT"},
	Tools:    {"default"},
}

// App is an app or the draft of one. An app runs what was installed last, a draft what its files
// contain now.
type App struct {
	Tenant, ID string
	Draft      bool
}

// Route is a handler: a file with the functions for one path, or a tool.
type Route struct {
	Area Area `json:"area"`
	// pattern below the folder, such as "/stripe/:action"; "/" for the folder's index.js; "/" and
	// the name of a tool
	Path string `json:"path"`
	File string `json:"file"` // such as "webhooks/stripe/[action].js"
	// that the file exports, in the order GET, POST, PUT, PATCH, DELETE; "default" of a tool
	Methods []string        `json:"methods"`
	Config  json.RawMessage `json:"config"` // the exported config, a JSON object; {} without one
	Hash    string          `json:"-"`      // of the sources of its program

	program *jsvm.Program // of a draft, which is not stored
}

// Event is an event of an app, as a handler or tool has emitted it.
type Event struct {
	Tenant  string
	ID      string
	App     string // id
	Name    string
	Payload json.RawMessage
	Depth   int // how many agents and events have started each other until it
}

// DefaultTime is how long a handler without config.timeout may run, and MaxTime the highest
// config.timeout.
const (
	DefaultTime = 30 * time.Second
	MaxTime     = 2 * time.Minute
)

// MaxLoadTime is how long the file of a handler may take to be loaded when it is deployed, on a
// machine that has little time for it. It is the highest Limits.Time that a Runtime needs.
const MaxLoadTime = 20 * time.Minute

// Member returns a member of a config, nil for none. Its name is compared exactly, as Build does.
func Member(config json.RawMessage, name string) json.RawMessage {
	var members map[string]json.RawMessage
	_ = json.Unmarshal(config, &members) // Build has checked it
	return members[name]
}

// Timeout returns the member timeout of the route's config, DefaultTime without one.
func (r Route) Timeout() time.Duration {
	var ms float64
	if raw := Member(r.Config, "timeout"); raw == nil || json.Unmarshal(raw, &ms) != nil {
		return DefaultTime
	}
	return time.Duration(ms) * time.Millisecond
}

// Roles returns the member roles of the route's config: the ids of roles of which a caller must
// have one. None lets everybody in.
func (r Route) Roles() []string {
	var roles []string
	_ = json.Unmarshal(Member(r.Config, "roles"), &roles) // Build has checked it
	return roles
}

// CrossSite reports whether the member crossSite of the route's config is true: pages of other
// origins may lead browsers to GET it with the cookie of their user.
func (r Route) CrossSite() bool {
	var crossSite bool
	_ = json.Unmarshal(Member(r.Config, "crossSite"), &crossSite) // Build has checked it
	return crossSite
}

// Redirects returns the member redirects of the route's config in lower case: the hosts that its
// redirects may lead to, with a port unless it is the usual one.
func (r Route) Redirects() []string {
	var hosts []string
	_ = json.Unmarshal(Member(r.Config, "redirects"), &hosts) // Build has checked it
	for i, host := range hosts {
		hosts[i] = strings.ToLower(host)
	}
	return hosts
}

// Program is the compiled program of a route, under the hash of its sources. There is one for each
// engine that runs it.
type Program struct {
	Hash string
	jsvm.Program
}

// Deployment is what an app runs.
type Deployment struct {
	Routes  []Route
	Sources map[string][]byte // the files of all programs, by path; Store.Routes leaves them out
	At      time.Time         // UTC, whole microseconds
}

// Store keeps deployments, and the programs that the apps of a tenant share. The tests beside its
// bun-backed store say what every implementation must do.
type Store interface {
	// Routes returns the routes of an app, ordered by area and path; none of an app that is not
	// deployed.
	Routes(ctx context.Context, tenant, app string) ([]Route, error)
	// Sources returns the sources of an app's deployment. It fails with errs.NotFound.
	Sources(ctx context.Context, tenant, app string) (map[string][]byte, error)
	// Put replaces the deployment of an app, and adds programs; those that are there stay, and are
	// as good as new for Sweep.
	Put(ctx context.Context, tenant, app string, d Deployment, programs []Program) error
	// Programs returns the programs with a hash, those that were added last first.
	Programs(ctx context.Context, tenant, hash string) ([]Program, error)
	// Add adds a program. One that is there stays, and is as good as new for Sweep.
	Add(ctx context.Context, tenant string, p Program, at time.Time) error
	// Undeploy removes the deployment of an app.
	Undeploy(ctx context.Context, tenant, app string) error
	// Remove removes the deployments and the counted calls of apps.
	Remove(ctx context.Context, tenant string, apps []string) error
	// AddCalls adds to the calls of apps.
	AddCalls(ctx context.Context, tenant string, calls map[Call]Calls) error
	// Calls returns the calls of an app since a day, ordered by day, area, path and method.
	Calls(ctx context.Context, tenant, app, since string) ([]CallsOf, error)
	// Sweep removes the programs that no route has and that were put or added before a time, and
	// the calls of days before since. It returns how many it removes.
	Sweep(ctx context.Context, tenant string, before time.Time, since string) (int, error)
}

// Options configure a Service. Store and Runtime are required.
type Options struct {
	Store   Store
	Runtime jsvm.Runtime
	// Decode returns the text of bytes in a character encoding, such as that of a form. It reports
	// false if it does not know the encoding or the bytes are not valid in it. It must know
	// windows-1252. The default knows UTF-8 only.
	Decode func(charset string, b []byte) (text string, ok bool)
	// MaxTime is the highest config.timeout; default MaxTime.
	MaxTime time.Duration
	// Check returns errs.Invalid for a route that cannot be deployed, such as one whose config is
	// wrong; nil checks nothing.
	Check func(r Route) error
	// Files returns the files of an app or draft, and their version, which changes with the files
	// that a script can have. Drafts need it.
	Files func(ctx context.Context, app App) (files fs.FS, version string, err error)
	// Prepare is called before a draft runs files that it has not run before, such as for its
	// migrations; nil does nothing.
	Prepare func(ctx context.Context, app App, files fs.FS) error
	// Changes returns how often this process has changed the deployments of a tenant: the number
	// grows when the Store commits. While it stays the same, routes are looked up once a second.
	// Default nil: each time.
	Changes func(tenant string) uint64
	// DraftChanges is the same for the files of drafts.
	DraftChanges func(tenant string) uint64
	Now          func() time.Time // default time.Now
	Observer     entity.Observer  // is told of each run; nil: nobody is
}

// Service builds, installs and runs handlers. It checks no rights.
type Service struct {
	o        Options
	clock    clock.Clock
	routes   *cache.Cache[[]Route]         // by app
	versions *cache.Cache[*draft]          // by draft
	programs *cache.Sized[[]*jsvm.Program] // by hash
	drafts   *cache.Sized[builtDraft]      // by draft and version
	building *limiter.Limiter              // of drafts, by tenant
	calls    *tally.Tally[Call, Calls]
}

// How programs are kept in memory, and drafts are built.
const (
	maxPrograms  = 64 << 20 // bytes of all that are kept
	maxDrafts    = 32 << 20
	maxBuilding  = 4 // drafts at once, of a tenant one
	buildingWait = 20 * time.Second
	// programAge is how old the programs are at least that Sweep removes: a transaction that uses
	// one again may still run.
	programAge = time.Hour
)

// New returns a Service.
func New(o Options) *Service {
	if o.Decode == nil {
		o.Decode = utf8Only
	}
	if o.MaxTime == 0 {
		o.MaxTime = MaxTime
	}
	return &Service{
		o: o, clock: clock.New(o.Now, nil),
		routes: cache.New[[]Route](o.Changes), versions: cache.New[*draft](o.DraftChanges),
		programs: cache.NewSized[[]*jsvm.Program](maxPrograms), drafts: cache.NewSized[builtDraft](maxDrafts),
		building: limiter.New(limiter.Options{Capacity: maxBuilding, PerKey: 1, Timeout: buildingWait}),
		calls: tally.New(Calls.plus, func(ctx context.Context, tenant string, counted map[Call]Calls) error {
			return o.Store.AddCalls(ctx, tenant, counted)
		}),
	}
}

// Install makes a build what an app runs. It joins the transaction in ctx.
func (s *Service) Install(ctx context.Context, app App, b *Build) error {
	if len(b.Routes) == 0 {
		return s.o.Store.Undeploy(ctx, app.Tenant, app.ID)
	}
	return s.o.Store.Put(
		ctx, app.Tenant, app.ID, Deployment{Routes: b.Routes, Sources: b.sources, At: s.clock.Stamp()}, b.programs,
	)
}

// Remove removes what some apps run, and their counted calls. It joins the transaction in ctx.
func (s *Service) Remove(ctx context.Context, tenant string, apps []string) error {
	if len(apps) == 0 {
		return nil
	}
	return s.o.Store.Remove(ctx, tenant, apps)
}

// kindApp is the kind of apps.
const kindApp entity.Kind = "app"

// Hooks returns what is done with handlers: they go with their apps, and programs that no app has
// any more are removed.
func (s *Service) Hooks() entity.Hooks {
	return entity.Hooks{
		Deleted: func(ctx context.Context, tenant string, gone ...entity.Key) error {
			return s.Remove(ctx, tenant, entity.IDs(gone, kindApp))
		},
		Due: []entity.Due{
			{Table: "tc_handler_programs", Column: "used_at", Where: "loose", Age: programAge},
			{Table: "tc_handler_calls", Column: "day", Day: true, Age: (CallDays - 1) * 24 * time.Hour},
		},
		Sweep: func(ctx context.Context, tenant string) (int, error) {
			return s.o.Store.Sweep(ctx, tenant, s.clock.Stamp().Add(-programAge), s.since())
		},
	}
}

// draft is what a draft runs at the moment.
type draft struct {
	files   fs.FS
	version string
}

// builtDraft is what the build of a draft has led to.
type builtDraft struct {
	routes []Route
	err    error
}

// Routes returns the routes of an area of an app or draft, ordered by path. The error of a draft
// that cannot be built is errs.Conflict, with the message of Build.
func (s *Service) Routes(ctx context.Context, app App, area Area) ([]Route, error) {
	all, err := s.all(ctx, app)
	if err != nil {
		return nil, err
	}
	var routes []Route
	for _, r := range all {
		if r.Area == area {
			routes = append(routes, r)
		}
	}
	return routes, nil
}

// Version returns a text that changes with what the routes of an area do: of an app with the
// programs that it was deployed with, of a draft with any file that they can have.
func (s *Service) Version(ctx context.Context, app App, area Area) (string, error) {
	if app.Draft {
		d, err := s.draft(ctx, app)
		if err != nil {
			return "", err
		}
		return d.version, nil
	}
	routes, err := s.Routes(ctx, app, area)
	sum := sha256.New()
	for _, r := range routes {
		_, _ = sum.Write([]byte(r.Path + "\x00" + r.Hash + "\x00"))
	}
	return base64.RawURLEncoding.EncodeToString(sum.Sum(nil)), err
}

// all returns the routes of all areas.
func (s *Service) all(ctx context.Context, app App) ([]Route, error) {
	if app.Draft {
		return s.draftRoutes(ctx, app)
	}
	return s.routes.Get(ctx, app.Tenant, app.ID, func() ([]Route, error) {
		return s.o.Store.Routes(ctx, app.Tenant, app.ID)
	})
}

// draft returns what a draft runs at the moment.
func (s *Service) draft(ctx context.Context, app App) (*draft, error) {
	return s.versions.Get(ctx, app.Tenant, app.ID, func() (*draft, error) {
		files, version, err := s.o.Files(ctx, app)
		return &draft{files, version}, err
	})
}

// draftRoutes returns the routes of a draft, which is built again when its files have changed.
func (s *Service) draftRoutes(ctx context.Context, app App) ([]Route, error) {
	d, err := s.draft(ctx, app)
	if err != nil {
		return nil, err
	}
	id := app.ID + "/" + d.version
	if built, ok := s.drafts.Get(app.Tenant, id); ok {
		return built.routes, built.err
	}
	leave, err := s.building.Acquire(ctx, 1, app.Tenant)
	if err != nil {
		return nil, limiter.Unavailable(err, "Too many drafts are built at the moment. Try again.")
	}
	defer leave()
	if built, ok := s.drafts.Get(app.Tenant, id); ok { // meanwhile
		return built.routes, built.err
	}
	b, err := s.Build(ctx, app, d.files, false) // a draft runs no agents
	if err == nil && s.o.Prepare != nil {
		err = s.o.Prepare(ctx, app, d.files)
	}
	var built builtDraft
	size := 1 << 10
	switch errs.CodeOf(err) {
	case "":
		built.routes, size = b.own(), size+b.size()
	case errs.Invalid:
		built.err = errs.New(errs.Conflict, "%s", errs.MessageOf(err))
	default:
		return nil, err
	}
	s.drafts.Put(app.Tenant, id, built, size)
	return built.routes, built.err
}

// Runtime returns what runs the scripts.
func (s *Service) Runtime() jsvm.Runtime { return s.o.Runtime }
