// Package tenantcontent is the part of a product that its customers make themselves: content, apps
// and agents, kept apart for each tenant. A program migrates its database, opens an App, and uses
// its services with an actor in the context, or serves it as an http.Handler, or both. The package
// builds the services and has no rule of its own.
//
//	db, err := sqlite.Open("app.db") // check each err
//	err = tenantcontent.Migrate(ctx, db)
//	app, err := tenantcontent.Open(tenantcontent.Config{DB: db, SecretKeyFile: "secret.key"})
//	go app.Run(ctx) // the background work, until ctx ends
//	_, err = app.AddTenant(ctx, tenants.Tenant{ID: "acme", Name: "Acme"}, "a long password")
//	http.Handle("/api/", app)
//	ctx = actor.With(ctx, actor.Actor{Tenant: "acme", User: "admin", Superuser: true})
//	_, err = app.Colors.Put(ctx, "brand", "#ff0000")
//	err = app.Close() // at last
//
// Hosts import it, and cmd/tenantcontent, which is the server; nothing below it does. An App has:
//
//   - Tenants, with settings, licenses and quotas
//   - Principals: users, teams and their roles
//   - Domains where people log in: local passwords, LDAP, SAML, OpenID Connect, and SCIM
//   - Sessions: log-ins and API tokens
//   - Colors: the palette
//   - AIInstructions, which are told to language models
//   - Inputs: the catalogs of input types and editors
//   - Comments, with the feeds and notifications that they make
//   - Content: reports, datasets, libraries and the other kinds, and Datasets, which reads rows
//   - Uploads and Downloads: files on their way in and out
//   - Apps: pages, server code, an SQL database and shares, in drafts and deployed
//   - Webhooks, which services on the internet call
//   - Agents and Messages of apps: runs by event and schedule, notifications and e-mails
//   - Assistants, with Conversations and the Confirmations of what they do
//   - Bundles: archives of content between tenants and servers
//   - Queue, for jobs after an answer, and Changes, the feed of what has changed
package tenantcontent

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"sync/atomic"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/comments"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/httpapi"
	"github.com/tenantcontent/tenantcontent/internal/handlers"
	"github.com/tenantcontent/tenantcontent/internal/handlers/jsvm"
	"github.com/tenantcontent/tenantcontent/internal/jobs/indexer"
	"github.com/tenantcontent/tenantcontent/internal/jobs/queue"
	"github.com/tenantcontent/tenantcontent/internal/jobs/sweep"
	"github.com/tenantcontent/tenantcontent/internal/secure/keyring"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/health"
	changestore "github.com/tenantcontent/tenantcontent/internal/store/changes"
	"github.com/tenantcontent/tenantcontent/internal/tracing"
	"github.com/tenantcontent/tenantcontent/internal/workspaces"
	"github.com/tenantcontent/tenantcontent/tenants"
)

// App is the services, such as app.Colors, and an http.Handler for all routes.
type App struct {
	httpapi.Services

	db         *bun.DB
	log        *slog.Logger
	registry   *entity.Registry
	keys       *keyring.Ring
	handler    httpapi.Handler
	workspaces *workspaces.Service
	handlers   *handlers.Service
	quotas     *tenants.Quotas
	changes    *changestore.Store
	queue      *queue.Service
	sweeper    *sweep.Sweeper
	indexer    *indexer.Indexer
	health     *health.Monitor
	inUse      inUse
	visibility visibility
	observer   entity.Observer
	withdrawn  atomic.Bool
	endScripts func() error
}

