package apps

import (
	"cmp"
	"context"
	"encoding/json"
	"iter"
	"slices"
	"time"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/drafts"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/guard"
	"github.com/tenantcontent/tenantcontent/internal/uuids"
	"github.com/tenantcontent/tenantcontent/paging"
	"github.com/tenantcontent/tenantcontent/shares"
)

// Shown is an app as a caller sees it.
type Shown struct {
	App
	Permissions       Permissions
	ContentModifiedAt *time.Time  // newest change of the app's files; nil without files
	HasDraft          bool        // there is a draft; false for those who may not change the app, and for a draft
	EditLock          drafts.Lock // of a draft, while somebody holds it; else the zero Lock
	Held              bool        // the caller's credential holds EditLock
	CanView           bool        // the caller may run it, also with a token that can only read
	CanExport         bool        // the caller may export it; false for a draft
	Favorite          bool        // the caller has marked the app, of a draft its app
	Inside            bool        // the caller sees the insides: files as they are written, variables and shares
}

// Definition returns Defn as the caller may read it: the names of the variables are for those who see the insides.
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

// Page returns a page of the apps that the caller sees, without drafts and deleted apps, sorted by name (the default), createdAt or
// updatedAt; q searches name, slug and description. Errors: errs.Invalid for a sort or cursor that does not fit.
func (s *Service) Page(ctx context.Context, q paging.Query) (paging.Page[Shown], error) {
	a, err := actor.From(ctx)
	if err != nil {
		return paging.Page[Shown]{}, err
	}
	return s.page(ctx, a, viewer(a), q)
}

func (s *Service) page(ctx context.Context, a actor.Actor, v Viewer, q paging.Query) (paging.Page[Shown], error) {
	page, err := s.store.Page(ctx, a.Tenant, v, q)
	if err != nil {
		return paging.Page[Shown]{}, err
	}
	rows, err := s.showAll(ctx, a, page.Rows)
	shown := paging.Page[Shown]{Rows: rows, Total: page.Total, More: page.More, First: page.First, Last: page.Last, Start: page.Start}
	return shown, err
}

// All returns all apps that the caller sees, without drafts, deleted apps and Defn, ordered by name. An error ends it.
func (s *Service) All(ctx context.Context) iter.Seq2[Shown, error] {
	return func(yield func(Shown, error) bool) {
		a, err := actor.From(ctx)
		if err != nil {
			yield(Shown{}, err)
			return
		}
		v := viewer(a)
		v.NoDefn = true
		q := paging.Query{Limit: paging.MaxLimit}
		for {
			page, err := s.page(ctx, a, v, q)
			if err != nil {
				yield(Shown{}, err)
				return
			}
			for _, v := range page.Rows {
				if !yield(v, nil) {
					return
				}
			}
			if !page.More {
				return
			}
			q.Start, q.After = q.Start+len(page.Rows), page.Last
		}
	}
}

// CanCreate reports whether the caller may create report apps.
func (s *Service) CanCreate(a actor.Actor) bool { return s.mayCreate(a, Report) == nil }

func viewer(a actor.Actor) Viewer {
	return Viewer{All: a.Superuser, Principals: shares.Principals(a)}
}

// Drafts returns the drafts of the apps that the caller may change, ordered by name, without Defn.
func (s *Service) Drafts(ctx context.Context) ([]Shown, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return nil, err
	}
	drafts, err := s.store.Drafts(ctx, a.Tenant, viewer(a))
	if err != nil {
		return nil, err
	}
	if drafts, err = s.inherited(ctx, a.Tenant, drafts); err != nil {
		return nil, err
	}
	grants, err := s.grants(ctx, a, drafts...)
	if err != nil {
		return nil, err
	}
	return s.showGranted(ctx, a, slices.DeleteFunc(drafts, func(d App) bool { return !sees(a, d, grants[original(d)]) }), grants)
}

