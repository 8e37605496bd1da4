package httpapi

import (
	"encoding/json"
	"io"
	"maps"
	"reflect"
	"slices"

	"github.com/tenantcontent/tenantcontent/internal/rest"

	"github.com/tenantcontent/tenantcontent/apps"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/hal"
	"github.com/tenantcontent/tenantcontent/internal/text/jsonfill"
)

// appRoutes serves apps with their drafts, files and shares.
type appRoutes struct{ *api }

// routes returns the rows of apps, unless the host keeps them itself.
func (a appRoutes) routes() []rest.Route {
	if slices.Contains(a.HostKinds, apps.Kind) {
		return nil
	}
	const one = "/api/apps/:id"
	n := drafted{a.api, "apps", string(apps.Kind), "contents", a.Apps}
	return []rest.Route{
		{
			Method:  get,
			Pattern: "/api/apps",
			Name:    "listApps",
			Grants:  programs,
			Query:   searched,
			Summary: "The apps that the caller sees",
			Handle:  a.listApps,
		},
		{
			Method:  post,
			Pattern: "/api/apps",
			Name:    "createApp",
			Grants:  programs,
			Writes:  rest.InTx,
			Summary: "Add an app",
			Handle:  a.createApp,
		},
		{
			Method:  get,
			Pattern: "/api/apps-list",
			Name:    "listAllApps",
			Grants:  programs,
			Heavy:   rest.Brief,
			Query:   none,
			Summary: "All apps that the caller sees, in short",
			Handle:  a.listAllApps,
		},
		{
			Method:  get,
			Pattern: "/api/apps/drafts",
			Name:    "listAppDrafts",
			Grants:  programs,
			Query:   none,
			Summary: "The drafts of the apps that the caller may change",
			Handle:  a.listAppDrafts,
		},
		{Method: get, Pattern: one, Name: "getApp", Grants: programs, Summary: "One app", Handle: a.getApp},
		{
			Method:  put,
			Pattern: one,
			Name:    "putApp",
			Grants:  programs,
			Row:     "app",
			Writes:  rest.InTx,
			Summary: "Change an app",
			Handle:  a.putApp,
		},
		{
			Method:  del,
			Pattern: one,
			Name:    "deleteApp",
			Grants:  programs,
			Row:     "app",
			Writes:  rest.InTx,
			Options: rest.NoOptions{},
			Summary: "Delete an app, so that it can be restored",
			Handle:  a.deleteApp,
		},
		{
			Method:  post,
			Pattern: one + "/_restore",
			Name:    "restoreApp",
			Grants:  programs,
			Writes:  rest.InTx,
			Options: rest.NoOptions{},
			Summary: "Restore a deleted app",
			Handle:  a.restoreApp,
		},
		{
			Method:  post,
			Pattern: one + "/_purge",
			Name:    "purgeApp",
			Grants:  programs,
			Writes:  rest.InTx,
			Options: rest.NoOptions{},
			Summary: "Remove a deleted app for good",
			Handle:  a.purgeApp,
		},
		{
			Method:  post,
			Pattern: one + "/_copy",
			Name:    "copyApp",
			Grants:  programs,
			Heavy:   rest.Brief,
			Writes:  rest.InSlot,
			Options: copyAppInput{},
			Summary: "Copy an app",
			Handle:  a.copyApp,
		},
		{
			Method:  put,
			Pattern: one + "/owner",
			Name:    "putAppOwner",
			Grants:  rights,
			Row:     "app",
			Writes:  rest.InTx,
			Summary: "Pass an app on to another owner",
			Handle:  a.putAppOwner,
		},

		{
			Method:  post,
			Pattern: one + "/_edit",
			Name:    "editApp",
			Grants:  programs,
			Heavy:   rest.Brief,
			Writes:  rest.InTx,
			Options: forceInput{},
			Summary: "Begin a draft of an app, or go on with it",
			Handle:  a.editApp,
		},
		{
			Method:  get,
			Pattern: one + "/draft",
			Name:    "getAppDraft",
			Grants:  programs,
			Summary: "The draft of an app",
			Handle:  a.getAppDraft,
		},
		{
			Method:  del,
			Pattern: one + "/draft",
			Name:    "deleteAppDraft",
			Grants:  programs,
			Row:     "app",
			Writes:  rest.InTx,
			Options: rest.NoOptions{},
			Summary: "Discard the draft of an app",
			Handle:  n.deleteDraft,
		},
		{
			Method:  get,
			Pattern: one + "/draft/diff",
			Name:    "getAppDraftDiff",
			Grants:  programs,
			Heavy:   rest.Brief,
			Summary: "What the draft of an app changes",
			Handle:  n.getDiff,
		},
		{
			Method:  post,
			Pattern: one + "/draft/_commit",
			Name:    "commitAppDraft",
			Grants:  programs,
			Heavy:   rest.Brief,
			Writes:  rest.InSlot,
			Options: commitInput{},
			Summary: "Publish the draft of an app",
			Handle:  a.commitAppDraft,
		},

		{
			Method:  get,
			Pattern: one + "/contents",
			Name:    "listAppFiles",
			Grants:  programs,
			Query:   paged,
			Summary: "The files of an app",
			Handle:  n.listFiles,
		},
		{
			Method:  post,
			Pattern: one + "/_compare",
			Name:    "compareApp",
			Grants:  programs,
			Heavy:   rest.Brief,
			Options: compareInput{},
			Summary: "How the files of an app differ from others",
			Handle:  a.compareApp,
		},
		{
			Method:  get,
			Pattern: one + "/contents/*path",
			Name:    "getAppFile",
			Grants:  programs,
			Heavy:   rest.Brief,
			AnyType: true,
			Summary: "The bytes of an app's file",
			Handle:  n.getFile,
		},
		{
			Method:  put,
			Pattern: one + "/contents/*path",
			Name:    "putAppFile",
			Grants:  programs,
			Row:     "library-file",
			Heavy:   rest.Brief,
			Summary: "Write a file of an app",
			Handle:  n.putFile,
		},
		{
			Method:  del,
			Pattern: one + "/contents/*path",
			Name:    "deleteAppFile",
			Grants:  programs,
			Row:     "library-file",
			Writes:  rest.InTx,
			Options: rest.NoOptions{},
			Summary: "Remove a file of an app",
			Handle:  n.deleteFile,
		},

		{
			Method:  get,
			Pattern: one + "/shares",
			Name:    "listAppShares",
			Grants:  rights,
			Query:   none,
			Summary: "With whom an app is shared",
			Handle:  n.listShares,
		},
		{
			Method:  get,
			Pattern: one + "/shares/:principalId",
			Name:    "getAppShare",
			Grants:  rights,
			Summary: "The share of one principal",
			Handle:  n.getShare,
		},
		{
			Method:  put,
			Pattern: one + "/shares/:principalId",
			Name:    "putAppShare",
			Grants:  rights,
			Row:     "app-share",
			Writes:  rest.InTx,
			Summary: "Share an app, or change a share",
			Handle:  n.putShare,
		},
		{
			Method:  del,
			Pattern: one + "/shares/:principalId",
			Name:    "deleteAppShare",
			Grants:  rights,
			Row:     "app-share",
			Writes:  rest.InTx,
			Options: rest.NoOptions{},
			Summary: "End a share",
			Handle:  n.deleteShare,
		},
	}
}