// Open builds the services. It makes no query and starts no goroutine: see App.Run for background
// work. The program's main function calls javascript.Child first.
// Errors: errs.Invalid naming the field of the configuration that is wrong.
func Open(c Config) (*App, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	keys, err := c.keys()
	if err != nil {
		return nil, err
	}
	viewKey, err := keys.Derive("view tokens of apps")
	if err != nil {
		return nil, err
	}
	engine, err := jsvm.Open(c.Scripts)
	if err != nil {
		return nil, err
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.TracerProvider != nil {
		c.Log = slog.New(tracing.Handler(c.Log.Handler()))
		c.Observer = entity.Observers(tracing.New(c.TracerProvider, systemOf(c.DB)), c.Observer)
	}
	if c.Observer != nil {
		c.DB, c.AI = c.DB.WithQueryHook(observedStatements{c.Observer}), observed(c.AI, c.Observer)
	}
	g := newGround(c, keys, engine)
	who, err := g.identity()
	if err != nil {
		return nil, err
	}
	what, err := g.content(who)
	if err != nil {
		return nil, err
	}
	run, err := g.programs(who, what)
	if err != nil {
		return nil, err
	}
	if err := g.register(who, what, run); err != nil {
		return nil, err
	}
	moved, err := g.bundles(who, what)
	if err != nil {
		return nil, err
	}
	if err := g.fill(who, what, run, moved); err != nil {
		return nil, err
	}
	app := &App{
		Services: httpapi.Services{
			Principals: who.principals, Tenants: who.tenants, Domains: who.domains, Sessions: run.sessions,
			Colors: what.colors, AIInstructions: what.aiInstructions, Inputs: what.inputs, Comments: what.comments,
			Content: what.content, Datasets: what.datasets, Uploads: what.uploads, Downloads: what.downloads,
			Apps: run.apps, Webhooks: run.webhooks, Agents: run.agents, Messages: run.messages,
			Assistants: run.assistants, Conversations: run.conversations, Confirmations: run.confirmations,
			Bundles: moved,
		},
		db: c.DB, log: c.Log, observer: c.Observer, registry: g.registry, keys: keys,
		workspaces: g.workspaces, handlers: run.handlers, quotas: g.quotas, changes: g.changes, queue: g.queue,
		sweeper: sweep.New(
			c.DB, g.registry.Sweeps, who.tenants.Unchecked().IDs, who.tenants.Unchecked().HiddenIDs, c.Now,
		),
		indexer: indexer.New(c.DB, c.Now), health: health.New(c.DB, c.Log, nil), endScripts: engine.Runtime.Close,
	}
	app.handler, err = httpapi.New(httpapi.Config{
		Services: app.Services,
		Handlers: run.handlers, Scripts: run.scripts, Loopback: g.loopback, ViewKey: viewKey,
		Workspaces: g.workspaces, Quotas: g.quotas, SCIM: who.scim,
		HostKinds: g.hostKinds, HostParents: comments.HostParents(c.Entities),
		AI: run.models, InTx: app.InTx, Ready: app.Ready, Warnings: c.Warnings,
		Writable: app.Writable, Failed: app.health.Saw, Visible: app.visible, Hidden: app.hidden,
		BaseURL: c.BaseURL, MaxBody: c.MaxBody, MaxHandlerBody: c.MaxHandlerBody, Log: c.Log, Now: c.Now,
		Idle: c.Idle, LastIdle: c.LastIdle, Heartbeat: c.Heartbeat, Memory: c.Memory, Observer: c.Observer,
		AppOrigin: c.AppOrigin, Authenticate: c.Authenticate,
		Resume: c.Resume, KeepLogins: c.KeepLogins, TrustedProxies: c.TrustedProxies,
	})
	if err != nil {
		return nil, err
	}
	return app, nil
}

// ServeHTTP serves every route under /api, and /healthz and /readyz. A request is not a part of a
// transaction in its context.
func (app *App) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if ctx := r.Context(); bunx.HasTx(ctx) {
		r = r.WithContext(bunx.WithoutTx(ctx))
	}
	app.handler.ServeHTTP(w, r)
}

// OpenAPI returns the description of all routes of this App as OpenAPI 3.1.1 in JSON, as it serves
// it at /api/openapi.json. The routes of the kinds that the host keeps itself are not among them,
// and those for comments on them are.
func (app *App) OpenAPI() ([]byte, error) { return app.handler.OpenAPI() }

// Storage returns what a tenant stores and may store. It needs no actor. Errors: errs.NotFound.
func (app *App) Storage(ctx context.Context, tenant string) (tenants.Usage, error) {
	return app.quotas.Usage(ctx, tenant)
}

// Queue returns the queue, for jobs of Config.Workers, and for operators: see docs/queue.md.
func (app *App) Queue() *Queue { return app.queue }

// Deleted removes what belongs to entities of the host's kinds that the host deletes itself, such
// as the comments on them: see entity.Hooks. It joins the transaction in ctx and needs no actor.
// What a restore or deploy removes is passed to it already.
func (app *App) Deleted(ctx context.Context, tenant string, gone ...entity.Key) error {
	return app.registry.Deleted(ctx, tenant, gone...)
}

// mostChanges is how many changes a page has.
const mostChanges = 1000

// Changes returns the changes of a tenant after a position, in the order of their commits, if
// Config.KeepChanges is on: at most limit, which is 1000 if it is 0. A reader begins with position
// 0, which has all that are kept, or with -1, which has those to come, and goes on with Next; so it
// gets each change at least once. A change is there as soon as its transaction has been committed,
// however long that was open. It needs no actor. Errors: errs.Invalid for a limit that is negative
// or above 1000.
func (app *App) Changes(ctx context.Context, tenant string, after int64, limit int) (entity.ChangePage, error) {
	if limit < 0 || limit > mostChanges {
		return entity.ChangePage{}, errs.New(errs.Invalid, "limit must be between 0 and %d", mostChanges)
	}
	return app.changes.Page(ctx, tenant, after, cmp.Or(limit, mostChanges))
}
