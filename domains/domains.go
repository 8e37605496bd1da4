// Package domains manages the authentication domains of a tenant: where its people log in, and the
// directories that its users and teams come from. A Driver implements one type of domain.
//
//	results, err := app.Domains.ScanDomain(ctx, "staff", domains.ScanOptions{DryRun: true})
//	state, err := app.Domains.ScanState(ctx, "staff")
//	next, err := app.Domains.NextScan(ctx, "staff")
//
// httpapi, the root, drivers and hosts import it; internal/store/domains stores its rows. It passes
// people who log in to principals, and the content of directories to internal/directory/dirsync,
// which store them as users and teams.
package domains

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/clock"
	"github.com/tenantcontent/tenantcontent/internal/limits/cache"
	"github.com/tenantcontent/tenantcontent/internal/secure/guard"
	"github.com/tenantcontent/tenantcontent/paging"
	"github.com/tenantcontent/tenantcontent/principals"
)

// Local is the id of the built-in domain, and of its driver.
const Local = principals.Local

// Domain is one authentication domain of a tenant.
type Domain struct {
	Tenant      string
	ID          string          // slug of the name that it was created with; never changes
	Name        *string         // 1 to 255 characters
	Description *string         // at most 4 KiB
	Type        string          // id of a driver
	Config      json.RawMessage // JSON object of at most 512 KiB; a secret in it reads as Mask; nil for none
	ScannedAt   *time.Time      // end of the last scan that wrote; nil for none
	CreatedAt   time.Time       // UTC, whole microseconds
	UpdatedAt   time.Time       // UTC, whole microseconds; scans do not change it

	// Unready is the reason why nobody can log in yet, such as a missing configuration, "" for
	// none. Methods of the Service that return one domain set it; it is not stored.
	Unready string

	// Sealed is the configuration's secrets, a JSON object, encrypted; "" for none. It is for the
	// Store: the Service neither returns nor accepts it.
	Sealed string

	// IDs are the attributes of the directory that the ids of users and teams come from. The
	// Service sets them.
	IDs IDAttributes

	// SealedKeys are the domain's Keys, encrypted; "" for none. As Sealed, it is for the Store.
	SealedKeys string
}

// Version changes with every change of the row: each change of the configuration moves UpdatedAt.
func (d Domain) Version() string {
	return guard.Version(d.ID, d.Name, d.Description, d.Type, d.CreatedAt, d.UpdatedAt)
}

// Mask replaces a secret in a configuration that is read. In one that is written, it keeps the
// stored secret.
const Mask = "********"

// The most that a tenant may have, as lists without pages read all of it.
const (
	maxDomains = 1000
	maxConfigs = 8 << 20 // bytes of all configurations together
)

// Store keeps domains. The tests beside its bun-backed store say what every implementation must do.
type Store interface {
	// Get fails with errs.NotFound when the tenant has no such domain.
	Get(ctx context.Context, tenant, id string) (Domain, error)
	// Page returns a page in the order of q.Sort: name (the default, ignoring case), id, createdAt
	// or updatedAt. Config, Sealed and SealedKeys are left out.
	Page(ctx context.Context, tenant string, q paging.Query) (paging.Page[Domain], error)
	// All returns every domain of a type, "" for all of them, ordered by id.
	All(ctx context.Context, tenant, driver string) ([]Domain, error)
	// Size returns the number of domains, and of the bytes of all their Config and Sealed.
	Size(ctx context.Context, tenant string) (n, bytes int, err error)
	// Insert fails with errs.Conflict when the id is taken.
	Insert(ctx context.Context, tenant string, d Domain) error
	// Update calls edit with the stored domain and writes the result except for Tenant, ID,
	// ScannedAt and CreatedAt; no other write to it comes between. An error from edit is returned
	// as is and writes nothing. It fails with errs.NotFound.
	Update(ctx context.Context, tenant, id string, edit func(*Domain) error) (Domain, error)
	// Delete removes a domain with the records of its scan and logins. It fails with errs.NotFound.
	Delete(ctx context.Context, tenant, id string) error

	// UseLogin records that a login at a provider has been used; the record is kept until a time.
	// It fails with errs.Conflict if the login was used before, so that of several callers one
	// succeeds, and if the domain no longer exists.
	UseLogin(ctx context.Context, tenant, domain, id string, until time.Time) error
	// LoginUsed reports whether there is a record of a login that has been used.
	LoginUsed(ctx context.Context, tenant, id string) (bool, error)
	// Sweep removes the records of logins that are kept until before a time, and returns their
	// number.
	Sweep(ctx context.Context, tenant string, before time.Time) (int, error)

	// BeginScan records a running scan. It fails with errs.Conflict while another one runs that has
	// been updated since stale, and if the domain no longer exists. It waits for a transaction that
	// has called LockScan.
	BeginScan(ctx context.Context, tenant, domain string, run ScanState, stale time.Time) error
	// LockScan locks the record of a scan until the transaction in ctx ends. It fails with
	// errs.Conflict if another scan has replaced it.
	LockScan(ctx context.Context, tenant, domain, id string) error
	// UpdateScan updates the record of the scan run.ID. It does nothing if another scan has
	// replaced it.
	UpdateScan(ctx context.Context, tenant, domain string, run ScanState) error
	// LastScan returns the record of the scan that runs or ran last, the zero Run for none.
	LastScan(ctx context.Context, tenant, domain string) (ScanState, error)
	// SetScanned sets ScannedAt.
	SetScanned(ctx context.Context, tenant, domain string, at time.Time) error
	// SetIDs sets those of IDs that are given and were not set, and returns IDs as they are then.
	// It fails with errs.NotFound.
	SetIDs(ctx context.Context, tenant, domain string, ids IDAttributes) (IDAttributes, error)

	// LockTenant locks a tenant until the transaction in ctx ends: other callers of LockTenant, in
	// any package, wait. It fails with errs.NotFound. A transaction that locks other rows, too,
	// calls it first.
	LockTenant(ctx context.Context, tenant string) error
	// InTx runs fn in one transaction, which all calls with its context join.
	InTx(ctx context.Context, fn func(ctx context.Context) error) error
	// DryRun runs fn as InTx does and rolls back what it did. On SQLite no writer waits for it, nor
	// it for one. Errors: fn's own; errs.Invalid, before fn runs, when ctx carries a transaction,
	// which would keep it.
	DryRun(ctx context.Context, fn func(ctx context.Context) error) error
	// Count returns how many domains a tenant has.
	Count(ctx context.Context, tenant string) (int, error)
}

