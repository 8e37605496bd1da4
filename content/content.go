// Package content manages the built-in kinds of content that have no package of their own, such as
// reports, datasets and libraries with their files. They share one table.
//
//	made, err := app.Content.Create(ctx, content.Entity{Kind: content.Dataset, Name: "Sales"})
//	_, err = app.Content.Update(ctx, content.Dataset, made.ID, func(e *content.Entity) error {
//		e.Name = "Sales of 2026"
//		return nil
//	})
//	err = app.Content.Delete(ctx, content.Dataset, made.ID)
//
// httpapi, the root and hosts import it; internal/store/content stores its rows.
package content

import (
	"cmp"
	"context"
	"encoding/json"
	"iter"
	"time"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/content/datasets"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/clock"
	"github.com/tenantcontent/tenantcontent/internal/secure/guard"
	"github.com/tenantcontent/tenantcontent/paging"
)

// Library is the kind whose entities have files.
const Library entity.Kind = "library"

// Dataset is the kind of datasets, whose data have the rows that package datasets reads.
const Dataset entity.Kind = "dataset"

// KindInfo describes a built-in kind.
type KindInfo struct {
	Kind      entity.Kind
	Plural    string // as in /api/datasets
	Commented bool   // can be commented
	Limit     int    // rows of a page unless its query says otherwise
	// DraftsEnd reports whether reassignment removes the drafts of the source principal instead of
	// moving them.
	DraftsEnd bool
	// Runs reports whether something runs by itself because of an entity, or follows it, with the
	// rights of somebody: apps do not write it.
	Runs bool
}

// Kinds returns the ready kinds in their order, which is also the order of locks: what depends on
// something comes after it.
func Kinds() []KindInfo {
	return []KindInfo{
		{Kind: "datasource", Plural: "datasources", Commented: true, Limit: 100},
		{Kind: Dataset, Plural: "datasets", Commented: true, Limit: 100, DraftsEnd: true},
		{Kind: "query", Plural: "queries", Commented: true, Limit: 100, DraftsEnd: true},
		{Kind: "visual", Plural: "visuals", Limit: 100},
		{Kind: "report", Plural: "reports", Commented: true, Limit: 100, DraftsEnd: true},
		{Kind: "letterhead", Plural: "letterheads", Limit: 100},
		{Kind: "template", Plural: "templates", Commented: true, Limit: 100},
		{Kind: "job", Plural: "jobs", Commented: true, Limit: 100, Runs: true},
		{Kind: "tag", Plural: "tags", Limit: 100},
		{Kind: "code", Plural: "codes", Limit: 100},
		{Kind: "toolkit", Plural: "toolkits", Limit: 100, Runs: true},
		{Kind: "integration", Plural: "integrations", Limit: 100, Runs: true},
		{Kind: "file", Plural: "files", Limit: 100},
		{Kind: Library, Plural: "libraries", Commented: true, Limit: 100},
	}
}

// Entity is one entity of a ready kind.
type Entity struct {
	Tenant string
	Kind   entity.Kind
	ID     string // UUID, lower case; set by Create
	Name   string // 1 to 255 characters, without control characters
	// [A-Za-z0-9][A-Za-z0-9_-]{0,127}, never of UUID form; unique per kind and owner except for
	// drafts; nil for none
	Slug        *string
	Description *string         // at most 16,384 characters; nil for none
	OwnerID     string          // principal id
	Data        json.RawMessage // a JSON object of at most 1 MiB without spaces around its parts
	EditingID   *string         // a draft: id of the entity that it is a draft of
	System      bool            // belongs to the service itself; nobody edits or deletes it through a session
	Source      *string         // where it was imported from
	SourceID    *string
	CreatedAt   time.Time // UTC, whole microseconds
	UpdatedAt   time.Time // UTC, whole microseconds
}

// Version changes with every change of the row.
func (e Entity) Version() string {
	return guard.Version(
		e.ID, e.Name, e.Slug, e.Description, e.OwnerID, e.Data, e.EditingID, e.System, e.Source, e.SourceID,
		e.CreatedAt, e.UpdatedAt,
	)
}