// appBody is an app as the API writes it.
type appBody struct {
	Tenant             string          `json:"tenant"`
	ID                 string          `json:"id"`
	Type               string          `json:"type"`
	Name               string          `json:"name"`
	Slug               *string         `json:"slug"`
	NaturalID          string          `json:"naturalId"`
	Description        *string         `json:"description"`
	OwnerID            string          `json:"ownerId"`
	Defn               json.RawMessage `json:"defn"`
	Settings           json.RawMessage `json:"settings"`
	Origin             *string         `json:"origin"`
	LibraryID          *string         `json:"libraryId"` // null for those who do not see the insides
	EditingID          *string         `json:"editingId"`
	EditingSession     *string         `json:"editingSession"`
	EditingHeartbeatAt *hal.Time       `json:"editingHeartbeatAt"`
	EditingLockedBy    *string         `json:"editingLockedBy"`
	EditingHeld        bool            `json:"editingHeld"`
	Shared             bool            `json:"shared"`
	Favorite           bool            `json:"favorite"`
	IsManaged          bool            `json:"isManaged"`
	// a mask; null for none, and for those who do not see the insides
	WebhookSecret *string `json:"webhookSecret"`
	FolderID      *string `json:"folderId"`
	Source        *string `json:"source"`
	SourceID      *string `json:"sourceId"`
	// always null: the password of the role of the app's SQL database goes nowhere
	DBRolePassword    *string   `json:"dbRolePassword"`
	DefnUpdatedAt     *hal.Time `json:"defnUpdatedAt"`
	ContentModifiedAt *hal.Time `json:"contentModifiedAt"`
	DeployedAt        *hal.Time `json:"deployedAt"`
	// its webhooks and agents run as nobody until the owner deploys it
	AwaitsOwner bool               `json:"awaitsOwner,omitempty"`
	DeletedAt   *hal.Time          `json:"deletedAt"`
	CreatedAt   hal.Time           `json:"createdAt"`
	UpdatedAt   hal.Time           `json:"updatedAt"`
	Permissions appPermissionsBody `json:"permissions"`
}

