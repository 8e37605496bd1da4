package httpapi

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"

	"github.com/tenantcontent/tenantcontent/internal/rest"
	"github.com/tenantcontent/tenantcontent/internal/rest/openapi"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/hal"
	"github.com/tenantcontent/tenantcontent/internal/directory/scim"
	"github.com/tenantcontent/tenantcontent/internal/secure/guard"
	"github.com/tenantcontent/tenantcontent/sessions"
)

const (
	scimRoot = "/api/scim/v2"
	typeSCIM = "application/scim+json"
)

// notInSCIM are the errors of RFC 7644 for endpoints that it lets a service leave out. A token of a
// domain is nobody's.
var notInSCIM = map[string]rest.Failure{
	scimRoot + "/Me": {
		Status:  http.StatusNotImplemented,
		Message: "There is no user behind this token: name one, at /api/scim/v2/Users/{id}.",
	},
	scimRoot + "/Bulk": {
		Status: http.StatusNotImplemented,
		Message: "Bulk requests are not supported, see /api/scim/v2/ServiceProviderConfig: send one request for " +
			"each operation.",
	},
}

// missingInSCIM returns the error of one of them, nil for other paths.
func missingInSCIM(path string) error {
	if missing, ok := notInSCIM[path]; ok {
		return missing
	}
	return nil
}

// scimRoutes serves SCIM.
type scimRoutes struct{ *api }