// Sealer encrypts secrets so that a value opens only in the place it was sealed for. *keyring.Ring
// implements it.
type Sealer interface {
	Seal(tenant, table, column, row string, plain []byte) (string, error)
	Open(tenant, table, column, row, sealed string) ([]byte, error)
}

// Tenants stores each tenant's default domain. tenants.Unchecked implements it.
type Tenants interface {
	DefaultDomain(ctx context.Context, tenant string) (string, error)
	// ForgetDomain makes Local the default domain of a tenant whose default is domain, in the
	// transaction in ctx.
	ForgetDomain(ctx context.Context, tenant, domain string) error
}

// Principals logs in and removes the users of domains. principals.Unchecked implements it: see
// there.
type Principals interface {
	Authenticate(ctx context.Context, c principals.Credentials) (principals.User, error)
	LoginWith(
		ctx context.Context, tenant string, from principals.Source, username string,
		check func(context.Context) (Identity, error),
	) (principals.User, error)
	Admit(ctx context.Context, tenant string, from principals.Source, who Identity) (principals.User, error)
	AdmitAs(
		ctx context.Context, tenant, domain string, who principals.Account,
		check func(ctx context.Context, u principals.User) error,
	) (principals.User, error)
	Accounts(ctx context.Context, tenant, domain, username string) (bool, error)
	DomainContent(ctx context.Context, tenant string) (map[string]principals.DomainCounts, error)
	RemoveDomain(ctx context.Context, tenant, domain, to string) error
}

// Directories updates the users and teams of a domain to the state of its directory.
// *dirsync.Service implements it: see there.
type Directories interface {
	Sync(ctx context.Context, tenant, domain string, all Snapshot, o SyncOptions) (Report, error)
	SyncPerson(
		ctx context.Context, tenant, domain, username string, groups []string, o PersonOptions,
	) (warnings []string, err error)
	UnknownTeams(ctx context.Context, tenant string, teams []string) (unknown []string, err error)
}

// Options configure a Service. Lookup, Principals, Directories and Tenants are required.
type Options struct {
	Lookup      Lookup
	Principals  Principals
	Directories Directories
	Tenants     Tenants
	Queue       Queue // of scans by schedule; nil: no domain can have one
	// receives what a login could not do with a person's groups (info); default slog.Default
	Log   *slog.Logger
	Now   func() time.Time // default time.Now
	NewID func() string    // of a scan; default UUIDv7
	// NewSecret makes the random part of a login's state; default 12 random bytes in base64url.
	NewSecret func() string
	// Changes returns how often this process has changed a tenant's settings or domains: the number
	// grows when their stores commit. What Ways returns is kept in memory for up to a second while
	// it stays the same. Default nil: it is read each time.
	Changes func(tenant string) uint64
	// Observer is notified of each scan, each login and those that wait for others; may be nil.
	Observer entity.Observer
	Feed     *entity.Changes // nil: changes are not announced
}

// Kind is the kind of domains in changes.
const Kind entity.Kind = "domain"

// Service implements the rules for domains over a Store.
type Service struct {
	*lookup
	o      Options
	clock  clock.Clock
	ways   *cache.Cache[[]Way]
	places places
	limits limits

	mu      sync.Mutex
	running map[place]*scanning // scans of this process, the last that has begun of each domain
	slow    map[string]bool     // tenants whose directories were slow the last time
	warned  map[warning]time.Time
}

// place is a domain of a tenant.
type place struct{ tenant, domain string }

// limits are time-outs.
type limits struct {
	wait    time.Duration // of a login for a place
	refusal time.Duration // least duration of a refused login
	read    time.Duration // of one domain's directory, by a scan
	beat    time.Duration // between two updates of the record of a scan
	slow    time.Duration // what is read for longer is slow
}

// New returns a Service.
func New(o Options) *Service {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.NewSecret == nil {
		o.NewSecret = newSecret
	}
	return &Service{
		lookup: o.Lookup.of, o: o, clock: clock.New(o.Now, o.NewID), running: map[place]*scanning{},
		slow: map[string]bool{}, warned: map[warning]time.Time{}, places: newPlaces(o.Observer),
		limits: limits{wait: maxWait, refusal: MinRefusal, read: maxRead, beat: beat, slow: slowRead},
		ways:   cache.New[[]Way](o.Changes),
	}
}