// NaturalID returns "<ownerId>:<slug>", or the id of a draft or an entity without a slug.
func (e Entity) NaturalID() string {
	if e.Slug == nil || e.EditingID != nil {
		return e.ID
	}
	return e.OwnerID + ":" + *e.Slug
}

// Ref returns a reference to the entity.
func (e Entity) Ref() entity.Ref {
	return entity.Ref{
		Kind:    e.Kind,
		ID:      e.ID,
		Name:    e.Name,
		OwnerID: e.OwnerID,
		System:  e.System,
		Draft:   e.EditingID != nil,
	}
}

// Permissions is what the caller may do with an entity.
type Permissions struct {
	Edit, Delete, Write, Rename bool
}

// Lookup identifies an entity: by its id, or by owner and slug if ID is "".
type Lookup struct{ ID, Owner, Slug string }

// Store keeps the entities of all ready kinds. The tests beside its bun-backed store say what every
// implementation must do.
type Store interface {
	// Get fails with errs.NotFound. Drafts are found by id alone.
	Get(ctx context.Context, tenant string, kind entity.Kind, at Lookup) (Entity, error)
	// Page returns a page without drafts in the order of q.Sort: name (the default, ignoring case),
	// createdAt or updatedAt.
	Page(ctx context.Context, tenant string, kind entity.Kind, q paging.Query) (paging.Page[Entity], error)
	// Insert fails with errs.Conflict when the slug is taken, and with errs.Forbidden when the
	// owner is no user or team.
	Insert(ctx context.Context, tenant string, e Entity) error
	// Update calls edit with the stored entity and writes the result except for Tenant, Kind, ID
	// and CreatedAt; no other write to it comes between. An error from edit is returned as is and
	// writes nothing. It fails with errs.NotFound, and with errs.Conflict when the slug is taken.
	Update(ctx context.Context, tenant string, kind entity.Kind, at Lookup, edit func(*Entity) error) (Entity, error)
	// Delete calls may with the stored entity, and removes it. An error from may is returned as is
	// and removes nothing. It fails with errs.NotFound.
	Delete(ctx context.Context, tenant string, kind entity.Kind, at Lookup, may func(Entity) error) error

	// Owned counts what a principal owns of a kind, with drafts.
	Owned(ctx context.Context, tenant string, kind entity.Kind, owner string) (int, error)
	// Owners returns the ids of all who own something of a kind, drafts too, each once.
	Owners(ctx context.Context, tenant string, kind entity.Kind) ([]string, error)
	// RenameOwners replaces the owner ids of what principals own of a kind, drafts too; names maps
	// old ids to new ones, and no new one is an old one or owns anything.
	RenameOwners(ctx context.Context, tenant string, kind entity.Kind, names map[string]string) error
	// DeleteDrafts removes an owner's drafts of a kind and returns their ids.
	DeleteDrafts(ctx context.Context, tenant string, kind entity.Kind, owner string) ([]string, error)
	// Reassign moves all that from owns of a kind to to, locking rows in the order of their ids,
	// and returns what it moved, without Data. An entity whose slug to has already gets slug-2,
	// slug-3…
	Reassign(ctx context.Context, tenant string, kind entity.Kind, from, to string, at time.Time) ([]Entity, error)

	// IDs returns the ids of all entities of a kind but drafts and system entities, ordered.
	IDs(ctx context.Context, tenant string, kind entity.Kind) ([]string, error)
	// Some returns the given entities that exist, drafts too, in any order; of a paging.WithBatch
	// perhaps the first alone.
	Some(ctx context.Context, tenant string, kind entity.Kind, ids []string) ([]Entity, error)
	// Heads is like Some, without Data.
	Heads(ctx context.Context, tenant string, kind entity.Kind, ids []string) ([]Entity, error)
	// LockSome is like Heads, and locks the rows.
	LockSome(ctx context.Context, tenant string, kind entity.Kind, ids []string) ([]Entity, error)
	// Transferable returns the keys that name entities which are neither drafts nor system
	// entities.
	Transferable(ctx context.Context, tenant string, keys []entity.Key) (map[entity.Key]bool, error)
	// Slugs returns the entities of a kind, but drafts, that have one of some owners and slugs,
	// without Data.
	Slugs(ctx context.Context, tenant string, kind entity.Kind, at []Lookup) ([]Entity, error)
	// PutAll adds entities of one kind with one statement, or overwrites those whose ids exist, all
	// but CreatedAt, EditingID and System. A slug must be free, or belong to one that is
	// overwritten, whose id is then among yield. It fails with errs.Conflict.
	PutAll(ctx context.Context, tenant string, kind entity.Kind, all []Entity, yield []string) error
	// Remove deletes entities, and returns the number of those that existed.
	Remove(ctx context.Context, tenant string, kind entity.Kind, ids []string) (n int, err error)

	// InTx runs fn in one transaction, which all calls with its context join.
	InTx(ctx context.Context, fn func(ctx context.Context) error) error
	// Count returns how many entities a tenant has, drafts included.
	Count(ctx context.Context, tenant string) (int, error)
}

