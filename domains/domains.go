// Package domains is the authentication domains of a tenant: where its people log in, and the directories that its users
// and teams come from. A Driver is one kind of them.
//
// httpapi, the root, drivers and hosts import it; domains/bunstore keeps its rows. It asks principals to turn what a
// directory says into users and teams.
package domains

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/guard"
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
	UpdatedAt   time.Time       // UTC, whole microseconds; scans leave it

	// Unready is why nobody can log in here yet, such as that there is no configuration, "" for no reason. The Service sets
	// it where it returns one domain; it is not stored.
	Unready string

	// Sealed is the configuration's secrets, a JSON object, encrypted; "" for none. It is for the Store: the Service gives
	// none out and takes none.
	Sealed string
}

// Version changes with every change of the row: each change of the configuration moves UpdatedAt.
func (d Domain) Version() string {
	return guard.Version(d.ID, d.Name, d.Description, d.Type, d.CreatedAt, d.UpdatedAt)
}

// Mask stands for a secret wherever a configuration is read, and keeps the stored one where it is written.
const Mask = "********"

// What a tenant can have: lists without pages read it all.
const (
	maxDomains = 1000
	maxConfigs = 8 << 20 // bytes of all configurations together
)

// Store keeps domains. Implementations must pass domainstest.TestStore.
type Store interface {
	// Get fails with errs.NotFound when the tenant has no such domain.
	Get(ctx context.Context, tenant, id string) (Domain, error)
	// Page returns a page in the order of q.Sort: name (the default, ignoring case), id, createdAt or updatedAt. Config and
	// Sealed are left out.
	Page(ctx context.Context, tenant string, q paging.Query) (paging.Page[Domain], error)
	// All returns every domain of a type, "" for all of them, ordered by id.
	All(ctx context.Context, tenant, driver string) ([]Domain, error)
	// Size returns the number of domains, and of the bytes of all their Config and Sealed.
	Size(ctx context.Context, tenant string) (n, bytes int, err error)
	// Insert fails with errs.Conflict when the id is taken.
	Insert(ctx context.Context, tenant string, d Domain) error
	// Update calls edit with the stored domain and writes the result except for Tenant, ID, ScannedAt and CreatedAt; no other
	// write to it comes between. An error from edit is returned as is and writes nothing. It fails with errs.NotFound.
	Update(ctx context.Context, tenant, id string, edit func(*Domain) error) (Domain, error)
	// Delete removes a domain with the notes of its scan and logins. It fails with errs.NotFound.
	Delete(ctx context.Context, tenant, id string) error

	// UseLogin notes that a login at a provider is ended, until it could not be ended any more. It fails with errs.Conflict
	// for one that was noted before, so that of several callers one succeeds, and when the domain is gone.
	UseLogin(ctx context.Context, tenant, domain, id string, until time.Time) error
	// Sweep removes the notes of logins until before a time and gives their number.
	Sweep(ctx context.Context, tenant string, before time.Time) (int, error)

	// BeginScan notes that a scan runs. It fails with errs.Conflict while another one runs that was heard of since stale,
	// and when the domain is gone. It waits for a transaction that has called HoldScan.
	BeginScan(ctx context.Context, tenant, domain string, run Run, stale time.Time) error
	// HoldScan keeps the note of a scan from everybody else until the transaction in ctx ends. It fails with errs.Conflict
	// when another scan has taken its place.
	HoldScan(ctx context.Context, tenant, domain, id string) error
	// NoteScan overwrites the note of the scan run.ID, and does nothing when another one has taken its place.
	NoteScan(ctx context.Context, tenant, domain string, run Run) error
	// LastScan returns the record of the scan that runs or ran last, the zero Run for none.
	LastScan(ctx context.Context, tenant, domain string) (Run, error)
	// SetScanned sets ScannedAt.
	SetScanned(ctx context.Context, tenant, domain string, at time.Time) error

	// LockTenant keeps other callers of LockTenant for this tenant, in any package, waiting until the transaction in ctx
	// ends. It fails with errs.NotFound. What locks other rows too calls it first.
	LockTenant(ctx context.Context, tenant string) error
	// InTx runs fn in one transaction, which all calls with its context join.
	InTx(ctx context.Context, fn func(ctx context.Context) error) error
}

