package assistants

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/drafts"
	"github.com/tenantcontent/tenantcontent/internal/drafts/shares"
	"github.com/tenantcontent/tenantcontent/internal/secure/guard"
	"github.com/tenantcontent/tenantcontent/internal/text/uuids"
)

// noun returns what the rules of assistants have of their own.
func (s *Service) noun() drafts.Noun[Assistant] {
	return drafts.Noun[Assistant]{
		Kind: Kind, Article: "an assistant", Fields: Fields, Ref: Assistant.Ref,
		Gate: s.o.Allowed, Visible: Visible, Inside: inside, Outside: errInside,
		Write: toWrite(), Edit: toWrite(), Share: toShare(), ChangeOwner: toChangeOwner(), TopShare: shares.Admin,
		Inherit: (*Assistant).inherit, Digest: digest,
		Begin: func(d *Assistant, of Assistant) error { return s.secrets.Copy(Fields(d), Fields(&of)) },
	}
}

// Shown is an assistant as a caller sees it.
type Shown struct {
	Assistant
	Permissions Permissions
	HasDraft    bool // there is a draft; false for a caller that may not change the assistant, and for a draft
	EditLock    Lock // of a draft, while somebody holds it; else the zero Lock
	Held        bool // the caller's credential holds EditLock
	Inside      bool // the caller sees the insides: files, shares and the names of secrets
}

// show returns assistants as an actor with some grants sees them.
func (s *Service) show(ctx context.Context, a actor.Actor, all []Assistant, grants map[string]Grant) ([]Shown, error) {
	out, drafted, now := make([]Shown, len(all)), []string{}, s.rules.Stamp()
	for i, as := range all {
		grant := grants[s.rules.Original(as)]
		v := Shown{Assistant: as, Permissions: PermissionsOf(a, as, grant), Inside: inside(a, as, grant)}
		if as.Lock.Lives(now) {
			v.EditLock, v.Held = as.Lock, as.Lock.Holds(a, now)
		}
		if as.EditingID != nil {
			v.Permissions = v.Permissions.ofDraft()
		} else if v.Inside {
			drafted = append(drafted, as.ID)
		}
		out[i] = v
	}
	if len(drafted) == 0 {
		return out, nil
	}
	have, err := s.store.Drafted(ctx, a.Tenant, drafted)
	for i := range out {
		out[i].HasDraft = have[out[i].ID]
	}
	return out, err
}

// SkillTypes returns what this server provides, in the order of Options.Skills.
func (s *Service) SkillTypes(ctx context.Context) ([]SkillType, error) {
	if _, err := s.rules.Actor(ctx); err != nil {
		return nil, err
	}
	return slices.Clone(s.o.Skills), nil
}

// CheckTalk returns an assistant that the caller may talk to, or a draft that the caller may edit,
// found as by Get. If the caller stands for a visitor whom the caller has invited, it can be one
// who only reads. Errors: errs.NotFound; errs.Forbidden.
func (s *Service) CheckTalk(ctx context.Context, id string, visitor bool) (Assistant, error) {
	a, err := s.rules.Actor(ctx)
	if err != nil {
		return Assistant{}, err
	}
	as, grant, err := s.rules.Find(ctx, a, id)
	if err != nil {
		return Assistant{}, err
	}
	a.ReadOnly = a.ReadOnly && !visitor
	return as, toChat()(a, as, grant)
}

// CanCreate reports whether an actor who passes Options.Allowed may create assistants: all may, but
// not with a token that can only read.
func (s *Service) CanCreate(a actor.Actor) bool { return !a.ReadOnly }