// inherited returns drafts with what they have from their apps, without those of deleted apps.
func (s *Service) inherited(ctx context.Context, tenant string, drafts []App) ([]App, error) {
	ids := make([]string, len(drafts))
	for i, d := range drafts {
		ids[i] = original(d)
	}
	some, err := s.store.Heads(ctx, tenant, ids)
	if err != nil {
		return nil, err
	}
	of := make(map[string]App, len(some))
	for _, app := range alive(some) {
		of[app.ID] = app
	}
	all := make([]App, 0, len(drafts))
	for _, d := range drafts {
		if app, there := of[original(d)]; there {
			d.inherit(app)
			all = append(all, d)
		}
	}
	return all, nil
}

// Seen returns those of some apps that the caller sees, by id, without Defn, drafts and deleted ones.
func (s *Service) Seen(ctx context.Context, ids []string) (map[string]Shown, error) {
	a, err := actor.From(ctx)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	some, err := s.store.Heads(ctx, a.Tenant, ids)
	if err != nil {
		return nil, err
	}
	some = slices.DeleteFunc(alive(some), func(app App) bool { return app.EditingID != nil })
	grants, err := s.grants(ctx, a, some...)
	if err != nil {
		return nil, err
	}
	shown, err := s.showGranted(ctx, a, slices.DeleteFunc(some, func(app App) bool { return !Visible(a, app, grants[app.ID]) }), grants)
	seen := make(map[string]Shown, len(shown))
	for _, v := range shown {
		seen[v.ID] = v
	}
	return seen, err
}

// Get returns an app that the caller sees, found by id or natural id, or a draft of an app that the caller may change, found by id.
// Errors: errs.NotFound.
func (s *Service) Get(ctx context.Context, id string) (Shown, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return Shown{}, err
	}
	app, grant, err := s.find(ctx, a, id)
	if err != nil {
		return Shown{}, err
	}
	return s.show(ctx, a, app, grant)
}

// find returns an app that an actor sees, and the actor's grant.
func (s *Service) find(ctx context.Context, a actor.Actor, id string) (App, shares.Grant, error) {
	return s.granted(ctx, a, id, s.store.Get)
}

// findHead is find without Defn.
func (s *Service) findHead(ctx context.Context, a actor.Actor, id string) (App, shares.Grant, error) {
	return s.granted(ctx, a, id, s.store.Head)
}

// granted returns an app that an actor sees, as get reads it, and the actor's grant.
func (s *Service) granted(ctx context.Context, a actor.Actor, id string, get func(context.Context, string, Lookup) (App, error)) (app App, grant shares.Grant, err error) {
	err = s.at(ctx, a.Tenant, id, func(at Lookup) error {
		app, err = get(ctx, a.Tenant, at)
		return err
	})
	if err != nil {
		return App{}, shares.Grant{}, err
	}
	grant, err = s.grant(ctx, a, &app)
	return app, grant, err
}

// head returns the app that an id or natural id names, without Defn.
func (s *Service) head(ctx context.Context, tenant, id string) (app App, err error) {
	err = s.at(ctx, tenant, id, func(at Lookup) error {
		app, err = s.store.Head(ctx, tenant, at)
		return err
	})
	return app, err
}

// lock returns an app that an actor sees, and the actor's grant. It locks the app until the transaction in ctx ends.
func (s *Service) lock(ctx context.Context, a actor.Actor, at Lookup) (App, shares.Grant, error) {
	app, err := s.store.Lock(ctx, a.Tenant, at)
	if err != nil {
		return App{}, shares.Grant{}, err
	}
	grant, err := s.grant(ctx, a, &app)
	return app, grant, err
}

// lockNamed is lock of the app that an id or natural id names.
func (s *Service) lockNamed(ctx context.Context, a actor.Actor, id string) (app App, grant shares.Grant, err error) {
	err = s.at(ctx, a.Tenant, id, func(at Lookup) error {
		app, grant, err = s.lock(ctx, a, at)
		return err
	})
	return app, grant, err
}

