package httpapi

import (
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/hal"
	"github.com/tenantcontent/tenantcontent/inputs"
	"github.com/tenantcontent/tenantcontent/internal/rest"
	"github.com/tenantcontent/tenantcontent/internal/rest/openapi"
	"github.com/tenantcontent/tenantcontent/paging"
)

// inputRoutes serves the catalogs of inputs.
type inputRoutes struct{ *api }

// routes returns the rows of the route table.
func (a inputRoutes) routes() []rest.Route {
	return []rest.Route{
		{
			Method:  get,
			Pattern: "/api/input-editors",
			Name:    "listInputEditors",
			Grants:  nothing,
			Summary: "The input editors",
			Gives:   openapi.OK(openapi.Whole[inputEditorBody]("inf:input-driver")),
			Handle:  a.listInputEditors,
		},
		{
			Method:  get,
			Pattern: "/api/input-editors/:id",
			Name:    "getInputEditor",
			Grants:  nothing,
			Summary: "One input editor",
			Gives:   openapi.OK(openapi.One[inputEditorBody]()),
			Fails:   []int{404},
			Handle:  a.getInputEditor,
		},
		{
			Method:  get,
			Pattern: "/api/input-templates",
			Name:    "listInputTemplates",
			Grants:  nothing,
			Summary: "The suggested inputs of each value type",
			Gives:   openapi.OK(openapi.Detective[[]inputs.Preset]()),
			Handle:  a.listInputTemplates,
		},
	}
}

// listInputEditors serves GET /api/input-editors: 200 and all editors; it takes no parameter.
func (a inputRoutes) listInputEditors(r *rest.Request) (rest.Reply, error) {
	all, err := a.Inputs.Editors(r.Context())
	if err != nil {
		return rest.Reply{}, err
	}
	rows := make([]hal.Resource, len(all))
	for i, e := range all {
		rows[i] = a.inputEditor(e)
	}
	return rest.OK(hal.Collection(hal.Self(a.href("input-editors")), whole(len(all)), "inf:input-driver", rows, nil))
}

// inputEditorBody is an input editor as the API writes it.
type inputEditorBody inputs.Editor

// Relations implements openapi.Related.
func (inputEditorBody) Relations() openapi.Relations {
	return openapi.Relations{Links: []string{"inf:input-editors"}}
}

func (a inputRoutes) inputEditor(e inputs.Editor) hal.Resource {
	return hal.Resource{
		Links: hal.Self(a.href("input-editors", e.ID)).With("inf:input-editors", a.href("input-editors")),
		Value: inputEditorBody(e),
	}
}

// getInputEditor serves GET /api/input-editors/{id}: 200 and the editor; 404.
func (a inputRoutes) getInputEditor(r *rest.Request) (rest.Reply, error) {
	all, err := a.Inputs.Editors(r.Context())
	if err != nil {
		return rest.Reply{}, err
	}
	for _, e := range all {
		if e.ID == r.Param("id") {
			return rest.OK(a.inputEditor(e))
		}
	}
	return rest.Reply{}, errs.New(errs.NotFound, "Input editor not found.")
}

// listInputTemplates serves GET /api/input-templates: 200 and the presets of each value type.
func (a inputRoutes) listInputTemplates(r *rest.Request) (rest.Reply, error) {
	all, err := a.Inputs.Templates(r.Context())
	if err != nil {
		return rest.Reply{}, err
	}
	values := make([][]inputs.Preset, len(all))
	for i, t := range all {
		values[i] = t.Presets
	}
	return rest.OK(hal.Detective(hal.Self(a.href("input-templates")), values))
}

// catalog encodes a page of a list in memory.
func catalog[T any](a *api, r *rest.Request, all []T, rel string, row func(T) hal.Resource) (rest.Reply, error) {
	q, err := r.Page(100)
	if err != nil {
		return rest.Reply{}, err
	}
	from := min(q.Start, len(all))
	to := min(from+q.Limit, len(all))
	p := paging.Page[T]{Rows: all[from:to], Total: len(all), More: to < len(all)}
	return rest.OK(rest.Collection(a.BaseURL, r, q, p, rel, nil, row))
}

// whole describes the only page of a list of n rows.
func whole(n int) hal.Page { return hal.Page{Count: n, Total: n} }
