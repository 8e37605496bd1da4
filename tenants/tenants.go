// Package tenants manages the tenants: their names and settings, and a check that their secrets can
// be read.
//
//	tenant, err := app.Tenants.Update(ctx, func(t *tenants.Tenant) error {
//		t.Name = "Acme Ltd."
//		return nil
//	})
//
// httpapi, the root, cmd and hosts import it; internal/store/tenants stores its rows.
package tenants

import (
	"context"
	"slices"
	"time"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/clock"
	"github.com/tenantcontent/tenantcontent/internal/limits/cache"
	"github.com/tenantcontent/tenantcontent/internal/secure/guard"
)

// Kind is the kind of tenants in changes.
const Kind entity.Kind = "tenant"

// Tenant is a customer of the service. Every other row belongs to one tenant.
type Tenant struct {
	ID        string // [a-z0-9][a-z0-9-]{0,62}; never changes
	Name      string // 1 to 255 characters
	Settings  Settings
	Quota     Quota
	CreatedAt time.Time // UTC, whole microseconds
	UpdatedAt time.Time // UTC, whole microseconds
}

// Version changes with every change of the row.
func (t Tenant) Version() string {
	from := make([]string, 0, 2*len(t.Settings.DeployFrom))
	for _, s := range t.Settings.DeployFrom {
		from = append(from, s.Tenant, s.RunAs)
	}
	return guard.Version(
		t.ID, t.Name, t.Settings.AI, t.Settings.Licenses, t.Settings.DefaultDomain, from, t.CreatedAt,
		t.UpdatedAt,
	)
}

// Quota is what a tenant may store, nil where the server decides. The operator sets it
// (Unchecked.SetQuota), and nobody in the tenant.
type Quota struct {
	Bytes      *int64 // of files, records and workspaces, at least 0
	Workspaces *int   // how many, at least 0
}

// Settings are what a tenant has switched on.
type Settings struct {
	AI            bool     // the AI module
	Licenses      []string // such as "apps"
	DefaultDomain string   // authentication domain of a login that names none; "local" when it was not set
	DeployFrom    []Source // the tenants that may deploy bundles into this one, each once
}

// Source is a tenant that may deploy bundles into another one.
type Source struct {
	Tenant string // its id
	RunAs  string // username, in the tenant deployed into, of who owns and runs what comes; "" for none
}

// Sources returns tenants without users who run what comes.
func Sources(ids ...string) []Source {
	all := make([]Source, len(ids))
	for i, id := range ids {
		all[i].Tenant = id
	}
	return all
}

// Licensed reports whether the tenant has a license.
func (s Settings) Licensed(license string) bool {
	for _, l := range s.Licenses {
		if l == license {
			return true
		}
	}
	return false
}

// Sealer encrypts secrets so that a value opens only in the place it was sealed for. *keyring.Ring
// implements it.
type Sealer interface {
	Seal(tenant, table, column, row string, plain []byte) (string, error)
	Open(tenant, table, column, row, sealed string) ([]byte, error)
	// Beginning returns how many bytes sealed values have up to the end of the name of their key.
	Beginning() int
	// Current reports whether a value is sealed under the key that Seal uses.
	Current(sealed string) bool
}

