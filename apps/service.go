package apps

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/ai"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/drafts"
	"github.com/tenantcontent/tenantcontent/internal/drafts/shares"
)

// Shown is an app as a caller sees it.
type Shown struct {
	App
	Permissions       Permissions
	ContentModifiedAt *time.Time // newest change of the app's files; nil without files
	HasDraft          bool       // there is a draft; false for a caller that may not change the app, and for a draft
	EditLock          Lock       // of a draft, while somebody holds it; else the zero Lock
	Held              bool       // the caller's credential holds EditLock
	CanView           bool       // the caller may run it, also with a token that can only read
	CanExport         bool       // the caller may export it; false for a draft
	Favorite          bool       // the caller has marked the app, of a draft its app
	Chats             bool       // the caller may use language models
	Inside            bool       // the caller sees the insides: files as they are written, variables and shares
	// the caller sees what handlers have done: may change the app, also with a token that can only
	// read
	Examines bool
	// what Deploy, Commit or Copy has deployed; nil from all others, and from a Copy with nothing
	// to deploy
	Deployed *Deployed
}

// Definition returns Defn as the caller may read it: the names of the variables are for those who
// see the insides.
func (v Shown) Definition() json.RawMessage {
	if v.Inside || v.Sealed == "" {
		return v.Defn
	}
	defn, err := withoutEnv(v.Defn)
	if err != nil { // it is an object
		return json.RawMessage("{}")
	}
	return defn
}

// CanCreate reports whether the caller may create report apps.
func (s *Service) CanCreate(a actor.Actor) bool { return s.mayCreate(a, Report) == nil }

// canView reports whether an actor may run an app, also with a token that can only read.
func canView(a actor.Actor, app App, grant Grant) bool {
	a.ReadOnly = false
	return PermissionsOf(a, app, grant).Run
}

// canExport reports whether an actor may export an app, which is for superusers, as all archives
// are.
func canExport(a actor.Actor, app App) bool {
	return a.Superuser && !a.ReadOnly && app.EditingID == nil
}