// routes returns the rows of SCIM 2.0 (RFC 7644), for the providers of identities that hold a token
// of a domain.
func (a scimRoutes) routes() []rest.Route {
	const patch = http.MethodPatch
	const users, groups = scimRoot + "/Users", scimRoot + "/Groups"
	routes := []rest.Route{
		{
			Method:  get,
			Pattern: scimRoot + "/ServiceProviderConfig",
			Name:    "getSCIMConfig",
			Summary: "What this service supports of SCIM",
			Gives:   openapi.OK(openapi.One[scimConfigBody]().As(typeSCIM)),
			Handle:  a.getSCIMConfig,
		},
		{
			Method:  get,
			Pattern: scimRoot + "/ResourceTypes",
			Name:    "listSCIMTypes",
			Summary: "The types of resources of SCIM",
			Gives:   openapi.OK(openapi.One[scimTypesBody]().As(typeSCIM)),
			Handle:  a.listSCIMTypes,
		},
		{
			Method:  get,
			Pattern: scimRoot + "/ResourceTypes/:id",
			Name:    "getSCIMType",
			Summary: "One type of resources of SCIM",
			Gives:   openapi.OK(openapi.One[scimTypeBody]().As(typeSCIM)),
			Handle:  a.getSCIMType,
		},
		{
			Method:  get,
			Pattern: scimRoot + "/Schemas",
			Name:    "listSCIMSchemas",
			Summary: "The schemas of SCIM",
			Gives:   openapi.OK(openapi.One[scimSchemasBody]().As(typeSCIM)),
			Handle:  a.listSCIMSchemas,
		},
		{
			Method:  get,
			Pattern: scimRoot + "/Schemas/:id",
			Name:    "getSCIMSchema",
			Summary: "One schema of SCIM",
			Gives:   openapi.OK(openapi.One[scimSchemaBody]().As(typeSCIM)),
			Fails:   []int{404},
			Handle:  a.getSCIMSchema,
		},
		{
			Method:  get,
			Pattern: users,
			Name:    "listSCIMUsers",
			Heavy:   rest.Brief,
			Reads:   scimListed,
			Summary: "The users of a domain",
			Gives:   openapi.OK(openapi.One[scimUsersBody]().As(typeSCIM)),
			Fails:   []int{400},
			Handle:  a.listSCIMUsers,
		},
		{
			Method:  post,
			Pattern: users + "/.search",
			Name:    "searchSCIMUsers",
			Heavy:   rest.Brief,
			Summary: "The users of a domain, asked for in a body",
			Takes:   openapi.Input[scimQuery]().As(typeSCIM, "application/json").Open(),
			Gives:   openapi.OK(openapi.One[scimUsersBody]().As(typeSCIM)),
			Handle:  a.listSCIMUsers,
		},
		{
			Method:  post,
			Pattern: users,
			Name:    "createSCIMUser",
			Writes:  rest.InTx,
			Reads:   scimSelected,
			Summary: "Add a user to a domain",
			Takes:   openapi.Input[scimUserInput]().As(typeSCIM, "application/json").Open(),
			Gives:   openapi.Created(openapi.One[scimUserBody]().As(typeSCIM)),
			Fails:   []int{400, 409},
			Handle:  a.createSCIMUser,
		},
		{
			Method:  get,
			Pattern: users + "/:id",
			Name:    "getSCIMUser",
			Reads:   scimSelected,
			Summary: "One user of a domain",
			Gives:   openapi.OK(openapi.One[scimUserBody]().As(typeSCIM)),
			Fails:   []int{404},
			Handle:  a.getSCIMUser,
		},
		{
			Method:  put,
			Pattern: users + "/:id",
			Name:    "putSCIMUser",
			Writes:  rest.InTx,
			Reads:   scimSelected,
			Summary: "Replace a user of a domain",
			Takes:   openapi.Input[scimUserInput]().As(typeSCIM, "application/json").Open(),
			Gives:   openapi.OK(openapi.One[scimUserBody]().As(typeSCIM)),
			Handle:  a.putSCIMUser,
		},
		{
			Method:  patch,
			Pattern: users + "/:id",
			Name:    "patchSCIMUser",
			Writes:  rest.InTx,
			Reads:   scimSelected,
			Summary: "Change or disable a user of a domain",
			Takes:   openapi.Input[scimPatchInput]().As(typeSCIM, "application/json").Open(),
			Gives:   openapi.OK(openapi.One[scimUserBody]().As(typeSCIM)),
			Fails:   []int{400, 412},
			Handle:  a.patchSCIMUser,
		},
		{
			Method:  del,
			Pattern: users + "/:id",
			Name:    "deleteSCIMUser",
			Writes:  rest.InTx,
			Summary: "Disable a user of a domain for good",
			Takes:   openapi.None(),
			Gives:   openapi.Answers{204: openapi.None()},
			Fails:   []int{404},
			Handle:  a.deleteSCIMUser,
		},
		{
			Method:  get,
			Pattern: groups,
			Name:    "listSCIMGroups",
			Heavy:   rest.Brief,
			Reads:   scimListed,
			Summary: "The groups of a domain",
			Gives:   openapi.OK(openapi.One[scimGroupsBody]().As(typeSCIM)),
			Handle:  a.listSCIMGroups,
		},
		{
			Method:  post,
			Pattern: groups + "/.search",
			Name:    "searchSCIMGroups",
			Heavy:   rest.Brief,
			Summary: "The groups of a domain, asked for in a body",
			Takes:   openapi.Input[scimQuery]().As(typeSCIM, "application/json").Open(),
			Gives:   openapi.OK(openapi.One[scimGroupsBody]().As(typeSCIM)),
			Handle:  a.listSCIMGroups,
		},
		{
			Method:  post,
			Pattern: groups,
			Name:    "createSCIMGroup",
			Writes:  rest.InTx,
			Reads:   scimSelected,
			Summary: "Add a group to a domain",
			Takes:   openapi.Input[scimGroupInput]().As(typeSCIM, "application/json").Open(),
			Gives:   openapi.Created(openapi.One[scimGroupBody]().As(typeSCIM)),
			Fails:   []int{409},
			Handle:  a.createSCIMGroup,
		},
		{
			Method:  get,
			Pattern: groups + "/:id",
			Name:    "getSCIMGroup",
			Reads:   scimSelected,
			Summary: "One group of a domain",
			Gives:   openapi.OK(openapi.One[scimGroupBody]().As(typeSCIM)),
			Fails:   []int{404},
			Handle:  a.getSCIMGroup,
		},
		{
			Method:  put,
			Pattern: groups + "/:id",
			Name:    "putSCIMGroup",
			Writes:  rest.InTx,
			Reads:   scimSelected,
			Summary: "Replace a group of a domain",
			Takes:   openapi.Input[scimGroupInput]().As(typeSCIM, "application/json").Open(),
			Gives:   openapi.OK(openapi.One[scimGroupBody]().As(typeSCIM)),
			Handle:  a.putSCIMGroup,
		},
		{
			Method:  patch,
			Pattern: groups + "/:id",
			Name:    "patchSCIMGroup",
			Writes:  rest.InTx,
			Reads:   scimSelected,
			Summary: "Change a group of a domain and its members",
			Takes:   openapi.Input[scimPatchInput]().As(typeSCIM, "application/json").Open(),
			Gives:   openapi.Answers{200: openapi.One[scimGroupBody]().As(typeSCIM), 204: openapi.None()},
			Fails:   []int{400},
			Handle:  a.patchSCIMGroup,
		},
		{
			Method:  del,
			Pattern: groups + "/:id",
			Name:    "deleteSCIMGroup",
			Writes:  rest.InTx,
			Summary: "Remove a group of a domain",
			Takes:   openapi.None(),
			Gives:   openapi.Answers{204: openapi.None()},
			Handle:  a.deleteSCIMGroup,
		},
	}
	for i := range routes {
		routes[i].Grants, routes[i].AnyType, routes[i].AnyQuery = profiles, true, true
		routes[i].Caller = a.provisionerOf
	}
	return routes
}

