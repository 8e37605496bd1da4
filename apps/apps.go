// Package apps manages apps: interactive applications made of files, which are changed in drafts, shared, and shown to their
// viewers.
//
// httpapi, the root and hosts import it; apps/bunstore stores its rows and libraries the files.
package apps

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/tenantcontent/tenantcontent/drafts"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/cache"
	"github.com/tenantcontent/tenantcontent/internal/guard"
	"github.com/tenantcontent/tenantcontent/internal/limiter"
	"github.com/tenantcontent/tenantcontent/internal/tally"
	"github.com/tenantcontent/tenantcontent/libraries"
	"github.com/tenantcontent/tenantcontent/paging"
	"github.com/tenantcontent/tenantcontent/shares"
)

// Kind is the kind of apps.
const Kind entity.Kind = "app"

// License is what a tenant needs for full apps.
const License = "apps"

// Tier is how much an app can do.
type Tier string

// The tiers.
const (
	Report Tier = "report" // every tenant may have them
	Full   Tier = "app"    // needs License
)

// App is one app, or the draft of one.
type App struct {
	Tenant        string
	ID            string          // UUID, lower case; set by Create
	Type          Tier            // an app can become Full and not go back
	Name          string          // 1 to 255 characters, without control characters
	Slug          *string         // [A-Za-z0-9][A-Za-z0-9_-]{0,127}, never of UUID form; unique per owner except for drafts and deleted apps; nil for none
	Description   *string         // at most 16,384 characters; nil for none
	OwnerID       string          // principal id
	Defn          json.RawMessage // a JSON object of at most 1 MiB; the values of its member env are masks, see Sealed
	Sealed        string          // the values of Defn's env, encrypted; "" for none. No route shows it
	Settings      json.RawMessage // a JSON object of at most 64 KiB
	Origin        *string         // "deployed" for an app that came by a deploy; nil for none
	LibraryID     string          // UUID of the library with the app's files
	EditingID     *string         // a draft: the id of the app that it is a draft of
	Base          string          // a draft: what the app was like when the draft began, see Service.Commit
	Lock          drafts.Lock     // a draft: who edits it
	Shared        bool            // has a share above shares.None
	IsManaged     bool            // came from another tenant and cannot be edited here
	FolderID      *string         // UUID; stored and returned
	Datasets      []Dataset       // that the app uses, by alias; ordered by alias
	Tags          []string        // UUIDs of tags, ordered
	Source        *string         // where it was imported from
	SourceID      *string
	DefnUpdatedAt *time.Time // last change of Defn; nil: none since it was created
	DeployedAt    *time.Time
	DeletedAt     *time.Time // of a deleted app, which can be restored; nil for the others
	CreatedAt     time.Time  // UTC, whole microseconds
	UpdatedAt     time.Time  // UTC, whole microseconds; a change of the app's files does not touch it
}

// Version changes with every change of the row. What a draft has from its app is no part of it.
func (a App) Version() string {
	if a.EditingID != nil {
		a.inherit(App{})
	}
	return guard.Version(a.ID, string(a.Type), a.Name, a.Slug, a.Description, a.OwnerID, a.Defn, a.Sealed, a.Settings, a.Origin, a.LibraryID,
		a.EditingID, a.Lock.Session, a.Lock.HeartbeatAt, a.Lock.LockedBy, a.Shared, a.IsManaged, a.FolderID, versionOf(a.Datasets), a.Tags, a.Source, a.SourceID,
		a.DefnUpdatedAt, a.DeployedAt, a.DeletedAt, a.CreatedAt, a.UpdatedAt)
}

// inherit sets what a draft has from the app that it is a draft of.
func (a *App) inherit(of App) {
	a.OwnerID, a.Type, a.IsManaged, a.Shared, a.Tags = of.OwnerID, of.Type, of.IsManaged, of.Shared, of.Tags
}

// NaturalID returns "<ownerId>:<slug>", or the id of a draft or an app without a slug.
func (a App) NaturalID() string {
	if a.Slug == nil || a.EditingID != nil {
		return a.ID
	}
	return a.OwnerID + ":" + *a.Slug
}

// Ref returns a reference to the app.
func (a App) Ref() entity.Ref {
	return entity.Ref{Kind: Kind, ID: a.ID, Name: a.Name, OwnerID: a.OwnerID, Draft: a.EditingID != nil}
}

// Dataset binds a dataset to the name by which the app knows it.
type Dataset struct {
	Alias     string `json:"alias"`     // [A-Za-z_][A-Za-z0-9_]{0,127}
	DatasetID string `json:"datasetId"` // UUID
	Label     string `json:"label"`     // at most 255 characters; may be empty
}

// Version changes with every change of the binding.
func (d Dataset) Version() string { return guard.Version(d.Alias, d.DatasetID, d.Label) }

func versionOf(all []Dataset) []string {
	texts := make([]string, 0, 3*len(all))
	for _, d := range all {
		texts = append(texts, d.Alias, d.DatasetID, d.Label)
	}
	return texts
}