// Create adds an assistant without files, which the caller owns. Tenant, ID, OwnerID, times and
// what the service keeps are ignored.
// Errors: errs.Forbidden; errs.Invalid naming the field; errs.Conflict for a taken slug.
func (s *Service) Create(ctx context.Context, in Assistant) (Shown, error) {
	if of := (entity.Subject{Kind: Kind, Action: entity.ActionCreate}); s.o.Feed.Wanted(ctx, of) {
		given := in // which is not moved to the heap without listeners
		return entity.Record(ctx, s.o.Feed, of, shownID, func(ctx context.Context) (Shown, error) {
			return s.Create(ctx, given)
		})
	}
	a, err := s.rules.Actor(ctx)
	if err != nil {
		return Shown{}, err
	}
	if !s.CanCreate(a) {
		return Shown{}, a.OnlyReads()
	}
	as := Assistant{
		Tenant:    a.Tenant,
		ID:        s.rules.NewID(),
		OwnerID:   a.User,
		LibraryID: s.rules.NewID(),
		CreatedAt: s.rules.Stamp(),
	}
	as.UpdatedAt = as.CreatedAt
	as.define(in)
	if err := s.accept(ctx, a, &as, Assistant{}); err != nil {
		return Shown{}, err
	}
	if err := s.store.Insert(ctx, a.Tenant, as); err != nil {
		return Shown{}, err
	}
	return Shown{Assistant: as, Permissions: PermissionsOf(a, as, Grant{}), Inside: true}, nil
}

// shownID returns the id of an assistant, for changes.
func shownID(v Shown) string { return v.ID }

// define sets what a write and a draft change of an assistant, but its secrets.
func (a *Assistant) define(by Assistant) {
	a.Name, a.Slug, a.Description, a.Instructions, a.Welcome, a.Dispatcher =
		by.Name, by.Slug, by.Description, by.Instructions, by.Welcome, by.Dispatcher
	a.Suggestions, a.ModelID, a.Embedded, a.Data, a.FolderID =
		by.Suggestions, by.ModelID, by.Embedded, by.Data, by.FolderID
	a.Skills, a.Datasets, a.References = by.Skills, by.Datasets, by.References
}

// Update changes an assistant or a draft, found by id or natural id. Changes that edit makes to
// fields that Create does not set are undone. It needs the permission write. Errors: errs.NotFound;
// errs.Forbidden; errs.Invalid naming the field; errs.Conflict for a taken slug, and for a draft
// that somebody else edits; an error from edit as it is.
func (s *Service) Update(ctx context.Context, id string, edit func(*Assistant) error) (Shown, error) {
	return s.presenter.Change(ctx, id, toWrite(), func(ctx context.Context, who drafts.Caller, as *Assistant) error {
		changed := *as
		changed.Suggestions, changed.Skills = slices.Clone(as.Suggestions), slices.Clone(as.Skills)
		changed.Datasets, changed.References = slices.Clone(as.Datasets), slices.Clone(as.References)
		if err := edit(&changed); err != nil {
			return err
		}
		was := *as
		as.define(changed)
		if err := s.accept(ctx, who.Actor, as, was); err != nil {
			return err
		}
		return s.keepSecrets(who, as, was)
	})
}

// Delete removes an assistant, found by id or natural id, with its draft, files, shares, comments
// and tokens. A draft is not deleted but discarded. It needs the permission delete. Errors:
// errs.NotFound; errs.Forbidden; errs.Invalid for a draft.
func (s *Service) Delete(ctx context.Context, id string) error {
	if of := (entity.Subject{Kind: Kind, ID: id, Action: entity.ActionDelete}); s.o.Feed.Wanted(ctx, of) {
		return s.o.Feed.Do(ctx, of, func(ctx context.Context) error { return s.Delete(ctx, id) })
	}
	a, err := s.rules.Actor(ctx)
	if err != nil {
		return err
	}
	return s.store.InTx(ctx, func(ctx context.Context) error {
		as, grant, err := s.rules.LockNamed(ctx, a, id)
		if err != nil {
			return err
		}
		if as.EditingID != nil {
			return s.rules.IsDraft("discard it with DELETE /api/assistants/{id}/draft")
		}
		if err := toDelete()(a, as, grant); err != nil {
			return err
		}
		if err := guard.Check(ctx, string(Kind), as); err != nil {
			return err
		}
		return s.rules.Remove(ctx, a.Tenant, []string{as.ID})
	})
}

