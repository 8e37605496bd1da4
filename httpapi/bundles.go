package httpapi

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/tenantcontent/tenantcontent/internal/rest"
	"github.com/tenantcontent/tenantcontent/internal/rest/openapi"
	"github.com/tenantcontent/tenantcontent/paging"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/bundles"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/hal"
	"github.com/tenantcontent/tenantcontent/internal/secure/guard"
	"github.com/tenantcontent/tenantcontent/internal/text/jsonfill"
)

// bundleRoutes serves bundles and their entries.
type bundleRoutes struct{ *api }

// routes returns the rows of the route table.
func (a bundleRoutes) routes() []rest.Route {
	return []rest.Route{
		{
			Method:  get,
			Pattern: "/api/bundle-drivers",
			Name:    "listBundleDrivers",
			Grants:  programs,
			Query:   window,
			Summary: "The types of bundle entries",
			Gives:   openapi.OK(openapi.Page[bundleDriverBody]("inf:bundle-driver")),
			Handle:  a.listBundleDrivers,
		},
		{
			Method:  get,
			Pattern: "/api/bundle-drivers/:id",
			Name:    "getBundleDriver",
			Grants:  programs,
			Summary: "One type of bundle entries",
			Gives:   openapi.OK(openapi.One[bundleDriverBody]()),
			Fails:   []int{400},
			Handle:  a.getBundleDriver,
		},
		{
			Method:  get,
			Pattern: "/api/bundle-templates",
			Name:    "listBundleTemplates",
			Grants:  programs,
			Query:   none,
			Summary: "The builders of bundle entries",
			Gives:   openapi.OK(openapi.Detective[bundleTemplateBody]()),
			Handle:  a.listBundleTemplates,
		},
		{
			Method:  get,
			Pattern: "/api/bundle-list",
			Name:    "listAllBundles",
			Grants:  programs,
			Heavy:   rest.Brief,
			Query:   none,
			Summary: "All bundles without entries",
			Gives:   openapi.OK(openapi.List[bundleRow]()),
			Handle:  a.listAllBundles,
		},
		{
			Method:  get,
			Pattern: "/api/bundles",
			Name:    "listBundles",
			Grants:  programs,
			Query:   searched,
			Summary: "The bundles with their entries",
			Gives:   openapi.OK(openapi.Page[bundleBody]("inf:bundle")),
			Fails:   []int{400},
			Handle:  a.listBundles,
		},
		{
			Method:     post,
			Pattern:    "/api/bundles",
			Name:       "createBundle",
			Drops:      true,
			Grants:     programs,
			Permission: actor.Superuser,
			Writes:     rest.InTx,
			Summary:    "Add a bundle",
			Takes:      openapi.Input[bundleInput](),
			Gives:      openapi.Created(openapi.One[bundleBody]()),
			Fails:      []int{400, 403, 409},
			Handle:     a.createBundle,
		},
		{
			Method:  get,
			Pattern: "/api/bundles/:id",
			Name:    "getBundle",
			Grants:  programs,
			Summary: "One bundle with its entries",
			Gives:   openapi.OK(openapi.One[bundleBody]()),
			Fails:   []int{404},
			Handle:  a.getBundle,
		},
		{
			Method:     put,
			Pattern:    "/api/bundles/:id",
			Name:       "putBundle",
			Drops:      true,
			Grants:     programs,
			Row:        "bundle",
			Permission: actor.Superuser,
			Writes:     rest.InTx,
			Summary:    "Change a bundle",
			Takes:      openapi.Update[bundleInput, bundleBody](),
			Gives:      openapi.OK(openapi.One[bundleBody]()),
			Fails:      []int{400, 404, 409},
			Handle:     a.putBundle,
		},
		{
			Method:     del,
			Pattern:    "/api/bundles/:id",
			Name:       "deleteBundle",
			Grants:     programs,
			Row:        "bundle",
			Permission: actor.Superuser,
			Writes:     rest.InTx,
			Options:    rest.NoOptions{},
			Summary:    "Remove a bundle",
			Gives:      openapi.OK(openapi.None()),
			Fails:      []int{404},
			Handle:     a.deleteBundle,
		},
		{
			Method:  get,
			Pattern: "/api/bundles/:id/entries",
			Name:    "listBundleEntries",
			Grants:  programs,
			Query:   paged,
			Summary: "The entries of a bundle with what they refer to",
			Gives:   openapi.OK(openapi.Page[entryBody]("inf:bundle-entry")),
			Fails:   []int{404},
			Handle:  a.listBundleEntries,
		},
		{
			Method:     post,
			Pattern:    "/api/bundles/:id/entries",
			Name:       "createBundleEntry",
			Drops:      true,
			Grants:     programs,
			Permission: actor.Superuser,
			Writes:     rest.InTx,
			Summary:    "Add an entry to a bundle",
			Takes:      openapi.Input[newEntryInput](),
			Gives:      openapi.Created(openapi.One[entryBody]()),
			Fails:      []int{400, 403, 404, 409},
			Handle:     a.createBundleEntry,
		},
		{
			Method:  get,
			Pattern: "/api/bundles/:id/entries/:entry",
			Name:    "getBundleEntry",
			Grants:  programs,
			Summary: "One entry of a bundle",
			Gives:   openapi.OK(openapi.One[entryBody]()),
			Fails:   []int{404},
			Handle:  a.getBundleEntry,
		},
		{
			Method:     put,
			Pattern:    "/api/bundles/:id/entries/:entry",
			Name:       "putBundleEntry",
			Drops:      true,
			Grants:     programs,
			Row:        "bundle-entry",
			Permission: actor.Superuser,
			Writes:     rest.InTx,
			Summary:    "Change the data of an entry",
			Takes:      openapi.Update[entryInput, entryBody](),
			Gives:      openapi.OK(openapi.One[entryBody]()),
			Fails:      []int{400},
			Handle:     a.putBundleEntry,
		},
		{
			Method:     del,
			Pattern:    "/api/bundles/:id/entries/:entry",
			Name:       "deleteBundleEntry",
			Grants:     programs,
			Row:        "bundle-entry",
			Permission: actor.Superuser,
			Writes:     rest.InTx,
			Options:    rest.NoOptions{},
			Summary:    "Take an entry out of a bundle",
			Gives:      openapi.OK(openapi.None()),
			Fails:      []int{404},
			Handle:     a.deleteBundleEntry,
		},
	}
}