// Store keeps tenants. The tests beside its bun-backed store say what every implementation must do.
type Store interface {
	// Get fails with errs.NotFound when there is no tenant with this id.
	Get(ctx context.Context, id string) (Tenant, error)
	// All returns all tenants that are not hidden, ordered by id.
	All(ctx context.Context) ([]Tenant, error)
	// IDs returns the ids of all tenants that are not hidden, ordered. The methods that return or
	// change a tenant do not find one that is.
	IDs(ctx context.Context) ([]string, error)
	// HiddenIDs returns the ids of the tenants that are hidden.
	HiddenIDs(ctx context.Context) ([]string, error)
	// Any reports whether there is a tenant.
	Any(ctx context.Context) (bool, error)
	// Insert adds a tenant. It fails with errs.Conflict when the id is taken.
	Insert(ctx context.Context, t Tenant, keyCheck string) error
	// Update calls edit with the stored tenant and writes its name, settings and UpdatedAt; no
	// other Update of this tenant comes between. An error from edit is returned as is and writes
	// nothing.
	Update(ctx context.Context, id string, edit func(*Tenant) error) (Tenant, error)
	// InTx runs fn in one transaction, which all calls with its context join.
	InTx(ctx context.Context, fn func(ctx context.Context) error) error
	// Hide makes a tenant hidden from a time on, or notes the time of one that is hidden for the
	// same reason. It fails with errs.NotFound.
	Hide(ctx context.Context, id string, why Hidden, at time.Time) error
	// Rehide changes why and since when a tenant is hidden. It fails with errs.NotFound unless the
	// tenant is hidden for the reason was since exactly the time since, so of several callers that
	// have read the same one succeeds.
	Rehide(ctx context.Context, id string, was Hidden, since time.Time, why Hidden, at time.Time) error
	// Show makes a hidden tenant one like the others. It fails with errs.NotFound unless the tenant
	// is hidden for this reason since this time.
	Show(ctx context.Context, id string, was Hidden, since time.Time) error
	// Hidden returns why a tenant is hidden, "" if it is not, and since when: the time of the last
	// Hide or Rehide. It fails with errs.NotFound.
	Hidden(ctx context.Context, id string) (why Hidden, at time.Time, err error)
	// Forget removes a tenant from the DeployFrom of all others, which get UpdatedAt at, and calls
	// forget for each of these and for those of others, in a transaction for each, in the order of
	// the ids. The row of one that has such an entry is locked then, so that a deploy from there
	// has ended.
	Forget(
		ctx context.Context, id string, at time.Time, others []string,
		forget func(ctx context.Context, other string) error,
	) error
	// Empty removes every row of a tenant but that of itself, in short transactions, and calls
	// progress with the number of rows of each. It may be interrupted and called again. It removes
	// nothing of a tenant that is not hidden as Deleting, such as a new one with the id of one that
	// is gone.
	Empty(ctx context.Context, id string, progress func(rows int)) error
	// Delete removes a tenant that is hidden as Deleting, and what it has got since Empty. It fails
	// with errs.NotFound, and if a row of it would be left.
	Delete(ctx context.Context, id string) error
	// KeyCheck returns the sealed text that Insert was given, or that Reseal made of it.
	KeyCheck(ctx context.Context, id string) (string, error)
	// KeyChecks returns, of all tenants that are not hidden, one for each beginning of a key check,
	// such as the name of the key.
	KeyChecks(ctx context.Context, beginning int) ([]string, error)
	// Reseal calls reseal with each value that a tenant has in the columns, except for NULL, and
	// writes what it returns where that differs. It is one transaction; an error from reseal is
	// returned as is and writes nothing. It returns how many values were written.
	Reseal(
		ctx context.Context, id string, columns []entity.SealedColumn, reseal func(s Secret) (string, error),
	) (int, error)
}

// Hidden is why a tenant is not served.
type Hidden string

// The reasons.
const (
	Deleting  Hidden = "deleting"
	Importing Hidden = "importing"
)

// Secret is one sealed value and its place.
type Secret struct {
	Table, Column, Row string
	Sealed             string
}

// Count is how many rows a tenant has of a thing, such as users.
type Count struct {
	Of string
	N  int
}

// Hooks are what the packages declare of a tenant's rows in their entity.Hooks. *entity.Registry
// implements it.
type Hooks interface {
	TenantCounts(ctx context.Context, tenant string) ([]entity.TenantCount, error)
	TenantsWith(ctx context.Context, deleted string) (tenants []string, every bool, err error)
	TenantDeleted(ctx context.Context, tenant, deleted string) error
	Removed(ctx context.Context, tenant string) error
	Sealed() []entity.SealedColumn
}

// Service implements the rules for tenants over a Store.
type Service struct {
	store Store
	keys  Sealer
	hooks Hooks
	known func(ctx context.Context, tenant, id string) error
	user  func(ctx context.Context, tenant, name string) (string, error)
	open  bool // superusers may change licenses
	clock clock.Clock
	ai    *cache.Cache[bool]
	feed  *entity.Changes
	check func(ctx context.Context, tenant string) error // Options.CheckDelete
}

// Options configure a Service. Store and Keys are required.
type Options struct {
	Store Store
	Keys  Sealer
	Now   func() time.Time // default time.Now
	// Hooks counts and removes what other packages store of a tenant, and names their secrets.
	// Those of this Service are to be in it before it is used. Default nil: there is nothing but
	// tenants.
	Hooks Hooks
	// Changes returns how often this process has changed a tenant: the number grows when the Store
	// commits. AIEnabled keeps its results in memory for up to a second while it stays the same.
	// Default nil: it keeps nothing.
	Changes func(tenant string) uint64
	// KnownDomain fails with errs.Invalid when a tenant has no authentication domain of an id.
	// Default nil: Update takes every id for the default domain. It is not asked about local.
	KnownDomain func(ctx context.Context, tenant, id string) error
	// Username returns the exact name of the user of a tenant who is meant by a name, or
	// errs.NotFound. Default nil: Update takes every name in DeployFrom.
	Username func(ctx context.Context, tenant, name string) (string, error)
	// CheckDelete returns errs.Conflict, with what to do, if a delete would leave something of a
	// tenant, such as SQL databases of apps that are not where those of this server are.
	// Default nil: it never does.
	CheckDelete func(ctx context.Context, tenant string) error
	// OpenLicenses lets Update change the licenses of a tenant. Default false: only
	// Unchecked.ChangeLicenses does.
	OpenLicenses bool
	Feed         *entity.Changes // nil: changes are not announced
}

