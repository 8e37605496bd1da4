package httpapi

import (
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/tenantcontent/tenantcontent/internal/rest"
	"github.com/tenantcontent/tenantcontent/internal/rest/openapi"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/hal"
	"github.com/tenantcontent/tenantcontent/paging"
)

// domainRoutes serves authentication domains and their scans.
type domainRoutes struct{ *api }

// routes returns the rows of the route table.
func (a domainRoutes) routes() []rest.Route {
	return []rest.Route{
		{
			Method:  get,
			Pattern: "/api/domain-templates",
			Name:    "listDomainTemplates",
			Grants:  settings,
			Query:   none,
			Summary: "The kinds of new domains",
			Gives:   openapi.OK(openapi.Detective[domainTemplateBody]()),
			Handle:  a.listDomainTemplates,
		},
		{
			Method:  get,
			Pattern: "/api/domain-drivers",
			Name:    "listDomainDrivers",
			Grants:  settings,
			Query:   window,
			Summary: "The domain drivers",
			Gives:   openapi.OK(openapi.Page[domainDriverBody]("inf:domain-driver")),
			Handle:  a.listDomainDrivers,
		},
		{
			Method:     get,
			Pattern:    "/api/domain-drivers/:id",
			Name:       "getDomainDriver",
			Grants:     settings,
			Permission: actor.SuperuserRead,
			Summary:    "One domain driver",
			Gives:      openapi.OK(openapi.One[domainDriverBody]()),
			Fails:      []int{403, 404},
			Handle:     a.getDomainDriver,
		},
		{
			Method:     post,
			Pattern:    "/api/domain-drivers/:id/_scan",
			Name:       "scanDriver",
			Grants:     settings,
			Heavy:      rest.Scan,
			Permission: actor.Superuser,
			Writes:     rest.ByService,
			Options:    scanInput{},
			Summary:    "Scan the directories of a driver's domains",
			Gives:      openapi.OK(openapi.One[scansBody]()),
			Fails:      []int{400, 403, 502},
			Handle:     a.scanDriver,
		},
		{
			Method:  get,
			Pattern: "/api/domains",
			Name:    "listDomains",
			Grants:  settings,
			Query:   searched,
			Summary: "The domains, page by page",
			Gives:   openapi.OK(openapi.Page[publicDomainRow]("inf:domain")),
			Handle:  a.listDomains,
		},
		{
			Method:  get,
			Pattern: "/api/domains-content",
			Name:    "listDomainContents",
			Grants:  settings,
			Query:   none,
			Summary: "How many users and teams each domain has",
			Gives:   openapi.OK(openapi.List[domainContentsRow]()),
			Handle:  a.listDomainContents,
		},
		{
			Method:  get,
			Pattern: "/api/domains-list",
			Name:    "listAllDomains",
			Grants:  settings,
			Query:   none,
			Summary: "All domains but local",
			Gives:   openapi.OK(openapi.List[domainRow]()),
			Handle:  a.listAllDomains,
		},
		{
			Method:     get,
			Pattern:    "/api/domains/:id",
			Name:       "getDomain",
			Grants:     settings,
			Permission: actor.SuperuserRead,
			Summary:    "One domain",
			Gives:      openapi.OK(openapi.One[domainBody]()),
			Fails:      []int{403, 404},
			Handle:     a.getDomain,
		},
		{
			Method:     get,
			Pattern:    "/api/domains/:id/driver",
			Name:       "getDriverOfDomain",
			Grants:     settings,
			Permission: actor.SuperuserRead,
			Summary:    "The driver of a domain",
			Gives:      openapi.OK(openapi.One[domainDriverBody]()),
			Handle:     a.getDriverOfDomain,
		},
		{
			Method:     post,
			Pattern:    "/api/domains",
			Name:       "createDomain",
			Drops:      true,
			Grants:     settings,
			Permission: actor.Superuser,
			Writes:     rest.ByService,
			Query:      []string{"check"},
			Summary:    "Add a domain",
			Takes:      openapi.Input[domainInput](),
			Gives:      openapi.OK(openapi.One[domainBody]()),
			Fails:      []int{400, 403, 409},
			Handle:     a.createDomain,
		},
		{
			Method:     put,
			Pattern:    "/api/domains/:id",
			Name:       "putDomain",
			Drops:      true,
			Grants:     settings,
			Row:        "domain",
			Permission: actor.Superuser,
			Query:      []string{"check"},
			Summary:    "Change a domain",
			Takes:      openapi.Update[domainUpdate, domainBody](),
			Gives:      openapi.OK(openapi.One[domainBody]()),
			Fails:      []int{400, 404},
			Handle:     a.putDomain,
		},
		{
			Method:     del,
			Pattern:    "/api/domains/:id",
			Name:       "deleteDomain",
			Grants:     settings,
			Row:        "domain",
			Permission: actor.Superuser,
			Writes:     rest.InTx,
			Options:    rest.NoOptions{},
			Summary:    "Remove a domain with its users and teams",
			Gives:      openapi.OK(openapi.None()),
			Fails:      []int{400, 404},
			Handle:     a.deleteDomain,
		},
		{
			Method:     post,
			Pattern:    "/api/domains/:id/driver/_scan",
			Name:       "scanDomain",
			Grants:     settings,
			Heavy:      rest.Scan,
			Permission: actor.Superuser,
			Writes:     rest.ByService,
			Options:    scanInput{},
			Summary:    "Scan the directory of one domain",
			Gives:      openapi.OK(openapi.One[scansBody]()),
			Fails:      []int{400},
			Handle:     a.scanDomain,
		},
		{
			Method:     post,
			Pattern:    "/api/domains/_test",
			Name:       "testNewDomain",
			Grants:     settings,
			Permission: actor.Superuser,
			Options:    newTestInput{},
			Summary:    "Try out a configuration before it is saved",
			Gives:      openapi.OK(openapi.One[domainTestBody]()),
			Fails:      []int{400},
			Handle:     a.testNewDomain,
		},
		{
			Method:     post,
			Pattern:    "/api/domains/:id/_test",
			Name:       "testDomain",
			Grants:     settings,
			Permission: actor.Superuser,
			Options:    testInput{},
			Summary:    "Try out a domain",
			Gives:      openapi.OK(openapi.One[domainTestBody]()),
			Fails:      []int{400, 403, 404},
			Handle:     a.testDomain,
		},
		{
			Method:     get,
			Pattern:    "/api/domains/:id/scan",
			Name:       "getScan",
			Grants:     settings,
			Permission: actor.SuperuserRead,
			Summary:    "How far the scan of a domain is",
			Gives:      openapi.OK(openapi.One[scanBody]()),
			Handle:     a.getScan,
		},
	}
}

