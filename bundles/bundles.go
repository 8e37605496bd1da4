// Package bundles manages bundles, which are manifests of content, and exports, imports, restores
// and deploys archives of content.
//
//	made, err := app.Bundles.Create(ctx, bundles.Bundle{Name: "Reports"})
//	_, err = app.Bundles.CreateEntry(ctx, made.ID, bundles.Entry{Type: "report", EntityID: id})
//	export, err := app.Bundles.Export(ctx, made.ID)
//	err = export.Write(ctx, file)
//	…
//	result, err := app.Bundles.Import(other, file, bundles.ImportOptions{DryRun: true})
//
// httpapi, the root and hosts import it; internal/store/bundles stores its rows,
// internal/transfer/archive defines the file format, and bundles/drivertest checks a host's own
// kinds and drivers. It reads and writes content of every kind through entity.Transferer.
package bundles

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"github.com/tenantcontent/tenantcontent/comments"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/files"
	"github.com/tenantcontent/tenantcontent/internal/clock"
	"github.com/tenantcontent/tenantcontent/internal/limits/limiter"
	"github.com/tenantcontent/tenantcontent/internal/secure/guard"
	"github.com/tenantcontent/tenantcontent/paging"
)

// The most entries of a bundle, and of their data, as it is read with all of them.
const (
	MaxEntries     = 10_000
	MaxEntriesData = 4 << 20 // bytes of the data of all entries together
)

// The kinds of bundles and their entries in changes.
const (
	Kind      entity.Kind = "bundle"
	KindEntry entity.Kind = "bundleEntry"
)

// Bundle is a named manifest of content. It has no owner: any superuser of the tenant manages it.
type Bundle struct {
	Tenant      string
	ID          string    // UUIDv7, lower case
	Name        string    // 1 to 255 characters
	Slug        string    // see internal/text/slug; unique in the tenant, case matters
	Description *string   // at most 16 KiB
	Entries     []Entry   // at most MaxEntries, in the order in which they were added; nil where a method says so
	CreatedAt   time.Time // UTC, whole microseconds
	UpdatedAt   time.Time // UTC, whole microseconds
}

// Version changes with every change of the row, not with its entries.
func (b Bundle) Version() string {
	return guard.Version(b.ID, b.Name, b.Slug, b.Description, b.CreatedAt, b.UpdatedAt)
}

// NaturalID returns the slug.
func (b Bundle) NaturalID() string { return b.Slug }

// entryID returns the id of an entry with that of its bundle, for changes.
func entryID(e Entry) string { return e.BundleID + "/" + e.ID }

// Entry is an entity in a bundle or, if its type refers to nothing, all entities of some kinds.
type Entry struct {
	Tenant    string
	ID        string          // UUIDv7, lower case
	BundleID  string          // UUID
	Type      string          // id of a driver
	EntityID  string          // of the entity; "" for a type that refers to nothing
	Data      json.RawMessage // options for the driver: a JSON object of at most 64 KiB, {} by default
	CreatedAt time.Time       // UTC, whole microseconds
	UpdatedAt time.Time       // UTC, whole microseconds

	// Ref is the entity, nil if it no longer exists or the type refers to nothing. Methods of the
	// Service set it where they document it; it is not stored.
	Ref *entity.Ref
}

// Version changes with every change of the row.
func (e Entry) Version() string {
	return guard.Version(e.ID, e.Type, e.EntityID, e.Data, e.CreatedAt, e.UpdatedAt)
}

// Deployment is one entity that a deploy of a bundle brought into a tenant.
//
// A later deploy of the bundle that does not ship the entity removes it, unless another bundle
// brought it, too, or it is not the same any more: an entity that the tenant deleted and created
// again under the same id, name or key stays, with a warning, and so does one of its own that was
// overwritten. An entity restored from an archive is the same, but not an app that an archive of
// another tenant brought back, which is not managed. Entities are distinguished by the createdAt of
// their rows; in a kind without them, a changed entity is the tenant's own.
type Deployment struct {
	entity.Key
	Fingerprint string // a fingerprint that distinguishes the entity from a later one with its id
	Shared      bool   // deploys of another bundle brought it, too
}

