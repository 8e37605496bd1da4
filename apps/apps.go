// Package apps manages apps: interactive applications made of files, which are changed in drafts,
// shared, and shown to their viewers.
//
//	made, err := app.Apps.Create(ctx, apps.App{Name: "Orders"})
//	_, err = app.Apps.PutFile(ctx, made.ID, "index.html", "text/html", page)
//	draft, err := app.Apps.Edit(ctx, made.ID, false)
//	_, err = app.Apps.PutFile(ctx, draft.ID, "index.html", "text/html", nextPage)
//	_, err = app.Apps.Commit(ctx, draft.ID, apps.PublishOptions{})
//
// httpapi, the root and hosts import it; internal/store/apps stores its rows and libraries the
// files.
package apps

import (
	"context"
	"encoding/json"
	"time"

	"github.com/tenantcontent/tenantcontent/ai"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/drafts"
	"github.com/tenantcontent/tenantcontent/internal/drafts/shares"
	"github.com/tenantcontent/tenantcontent/internal/limits/cache"
	"github.com/tenantcontent/tenantcontent/internal/limits/limiter"
	"github.com/tenantcontent/tenantcontent/internal/limits/tally"
	"github.com/tenantcontent/tenantcontent/internal/secure/guard"
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
	Tenant string
	ID     string // UUID, lower case; set by Create
	Type   Tier   // an app can become Full and not go back
	Name   string // 1 to 255 characters, without control characters
	// [A-Za-z0-9][A-Za-z0-9_-]{0,127}, never of UUID form; unique per owner except for drafts and
	// deleted apps; nil means no slug
	Slug        *string
	Description *string         // at most 16,384 characters; nil means no description
	OwnerID     string          // principal id
	Defn        json.RawMessage // a JSON object of at most 1 MiB; the values of its member env are masks, see Sealed
	Sealed      string          // the values of Defn's env, encrypted, or ""; never sent to clients
	// signs the tokens of the app's webhooks, encrypted, or ""; never sent to clients
	WebhookSecret string
	Settings      json.RawMessage // a JSON object of at most 64 KiB
	Origin        *string         // "deployed" for an app that came by a deploy; nil for none
	LibraryID     string          // UUID of the library with the app's files
	EditingID     *string         // a draft: the id of the app that it is a draft of
	Base          string          // a draft: what the app was like when the draft began, see Service.Commit
	Lock          Lock            // a draft: who edits it
	Shared        bool            // has a share above shares.None
	IsManaged     bool            // came from another tenant and cannot be edited here
	FolderID      *string         // UUID; stored and returned
	Datasets      []Dataset       // that the app uses, by alias; ordered by alias
	Tags          []string        // UUIDs of tags, ordered
	Source        *string         // where it was imported from
	SourceID      *string
	DefnUpdatedAt *time.Time // last change of Defn; nil: none since it was created
	DeployedAt    *time.Time
	AwaitsOwner   bool       // somebody else has passed it on to its owner, who has not deployed it since: see RunsAs
	DeletedAt     *time.Time // of a deleted app, which can be restored; nil for the others
	CreatedAt     time.Time  // UTC, whole microseconds
	UpdatedAt     time.Time  // UTC, whole microseconds; a change of the app's files does not touch it
}

// Version changes with every change of the row. What a draft has from its app is no part of it.
func (a App) Version() string {
	if a.EditingID != nil {
		a.inherit(App{})
	}
	return guard.Version(a.ID, string(a.Type), a.Name, a.Slug, a.Description, a.OwnerID, a.Defn, a.Sealed,
		a.WebhookSecret, a.Settings, a.Origin, a.LibraryID,
		a.EditingID, a.Lock.Session, a.Lock.HeartbeatAt, a.Lock.LockedBy, a.Shared,
		a.IsManaged, a.FolderID, versionOf(a.Datasets), a.Tags, a.Source, a.SourceID,
		a.DefnUpdatedAt, a.DeployedAt, a.AwaitsOwner, a.DeletedAt, a.CreatedAt, a.UpdatedAt)
}

