package httpapi

import (
	"slices"
	"strings"

	"github.com/tenantcontent/tenantcontent/internal/rest"
	"github.com/tenantcontent/tenantcontent/internal/rest/openapi"

	"github.com/tenantcontent/tenantcontent/apps"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/hal"
	"github.com/tenantcontent/tenantcontent/internal/text/uuids"
)

// appPartRoutes serves the environment, the datasets and the tags of apps.
type appPartRoutes struct{ *api }

// routes returns the rows of the route table, unless the host keeps apps itself.
func (a appPartRoutes) routes() []rest.Route {
	if slices.Contains(a.HostKinds, apps.Kind) {
		return nil
	}
	const one = "/api/apps/:id"
	n := drafted{a.api, "apps", string(apps.Kind), "contents", a.Apps}
	return []rest.Route{
		{
			Method:  get,
			Pattern: one + "/environment",
			Name:    "getAppEnvironment",
			Grants:  programs,
			Summary: "The names of an app's variables",
			Gives:   openapi.OK(openapi.One[environmentBody]()),
			Handle:  n.getAppEnvironment,
		},
		{
			Method:  put,
			Pattern: one + "/environment/:key",
			Name:    "putAppVariable",
			Grants:  programs,
			Row:     "app",
			Writes:  rest.InTx,
			Summary: "Set a variable of an app",
			Takes:   openapi.Input[secretInput](),
			Gives:   openapi.OK(openapi.One[appBody]()),
			Handle:  a.putAppVariable,
		},
		{
			Method:  del,
			Pattern: one + "/environment/:key",
			Name:    "deleteAppVariable",
			Grants:  programs,
			Row:     "app",
			Writes:  rest.InTx,
			Options: rest.NoOptions{},
			Summary: "Remove a variable of an app",
			Gives:   openapi.OK(openapi.None()),
			Fails:   []int{404},
			Handle:  a.deleteAppVariable,
		},
		{
			Method:  get,
			Pattern: one + "/dependencies",
			Name:    "listAppDependencies",
			Grants:  programs,
			Query:   none,
			Summary: "The datasets that an app uses",
			Gives:   openapi.OK(openapi.Whole[dependencyBody]("inf:app-dependency", "inf:app")),
			Handle:  a.listAppDependencies,
		},
		{
			Method:  get,
			Pattern: one + "/dependencies/:name",
			Name:    "getAppDependency",
			Grants:  programs,
			Summary: "What an alias of an app is bound to",
			Gives:   openapi.OK(openapi.One[dependencyBody]()),
			Handle:  a.getAppDependency,
		},
		{
			Method:  put,
			Pattern: one + "/dependencies/:name",
			Name:    "putAppDependency",
			Grants:  programs,
			Row:     "app-dependency",
			Writes:  rest.InTx,
			Summary: "Bind an alias of an app to a dataset",
			Takes:   openapi.Update[dependencyInput, dependencyBody](),
			Gives:   openapi.OK(openapi.One[dependencyBody]()),
			Fails:   []int{400},
			Handle:  a.putAppDependency,
		},
		{
			Method:  del,
			Pattern: one + "/dependencies/:name",
			Name:    "deleteAppDependency",
			Grants:  programs,
			Row:     "app-dependency",
			Writes:  rest.InTx,
			Options: rest.NoOptions{},
			Summary: "Unbind an alias of an app",
			Gives:   openapi.OK(openapi.None()),
			Fails:   []int{404},
			Handle:  a.deleteAppDependency,
		},
		{
			Method:  get,
			Pattern: one + "/tags",
			Name:    "listAppTags",
			Grants:  programs,
			Query:   none,
			Summary: "The tags of an app",
			Gives:   openapi.OK(openapi.Whole[tagBody]("inf:app-tag", "inf:app")),
			Handle:  a.listAppTags,
		},
		{
			Method:  get,
			Pattern: one + "/tags/:tagId",
			Name:    "getAppTag",
			Grants:  programs,
			Summary: "One tag of an app",
			Gives:   openapi.OK(openapi.One[tagBody]()),
			Handle:  a.getAppTag,
		},
		{
			Method:  put,
			Pattern: one + "/tags/:tagId",
			Name:    "putAppTag",
			Grants:  programs,
			Row:     "app-tag",
			Writes:  rest.InTx,
			Summary: "Tag an app",
			Takes:   openapi.None(),
			Gives:   openapi.OK(openapi.One[tagBody]()),
			Fails:   []int{404},
			Handle:  a.putAppTag,
		},
		{
			Method:  del,
			Pattern: one + "/tags/:tagId",
			Name:    "deleteAppTag",
			Grants:  programs,
			Row:     "app-tag",
			Writes:  rest.InTx,
			Options: rest.NoOptions{},
			Summary: "Take a tag off an app",
			Gives:   openapi.OK(openapi.None()),
			Handle:  a.deleteAppTag,
		},
	}
}

