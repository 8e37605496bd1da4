// Package assistants manages AI assistants: instructions, skills and knowledge, which are edited in
// drafts and shared.
//
//	made, err := app.Assistants.Create(ctx, assistants.Assistant{Name: "Help desk"})
//	draft, err := app.Assistants.Edit(ctx, made.ID, false)
//	_, err = app.Assistants.Commit(ctx, draft.ID, false)
//
// httpapi, the root and hosts import it; internal/store/assistants stores its rows and libraries
// the files.
package assistants

import (
	"context"
	"encoding/json"
	"time"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/drafts"
	"github.com/tenantcontent/tenantcontent/internal/secure/guard"
)

// Kind is the kind of assistants.
const Kind entity.Kind = "assistant"

// Assistant is one assistant, or the draft of one.
type Assistant struct {
	Tenant string
	ID     string // UUID, lower case; set by Create
	Name   string // 1 to 255 characters, without control characters
	// [A-Za-z0-9][A-Za-z0-9_-]{0,127}, never of UUID form; unique per owner except for drafts; nil
	// means no slug
	Slug         *string
	Description  *string         // at most 16,384 characters; nil for none
	Instructions string          // at most 256 KiB; ${slug} refers to an AI instruction
	Welcome      *string         // its first message, at most 16,384 characters; nil for nothing
	Dispatcher   bool            // hands over to the assistants among its References
	Suggestions  []string        // of what to ask, at most 20 of at most 1,000 characters
	ModelID      *string         // at most 255 characters; nil: the default model of the server
	Embedded     bool            // may be shown within other sites
	Data         json.RawMessage // a JSON object of at most 1 MiB
	Skills       []Skill         // ordered by Name
	Datasets     []Dataset       // ordered by DatasetID
	References   []Reference     // ordered by EntityType, then EntityID
	OwnerID      string          // principal id
	Sealed       string          // the secrets of the skills, encrypted; "" for none. No route shows it
	SecretsAt    *time.Time      // last change of a secret; nil: none since it was created
	LibraryID    string          // UUID of the library with the files
	EditingID    *string         // a draft: the id of the assistant that it is a draft of
	Base         string          // a draft: what the assistant was like when the draft began
	Lock         Lock            // a draft: who edits it
	Shared       bool            // has a share above shares.None
	FolderID     *string         // UUID; stored and returned
	CreatedAt    time.Time       // UTC, whole microseconds
	UpdatedAt    time.Time       // UTC, whole microseconds; a change of the files does not touch it
}

// Version changes with every change of the row. It does not depend on what a draft has from its
// assistant.
func (a Assistant) Version() string {
	if a.EditingID != nil {
		a.inherit(Assistant{})
	}
	return guard.Version(a.ID, a.Name, a.Slug, a.Description, a.definition(), a.OwnerID, a.Sealed, a.SecretsAt,
		a.LibraryID, a.EditingID,
		a.Lock.Session, a.Lock.HeartbeatAt, a.Lock.LockedBy, a.Shared, a.FolderID, a.CreatedAt, a.UpdatedAt)
}

// definition changes with the instructions, skills and knowledge of an assistant.
func (a Assistant) definition() string {
	lists := a.Suggestions[:len(a.Suggestions):len(a.Suggestions)]
	for _, s := range a.Skills {
		lists = append(lists, s.Name, s.Type, string(s.Config))
	}
	for _, d := range a.Datasets {
		lists = append(lists, d.DatasetID, string(d.Mode), string(d.Filter))
	}
	for _, r := range a.References {
		lists = append(lists, r.EntityType, r.EntityID, r.Label)
	}
	return guard.Version(
		a.Instructions, a.Welcome, a.Dispatcher, a.ModelID, a.Embedded, a.Data, len(a.Suggestions),
		len(a.Skills), len(a.Datasets), lists,
	)
}

// digest changes with everything of an assistant that a draft changes, but the files. Every change
// of a secret sets SecretsAt; the encrypted values change with the key of the program, too.
func digest(a Assistant) string {
	return guard.Version(a.Name, a.Slug, a.Description, a.definition(), a.FolderID, a.SecretsAt)
}

// inherit sets what a draft has from the assistant that it is a draft of.
func (a *Assistant) inherit(of Assistant) { a.OwnerID, a.Shared = of.OwnerID, of.Shared }

// Fields returns what drafts need of an assistant.
func Fields(a *Assistant) DraftFields {
	return DraftFields{
		Tenant: &a.Tenant, ID: &a.ID, Name: &a.Name,
		Slug: &a.Slug, Description: &a.Description, OwnerID: &a.OwnerID, Sealed: &a.Sealed,
		LibraryID: &a.LibraryID, EditingID: &a.EditingID, Base: &a.Base,
		Lock: &a.Lock, Shared: &a.Shared, FolderID: &a.FolderID,
		CreatedAt: &a.CreatedAt, UpdatedAt: &a.UpdatedAt,
	}
}

// NaturalID returns "<ownerId>:<slug>", or the id of a draft or an assistant without a slug.
func (a Assistant) NaturalID() string {
	if a.Slug == nil || a.EditingID != nil {
		return a.ID
	}
	return a.OwnerID + ":" + *a.Slug
}

// Ref returns a reference to the assistant.
func (a Assistant) Ref() entity.Ref {
	return entity.Ref{Kind: Kind, ID: a.ID, Name: a.Name, OwnerID: a.OwnerID, Draft: a.EditingID != nil}
}