// bundleBody is a Bundle as the API writes it, without its entries.
type bundleBody struct {
	Tenant      string   `json:"tenant"`
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Slug        string   `json:"slug"`
	NaturalID   string   `json:"naturalId"`
	Description *string  `json:"description"`
	CreatedAt   hal.Time `json:"createdAt"`
	UpdatedAt   hal.Time `json:"updatedAt"`
}

// Relations implements openapi.Related.
func (bundleBody) Relations() openapi.Relations {
	return openapi.Relations{
		Links: []string{"inf:bundles", "inf:deploy", "inf:download", "inf:entries"},
		Rows:  openapi.Embeds{"entries": openapi.List[entryBody]()},
	}
}

// bundle encodes a bundle. Its entries, which can be many, are made when they are written.
func (a bundleRoutes) bundle(who actor.Actor, b bundles.Bundle) hal.Resource {
	links := hal.Self(a.href("bundles", b.ID)).With(
		"inf:entries", a.href("bundles", b.ID, "entries"),
	).With("inf:bundles", a.href("bundles"))
	whenWriting(who, links, hal.Links{
		"inf:download": {Href: a.href("bundles", b.ID, "_export")},
		"inf:deploy":   {Href: a.href("bundles", b.ID, "_deploy")},
	})
	return hal.Resource{
		Links: links, Row: b, Beside: versions(b.Entries),
		Value: bundleBody{
			b.Tenant, b.ID, b.Name, b.Slug, b.NaturalID(), b.Description, hal.Time(b.CreatedAt),
			hal.Time(b.UpdatedAt),
		},
		Last: &hal.Member{Name: "entries", Rows: func(yield func(hal.Resource) bool) {
			for _, e := range b.Entries {
				if !yield(hal.Resource{
					Links: a.entryLinks(e),
					Value: entryBody{Entry: e, column: a.Bundles.Column(e.Type)},
				}) {
					return
				}
			}
		}},
	}
}