// Directory looks up the principals of a tenant.
type Directory interface {
	// Known returns the given principal ids that exist.
	Known(ctx context.Context, tenant string, ids []string) (map[string]bool, error)
}

// Service implements the rules for the ready kinds over a Store.
type Service struct {
	store         Store
	files         *Files
	directory     Directory
	canonicalName func(ctx context.Context, tenant, name string) (string, error)
	hostKinds     []entity.Kind
	registry      *entity.Registry
	feed          *entity.Changes
	reserved      func(ctx context.Context, tenant string, ids []string) (map[string]bool, error)
	clock         clock.Clock
}

// Options configure a Service. Store is required, Files for libraries and Directory for imports.
type Options struct {
	Store     Store
	Files     *Files
	Directory Directory
	// HostKinds are the kinds that the host keeps itself. One with the name of a built-in kind
	// replaces it.
	HostKinds []entity.Kind
	// Registry has all kinds, and the hooks that are called for deleted entities; nil for none.
	// References to entities of other packages in an entity's data are found by their Lookup.
	Registry *entity.Registry
	// Feed is where what is written is announced; nil: changes are not announced.
	Feed *entity.Changes
	// Reserved returns which of some ids are those of libraries that belong to something else, such
	// as an app: no import brings a library with one of them. nil: none are.
	Reserved func(ctx context.Context, tenant string, ids []string) (map[string]bool, error)
	// CanonicalName returns the exact name of the user who is meant by the owner in a natural id,
	// or the name as it is; nil: only exact names are found.
	CanonicalName func(ctx context.Context, tenant, name string) (string, error)
	Now           func() time.Time // default time.Now
	NewID         func() string    // default UUIDv7
}

// New returns a Service.
func New(o Options) *Service {
	return &Service{
		store: o.Store, files: o.Files, directory: o.Directory,
		canonicalName: o.CanonicalName, hostKinds: o.HostKinds, registry: o.Registry,
		feed: o.Feed, reserved: o.Reserved, clock: clock.New(o.Now, o.NewID),
	}
}

// List returns a page of a kind's entities, but drafts, to any session, sorted by name (the
// default), createdAt or updatedAt; q searches name, slug and description. Errors: errs.Invalid for
// a sort or cursor that does not fit.
func (s *Service) List(ctx context.Context, kind entity.Kind, q paging.Query) (paging.Page[Entity], error) {
	a, err := actor.From(ctx)
	if err != nil {
		return paging.Page[Entity]{}, err
	}
	return s.store.Page(ctx, a.Tenant, kind, q)
}

// All returns all entities of a kind, but drafts, to any session, ordered by name. It reads page
// after page; an error ends it.
func (s *Service) All(ctx context.Context, kind entity.Kind) iter.Seq2[Entity, error] {
	return paging.All(paging.Query{Limit: paging.MaxLimit}, func(q paging.Query) (paging.Page[Entity], error) {
		return s.List(ctx, kind, q)
	})
}

// Get returns one entity, found by id or natural id, to any session. Errors: errs.NotFound.
func (s *Service) Get(ctx context.Context, kind entity.Kind, id string) (Entity, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return Entity{}, err
	}
	return s.find(ctx, a.Tenant, kind, id)
}