// inherit sets what a draft has from the app that it is a draft of.
func (a *App) inherit(of App) {
	a.OwnerID, a.AwaitsOwner, a.Type, a.IsManaged, a.Shared, a.Tags =
		of.OwnerID, of.AwaitsOwner, of.Type, of.IsManaged, of.Shared, of.Tags
}

func (a *App) fields() DraftFields {
	return DraftFields{
		Tenant: &a.Tenant, ID: &a.ID, Name: &a.Name,
		Slug: &a.Slug, Description: &a.Description, OwnerID: &a.OwnerID, Sealed: &a.Sealed,
		LibraryID: &a.LibraryID, EditingID: &a.EditingID, Base: &a.Base,
		Lock: &a.Lock, Shared: &a.Shared, FolderID: &a.FolderID,
		DeletedAt: &a.DeletedAt, CreatedAt: &a.CreatedAt, UpdatedAt: &a.UpdatedAt,
	}
}

// Fields returns what drafts need of an app.
func Fields(a *App) DraftFields { return a.fields() }

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

// Lookup identifies an app.
type Lookup = drafts.Lookup

// Viewer selects the apps of a list.
type Viewer = drafts.Viewer

// Store keeps apps, and their shares. Only the Defn of an app may be long. The tests beside its
// bun-backed store define what every implementation must do.
type Store interface {
	DraftStore

	// Using returns the ids of the apps, drafts and deleted ones too, that have one of some tags or
	// use one of some datasets, ordered.
	Using(ctx context.Context, tenant string, tags, datasets []string) ([]string, error)

	// AwaitOwner sets AwaitsOwner of some apps.
	AwaitOwner(ctx context.Context, tenant string, ids []string) error

	// Favorites returns which of some apps are favorites of a user.
	Favorites(ctx context.Context, tenant, username string, ids []string) (map[string]bool, error)
	// SetFavorite adds an app, or the app of a draft, to the favorites of a user, or removes it. It
	// fails with errs.NotFound when there is no such app, and with errs.Forbidden when there is no
	// such user.
	SetFavorite(ctx context.Context, tenant, username, id string, favorite bool, at time.Time) error
	// AddViews adds to the views of apps. Those of users and apps that no longer exist are left
	// out.
	AddViews(ctx context.Context, tenant string, views map[View]Views) error
	// Days returns how often an app was viewed on each day since one, without days of no views,
	// ordered.
	Days(ctx context.Context, tenant, id, since string) ([]Day, error)
	// Recent returns the apps that a user viewed last and v sees, n at most, without drafts and
	// deleted ones, newest view first; they come without Defn.
	Recent(ctx context.Context, tenant, username string, v Viewer, n int) ([]App, error)

	// UsesOf counts what all users have of some apps. Those of the apps' drafts are none.
	UsesOf(ctx context.Context, tenant string, ids []string) (Uses, error)
	// UsesBy counts what some users have of apps.
	UsesBy(ctx context.Context, tenant string, usernames []string) (Uses, error)
	// RenameAccounts makes what users have of apps follow those who are renamed; names maps old
	// names to new ones, and no new one is an old one.
	RenameAccounts(ctx context.Context, tenant string, names map[string]string) error
	// RemoveAccount removes some n rows at most of what a deleted user had of apps in one
	// transaction, and reports whether there may be more. account is the user's: see
	// entity.Hooks.RemoveRest. Another user of the name has none of it.
	RemoveAccount(ctx context.Context, tenant, account string, n int) (more bool, err error)
}

// Directory looks up the principals of a tenant.
type Directory = drafts.Directory

// Sealer encrypts secrets so that a value opens only in the place it was sealed for. *keyring.Ring
// implements it.
type Sealer = drafts.Sealer

// Service implements the rules for apps over a Store.
type Service struct {
	common    drafts.Service[App]
	reader    drafts.Reader[App, Shown]
	rules     *drafts.Rules[App]
	presenter *drafts.Presenter[App, Shown]
	env       drafts.Secrets
	store     Store
	files     *Files
	deployed  *Files // see Options.Deployed
	o         Options
	views     *tally.Tally[View, Views]

	manifests *cache.Sized[manifestRead] // by name and content
	reading   *limiter.Limiter           // of manifests, by tenant
	opened    *cache.Cache[*opened]      // by app and viewer
	running   *cache.Cache[Running]      // by app
}