type appPermissionsBody struct {
	AssignTags  bool `json:"assignTags"`
	Bind        bool `json:"bind"`
	ChangeOwner bool `json:"changeOwner"`
	Copy        bool `json:"copy"`
	Delete      bool `json:"delete"`
	Edit        bool `json:"edit"`
	Manage      bool `json:"manage"`
	Purge       bool `json:"purge"`
	Restore     bool `json:"restore"`
	Run         bool `json:"run"`
	Share       bool `json:"share"`
	SwitchRoles bool `json:"switchRoles"`
	Write       bool `json:"write"`
}

// app encodes an app. With one it is the answer itself; a row of a list has fewer links.
func (a appRoutes) app(v apps.Shown, one bool) hal.Resource {
	may := appPermissionsBody(v.Permissions)
	type beside struct {
		May                        appPermissionsBody
		Modified                   *hal.Time
		HasDraft, Inside, Examines bool
		Favorite, Chats            bool
		LockedBy                   *string
		Held                       bool
		Owner, Type                string // of a draft those of its app
		Managed, Shared            bool
	}
	also := beside{
		may, hal.OrNull(v.ContentModifiedAt), v.HasDraft, v.Inside, v.Examines, v.Favorite,
		v.Chats, v.EditLock.LockedBy, v.Held, v.OwnerID, string(v.Type), v.IsManaged, v.Shared,
	}
	return hal.Resource{Links: a.appLinks(v, one), Row: v, Beside: also, Value: appBody{
		Tenant: v.Tenant, ID: v.ID, Type: string(v.Type),
		Name: v.Name, Slug: v.Slug, NaturalID: v.NaturalID(), Description: v.Description,
		OwnerID: v.OwnerID, Defn: v.Definition(), Settings: v.Settings,
		Origin: v.Origin, LibraryID: libraryOf(v), EditingID: v.EditingID,
		EditingSession: v.EditLock.Session, EditingHeartbeatAt: hal.OrNull(v.EditLock.HeartbeatAt),
		EditingLockedBy: v.EditLock.LockedBy, EditingHeld: v.Held,
		Shared: v.Shared, Favorite: v.Favorite, IsManaged: v.IsManaged,
		WebhookSecret: webhookSecretOf(v), FolderID: v.FolderID, Source: v.Source, SourceID: v.SourceID,
		DefnUpdatedAt: hal.OrNull(v.DefnUpdatedAt), ContentModifiedAt: hal.OrNull(v.ContentModifiedAt),
		DeployedAt: hal.OrNull(v.DeployedAt), AwaitsOwner: v.AwaitsOwner, DeletedAt: hal.OrNull(v.DeletedAt),
		CreatedAt: hal.Time(v.CreatedAt), UpdatedAt: hal.Time(v.UpdatedAt), Permissions: may,
	}}
}

