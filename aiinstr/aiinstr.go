// Package aiinstr manages the AI instructions of a tenant: prompt texts by slug, which other texts
// include as ${slug}.
//
//	tone := aiinstr.Instruction{Slug: "tone", Content: "Be brief."}
//	_, err := app.AIInstructions.Create(ctx, tone)
//	text, unknown, err := app.AIInstructions.Expand(ctx, "${tone} Answer in German.")
//	for i, err := range app.AIInstructions.All(ctx) {
//		…
//	}
//
// httpapi, the root and hosts import it; internal/store/aiinstr stores its rows.
package aiinstr

import (
	"context"
	"iter"
	"time"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/clock"
	"github.com/tenantcontent/tenantcontent/internal/secure/guard"
	"github.com/tenantcontent/tenantcontent/paging"
)

// Kind is the kind of instructions, for bundles and reassignment.
const Kind entity.Kind = "aiInstruction"

// Instruction is one prompt text of a tenant.
type Instruction struct {
	Tenant      string
	ID          string    // UUID, set by Create
	Slug        string    // [A-Za-z0-9][A-Za-z0-9_-]{0,127}, never of UUID form; unique in the tenant; never changes
	Description *string   // at most 4 KiB, never blank; nil for none
	Content     string    // 1 byte to 256 KiB, not blank, kept as it is
	OwnerID     string    // principal id: the creator, until somebody else gets it
	CreatedAt   time.Time // UTC, whole microseconds
	UpdatedAt   time.Time // UTC, whole microseconds
}

// Version changes with every change of the row.
func (i Instruction) Version() string {
	return guard.Version(i.ID, i.Slug, i.Description, i.Content, i.OwnerID, i.CreatedAt, i.UpdatedAt)
}

// Permissions is what the caller may do with an instruction, or, of a list, with every instruction
// of the tenant.
type Permissions struct {
	Edit, Delete, Write, ChangeOwner, Copy bool
}

// Store keeps instructions. The tests beside its bun-backed store define what every implementation
// must do.
type Store interface {
	// Get finds an instruction by its id or, when key is not a UUID, by its slug. It fails with
	// errs.NotFound.
	Get(ctx context.Context, tenant, key string) (Instruction, error)
	// Page returns a page in the order of q.Sort: slug (the default), createdAt or updatedAt.
	Page(ctx context.Context, tenant string, q paging.Query) (paging.Page[Instruction], error)
	// Contents returns the contents of the given slugs that exist. It fails with errs.Invalid when
	// they have more than most bytes together, before it has read more.
	Contents(ctx context.Context, tenant string, slugs []string, most int) (map[string]string, error)
	// Insert fails with errs.Conflict when the slug is taken, and with errs.Forbidden when the
	// owner is not a user or team.
	Insert(ctx context.Context, tenant string, i Instruction) error
	// Update calls edit with the stored instruction, found as by Get, and writes the result except
	// for Tenant, ID, Slug, OwnerID and CreatedAt; no other write to it comes between. An error
	// from edit is returned as is and writes nothing.
	Update(ctx context.Context, tenant, key string, edit func(*Instruction) error) (Instruction, error)
	// Delete calls may with the stored instruction, found as by Get, and removes it. An error from
	// may is returned as is and removes nothing.
	Delete(ctx context.Context, tenant, key string, may func(Instruction) error) error

	// IDs returns the ids of all instructions, ordered.
	IDs(ctx context.Context, tenant string) ([]string, error)
	// Some returns the given instructions that exist, in any order.
	Some(ctx context.Context, tenant string, ids []string) ([]Instruction, error)
	// Slugs returns the ids of the instructions that have some slugs, by slug.
	Slugs(ctx context.Context, tenant string, slugs []string) (map[string]string, error)
	// PutAll adds instructions or overwrites those whose ids exist, all but CreatedAt. A slug must
	// be free, or belong to one that is overwritten, whose id is then among yield. It fails with
	// errs.Conflict.
	PutAll(ctx context.Context, tenant string, all []Instruction, yield []string) error
	// Remove deletes instructions and returns the number of those that existed.
	Remove(ctx context.Context, tenant string, ids []string) (int, error)
	// Owned counts what a principal owns.
	Owned(ctx context.Context, tenant, owner string) (int, error)
	// Owners returns the ids of all principals that own an instruction, each once.
	Owners(ctx context.Context, tenant string) ([]string, error)
	// RenameOwners replaces the owner ids of what principals own; names maps old ids to new ones,
	// and no new one is an old one.
	RenameOwners(ctx context.Context, tenant string, names map[string]string) error
	// Reassign makes to the owner of everything that from owns, locking rows in the order of their
	// ids, and returns what it moved, without descriptions and contents.
	Reassign(ctx context.Context, tenant, from, to string, at time.Time) ([]Instruction, error)

	// InTx runs fn in one transaction, which all calls with its context join.
	InTx(ctx context.Context, fn func(ctx context.Context) error) error
	// Count returns how many instructions a tenant has.
	Count(ctx context.Context, tenant string) (int, error)
}