// Skill is something that an assistant can do.
type Skill struct {
	Type   string          `json:"type"`   // SkillType.Type
	Name   string          `json:"name"`   // [A-Za-z][A-Za-z0-9_-]{0,63}, unique
	Config json.RawMessage `json:"config"` // a JSON object of at most 16 KiB
}

// Version changes with every change of the skill.
func (s Skill) Version() string { return guard.Version(s.Type, s.Name, s.Config) }

// SkillType is a kind of skill that the server provides.
type SkillType struct {
	Type        string `json:"type"`
	Name        string `json:"name"`        // for people
	Description string `json:"description"` // one sentence
	// Accept checks the configuration of a skill, a JSON object. Errors: errs.Invalid naming the
	// member. nil: there must be none.
	Accept func(config json.RawMessage) error `json:"-"`
	// Sends returns where a skill with a configuration sends secrets of its assistant, such as
	// https://mcp.example.com:443, and their names. If it is nil, the skill sends no secrets. A
	// user who may change an assistant cannot have the secrets of others sent to another place.
	Sends func(config json.RawMessage) (to string, secrets []string) `json:"-"`
}

// Mode is what an assistant is given of a dataset.
type Mode string

// The modes.
const (
	Full    Mode = "full"    // all rows
	Subset  Mode = "subset"  // the rows that fit a filter
	Schema  Mode = "schema"  // the fields alone
	Sampled Mode = "sampled" // some rows
)

// Dataset is a dataset that an assistant uses.
type Dataset struct {
	DatasetID string `json:"datasetId"` // UUID
	Mode      Mode   `json:"mode"`
	// of Subset, and of Sampled if it is not nil: a JSON object as datasets.Query has it
	Filter json.RawMessage `json:"filter,omitempty"`
}

// Version changes with every change of it.
func (d Dataset) Version() string { return guard.Version(d.DatasetID, string(d.Mode), d.Filter) }

// Reference is an entity that an assistant refers to.
type Reference struct {
	EntityType string `json:"entityType"` // one of ReferenceKinds
	EntityID   string `json:"entityId"`   // UUID
	Label      string `json:"label"`      // at most 255 characters; may be empty
}

// Version changes with every change of it.
func (r Reference) Version() string { return guard.Version(r.EntityType, r.EntityID, r.Label) }

// ReferenceKinds returns the kinds of the entities that References may be to.
func ReferenceKinds() []entity.Kind {
	return []entity.Kind{Kind, "datasource", "file", "library", "query", "report", "template", "visual"}
}

// Store keeps assistants, and their shares. Only Instructions, Skills and Data of an assistant may
// be long. Implementations must pass assistantstest.TestStore.
type Store interface {
	DraftStore

	// Using returns the ids of the assistants, drafts too, that have one of some datasets or
	// references, ordered. The kind of datasets is dataset.
	Using(ctx context.Context, tenant string, some []entity.Key) ([]string, error)
}

// Service implements the rules for assistants over a Store.
type Service struct {
	common    drafts.Service[Assistant]
	reader    drafts.Reader[Assistant, Shown]
	rules     *drafts.Rules[Assistant]
	presenter *drafts.Presenter[Assistant, Shown]
	secrets   drafts.Secrets
	store     Store
	files     *Files
	o         Options
}

// Options configure a Service. Store, Files, Directory, Keys and Allowed are required.
type Options struct {
	Store     Store
	Files     *Files
	MaxFile   int64 // bytes of a file that PutFile writes; default 100 MiB
	Directory Directory
	Keys      Sealer
	// Allowed returns errs.Invalid when AI is off in the caller's tenant, and errs.Forbidden for a
	// caller without the ai credential.
	Allowed func(ctx context.Context) error
	// Skills are what this server provides.
	Skills []SkillType
	// CheckFilter returns errs.Invalid for a filter that does not fit a dataset, and other errors
	// for a dataset that the caller cannot read. nil: filters are not checked.
	CheckFilter func(ctx context.Context, dataset string, filter json.RawMessage) error
	// Registry has the kinds of datasets and references, and the hooks that are called for deleted
	// assistants; nil means no kinds and no hooks.
	Registry *entity.Registry
	Feed     *entity.Changes // nil: changes are not announced
	// CanonicalName returns the exact name of the user who is meant by the owner in a natural id,
	// or the name as it is; nil: only exact names are found.
	CanonicalName func(ctx context.Context, tenant, name string) (string, error)
	Now           func() time.Time // default time.Now
	NewID         func() string    // default UUIDv7
}

// Where secrets are sealed.
const (
	sealedTable  = "tc_assistants"
	sealedColumn = "secrets_sealed"
)

// New returns a Service.
func New(o Options) *Service {
	if o.MaxFile == 0 {
		o.MaxFile = 100 << 20
	}
	s := &Service{
		store: o.Store, files: o.Files, o: o,
		secrets: drafts.Secrets{
			Keys:   o.Keys,
			Table:  sealedTable,
			Column: sealedColumn,
			Field:  "secrets",
			Things: "secrets",
		},
	}
	s.rules = drafts.NewRules(drafts.Options[Assistant]{
		Noun: s.noun(), Store: o.Store, Files: o.Files,
		MaxFile: o.MaxFile, Directory: o.Directory, Registry: o.Registry, Feed: o.Feed,
		CanonicalName: o.CanonicalName, Now: o.Now, NewID: o.NewID,
	})
	s.presenter = drafts.NewPresenter(s.rules, s.show)
	s.common, s.reader = s.rules.Service(), s.presenter.Reader()
	return s
}