// Commit publishes the draft of an assistant: the assistant gets the fields of Create, the secrets
// and the files of the draft, all or nothing, and the draft is gone. force publishes it over
// changes that were made to the assistant since the draft began. It needs the permission edit.
// Errors: errs.NotFound, also for an assistant without a draft; errs.Forbidden; errs.Conflict for a
// draft that somebody else edits, for an assistant that has changed, and for a slug that is taken
// by now.
func (s *Service) Commit(ctx context.Context, id string, force bool) (Shown, error) {
	if of := (entity.Subject{Kind: Kind, ID: id, Action: entity.ActionDeploy}); s.o.Feed.Wanted(ctx, of) {
		return entity.Record(ctx, s.o.Feed, of, nil, func(ctx context.Context) (Shown, error) {
			return s.Commit(ctx, id, force)
		})
	}
	return s.presenter.InTx(ctx, func(ctx context.Context, a actor.Actor) (Assistant, Grant, error) {
		as, grant, d, err := s.rules.Committable(ctx, a, id, force)
		if err != nil {
			return Assistant{}, Grant{}, err
		}
		as, err = s.rules.Publish(ctx, as, d, func(as *Assistant) error {
			as.define(d)
			as.UpdatedAt, as.SecretsAt = s.rules.Stamp(), d.SecretsAt
			return s.secrets.Copy(Fields(as), Fields(&d))
		})
		return as, grant, err
	})
}

// Diff returns what the draft of an assistant changes. The caller must be allowed to change the
// assistant. Errors: errs.NotFound, also for an assistant without a draft; errs.Forbidden.
func (s *Service) Diff(ctx context.Context, id string) (Diff, error) {
	a, err := s.rules.Actor(ctx)
	if err != nil {
		return Diff{}, err
	}
	d, _, err := s.rules.Draft(ctx, a, id)
	if err != nil {
		return Diff{}, err
	}
	as, err := s.store.Get(ctx, a.Tenant, drafts.Lookup{ID: *d.EditingID})
	if err != nil {
		return Diff{}, err
	}
	var diff Diff
	if diff.Fields, err = s.fieldDiffs(as, d); err != nil {
		return Diff{}, err
	}
	diff.Files, err = s.rules.FileDiffs(ctx, as, d)
	return diff, err
}

func (s *Service) fieldDiffs(as, d Assistant) ([]drafts.FieldDiff, error) {
	before, err := s.masked(as)
	if err != nil {
		return nil, err
	}
	after, err := s.masked(d)
	if err != nil {
		return nil, err
	}
	all, err := drafts.FieldDiffs([]drafts.Field{
		{Name: "name", Before: as.Name, After: d.Name}, {Name: "slug", Before: as.Slug, After: d.Slug},
		{Name: "description", Before: as.Description, After: d.Description},
		{Name: "instructions", Before: as.Instructions, After: d.Instructions},
		{Name: "welcome", Before: as.Welcome, After: d.Welcome},
		{Name: "dispatcher", Before: as.Dispatcher, After: d.Dispatcher},
		{Name: "suggestions", Before: listed(as.Suggestions), After: listed(d.Suggestions)},
		{Name: "modelId", Before: as.ModelID, After: d.ModelID},
		{Name: "embedded", Before: as.Embedded, After: d.Embedded}, {Name: "data", Before: as.Data, After: d.Data},
		{Name: "folderId", Before: as.FolderID, After: d.FolderID},
		{Name: "skills", Before: listed(as.Skills), After: listed(d.Skills)},
		{Name: "datasets", Before: listed(as.Datasets), After: listed(d.Datasets)},
		{Name: "references", Before: listed(as.References), After: listed(d.References)},
		{Name: "secrets", Before: before, After: after},
	})
	if err != nil {
		return nil, err
	}
	changed, err := s.secrets.Changed(Fields(&as), Fields(&d))
	return append(all, changed...), err
}

// masked returns the names of the secrets of an assistant, each with entity.Mask.
func (s *Service) masked(as Assistant) (map[string]string, error) {
	values, err := s.secrets.Open(Fields(&as))
	for name := range values {
		values[name] = entity.Mask
	}
	return values, err
}

// listed returns an empty list for nil, which JSON has as null.
func listed[T any](all []T) []T { return append([]T{}, all...) }

// Secrets returns the names of an assistant's secrets, ordered; their values leave the service only
// to its skills. The caller must be allowed to change the assistant. Errors: errs.NotFound;
// errs.Forbidden.
func (s *Service) Secrets(ctx context.Context, id string) ([]string, error) {
	as, err := s.rules.Inside(ctx, id)
	if err != nil {
		return nil, err
	}
	return s.secrets.Names(Fields(&as))
}