// environmentBody has the names of an app's variables.
type environmentBody struct {
	Env map[string]*string `json:"env"`
}

// Relations implements openapi.Related.
func (environmentBody) Relations() openapi.Relations {
	return openapi.Relations{Links: []string{"inf:app", "inf:app-environment-var"}}
}

// getAppEnvironment serves GET /api/apps/{id}/environment: 200 and {env: {name: mask}}, with null
// in place of the mask for a variable that the manifest declares and that has no value; 404; 403.
func (n drafted) getAppEnvironment(r *rest.Request) (rest.Reply, error) {
	all, err := n.Apps.Variables(r.Context(), r.Param("id"))
	if err != nil {
		return rest.Reply{}, err
	}
	var names, unset []string
	for _, v := range all {
		if v.HasValue {
			names = append(names, v.Name)
		} else {
			unset = append(unset, v.Name)
		}
	}
	return n.secretNames(r, "environment", "inf:app-environment-var", names, unset, func(masks map[string]*string) any {
		return environmentBody{masks}
	})
}

// putAppVariable serves PUT /api/apps/{id}/environment/{key} {value}: 200 and the app; 400 for a
// bad name or value; 404; 403.
func (a appPartRoutes) putAppVariable(r *rest.Request) (rest.Reply, error) {
	value, err := secretValueOf(r)
	if err != nil {
		return rest.Reply{}, err
	}
	return appRoutes(a).shownApp(a.Apps.PutVariable(r.Context(), r.Param("id"), r.Param("key"), value))
}

// deleteAppVariable serves DELETE /api/apps/{id}/environment/{key}: 200; 404; 403.
func (a appPartRoutes) deleteAppVariable(r *rest.Request) (rest.Reply, error) {
	if err := a.Apps.DeleteVariable(r.Context(), r.Param("id"), r.Param("key")); err != nil {
		return rest.Reply{}, err
	}
	return rest.Done()
}

// dependencyBody is the binding of an alias as the API writes it.
type dependencyBody struct {
	Name      string `json:"name"`
	Type      string `json:"type"`
	DatasetID string `json:"datasetId"`
	Label     string `json:"label"`
}

// Relations implements openapi.Related.
func (dependencyBody) Relations() openapi.Relations {
	return openapi.Relations{Links: []string{"inf:app", "inf:dataset"}}
}

func (a appPartRoutes) dependency(app string, d apps.Dataset) hal.Resource {
	links := hal.Self(a.href(
		"apps", app, "dependencies", d.Alias,
	)).With("inf:app", a.href("apps", app)).With("inf:dataset", a.href("datasets", d.DatasetID))
	return hal.Resource{
		Links:  links,
		Row:    d,
		Beside: struct{}{},
		Value:  dependencyBody{d.Alias, "dataset", d.DatasetID, d.Label},
	}
}

func (a appPartRoutes) dependencies(app string, all []apps.Dataset) hal.Resource {
	rows := make([]hal.Resource, len(all))
	for i, d := range all {
		rows[i] = a.dependency(app, d)
	}
	links := hal.Self(a.href("apps", app, "dependencies")).With("inf:app", a.href("apps", app))
	return hal.Collection(links, hal.Page{Count: len(rows), Total: len(rows)}, "inf:app-dependency", rows, nil)
}

// listAppDependencies serves GET /api/apps/{id}/dependencies: 200 and the datasets that the app's
// aliases are bound to; 404.
func (a appPartRoutes) listAppDependencies(r *rest.Request) (rest.Reply, error) {
	all, err := a.Apps.Datasets(r.Context(), r.Param("id"))
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.OK(a.dependencies(r.Param("id"), all))
}

// getAppDependency serves GET /api/apps/{id}/dependencies/{name}: 200 and the binding; 404.
func (a appPartRoutes) getAppDependency(r *rest.Request) (rest.Reply, error) {
	all, err := a.Apps.Datasets(r.Context(), r.Param("id"))
	if err != nil {
		return rest.Reply{}, err
	}
	at := slices.IndexFunc(all, func(d apps.Dataset) bool { return d.Alias == r.Param("name") })
	if at < 0 {
		return rest.Reply{}, errs.New(errs.NotFound, "Dependency not found.")
	}
	return rest.OK(a.dependency(r.Param("id"), all[at]))
}