// grant returns the grant of an actor at an app. A draft inherits from its app, which decides who may do what with it.
// Errors: errs.NotFound if the actor does not see the app, and for the draft of a deleted one.
func (s *Service) grant(ctx context.Context, a actor.Actor, app *App) (shares.Grant, error) {
	if app.EditingID != nil {
		of, err := s.store.Head(ctx, a.Tenant, Lookup{ID: *app.EditingID})
		if err != nil {
			return shares.Grant{}, err
		}
		app.inherit(of)
	}
	all, err := s.grants(ctx, a, *app)
	if err != nil {
		return shares.Grant{}, err
	}
	grant := all[original(*app)]
	if !sees(a, *app, grant) {
		return shares.Grant{}, notFound()
	}
	return grant, nil
}

// grants returns the grants of an actor at some apps by id, for a draft by that of its app.
func (s *Service) grants(ctx context.Context, a actor.Actor, some ...App) (map[string]shares.Grant, error) {
	ids := make([]string, len(some))
	for i, app := range some {
		ids[i] = original(app)
	}
	if len(ids) == 0 {
		return nil, nil
	}
	return s.store.Shares().Grants(ctx, a.Tenant, ids, shares.Principals(a))
}

// original returns the id of an app, of a draft that of the app that it is a draft of.
func original(app App) string {
	if app.EditingID != nil {
		return *app.EditingID
	}
	return app.ID
}

// sees reports whether an actor sees an app, or a draft: that is for those who may change the app, also with a token that can only
// read.
func sees(a actor.Actor, app App, grant shares.Grant) bool {
	if app.EditingID == nil {
		return Visible(a, app, grant)
	}
	a.ReadOnly = false
	return PermissionsOf(a, app, grant).Write
}

// canView reports whether an actor may run an app, also with a token that can only read.
func canView(a actor.Actor, app App, grant shares.Grant) bool {
	a.ReadOnly = false
	return PermissionsOf(a, app, grant).Run
}

// canExport reports whether an actor may export an app, which is for superusers, as all archives are.
func canExport(a actor.Actor, app App) bool {
	return a.Superuser && !a.ReadOnly && app.EditingID == nil
}

// show returns an app as an actor sees it.
func (s *Service) show(ctx context.Context, a actor.Actor, app App, grant shares.Grant) (Shown, error) {
	all, err := s.showGranted(ctx, a, []App{app}, map[string]shares.Grant{original(app): grant})
	if err != nil {
		return Shown{}, err
	}
	return all[0], nil
}

// showAll is show for several apps that are no drafts.
func (s *Service) showAll(ctx context.Context, a actor.Actor, all []App) ([]Shown, error) {
	grants, err := s.grants(ctx, a, all...)
	if err != nil {
		return nil, err
	}
	return s.showGranted(ctx, a, all, grants)
}