// bundleDriver encodes a driver.
func (a bundleRoutes) bundleDriver(d bundles.Descriptor) hal.Resource {
	return hal.Resource{
		Links: hal.Self(a.href("bundle-drivers", d.ID)).With("inf:bundle-drivers", a.href("bundle-drivers")),
		Value: bundleDriverBody{component(d), d.Icon.Name, d.Icon.SVG, d.ID, d.Icon.Material, d.Name},
	}
}

// listBundleDrivers serves GET /api/bundle-drivers: 200 and all drivers in the order of
// registration.
func (a bundleRoutes) listBundleDrivers(r *rest.Request) (rest.Reply, error) {
	all, err := a.Bundles.Drivers(r.Context())
	if err != nil {
		return rest.Reply{}, err
	}
	return catalog(a.api, r, all, "inf:bundle-driver", a.bundleDriver)
}

// getBundleDriver serves GET /api/bundle-drivers/{id}: 200 and the driver; 400 for an id that is
// not registered.
func (a bundleRoutes) getBundleDriver(r *rest.Request) (rest.Reply, error) {
	d, err := a.Bundles.Driver(r.Context(), r.Param("id"))
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.OK(a.bundleDriver(d))
}

// listBundleTemplates serves GET /api/bundle-templates: 200 and a builder for each type that has
// one.
func (a bundleRoutes) listBundleTemplates(r *rest.Request) (rest.Reply, error) {
	all, err := a.Bundles.Drivers(r.Context())
	if err != nil {
		return rest.Reply{}, err
	}
	items := []bundleTemplateBody{}
	for _, d := range all {
		if d.Label == "" {
			continue
		}
		items = append(items, bundleTemplateBody{component(d), builtEntryBody{d.ID}, "__top", iconOf(d), d.Label})
	}
	return rest.OK(hal.Detective(hal.Self(a.href("bundle-templates")), items))
}

// bundleRow is a row of the flat list of bundles.
type bundleRow struct {
	ID          string   `json:"id"`
	NaturalID   string   `json:"naturalId"`
	Name        string   `json:"name"`
	Description *string  `json:"description"`
	CreatedAt   hal.Time `json:"createdAt"`
	UpdatedAt   hal.Time `json:"updatedAt"`
}

// listAllBundles serves GET /api/bundle-list: 200 and all bundles without entries as a plain array,
// oldest first.
func (a bundleRoutes) listAllBundles(r *rest.Request) (rest.Reply, error) {
	all, err := paging.Collect(a.Bundles.All(r.Context()))
	if err != nil {
		return rest.Reply{}, err
	}
	rows := make([]bundleRow, len(all))
	for i, b := range all {
		rows[i] = bundleRow{b.ID, b.NaturalID(), b.Name, b.Description, hal.Time(b.CreatedAt), hal.Time(b.UpdatedAt)}
	}
	return rest.OK(rows)
}

// listBundles serves GET /api/bundles: 200 and a page of bundles with their entries, 20 unless
// limit says otherwise, oldest first unless sort says otherwise (createdAt, name, updatedAt); q
// searches name, slug and description.
func (a bundleRoutes) listBundles(r *rest.Request) (rest.Reply, error) {
	q, err := r.Page(20)
	if err != nil {
		return rest.Reply{}, err
	}
	page, err := a.Bundles.List(r.Context(), q)
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.OK(rest.Collection(a.BaseURL, r, q, page, "inf:bundle", nil, func(b bundles.Bundle) hal.Resource {
		return a.bundle(r.Who, b)
	}))
}

// bundleInput is the body of a write to a bundle. A field that is left out stays as it is.
type bundleInput struct {
	Name        rest.Field[string] `json:"name"`
	Slug        rest.Field[string] `json:"slug"`
	Description rest.Field[string] `json:"description"`
}

func (in bundleInput) apply(b *bundles.Bundle) {
	in.Name.Apply(&b.Name)
	in.Slug.Apply(&b.Slug)
	in.Description.ApplyOrNull(&b.Description)
}

// createBundle serves POST /api/bundles: 201 and the bundle; 400 without a name; 409 for a taken
// slug, which comes from the name when left out. Location has the slug.
func (a bundleRoutes) createBundle(r *rest.Request) (rest.Reply, error) {
	in, err := rest.Decode[bundleInput](r)
	if err != nil {
		return rest.Reply{}, err
	}
	var b bundles.Bundle
	in.apply(&b)
	if b, err = a.Bundles.Create(r.Context(), b); err != nil {
		return rest.Reply{}, err
	}
	return rest.Created(a.href("bundles", b.Slug), a.bundle(r.Who, b))
}