// dependencyInput binds an app to a dataset.
type dependencyInput struct {
	DatasetID string             `json:"datasetId"`
	Label     rest.Field[string] `json:"label"`
}

// putAppDependency serves PUT /api/apps/{id}/dependencies/{name} {datasetId, label?}: 200 and the
// binding; 400 for an unknown dataset; 404; 403 without the permission bind.
func (a appPartRoutes) putAppDependency(r *rest.Request) (rest.Reply, error) {
	in, err := rest.DecodeUpdate[dependencyInput](r, dependencyBody{})
	if err != nil {
		return rest.Reply{}, err
	}
	if in.DatasetID, err = a.entityID(r.Context(), kindDataset, in.DatasetID); err != nil {
		return rest.Reply{}, err
	}
	d, err := a.Apps.PutDataset(r.Context(), r.Param("id"), r.Param("name"), func(d *apps.Dataset) {
		d.DatasetID = in.DatasetID
		in.Label.Apply(&d.Label)
	})
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.OK(a.dependency(r.Param("id"), d))
}

// deleteAppDependency serves DELETE /api/apps/{id}/dependencies/{name}: 200; 404; 403.
func (a appPartRoutes) deleteAppDependency(r *rest.Request) (rest.Reply, error) {
	if err := a.Apps.DeleteDataset(r.Context(), r.Param("id"), r.Param("name")); err != nil {
		return rest.Reply{}, err
	}
	return rest.Done()
}

// tagBody is a tag of an app as the API writes it.
type tagBody struct {
	TagID string `json:"tagId"`
}

// Relations implements openapi.Related.
func (tagBody) Relations() openapi.Relations {
	return openapi.Relations{Links: []string{"inf:app", "inf:tag"}}
}

func (a appPartRoutes) appTag(app, id string) hal.Resource {
	links := hal.Self(a.href("apps", app, "tags", id)).With(
		"inf:app", a.href("apps", app),
	).With("inf:tag", a.href("tags", id))
	return hal.Resource{Links: links, Row: apps.Tag(id), Beside: struct{}{}, Value: tagBody{id}}
}

func (a appPartRoutes) appTags(app string, tags []string) hal.Resource {
	rows := make([]hal.Resource, len(tags))
	for i, id := range tags {
		rows[i] = a.appTag(app, id)
	}
	links := hal.Self(a.href("apps", app, "tags")).With("inf:app", a.href("apps", app))
	return hal.Collection(links, hal.Page{Count: len(rows), Total: len(rows)}, "inf:app-tag", rows, nil)
}

// listAppTags serves GET /api/apps/{id}/tags: 200 and the ids of the app's tags; 404.
func (a appPartRoutes) listAppTags(r *rest.Request) (rest.Reply, error) {
	tags, err := a.Apps.Tags(r.Context(), r.Param("id"))
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.OK(a.appTags(r.Param("id"), tags))
}

// getAppTag serves GET /api/apps/{id}/tags/{tagId}: 200 and the id of the tag; 404 for one that the
// app does not have.
func (a appPartRoutes) getAppTag(r *rest.Request) (rest.Reply, error) {
	tags, err := a.Apps.Tags(r.Context(), r.Param("id"))
	if err != nil {
		return rest.Reply{}, err
	}
	id, _ := uuids.Parse(r.Param("tagId"))
	if !slices.Contains(tags, id) {
		return rest.Reply{}, errs.New(errs.NotFound, "Tag not found.")
	}
	return rest.OK(a.appTag(r.Param("id"), id))
}

// putAppTag serves PUT /api/apps/{id}/tags/{tagId}: 200 and the tag of the app; 404, also for an
// unknown tag; 403.
func (a appPartRoutes) putAppTag(r *rest.Request) (rest.Reply, error) {
	if err := r.NoBody(tagBody{}); err != nil {
		return rest.Reply{}, err
	}
	if err := a.Apps.PutTag(r.Context(), r.Param("id"), r.Param("tagId")); err != nil {
		return rest.Reply{}, err
	}
	return rest.OK(a.appTag(r.Param("id"), strings.ToLower(r.Param("tagId"))))
}

// deleteAppTag serves DELETE /api/apps/{id}/tags/{tagId}: 200; 404; 403.
func (a appPartRoutes) deleteAppTag(r *rest.Request) (rest.Reply, error) {
	if err := a.Apps.DeleteTag(r.Context(), r.Param("id"), r.Param("tagId")); err != nil {
		return rest.Reply{}, err
	}
	return rest.Done()
}