// Store keeps bundles and their entries. The tests beside its bun-backed store say what every
// implementation must do.
type Store interface {
	// Get finds a bundle, with its entries, by id or, when key has no UUID form, by slug. Errors:
	// errs.NotFound.
	Get(ctx context.Context, tenant, key string) (Bundle, error)
	// Find returns the bundle that Get finds, without entries. It fails with errs.NotFound.
	Find(ctx context.Context, tenant, key string) (Bundle, error)
	// Page returns a page with entries, in the order of q.Sort: createdAt (the default), name, or
	// updatedAt. The number of statements does not depend on the number of bundles.
	Page(ctx context.Context, tenant string, q paging.Query) (paging.Page[Bundle], error)
	// All returns all bundles without entries, in the order of createdAt.
	All(ctx context.Context, tenant string) ([]Bundle, error)
	// Insert adds a bundle without entries. Errors: errs.Conflict for a taken slug.
	Insert(ctx context.Context, tenant string, b Bundle) error
	// Update calls edit with the bundle that Get finds and writes its name, slug, description and
	// UpdatedAt; no other Update of it comes between. An error from edit is returned as is and
	// writes nothing. Errors: errs.NotFound; errs.Conflict for a taken slug.
	Update(ctx context.Context, tenant, key string, edit func(*Bundle) error) (Bundle, error)
	// Delete removes the bundle that Get finds, with its entries. Errors: errs.NotFound.
	Delete(ctx context.Context, tenant, key string) error

	// Entries returns a page of a bundle's entries in the order of q.Sort: createdAt (the default),
	// type, or updatedAt.
	Entries(ctx context.Context, tenant, bundleID string, q paging.Query) (paging.Page[Entry], error)
	// Entry fails with errs.NotFound when the bundle has no entry with this id.
	Entry(ctx context.Context, tenant, bundleID, id string) (Entry, error)
	// MeasureEntries returns how many entries a bundle has, and how many bytes their data has
	// together. Other callers of it for this bundle wait until the transaction in ctx ends. It
	// fails with errs.NotFound.
	MeasureEntries(ctx context.Context, tenant, bundleID string) (entries, bytes int, err error)
	// InsertEntry adds an entry. A user or team that it refers to, as its Ref says, keeps its id
	// until the transaction ends: RenameUsers waits, and finds the entry. Errors: errs.Conflict
	// when the bundle has one with the same type and EntityID; errs.Invalid when that user or team
	// no longer exists.
	InsertEntry(ctx context.Context, tenant string, e Entry) error
	// SetData writes an entry's data and UpdatedAt, and returns the entry. Errors: errs.NotFound.
	SetData(ctx context.Context, tenant, bundleID, id string, data json.RawMessage, at time.Time) (Entry, error)
	// DeleteEntry fails with errs.NotFound when the bundle has no entry with this id.
	DeleteEntry(ctx context.Context, tenant, bundleID, id string) error

	// Deployed returns what the deploys of a bundle of another tenant brought into this one,
	// ordered by kind and id.
	Deployed(ctx context.Context, tenant, source, bundleID string) ([]Deployment, error)
	// Fingerprints returns, of some entities of a kind, the fingerprints of those that deploys from
	// a source tenant brought, by id. source "" means every tenant.
	Fingerprints(ctx context.Context, tenant, source string, kind entity.Kind, ids []string) (map[string]string, error)
	// SetDeployed replaces what Deployed returns. The fingerprints become those of the entities,
	// whichever bundles of the source brought them; Shared is ignored.
	SetDeployed(ctx context.Context, tenant, source, bundleID string, all []Deployment) error
	// AddDeployed is like SetDeployed but keeps the others.
	AddDeployed(ctx context.Context, tenant, source, bundleID string, some []Deployment) error
	// ForgetDeployed removes, of some entities of a kind, the deployments from every tenant but a
	// source: that one made them.
	ForgetDeployed(ctx context.Context, tenant, source string, kind entity.Kind, ids []string) error

	// RenameUsers replaces the usernames in entries and deployments; names maps old ones to new
	// ones, and no new one is an old one. Those of users who had the new names before, and are
	// gone, are removed.
	RenameUsers(ctx context.Context, tenant string, names map[string]string) error

	// AllFingerprints returns the fingerprints of all entities of a kind that deploys from a source
	// tenant brought, by id.
	AllFingerprints(ctx context.Context, tenant, source string, kind entity.Kind) (map[string]string, error)

	// Lock locks a tenant until the transaction in ctx ends: other callers of Lock wait. Errors:
	// errs.NotFound if there is no such tenant.
	Lock(ctx context.Context, tenant string) error
	// InTx runs fn in one transaction, which all calls with its context join.
	InTx(ctx context.Context, fn func(ctx context.Context) error) error
	// InTransaction reports whether ctx carries a transaction.
	InTransaction(ctx context.Context) bool
	// DryRun runs fn as InTx does and rolls back what it did. On SQLite no writer waits for it, nor
	// it for one. Errors: fn's own; errs.Invalid, before fn runs, when ctx carries a transaction,
	// which would keep it.
	DryRun(ctx context.Context, fn func(ctx context.Context) error) error
	// Count returns how many bundles a tenant has.
	Count(ctx context.Context, tenant string) (int, error)
	// Targets returns the tenants that have deployments of a source.
	Targets(ctx context.Context, source string) ([]string, error)
	// ForgetSource removes the deployments of all bundles of a source from a tenant.
	ForgetSource(ctx context.Context, tenant, source string) error
}