// libraryOf returns the id of an app's library for those who see its insides.
func libraryOf(v apps.Shown) *string {
	if !v.Inside {
		return nil
	}
	return &v.LibraryID
}

// webhookSecretOf returns what stands for the secret of an app's webhooks, if there is one, for
// those who see its insides.
func webhookSecretOf(v apps.Shown) *string {
	if !v.Inside || v.WebhookSecret == "" {
		return nil
	}
	mask := entity.Mask
	return &mask
}

func (a appRoutes) appLinks(v apps.Shown, one bool) hal.Links {
	self := a.href("apps", v.ID)
	links := a.owned(hal.Self(self), v.OwnerID).
		With("inf:app", self).With(
		"inf:apps", a.href("apps"),
	).With("inf:apps-list", a.href("apps-list")).With("inf:apps-drafts", a.href("apps", "drafts")).
		With(
			"inf:apps-recent", a.href("apps", "recent"),
		).With("inf:favorite", self+"/favorite").With("inf:app-tags", self+"/tags").With("inf:app-roles", self+"/roles")
	links["inf:app-tag"] = hal.Link{Href: self + "/tags/{tagId}", Templated: true}
	if v.EditingID != nil {
		links.With("inf:draft", self).With("inf:app", a.href("apps", *v.EditingID))
	} else if v.HasDraft {
		links.With("inf:draft", self+"/draft")
	}
	if v.Inside {
		links.With("inf:app-shares", self+"/shares").With("inf:app-stats", self+"/stats").
			With("inf:app-events", self+"/events").With("inf:app-agents", self+"/agents")
		links["inf:app-share"] = hal.Link{Href: self + "/shares/{principalId}", Templated: true}
	}
	if v.Examines {
		links.With("inf:app-messages", self+"/messages")
	}
	if v.Permissions.Write && v.EditingID == nil {
		links.With("inf:app-webhooks", self+"/webhooks")
	}
	if v.Permissions.Share && v.EditingID == nil {
		links.With("inf:app-tokens", self+"/tokens")
	}
	if v.Permissions.Share && v.EditingID == nil {
		links["share"] = hal.Link{Href: self + "/share?token={token}", Templated: true}
	}
	if v.CanView {
		links["inf:print"] = hal.Link{
			All: []hal.Link{{Href: self + "/view?print=portrait"}, {Href: self + "/view?print=landscape"}},
		}
	}
	if v.Permissions.Edit {
		links.With("edit", self+"/_edit")
	}
	if v.CanView && v.Chats {
		links.With(
			"inf:app-chat", self+"/chat",
		).With("inf:app-suggestions", self+"/suggestions").With("inf:app-suggestions-ai", self+"/suggestions-ai")
	}
	if v.Inside {
		links.With("inf:app-stats-api", self+"/stats/api").With("inf:app-stats-tables", self+"/stats/tables")
	}
	if v.Permissions.Write {
		links.With("inf:migrate", self+"/_migrate")
	}
	if v.Permissions.Write && v.EditingID == nil {
		links.With("inf:deploy", self+"/_deploy")
	}
	if v.CanExport {
		links.With("inf:export-bundle", self+"/_export")
	}
	if v.Permissions.Copy && v.EditingID == nil {
		links.With("inf:copy", self+"/_copy")
	}
	if !one {
		return links
	}
	links.With("inf:app-dependencies", self+"/dependencies")
	links["inf:app-dependency"] = hal.Link{Href: self + "/dependencies/{name}", Templated: true}
	if v.Inside {
		links.With(
			"inf:library", a.href("libraries", v.LibraryID),
		).With(
			"inf:library-contents", a.href("libraries", v.LibraryID, "contents"),
		).With("inf:app-environment", self+"/environment")
	}
	if v.Permissions.Write {
		links["inf:app-environment-var"] = hal.Link{Href: self + "/environment/{key}", Templated: true}
	}
	if v.Permissions.Write && v.Chats {
		links.With(
			"inf:app-suggest-icon", self+"/_suggest-icon",
		).With("inf:app-modernize-manifest", self+"/_modernize-manifest")
	}
	if v.CanView {
		links.With("inf:entrypoint", self+"/view")
	}
	switch {
	case v.EditingID != nil:
		links.With("inf:app-draft-diff", a.href("apps", *v.EditingID, "draft", "diff"))
	case v.HasDraft:
		links.With("inf:app-draft-diff", self+"/draft/diff")
	}
	return links
}