// Sealer encrypts secrets so that a value opens only in the place it was sealed for. *keyring.Ring is one.
type Sealer interface {
	Seal(tenant, table, column, row string, plain []byte) (string, error)
	Open(tenant, table, column, row, sealed string) ([]byte, error)
}

// Tenants knows each tenant's default domain. *tenants.Service does.
type Tenants interface {
	DefaultDomain(ctx context.Context, tenant string) (string, error)
	// ForgetDomain makes Local the default domain of a tenant whose default is domain, in the transaction in ctx.
	ForgetDomain(ctx context.Context, tenant, domain string) error
}

// People turns what a domain says into users and teams. *principals.Service does: see there.
type People interface {
	Authenticate(ctx context.Context, tenant, domain, username, password string) (principals.User, error)
	Try(ctx context.Context, tenant, domain, source, username string, check func(context.Context) (Identity, error)) (principals.User, error)
	Admit(ctx context.Context, tenant, domain, source string, who Identity) (principals.User, error)
	Sync(ctx context.Context, tenant, domain string, all principals.Snapshot, o principals.SyncOptions) (principals.SyncReport, error)
	DomainContent(ctx context.Context, tenant string) (map[string]principals.DomainCounts, error)
	RemoveDomain(ctx context.Context, tenant, domain, to string) error
}

// Options configure a Service. Store, People, Tenants, Keys and Drivers are required.
type Options struct {
	Store   Store
	People  People
	Tenants Tenants
	Keys    Sealer
	Drivers []Driver         // in the order in which they are listed, each with its own id
	Now     func() time.Time // default time.Now
	NewID   func() string    // of a scan; default UUIDv7
	// NewSecret makes the random part of a login's state; default 12 random bytes in base64url.
	NewSecret func() string
}

// Service is the rules for domains over a Store.
type Service struct {
	o       Options
	drivers []Driver
	infos   []Info
	realms  realms
	places  places
	limits  limits

	mu      sync.Mutex
	running map[place]*scanning // scans of this process, the last that has begun of each domain
}

// place is a domain of a tenant.
type place struct{ tenant, domain string }

// limits are how long something may take.
type limits struct {
	wait    time.Duration // for a login's place
	check   time.Duration // of a password, by a directory
	refusal time.Duration // a refused login takes as long at least
	read    time.Duration // of one domain's directory, by a scan
	beat    time.Duration // between two signs of life of a scan that reads
}

// New makes a Service. Errors: errs.Invalid for a driver without an id, or two with one.
func New(o Options) (*Service, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NewID == nil {
		o.NewID = func() string { return uuid.Must(uuid.NewV7()).String() }
	}
	if o.NewSecret == nil {
		o.NewSecret = newSecret
	}
	s := &Service{
		o: o, drivers: o.Drivers, running: map[place]*scanning{}, places: newPlaces(),
		limits: limits{wait: maxWait, check: maxCheck, refusal: MinRefusal, read: maxRead, beat: beat},
		realms: realms{opened: map[place]opened{}},
	}
	for _, d := range o.Drivers {
		info := d.Info()
		if info.ID == "" || slices.ContainsFunc(s.infos, func(i Info) bool { return i.ID == info.ID }) {
			return nil, errs.New(errs.Invalid, "the domain driver %q has no id, or one that another has", info.ID)
		}
		s.infos = append(s.infos, info)
	}
	return s, nil
}

// stamp is the time of a write, as every database can keep it.
func (s *Service) stamp() time.Time { return s.o.Now().UTC().Truncate(time.Microsecond) }