// Tenants decides which tenants may deploy into which. tenants.Unchecked implements it.
type Tenants interface {
	// DeploysFrom reports whether a source may deploy into a tenant, and the user who gets what
	// comes from there, "" for none. It returns errs.NotFound if there is no such tenant.
	DeploysFrom(ctx context.Context, tenant, source string) (allowed bool, runAs string, err error)
}

// Downloads stores archives. files.UncheckedDownloads implements it.
type Downloads interface {
	// CreateForSuperusers creates a download, with the bytes that write writes, for the superusers
	// of a tenant. It joins the transaction in ctx.
	CreateForSuperusers(
		ctx context.Context, tenant string, d files.Draft, write func(io.Writer) error,
	) (files.File, error)
}

// Principals looks up and locks users and teams of a tenant. principals.Unchecked implements it.
type Principals interface {
	// Superusers returns the names of the enabled superusers, ordered.
	Superusers(ctx context.Context, tenant string) ([]string, error)
	// Known returns which of some ids are those of users and teams that exist.
	Known(ctx context.Context, tenant string, ids []string) (map[string]bool, error)
	// CanonicalName returns the exact name of the user who is meant by a name, or the name as it is
	// if there is none.
	CanonicalName(ctx context.Context, tenant, name string) (string, error)
	// LockPrincipals keeps content from being added for users and teams until the transaction in
	// ctx ends, and waits for what is just being added. It comes after Store.Lock.
	LockPrincipals(ctx context.Context, tenant string, ids []string) error
}

// Service implements the rules for bundles over a Store.
type Service struct {
	observer    entity.Observer
	feed        *entity.Changes
	store       Store
	tenants     Tenants
	downloads   Downloads
	principals  Principals
	content     *entity.Registry
	drivers     []Driver
	transferers map[entity.Kind]entity.Transferer
	kinds       []entity.Kind // of transferers, each after those that it may need
	limits      Limits
	size        int64
	time        time.Duration
	imports     *limiter.Limiter // by tenant
	notify      func(ctx context.Context, tenant string, users []string, n comments.Notification) error
	clock       clock.Clock
}

// Options configure a Service. Store, Tenants, Downloads, Principals and Content are required.
type Options struct {
	Store      Store
	Tenants    Tenants
	Downloads  Downloads
	Principals Principals
	Content    *entity.Registry // the kinds and hooks of all; New reads the kinds
	Global     []entity.Type    // the kinds that an entry of type global ships beside those of Content: whole, each
	Drivers    []Driver         // of the host: each joins the ready ones, or takes the place of the one with its id
	// Notify tells some users of a tenant, in the transaction in ctx, what a deploy from another
	// one left out. nil: nobody.
	Notify func(ctx context.Context, tenant string, users []string, n comments.Notification) error

	Limits Limits           // of archives that are sent in, and that are made
	Size   int64            // most bytes of such an archive as it is sent, packed; default 4 GiB
	Time   time.Duration    // the longest that the transaction of an import, restore or deploy takes; default MaxTime
	Now    func() time.Time // default time.Now
	NewID  func() string    // default UUIDv7

	Feed     *entity.Changes // nil: changes are not announced
	Observer entity.Observer // is told of each export, import, restore and deploy; nil: nobody is
}

// MaxTime is how long the transaction of an import, restore or deploy takes at most by default. On
// SQLite nobody else writes meanwhile.
const MaxTime = 2 * time.Minute

// New returns a Service. Errors: errs.Invalid for a bad limit or driver, or two drivers with one
// id.
func New(o Options) (*Service, error) {
	if o.Size == 0 {
		o.Size = 4 << 30
	}
	if o.Time == 0 {
		o.Time = MaxTime
	}
	if err := o.Limits.Check(); err != nil {
		return nil, err
	}
	if o.Size < 0 {
		return nil, errs.New(errs.Invalid, "the size of an archive must not be negative")
	}
	if o.Time < 0 {
		return nil, errs.New(errs.Invalid, "the time of an import must not be negative")
	}
	drivers, err := allDrivers(o.Content, o.Global, o.Drivers)
	if err != nil {
		return nil, err
	}
	s := &Service{
		store: o.Store, tenants: o.Tenants, downloads: o.Downloads,
		principals: o.Principals, content: o.Content, drivers: drivers,
		notify: o.Notify, feed: o.Feed, observer: o.Observer,
		limits: o.Limits.WithDefaults(), size: o.Size, time: o.Time,
		imports: limiter.New(limiter.Options{
			Capacity: maxImports, PerKey: 1, Timeout: maxWait, Observer: o.Observer, Kind: "archive",
		}),
		clock: clock.New(o.Now, o.NewID),
	}
	s.transferers, s.kinds = transferersOf(o.Content, drivers)
	return s, nil
}

// Limits returns the limits of archives in force, how many bytes an archive has at most, and how
// long its import takes.
func (u Unchecked) Limits() (l Limits, size int64, longest time.Duration) {
	return u.s.limits, u.s.size, u.s.time
}