// Seen is an entity as those see it that refer to it.
type Seen struct {
	Ref entity.Ref
	// The rest is empty for a kind that the host keeps itself.

	Description string
	Data        json.RawMessage // a JSON object
	Version     string          // changes with the entity
}

// Seen returns an entity that the caller may see, found by id or natural id, also of a kind that
// the host keeps itself. Errors: errs.NotFound, and those of entity.Type.Visible.
func (s *Service) Seen(ctx context.Context, kind entity.Kind, id string) (Seen, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return Seen{}, err
	}
	if t, elsewhere := s.other(kind); elsewhere {
		if t.Visible != nil {
			if err := t.Visible(ctx, id); err != nil {
				return Seen{}, err
			}
		}
		ref, err := s.registry.Lookup(ctx, a.Tenant, kind, id)
		return Seen{Ref: ref}, err
	}
	e, err := s.find(ctx, a.Tenant, kind, id)
	if err != nil {
		return Seen{}, err
	}
	seen := Seen{Ref: e.Ref(), Data: e.Data, Version: e.Version()}
	if e.Description != nil {
		seen.Description = *e.Description
	}
	return seen, nil
}

// Dataset implements datasets.Content.
func (s *Service) Dataset(ctx context.Context, id string) (datasets.Stored, error) {
	seen, err := s.Seen(ctx, Dataset, id)
	return datasets.Stored{Ref: seen.Ref, Data: seen.Data, Version: seen.Version}, err
}

func (s *Service) find(ctx context.Context, tenant string, kind entity.Kind, id string) (e Entity, err error) {
	err = s.at(ctx, tenant, kind, id, func(at Lookup) error {
		e, err = s.store.Get(ctx, tenant, kind, at)
		return err
	})
	return e, err
}

// at calls do with the place that an id or natural id names. If nothing is there, it calls it again
// with the exact name of the owner whom a natural id spells differently.
func (s *Service) at(ctx context.Context, tenant string, kind entity.Kind, id string, do func(Lookup) error) error {
	at, err := place(kind, id)
	if err != nil {
		return err
	}
	err = do(at)
	if errs.CodeOf(err) != errs.NotFound || at.Owner == "" || s.canonicalName == nil {
		return err
	}
	owner, failed := s.canonicalName(ctx, tenant, at.Owner)
	if failed != nil || owner == at.Owner {
		return cmp.Or(failed, err)
	}
	at.Owner = owner
	return do(at)
}

// Create adds an entity of e.Kind, which its caller owns. It needs the role Designer. Tenant, ID,
// OwnerID and times are ignored; EditingID and System are taken: no route sets them, so they are
// for library code.
// Errors: errs.Forbidden; errs.Invalid naming the field; errs.Conflict for a taken slug.
func (s *Service) Create(ctx context.Context, e Entity) (Entity, error) {
	if of := (entity.Subject{Kind: e.Kind, ID: "", Action: entity.ActionCreate}); s.feed.Wanted(ctx, of) {
		given := e // e is on the stack without listeners
		return entity.Record(ctx, s.feed, of, func(e Entity) string {
			return e.ID
		}, func(ctx context.Context) (Entity, error) { return s.Create(ctx, given) })
	}
	a, err := actor.Allowed(ctx, actor.EntityWrite)
	if err != nil {
		return Entity{}, err
	}
	if err := e.accept(); err != nil {
		return Entity{}, err
	}
	if err := e.checkRows(nil); err != nil {
		return Entity{}, err
	}
	e.Tenant, e.ID, e.OwnerID, e.CreatedAt = a.Tenant, s.clock.NewID(), a.User, s.clock.Stamp()
	e.UpdatedAt = e.CreatedAt
	if err := s.store.Insert(ctx, a.Tenant, e); err != nil {
		return Entity{}, err
	}
	return e, nil
}