// Lookup identifies an app: by its id, by the id of its library, or by owner and slug. Drafts are not found by owner and slug.
type Lookup struct {
	ID, Library string
	Owner, Slug string
	Deleted     bool // deleted apps alone; otherwise only those that are not deleted
}

// Viewer selects the apps of a list: all, or those that one of the principals owns or has a share of above shares.None.
type Viewer struct {
	All        bool
	Principals []string // see shares.Principals
	NoDefn     bool     // the apps come without Defn
}

// Store keeps apps, and their shares. Implementations must pass appstest.TestStore.
type Store interface {
	// Get fails with errs.NotFound.
	Get(ctx context.Context, tenant string, at Lookup) (App, error)
	// Head is Get without Defn, which may be long.
	Head(ctx context.Context, tenant string, at Lookup) (App, error)
	// Page returns a page of the apps that v sees, without drafts and deleted apps, in the order of q.Sort: name (the default,
	// ignoring case), createdAt or updatedAt.
	Page(ctx context.Context, tenant string, v Viewer, q paging.Query) (paging.Page[App], error)
	// Draft returns the draft of an app. It fails with errs.NotFound.
	Draft(ctx context.Context, tenant, id string) (App, error)
	// LockDraft is Draft that locks the row until the transaction in ctx ends. The caller has locked the app.
	LockDraft(ctx context.Context, tenant, id string) (App, error)
	// Drafts returns the drafts of those apps that v sees, ordered by name, then id, without Defn.
	Drafts(ctx context.Context, tenant string, v Viewer) ([]App, error)
	// Drafted returns which of some apps have a draft.
	Drafted(ctx context.Context, tenant string, ids []string) (map[string]bool, error)
	// Hold keeps users, teams and shares.Everyone until the transaction in ctx ends, and returns those that exist: whoever renames or
	// removes one waits. It comes before all that the transaction locks, so that nobody waits in a circle.
	Hold(ctx context.Context, tenant string, principals []string) (map[string]bool, error)
	// Insert fails with errs.Conflict when the slug is taken or the app that a draft is of has one already, and with errs.Forbidden
	// when the owner is no user or team.
	Insert(ctx context.Context, tenant string, a App) error
	// Update calls edit with the stored app and writes the result except for Tenant, ID, LibraryID, EditingID, Shared and CreatedAt;
	// no other write to it comes between. An error from edit is returned as is and writes nothing. The caller holds a new owner. It
	// fails with errs.NotFound, and with errs.Conflict when the slug is taken.
	Update(ctx context.Context, tenant string, at Lookup, edit func(*App) error) (App, error)
	// Lock is Get that locks the row until the transaction in ctx ends.
	Lock(ctx context.Context, tenant string, at Lookup) (App, error)
	// Remove removes apps, deleted ones too, with their drafts and the shares of both, and returns what it removed, without Defn. The
	// caller has locked the apps, so that none gets a draft meanwhile.
	Remove(ctx context.Context, tenant string, ids []string) ([]App, error)
	// SetShared sets Shared of some apps: it is true for an app with a share above shares.None.
	SetShared(ctx context.Context, tenant string, ids []string) error

	// Owned counts what a principal owns, with drafts and deleted apps.
	Owned(ctx context.Context, tenant, owner string) (int, error)
	// Owners returns the ids of all who own something, drafts and deleted apps too, each once.
	Owners(ctx context.Context, tenant string) ([]string, error)
	// RenameUsers replaces the names of users, who own apps or hold locks; names maps old ones to new ones, and no new one is an
	// old one or owns anything.
	RenameUsers(ctx context.Context, tenant string, names map[string]string) error
	// OwnedDrafts returns the drafts that a principal owns, without Defn. It locks the principal's apps, in the order of their ids, and
	// then the drafts, as whoever changes a draft does.
	OwnedDrafts(ctx context.Context, tenant, owner string) ([]App, error)
	// Reassign moves all that from owns to to, locking rows in the order of their ids, and returns what it moved, without Defn.
	// An app whose slug to has already gets slug-2, slug-3…
	Reassign(ctx context.Context, tenant, from, to string, at time.Time) ([]App, error)

	// IDs returns the ids of all apps but drafts and deleted ones, ordered.
	IDs(ctx context.Context, tenant string) ([]string, error)
	// Some returns the given apps that exist, drafts and deleted ones too, in any order; of a paging.WithBatch perhaps the first
	// alone.
	Some(ctx context.Context, tenant string, ids []string) ([]App, error)
	// Heads is like Some, without Defn.
	Heads(ctx context.Context, tenant string, ids []string) ([]App, error)
	// LockSome is like Some, without Defn, and locks the rows.
	LockSome(ctx context.Context, tenant string, ids []string) ([]App, error)
	// Using returns the ids of the apps, drafts and deleted ones too, that have one of some tags or use one of some datasets, ordered.
	Using(ctx context.Context, tenant string, tags, datasets []string) ([]string, error)
	// Libraries returns which of some ids are those of libraries of apps, drafts and deleted apps.
	Libraries(ctx context.Context, tenant string, ids []string) (map[string]bool, error)
	// Slugs returns the apps, but drafts and deleted ones, that have one of some owners and slugs, without Defn.
	Slugs(ctx context.Context, tenant string, at []Lookup) ([]App, error)
	// PutAll adds apps with one statement, or overwrites those whose ids exist, all but CreatedAt, EditingID, LibraryID, Lock, Base,
	// Shared and DeletedAt. A slug must be free, or belong to one that is overwritten, whose id is then among yield. It fails with
	// errs.Conflict.
	PutAll(ctx context.Context, tenant string, all []App, yield []string) error

	// Favorites returns which of some apps are favorites of a user.
	Favorites(ctx context.Context, tenant, username string, ids []string) (map[string]bool, error)
	// SetFavorite adds an app, or the app of a draft, to the favorites of a user, or removes it. It fails with errs.NotFound
	// when there is no such app, and with errs.Forbidden when there is no such user.
	SetFavorite(ctx context.Context, tenant, username, id string, favorite bool, at time.Time) error
	// AddViews adds to the views of apps. Those of users and apps that no longer exist are left out.
	AddViews(ctx context.Context, tenant string, views map[View]Views) error
	// Days returns how often an app was viewed on each day since one, without days of no views, ordered.
	Days(ctx context.Context, tenant, id, since string) ([]Day, error)
	// Recent returns the apps that a user viewed last and v sees, n at most, without drafts and deleted ones, newest view first; they come without Defn.
	Recent(ctx context.Context, tenant, username string, v Viewer, n int) ([]App, error)

	// UsesOf counts what all users have of some apps. Those of the apps' drafts are none.
	UsesOf(ctx context.Context, tenant string, ids []string) (Uses, error)
	// UsesBy counts what some users have of apps.
	UsesBy(ctx context.Context, tenant string, usernames []string) (Uses, error)

	// Shares returns the shares of apps.
	Shares() shares.Store

	// Count returns how many apps a tenant has, without drafts, deleted ones included.
	Count(ctx context.Context, tenant string) (int, error)

	// InTx runs fn in one transaction, which all calls with its context join.
	InTx(ctx context.Context, fn func(ctx context.Context) error) error
}