// domainBody is a Domain as the API writes it.
type domainBody struct {
	Tenant      string          `json:"tenant"`
	ID          string          `json:"id"`
	Name        *string         `json:"name"`
	Description *string         `json:"description"`
	Type        string          `json:"type"`
	Config      json.RawMessage `json:"config"` // its secrets masked
	ScannedAt   *hal.Time       `json:"scannedAt"`
	Public      publicBody      `json:"public"`
	CreatedAt   hal.Time        `json:"createdAt"`
	UpdatedAt   hal.Time        `json:"updatedAt"`
}

// Relations implements openapi.Related.
func (domainBody) Relations() openapi.Relations {
	return openapi.Relations{
		Links: []string{
			"inf:domains", "inf:driver",
		},
		Embeds: openapi.Embeds{"inf:driver": openapi.One[domainDriverBody]()},
	}
}

// publicBody is the part of a domain that login pages may show; for single sign-on, it has the
// address where a login starts.
type publicBody struct {
	SSO    string `json:"sso,omitempty"`
	Ready  *bool  `json:"ready,omitempty"`  // whether people can log in; of a domain alone
	Reason string `json:"reason,omitempty"` // why not
}

func (a domainRoutes) public(d domains.Domain) publicBody {
	if info, _ := a.Domains.Info(d.Type); info.LoginMethod == http.MethodGet {
		return publicBody{SSO: a.href("login", d.ID, "sso") + "?tenant=" + url.QueryEscape(d.Tenant)}
	}
	return publicBody{}
}