// shownApp replies with the result of a service: 200 and the app.
func (a appRoutes) shownApp(v apps.Shown, err error) (rest.Reply, error) {
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.OK(a.deployedApp(v))
}

// deployedApp encodes an app with what was deployed, if anything.
func (a appRoutes) deployedApp(v apps.Shown) hal.Resource {
	res := a.app(v, true)
	if v.Deployed != nil {
		res.Value = struct {
			appBody
			Deployed deployedBody `json:"deployed"`
		}{res.Value.(appBody), newDeployedBody(*v.Deployed)}
	}
	return res
}

// listApps serves GET /api/apps: 200 and a page of the apps that the caller sees, without drafts
// and deleted apps, 20 unless limit says otherwise, ordered by name unless sort says otherwise
// (name, createdAt, updatedAt); q searches name, slug and description.
func (a appRoutes) listApps(r *rest.Request) (rest.Reply, error) {
	q, err := r.Page(20)
	if err != nil {
		return rest.Reply{}, err
	}
	page, err := a.Apps.Page(r.Context(), q)
	if err != nil {
		return rest.Reply{}, err
	}
	extra := map[string]any{
		"aggs":        map[string]int{"total": page.Total},
		"permissions": map[string]bool{"create": a.Apps.CanCreate(r.Who)},
	}
	return rest.OK(rest.Collection(a.BaseURL, r, q, page, "inf:app", extra, func(v apps.Shown) hal.Resource {
		return a.app(v, false)
	}))
}

// appRow is an app in the plain list.
type appRow struct {
	ID          string             `json:"id"`
	NaturalID   string             `json:"naturalId"`
	Type        string             `json:"type"`
	Name        string             `json:"name"`
	Slug        *string            `json:"slug"`
	Description *string            `json:"description"`
	OwnerID     string             `json:"ownerId"`
	Shared      bool               `json:"shared"`
	Favorite    bool               `json:"favorite"`
	IsManaged   bool               `json:"isManaged"`
	FolderID    *string            `json:"folderId"`
	EditingID   *string            `json:"editingId"`
	LockedBy    *string            `json:"editingLockedBy"`
	CreatedAt   hal.Time           `json:"createdAt"`
	UpdatedAt   hal.Time           `json:"updatedAt"`
	Permissions appPermissionsBody `json:"permissions"`
}

func (a appRoutes) appRow(v apps.Shown) appRow {
	return appRow{
		v.ID, v.NaturalID(), string(v.Type), v.Name, v.Slug, v.Description,
		v.OwnerID, v.Shared, v.Favorite, v.IsManaged, v.FolderID, v.EditingID, v.EditLock.LockedBy,
		hal.Time(v.CreatedAt), hal.Time(v.UpdatedAt), appPermissionsBody(v.Permissions),
	}
}

// listAllApps serves GET /api/apps-list: 200 and an array of all apps that the caller sees, without
// definitions, ordered by name.
func (a appRoutes) listAllApps(r *rest.Request) (rest.Reply, error) {
	return rest.Streamed(func(w io.Writer) error {
		return rest.WriteArray(w, a.Apps.All(r.Context()), func(dst []byte, v apps.Shown) []byte {
			row, _ := json.Marshal(a.appRow(v)) // it has nothing that cannot be encoded
			return append(dst, row...)
		})
	})
}