// provisionerOf sets the provider of identities that sends a request, by its token of a domain, and
// returns an actor without a user, who may do nothing elsewhere. Errors: errs.Unauthenticated, the
// same for every reason; errs.Conflict for a domain that is scanned.
func (a scimRoutes) provisionerOf(r *rest.Request) (actor.Actor, error) {
	p, err := a.Sessions.Unchecked().Provisioner(r.Context(), bearer(r.Request), actor.OriginOf(r.Context()).Address)
	if err != nil {
		return actor.Actor{}, err
	}
	err = a.Domains.Unchecked().Provisioned(r.Context(), p.Tenant, p.Domain)
	if errs.CodeOf(err) == errs.NotFound {
		err = errs.Wrap(errs.Unauthenticated, err, "The token is missing, not valid or has expired.")
	}
	if err != nil {
		return actor.Actor{}, err
	}
	visitOf(r).provisioner = &p
	return actor.Actor{Tenant: p.Tenant}, nil
}

// client returns the provider of identities that sends a request.
func scimClientOf(r *rest.Request) scim.Client {
	p := *cmp.Or(visitOf(r).provisioner, &sessions.Provisioner{})
	return scim.Client{Tenant: p.Tenant, Domain: p.Domain, Token: p.Token}
}

// scimProblem is an error as SCIM has it.
func scimProblem(status int, message string, err error) rest.Reply {
	body := scimProblemBody{[]string{scim.ErrorMessage}, strconv.Itoa(status), "", message}
	var typed *scim.Error
	switch {
	case errors.As(err, &typed):
		body.SCIMType = typed.Type
	case status == http.StatusBadRequest:
		body.SCIMType = scim.InvalidSyntax
	}
	return rest.Reply{Status: status, Header: map[string]string{"Content-Type": typeSCIM}, Body: body}
}

// scimReply answers with a JSON body.
func scimReply(status int, body any) (rest.Reply, error) {
	return rest.Reply{Status: status, Header: map[string]string{"Content-Type": typeSCIM}, Body: body}, nil
}

// scimHref returns the address of a resource of SCIM.
func (a *api) scimHref(segments ...string) string {
	return a.href(append([]string{"scim", "v2"}, segments...)...)
}

// scimResource is a resource with its version.
type scimResource struct {
	kind, id, version string
	body              map[string]any
}

// tag is the entity tag of a resource. Those of SCIM are weak.
func (s scimResource) tag() string { return `W/"` + s.version + `"` }

// scimCondition returns the condition of a write. The versions of SCIM are weak entity tags, and
// If-Match compares them all the same.
func scimConditionOf(r *rest.Request) scim.Condition {
	c := r.Conditions
	if c == nil || c.Match == nil || c.Match.Any {
		return nil
	}
	return func(version string) error {
		if slices.ContainsFunc(c.Match.List, func(t string) bool { return weakly(t) == version }) {
			return nil
		}
		return guard.Stale()
	}
}