// unready returns the reason why nobody can log in at a domain, "" for none.
func (a domainRoutes) unready(d domains.Domain) string {
	if info, _ := a.Domains.Info(d.Type); d.Unready == "" && info.AnswersByForm && !a.secureCookie {
		return "A log-in needs this server to be at https, and its base URL is " + a.BaseURL +
			": with the form of a provider, browsers bring the cookie of a login only over https."
	}
	return d.Unready
}

func (a domainRoutes) domain(r *rest.Request, d domains.Domain) hal.Resource {
	public := a.public(d)
	public.Reason = a.unready(d)
	ready := public.Reason == ""
	public.Ready = &ready
	return hal.Resource{Links: a.domainLinks(r, d), Embedded: a.embeddedDriver(r, d), Row: d, Value: domainBody{
		Tenant: d.Tenant, ID: d.ID, Name: d.Name,
		Description: d.Description, Type: d.Type, Config: orNullJSON(d.Config),
		ScannedAt: hal.OrNull(d.ScannedAt), Public: public,
		CreatedAt: hal.Time(d.CreatedAt), UpdatedAt: hal.Time(d.UpdatedAt),
	}}
}

// domainLinks are the links of a domain, alone and in a list. Single domains are for superusers.
func (a domainRoutes) domainLinks(r *rest.Request, d domains.Domain) hal.Links {
	links := hal.Self(a.href("domains", d.ID)).With("inf:domains", a.href("domains"))
	if _, known := a.Domains.Info(d.Type); known && r.Who.Can(actor.SuperuserRead) {
		links.With("inf:driver", a.href("domains", d.ID, "driver"))
	}
	return links
}

func orNullJSON(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return json.RawMessage("null")
	}
	return raw
}

// embeddedDriver returns the driver of a domain as an embedded resource. It is empty if the type is
// no longer registered.
func (a domainRoutes) embeddedDriver(r *rest.Request, d domains.Domain) hal.Embedded {
	info, ok := a.Domains.Info(d.Type)
	if !ok {
		return hal.Embedded{}
	}
	return hal.Embedded{"inf:driver": a.registeredDriver(r, info)}
}

// registeredDriver encodes a driver under its own address.
func (a domainRoutes) registeredDriver(r *rest.Request, i domains.Info) hal.Resource {
	links := hal.Self(a.href("domain-drivers", i.ID)).With("inf:domain-drivers", a.href("domain-drivers"))
	return a.domainDriver(i, a.scannable(r, links, "domain-drivers", i.ID))
}

// domainDriver encodes a driver.
func (a domainRoutes) domainDriver(i domains.Info, links hal.Links) hal.Resource {
	return hal.Resource{Links: links, Value: domainDriverBody{
		i.ID, i.Name, i.Group, i.Image, i.LoginComponent, i.EditComponent, i.ScanComponent, i.LoginMethod,
		orNull(i.UsernameParam), orNull(i.PasswordParam), i.ManagesPassword,
	}}
}

// listDomainTemplates serves GET /api/domain-templates: 200 and a template for each driver that has
// one.
func (a domainRoutes) listDomainTemplates(r *rest.Request) (rest.Reply, error) {
	all, err := a.Domains.Drivers(r.Context())
	if err != nil {
		return rest.Reply{}, err
	}
	items := []domainTemplateBody{}
	for _, i := range all {
		if i.Defaults != nil {
			items = append(items, domainTemplateBody{i.Name, i.Group, domainDefaults{i.ID, i.Defaults}})
		}
	}
	return rest.OK(hal.Detective(hal.Self(a.href("domain-templates")), items))
}