// listAppDrafts serves GET /api/apps/drafts: 200 and an array of the drafts of the apps that the
// caller may change.
func (a appRoutes) listAppDrafts(r *rest.Request) (rest.Reply, error) {
	drafts, err := a.Apps.Drafts(r.Context())
	if err != nil {
		return rest.Reply{}, err
	}
	rows := make([]appRow, len(drafts))
	for i, d := range drafts {
		rows[i] = a.appRow(d)
	}
	return rest.OK(rows)
}

// datasetInput is what binds an alias to a dataset.
type datasetInput struct {
	DatasetID string             `json:"datasetId"`
	Alias     string             `json:"alias"`
	Label     rest.Field[string] `json:"label"`
}

// createApp serves POST /api/apps: 201 and the app, which the caller owns, with an empty library.
// 403 without the license for the type app, or below the role designer (for the type app admin);
// 409 for a slug that the caller has used.
func (a appRoutes) createApp(r *rest.Request) (rest.Reply, error) {
	in, err := rest.Decode[struct {
		appInput
		Datasets []datasetInput `json:"datasets"`
	}](r)
	if err != nil {
		return rest.Reply{}, err
	}
	var v apps.App
	if in.Type != nil {
		v.Type = apps.Tier(*in.Type)
	}
	if in.Name != nil {
		v.Name = *in.Name
	}
	v.Slug, v.Description, v.FolderID, v.Source, v.SourceID =
		in.Slug.Value, in.Description.Value, in.FolderID.Value, in.Source.Value, in.SourceID.Value
	if v.Defn, v.Settings, err = in.objects(); err != nil {
		return rest.Reply{}, err
	}
	for _, d := range in.Datasets {
		bound := apps.Dataset{Alias: d.Alias}
		if bound.DatasetID, err = a.entityID(r.Context(), kindDataset, d.DatasetID); err != nil {
			return rest.Reply{}, err
		}
		d.Label.Apply(&bound.Label)
		v.Datasets = append(v.Datasets, bound)
	}
	app, err := a.Apps.Create(r.Context(), v)
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.Created(a.href("apps", app.ID), a.app(app, true))
}

// getApp serves GET /api/apps/{id}, an id or a natural id: 200 and the app; 404 for one that the
// caller does not see. A draft is found by its id, by those who may change the app.
func (a appRoutes) getApp(r *rest.Request) (rest.Reply, error) {
	return a.shownApp(a.Apps.Get(r.Context(), r.Param("id")))
}

// appInput is the body of a write to an app. A field that is left out stays as it is; of defn and
// settings, so does a member.
type appInput struct {
	Type        *string                     `json:"type"`
	Name        *string                     `json:"name"`
	Slug        rest.Field[string]          `json:"slug"`
	Description rest.Field[string]          `json:"description"`
	Defn        rest.Field[json.RawMessage] `json:"defn"`
	Settings    rest.Field[json.RawMessage] `json:"settings"`
	FolderID    rest.Field[string]          `json:"folderId"`
	Source      rest.Field[string]          `json:"source"`
	SourceID    rest.Field[string]          `json:"sourceId"`
}

// objects returns the members of defn and settings that are given, nil for none.
func (in appInput) objects() (defn, settings json.RawMessage, err error) {
	for name, f := range map[string]rest.Field[json.RawMessage]{"defn": in.Defn, "settings": in.Settings} {
		if f.Set && f.Value == nil {
			return nil, nil, errs.New(errs.Invalid, "%s must be a JSON object: a member that is null is removed", name)
		}
	}
	in.Defn.Apply(&defn)
	in.Settings.Apply(&settings)
	return defn, settings, nil
}

// given returns the value of a field that is part of a body, as a change of it.
func given[T any](f rest.Field[T]) **T {
	if !f.Set {
		return nil
	}
	return &f.Value
}