// Directory looks up the principals of a tenant.
type Directory interface {
	// Known returns the given principal ids that exist.
	Known(ctx context.Context, tenant string, ids []string) (map[string]bool, error)
}

// Sealer encrypts secrets so that a value opens only in the place it was sealed for. *keyring.Ring implements it.
type Sealer interface {
	Seal(tenant, table, column, row string, plain []byte) (string, error)
	Open(tenant, table, column, row, sealed string) ([]byte, error)
}

// Service implements the rules for apps over a Store.
type Service struct {
	store Store
	files *libraries.Files
	o     Options
	views *tally.Tally[View, Views]

	manifests *cache.Sized[manifestRead] // by name and content
	reading   *limiter.Limiter           // of manifests, by tenant
	opened    *cache.Cache[opened]       // by app and viewer
}

// Options configure a Service. Store, Files, Directory, Keys and Licensed are required.
type Options struct {
	Store     Store
	Files     *libraries.Files
	MaxFile   int64 // bytes of a file that PutFile writes; default 100 MiB
	Directory Directory
	Keys      Sealer
	// Licensed reports whether a tenant has a license.
	Licensed func(ctx context.Context, tenant, license string) (bool, error)
	// Registry has the kinds of tags and datasets, and the hooks that are called for purged apps; nil for none.
	Registry *entity.Registry
	// CanonicalName returns the exact name of the user who is meant by the owner in a natural id, or the name as it is; nil: only
	// exact names are found.
	CanonicalName func(ctx context.Context, tenant, name string) (string, error)
	Now           func() time.Time // default time.Now
	NewID         func() string    // default UUIDv7
	// Changes returns how often this process has changed a tenant's apps and their shares: the number grows when the Store commits.
	// View and ViewFile look an app up once a second while it stays the same. Default nil: each time.
	Changes func(tenant string) uint64
}

// New returns a Service.
func New(o Options) *Service {
	if o.MaxFile == 0 {
		o.MaxFile = 100 << 20
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NewID == nil {
		o.NewID = func() string { return uuid.Must(uuid.NewV7()).String() }
	}
	return &Service{store: o.Store, files: o.Files, o: o, opened: cache.New[opened](o.Changes),
		manifests: cache.NewSized[manifestRead](maxManifests), reading: limiter.New(limiter.Options{Capacity: maxReading, PerKey: 1, Timeout: readingWait}), views: tally.New(Views.plus, func(ctx context.Context, tenant string, counted map[View]Views) error {
			return o.Store.AddViews(ctx, tenant, counted)
		})}
}

// stamp returns the time of a write, in the precision that every database can store.
func (s *Service) stamp() time.Time { return s.o.Now().UTC().Truncate(time.Microsecond) }