// Settings reports whether a tenant's AI module is on. tenants.Unchecked implements it.
type Settings interface {
	AIEnabled(ctx context.Context, tenant string) (bool, error)
}

// Directory looks up the principals of a tenant.
type Directory interface {
	// Known returns the given principal ids that exist.
	Known(ctx context.Context, tenant string, ids []string) (map[string]bool, error)
}

// Service implements the rules for instructions over a Store.
type Service struct {
	store     Store
	ai        Settings
	directory Directory
	feed      *entity.Changes
	clock     clock.Clock
}

// Options configure a Service. Store and Settings are required, and Directory for imports.
type Options struct {
	Store     Store
	Settings  Settings
	Directory Directory
	Feed      *entity.Changes  // nil: changes are not announced
	Now       func() time.Time // default time.Now
	NewID     func() string    // default UUIDv7
}

// New returns a Service.
func New(o Options) *Service {
	return &Service{
		store:     o.Store,
		ai:        o.Settings,
		directory: o.Directory,
		feed:      o.Feed,
		clock:     clock.New(o.Now, o.NewID),
	}
}

// Allowed returns the actor if it may use AI instructions. Every method calls it first, and httpapi
// before it reads a request's body. Errors: errs.Invalid "AI is not enabled on the system";
// errs.Forbidden without the ai credential.
func (s *Service) Allowed(ctx context.Context) (actor.Actor, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return actor.Actor{}, err
	}
	on, err := s.ai.AIEnabled(ctx, a.Tenant)
	if err != nil {
		return actor.Actor{}, err
	}
	if !on {
		return actor.Actor{}, errs.New(errs.Invalid, "AI is not enabled on the system")
	}
	if !a.AI && !a.Superuser {
		return actor.Actor{}, errs.New(
			errs.Forbidden,
			"This needs the ai credential, which a superuser gives: PUT /api/users/{username} "+
				"{\"globalPermissions\": {\"ai\": true}}.",
		)
	}
	return a, nil
}

// List returns a page of the instructions, sorted by slug (the default), createdAt or updatedAt; q
// searches slug and description. Errors: as Allowed; errs.Invalid for a sort or cursor that does
// not fit.
func (s *Service) List(ctx context.Context, q paging.Query) (paging.Page[Instruction], error) {
	a, err := s.Allowed(ctx)
	if err != nil {
		return paging.Page[Instruction]{}, err
	}
	return s.store.Page(ctx, a.Tenant, q)
}

// Get returns an instruction, found by id or slug. Errors: as Allowed; errs.NotFound.
func (s *Service) Get(ctx context.Context, key string) (Instruction, error) {
	a, err := s.Allowed(ctx)
	if err != nil {
		return Instruction{}, err
	}
	if key, err = place(key); err != nil {
		return Instruction{}, err
	}
	return s.store.Get(ctx, a.Tenant, key)
}

// CheckAllowed returns the errors of Allowed.
func (s *Service) CheckAllowed(ctx context.Context) error {
	_, err := s.Allowed(ctx)
	return err
}

// Create adds an instruction of the caller's. Tenant, ID, OwnerID and times are ignored; a blank
// description becomes nil.
// Errors: as Allowed; errs.Invalid naming the field; errs.Conflict for a taken slug.
func (s *Service) Create(ctx context.Context, i Instruction) (Instruction, error) {
	if of := (entity.Subject{Kind: Kind, ID: "", Action: entity.ActionCreate}); s.feed.Wanted(ctx, of) {
		given := i // which is not moved to the heap without listeners
		return entity.Record(ctx, s.feed, of, func(i Instruction) string {
			return i.ID
		}, func(ctx context.Context) (Instruction, error) { return s.Create(ctx, given) })
	}
	a, err := s.Allowed(ctx)
	if err != nil {
		return Instruction{}, err
	}
	if err := i.accept(); err != nil {
		return Instruction{}, err
	}
	i.Tenant, i.ID, i.OwnerID, i.CreatedAt = a.Tenant, s.clock.NewID(), a.User, s.clock.Stamp()
	i.UpdatedAt = i.CreatedAt
	if err := s.store.Insert(ctx, a.Tenant, i); err != nil {
		return Instruction{}, err
	}
	return i, nil
}

