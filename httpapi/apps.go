package httpapi

import (
	"encoding/json"
	"io"
	"slices"

	"github.com/tenantcontent/tenantcontent/internal/rest"
	"github.com/tenantcontent/tenantcontent/internal/rest/openapi"

	"github.com/tenantcontent/tenantcontent/apps"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/hal"
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
			Gives:   openapi.OK(openapi.PageWith[appBody, appsBody]("inf:app")),
			Fails:   []int{400},
			Handle:  a.listApps,
		},
		{
			Method:  post,
			Pattern: "/api/apps",
			Name:    "createApp",
			Grants:  programs,
			Writes:  rest.InTx,
			Summary: "Add an app",
			Takes:   openapi.Input[newAppInput](),
			Gives:   openapi.Created(openapi.One[appBody]()),
			Fails:   []int{400, 403, 409},
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
			Gives:   openapi.OK(openapi.List[appRow]()),
			Handle:  a.listAllApps,
		},
		{
			Method:  get,
			Pattern: "/api/apps/drafts",
			Name:    "listAppDrafts",
			Grants:  programs,
			Query:   none,
			Summary: "The drafts of the apps that the caller may change",
			Gives:   openapi.OK(openapi.List[appRow]()),
			Handle:  a.listAppDrafts,
		},
		{
			Method:  get,
			Pattern: one,
			Name:    "getApp",
			Grants:  programs,
			Summary: "One app",
			Gives:   openapi.OK(openapi.One[appBody]()),
			Fails:   []int{404},
			Handle:  a.getApp,
		},
		{
			Method:  put,
			Pattern: one,
			Name:    "putApp",
			Grants:  programs,
			Row:     "app",
			Writes:  rest.InTx,
			Summary: "Change an app",
			Takes:   openapi.Update[appInput, appBody](),
			Gives:   openapi.OK(openapi.One[appBody]()),
			Fails:   []int{400, 403, 409},
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
			Gives:   openapi.OK(openapi.None()),
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
			Gives:   openapi.OK(openapi.One[appBody]()),
			Fails:   []int{404},
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
			Gives:   openapi.OK(openapi.None()),
			Fails:   []int{404},
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
			Gives:   openapi.Created(openapi.One[appBody]().Or(openapi.One[deployedAppBody]())),
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
			Takes:   openapi.Input[ownerInput](),
			Gives:   openapi.OK(openapi.One[appBody]()),
			Fails:   []int{400, 403},
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
			Gives:   openapi.OK(openapi.One[appBody]()),
			Fails:   []int{400},
			Handle:  a.editApp,
		},
		{
			Method:  get,
			Pattern: one + "/draft",
			Name:    "getAppDraft",
			Grants:  programs,
			Summary: "The draft of an app",
			Gives:   openapi.OK(openapi.One[appBody]()),
			Fails:   []int{404},
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
			Gives:   openapi.OK(openapi.None()),
			Fails:   []int{409},
			Handle:  n.deleteDraft,
		},
		{
			Method:  get,
			Pattern: one + "/draft/diff",
			Name:    "getAppDraftDiff",
			Grants:  programs,
			Heavy:   rest.Brief,
			Summary: "What the draft of an app changes",
			Gives:   openapi.OK(openapi.One[diffBody]()),
			Fails:   []int{404},
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
			Gives:   openapi.OK(openapi.One[deployedAppBody]()),
			Fails:   []int{400, 404, 409},
			Handle:  a.commitAppDraft,
		},

		{
			Method:  get,
			Pattern: one + "/contents",
			Name:    "listAppFiles",
			Grants:  programs,
			Query:   paged,
			Summary: "The files of an app",
			Gives:   openapi.OK(openapi.Page[libraryFileBody]("inf:content")),
			Fails:   []int{403},
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
			Gives:   openapi.OK(openapi.One[comparisonBody]()),
			Fails:   []int{400, 404},
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
			Gives:   openapi.OK(openapi.Bytes("*/*")),
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
			Takes:   openapi.Input[fileInput]().Or(openapi.Bytes("*/*")),
			Gives:   openapi.OK(openapi.One[libraryFileBody]()),
			Fails:   []int{400, 409},
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
			Gives:   openapi.OK(openapi.None()),
			Fails:   []int{404, 409},
			Handle:  n.deleteFile,
		},

		{
			Method:  get,
			Pattern: one + "/shares",
			Name:    "listAppShares",
			Grants:  rights,
			Query:   none,
			Summary: "With whom an app is shared",
			Gives:   openapi.OK(openapi.Whole[shareBody]("inf:app-share", "inf:app")),
			Handle:  n.listShares,
		},
		{
			Method:  get,
			Pattern: one + "/shares/:principalId",
			Name:    "getAppShare",
			Grants:  rights,
			Summary: "The share of one principal",
			Gives:   openapi.OK(openapi.One[shareBody]()),
			Fails:   []int{404},
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
			Takes:   openapi.Update[shareInput, shareBody](),
			Gives:   openapi.OK(openapi.One[shareBody]()),
			Fails:   []int{400, 403},
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
			Gives:   openapi.OK(openapi.None()),
			Handle:  n.deleteShare,
		},
	}
}

// listApps serves GET /api/apps: 200 and a page of the apps that the caller sees, without drafts
// and deleted apps, 20 unless limit says otherwise, ordered by name unless sort says otherwise
// (name, createdAt, updatedAt); q searches name, slug and description.
func (a appRoutes) listApps(r *rest.Request) (rest.Reply, error) {
	q, err := r.Page(20)
	if err != nil {
		return rest.Reply{}, err
	}
	page, err := a.Apps.List(r.Context(), q)
	if err != nil {
		return rest.Reply{}, err
	}
	extra := map[string]any{
		"aggs":        aggregatesBody{page.Total},
		"permissions": listPermissionsBody{a.Apps.CanCreate(r.Who)},
	}
	return rest.OK(rest.Collection(a.BaseURL, r, q, page, "inf:app", extra, func(v apps.Shown) hal.Resource {
		return a.app(v, false)
	}))
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
			dst, _ = hal.Append(dst, a.appRow(v)) // it has nothing that cannot be encoded
			return dst
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

// createApp serves POST /api/apps: 201 and the app, which the caller owns, with an empty library.
// 403 without the license for the type app, or below the role designer (for the type app admin);
// 409 for a slug that the caller has used.
func (a appRoutes) createApp(r *rest.Request) (rest.Reply, error) {
	in, err := rest.Decode[newAppInput](r)
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
	in, err := rest.Decode[ownerInput](r)
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