// putApp serves PUT /api/apps/{id}: 200 and the changed app or draft; what the body leaves out
// stays, also members of defn, of defn.env and of settings, of which null removes one. A mask keeps
// the value of a variable. The type can change from report to app. 403 without the permission
// write; 409 for a taken slug, and for a draft that somebody else edits.
func (a appRoutes) putApp(r *rest.Request) (rest.Reply, error) {
	in, err := rest.DecodeUpdate[appInput](r, appBody{AwaitsOwner: true})
	if err != nil {
		return rest.Reply{}, err
	}
	edit := apps.Edit{
		Name: in.Name, Slug: given(in.Slug),
		Description: given(in.Description), FolderID: given(in.FolderID), Source: given(in.Source),
		SourceID: given(in.SourceID),
	}
	if in.Type != nil {
		tier := apps.Tier(*in.Type)
		edit.Type = &tier
	}
	if edit.Defn, edit.Settings, err = in.objects(); err != nil {
		return rest.Reply{}, err
	}
	return a.shownApp(a.Apps.Update(r.Context(), r.Param("id"), edit))
}

// deleteApp serves DELETE /api/apps/{id}: 200; the app is gone from everywhere but _restore and
// _purge; 404; 403.
func (a appRoutes) deleteApp(r *rest.Request) (rest.Reply, error) {
	if err := a.Apps.Delete(r.Context(), r.Param("id")); err != nil {
		return rest.Reply{}, err
	}
	return rest.Done()
}

// restoreApp serves POST /api/apps/{id}/_restore with the id of a deleted app: 200 and the app,
// without its slug if that is taken by now; 404; 403.
func (a appRoutes) restoreApp(r *rest.Request) (rest.Reply, error) {
	return a.shownApp(a.Apps.Restore(r.Context(), r.Param("id")))
}

// purgeApp serves POST /api/apps/{id}/_purge with the id of a deleted app: 200; 404 for one that is
// not deleted; 403.
func (a appRoutes) purgeApp(r *rest.Request) (rest.Reply, error) {
	if err := a.Apps.Purge(r.Context(), r.Param("id")); err != nil {
		return rest.Reply{}, err
	}
	return rest.Done()
}

// copyAppInput are the options of _copy.
type copyAppInput struct {
	Name *string `json:"name"`
}

// copyApp serves POST /api/apps/{id}/_copy: 201 and the copy, which the caller owns, with the files
// and without shares, slug and values of variables; 404; 403; 400 for a draft. A copy with handlers
// or migrations is deployed if the app was, unless that came from another tenant, and has what
// deployApp answers beside it; why it could not be deployed is in deployed.warnings.
func (a appRoutes) copyApp(r *rest.Request) (rest.Reply, error) {
	in, err := rest.Options[copyAppInput](r)
	if err != nil {
		return rest.Reply{}, err
	}
	leave, err := r.Slot()
	if err != nil {
		return rest.Reply{}, err
	}
	defer leave()
	v, err := a.Apps.Copy(r.Context(), r.Param("id"), in.Name)
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.Created(a.href("apps", v.ID), a.deployedApp(v))
}

// putAppOwner serves PUT /api/apps/{id}/owner {ownerId}: 200 and the app; 400 for an unknown
// principal; 404; 403.
func (a appRoutes) putAppOwner(r *rest.Request) (rest.Reply, error) {
	in, err := rest.Decode[struct {
		OwnerID string `json:"ownerId"`
	}](r)
	if err != nil {
		return rest.Reply{}, err
	}
	if in.OwnerID == "" {
		return rest.Reply{}, errs.New(errs.Invalid, "ownerId is required: a username, or the id of a team")
	}
	return a.shownApp(a.Apps.SetOwner(r.Context(), r.Param("id"), in.OwnerID))
}

// editApp serves POST /api/apps/{id}/_edit: 200 and the draft, whose lock the caller's session has
// now, or another one that editingLockedBy names; with force=true the caller's in any case. 404;
// 403.
func (a appRoutes) editApp(r *rest.Request) (rest.Reply, error) {
	force, err := forceOf(r)
	if err != nil {
		return rest.Reply{}, err
	}
	return a.shownApp(a.Apps.Edit(r.Context(), r.Param("id"), force))
}

// getAppDraft serves GET /api/apps/{id}/draft: 200 and the draft; 404; 403.
func (a appRoutes) getAppDraft(r *rest.Request) (rest.Reply, error) {
	return a.shownApp(a.Apps.Draft(r.Context(), r.Param("id")))
}