// getBundle serves GET /api/bundles/{id}, an id or a slug: 200 and the bundle with its entries;
// 404.
func (a bundleRoutes) getBundle(r *rest.Request) (rest.Reply, error) {
	b, err := a.Bundles.Get(r.Context(), r.Param("id"))
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.OK(a.bundle(r.Who, b))
}

// putBundle serves PUT /api/bundles/{id}: 200 and the changed bundle with its entries; what the
// body leaves out stays.
func (a bundleRoutes) putBundle(r *rest.Request) (rest.Reply, error) {
	in, err := rest.DecodeUpdate[bundleInput](r, bundleBody{})
	if err != nil {
		return rest.Reply{}, err
	}
	b, err := a.Bundles.Update(r.Context(), r.Param("id"), func(b *bundles.Bundle) error { in.apply(b); return nil })
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.OK(a.bundle(r.Who, b))
}

// deleteBundle serves DELETE /api/bundles/{id}: 200; 404. The entries go with it, what they refer
// to stays.
func (a bundleRoutes) deleteBundle(r *rest.Request) (rest.Reply, error) {
	if err := a.Bundles.Delete(r.Context(), r.Param("id")); err != nil {
		return rest.Reply{}, err
	}
	return rest.Done()
}

// listBundleEntries serves GET /api/bundles/{id}/entries: 200 and a page of entries with their
// drivers and what they refer to, 100 unless limit says otherwise, in the order in which they were
// added unless sort says otherwise (createdAt, type, updatedAt); 404.
func (a bundleRoutes) listBundleEntries(r *rest.Request) (rest.Reply, error) {
	q, err := r.Page(100)
	if err != nil {
		return rest.Reply{}, err
	}
	page, err := a.Bundles.Entries(r.Context(), r.Param("id"), q)
	if err != nil {
		return rest.Reply{}, err
	}
	all, err := a.Bundles.Drivers(r.Context())
	if err != nil {
		return rest.Reply{}, err
	}
	byID := map[string]bundles.Descriptor{}
	for _, d := range all {
		byID[d.ID] = d
	}
	seen, err := a.seen(r, page.Rows...)
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.OK(rest.Collection(a.BaseURL, r, q, page, "inf:bundle-entry", nil, func(e bundles.Entry) hal.Resource {
		return a.entry(r.Who, e, byID[e.Type], seen)
	}))
}

// createBundleEntry serves POST /api/bundles/{id}/entries: 201 and the entry; 400 for an
// unregistered type, for a reference that is missing or names nothing, and for a system job; 404;
// 409 when the bundle has it already. The reference is in the column of the type, and those of
// other types are dropped.
func (a bundleRoutes) createBundleEntry(r *rest.Request) (rest.Reply, error) {
	in, err := rest.Decode[map[string]json.RawMessage](r)
	if err != nil {
		return rest.Reply{}, err
	}
	e, unknown, err := a.entryInput(r, in, "")
	if err == nil {
		err = r.RefuseUnknown(unknown, nil)
	}
	if err != nil {
		return rest.Reply{}, err
	}
	e, err = a.Bundles.CreateEntry(r.Context(), r.Param("id"), e)
	if err != nil {
		return rest.Reply{}, err
	}
	return a.entryReply(r, e, true)
}

// emptyEntry is an example of what a GET of an entry answers.
var emptyEntry = entryBody{Entry: bundles.Entry{Data: json.RawMessage("{}")}, looked: true}

// newEntryInput is a new entry of a bundle.
type newEntryInput struct {
	Type string                      `json:"type"`
	Data rest.Field[json.RawMessage] `json:"data"`
}

// Extras implements openapi.Extended: the entity is named by the member of its type.
func (newEntryInput) Extras() (all []openapi.Extra) {
	for _, column := range entryColumns {
		all = append(all, openapi.Extra{Name: column, Body: openapi.One[string](), Optional: true})
	}
	return all
}

