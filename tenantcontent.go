// Package tenantcontent provides content services for multi-tenant products: a color palette, input
// catalogs, users and teams, files in and out, over HTTP and as a library.
//
// It builds the services and holds no rule of its own. A host program opens its database, calls
// Migrate and Open, and uses the services of the App with an actor in the context, or serves the
// App as an http.Handler, or both.
package tenantcontent

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/comments"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/httpapi"
	"github.com/tenantcontent/tenantcontent/internal/chat"
	"github.com/tenantcontent/tenantcontent/internal/directory/scim"
	"github.com/tenantcontent/tenantcontent/internal/handlers"
	"github.com/tenantcontent/tenantcontent/internal/handlers/jsvm"
	"github.com/tenantcontent/tenantcontent/internal/jobs/indexer"
	"github.com/tenantcontent/tenantcontent/internal/jobs/queue"
	"github.com/tenantcontent/tenantcontent/internal/jobs/sweep"
	"github.com/tenantcontent/tenantcontent/internal/scripts"
	"github.com/tenantcontent/tenantcontent/internal/secure/keyring"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/health"
	changestore "github.com/tenantcontent/tenantcontent/internal/store/changes"
	"github.com/tenantcontent/tenantcontent/internal/workspaces"
	"github.com/tenantcontent/tenantcontent/tenants"
	"github.com/tenantcontent/tenantcontent/webhooks"
)

// App is the services, such as app.Colors, and an http.Handler for all routes.
type App struct {
	httpapi.Services

	db          *bun.DB
	log         *slog.Logger
	registry    *entity.Registry
	keys        *keyring.Ring
	handler     httpapi.Handler
	loopback    *httpapi.Loopback
	binder      *scripts.Binder
	workspaces  *workspaces.Service
	quotas      *tenants.Quotas
	changes     *changestore.Store
	queue       *queue.Service
	inUse       inUse
	visibility  visibility
	health      *health.Monitor
	deployments *handlers.Service
	owner       func(ctx context.Context, tenant, principal string) (webhooks.Owner, error) // of apps
	scim        *scim.Service
	sweeper     *sweep.Sweeper
	indexer     *indexer.Indexer
	endScripts  func() error
}

// Open builds the services. It makes no query and starts no goroutine: see App.Run for background
// work. The program's main function calls Child first.
// Errors: errs.Invalid naming the field of the configuration that is wrong.
func Open(c Config) (*App, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if !bunx.TakesWriters(c.DB) {
		return nil, errs.New(
			errs.Invalid,
			"Config.DB is a SQLite database with several connections: SQLite has one writer, and what the others "+
				"write meanwhile fails (SQLITE_BUSY). Open it with package sqlite, or limit it to one "+
				"connection with SetMaxOpenConns(1).",
		)
	}
	keys, err := c.keys()
	if err != nil {
		return nil, err
	}
	if c.Observer != nil {
		c.DB, c.AI = c.DB.WithQueryHook(observedStatements{c.Observer}), observed(c.AI, c.Observer)
	}
	places := chat.NewPlaces(chat.DefaultWait)
	agentModels := places.For(c.AI, "agents")
	c.AI = places.For(c.AI, "")
	if c.Log == nil {
		c.Log = slog.Default()
	}
	app := &App{db: c.DB, log: c.Log, keys: keys, registry: entity.NewRegistry(), health: health.New(c.DB, c.Log, nil)}
	app.loopback = &httpapi.Loopback{}
	engine, err := jsvm.Open(c.Scripts)
	if err != nil {
		return nil, err
	}
	app.endScripts = engine.Runtime.Close
	if err := app.build(c, keys, engine, agentModels); err != nil {
		return nil, err
	}
	viewKey, err := keys.Derive("view tokens of apps")
	if err != nil {
		return nil, err
	}
	app.handler, err = httpapi.New(httpapi.Config{
		ViewKey: viewKey, Scripts: app.binder, Loopback: app.loopback,
		Services: app.Services,
		Handlers: app.deployments, Workspaces: app.workspaces, Quotas: app.quotas, SCIM: app.scim,
		HostKinds: kinds(c.Entities), HostParents: comments.HostParents(c.Entities),
		AI: c.AI, InTx: app.InTx, Ready: app.Ready,
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