// Options configure a Service. Store, Files, Deployed, Directory, Keys and Licensed are required.
type Options struct {
	Store Store
	Files *Files
	// Deployed has the manifests of the apps' last deploys, in libraries of another kind than Files
	// that have the ids of the apps'.
	Deployed  *Files
	Manifests ManifestReader
	MaxFile   int64 // bytes of a file that PutFile writes; default 100 MiB
	Directory Directory
	Keys      Sealer
	// Licensed reports whether a tenant has a license.
	Licensed func(ctx context.Context, tenant, license string) (bool, error)
	// AI runs language models, and CheckAI returns errs.Invalid when AI is off in the caller's
	// tenant, and errs.Forbidden for a caller without the ai credential. Default: language models
	// are off.
	AI      ai.Provider
	CheckAI func(ctx context.Context) error
	// Handlers and Workspaces do the work of a deploy; nil: nothing is done for handlers, or
	// migrations.
	Handlers   Handlers
	Agents     Agents // installs agents; nil: there are none
	Workspaces Workspaces
	// Registry has the kinds of tags and datasets, and the hooks that are called for purged apps;
	// nil means no kinds and no hooks.
	Registry *entity.Registry
	// CanonicalName returns the exact name of the user who is meant by the owner in a natural id,
	// or the name as it is; nil: only exact names are found.
	CanonicalName func(ctx context.Context, tenant, name string) (string, error)
	Now           func() time.Time // default time.Now
	NewID         func() string    // default UUIDv7
	// Changes returns how often this process has changed a tenant's apps and their shares: the
	// number grows when the Store commits. View and ViewFile look an app up once a second while it
	// stays the same. Default nil: each time.
	Changes func(tenant string) uint64
	Feed    *entity.Changes // nil: changes are not announced
}

// KindFavorite is the kind of favorites in changes. The id of one is that of the app, a slash and
// the username.
const KindFavorite entity.Kind = "favorite"

// New returns a Service.
func New(o Options) *Service {
	if o.MaxFile == 0 {
		o.MaxFile = 100 << 20
	}
	s := &Service{store: o.Store, files: o.Files, deployed: o.Deployed,
		o: o, opened: cache.New[*opened](o.Changes), running: cache.New[Running](o.Changes),
		manifests: cache.NewSized[manifestRead](maxManifests),
		reading:   limiter.New(limiter.Options{Capacity: maxReading, PerKey: 1, Timeout: readingWait}),
		views: tally.New(Views.plus, func(ctx context.Context, tenant string, counted map[View]Views) error {
			return o.Store.AddViews(ctx, tenant, counted)
		})}
	s.env = drafts.Secrets{
		Keys:   o.Keys,
		Table:  sealedTable,
		Column: sealedColumn,
		Field:  "defn.env",
		Things: "variables",
	}
	s.rules = drafts.NewRules(drafts.Options[App]{
		Noun: s.noun(), Store: o.Store, Files: o.Files,
		MaxFile: o.MaxFile, Directory: o.Directory, Registry: o.Registry, Feed: o.Feed, CanonicalName: o.CanonicalName,
		Now: o.Now, NewID: o.NewID,
	})
	s.presenter = drafts.NewPresenter(s.rules, s.show)
	s.common, s.reader = s.rules.Service(), s.presenter.Reader()
	return s
}

// noun returns what the rules of apps have of their own.
func (s *Service) noun() drafts.Noun[App] {
	return drafts.Noun[App]{
		Kind: Kind, Article: "an app", Fields: (*App).fields, Ref: App.Ref,
		Visible: Visible, Inside: inside, Outside: errInside,
		Write: toWrite.check, Edit: toEdit.check, Share: toShare.check, ChangeOwner: toChangeOwner.check,
		Passed: passed, Reassigned: s.reassigned, DraftsEnd: true, TopShare: shares.Write, KnownRoles: s.knownRoles,
		Content: s.checked, Removed: s.undeployed,
		Inherit: (*App).inherit,
		Begin: func(d *App, of App) error {
			d.WebhookSecret = ""
			return s.env.Copy(d.fields(), of.fields())
		},
		Digest: digest,
	}
}