// listDomainDrivers serves GET /api/domain-drivers: 200 and a page of drivers in the order of
// registration, 100 unless limit says otherwise.
func (a domainRoutes) listDomainDrivers(r *rest.Request) (rest.Reply, error) {
	all, err := a.Domains.Drivers(r.Context())
	if err != nil {
		return rest.Reply{}, err
	}
	return catalog(a.api, r, all, "inf:domain-driver", func(d domains.Info) hal.Resource {
		return a.registeredDriver(r, d)
	})
}

// getDomainDriver serves GET /api/domain-drivers/{id}: 200 and the driver, for superusers; 404.
func (a domainRoutes) getDomainDriver(r *rest.Request) (rest.Reply, error) {
	d, err := a.Domains.Driver(r.Context(), r.Param("id"))
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.OK(a.registeredDriver(r, d))
}

// listDomains serves GET /api/domains: 200 and a page of domains, also local, 100 unless limit says
// otherwise, ordered by name unless sort says otherwise (name, id, createdAt, updatedAt); q
// searches id, name and description.
func (a domainRoutes) listDomains(r *rest.Request) (rest.Reply, error) {
	q, err := r.Page(100)
	if err != nil {
		return rest.Reply{}, err
	}
	page, err := a.Domains.List(r.Context(), q)
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.OK(rest.Collection(a.BaseURL, r, q, page, "inf:domain", nil, func(d domains.Domain) hal.Resource {
		return hal.Resource{
			Links:    a.domainLinks(r, d),
			Value:    publicDomainRow{d.ID, d.Type, d.Name, a.public(d)},
			Embedded: a.embeddedDriver(r, d),
		}
	}))
}

// listDomainContents serves GET /api/domains-content: 200 and how many users and teams each domain
// has, as a plain array.
func (a domainRoutes) listDomainContents(r *rest.Request) (rest.Reply, error) {
	all, err := a.Domains.Contents(r.Context())
	if err != nil {
		return rest.Reply{}, err
	}
	rows := make([]domainContentsRow, len(all))
	for i, c := range all {
		rows[i] = domainContentsRow{c.ID, c.Users, c.Teams}
	}
	return rest.OK(rows)
}

// listAllDomains serves GET /api/domains-list: 200 and every domain but local as a plain array, its
// secrets masked. default says whether it is the tenant's default domain.
func (a domainRoutes) listAllDomains(r *rest.Request) (rest.Reply, error) {
	all, err := paging.Collect(a.Domains.All(r.Context()))
	if err != nil {
		return rest.Reply{}, err
	}
	first, err := a.Domains.Default(r.Context())
	if err != nil {
		return rest.Reply{}, err
	}
	rows := []domainRow{}
	for _, d := range all {
		if d.Type != domains.Local {
			rows = append(rows, domainRow{
				d.ID, d.Name, d.Description,
				d.Type, orNullJSON(d.Config), hal.Time(d.CreatedAt), hal.OrNull(d.ScannedAt),
				hal.Time(d.UpdatedAt), d.ID == first, domainPermissionsBody(a.Domains.PermissionsOf(r.Who, d)),
			})
		}
	}
	return rest.OK(rows)
}

// domainInput is a new domain.
type domainInput struct {
	Name        string                      `json:"name"`
	Type        string                      `json:"type"`
	Description rest.Field[string]          `json:"description"`
	Config      rest.Field[json.RawMessage] `json:"config"`
}

// createDomain serves POST /api/domains: 200 and the domain, whose id is made of the name; 400
// naming a field, also one of config, and when those of all domains together would have more than 8
// MiB; 409 for a taken id. 400, too, when a provider that is to log people in cannot be read now:
// ?check=false saves its config all the same.
func (a domainRoutes) createDomain(r *rest.Request) (rest.Reply, error) {
	in, err := rest.Decode[domainInput](r)
	if err != nil {
		return rest.Reply{}, err
	}
	d := domains.Domain{Name: &in.Name, Type: in.Type}
	in.Description.ApplyOrNull(&d.Description)
	in.Config.Apply(&d.Config)
	o, err := saveOptionsOf(r)
	if err != nil {
		return rest.Reply{}, err
	}
	return a.domainReply(r)(a.Domains.Create(r.Context(), d, o...))
}