// meta describes a resource.
func (a scimRoutes) meta(of, plural, id, version string, created, modified hal.Time) map[string]any {
	return map[string]any{
		"resourceType": of, "created": created,
		"lastModified": modified, "location": a.scimHref(plural, id), "version": `W/"` + version + `"`,
	}
}

func (a scimRoutes) scimUser(u scim.User) scimResource {
	body := map[string]any{
		"schemas": []string{scim.UserSchema}, "id": u.ID, "userName": u.UserName, "active": u.Active,
		"meta": a.meta("User", "Users", u.ID, u.Version(), hal.Time(u.Created), hal.Time(u.Modified)),
	}
	setTexts(body, map[string]string{"externalId": u.ExternalID, "displayName": u.DisplayName, "timezone": u.Timezone})
	name := map[string]any{}
	setTexts(name, map[string]string{
		"formatted":  u.Formatted(),
		"givenName":  u.GivenName,
		"middleName": u.MiddleName,
		"familyName": u.FamilyName,
	})
	if len(name) > 0 {
		body["name"] = name
	}
	if u.Email != "" {
		body["emails"] = []map[string]any{{"value": u.Email, "type": "work", "primary": true}}
	}
	if u.Groups != nil {
		body["groups"] = a.scimRefs(u.Groups, "Groups", "direct")
	}
	return scimResource{"Users", u.ID, u.Version(), body}
}

func (a scimRoutes) scimRefs(refs []scim.Ref, plural, of string) []map[string]any {
	all := make([]map[string]any, len(refs))
	for i, ref := range refs {
		all[i] = map[string]any{"value": ref.ID, "$ref": a.scimHref(plural, ref.ID), "display": ref.Display, "type": of}
	}
	return all
}

func (a scimRoutes) scimGroup(g scim.Group) scimResource {
	body := map[string]any{
		"schemas": []string{scim.GroupSchema}, "id": g.ID, "displayName": g.Name,
		"meta": a.meta("Group", "Groups", g.ID, g.Version(), hal.Time(g.Created), hal.Time(g.Modified)),
	}
	setTexts(body, map[string]string{"externalId": g.ExternalID})
	if g.Members != nil {
		body["members"] = a.scimRefs(g.Members, "Users", "User")
	}
	return scimResource{"Groups", g.ID, g.Version(), body}
}

func scimPage[T any](all []T, total, start int) map[string]any {
	return map[string]any{
		"schemas": []string{scim.ListMessage}, "totalResults": total,
		"startIndex": start, "itemsPerPage": len(all), "Resources": all,
	}
}

// scimKind is one type of resources: how the Service reads and writes them. T is a resource, and C
// a change of one.
type scimKind[T, C any] struct {
	of         *api
	apart      string // the attribute that the Service reads only where it is asked for
	quietPatch bool   // a PATCH answers with what is asked for alone
	list       func(ctx context.Context, c scim.Client, q scim.Query, apart bool) (scim.Page[T], error)
	get        func(ctx context.Context, c scim.Client, id string, apart bool) (T, error)
	create     func(ctx context.Context, c scim.Client, change C) (T, error)
	update     func(ctx context.Context, c scim.Client, id string, on scim.Condition, change C, apart bool) (T, error)
	remove     func(ctx context.Context, c scim.Client, id string, on scim.Condition) error
	replace    func(raw []byte) (C, error)
	patch      func(all []scim.Operation) C
	encode     func(T) scimResource
}

func (a scimRoutes) scimUsers() scimKind[scim.User, scim.UserChange] {
	return scimKind[scim.User, scim.UserChange]{
		of: a.api, apart: "groups", list: a.SCIM.Users,
		get: a.SCIM.User, create: a.SCIM.CreateUser, update: a.SCIM.UpdateUser, remove: a.SCIM.DeleteUser,
		replace: scim.ReplaceUser, patch: scim.PatchUser, encode: a.scimUser,
	}
}