// PutSecret sets a secret of an assistant; entity.Mask keeps its value. It needs the permission
// write. Errors: errs.NotFound; errs.Forbidden; errs.Invalid; errs.Conflict for a draft that
// somebody else edits.
func (s *Service) PutSecret(ctx context.Context, id, name, value string) (Shown, error) {
	return s.presenter.Change(ctx, id, toWrite(), func(_ context.Context, _ drafts.Caller, as *Assistant) error {
		return s.setSecret(as, name, &value)
	})
}

// DeleteSecret removes a secret of an assistant. It needs the permission write. Errors:
// errs.NotFound, also for one that is not there; errs.Forbidden; errs.Conflict for a draft that
// somebody else edits.
func (s *Service) DeleteSecret(ctx context.Context, id, name string) error {
	_, _, err := s.rules.Change(ctx, id, toWrite(), func(_ context.Context, _ drafts.Caller, as *Assistant) error {
		values, err := s.secrets.Open(Fields(as))
		if err != nil {
			return err
		}
		if _, there := values[name]; !there {
			return errs.New(errs.NotFound, "Secret not found.")
		}
		return s.setSecret(as, name, nil)
	})
	return err
}

func (s *Service) setSecret(as *Assistant, name string, value *string) error {
	was := as.Sealed
	if _, err := s.secrets.Change(Fields(as), map[string]*string{name: value}); err != nil {
		return err
	}
	if as.Sealed != was {
		now := s.rules.Stamp()
		as.SecretsAt = &now
	}
	return nil
}

// PutSkill adds a skill to an assistant, or changes it: edit gets the existing skill, or one that
// has only the name. It needs the permission write. Errors: errs.NotFound; errs.Forbidden;
// errs.Invalid naming the field, also for a type that this server does not provide; errs.Conflict
// for a draft that somebody else edits.
func (s *Service) PutSkill(ctx context.Context, id, name string, edit func(*Skill)) (Skill, error) {
	return put(ctx, s, id, "assistant-skill", skills, Skill{Name: name}, edit)
}

// DeleteSkill removes a skill from an assistant. It needs the permission write. Errors:
// errs.NotFound, also for a skill that the assistant does not have; errs.Forbidden; errs.Conflict
// for a draft that somebody else edits.
func (s *Service) DeleteSkill(ctx context.Context, id, name string) error {
	return remove(ctx, s, id, "assistant-skill", skills, Skill{Name: name})
}

// PutDataset adds a dataset to an assistant, or changes how it is used: edit gets the existing one,
// or one that has only the id. It needs the permission write. Errors: errs.NotFound;
// errs.Forbidden; errs.Invalid naming the field, also for a dataset that does not exist;
// errs.Conflict for a draft that somebody else edits.
func (s *Service) PutDataset(ctx context.Context, id, dataset string, edit func(*Dataset)) (Dataset, error) {
	return put(ctx, s, id, "assistant-dataset", datasets, Dataset{DatasetID: dataset}, edit)
}

// DeleteDataset removes a dataset from an assistant. It needs the permission write. Errors:
// errs.NotFound, also for one that the assistant does not use; errs.Forbidden; errs.Conflict for a
// draft that somebody else edits.
func (s *Service) DeleteDataset(ctx context.Context, id, dataset string) error {
	return remove(ctx, s, id, "assistant-dataset", datasets, Dataset{DatasetID: dataset})
}

// PutReference adds a reference to an assistant, or changes it: edit gets the reference that is
// there, or one without a label. It needs the permission write. Errors: errs.NotFound;
// errs.Forbidden; errs.Invalid naming the field, also for an entity that is not there;
// errs.Conflict for a draft that somebody else edits.
func (s *Service) PutReference(
	ctx context.Context, id string, to entity.Key, edit func(*Reference),
) (Reference, error) {
	return put(
		ctx, s, id, "assistant-reference", references, Reference{EntityType: string(to.Kind), EntityID: to.ID},
		edit,
	)
}

