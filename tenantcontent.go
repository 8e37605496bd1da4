// Package tenantcontent provides content services for multi-tenant products: a color palette, input
// catalogs, users and teams, files in and out, over HTTP and as a library.
//
// It builds the services and holds no rule of its own. A host program opens its database, calls
// Migrate and Open, and uses the services of the App with an actor in the context, or serves the
// App as an http.Handler, or both.
package tenantcontent

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/ai"
	"github.com/tenantcontent/tenantcontent/aiinstr"
	"github.com/tenantcontent/tenantcontent/apps"
	"github.com/tenantcontent/tenantcontent/apps/agents"
	"github.com/tenantcontent/tenantcontent/apps/messages"
	"github.com/tenantcontent/tenantcontent/assistants"
	"github.com/tenantcontent/tenantcontent/assistants/confirmations"
	"github.com/tenantcontent/tenantcontent/assistants/conversation"
	"github.com/tenantcontent/tenantcontent/bundles"
	"github.com/tenantcontent/tenantcontent/colors"
	"github.com/tenantcontent/tenantcontent/comments"
	"github.com/tenantcontent/tenantcontent/content"
	"github.com/tenantcontent/tenantcontent/content/datasets"
	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/domains/local"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/files"
	"github.com/tenantcontent/tenantcontent/httpapi"
	"github.com/tenantcontent/tenantcontent/inputs"
	"github.com/tenantcontent/tenantcontent/internal/directory/dirsync"
	"github.com/tenantcontent/tenantcontent/internal/directory/scim"
	"github.com/tenantcontent/tenantcontent/internal/drafts/libraries"
	"github.com/tenantcontent/tenantcontent/internal/handlers"
	"github.com/tenantcontent/tenantcontent/internal/handlers/jsvm"
	"github.com/tenantcontent/tenantcontent/internal/jobs/indexer"
	"github.com/tenantcontent/tenantcontent/internal/jobs/queue"
	"github.com/tenantcontent/tenantcontent/internal/jobs/removal"
	"github.com/tenantcontent/tenantcontent/internal/jobs/sweep"
	"github.com/tenantcontent/tenantcontent/internal/limits/cache"
	"github.com/tenantcontent/tenantcontent/internal/secure/egress"
	"github.com/tenantcontent/tenantcontent/internal/secure/keyring"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/dblock"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/health"
	agentstore "github.com/tenantcontent/tenantcontent/internal/store/agents"
	instructionstore "github.com/tenantcontent/tenantcontent/internal/store/aiinstr"
	appstore "github.com/tenantcontent/tenantcontent/internal/store/apps"
	assistantstore "github.com/tenantcontent/tenantcontent/internal/store/assistants"
	blobstore "github.com/tenantcontent/tenantcontent/internal/store/blobs"
	bundlestore "github.com/tenantcontent/tenantcontent/internal/store/bundles"
	changestore "github.com/tenantcontent/tenantcontent/internal/store/changes"
	colorstore "github.com/tenantcontent/tenantcontent/internal/store/colors"
	commentstore "github.com/tenantcontent/tenantcontent/internal/store/comments"
	confirmationstore "github.com/tenantcontent/tenantcontent/internal/store/confirmations"
	contentstore "github.com/tenantcontent/tenantcontent/internal/store/content"
	domainstore "github.com/tenantcontent/tenantcontent/internal/store/domains"
	filestore "github.com/tenantcontent/tenantcontent/internal/store/files"
	handlerstore "github.com/tenantcontent/tenantcontent/internal/store/handlers"
	librarystore "github.com/tenantcontent/tenantcontent/internal/store/libraries"
	messagestore "github.com/tenantcontent/tenantcontent/internal/store/messages"
	"github.com/tenantcontent/tenantcontent/internal/store/migrations"
	principalstore "github.com/tenantcontent/tenantcontent/internal/store/principals"
	queuestore "github.com/tenantcontent/tenantcontent/internal/store/queue"
	quotastore "github.com/tenantcontent/tenantcontent/internal/store/quotas"
	sessionstore "github.com/tenantcontent/tenantcontent/internal/store/sessions"
	tenantstore "github.com/tenantcontent/tenantcontent/internal/store/tenants"
	webhookstore "github.com/tenantcontent/tenantcontent/internal/store/webhooks"
	workspacestore "github.com/tenantcontent/tenantcontent/internal/store/workspaces"
	"github.com/tenantcontent/tenantcontent/internal/workspaces"
	"github.com/tenantcontent/tenantcontent/principals"
	"github.com/tenantcontent/tenantcontent/sessions"
	"github.com/tenantcontent/tenantcontent/tenants"
	"github.com/tenantcontent/tenantcontent/webhooks"
)