func (a scimRoutes) scimGroups() scimKind[scim.Group, scim.GroupChange] {
	return scimKind[scim.Group, scim.GroupChange]{
		of: a.api, apart: "members", quietPatch: true,
		list: a.SCIM.Groups, get: a.SCIM.Group, create: a.SCIM.CreateGroup, update: a.SCIM.UpdateGroup,
		remove: a.SCIM.DeleteGroup, replace: scim.ReplaceGroup, patch: scim.PatchGroup, encode: a.scimGroup,
	}
}

func (k scimKind[T, C]) page(r *rest.Request) (rest.Reply, error) {
	given, err := scimQueryOf(r)
	if err != nil {
		return rest.Reply{}, err
	}
	q, selected, err := given.read()
	if err != nil {
		return rest.Reply{}, err
	}
	page, err := k.list(r.Context(), scimClientOf(r), q, selected.Has(k.apart))
	if err != nil {
		return rest.Reply{}, err
	}
	all := make([]map[string]any, len(page.Items))
	for i, item := range page.Items {
		all[i] = k.encode(item).body
		selected.Apply(all[i])
	}
	return scimReply(http.StatusOK, scimPage(all, page.Total, page.Start))
}

func (k scimKind[T, C]) one(r *rest.Request) (rest.Reply, error) {
	selected, err := scimSelectionOf(r)
	if err != nil {
		return rest.Reply{}, err
	}
	v, err := k.get(r.Context(), scimClientOf(r), r.Param("id"), selected.Has(k.apart))
	if err != nil {
		return rest.Reply{}, err
	}
	return k.encode(v).reply(k.of, r, http.StatusOK, selected)
}

func (k scimKind[T, C]) add(r *rest.Request) (rest.Reply, error) {
	return k.write(r, http.StatusCreated, k.replace, func(change C, _ bool) (T, error) {
		return k.create(r.Context(), scimClientOf(r), change)
	})
}

func (k scimKind[T, C]) put(r *rest.Request) (rest.Reply, error) {
	return k.write(r, http.StatusOK, k.replace, k.updated(r))
}

func (k scimKind[T, C]) patched(r *rest.Request) (rest.Reply, error) {
	return k.write(r, http.StatusOK, func(raw []byte) (C, error) {
		all, err := scim.ParsePatch(raw)
		return k.patch(all), err
	}, k.updated(r))
}

func (k scimKind[T, C]) updated(r *rest.Request) func(change C, apart bool) (T, error) {
	return func(change C, apart bool) (T, error) {
		return k.update(r.Context(), scimClientOf(r), r.Param("id"), scimConditionOf(r), change, apart)
	}
}

// write reads a change, and answers with the resource that store returns.
func (k scimKind[T, C]) write(
	r *rest.Request, status int, read func(raw []byte) (C, error), store func(change C, apart bool) (T, error),
) (rest.Reply, error) {
	selected, err := scimSelectionOf(r)
	if err != nil {
		return rest.Reply{}, err
	}
	raw, err := scimBodyOf(r)
	if err != nil {
		return rest.Reply{}, err
	}
	change, err := read(raw)
	if err != nil {
		return rest.Reply{}, err
	}
	quiet := k.quietPatch && r.Method == http.MethodPatch && !selected.Given()
	v, err := store(change, !quiet && selected.Has(k.apart))
	if err != nil {
		return rest.Reply{}, err
	}
	written := k.encode(v)
	if quiet {
		return rest.Reply{Status: http.StatusNoContent, Header: map[string]string{"Etag": written.tag()}}, nil
	}
	return written.reply(k.of, r, status, selected)
}

func (k scimKind[T, C]) drop(r *rest.Request) (rest.Reply, error) {
	if err := k.remove(r.Context(), scimClientOf(r), r.Param("id"), scimConditionOf(r)); err != nil {
		return rest.Reply{}, err
	}
	return rest.Reply{Status: http.StatusNoContent}, nil
}

// listSCIMUsers serves GET
// /api/scim/v2/Users?filter=&sortBy=&sortOrder=&startIndex=&count=&attributes=&excludedAttributes=
// and POST /api/scim/v2/Users/.search with these in its body: 200 and a page of the users of the
// token's domain, 100 unless count says otherwise, 200 at most; 400 invalidFilter; 400 tooMany for
// a filter or an order that has to look at too many.
func (a scimRoutes) listSCIMUsers(r *rest.Request) (rest.Reply, error) { return a.scimUsers().page(r) }

