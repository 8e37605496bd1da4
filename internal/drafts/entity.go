package drafts

import (
	"context"
	"time"

	"github.com/tenantcontent/tenantcontent/internal/drafts/shares"
	"github.com/tenantcontent/tenantcontent/paging"
)

// Entity is an entity that is edited in drafts, or a draft of one: an app or an assistant.
type Entity interface {
	Version() string // changes with every change of it
	NaturalID() string
}

// Fields points to the fields that every Entity has.
type Fields struct {
	Tenant, ID, Name  *string
	Slug, Description **string
	OwnerID           *string // principal id
	Sealed            *string // secrets, encrypted; "" for none
	LibraryID         *string // UUID of the library with its files
	EditingID         **string
	Base              *string // of a draft: what the entity was like when the draft began
	Lock              *Lock   // of a draft
	Shared            *bool   // has a share above shares.None
	FolderID          **string
	DeletedAt         **time.Time // nil where deleted entities cannot be restored
	CreatedAt         *time.Time
	UpdatedAt         *time.Time
}

// deleted reports whether the entity is deleted and can be restored.
func (f Fields) deleted() bool { return f.DeletedAt != nil && *f.DeletedAt != nil }

// original returns the id of the entity, of a draft that of the entity that it is a draft of.
func (f Fields) original() string {
	if *f.EditingID != nil {
		return **f.EditingID
	}
	return *f.ID
}

// Lookup identifies an entity: by its id, by the id of its library, or by owner and slug. Drafts
// are not found by owner and slug.
type Lookup struct {
	ID, Library string
	Owner, Slug string
	Deleted     bool // deleted entities alone; otherwise only those that are not deleted
}

// Viewer selects the entities of a list: all, or those that one of the principals owns or has a
// share of above shares.None.
type Viewer struct {
	All        bool
	Principals []string // see shares.Principals
	Brief      bool     // the entities come without what may be long
}

// Store keeps the entities of one noun, their drafts and their shares. What may be long are the
// fields that the noun names.
type Store[T Entity] interface {
	// Get fails with errs.NotFound.
	Get(ctx context.Context, tenant string, at Lookup) (T, error)
	// Head is Get without what may be long.
	Head(ctx context.Context, tenant string, at Lookup) (T, error)
	// Page returns a page of the entities that v sees, without drafts and deleted ones, in the
	// order of q.Sort: name (the default, ignoring case), createdAt or updatedAt.
	Page(ctx context.Context, tenant string, v Viewer, q paging.Query) (paging.Page[T], error)
	// Draft returns the draft of an entity. It fails with errs.NotFound.
	Draft(ctx context.Context, tenant, id string) (T, error)
	// LockDraft is Draft that locks the row until the transaction in ctx ends. The caller has
	// locked the entity.
	LockDraft(ctx context.Context, tenant, id string) (T, error)
	// Drafts returns the drafts of those entities that v sees, ordered by name, then id, without
	// what may be long.
	Drafts(ctx context.Context, tenant string, v Viewer) ([]T, error)
	// Drafted returns which of some entities have a draft.
	Drafted(ctx context.Context, tenant string, ids []string) (map[string]bool, error)
	// Hold keeps users, teams and shares.Everyone until the transaction in ctx ends, and returns
	// those that exist: whoever renames or removes one waits. It comes before all that the
	// transaction locks, so that nobody waits in a circle.
	Hold(ctx context.Context, tenant string, principals []string) (map[string]bool, error)
	// Insert fails with errs.Conflict when the slug is taken or the entity that a draft is of has
	// one already, and with errs.Forbidden when the owner is no user or team.
	Insert(ctx context.Context, tenant string, e T) error
	// Update calls edit with the stored entity and writes the result except for Tenant, ID,
	// LibraryID, EditingID, Shared and CreatedAt; no other write to it comes between. An error from
	// edit is returned as is and writes nothing. The caller holds a new owner. It fails with
	// errs.NotFound, and with errs.Conflict when the slug is taken.
	Update(ctx context.Context, tenant string, at Lookup, edit func(*T) error) (T, error)
	// Lock is Get that locks the row until the transaction in ctx ends.
	Lock(ctx context.Context, tenant string, at Lookup) (T, error)
	// Remove removes entities, deleted ones too, with their drafts and the shares of both, and
	// returns what it removed, without what may be long. The caller has locked the entities, so
	// that none gets a draft meanwhile.
	Remove(ctx context.Context, tenant string, ids []string) ([]T, error)
	// SetShared sets Shared of some entities: it is true for one with a share above shares.None.
	SetShared(ctx context.Context, tenant string, ids []string) error

	// Owned counts what a principal owns, with drafts and deleted entities.
	Owned(ctx context.Context, tenant, owner string) (int, error)
	// Owners returns the ids of all who own something, drafts and deleted entities too, each once.
	Owners(ctx context.Context, tenant string) ([]string, error)
	// RenameUsers replaces the names of users, who own entities or hold locks; names maps old ones
	// to new ones, and no new one is an old one or owns anything.
	RenameUsers(ctx context.Context, tenant string, names map[string]string) error
	// OwnedDrafts returns the drafts that a principal owns, without what may be long. It locks the
	// principal's entities, in the order of their ids, and then the drafts, as whoever changes a
	// draft does.
	OwnedDrafts(ctx context.Context, tenant, owner string) ([]T, error)
	// Reassign moves all that from owns to to, locking rows in the order of their ids, and returns
	// what it moved, without what may be long. An entity whose slug to has already gets slug-2,
	// slug-3…
	Reassign(ctx context.Context, tenant, from, to string, at time.Time) ([]T, error)

	// IDs returns the ids of all entities but drafts and deleted ones, ordered.
	IDs(ctx context.Context, tenant string) ([]string, error)
	// Some returns the given entities that exist, drafts and deleted ones too, in any order; of a
	// paging.WithBatch perhaps the first alone.
	Some(ctx context.Context, tenant string, ids []string) ([]T, error)
	// Heads is like Some, without what may be long.
	Heads(ctx context.Context, tenant string, ids []string) ([]T, error)
	// LockSome is like Heads, and locks the rows.
	LockSome(ctx context.Context, tenant string, ids []string) ([]T, error)
	// Libraries returns which of some ids are those of libraries of entities, drafts and deleted
	// ones too.
	Libraries(ctx context.Context, tenant string, ids []string) (map[string]bool, error)
	// Exist returns which of some ids are those of entities, drafts and deleted ones too.
	Exist(ctx context.Context, tenant string, ids []string) (map[string]bool, error)
	// Slugs returns the entities, but drafts and deleted ones, that have one of some owners and
	// slugs, without what may be long.
	Slugs(ctx context.Context, tenant string, at []Lookup) ([]T, error)
	// PutAll adds entities with one statement, or overwrites those whose ids exist, all but
	// CreatedAt, EditingID, LibraryID, Lock, Base, Shared, DeletedAt and what the noun keeps. A
	// slug must be free, or belong to one that is overwritten, whose id is then among yield. It
	// fails with errs.Conflict.
	PutAll(ctx context.Context, tenant string, all []T, yield []string) error

	// Shares returns the shares of the entities.
	Shares() shares.Store

	// Count returns how many entities a tenant has, without drafts, deleted ones included.
	Count(ctx context.Context, tenant string) (int, error)

	// InTx runs fn in one transaction, which all calls with its context join.
	InTx(ctx context.Context, fn func(ctx context.Context) error) error
}