// New returns a Service.
func New(o Options) *Service {
	s := &Service{
		store: o.Store,
		keys:  o.Keys,
		hooks: o.Hooks,
		known: o.KnownDomain,
		user:  o.Username,
		open:  o.OpenLicenses,
		check: o.CheckDelete,
		clock: clock.New(o.Now, nil),
		ai:    cache.New[bool](o.Changes),
		feed:  o.Feed,
	}
	if s.hooks == nil {
		own := entity.NewRegistry()
		own.AddHooks(s.Unchecked().Hooks())
		s.hooks = own
	}
	return s
}

// Get returns the caller's tenant to any session.
func (s *Service) Get(ctx context.Context) (Tenant, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return Tenant{}, err
	}
	return s.get(ctx, a.Tenant)
}

// Update changes the name and settings of the caller's tenant. It needs a superuser. The id, the
// quota and the times of the edited tenant are ignored. Errors: errs.Forbidden, also for other
// licenses without Options.OpenLicenses; errs.Invalid naming the field; an error from edit as it
// is.
func (s *Service) Update(ctx context.Context, edit func(*Tenant) error) (Tenant, error) {
	a, err := actor.Allowed(ctx, actor.Superuser)
	if err != nil {
		return Tenant{}, err
	}
	var t Tenant
	err = s.feed.In(ctx, s.store.InTx, a.Tenant, updated(a.Tenant), func(ctx context.Context) (err error) {
		t, err = s.store.Update(ctx, a.Tenant, func(t *Tenant) error {
			was := *t
			if err := edit(t); err != nil {
				return err
			}
			t.ID, t.Quota, t.CreatedAt, t.UpdatedAt = was.ID, was.Quota, was.CreatedAt, s.clock.Stamp()
			if err := t.accept(); err != nil {
				return err
			}
			if err := s.acceptLicenses(was, t); err != nil {
				return err
			}
			if err := s.acceptSources(ctx, was, t); err != nil {
				return err
			}
			return s.acceptDomain(ctx, was, *t)
		})
		return err
	})
	if err != nil {
		return Tenant{}, err
	}
	return t, nil
}

// updated is the change of a tenant.
func updated(id string) entity.Subject {
	return entity.Subject{Kind: Kind, ID: id, Action: entity.ActionUpdate}
}

// acceptLicenses refuses other licenses than the tenant has, in whatever order, unless superusers
// may change them.
func (s *Service) acceptLicenses(was Tenant, t *Tenant) error {
	if s.open {
		return nil
	}
	had, has := licenseSet(was.Settings.Licenses), licenseSet(t.Settings.Licenses)
	if !slices.Equal(had, has) {
		return errs.New(errs.Forbidden,
			"settings.licenses is set by the operator of this server: tenantcontent tenant license %s --add NAME "+
				"--remove NAME. "+
				"Leave it out, or send the licenses that GET /api/tenant has.", t.ID)
	}
	t.Settings.Licenses = was.Settings.Licenses
	return nil
}

// licenseSet returns licenses in order, each once.
func licenseSet(all []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(all)))
}

// acceptDomain refuses a new default domain that the tenant does not have.
func (s *Service) acceptDomain(ctx context.Context, was, t Tenant) error {
	id := t.Settings.DefaultDomain
	if s.known == nil || id == local || id == was.Settings.DefaultDomain {
		return nil
	}
	err := s.known(ctx, t.ID, id)
	if errs.CodeOf(err) == errs.Invalid {
		return errs.New(errs.Invalid, "settings.defaultDomain must be the id of a domain of the tenant")
	}
	return err
}

// get returns a tenant, errs.NotFound without asking the database for what cannot be an id.
func (s *Service) get(ctx context.Context, id string) (Tenant, error) {
	if !ValidID(id) {
		return Tenant{}, errs.New(errs.NotFound, "Tenant %q not found.", id)
	}
	return s.store.Get(ctx, id)
}

// acceptSources replaces the users in DeployFrom by their exact names. It refuses one whom the
// tenant does not have, except for one who was there before.
func (s *Service) acceptSources(ctx context.Context, was Tenant, t *Tenant) error {
	t.Settings.DeployFrom = slices.Clone(t.Settings.DeployFrom)
	for i, from := range t.Settings.DeployFrom {
		if s.user == nil || from.RunAs == "" || slices.Contains(was.Settings.DeployFrom, from) {
			continue
		}
		name, err := s.user(ctx, t.ID, from.RunAs)
		if errs.CodeOf(err) == errs.NotFound {
			return errs.New(
				errs.Invalid, "settings.deployFrom[%d].runAs must be the username of a user of the tenant", i,
			)
		}
		if err != nil {
			return err
		}
		t.Settings.DeployFrom[i].RunAs = name
	}
	return nil
}