// Update changes description and content of an instruction, found by id or slug. Changes of other
// fields are ignored. It is for the owner and superusers.
// Errors: as Allowed; errs.NotFound; errs.Forbidden; errs.Invalid naming the field; an error from
// edit as it is.
func (s *Service) Update(ctx context.Context, key string, edit func(*Instruction) error) (Instruction, error) {
	if of := (entity.Subject{Kind: Kind, ID: key, Action: entity.ActionUpdate}); s.feed.Wanted(ctx, of) {
		given := key // which is not moved to the heap without listeners
		return entity.Record(ctx, s.feed, of, func(i Instruction) string {
			return i.ID
		}, func(ctx context.Context) (Instruction, error) { return s.Update(ctx, given, edit) })
	}
	a, err := s.Allowed(ctx)
	if err != nil {
		return Instruction{}, err
	}
	if key, err = place(key); err != nil {
		return Instruction{}, err
	}
	return s.store.Update(ctx, a.Tenant, key, func(i *Instruction) error {
		was := *i
		if err := owned(a, was); err != nil {
			return err
		}
		if err := edit(i); err != nil {
			return err
		}
		i.Tenant, i.ID, i.Slug, i.OwnerID, i.CreatedAt = was.Tenant, was.ID, was.Slug, was.OwnerID, was.CreatedAt
		i.UpdatedAt = s.clock.Stamp()
		return i.accept()
	})
}

// Delete removes an instruction, found by id or slug, for good. It is for the owner and superusers.
// Errors: as Allowed; errs.NotFound; errs.Forbidden.
func (s *Service) Delete(ctx context.Context, key string) error {
	if of := (entity.Subject{Kind: Kind, ID: key, Action: entity.ActionDelete}); s.feed.Wanted(ctx, of) {
		given := key // which is not moved to the heap without listeners
		return s.feed.Do(ctx, of, func(ctx context.Context) error { return s.Delete(ctx, given) })
	}
	a, err := s.Allowed(ctx)
	if err != nil {
		return err
	}
	if key, err = place(key); err != nil {
		return err
	}
	return s.store.Delete(ctx, a.Tenant, key, func(i Instruction) error { return owned(a, i) })
}

// All returns all instructions to every caller that may use AI, ordered as by List. It reads page
// after page; an error ends it.
func (s *Service) All(ctx context.Context) iter.Seq2[Instruction, error] {
	return paging.All(paging.Query{Limit: paging.MaxLimit}, func(q paging.Query) (paging.Page[Instruction], error) {
		return s.List(ctx, q)
	})
}

// Permissions returns what the caller may do with an instruction, found by id or slug: see
// PermissionsOf. Errors: as Get.
func (s *Service) Permissions(ctx context.Context, key string) (Permissions, error) {
	i, err := s.Get(ctx, key)
	if err != nil {
		return Permissions{}, err
	}
	a, err := actor.From(ctx)
	return PermissionsOf(a, i), err
}

// PermissionsOf returns what an actor may do with an instruction: its owner and superusers may do
// everything; every actor that may use AI can copy it, which means to create one with its text. A
// read-only token may do nothing.
func PermissionsOf(a actor.Actor, i Instruction) Permissions {
	own := a.Owns(i.OwnerID)
	return Permissions{Edit: own, Delete: own, Write: own, ChangeOwner: own, Copy: !a.ReadOnly}
}

// ListPermissions returns what an actor may do with the instructions of all owners: everybody who
// may use AI can write and copy, superusers can do everything.
func ListPermissions(a actor.Actor) Permissions {
	writes := !a.ReadOnly
	all := a.Superuser && writes
	return Permissions{Edit: all, Delete: all, ChangeOwner: all, Write: writes, Copy: writes}
}

func owned(a actor.Actor, i Instruction) error {
	if !a.Owns(i.OwnerID) {
		return errs.New(errs.Forbidden, "This needs the owner of the instruction or a superuser.")
	}
	return nil
}