// Config configures an App. DB and one of SecretKey and SecretKeyFile are required; everything else
// has a default.
type Config struct {
	// DB is the host's database, PostgreSQL or SQLite, with the tables of Migrate. The host opens
	// and closes it; package database opens one that is safe to use. Another SQLite database must
	// be limited to one connection (DB.SetMaxOpenConns(1)): SQLite has one writer, and the others
	// of a pool fail while it writes.
	DB *bun.DB
	// SecretKey encrypts secrets at rest: one or more 32-byte keys in base64 or hex, parted by
	// commas. The first encrypts, all decrypt. NewSecretKey makes one. Without it what was
	// encrypted is lost.
	SecretKey string
	// SecretKeyFile holds the keys instead. It is made, with a new key and for its owner alone,
	// when it is missing.
	SecretKeyFile string

	// BaseURL starts every link, such as https://content.example.com; default
	// http://127.0.0.1:8080. With a path, such as https://example.com/content, the App is mounted
	// there: it serves requests below the path, and also those from which a proxy or
	// http.StripPrefix has taken it away. Cookies are for the path alone.
	BaseURL string
	// AppOrigin is where each app has an origin of its own, such as https://{app}.apps.example.com:
	// there its pages have a history, cookies and a storage. Requests for these hosts must come to
	// the App as they are, with their Host. Without it all apps are shown in a sandbox at BaseURL.
	AppOrigin string
	// Scripts runs the JavaScript of tenants, and reads what they bring: javascript.New makes one
	// for one App, which closes it. Without it handlers and the code of assistants are refused with
	// errs.Unavailable, and of files only texts are read.
	Scripts Scripts
	// Webhooks bounds what the webhooks of apps can use up, and how long their calls are kept.
	Webhooks webhooks.Limits
	// Agents bounds what the agents of apps use up.
	Agents agents.Limits
	// Log gets requests (debug) and failures; default slog.Default.
	Log *slog.Logger
	// Authenticate returns the caller of a request, in place of sessions and API tokens. A caller
	// who creates content must be a user of the tenant (App.Principals.CreateUser), who owns it.
	// Errors: errs.Unauthenticated. The routes that log in (/api/login/…, with a password or at a
	// provider) do not exist then; see KeepLogins.
	Authenticate func(r *http.Request) (actor.Actor, error)
	// Resume returns the actor of a user whom Authenticate has returned before, with the rights of
	// now. The pages of apps run at an origin of their own, so their requests have no credential
	// that Authenticate accepts: Resume is called with each of them instead, and with each one of a
	// visitor, for the user who has made the link. It is to be fast. A user who is disabled, and so
	// refused with errs.Unauthenticated, is refused everywhere at once; a page can be open for 12
	// hours, also when the user has logged out of the host. Without Resume, only a caller whom
	// App.Sessions has authenticated can view apps beside Authenticate.
	Resume func(ctx context.Context, tenant, username string) (actor.Actor, error)
	// TrustedProxies are the networks of the proxies that requests come through. From them, and
	// from nobody else, the header X-Forwarded-For, or Forwarded where there is no such header, is
	// read from the right up to the first address that is not in these networks: that is the
	// client's, in the log, for the locks of logins and for API tokens of a range of addresses.
	// Each proxy must add to the header that is read. Default: none, the client's address is the
	// connection's.
	TrustedProxies []netip.Prefix
	// KeepLogins keeps the routes that log in beside Authenticate, for a host that reads their
	// sessions itself (App.Sessions.Authenticate).
	KeepLogins bool
	// Entities are the host's kinds of content: each joins the ready ones, or replaces the one of
	// its kind, whose plain routes are gone then. App.Principals.Reassign moves them as it moves
	// reports. Their Hooks run behind those of the ready packages' kinds and before those of the
	// packages.
	Entities []entity.Type
	// BundleDrivers are the host's types of bundle entries: each joins the ready ones, or replaces
	// the one with its id.
	BundleDrivers []bundles.Driver
	// DomainDrivers are ways to authenticate people beside the passwords of package domains/local:
	// ldap.AD{}, ldap.LDAP{}, saml.Driver{}, oidc.Driver{}, or the host's own. One with the id
	// "local" replaces that.
	DomainDrivers []domains.Driver
	// AllowNetworks are networks of this machine or link where the directories and providers of
	// domains may be all the same, such as 127.0.0.0/8 for a directory beside the service. Without
	// it the drivers of packages ldap, saml and oidc connect neither to loopback nor to link-local
	// addresses nor to fd00:ec2::254, whatever a superuser configures, and whatever a name resolves
	// to. The networks of an organization, such as 10.0.0.0/8, are open to them. A host's own
	// drivers see to it themselves.
	AllowNetworks []netip.Prefix
	// DenyNetworks are where these drivers never connect to, also if AllowNetworks has
	// them.
	DenyNetworks []netip.Prefix
	// Workspaces keeps the SQL databases of apps, for the SQL of their handlers and migrations:
	// database.OpenWorkspaces opens one. The host closes it when the App is not used any more.
	// Without it apps have none, and such SQL fails with errs.Unavailable.
	Workspaces Workspaces
	// AI runs language models: openai.New makes one for servers with OpenAI's API. Without it what
	// needs a model is refused with errs.Unavailable.
	AI ai.Provider
	// Skills are what assistants can do here beside the ready skills. Their types are distinct.
	Skills []conversation.Skill
	// Datasets has rows of datasets beside those in the data of datasets.
	Datasets datasets.Source
	// Mail sends the e-mails of apps: package apps/messages/smtp has one for mail servers. Without
	// it they stay pending.
	Mail messages.Sender
	// Queue is how much of the work behind answers this node does. Its zero value does all that
	// comes; App.Run does it.
	Queue Node
	// Workers do jobs of the host's own kinds, which App.Queue puts.
	Workers []Worker
	// Before hears of each change in its transaction, before it is committed. Its error refuses the
	// change: one of package errs has its message shown to the caller. It is to be quick, as others
	// may wait for the rows of the transaction, and may write with its context. See
	// docs/changes.md.
	Before []func(ctx context.Context, c entity.Change) error
	// After hears of each change after the commit. The caller waits for it; a process that ends in
	// between has not called it: see KeepChanges.
	After []func(ctx context.Context, c entity.Change)
	// KeepChanges keeps the changes for 7 days, for App.Changes.
	KeepChanges bool
	// InputEditors join the catalog of input editors.
	InputEditors []inputs.Editor

	// Observer is told of requests, statements, jobs, runs of handlers, calls of models, scans and
	// archives when they have ended, for metrics and traces: see docs/embed.md. nil costs nothing.
	Observer entity.Observer

	MaxBody int64 // bytes of a JSON body; default 1 MiB
	// MaxHandlerBody is the most bytes of the body of a request to a handler of an app; default 10
	// MiB.
	MaxHandlerBody int64
	// Memory bounds what large answers, and large bodies, hold at once.
	Memory httpapi.Memory
	// Idle is how long a client may take or send nothing before its connection is cut; default 30
	// seconds. After that it must take or send 1 KiB a second on average.
	Idle time.Duration
	// LastIdle replaces Idle once Drain is called; default 2 seconds.
	LastIdle time.Duration
	// Heartbeat is how often a stream of events sends something while nothing happens; default 15
	// seconds.
	Heartbeat time.Duration
	// MaxUpload is the most bytes of an upload, and of each file of a library, also of one that
	// comes in an archive; default 256 MiB. An archive that is staged as an upload, for POST
	// /api/_restore-from-file {uploadId}, is bounded by it too.
	MaxUpload int64
	// MaxAppFile is the most bytes of a file of an app that is not sent in an archive; default 100
	// MiB.
	MaxAppFile int64
	// MaxArchive is the most bytes of an archive as it is sent, packed, in the body of an import or
	// restore; default 4 GiB. No larger one is made: a restore or deploy whose automatic archive
	// could not be sent in again does nothing.
	MaxArchive int64
	// ArchiveLimits bound what an archive has when it is unpacked: members, bytes, the bytes of one
	// row, and the expansion ratio. They hold for archives that are sent in and for those that are
	// made. A server that is to take the archives of another one needs limits that are as wide.
	ArchiveLimits bundles.Limits
	// MaxImportTime is the longest that the transaction of an import, restore or deploy into one
	// tenant takes; default 2 minutes. One that takes longer changes nothing and fails. On SQLite
	// nobody else writes meanwhile: other requests that write are refused after 3 seconds, and
	// log-ins, reads and dry runs go on. On PostgreSQL others of the tenant wait who change the
	// same rows.
	MaxImportTime time.Duration
	// OpenLicenses lets the superusers of a tenant set its licenses, over HTTP and with
	// Tenants.Update. Default false: only Tenants.Unchecked().ChangeLicenses and the command tenant
	// license set them.
	OpenLicenses bool
	// TenantQuota is how many bytes a tenant may store in files and records together; default 10
	// GiB. What a tenant has of its own (tenants.Unchecked.SetQuota) is in its place. See
	// docs/quotas.md.
	TenantQuota int64
	// UserQuota is how many bytes the uploads of a user may have together; default 2 GiB.
	UserQuota int64
	// TenantWorkspaces is how many SQL databases the apps and drafts of a tenant may have; default
	// 1000.
	TenantWorkspaces int
	// SessionLifetime is how long a log-in lasts; default 12 hours.
	SessionLifetime time.Duration
	// KeepActivities is how long activities, what feeds have of them, and notifications are kept;
	// default 400 days, for ever if it is negative.
	KeepActivities time.Duration

	Now   func() time.Time // the clock, for tests; default time.Now
	NewID func() string    // makes ids, for tests; default UUIDv7
}