// getSCIMUser serves GET /api/scim/v2/Users/{id}: 200 and a user of the token's domain; 304; 404.
func (a scimRoutes) getSCIMUser(r *rest.Request) (rest.Reply, error) { return a.scimUsers().one(r) }

// createSCIMUser serves POST /api/scim/v2/Users: 201 and the new user of the token's domain, who
// has no password and no rights, or one whom the provider has deleted before; 400 invalidValue
// naming the attribute; 409 uniqueness for a userName that another user of the tenant has.
func (a scimRoutes) createSCIMUser(r *rest.Request) (rest.Reply, error) { return a.scimUsers().add(r) }

// putSCIMUser serves PUT /api/scim/v2/Users/{id}: 200 and the user; what the body leaves out is
// removed, but for active; 400; 404; 409 for a userName that another user has, and for the last
// enabled superuser of the tenant, who stays; 412.
func (a scimRoutes) putSCIMUser(r *rest.Request) (rest.Reply, error) { return a.scimUsers().put(r) }

// patchSCIMUser serves PATCH /api/scim/v2/Users/{id}: 200 and the user. Operations as RFC 7644,
// Entra and Okta have them, 1,000 at most; all are made or none. active false disables the user,
// and ends the sessions and tokens. 400; 404; 409 and 412 as a PUT.
func (a scimRoutes) patchSCIMUser(r *rest.Request) (rest.Reply, error) {
	return a.scimUsers().patched(r)
}

// deleteSCIMUser serves DELETE /api/scim/v2/Users/{id}: 204; the user is disabled, out of the
// provider's groups, and 404 here from now on. The row stays, with what it owns; a POST with the
// same userName brings it back. 404; 409 for the last enabled superuser of the tenant; 412.
func (a scimRoutes) deleteSCIMUser(r *rest.Request) (rest.Reply, error) { return a.scimUsers().drop(r) }

// listSCIMGroups serves GET /api/scim/v2/Groups and POST /api/scim/v2/Groups/.search as
// listSCIMUsers does: 200 and a page of the groups of the token's domain, which ends early when
// they have more than 20,000 members together: excludedAttributes=members shows them all.
func (a scimRoutes) listSCIMGroups(r *rest.Request) (rest.Reply, error) {
	return a.scimGroups().page(r)
}

// getSCIMGroup serves GET /api/scim/v2/Groups/{id}: 200 and a group of the token's domain; 304; 400
// tooMany for one with more than 100,000 members, unless excludedAttributes=members; 404.
func (a scimRoutes) getSCIMGroup(r *rest.Request) (rest.Reply, error) { return a.scimGroups().one(r) }

// createSCIMGroup serves POST /api/scim/v2/Groups: 201 and the new group, a team of the token's
// domain whose members have the role member; 400 invalidValue naming the attribute, also for a
// member that is no user of the domain; 409 uniqueness for the name of another group of the domain.
func (a scimRoutes) createSCIMGroup(r *rest.Request) (rest.Reply, error) {
	return a.scimGroups().add(r)
}

// putSCIMGroup serves PUT /api/scim/v2/Groups/{id}: 200 and the group, whose members are those of
// the body; members who stay keep their roles. 400; 404; 409; 412.
func (a scimRoutes) putSCIMGroup(r *rest.Request) (rest.Reply, error) { return a.scimGroups().put(r) }

// patchSCIMGroup serves PATCH /api/scim/v2/Groups/{id}: 204, or with attributes 200 and these.
// Adding and removing members reads none of the others. 400; 404; 409; 412.
func (a scimRoutes) patchSCIMGroup(r *rest.Request) (rest.Reply, error) {
	return a.scimGroups().patched(r)
}

// deleteSCIMGroup serves DELETE /api/scim/v2/Groups/{id}: 204; the users of the domain leave the
// team, which stays with what it owns and is 404 here from now on. 404; 412.
func (a scimRoutes) deleteSCIMGroup(r *rest.Request) (rest.Reply, error) {
	return a.scimGroups().drop(r)
}