// DeleteReference removes a reference from an assistant. It needs the permission write. Errors:
// errs.NotFound, also for one that the assistant does not have; errs.Forbidden; errs.Conflict for a
// draft that somebody else edits.
func (s *Service) DeleteReference(ctx context.Context, id string, to entity.Key) error {
	return remove(
		ctx, s, id, "assistant-reference", references, Reference{EntityType: string(to.Kind), EntityID: to.ID},
	)
}

// element is an element of a list of an assistant.
type element[E any] interface {
	guard.Versioned
	same(E) bool          // has the same key
	canonical() (E, bool) // with its id as it is stored, and whether it may have one
}

func (s Skill) canonical() (Skill, bool) { return s, true }

func (d Dataset) canonical() (Dataset, bool) {
	id, ok := uuids.Parse(d.DatasetID)
	d.DatasetID = id
	return d, ok
}

func (r Reference) canonical() (Reference, bool) {
	id, ok := uuids.Parse(r.EntityID)
	r.EntityID = id
	return r, ok
}

var errNotKnown = errs.New(errs.NotFound, "The assistant does not have this.")

func (s Skill) same(o Skill) bool     { return s.Name == o.Name }
func (d Dataset) same(o Dataset) bool { return d.DatasetID == o.DatasetID }
func (r Reference) same(o Reference) bool {
	return r.EntityType == o.EntityType && r.EntityID == o.EntityID
}

func skills(a *Assistant) *[]Skill         { return &a.Skills }
func datasets(a *Assistant) *[]Dataset     { return &a.Datasets }
func references(a *Assistant) *[]Reference { return &a.References }

// put adds an element to a list of an assistant, or changes it. row is the guard.Guard.Row of
// conditional writes to it.
func put[E element[E]](
	ctx context.Context, s *Service, id, row string, list func(*Assistant) *[]E, key E, edit func(*E),
) (E, error) {
	as, _, err := s.rules.Change(ctx, id, toWrite(), func(ctx context.Context, who drafts.Caller, as *Assistant) error {
		var ok bool
		if key, ok = key.canonical(); !ok {
			return errs.New(
				errs.NotFound,
				"There is nothing with this id: it must be a UUID, as the member id has it, not owner:slug.",
			)
		}
		was := *as
		all := list(as)
		*all = slices.Clone(*all)
		at := slices.IndexFunc(*all, key.same)
		if at < 0 {
			if err := guard.Of(ctx, row).Missing(); err != nil {
				return err
			}
			at, *all = len(*all), append(*all, key)
		} else if err := guard.Check(ctx, row, (*all)[at]); err != nil {
			return err
		}
		edit(&(*all)[at])
		if err := s.accept(ctx, who.Actor, as, was); err != nil {
			return err
		}
		return s.keepSecrets(who, as, was)
	})
	if err != nil {
		return *new(E), err
	}
	all := *list(&as)
	return all[slices.IndexFunc(all, key.same)], nil
}

// remove removes an element from a list of an assistant.
func remove[E element[E]](ctx context.Context, s *Service, id, row string, list func(*Assistant) *[]E, key E) error {
	_, _, err := s.rules.Change(ctx, id, toWrite(), func(ctx context.Context, _ drafts.Caller, as *Assistant) error {
		all := list(as)
		key, _ := key.canonical()
		at := slices.IndexFunc(*all, key.same)
		if at < 0 {
			return errNotKnown
		}
		if err := guard.Check(ctx, row, (*all)[at]); err != nil {
			return err
		}
		*all = slices.Delete(slices.Clone(*all), at, at+1)
		return nil
	})
	return err
}

// CheckShare returns the id of an assistant that the caller may share, also with a token that can
// only read. Errors: errs.NotFound; errs.Forbidden; errs.Invalid for a draft.
func (s *Service) CheckShare(ctx context.Context, id string) (string, error) {
	a, err := s.rules.Actor(ctx)
	if err != nil {
		return "", err
	}
	as, grant, err := s.rules.FindHead(ctx, a, id)
	if err != nil {
		return "", err
	}
	return as.ID, s.rules.CheckShare(a, as, grant)
}

// object returns a JSON object without spaces around its parts, {} for nothing.
func object(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || string(raw) == "null" {
		return json.RawMessage("{}")
	}
	return raw
}
