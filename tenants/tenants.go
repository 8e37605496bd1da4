// Package tenants is who the service works for: each tenant's name, settings and proof that its secrets can be read.
//
// httpapi, the root, cmd and hosts import it; tenants/bunstore keeps its rows.
package tenants

import (
	"context"
	"time"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/epoch"
)

// Tenant is one customer of the service. Every other row belongs to one.
//
// Source: DECISIONS, section 1.
type Tenant struct {
	ID        string // [a-z0-9][a-z0-9-]{0,62}; never changes
	Name      string // 1 to 255 characters
	Settings  Settings
	CreatedAt time.Time // UTC, whole microseconds
	UpdatedAt time.Time // UTC, whole microseconds
}

// Settings are what a tenant has switched on.
type Settings struct {
	AI            bool     // the AI module (part 1, AI instructions)
	Licenses      []string // such as "apps"
	DefaultDomain string   // authentication domain of a login that names none; "local" when it was not set
	DeployFrom    []string // ids of the tenants that may deploy bundles into this one
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

// Sealer encrypts secrets so that a value opens only in the place it was sealed for. *keyring.Ring is one.
type Sealer interface {
	Seal(tenant, table, column, row string, plain []byte) (string, error)
	Open(tenant, table, column, row, sealed string) ([]byte, error)
	// Current reports whether a value is sealed under the key that Seal uses.
	Current(sealed string) bool
}

// Store keeps tenants. Implementations must pass tenantstest.TestStore.
type Store interface {
	// Get fails with errs.NotFound when there is no tenant with this id.
	Get(ctx context.Context, id string) (Tenant, error)
	// IDs gives the ids of all tenants, ordered.
	IDs(ctx context.Context) ([]string, error)
	// Insert adds a tenant. It fails with errs.Conflict when the id is taken.
	Insert(ctx context.Context, t Tenant, keyCheck string) error
	// Update calls edit with the stored tenant and writes its name, settings and UpdatedAt; no other Update of this
	// tenant comes between. An error from edit is returned as is and writes nothing.
	Update(ctx context.Context, id string, edit func(*Tenant) error) (Tenant, error)
	// InTx runs fn in one transaction, which all calls with its context join.
	InTx(ctx context.Context, fn func(ctx context.Context) error) error
	// KeyCheck gives the sealed text that Insert was given, or that Reseal made of it.
	KeyCheck(ctx context.Context, id string) (string, error)
	// Reseal calls reseal with each sealed value of a tenant, in every table, and writes what it gives where that
	// differs. It is one transaction; an error from reseal is returned as is and writes nothing. It gives how many
	// values were written.
	Reseal(ctx context.Context, id string, reseal func(s Secret) (string, error)) (int, error)
}

// Secret is one sealed value and its place.
type Secret struct {
	Table, Column, Row string
	Sealed             string
}

// Service is the rules for tenants over a Store.
type Service struct {
	store Store
	keys  Sealer
	known func(ctx context.Context, tenant, id string) error
	now   func() time.Time
	ai    *epoch.Cache[bool]
}

// Options configure a Service. Store and Keys are required.
type Options struct {
	Store   Store
	Keys    Sealer
	Changes *epoch.Counter   // counts what the Store commits; default nil: AIEnabled keeps nothing in memory
	Now     func() time.Time // default time.Now
	// KnownDomain fails with errs.Invalid when a tenant has no authentication domain of an id. Default nil: Update takes
	// every id for the default domain. It is not asked about local.
	KnownDomain func(ctx context.Context, tenant, id string) error
}

// New makes a Service.
func New(o Options) *Service {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Service{store: o.Store, keys: o.Keys, known: o.KnownDomain, now: o.Now, ai: epoch.NewCache[bool](o.Changes)}
}

// Get gives the caller's tenant to any session.
func (s *Service) Get(ctx context.Context) (Tenant, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return Tenant{}, err
	}
	return s.Lookup(ctx, a.Tenant)
}

// Update changes the name and settings of the caller's tenant. It needs a superuser. The id and the times of the edited
// tenant are ignored. Errors: errs.Forbidden; errs.Invalid naming the field; an error from edit as it is.
func (s *Service) Update(ctx context.Context, edit func(*Tenant) error) (Tenant, error) {
	a, err := actor.Allowed(ctx, actor.Superuser)
	if err != nil {
		return Tenant{}, err
	}
	var t Tenant
	err = s.store.InTx(ctx, func(ctx context.Context) (err error) {
		t, err = s.store.Update(ctx, a.Tenant, func(t *Tenant) error {
			was := *t
			if err := edit(t); err != nil {
				return err
			}
			t.ID, t.CreatedAt, t.UpdatedAt = was.ID, was.CreatedAt, s.stamp()
			if err := t.accept(); err != nil {
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

// ForgetDomain makes local a tenant's default domain again where that is a domain which goes. It joins the transaction in
// ctx and asks for no actor. Errors: errs.NotFound.
func (s *Service) ForgetDomain(ctx context.Context, id, domain string) error {
	t, err := s.Lookup(ctx, id)
	if err != nil || t.Settings.DefaultDomain != domain {
		return err
	}
	_, err = s.store.Update(ctx, id, func(t *Tenant) error {
		if t.Settings.DefaultDomain == domain {
			t.Settings.DefaultDomain, t.UpdatedAt = local, s.stamp()
		}
		return nil
	})
	return err
}

// Add makes a tenant, for the library and the command line: it asks for no actor. A tenant without a name is named as
// its id. Errors: errs.Invalid naming the field; errs.Conflict for a taken id.
func (s *Service) Add(ctx context.Context, t Tenant) (Tenant, error) {
	if !ValidID(t.ID) {
		return Tenant{}, errs.New(errs.Invalid, "id must be 1 to 63 lower-case letters, digits and hyphens, and not begin with a hyphen")
	}
	if t.Name == "" {
		t.Name = t.ID
	}
	if err := t.accept(); err != nil {
		return Tenant{}, err
	}
	check, err := s.sealCheck(t.ID)
	if err != nil {
		return Tenant{}, err
	}
	t.CreatedAt = s.stamp()
	t.UpdatedAt = t.CreatedAt
	if err := s.store.Insert(ctx, t, check); err != nil {
		return Tenant{}, err
	}
	return t, nil
}

// Lookup gives a tenant without an actor, for login and background work. Errors: errs.NotFound.
func (s *Service) Lookup(ctx context.Context, id string) (Tenant, error) {
	if !ValidID(id) {
		return Tenant{}, errs.New(errs.NotFound, "Tenant not found.")
	}
	return s.store.Get(ctx, id)
}

// DeployFrom gives the ids of the tenants that may deploy bundles into a tenant, without an actor. Errors: errs.NotFound.
func (s *Service) DeployFrom(ctx context.Context, id string) ([]string, error) {
	t, err := s.Lookup(ctx, id)
	return t.Settings.DeployFrom, err
}

// DefaultDomain gives the id of a tenant's default authentication domain without an actor. Errors: errs.NotFound.
func (s *Service) DefaultDomain(ctx context.Context, id string) (string, error) {
	t, err := s.Lookup(ctx, id)
	return t.Settings.DefaultDomain, err
}

// IDs gives the ids of all tenants without an actor, ordered.
func (s *Service) IDs(ctx context.Context) ([]string, error) { return s.store.IDs(ctx) }

// stamp is the time of a write, as every database can keep it.
func (s *Service) stamp() time.Time { return s.now().UTC().Truncate(time.Microsecond) }