// App is the services, such as app.Colors, and an http.Handler for all routes.
type App struct {
	httpapi.Services

	db          *bun.DB
	log         *slog.Logger
	registry    *entity.Registry
	keys        *keyring.Ring
	handler     httpapi.Handler
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

// Migrate brings a database up to this version, or does nothing when it is there already. Several
// processes may call it at once. Errors: errs.Invalid for a database that a newer version has
// migrated.
func Migrate(ctx context.Context, db *bun.DB) error { return migrations.Run(ctx, db) }

// MigratePartitioned is Migrate for an empty PostgreSQL whose tables are to have partitions, by a
// hash of the tenant: each statement of a request then needs one of them. Migrate keeps them. See
// docs/scale.md. Errors: errs.Invalid, also for a database whose tables have another number of
// partitions.
func MigratePartitioned(ctx context.Context, db *bun.DB, partitions int) error {
	return migrations.RunPartitioned(ctx, db, partitions)
}

// EnableRowLevelSecurity makes PostgreSQL itself keep tenants apart, beside the predicates in every
// statement: open the database with row_level_security=on (package database) and as a role that is
// no superuser, or nothing is served. A read then costs about twice as much. It returns the tables
// that it was switched on for, none when it was on. Later calls of Migrate keep it on for new
// tables.
func EnableRowLevelSecurity(ctx context.Context, db *bun.DB) (tables []string, err error) {
	return migrations.EnableRowLevelSecurity(ctx, db)
}

// NewSecretKey returns a random key for Config.SecretKey.
func NewSecretKey() string { return keyring.Generate() }

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
				"write meanwhile fails (SQLITE_BUSY). Open it with package database, or limit it to one "+
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
	if c.Log == nil {
		c.Log = slog.Default()
	}
	app := &App{db: c.DB, log: c.Log, keys: keys, registry: entity.NewRegistry(), health: health.New(c.DB, c.Log, nil)}
	scripts, err := jsvm.Open(c.Scripts)
	if err != nil {
		return nil, err
	}
	app.endScripts = scripts.Runtime.Close
	if err := app.build(c, keys, scripts); err != nil {
		return nil, err
	}
	viewKey, err := keys.Derive("view tokens of apps")
	if err != nil {
		return nil, err
	}
	app.handler, err = httpapi.New(httpapi.Config{
		Owner: func(ctx context.Context, tenant, principal string) (actor.Actor, error) {
			owner, err := app.owner(ctx, tenant, principal)
			return owner.Actor, err
		},
		ViewKey: viewKey, Markdown: scripts.Markdown, Extract: scripts.Extract,
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

// ownLibraries returns which of some ids are those of libraries of apps and assistants.
func (app *App) ownLibraries(ctx context.Context, tenant string, ids []string) (map[string]bool, error) {
	of, err := app.Apps.Unchecked().Libraries(ctx, tenant, ids)
	if err != nil {
		return nil, err
	}
	more, err := app.Assistants.Unchecked().Libraries(ctx, tenant, ids)
	maps.Copy(of, more)
	return of, err
}

// build builds the services, each after those that it needs, and fills the registry.
func (app *App) build(c Config, keys *keyring.Ring, scripts jsvm.Parts) (err error) {
	// These count changes of users, teams, sessions and tokens, of tenants and their domains, and
	// of apps, their shares and the files of libraries; and deployed and installed those of what
	// apps run.
	var rights, settings, shown, deployed, installed cache.Counter
	app.quotas = tenants.NewQuotas(tenants.QuotaOptions{
		Store:      quotastore.New(c.DB),
		Bytes:      c.TenantQuota,
		Workspaces: c.TenantWorkspaces,
		Now:        c.Now,
	})
	stored := blobstore.New(c.DB)
	blobs, directory, logins :=
		app.quotas.Blobs(stored), principalstore.New(c.DB).Notify(rights.Bump),
		domainstore.New(c.DB).Notify(settings.Bump)
	listeners := app.listeners(c)
	if app.Inputs, err = inputs.New(c.InputEditors...); err != nil {
		return err
	}
	app.Colors = colors.New(colors.Options{Store: colorstore.New(c.DB), Changes: listeners, Now: c.Now})
	app.queue = queue.New(queue.Options{
		Store:    queuestore.New(c.DB),
		Node:     c.Queue,
		Observer: c.Observer,
		Log:      c.Log,
		Now:      c.Now,
		NewID:    c.NewID,
	})
	removals := removal.New(removal.Options{DB: c.DB, Jobs: app.queue, Entities: app.registry, Now: c.Now})
	app.Principals = principals.New(principals.Options{
		Store: directory, Blobs: blobs, Content: app.registry,
		HostKinds: kinds(c.Entities), Removals: removals, KnownDomain: domains.Lookup{Store: logins}.Known,
		UsableDomain: func(ctx context.Context, tenant, id string) error {
			return app.Domains.Unchecked().Usable(ctx, tenant, id)
		},
		KnownUser: func(ctx context.Context, tenant, domain, username, sourceID string) error {
			return app.Domains.Unchecked().Knows(ctx, tenant, domain, username, sourceID)
		},
		TiedEmail: func(ctx context.Context, tenant, domain string) error {
			return app.Domains.Unchecked().TiedEmail(ctx, tenant, domain)
		},
		Refusal: domains.MinRefusal, Log: c.Log, Now: c.Now, NewID: c.NewID,
	})
	app.Tenants = tenants.New(tenants.Options{
		Store: tenantstore.New(c.DB).Notify(settings.Bump), Changes: settings.Of, Keys: keys, Hooks: app.registry,
		KnownDomain: domains.Lookup{Store: logins}.Known, Username: app.Principals.Unchecked().Username,
		OpenLicenses: c.OpenLicenses, Now: c.Now,
	})
	app.AIInstructions = aiinstr.New(aiinstr.Options{
		Store: instructionstore.New(c.DB), Settings: app.Tenants.Unchecked(), Directory: directory,
		Changes: listeners, Now: c.Now, NewID: c.NewID,
	})
	app.Uploads = files.NewUploads(files.Options{
		Store: filestore.Uploads(c.DB), Blobs: blobs, Limit: c.MaxUpload,
		Quota: c.UserQuota, Now: c.Now, NewID: c.NewID,
	})
	app.Downloads = files.NewDownloads(files.Options{
		Store: filestore.Downloads(c.DB),
		Blobs: blobs,
		Now:   c.Now,
		NewID: c.NewID,
	})
	others := append(app.Principals.Unchecked().Types(), app.AIInstructions.Unchecked().Type())
	filesOf := func(kind entity.Kind) *libraries.Files {
		return libraries.New(libraries.Options{
			Store: librarystore.New(c.DB, kind).Notify(shown.Bump), Changes: shown.Of, Blobs: blobs,
			Limit: c.MaxUpload, Now: c.Now, NewID: c.NewID,
		})
	}
	libraryFiles := filesOf(content.Library)
	app.workspaces = workspaces.New(workspaces.Options{
		Driver: c.Workspaces, Store: workspacestore.New(c.DB), Admit: app.quotas.CheckWorkspace, Room: app.quotas.Left,
		Keys: keys, Kind: apps.Kind, Log: c.Log, Now: c.Now,
		Exist: func(ctx context.Context, tenant string, ids []string) (map[string]bool, error) {
			return app.Apps.Unchecked().Exist(ctx, tenant, ids)
		},
	})
	app.deployments = handlers.New(handlers.Options{
		Store: handlerstore.New(c.DB).Notify(deployed.Bump), Runtime: scripts.Runtime, Changes: deployed.Of,
		DraftChanges: shown.Of, Check: checkWebhook, Now: c.Now, Observer: c.Observer,
		Files: func(ctx context.Context, draft handlers.App) (fs.FS, string, error) {
			return app.Apps.Unchecked().HandlerFiles(ctx, draft.Tenant, draft.ID)
		},
		Prepare: func(ctx context.Context, draft handlers.App, files fs.FS) error {
			_, err := app.workspaces.Migrate(ctx, draft.Tenant, draft.ID, files)
			return err
		},
	})
	app.Apps = apps.New(apps.Options{
		Agents: installer{app},
		Chats: func(ctx context.Context) (bool, error) {
			if ai.Configured(c.AI) != nil {
				return false, nil
			}
			_, err := app.AIInstructions.Allowed(ctx)
			if code := errs.CodeOf(err); code == errs.Invalid || code == errs.Forbidden {
				return false, nil
			}
			return err == nil, err
		},
		Handlers: app.deployments, Workspaces: app.workspaces,
		Store: appstore.New(c.DB).Notify(shown.Bump), Changes: shown.Of, Files: filesOf(apps.Kind),
		Deployed: filesOf("app-manifest"), MaxFile: c.MaxAppFile, Manifests: httpapi.Manifests(),
		Directory: directory, Keys: keys, Licensed: app.Tenants.Unchecked().Licensed,
		Registry: app.registry, CanonicalName: app.Principals.Unchecked().CanonicalName, Now: c.Now, NewID: c.NewID,
	})
	skillTypes, err := conversation.SkillTypes(c.AI, scripts.Runtime, c.Skills)
	if err != nil {
		return err
	}
	app.owner = app.owners(c, rights.Of)
	app.Agents = agents.New(agents.Options{
		Store: agentstore.New(c.DB).Notify(installed.Bump), Changes: installed.Of, Queue: app.queue,
		Apps: app.Apps, Tools: app.deployments, Provider: c.AI,
		App: app.agentApp, Owner: agentOwners(app.owner), Enabled: app.Tenants.Unchecked().AIEnabled,
		Bind: func(ctx context.Context, in *handlers.Invocation, t handlers.ToolCall) (end func(), err error) {
			return app.handler.BindTool(ctx, in, t)
		},
		Admit: func(ctx context.Context, tenant, user string) (leave func(), err error) {
			return app.handler.ModelCall(ctx, tenant, user)
		},
		Limits: c.Agents, Now: c.Now, NewID: c.NewID,
	})
	app.Assistants = assistants.New(assistants.Options{
		Store: assistantstore.New(c.DB), Files: filesOf(assistants.Kind),
		MaxFile: c.MaxAppFile, Directory: directory, Keys: keys,
		Allowed: func(ctx context.Context) error {
			_, err := app.AIInstructions.Allowed(ctx)
			return err
		},
		Skills: skillTypes, CheckFilter: func(ctx context.Context, dataset string, filter json.RawMessage) error {
			return app.Datasets.CheckFilter(ctx, dataset, filter)
		},
		Registry: app.registry, CanonicalName: app.Principals.Unchecked().CanonicalName, Now: c.Now, NewID: c.NewID,
	})
	app.Confirmations = confirmations.New(confirmations.Options{Store: confirmationstore.New(c.DB), Now: c.Now})
	ownTypes := []entity.Type{app.Assistants.Unchecked().Type(), app.Apps.Unchecked().Type()}
	app.Content = content.New(content.Options{
		Store: contentstore.New(c.DB), Files: libraryFiles, Reserved: app.ownLibraries,
		Directory: directory, Registry: app.registry, Changes: listeners,
		Others:        replaced(slices.Concat(others, ownTypes), c.Entities),
		CanonicalName: app.Principals.Unchecked().CanonicalName,
		Now:           c.Now, NewID: c.NewID,
	})
	// assistants and apps need what comes before them
	types := slices.Concat(others, app.Content.Unchecked().Types(), ownTypes)
	if err := app.registry.Add(replaced(types, c.Entities)...); err != nil {
		return err
	}
	app.Datasets = datasets.New(datasets.Options{
		Content: storedDatasets{app, slices.Contains(kinds(c.Entities), content.Dataset)},
		Source:  c.Datasets,
	})
	app.Conversations = conversation.New(conversation.Options{
		Provider: c.AI, Scripts: scripts.Runtime, Extract: scripts.Extract,
		Skills: c.Skills, Assistants: app.Assistants, Datasets: app.Datasets, Expand: app.AIInstructions.Expand,
		Entity: seenEntities{app, kinds(c.Entities)}.entity, Log: c.Log,
	})
	commentStore := commentstore.New(c.DB)
	app.Comments = comments.New(comments.Options{
		Store: commentStore, Queue: commentStore, Entities: app.registry, Users: app.Principals,
		Removals: removals, KeepFor: c.KeepActivities, Now: c.Now, NewID: c.NewID,
	})
	app.Messages = messages.New(messages.Options{
		Store: messagestore.New(c.DB), Users: app.Principals, Inbox: app.Comments.Unchecked(), Apps: listening{app},
		Queue: app.queue, Sender: c.Mail, Start: app.start, Now: c.Now, NewID: c.NewID,
	})
	app.Domains, err = domains.New(domains.Options{
		Store: logins, Principals: app.Principals.Unchecked(), Tenants: app.Tenants.Unchecked(), Keys: keys,
		Directories: dirsync.New(dirsync.Options{
			Store: directory, Principals: app.Principals.Unchecked(), Now: c.Now, NewID: c.NewID,
		}),
		Drivers: drivers(c), Queue: app.queue, Log: c.Log, Changes: settings.Of, Now: c.Now, Observer: c.Observer,
	})
	if err != nil {
		return err
	}
	app.scim = scim.New(scim.Options{
		Store:      directory,
		Principals: app.Principals.Unchecked(),
		Now:        c.Now,
		NewID:      c.NewID,
		Log:        c.Log,
	})
	app.Sessions = sessions.New(sessions.Options{
		Store: sessionstore.New(c.DB).Notify(rights.Bump), Changes: rights.Of,
		Authenticator: app.Domains.Unchecked(), Tenants: app.Tenants.Unchecked(), Apps: app.Apps,
		Assistants: app.Assistants, Domains: app.Domains, Refusal: domains.MinRefusal,
		Lifetime: c.SessionLifetime, Keys: keys, Now: c.Now, NewID: c.NewID,
	})
	app.Webhooks = webhooks.New(webhooks.Options{
		Store: webhookstore.New(c.DB), Apps: app.Apps,
		Handlers: app.deployments, Keys: keys, UseToken: app.Sessions.Unchecked().UseWebhookToken,
		Target: func(ctx context.Context, tenant, id string) (webhooks.Target, error) {
			h, err := app.Apps.Unchecked().Hooked(ctx, tenant, id)
			return webhooks.Target(h), err
		},
		Owner: app.owner, Changes: shown.Of, Limits: c.Webhooks, Log: c.Log, Now: c.Now, NewID: c.NewID,
		Queue: app.queue, Bind: func(ctx context.Context, in *handlers.Invocation) (end func(), err error) {
			return app.handler.BindTool(ctx, in, handlers.ToolCall{})
		},
	})
	app.Bundles, err = bundles.New(bundles.Options{
		Store: bundlestore.New(c.DB), Tenants: app.Tenants.Unchecked(), Downloads: app.Downloads.Unchecked(),
		Principals: app.Principals.Unchecked(), Content: app.registry,
		Global:  []entity.Type{app.Colors.Unchecked().Type(), app.AIInstructions.Unchecked().Type()},
		Drivers: c.BundleDrivers, Notify: app.Comments.Unchecked().NotifyUsers,
		Limits: c.ArchiveLimits, Size: c.MaxArchive, Time: c.MaxImportTime,
		Now: c.Now, NewID: c.NewID, Observer: c.Observer,
	})
	if err != nil {
		return err
	}
	app.registry.AddHooks(
		app.Principals.Unchecked().Hooks(), app.Apps.Unchecked().Hooks(), app.Assistants.Unchecked().Hooks(),
		app.Confirmations.Unchecked().Hooks(), app.Tenants.Unchecked().Hooks(),
		app.Uploads.Unchecked().Hooks(), app.Downloads.Unchecked().Hooks(),
		app.Colors.Unchecked().Hooks(), app.AIInstructions.Unchecked().Hooks(),
		app.Content.Unchecked().Hooks(), libraryFiles.Hooks(),
		app.Comments.Unchecked().Hooks(), app.Messages.Unchecked().Hooks(), app.Agents.Unchecked().Hooks(),
		app.Domains.Unchecked().Hooks(), app.Sessions.Unchecked().Hooks(), app.Bundles.Unchecked().Hooks(),
		app.workspaces.Hooks(), app.deployments.Hooks(), app.queue.Hooks(),
		app.changeHooks(c), removals.Hooks(), app.Webhooks.Unchecked().Hooks(),
		entity.Hooks{Counts: entity.CountRows(80, "files", stored.Count)},
	)
	app.indexer = indexer.New(c.DB, c.Now)
	app.sweeper = sweep.New(
		c.DB, app.registry.Sweeps, app.Tenants.Unchecked().IDs, app.Tenants.Unchecked().HiddenIDs, c.Now,
	)
	return app.queue.Add(slices.Concat(
		[]queue.Worker{removals.Worker()}, app.Messages.Unchecked().Workers(), app.Agents.Unchecked().Workers(),
		app.Webhooks.Unchecked().Workers(), app.Domains.Unchecked().Workers(), c.Workers,
	)...)
}

// replaced returns the ready types except those of which the host has its own, and the host's
// behind them.
func replaced(ready, own []entity.Type) []entity.Type {
	mine := kinds(own)
	ready = slices.DeleteFunc(slices.Clone(ready), func(t entity.Type) bool { return slices.Contains(mine, t.Kind) })
	return append(ready, own...)
}

// drivers returns the driver of local passwords, and those of a Config after it. Those that connect
// to servers which tenants name connect within the networks of the Config.
func drivers(c Config) []domains.Driver {
	denied := egress.Denials(egress.Local(), c.AllowNetworks, c.DenyNetworks)
	all := []domains.Driver{local.Driver{}}
	for _, d := range c.DomainDrivers {
		if bounded, ok := d.(domains.Bounded); ok {
			d = bounded.Within(denied, c.Log)
		}
		if d.Info().ID == all[0].Info().ID {
			all[0] = d
			continue
		}
		all = append(all, d)
	}
	return all
}

func kinds(types []entity.Type) []entity.Kind {
	kinds := make([]entity.Kind, len(types))
	for i, t := range types {
		kinds[i] = t.Kind
	}
	return kinds
}

func (c Config) keys() (*keyring.Ring, error) {
	switch {
	case c.SecretKey != "":
		ring, err := keyring.Parse(c.SecretKey)
		if err != nil {
			return nil, errs.New(
				errs.Invalid, "Config.SecretKey: %s NewSecretKey or `openssl rand -base64 32` makes a key.",
				errs.MessageOf(err),
			)
		}
		return ring, nil
	case c.SecretKeyFile != "":
		return keyring.LoadOrCreate(c.SecretKeyFile)
	}
	return nil, errs.New(
		errs.Invalid,
		"Config.SecretKey or Config.SecretKeyFile is required: NewSecretKey or `openssl rand -base64 32` makes one",
	)
}

// ServeHTTP serves every route under /api, and /healthz and /readyz. A request is not a part of a
// transaction in its context.
func (app *App) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if ctx := r.Context(); bunx.HasTx(ctx) {
		r = r.WithContext(bunx.WithoutTx(ctx))
	}
	app.handler.ServeHTTP(w, r)
}

// Drain waits until no request and no job of the queue runs, for at most as long as ctx lasts, and
// returns the cause of ctx if some still do then. From its call on, clients that take or send
// nothing for 2 seconds are cut, and no jobs are begun; jobs that do not end are given back, so
// that other nodes do them. Call it when the server has stopped listening, before its connections
// are closed.
func (app *App) Drain(ctx context.Context) error {
	jobs := make(chan error, 1)
	go func() { jobs <- app.queue.Drain(ctx) }()
	return errors.Join(app.handler.Drain(ctx), <-jobs)
}

// Storage returns what a tenant stores and may store. It needs no actor. Errors: errs.NotFound.
func (app *App) Storage(ctx context.Context, tenant string) (tenants.Usage, error) {
	return app.quotas.Usage(ctx, tenant)
}

// Queue returns the queue, for jobs of Config.Workers, and for operators: see docs/queue.md.
func (app *App) Queue() *Queue { return app.queue }

// Close ends the children of the program that run scripts. Call it last, behind Drain; scripts that
// still run are stopped. They also end with the program.
func (app *App) Close() error { return app.endScripts() }

// InTx runs fn in one transaction, which every service called with fn's context joins. It commits
// when fn returns nil.
func (app *App) InTx(ctx context.Context, fn func(ctx context.Context) error) error {
	return bunx.InTx(ctx, app.db, fn)
}

// Ready fails with errs.Unavailable when the database is away or not migrated to this version, or
// when row-level security is on in it and it was not opened for that.
func (app *App) Ready(ctx context.Context) error {
	pending, err := migrations.Pending(ctx, app.db)
	if err != nil {
		return err
	}
	switch {
	case len(pending) == 0:
		return app.visibleWithin(ctx, 0)
	case strings.HasPrefix(pending[0], "0001"):
		return errs.New(errs.Unavailable, "The database has no tables yet. Run: tenantcontent migrate")
	}
	return errs.New(errs.Unavailable, "The database lacks the migration %s. Run: tenantcontent migrate", pending[0])
}

// Writable fails, saying why, when nothing can be written: the database can only be read, is full,
// damaged or away, or its file is gone. It writes a row of no tenant, at most once a second.
func (app *App) Writable(ctx context.Context) error { return app.health.Writable(ctx) }

// CheckSecretKeyFile fails with errs.Invalid if Config.SecretKeyFile is missing and the database
// has tenants: Open would make a new key, with which nothing of what they have encrypted can be
// read. Call it before Open.
func CheckSecretKeyFile(ctx context.Context, c Config) error {
	if c.SecretKey != "" || c.SecretKeyFile == "" {
		return nil
	}
	if _, err := os.Stat(c.SecretKeyFile); !errors.Is(err, fs.ErrNotExist) {
		return nil // Open tells what is wrong with it
	}
	pending, err := migrations.Pending(ctx, c.DB)
	if err != nil || len(pending) > 0 && strings.HasPrefix(pending[0], "0001") {
		return err
	}
	any, err := tenantstore.New(c.DB).Any(ctx)
	if err == nil && any {
		err = errs.New(
			errs.Invalid,
			"the secret key file %s is missing, and the database has tenants, whose secrets need it: put it back, "+
				"from where you keep it. Without it, their secrets cannot be read",
			c.SecretKeyFile,
		)
	}
	return err
}

// CheckKeys fails with errs.Invalid when the secret key is not the one that this database was used
// with.
func (app *App) CheckKeys(ctx context.Context) error { return app.Tenants.Unchecked().CheckKeys(ctx) }

// Rekey encrypts every secret of a database again that is not encrypted under the first key, and
// returns their number. With SecretKeyFile it first puts a new key into the file, and in the end
// takes the old ones out; a database without a secret keeps its key. When it fails it has lost
// nothing and can be run again. Errors: errs.Conflict naming the programs that use the secrets,
// such as a running server: they would not know the new key (see App.Lock).
func Rekey(ctx context.Context, c Config) (n int, err error) {
	app, err := Open(c)
	if err != nil {
		return 0, err
	}
	if err := app.Ready(ctx); err != nil {
		return 0, err
	}
	lock, err := dblock.Alone(ctx, c.DB, "rekey")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	if ids, err := app.Tenants.Unchecked().IDs(ctx); err != nil || len(ids) == 0 || c.SecretKey != "" {
		if err != nil {
			return 0, err
		}
		return app.Tenants.Unchecked().Rekey(ctx)
	}
	if _, err := keyring.Rotate(c.SecretKeyFile); err != nil {
		return 0, err
	}
	if app, err = Open(c); err != nil { // with the new key
		return 0, err
	}
	if n, err = app.Tenants.Unchecked().Rekey(ctx); err != nil {
		return n, err
	}
	return n, keyring.Retire(c.SecretKeyFile)
}

// FirstStart adds to an empty database its first tenant, default, with AI and the apps license on,
// and its superuser admin; an empty password is replaced by a random one, which it returns. It does
// nothing where there is a tenant.
func (app *App) FirstStart(ctx context.Context, password string) (made bool, generated string, err error) {
	any, err := app.Tenants.Unchecked().Any(ctx)
	if err != nil || any {
		return false, "", err
	}
	t := tenants.Tenant{
		ID:       "default",
		Name:     "Default",
		Settings: tenants.Settings{AI: true, Licenses: []string{"apps"}},
	}
	generated, err = app.AddTenant(ctx, t, password)
	if errs.CodeOf(err) == errs.Conflict { // another process was first
		return false, "", nil
	}
	return err == nil, generated, err
}

// AddTenant makes a tenant with its superuser admin; an empty password is replaced by a random one,
// which it returns.
// Errors: errs.Invalid naming the field; errs.Conflict for a taken id.
func (app *App) AddTenant(ctx context.Context, t tenants.Tenant, password string) (generated string, err error) {
	if password == "" {
		generated = rand.Text()
		password = generated
	}
	addAdmin, err := app.Principals.Unchecked().NewSuperuser(ctx, "admin", password)
	if err != nil {
		return "", err
	}
	err = app.InTx(ctx, func(ctx context.Context) error {
		if _, err := app.Tenants.Unchecked().Add(ctx, t); err != nil {
			return err
		}
		_, err := addAdmin(ctx, t.ID)
		return err
	})
	if err != nil {
		return "", err
	}
	return generated, nil
}

// Run does the background work until ctx ends: it does the jobs of the queue (see Config.Queue),
// writes log-ins that have waited for others who wrote (on SQLite), the calls of webhooks, the
// counters of API tokens and the views of apps each second and removes what has expired each
// minute. A host that does not call it keeps expired rows, which nobody can see, and loses what it
// encrypts beside a Rekey: Run holds the lock that keeps it away (see Lock). It returns nil when
// ctx ends. It ends by itself, with an error, when the secret key is being changed or was changed
// while the lock was lost: the host is to stop then.
func (app *App) Run(ctx context.Context) (err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	held := make(chan error, 1)
	go func() {
		held <- app.keepLock(ctx)
		stop()
	}()
	app.work(ctx)
	err = <-held
	app.note("give back the lock of the secret key", app.Unlock())
	return err
}

// work is the background work on rows. None keeps the others waiting.
func (app *App) work(ctx context.Context) {
	var running sync.WaitGroup
	running.Go(func() { app.sweepEachMinute(ctx) })
	running.Go(func() { app.indexOften(ctx) })
	running.Go(func() { app.queue.Run(ctx) })
	running.Go(func() {
		app.flushEach(ctx, recordsEach, "write the calls of webhooks", app.Webhooks.Unchecked().FlushAll)
	})
	running.Go(func() {
		app.flushEachSecond(ctx, "write the counters of API tokens", app.Sessions.Unchecked().FlushAll)
	})
	running.Go(func() {
		app.flushEachSecond(ctx, "write the log-ins that have waited for others who wrote",
			func(ctx context.Context) error {
				return bunx.WriteDeferred(ctx, app.db)
			})
	})
	if b, ok := app.workspaces.Bounds(); ok {
		running.Go(func() {
			app.flushEach(
				ctx, cmp.Or(b.Measure, time.Minute), "measure the SQL databases of apps",
				app.workspaces.Measure,
			)
		})
	}
	running.Go(func() { app.flushEachSecond(ctx, "write the views of apps", app.Apps.Unchecked().FlushAll) })
	running.Go(func() { app.flushEachSecond(ctx, "write the calls of apps", app.deployments.FlushAll) })
	running.Wait()
}

// recordsEach is how often the calls of webhooks are written. A program that is killed loses those
// since the last time.
const recordsEach = 400 * time.Millisecond

// flushEachSecond writes what was counted in memory, for the last time when ctx ends.
func (app *App) flushEachSecond(ctx context.Context, what string, write func(context.Context) error) {
	app.flushEach(ctx, time.Second, what, write)
}

func (app *App) flushEach(ctx context.Context, pause time.Duration, what string, write func(context.Context) error) {
	flush := time.NewTicker(pause)
	defer flush.Stop()
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			defer cancel()
			app.note(what, write(last))
			return
		case <-flush.C:
			app.note(what, write(ctx))
		}
	}
}