// showGranted is showAll with the actor's grants.
func (s *Service) showGranted(ctx context.Context, a actor.Actor, all []App, grants map[string]shares.Grant) ([]Shown, error) {
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
	originals := make([]string, len(all))
	for i, app := range all {
		originals[i] = original(app)
	}
	favorites, err := s.store.Favorites(ctx, a.Tenant, a.User, originals)
	if err != nil {
		return nil, err
	}
	out, drafted := make([]Shown, len(all)), []string{}
	reads, now := a, s.stamp()
	reads.ReadOnly = false // what may be seen does not depend on the credential
	for i, app := range all {
		grant := grants[original(app)]
		v := Shown{
			App: app, Permissions: PermissionsOf(a, app, grant), CanView: canView(a, app, grant), CanExport: canExport(a, app), Favorite: favorites[originals[i]], Inside: inside(a, app, grant),
		}
		if app.Lock.Lives(now) {
			v.EditLock, v.Held = app.Lock, app.Lock.Holds(a, now)
		}
		if at, ok := modified[app.LibraryID]; ok {
			v.ContentModifiedAt = &at
		}
		if app.EditingID != nil {
			v.Permissions = v.Permissions.ofDraft()
		} else if PermissionsOf(reads, app, grant).Write {
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

// at calls do with the place that an id or natural id names. If nothing is there, it calls it again with the exact name of the
// owner whom a natural id spells differently.
func (s *Service) at(ctx context.Context, tenant, id string, do func(Lookup) error) error {
	at, err := parseID(id)
	if err != nil {
		return err
	}
	err = do(at)
	if errs.CodeOf(err) != errs.NotFound || at.Owner == "" || s.o.CanonicalName == nil {
		return err
	}
	owner, failed := s.o.CanonicalName(ctx, tenant, at.Owner)
	if failed != nil || owner == at.Owner {
		return cmp.Or(failed, err)
	}
	at.Owner = owner
	return do(at)
}

// need is a permission that a method asks for, with the sentence for those who do not have it.
type need struct {
	has  func(Permissions) bool
	what string
	own  bool // not for apps that came from another tenant
}

var (
	toWrite       = need{func(p Permissions) bool { return p.Write }, "This needs the role designer at a report app and admin at a full app, and to own the app or to have a share with accessLevel 2.", false}
	toEdit        = need{func(p Permissions) bool { return p.Edit }, toWrite.what, true}
	toRun         = need{func(p Permissions) bool { return p.Run }, "This needs the role member or a higher one, and to own the app or to have a share of it.", false}
	toPurge       = need{func(p Permissions) bool { return p.Purge }, "This needs the role dataWizard or a higher one, and to own the app or to have a share with accessLevel 2.", false}
	toShare       = need{func(p Permissions) bool { return p.Share }, "This needs the role publisher or a higher one, and to own the app or to have a share with accessLevel 2.", false}
	toTag         = need{func(p Permissions) bool { return p.AssignTags }, "This needs the role designer or a higher one, and to own the app or to have a share with accessLevel 2.", false}
	toBind        = need{func(p Permissions) bool { return p.Bind }, "This needs the role member or a higher one, and to own the app or to have a share with accessLevel 2.", false}
	toChangeOwner = need{func(p Permissions) bool { return p.ChangeOwner }, "This needs the role admin, and to own the app or to have a share with accessLevel 2.", false}
)

var errManaged = errs.New(errs.Forbidden, "This app came from another tenant: change it there and deploy it again.")

// check returns errs.Forbidden when an actor does not have a permission on an app.
func (n need) check(a actor.Actor, app App, grant shares.Grant) error {
	switch {
	case n.has(PermissionsOf(a, app, grant)):
		return nil
	case a.ReadOnly:
		return errs.New(errs.Forbidden, "This token can only read.")
	case n.own && toWrite.has(PermissionsOf(a, app, grant)):
		return errManaged
	}
	return errs.New(errs.Forbidden, "%s %s", n.what, actor.RoleHint)
}

// caller is an actor who changes an app, and the grant that the actor has.
type caller struct {
	actor.Actor
	grant shares.Grant
}

// change changes an app whose caller has a permission. edit gets the caller and the stored app; what no edit sets is put back.
func (s *Service) change(ctx context.Context, id string, n need, edit func(ctx context.Context, who caller, app *App) error) error {
	_, _, err := s.changed(ctx, id, n, edit)
	return err
}

// changeShown is change that returns the app as the caller sees it.
func (s *Service) changeShown(ctx context.Context, id string, n need, edit func(ctx context.Context, who caller, app *App) error) (v Shown, err error) {
	if _, err := actor.From(ctx); err != nil { // before the transaction
		return Shown{}, err
	}
	err = s.store.InTx(ctx, func(ctx context.Context) error {
		app, who, err := s.changed(ctx, id, n, edit)
		if err != nil {
			return err
		}
		v, err = s.show(ctx, who.Actor, app, who.grant)
		return err
	})
	return v, err
}

// changed is change that returns the app and the caller.
func (s *Service) changed(ctx context.Context, id string, n need, edit func(ctx context.Context, who caller, app *App) error) (app App, who caller, err error) {
	a, err := actor.From(ctx)
	if err != nil {
		return App{}, caller{}, err
	}
	err = s.store.InTx(ctx, func(ctx context.Context) error {
		return s.at(ctx, a.Tenant, id, func(at Lookup) error {
			app, err = s.store.Update(ctx, a.Tenant, at, func(app *App) error {
				grant, err := s.grant(ctx, a, app)
				if err != nil {
					return err
				}
				if err := n.check(a, *app, grant); err != nil {
					return err
				}
				if app.EditingID != nil {
					if err := app.Lock.Check(a, s.stamp()); err != nil {
						return err
					}
				}
				who = caller{a, grant}
				app.UpdatedAt = s.stamp()
				return edit(ctx, who, app)
			})
			return err
		})
	})
	return app, who, err
}

// mayCreate returns errs.Forbidden if an actor may not create apps of a tier.
func (s *Service) mayCreate(a actor.Actor, t Tier) error {
	switch {
	case a.ReadOnly:
		return errs.New(errs.Forbidden, "This token can only read.")
	case a.Superuser || a.Role() >= writer(t):
		return nil
	}
	return errs.New(errs.Forbidden, "This needs the role %s or a higher one. %s", writer(t), actor.RoleHint)
}

// licensed returns errs.Forbidden if the tenant may not have apps of a tier.
func (s *Service) licensed(ctx context.Context, tenant string, t Tier) error {
	if t != Full {
		return nil
	}
	ok, err := s.o.Licensed(ctx, tenant, License)
	if err == nil && !ok {
		err = errs.New(errs.Forbidden, "This tenant has no license for apps of the type app; those of the type report need none. A superuser of the tenant adds \"apps\" to settings.licenses with PUT /api/tenant.")
	}
	return err
}

// Create adds an app with an empty library. It takes Type, Name, Slug, Description, Defn, Settings, FolderID, Datasets, Source and
// SourceID; the caller owns it. Values in the member env of Defn are secrets. It needs the role Designer, of a full app Admin and
// the license. Errors: errs.Forbidden; errs.Invalid naming the field; errs.Conflict for a taken slug.
func (s *Service) Create(ctx context.Context, in App) (Shown, error) {
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
	now := s.stamp()
	app := App{
		Tenant: a.Tenant, ID: s.o.NewID(), Type: in.Type, Name: in.Name, Slug: in.Slug, Description: in.Description, OwnerID: a.User,
		LibraryID: s.o.NewID(), FolderID: in.FolderID, Datasets: in.Datasets, Source: in.Source, SourceID: in.SourceID,
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
	return Shown{App: app, Permissions: PermissionsOf(a, app, shares.Grant{}), CanView: canView(a, app, shares.Grant{}), CanExport: canExport(a, app), Inside: true}, nil
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
	// Defn has the members of the definition that change, a JSON object: null removes one. Its member env has the variables that
	// change, as texts: null removes one, and entity.Mask keeps its value.
	Defn json.RawMessage
	// Settings has the members that change, a JSON object: null removes one.
	Settings json.RawMessage
}

// definition reports whether the edit changes what only a draft or an app of this tenant may change.
func (e Edit) definition(was, is App) bool {
	return string(was.Defn) != string(is.Defn) && e.Defn != nil && !onlyEnv(e.Defn)
}

// Update changes an app or a draft, found by id or natural id. It needs the permission write, for a change of the definition beyond
// its env edit. A report app can become a full one, which needs the license and the role Admin; the other way is errs.Invalid.
// Errors: errs.NotFound; errs.Forbidden; errs.Invalid naming the field; errs.Conflict for a taken slug, and for a draft that
// somebody else edits.
func (s *Service) Update(ctx context.Context, id string, edit Edit) (Shown, error) {
	return s.changeShown(ctx, id, toWrite, func(ctx context.Context, who caller, app *App) error {
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
func (s *Service) retier(ctx context.Context, who caller, app *App, to *Tier) error {
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
	if !who.Superuser && roleAt(who.Actor, *app, who.grant, shares.Write) < writer(*to) {
		return errs.New(errs.Forbidden, "This needs the role %s. %s", writer(*to), actor.RoleHint)
	}
	app.Type = *to
	return nil
}

// Delete marks an app, found by id or natural id, as deleted: no method but Restore and Purge finds it any more. A draft is not
// deleted but discarded. It needs the permission delete. Errors: errs.NotFound; errs.Forbidden; errs.Invalid for a draft.
func (s *Service) Delete(ctx context.Context, id string) error {
	return s.change(ctx, id, toWrite, func(_ context.Context, _ caller, app *App) error {
		if app.EditingID != nil {
			return errDraft("discard it with DELETE /api/apps/{id}/draft")
		}
		now := s.stamp()
		app.DeletedAt = &now
		return nil
	})
}

// Restore makes a deleted app, found by its id, an app as before; it loses its slug if another app of its owner has that now. It needs
// the permission restore. Errors: errs.NotFound; errs.Forbidden; errs.Conflict if another app gets the slug at this moment.
func (s *Service) Restore(ctx context.Context, id string) (v Shown, err error) {
	a, err := actor.From(ctx)
	if err != nil {
		return Shown{}, err
	}
	err = s.store.InTx(ctx, func(ctx context.Context) error {
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
			app.DeletedAt, app.Slug, app.UpdatedAt = nil, slug, s.stamp()
			return nil
		})
		if err != nil {
			return err
		}
		v, err = s.show(ctx, a, app, grant)
		return err
	})
	return v, err
}

// deleted returns a deleted app on which an actor has a permission, and locks it.
func (s *Service) deleted(ctx context.Context, a actor.Actor, id string, n need) (App, shares.Grant, error) {
	at, err := parseID(id)
	if err != nil || at.ID == "" {
		return App{}, shares.Grant{}, notFound()
	}
	at.Deleted = true
	app, grant, err := s.lock(ctx, a, at)
	if err != nil {
		return App{}, shares.Grant{}, err
	}
	return app, grant, n.check(a, app, grant)
}

// Purge removes a deleted app, found by its id, for good, with its draft, files, shares and tokens. It needs the permission purge.
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
		return s.remove(ctx, a.Tenant, []string{app.ID})
	})
}

// SetOwner passes an app and its draft on to a user or team. It needs the permission changeOwner. Errors: errs.NotFound;
// errs.Forbidden; errs.Invalid for an unknown principal and for a draft; errs.Conflict for a slug that the new owner has used.
func (s *Service) SetOwner(ctx context.Context, id, owner string) (v Shown, err error) {
	a, err := actor.From(ctx)
	if err != nil {
		return Shown{}, err
	}
	err = s.store.InTx(ctx, func(ctx context.Context) error {
		owner, err := s.principal(ctx, a.Tenant, owner)
		if err != nil {
			return err
		}
		held, err := s.store.Hold(ctx, a.Tenant, []string{owner})
		if err != nil {
			return err
		}
		v, err = s.changeShown(ctx, id, toChangeOwner, func(ctx context.Context, who caller, app *App) error {
			if app.EditingID != nil {
				return errDraft("its owner is that of the app")
			}
			if !held[owner] || owner == shares.Everyone {
				return errs.New(errs.Invalid, "ownerId must be a user or team of this tenant")
			}
			app.OwnerID = owner
			return nil
		})
		if err != nil {
			return err
		}
		draft, err := s.store.Draft(ctx, v.Tenant, v.ID)
		if errs.CodeOf(err) == errs.NotFound {
			return nil
		} else if err != nil {
			return err
		}
		_, err = s.store.Update(ctx, v.Tenant, Lookup{ID: draft.ID}, func(d *App) error {
			d.OwnerID, d.UpdatedAt = owner, s.stamp()
			return nil
		})
		return err
	})
	return v, err
}

// Copy adds an app of the caller with the definition, settings, bindings, tags and files of another one, and the name, "Copy of …"
// when it is nil. It has no slug, no shares, and no values of its env, which are secrets. It needs the permission copy, and what
// Create needs. Errors: errs.NotFound; errs.Forbidden; errs.Invalid for a name and for a draft.
func (s *Service) Copy(ctx context.Context, id string, name *string) (v Shown, err error) {
	a, err := actor.From(ctx)
	if err != nil {
		return Shown{}, err
	}
	err = s.store.InTx(ctx, func(ctx context.Context) error {
		if _, err := s.store.Hold(ctx, a.Tenant, []string{a.User}); err != nil {
			return err
		}
		of, grant, err := s.lockNamed(ctx, a, id)
		if err != nil {
			return err
		}
		if of.EditingID != nil {
			return errDraft("copy the app itself")
		}
		if err := s.licensed(ctx, a.Tenant, of.Type); err != nil {
			return err
		}
		if err := cmp.Or(toWrite.check(a, of, grant), s.mayCreate(a, of.Type)); err != nil {
			return err
		}
		now := s.stamp()
		app := App{
			Tenant: a.Tenant, ID: s.o.NewID(), Type: of.Type, Name: shortened("Copy of " + of.Name), Description: of.Description,
			OwnerID: a.User, Settings: of.Settings, LibraryID: s.o.NewID(), FolderID: of.FolderID, Datasets: of.Datasets, Tags: of.Tags,
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
		v, err = s.show(ctx, a, app, shares.Grant{})
		return err
	})
	return v, err
}

// remove removes apps with all that belongs to them. The caller has locked them.
func (s *Service) remove(ctx context.Context, tenant string, ids []string) error {
	gone, err := s.store.Remove(ctx, tenant, ids)
	if err != nil || len(gone) == 0 {
		return err
	}
	libraries := make([]string, len(gone))
	for i, app := range gone {
		libraries[i] = app.LibraryID
	}
	if err := s.files.Remove(ctx, tenant, libraries); err != nil {
		return err
	}
	return s.forget(ctx, tenant, gone)
}

// Tag is a tag of an app, by its id.
type Tag string

// Version is the same as long as the app has the tag.
func (t Tag) Version() string { return guard.Version(string(t)) }

// Tags returns the ids of the tags of an app that the caller sees, ordered. Errors: errs.NotFound.
func (s *Service) Tags(ctx context.Context, id string) ([]string, error) {
	app, err := s.seen(ctx, id)
	return app.Tags, err
}

// Datasets returns the datasets that an app is bound to which the caller sees, ordered by alias. Errors: errs.NotFound.
func (s *Service) Datasets(ctx context.Context, id string) ([]Dataset, error) {
	app, err := s.seen(ctx, id)
	return app.Datasets, err
}

// Ref returns a reference to an app that the caller sees, found by id or natural id, or to a draft. Errors: errs.NotFound.
func (s *Service) Ref(ctx context.Context, id string) (entity.Ref, error) {
	app, err := s.seen(ctx, id)
	if err != nil {
		return entity.Ref{}, err
	}
	return app.Ref(), nil
}

// seen returns an app that the caller sees, without Defn.
func (s *Service) seen(ctx context.Context, id string) (App, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return App{}, err
	}
	app, _, err := s.findHead(ctx, a, id)
	return app, err
}

// AddTag adds a tag to an app. It needs the permission assignTags. Errors: errs.NotFound, also for a tag that is not there;
// errs.Forbidden; errs.Invalid for too many.
func (s *Service) AddTag(ctx context.Context, id, tag string) error {
	return s.change(ctx, id, toTag, func(ctx context.Context, who caller, app *App) error {
		if app.EditingID != nil {
			return errDraft("tag the app itself")
		}
		key, at, err := findTag(ctx, *app, tag)
		switch {
		case err != nil || at >= 0:
			return err
		case len(app.Tags) == maxTags:
			return errs.New(errs.Invalid, "an app has at most %d tags", maxTags)
		}
		if err := s.known(ctx, who.Tenant, kindTag, key); errs.CodeOf(err) == errs.NotFound {
			return errTag
		} else if err != nil {
			return err
		}
		app.Tags = append(slices.Clone(app.Tags), key)
		slices.Sort(app.Tags)
		return nil
	})
}

// RemoveTag takes a tag off an app. It needs the permission assignTags. Errors: errs.NotFound, also for a tag that the app does not
// have; errs.Forbidden.
func (s *Service) RemoveTag(ctx context.Context, id, tag string) error {
	return s.change(ctx, id, toTag, func(ctx context.Context, _ caller, app *App) error {
		_, at, err := findTag(ctx, *app, tag)
		if err != nil {
			return err
		}
		if at < 0 {
			return errTag
		}
		app.Tags = slices.Delete(slices.Clone(app.Tags), at, at+1)
		return nil
	})
}

var errTag = errs.New(errs.NotFound, "Tag not found.")

// findTag returns the id of a tag in lower case and its place among those of an app, -1 for none, and checks the condition of a
// write to it.
func findTag(ctx context.Context, app App, tag string) (id string, at int, err error) {
	id, ok := uuids.Parse(tag)
	if !ok {
		return "", -1, errTag
	}
	if at = slices.Index(app.Tags, id); at < 0 {
		return id, at, guard.Of(ctx, "app-tag").Missing()
	}
	return id, at, guard.Check(ctx, "app-tag", Tag(id))
}

// Bind binds an alias of an app to a dataset: edit gets the binding that is there, or one with the alias alone. It needs the permission
// bind. Errors: errs.NotFound; errs.Forbidden; errs.Invalid naming the field, also for a dataset that is not there.
func (s *Service) Bind(ctx context.Context, id, alias string, edit func(*Dataset)) (bound Dataset, err error) {
	err = s.change(ctx, id, toBind, func(ctx context.Context, who caller, app *App) error {
		at, err := findDataset(ctx, *app, alias)
		if err != nil {
			return err
		}
		app.Datasets, bound = slices.Clone(app.Datasets), Dataset{Alias: alias}
		if at < 0 {
			at, app.Datasets = len(app.Datasets), append(app.Datasets, bound)
		}
		edit(&app.Datasets[at])
		bound = app.Datasets[at]
		if err := app.accept(); err != nil {
			return err
		}
		return s.knownDatasets(ctx, who.Tenant, []Dataset{bound})
	})
	return bound, err
}

// Unbind removes the binding of an alias of an app. It needs the permission bind. Errors: errs.NotFound, also for an alias that is not
// bound; errs.Forbidden.
func (s *Service) Unbind(ctx context.Context, id, alias string) error {
	return s.change(ctx, id, toBind, func(ctx context.Context, _ caller, app *App) error {
		at, err := findDataset(ctx, *app, alias)
		if err != nil {
			return err
		}
		if at < 0 {
			return errs.New(errs.NotFound, "Dependency not found.")
		}
		app.Datasets = slices.Delete(slices.Clone(app.Datasets), at, at+1)
		return nil
	})
}

// findDataset returns the place of the binding of an alias, -1 for none, and checks the condition of a write to it.
func findDataset(ctx context.Context, app App, alias string) (int, error) {
	at := slices.IndexFunc(app.Datasets, func(d Dataset) bool { return d.Alias == alias })
	if at < 0 {
		return at, guard.Of(ctx, "app-dependency").Missing()
	}
	return at, guard.Check(ctx, "app-dependency", app.Datasets[at])
}