// show returns apps as an actor with some grants sees them.
func (s *Service) show(ctx context.Context, a actor.Actor, all []App, grants map[string]Grant) ([]Shown, error) {
	if len(all) == 0 {
		return nil, nil
	}
	ids := make([]string, len(all))
	for i, app := range all {
		ids[i] = app.LibraryID
	}
	modified, err := s.files.Modified(ctx, a.Tenant, ids)
	if err != nil {
		return nil, err
	}
	originals := s.rules.Originals(all)
	favorites, err := s.store.Favorites(ctx, a.Tenant, a.User, originals)
	if err != nil {
		return nil, err
	}
	chats, err := s.chats(ctx)
	if err != nil {
		return nil, err
	}
	out, drafted := make([]Shown, len(all)), []string{}
	reads, now := a, s.rules.Stamp()
	reads.ReadOnly = false // what may be seen does not depend on the credential
	for i, app := range all {
		grant := grants[originals[i]]
		v := Shown{
			App: app, Permissions: PermissionsOf(a, app, grant), CanView: canView(a, app, grant),
			CanExport: canExport(a, app), Favorite: favorites[originals[i]],
			Chats: chats, Inside: inside(a, app, grant),
			Examines: toWrite.has(PermissionsOf(reads, app, grant)),
		}
		if app.Lock.Lives(now) {
			v.EditLock, v.Held = app.Lock, app.Lock.Holds(a, now)
		}
		if at, ok := modified[app.LibraryID]; ok {
			v.ContentModifiedAt = &at
		}
		if app.EditingID != nil {
			v.Permissions = v.Permissions.ofDraft()
		} else if v.Examines {
			drafted = append(drafted, app.ID)
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

// need is a permission that a method asks for, with the sentence for those who do not have it.
type need struct {
	has  func(Permissions) bool
	what string
	own  bool // not for apps that came from another tenant
}

var (
	toWrite = need{func(p Permissions) bool {
		return p.Write
	}, fmt.Sprintf("This needs the role %s at a report app and %s at a full app, and %s.",
		writer(Report), writer(Full), accessToWrite), false}
	toEdit = need{func(p Permissions) bool { return p.Edit }, toWrite.what, true}
	toRun  = need{func(p Permissions) bool {
		return p.Run
	}, needs(roleToRun, "to own the app or to have a share of it"), false}
	toPurge = need{func(p Permissions) bool { return p.Purge }, needs(roleToPurge, accessToWrite), false}
	toShare = need{func(p Permissions) bool { return p.Share }, needs(roleToShare, accessToWrite), false}
	toTag   = need{func(p Permissions) bool {
		return p.AssignTags
	}, needs(roleToAssignTags, accessToWrite), false}
	toBind        = need{func(p Permissions) bool { return p.Bind }, needs(roleToBind, accessToWrite), false}
	toChangeOwner = need{func(p Permissions) bool {
		return p.ChangeOwner
	}, needs(roleToChangeOwner, accessToWrite), false}
)

const accessToWrite = "to own the app or to have a share with accessLevel 2"

// needs returns the sentence for those who do not have a permission.
func needs(lowest actor.Role, access string) string {
	return fmt.Sprintf("This needs the role %s, and %s.", orHigher(lowest), access)
}

var errManaged = errs.New(errs.Forbidden, "This app came from another tenant: change it there and deploy it again.")

// check returns errs.Forbidden when an actor does not have a permission on an app.
func (n need) check(a actor.Actor, app App, grant Grant) error {
	switch {
	case n.has(PermissionsOf(a, app, grant)):
		return nil
	case a.ReadOnly:
		return a.OnlyReads()
	case n.own && toWrite.has(PermissionsOf(a, app, grant)):
		return errManaged
	}
	return errs.New(errs.Forbidden, "%s %s", n.what, actor.RoleHint)
}

// change changes an app whose caller has a permission. edit gets the caller and the stored app;
// what no edit sets is put back.
func (s *Service) change(
	ctx context.Context, id string, n need, edit func(ctx context.Context, who drafts.Caller, app *App) error,
) error {
	_, _, err := s.rules.Change(ctx, id, n.check, edit)
	return err
}

// changeBeside is change for what an app has beside its row: updatedAt stays.
func (s *Service) changeBeside(
	ctx context.Context, id string, n need, edit func(ctx context.Context, who drafts.Caller, app *App) error,
) error {
	_, _, err := s.rules.ChangeBeside(ctx, id, n.check, edit)
	return err
}

// changeShown is change that returns the app as the caller sees it.
func (s *Service) changeShown(
	ctx context.Context, id string, n need, edit func(ctx context.Context, who drafts.Caller, app *App) error,
) (Shown, error) {
	return s.presenter.Change(ctx, id, n.check, edit)
}

// mayCreate returns errs.Forbidden if an actor may not create apps of a tier.
func (s *Service) mayCreate(a actor.Actor, t Tier) error {
	switch {
	case a.ReadOnly:
		return a.OnlyReads()
	case a.Superuser || a.Role() >= writer(t):
		return nil
	}
	return errs.New(errs.Forbidden, "This needs the role %s. %s", orHigher(writer(t)), actor.RoleHint)
}

// licensed returns errs.Forbidden if the tenant may not have apps of a tier.
func (s *Service) licensed(ctx context.Context, tenant string, t Tier) error {
	if t != Full {
		return nil
	}
	ok, err := s.o.Licensed(ctx, tenant, License)
	if err == nil && !ok {
		err = errs.New(
			errs.Forbidden,
			"This tenant has no license for apps of the type app; those of the type report need none. The "+
				"operator of this server adds it: tenantcontent tenant license %s --add %s",
			tenant, License,
		)
	}
	return err
}

// Create adds an app with an empty library. It takes Type, Name, Slug, Description, Defn, Settings,
// FolderID, Datasets, Source and SourceID; the caller owns it. Values in the member env of Defn are
// secrets. It needs the role Designer, of a full app Admin and the license. Errors: errs.Forbidden;
// errs.Invalid naming the field; errs.Conflict for a taken slug.
func (s *Service) Create(ctx context.Context, in App) (Shown, error) {
	if of := (entity.Subject{Kind: Kind, Action: entity.ActionCreate}); s.o.Feed.Wanted(ctx, of) {
		given := in // which is not moved to the heap without listeners
		return entity.Record(ctx, s.o.Feed, of, shownID, func(ctx context.Context) (Shown, error) {
			return s.Create(ctx, given)
		})
	}
	a, err := actor.From(ctx)
	if err != nil {
		return Shown{}, err
	}
	if err := in.Type.accept(); err != nil {
		return Shown{}, err
	}
	if err := s.licensed(ctx, a.Tenant, in.Type); err != nil {
		return Shown{}, err
	}
	if err := s.mayCreate(a, in.Type); err != nil {
		return Shown{}, err
	}
	now := s.rules.Stamp()
	app := App{
		Tenant: a.Tenant, ID: s.rules.NewID(), Type: in.Type,
		Name: in.Name, Slug: in.Slug, Description: in.Description, OwnerID: a.User,
		LibraryID: s.rules.NewID(), FolderID: in.FolderID,
		Datasets: in.Datasets, Source: in.Source, SourceID: in.SourceID,
		CreatedAt: now, UpdatedAt: now,
	}
	if err := s.define(&app, in.Defn); err != nil {
		return Shown{}, err
	}
	app.DefnUpdatedAt = nil
	if app.Settings, err = merged("settings", nil, in.Settings); err != nil {
		return Shown{}, err
	}
	if err := app.accept(); err != nil {
		return Shown{}, err
	}
	if err := s.knownDatasets(ctx, a.Tenant, app.Datasets); err != nil {
		return Shown{}, err
	}
	if err := s.store.Insert(ctx, a.Tenant, app); err != nil {
		return Shown{}, err
	}
	chats, err := s.chats(ctx)
	return Shown{
		App:         app,
		Permissions: PermissionsOf(a, app, Grant{}),
		CanView:     canView(a, app, Grant{}),
		CanExport:   canExport(a, app),
		Chats:       chats,
		Inside:      true,
		Examines:    true,
	}, err
}

// shownID returns the id of an app, for changes.
func shownID(v Shown) string { return v.ID }

// chats reports whether the caller may use language models, and whether there are some.
func (s *Service) chats(ctx context.Context) (bool, error) {
	if ai.Configured(s.o.AI) != nil || s.o.CheckAI == nil {
		return false, nil
	}
	err := s.o.CheckAI(ctx)
	if code := errs.CodeOf(err); code == errs.Invalid || code == errs.Forbidden {
		return false, nil
	}
	return err == nil, err
}

// Edit has the fields that an Update changes. A nil field stays as it is.
type Edit struct {
	Type        *Tier
	Name        *string
	Slug        **string
	Description **string
	FolderID    **string
	Source      **string
	SourceID    **string
	// Defn has the members of the definition that change, a JSON object: null removes one. Its
	// member env has the variables that change, as texts: null removes one, and entity.Mask keeps
	// its value.
	Defn json.RawMessage
	// Settings has the members that change, a JSON object: null removes one.
	Settings json.RawMessage
}

// definition reports whether the edit changes what only a draft or an app of this tenant may
// change.
func (e Edit) definition(was, is App) bool {
	return string(was.Defn) != string(is.Defn) && e.Defn != nil && !onlyEnv(e.Defn)
}

// Update changes an app or a draft, found by id or natural id. It needs the permission write, for a
// change of the definition beyond its env edit. A report app can become a full one, which needs the
// license and the role Admin; the other way is errs.Invalid.
// Errors: errs.NotFound; errs.Forbidden; errs.Invalid naming the field; errs.Conflict for a taken
// slug, and for a draft that somebody else edits.
func (s *Service) Update(ctx context.Context, id string, edit Edit) (Shown, error) {
	return s.changeShown(ctx, id, toWrite, func(ctx context.Context, who drafts.Caller, app *App) error {
		was := *app
		if err := s.retier(ctx, who, app, edit.Type); err != nil {
			return err
		}
		set(&app.Name, edit.Name)
		set(&app.Slug, edit.Slug)
		set(&app.Description, edit.Description)
		set(&app.FolderID, edit.FolderID)
		set(&app.Source, edit.Source)
		set(&app.SourceID, edit.SourceID)
		if edit.Settings != nil {
			settings, err := merged("settings", app.Settings, edit.Settings)
			if err != nil {
				return err
			}
			app.Settings = settings
		}
		if edit.Defn != nil {
			if err := s.define(app, edit.Defn); err != nil {
				return err
			}
		}
		if app.IsManaged && edit.definition(was, *app) {
			return errManaged
		}
		return app.accept()
	})
}

func set[T any](field *T, value *T) {
	if value != nil {
		*field = *value
	}
}

// retier changes the tier of an app; nil keeps it.
func (s *Service) retier(ctx context.Context, who drafts.Caller, app *App, to *Tier) error {
	if to == nil || *to == app.Type {
		return nil
	}
	if err := to.accept(); err != nil {
		return err
	}
	switch {
	case app.EditingID != nil:
		return errs.New(errs.Invalid, "type cannot be changed in a draft: change it on the app")
	case *to == Report:
		return errs.New(errs.Invalid, "type cannot go back from app to report")
	}
	if err := s.licensed(ctx, who.Tenant, *to); err != nil {
		return err
	}
	if !who.Superuser && roleAt(who.Actor, *app, who.Grant, shares.Write) < writer(*to) {
		return errs.New(errs.Forbidden, "This needs the role %s. %s", orHigher(writer(*to)), actor.RoleHint)
	}
	app.Type = *to
	return nil
}

// Delete marks an app, found by id or natural id, as deleted: no method but Restore and Purge finds
// it any more. A draft is not deleted but discarded. It needs the permission delete. Errors:
// errs.NotFound; errs.Forbidden; errs.Invalid for a draft.
func (s *Service) Delete(ctx context.Context, id string) error {
	if of := (entity.Subject{Kind: Kind, ID: id, Action: entity.ActionDelete}); s.o.Feed.Wanted(ctx, of) {
		return s.o.Feed.Do(ctx, of, func(ctx context.Context) error { return s.Delete(ctx, id) })
	}
	return s.change(ctx, id, toWrite, func(_ context.Context, _ drafts.Caller, app *App) error {
		if app.EditingID != nil {
			return s.rules.IsDraft("discard it with DELETE /api/apps/{id}/draft")
		}
		now := s.rules.Stamp()
		app.DeletedAt = &now
		return nil
	})
}

// Restore makes a deleted app, found by its id, an app as before; it loses its slug if another app
// of its owner has that now. It needs the permission restore. Errors: errs.NotFound;
// errs.Forbidden; errs.Conflict if another app gets the slug at this moment.
func (s *Service) Restore(ctx context.Context, id string) (v Shown, err error) {
	a, err := actor.From(ctx)
	if err != nil {
		return Shown{}, err
	}
	of := entity.Subject{Kind: Kind, ID: id, Action: entity.ActionCreate}
	err = s.o.Feed.In(ctx, s.store.InTx, a.Tenant, of, func(ctx context.Context) error {
		app, grant, err := s.deleted(ctx, a, id, toWrite)
		if err != nil {
			return err
		}
		slug := app.Slug
		if slug != nil {
			taken, err := s.store.Slugs(ctx, a.Tenant, []Lookup{{Owner: app.OwnerID, Slug: *slug}})
			if err != nil {
				return err
			}
			if len(taken) > 0 {
				slug = nil
			}
		}
		app, err = s.store.Update(ctx, a.Tenant, Lookup{ID: app.ID, Deleted: true}, func(app *App) error {
			app.DeletedAt, app.Slug, app.UpdatedAt = nil, slug, s.rules.Stamp()
			return nil
		})
		if err != nil {
			return err
		}
		v, err = s.presenter.One(ctx, a, app, grant)
		return err
	})
	return v, err
}

// deleted returns a deleted app on which an actor has a permission, and locks it.
func (s *Service) deleted(ctx context.Context, a actor.Actor, id string, n need) (App, Grant, error) {
	at, err := s.rules.Parse(id)
	if err != nil || at.ID == "" {
		return App{}, Grant{}, s.rules.NotFound()
	}
	at.Deleted = true
	app, grant, err := s.rules.Lock(ctx, a, at)
	if err != nil {
		return App{}, Grant{}, err
	}
	return app, grant, n.check(a, app, grant)
}

// Purge removes a deleted app, found by its id, for good, with its draft, files, shares and tokens.
// It needs the permission purge.
// Errors: errs.NotFound, also for an app that is not deleted; errs.Forbidden.
func (s *Service) Purge(ctx context.Context, id string) error {
	a, err := actor.From(ctx)
	if err != nil {
		return err
	}
	return s.store.InTx(ctx, func(ctx context.Context) error {
		app, _, err := s.deleted(ctx, a, id, toPurge)
		if err != nil {
			return err
		}
		return s.rules.Remove(ctx, a.Tenant, []string{app.ID})
	})
}

// Copy adds an app of the caller with the definition, settings, bindings, tags and files of another
// one, and the name, "Copy of …" when it is nil. It has no slug, no shares, and no values of its
// env, which are secrets. It is deployed if the other one was, unless that came from another
// tenant; if it could not be deployed, Shown.Deployed has a warning. It needs the permission copy,
// and what Create needs. Errors: errs.NotFound; errs.Forbidden; errs.Invalid for a name and for a
// draft.
func (s *Service) Copy(ctx context.Context, id string, name *string) (v Shown, err error) {
	a, err := actor.From(ctx)
	if err != nil {
		return Shown{}, err
	}
	var of App
	err = s.store.InTx(ctx, func(ctx context.Context) error {
		if _, err := s.store.Hold(ctx, a.Tenant, []string{a.User}); err != nil {
			return err
		}
		var grant Grant
		if of, grant, err = s.rules.LockNamed(ctx, a, id); err != nil {
			return err
		}
		if of.EditingID != nil {
			return s.rules.IsDraft("copy the app itself")
		}
		if err := s.licensed(ctx, a.Tenant, of.Type); err != nil {
			return err
		}
		if err := cmp.Or(toWrite.check(a, of, grant), s.mayCreate(a, of.Type)); err != nil {
			return err
		}
		now := s.rules.Stamp()
		app := App{
			Tenant: a.Tenant, ID: s.rules.NewID(),
			Type: of.Type, Name: shortened("Copy of " + of.Name), Description: of.Description,
			OwnerID: a.User, Settings: of.Settings, LibraryID: s.rules.NewID(),
			FolderID: of.FolderID, Datasets: of.Datasets, Tags: of.Tags,
			CreatedAt: now, UpdatedAt: now,
		}
		set(&app.Name, name)
		if app.Defn, err = withoutEnv(of.Defn); err != nil {
			return err
		}
		if err := app.accept(); err != nil {
			return err
		}
		if err := s.store.Insert(ctx, a.Tenant, app); err != nil {
			return err
		}
		if err := s.files.Copy(ctx, a.Tenant, of.LibraryID, app.LibraryID); err != nil {
			return err
		}
		if v, err = s.presenter.One(ctx, a, app, Grant{}); err != nil {
			return err
		}
		return s.o.Feed.Announce(ctx, a.Tenant, entity.ActionCreate, entity.Key{Kind: Kind, ID: app.ID})
	})
	if err != nil {
		return Shown{}, err
	}
	return s.deployCopy(ctx, of, v), nil
}