// entryInput reads an entry from a body, and returns the members that no entry has. path names it
// in messages.
func (a bundleRoutes) entryInput(
	r *rest.Request, in map[string]json.RawMessage, path string,
) (e bundles.Entry, unknown []jsonfill.UnknownMember, err error) {
	var by jsonfill.Filler
	read := func(name string, into any) (bool, error) {
		raw, given := in[name]
		if !given {
			return false, nil
		}
		return true, by.Fill(raw, into, jsonfill.Join(path, name))
	}
	given, err := read("type", &e.Type)
	if err != nil {
		return e, nil, err
	}
	if !given {
		return e, nil, errs.New(errs.Invalid, "%s is required", jsonfill.Join(path, "type"))
	}
	var data rest.Field[map[string]json.RawMessage]
	if _, err := read("data", &data); err != nil {
		return e, nil, err
	}
	if data.Value != nil {
		e.Data = in["data"]
	}
	d, err := a.Bundles.Driver(r.Context(), e.Type)
	if path != "" && errs.CodeOf(err) == errs.Invalid {
		err = errs.Wrap(errs.Invalid, err, "%s: %s", path, errs.MessageOf(err))
	}
	if err != nil {
		return e, nil, err
	}
	known := append([]string{"type", "data"}, entryColumns...)
	if d.Column != "" && !slices.Contains(known, d.Column) { // of a host's own type
		known = append(known, d.Column)
	}
	for _, name := range slices.Sorted(maps.Keys(in)) {
		if !slices.Contains(known, name) {
			unknown = append(unknown, jsonfill.UnknownMember{At: path, Name: name, Known: known})
		}
	}
	if d.Column != "" {
		_, err = read(d.Column, &e.EntityID)
	}
	return e, unknown, err
}

func (a bundleRoutes) entryReply(r *rest.Request, e bundles.Entry, isNew bool) (rest.Reply, error) {
	d, err := a.Bundles.Driver(r.Context(), e.Type)
	if err != nil && errs.CodeOf(err) != errs.Invalid { // the host may have dropped the type
		return rest.Reply{}, err
	}
	seen, err := a.seen(r, e)
	if err != nil {
		return rest.Reply{}, err
	}
	body := a.entry(r.Who, e, d, seen)
	if isNew {
		return rest.Created(body.Links["self"].Href, body)
	}
	return rest.OK(body)
}

// getBundleEntry serves GET /api/bundles/{id}/entries/{entry}: 200 and the entry; 404 when the
// bundle or the entry is not there.
func (a bundleRoutes) getBundleEntry(r *rest.Request) (rest.Reply, error) {
	e, err := a.Bundles.Entry(r.Context(), r.Param("id"), r.Param("entry"))
	if err != nil {
		return rest.Reply{}, err
	}
	return a.entryReply(r, e, false)
}

// entryInput is the body of a write to an entry of a bundle.
type entryInput struct {
	Data rest.Field[json.RawMessage] `json:"data"`
}

// putBundleEntry serves PUT /api/bundles/{id}/entries/{entry}: 200 and the entry with other data;
// 404.
func (a bundleRoutes) putBundleEntry(r *rest.Request) (rest.Reply, error) {
	in, err := rest.DecodeUpdate[entryInput](r, emptyEntry)
	if err != nil {
		return rest.Reply{}, err
	}
	bundle, id := r.Param("id"), r.Param("entry")
	if !in.Data.Set { // nothing to change, for whoever may change it
		e, err := a.Bundles.Entry(r.Context(), bundle, id)
		if err != nil {
			return rest.Reply{}, err
		}
		if err := guard.Check(r.Context(), "bundle-entry", e); err != nil {
			return rest.Reply{}, err
		}
		return a.entryReply(r, e, false)
	}
	var data json.RawMessage
	in.Data.Apply(&data)
	e, err := a.Bundles.UpdateEntry(r.Context(), bundle, id, data)
	if err != nil {
		return rest.Reply{}, err
	}
	return a.entryReply(r, e, false)
}

// deleteBundleEntry serves DELETE /api/bundles/{id}/entries/{entry}: 200; 404. What it refers to
// stays.
func (a bundleRoutes) deleteBundleEntry(r *rest.Request) (rest.Reply, error) {
	if err := a.Bundles.DeleteEntry(r.Context(), r.Param("id"), r.Param("entry")); err != nil {
		return rest.Reply{}, err
	}
	return rest.Done()
}