func (app *App) sweepEachMinute(ctx context.Context) {
	sweep, holder := time.NewTicker(time.Minute), rand.Text()
	defer sweep.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-sweep.C:
			_, err := app.sweeper.RunAlone(ctx, holder)
			app.note("remove what has expired", err)
			_, err = bunx.FoldTotals(ctx, app.db)
			app.note("add up the totals of lists", err)
		}
	}
}

// indexOften keeps the indexes of searches. Rows that are not in one yet cost each search a little.
func (app *App) indexOften(ctx context.Context) {
	often := time.NewTicker(20 * time.Second)
	defer often.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-often.C:
			if err := app.indexer.Run(ctx); ctx.Err() == nil {
				app.note("index rows for searches", err)
			}
		}
	}
}

// Deleted removes what belongs to entities of the host's kinds that the host deletes itself, such
// as the comments on them: see entity.Hooks. It joins the transaction in ctx and needs no actor.
// What a restore or deploy removes is passed to it already.
func (app *App) Deleted(ctx context.Context, tenant string, gone ...entity.Key) error {
	return app.registry.Deleted(ctx, tenant, gone...)
}

// Sweep removes what has expired, of all tenants that have something, in steps, adds up the totals
// of lists, and indexes long ones for searches. Run does it each minute or more often, in one of
// the processes that share the database.
func (app *App) Sweep(ctx context.Context) error {
	_, err := bunx.FoldTotals(ctx, app.db)
	return errors.Join(err, app.indexer.Run(ctx), app.sweeper.Run(ctx))
}

// note logs the failure of background work; the next round tries again.
func (app *App) note(what string, err error) {
	if err != nil && !app.health.Saw(bunx.Err(err, "")) {
		app.log.Warn("background work failed", "work", what, "err", err)
	}
}