// Update changes an entity, found by id or natural id. It is for its owner, the Designers of an
// owning team and superusers; a system entity is nobody's. Kind, OwnerID, EditingID, System and
// what the service keeps are put back.
// Errors: errs.NotFound; errs.Forbidden; errs.Invalid naming the field; errs.Conflict for a taken
// slug; an error from edit as it is.
func (s *Service) Update(ctx context.Context, kind entity.Kind, id string, edit func(*Entity) error) (Entity, error) {
	if of := updated(kind, id); s.feed.Wanted(ctx, of) {
		return entity.Record(ctx, s.feed, of, func(e Entity) string {
			return e.ID
		}, func(ctx context.Context) (Entity, error) { return s.Update(ctx, kind, id, edit) })
	}
	a, err := actor.From(ctx)
	if err != nil {
		return Entity{}, err
	}
	return s.update(ctx, a.Tenant, kind, id, func(e *Entity) error {
		was := *e
		if err := may(a, was); err != nil {
			return err
		}
		if s.feed != nil {
			s.feed.Was(ctx, was)
		}
		if err := edit(e); err != nil {
			return err
		}
		e.Tenant, e.Kind, e.ID, e.OwnerID, e.CreatedAt = was.Tenant, was.Kind, was.ID, was.OwnerID, was.CreatedAt
		e.EditingID, e.System, e.UpdatedAt = was.EditingID, was.System, s.clock.Stamp()
		if err := e.accept(); err != nil {
			return err
		}
		return e.checkRows(was.Data)
	})
}

// updated is the Subject of Update, which reads what it changes.
func updated(kind entity.Kind, id string) entity.Subject {
	return entity.Subject{Kind: kind, ID: id, Action: entity.ActionUpdate, TellsBefore: true}
}

func (s *Service) update(
	ctx context.Context, tenant string, kind entity.Kind, id string, edit func(*Entity) error,
) (e Entity, err error) {
	err = s.at(ctx, tenant, kind, id, func(at Lookup) error {
		e, err = s.store.Update(ctx, tenant, kind, at, edit)
		return err
	})
	return e, err
}

// Delete removes an entity, found by id or natural id, and a library's files with it. It is for
// those who may change it.
// Errors: errs.NotFound; errs.Forbidden.
func (s *Service) Delete(ctx context.Context, kind entity.Kind, id string) error {
	if of := (entity.Subject{Kind: kind, ID: id, Action: entity.ActionDelete}); s.feed.Wanted(ctx, of) {
		return s.feed.Do(ctx, of, func(ctx context.Context) error { return s.Delete(ctx, kind, id) })
	}
	a, err := actor.From(ctx)
	if err != nil {
		return err
	}
	return s.store.InTx(ctx, func(ctx context.Context) error {
		gone := entity.Key{Kind: kind}
		err := s.at(ctx, a.Tenant, kind, id, func(at Lookup) error {
			return s.store.Delete(ctx, a.Tenant, kind, at, func(e Entity) error {
				gone.ID = e.ID
				return may(a, e)
			})
		})
		if err != nil {
			return err
		}
		if err := s.forgetAll(ctx, a.Tenant, gone); err != nil {
			return err
		}
		return s.removeFiles(ctx, a.Tenant, kind, []string{gone.ID})
	})
}

// forgetAll removes what hangs on entities that are deleted.
func (s *Service) forgetAll(ctx context.Context, tenant string, gone ...entity.Key) error {
	if s.registry == nil {
		return nil
	}
	return s.registry.Deleted(ctx, tenant, gone...)
}

// Permissions returns what the caller may do with an entity, found by id or natural id. Errors:
// errs.NotFound.
func (s *Service) Permissions(ctx context.Context, kind entity.Kind, id string) (Permissions, error) {
	e, err := s.Get(ctx, kind, id)
	if err != nil {
		return Permissions{}, err
	}
	a, err := actor.From(ctx)
	return PermissionsOf(a, e), err
}

// PermissionsOf returns what an actor may do with an entity.
func PermissionsOf(a actor.Actor, e Entity) Permissions {
	all := may(a, e) == nil
	return Permissions{Edit: all, Delete: all, Write: all, Rename: all}
}

// may refuses who may not change an entity.
func may(a actor.Actor, e Entity) error {
	switch {
	case e.System:
		return errs.New(errs.Forbidden, "This %s belongs to the system.", e.Kind)
	case !a.Owns(e.OwnerID):
		return errs.New(
			errs.Forbidden, "This needs the owner of the %s, a designer of the owning team or a superuser.",
			e.Kind,
		)
	}
	return nil
}