// commitAppDraft serves POST /api/apps/{id}/draft/_commit: 200 and the app as it is published, with
// what deployApp answers beside it; 404; 403; 409 while somebody else edits the draft, or when the
// app has changed since the draft began, unless force=true; 400 with what is wrong in a manifest
// that cannot be read, unless force=true, in a handler or in a migration, and with strict=true as
// deployApp has.
func (a appRoutes) commitAppDraft(r *rest.Request) (rest.Reply, error) {
	in, err := rest.Options[commitInput](r)
	if err != nil {
		return rest.Reply{}, err
	}
	var o apps.PublishOptions
	in.Force.Apply(&o.Force)
	in.Strict.Apply(&o.Strict)
	leave, err := r.Slot()
	if err != nil {
		return rest.Reply{}, err
	}
	defer leave()
	return a.shownApp(a.Apps.Commit(r.Context(), r.Param("id"), o))
}

// commitInput are the options of the _commit of an app's draft.
type commitInput struct {
	Force  rest.Field[bool] `json:"force"`
	Strict rest.Field[bool] `json:"strict"`
}

// compareInput are the options of _compare.
type compareInput struct {
	Files digests `json:"files"`
}

// digests are the SHA-256 of files by path.
type digests map[string]string

// FillField implements fieldFiller. Its error names the path whose value is no string.
func (d *digests) FillField(_ *jsonfill.Filler, raw json.RawMessage, path string) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil || members == nil {
		return jsonfill.WrongType(path, reflect.TypeFor[digests]())
	}
	*d = make(digests, len(members))
	for _, name := range slices.Sorted(maps.Keys(members)) {
		var digest *string
		if err := json.Unmarshal(members[name], &digest); err != nil || digest == nil {
			return errs.New(errs.Invalid, "%s: each value must be a string, the SHA-256 of the file", path)
		}
		(*d)[name] = *digest
	}
	return nil
}

// comparisonBody is how the files of an app differ, as the API writes it.
type comparisonBody struct {
	Tenant       string            `json:"tenant"`
	ID           string            `json:"id"`
	EditingID    *string           `json:"editingId"`
	DraftID      *string           `json:"draftId"`
	Unchanged    int               `json:"unchanged"`
	Missing      []string          `json:"missing"`
	Differs      []string          `json:"differs"`
	Extra        []string          `json:"extra"`
	Digests      map[string]string `json:"digests"`
	MaxFileBytes int64             `json:"maxFileBytes"`
}

// compareApp serves POST /api/apps/{id}/_compare {files: {path: sha256}} with at most 10,000 files:
// 200 and the paths that the app or draft does not have (missing), has with other bytes (differs)
// and has in addition (extra), how many are the same (unchanged), the SHA-256 of the app's files
// that differ or are in addition (digests), the id of the app's draft (draftId) and the most bytes
// of a file (maxFileBytes). It changes nothing. 400 for a path that no file can have and for what
// is no SHA-256; 404; 403 for those who may only run the app.
func (a appRoutes) compareApp(r *rest.Request) (rest.Reply, error) {
	in, err := rest.Options[compareInput](r)
	if err != nil {
		return rest.Reply{}, err
	}
	if in.Files == nil {
		return rest.Reply{}, errs.New(
			errs.Invalid, "files is required: an object of the SHA-256 of each file by its path",
		)
	}
	c, err := a.Apps.Compare(r.Context(), r.Param("id"), in.Files)
	if err != nil {
		return rest.Reply{}, err
	}
	list := func(paths []string) []string { return append([]string{}, paths...) }
	links := hal.Self(a.href(
		"apps", r.Param("id"), "_compare",
	)).With("inf:app", a.href("apps", r.Param("id"))).With("inf:contents", a.href("apps", r.Param("id"), "contents"))
	return rest.OK(hal.Resource{Links: links, Value: comparisonBody{
		c.App.Tenant, c.App.ID, c.App.EditingID, c.DraftID, c.Unchanged,
		list(c.Missing), list(c.Differs), list(c.Extra), c.Digests, c.MaxFile,
	}})
}