// saveOptions reads the query parameter check: with false, a provider is not asked when its
// configuration is saved.
func saveOptionsOf(r *rest.Request) ([]domains.SaveOption, error) {
	check, err := r.Flag("check", true)
	if check || err != nil {
		return nil, err
	}
	return []domains.SaveOption{domains.Unasked}, nil
}

// domainReply replies with the result of a service: 200 and the domain.
func (a domainRoutes) domainReply(r *rest.Request) func(domains.Domain, error) (rest.Reply, error) {
	return func(d domains.Domain, err error) (rest.Reply, error) {
		if err != nil {
			return rest.Reply{}, err
		}
		if reason := a.unready(d); reason != d.Unready && r.Method != http.MethodGet {
			a.Log.WarnContext(
				r.Context(), "nobody can log in at a domain", "tenant", d.Tenant, "domain", d.ID, "reason",
				reason,
			)
		}
		return rest.OK(a.domain(r, d))
	}
}

// getDomain serves GET /api/domains/{id}: 200 and the domain, its secrets masked, for superusers;
// 404. public.ready is false while nobody can log in, with the reason.
func (a domainRoutes) getDomain(r *rest.Request) (rest.Reply, error) {
	return a.domainReply(r)(a.Domains.Get(r.Context(), r.Param("id")))
}

// domainUpdate is a change of a domain.
type domainUpdate struct {
	ID     string                      `json:"id"`
	Type   string                      `json:"type"`
	Name   rest.Field[string]          `json:"name"`
	Config rest.Field[json.RawMessage] `json:"config"`
}

// putDomain serves PUT /api/domains/{id}: 200 and the changed domain. The body needs id, which
// changes nothing, and type; a config takes the place of the one before, except for secrets that
// are masked or left out. 400 as createDomain, also for a mask where there is no secret, and for
// one that is masked or left out where the config sends it to another server than before.
func (a domainRoutes) putDomain(r *rest.Request) (rest.Reply, error) {
	in, err := rest.DecodeUpdate[domainUpdate](r, domainBody{})
	switch {
	case err != nil:
		return rest.Reply{}, err
	case in.ID == "":
		return rest.Reply{}, errs.New(errs.Invalid, "id is required")
	case in.Type == "":
		return rest.Reply{}, errs.New(errs.Invalid, "type is required")
	}
	o, err := saveOptionsOf(r)
	if err != nil {
		return rest.Reply{}, err
	}
	return a.domainReply(r)(a.Domains.Update(r.Context(), r.Param("id"), func(d *domains.Domain) error {
		d.Type = in.Type
		in.Name.ApplyOrNull(&d.Name)
		in.Config.Apply(&d.Config)
		return nil
	}, o...))
}

// deleteDomain serves DELETE /api/domains/{id}: 200. Its users and teams go with it, and what they
// own passes to the caller; 400 for local; 409 when the caller is one of them, or no superuser
// would be left.
func (a domainRoutes) deleteDomain(r *rest.Request) (rest.Reply, error) {
	if err := a.Domains.Delete(r.Context(), r.Param("id")); err != nil {
		return rest.Reply{}, err
	}
	return rest.Done()
}

// getDriverOfDomain serves GET /api/domains/{id}/driver: 200 and the domain's driver; 404.
func (a domainRoutes) getDriverOfDomain(r *rest.Request) (rest.Reply, error) {
	d, err := a.Domains.Get(r.Context(), r.Param("id"))
	if err != nil {
		return rest.Reply{}, err
	}
	info, known := a.Domains.Info(d.Type)
	if !known {
		return rest.Reply{}, errs.New(errs.NotFound, "Domain driver not found.")
	}
	return rest.OK(a.domainDriver(
		info,
		a.scannable(
			r, hal.Self(a.href("domains", d.ID, "driver")).With("inf:domain", a.href("domains", d.ID)),
			"domains", d.ID, "driver",
		),
	))
}
