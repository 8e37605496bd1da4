package tenantcontent

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"reflect"
	"time"

	"github.com/uptrace/bun"
	"go.opentelemetry.io/otel/trace"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/ai"
	"github.com/tenantcontent/tenantcontent/apps/agents"
	"github.com/tenantcontent/tenantcontent/apps/messages"
	"github.com/tenantcontent/tenantcontent/assistants/conversation"
	"github.com/tenantcontent/tenantcontent/bundles"
	"github.com/tenantcontent/tenantcontent/content/datasets"
	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/httpapi"
	"github.com/tenantcontent/tenantcontent/inputs"
	"github.com/tenantcontent/tenantcontent/internal/handlers/jsvm"
	"github.com/tenantcontent/tenantcontent/internal/jobs/queue"
	"github.com/tenantcontent/tenantcontent/internal/secure/keyring"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/workspaces"
	"github.com/tenantcontent/tenantcontent/webhooks"
)

// Config configures an App. DB and one of SecretKey and SecretKeyFile are required; everything else
// has a default.
type Config struct {
	// DB is the host's database, PostgreSQL or SQLite, with the tables of Migrate. The host opens
	// and closes it; packages database/sqlite and database/postgres open one that is safe to use.
	// Another SQLite database must be limited to one connection (DB.SetMaxOpenConns(1)): SQLite has
	// one writer, and the others of a pool fail while it writes.
	DB *bun.DB
	// SecretKey encrypts secrets at rest: one or more 32-byte keys in base64 or hex, parted by
	// commas. The first encrypts, all decrypt. NewSecretKey makes one. Without it what was
	// encrypted is lost.
	SecretKey string
	// SecretKeyFile holds the keys instead. It is made, with a new key and readable by its owner
	// only, when it is missing.
	SecretKeyFile string

	// BaseURL starts every link, such as https://content.example.com; default
	// http://127.0.0.1:8080. With a path, such as https://example.com/content, the App is mounted
	// there: it serves requests below the path, and also those from which a proxy or
	// http.StripPrefix has taken it away. Cookies are valid below the path only.
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
	// who creates content must be a user of the tenant (App.Principals.CreateUser), and owns the
	// content.
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
	// from them only, the header X-Forwarded-For, or Forwarded in requests without that header,
	// is read from the right up to the first address that is not in these networks: that is the
	// client's, in the log, for the locks of logins and for API tokens of a range of addresses.
	// Each proxy must add to the header that is read. Default: none, the client's address is the
	// connection's.
	TrustedProxies []netip.Prefix
	// KeepLogins keeps the routes that log in beside Authenticate, for a host that reads their
	// sessions itself (App.Sessions.Authenticate).
	KeepLogins bool
	// Entities are the host's kinds of content: each joins the ready ones, or replaces the one of
	// its kind, whose plain routes are gone then. App.Principals.Reassign moves them as it moves
	// reports. Their Hooks run after those of the ready packages' kinds and before those of the
	// packages.
	Entities []entity.Type
	// BundleDrivers are the host's types of bundle entries: each joins the ready ones, or replaces
	// the one with its id.
	BundleDrivers []bundles.Driver
	// DomainDrivers are ways to authenticate people beside the passwords of this service:
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
	// sqlite.OpenWorkspaces and postgres.OpenWorkspaces open one. The host closes it when the App
	// is not used any more. Without it such SQL fails with errs.Unavailable.
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
	// Queue is how much of the background work this node does. Its zero value does all that
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

	// Observer is notified of requests, statements, jobs, runs of handlers, calls of models, scans,
	// archives, logins, waits and background tasks when they have ended, for metrics: see
	// docs/embed.md. nil costs nothing.
	Observer entity.Observer
	// TracerProvider makes the spans of OpenTelemetry: of each request, named by its route, within
	// the span of the request's context, or else of its header traceparent; and, within that span,
	// of statements, runs of handlers, archives, scans and calls of models. Jobs have spans of
	// their own. Requests to models, providers and MCP servers have the header, and Log gets
	// trace_id and span_id. No span has a path, a query or an argument. nil costs nothing. See
	// docs/monitoring.
	TracerProvider trace.TracerProvider

	// Warnings returns what an operator is to mend although requests are served, such as a log that
	// cannot be written. Everybody can read them: /readyz has them. Default: nothing is returned.
	Warnings func() []string

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
	// restore; default 4 GiB. Larger ones are not made: a restore or deploy whose automatic archive
	// could not be sent in again does nothing.
	MaxArchive int64
	// ArchiveLimits bound what an archive has when it is unpacked: members, bytes, the bytes of one
	// row, and the expansion ratio. They hold for archives that are sent in and for those that are
	// made. A server that is to take the archives of another one needs limits that are as wide.
	ArchiveLimits bundles.Limits
	// MaxImportTime is the longest that the transaction of an import, restore or deploy into one
	// tenant takes; default 2 minutes. One that takes longer changes nothing and fails. On SQLite
	// the others cannot write meanwhile: requests that write are refused after 3 seconds, and
	// log-ins, reads and dry runs go on. On PostgreSQL others of the tenant wait who change the
	// same rows.
	MaxImportTime time.Duration
	// OpenLicenses lets the superusers of a tenant set its licenses, over HTTP and with
	// Tenants.Update. Default false: only Tenants.Unchecked().ChangeLicenses and the command tenant
	// license set them.
	OpenLicenses bool
	// TenantQuota is how many bytes a tenant may store in files and records together; default 10
	// GiB. A quota of the tenant's own (tenants.Unchecked.SetQuota) replaces it. See
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

// Types of the machinery that a host makes, or passes on.
type (
	// Scripts runs the JavaScript of tenants: javascript.New returns one.
	Scripts = jsvm.Scripts

	// Workspaces keeps the SQL databases of apps: sqlite.OpenWorkspaces returns one.
	Workspaces = workspaces.Driver

	// Node is how much of the work of the queue a program does.
	Node = queue.Node

	// Worker does the jobs of a kind.
	Worker = queue.Worker

	// Queue has jobs that are done after an answer.
	Queue = queue.Service
)

// check returns errs.Invalid naming the first field that no App can work with: a driver, or other
// implementation of an interface, that is nil; a negative number; an empty network; Resume without
// Authenticate. What only a package knows is checked there.
func (c Config) check() error {
	if c.DB == nil {
		return errs.New(errs.Invalid, "Config.DB is required")
	}
	if !bunx.TakesWriters(c.DB) {
		return errs.New(
			errs.Invalid,
			"Config.DB is a SQLite database with several connections: SQLite has one writer, and what the others "+
				"write meanwhile fails (SQLITE_BUSY). Open it with package sqlite, or limit it to one "+
				"connection with SetMaxOpenConns(1).",
		)
	}
	for i := range reflect.TypeFor[Config]().NumField() {
		name := reflect.TypeFor[Config]().Field(i).Name
		if name == "KeepActivities" { // for ever if it is negative
			continue
		}
		if err := checkField("Config."+name, reflect.ValueOf(c).Field(i), true); err != nil {
			return err
		}
	}
	if c.Resume != nil && c.Authenticate == nil {
		return errs.New(
			errs.Invalid,
			"Config.Resume is set and Config.Authenticate is not: Resume returns the users whom Authenticate has "+
				"returned. Set both, or neither",
		)
	}
	return nil
}

// checkField checks a field of a Config and what is in it. One that is optional may be nil.
func checkField(name string, v reflect.Value, optional bool) error {
	if network, ok := v.Interface().(netip.Prefix); ok {
		if !network.IsValid() {
			return errs.New(
				errs.Invalid, "%s is not a network: write it as netip.MustParsePrefix(\"10.0.0.0/8\")", name,
			)
		}
		return nil
	}
	switch v.Kind() {
	case reflect.Interface:
		if v.IsNil() && !optional {
			return errs.New(errs.Invalid, "%s is nil: leave it out", name)
		}
		if in := v.Elem(); !v.IsNil() && in.Kind() == reflect.Pointer && in.IsNil() {
			return errs.New(
				errs.Invalid, "%s is a nil %s: leave it out, or set it to one that is not nil", name, in.Type(),
			)
		}
	case reflect.Int, reflect.Int64: // time.Duration, too
		if v.Int() < 0 {
			return errs.New(
				errs.Invalid, "%s must not be negative: it is %v, and 0 is its default", name, v.Interface(),
			)
		}
	case reflect.Slice:
		for i := range v.Len() {
			if err := checkField(fmt.Sprintf("%s[%d]", name, i), v.Index(i), false); err != nil {
				return err
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				if err := checkField(name+"."+f.Name, v.Field(i), true); err != nil {
					return err
				}
			}
		}
	}
	return nil
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
