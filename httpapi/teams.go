package httpapi

import (
	"context"

	"github.com/tenantcontent/tenantcontent/internal/rest"
	"github.com/tenantcontent/tenantcontent/internal/rest/openapi"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/hal"
	"github.com/tenantcontent/tenantcontent/paging"
	"github.com/tenantcontent/tenantcontent/principals"
)

// teamRoutes serves teams and their members.
type teamRoutes struct{ *api }

// routes returns the rows of the route table.
func (a teamRoutes) routes() []rest.Route {
	return []rest.Route{
		{
			Method:  get,
			Pattern: "/api/users/:username/memberships",
			Name:    "listMemberships",
			Grants:  nothing,
			Query:   paged,
			Summary: "The teams of a user",
			Gives:   openapi.OK(openapi.Page[memberBody]("inf:membership")),
			Fails:   []int{400, 404},
			Handle:  a.listMemberships,
		},
		{
			Method:  get,
			Pattern: "/api/teams",
			Name:    "listTeams",
			Grants:  nothing,
			Query:   searched,
			Summary: "The teams",
			Gives:   openapi.OK(openapi.Page[teamBody]("inf:team")),
			Fails:   []int{400},
			Handle:  a.listTeams,
		},
		{
			Method:     post,
			Pattern:    "/api/teams",
			Name:       "createTeam",
			Grants:     rights,
			Permission: actor.Superuser,
			Writes:     rest.InTx,
			Summary:    "Add a team",
			Takes:      openapi.Input[teamInput](),
			Gives:      openapi.Created(openapi.One[teamBody]()),
			Fails:      []int{400, 403, 409},
			Handle:     a.createTeam,
		},
		{
			Method:  get,
			Pattern: "/api/teams/:id",
			Name:    "getTeam",
			Grants:  nothing,
			Summary: "One team",
			Gives:   openapi.OK(openapi.One[teamBody]()),
			Fails:   []int{404},
			Handle:  a.getTeam,
		},
		{
			Method:  put,
			Pattern: "/api/teams/:id",
			Name:    "putTeam",
			Grants:  rights,
			Row:     "team",
			Writes:  rest.InTx,
			Summary: "Change a team",
			Takes:   openapi.Update[teamInput, teamBody](),
			Gives:   openapi.OK(openapi.One[teamBody]()),
			Fails:   []int{400, 403, 404, 409},
			Handle:  a.putTeam,
		},
		{
			Method:     del,
			Pattern:    "/api/teams/:id",
			Name:       "deleteTeam",
			Grants:     rights,
			Row:        "team",
			Permission: actor.Superuser,
			Writes:     rest.InTx,
			Options:    deletePrincipalInput{},
			Summary:    "Remove a team",
			Gives:      openapi.OK(openapi.None()),
			Fails:      []int{400, 403, 404},
			Handle:     a.deleteTeam,
		},
		{
			Method:  get,
			Pattern: "/api/teams/:id/members",
			Name:    "listMembers",
			Grants:  nothing,
			Query:   paged,
			Summary: "The members of a team",
			Gives:   openapi.OK(openapi.Page[memberBody]("inf:membership")),
			Fails:   []int{400, 404},
			Handle:  a.listMembers,
		},
		{
			Method:  get,
			Pattern: "/api/teams/:id/members/:username",
			Name:    "getMember",
			Grants:  nothing,
			Summary: "One membership",
			Gives:   openapi.OK(openapi.One[memberBody]()),
			Fails:   []int{404},
			Handle:  a.getMember,
		},
		{
			Method:  put,
			Pattern: "/api/teams/:id/members/:username",
			Name:    "putMember",
			Grants:  rights,
			Row:     "member",
			Writes:  rest.InTx,
			Summary: "Add a member or change a role",
			Takes:   openapi.Update[memberInput, memberBody](),
			Gives:   openapi.OK(openapi.One[memberBody]()),
			Fails:   []int{400, 403, 404},
			Handle:  a.putMember,
		},
		{
			Method:  del,
			Pattern: "/api/teams/:id/members/:username",
			Name:    "deleteMember",
			Grants:  rights,
			Row:     "member",
			Writes:  rest.InTx,
			Options: rest.NoOptions{},
			Summary: "Remove a member",
			Gives:   openapi.OK(openapi.None()),
			Fails:   []int{403, 404},
			Handle:  a.deleteMember,
		},
	}
}

// teamBody is a Team as the API writes it.
type teamBody struct {
	Tenant       string   `json:"tenant"`
	ID           string   `json:"id"`
	Name         string   `json:"name"`
	Slug         string   `json:"slug"`
	NaturalID    string   `json:"naturalId"`
	Description  *string  `json:"description"`
	Domain       string   `json:"domain"`
	Color        *string  `json:"color"`
	Icon         *string  `json:"icon"`
	MaterialIcon *string  `json:"materialIcon"`
	Source       *string  `json:"source"`
	SourceID     *string  `json:"sourceId"`
	CreatedAt    hal.Time `json:"createdAt"`
	UpdatedAt    hal.Time `json:"updatedAt"`
	avatarBody
	Permissions teamPermissionsBody `json:"permissions"`
}

// Relations implements openapi.Related.
func (teamBody) Relations() openapi.Relations {
	return openapi.Relations{Links: []string{"inf:comments", "inf:members", "inf:teams"}}
}

type teamPermissionsBody struct {
	ChangeDomain  bool `json:"changeDomain"`
	Delete        bool `json:"delete"`
	Edit          bool `json:"edit"`
	ManageMembers bool `json:"manageMembers"`
	Reassign      bool `json:"reassign"`
	Write         bool `json:"write"`
}

func (a teamRoutes) team(who actor.Actor, t principals.Team) hal.Resource {
	return hal.Resource{Links: a.teamLinks(t.ID), Row: t, Value: teamBody{
		Tenant: t.Tenant, ID: t.ID, Name: t.Name, Slug: t.Slug, NaturalID: t.NaturalID(), Description: t.Description,
		Domain: t.Domain, Color: t.Color, Icon: t.Icon,
		MaterialIcon: t.MaterialIcon, Source: t.Source, SourceID: t.SourceID,
		CreatedAt: hal.Time(t.CreatedAt), UpdatedAt: hal.Time(t.UpdatedAt),
		avatarBody:  avatar(t.Tenant, t.ID, principals.Initials(t.Name)),
		Permissions: teamPermissionsBody(principals.TeamPermissionsOf(who, t)),
	}}
}

func (a teamRoutes) teamLinks(id string) hal.Links {
	return hal.Self(a.href("teams", id)).With("inf:members", a.href("teams", id, "members")).
		With("inf:comments", a.href("teams", id, "comments")).With("inf:teams", a.href("teams"))
}

// teamInput is the body of a write to a team. A field that is left out stays as it is.
type teamInput struct {
	Name         *string            `json:"name"`
	Slug         *string            `json:"slug"`
	Description  rest.Field[string] `json:"description"`
	Domain       rest.Field[string] `json:"domain"`
	Color        rest.Field[string] `json:"color"`
	Icon         rest.Field[string] `json:"icon"`
	MaterialIcon rest.Field[string] `json:"materialIcon"`
	Source       rest.Field[string] `json:"source"`
	SourceID     rest.Field[string] `json:"sourceId"`
}

func (in teamInput) apply(t *principals.Team) {
	if in.Name != nil {
		t.Name = *in.Name
	}
	if in.Slug != nil {
		t.Slug = *in.Slug
	}
	in.Description.ApplyOrNull(&t.Description)
	in.Domain.Apply(&t.Domain)
	in.Color.ApplyOrNull(&t.Color)
	in.Icon.ApplyOrNull(&t.Icon)
	in.MaterialIcon.ApplyOrNull(&t.MaterialIcon)
	in.Source.ApplyOrNull(&t.Source)
	in.SourceID.ApplyOrNull(&t.SourceID)
}

// listTeams serves GET /api/teams: 200 and a page of teams, 20 unless limit says otherwise, ordered
// by name unless sort says otherwise (name, createdAt, updatedAt); q searches name, slug and
// description.
func (a teamRoutes) listTeams(r *rest.Request) (rest.Reply, error) {
	q, err := r.Page(20)
	if err != nil {
		return rest.Reply{}, err
	}
	page, err := a.Principals.Teams(r.Context(), q)
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.OK(rest.Collection(a.BaseURL, r, q, page, "inf:team", nil, func(t principals.Team) hal.Resource {
		return a.team(r.Who, t)
	}))
}

// createTeam serves POST /api/teams: 201 and the team; 409 for a taken slug, which comes from the
// name when left out.
func (a teamRoutes) createTeam(r *rest.Request) (rest.Reply, error) {
	in, err := rest.Decode[teamInput](r)
	if err != nil {
		return rest.Reply{}, err
	}
	var t principals.Team
	in.apply(&t)
	if t, err = a.Principals.CreateTeam(r.Context(), t); err != nil {
		return rest.Reply{}, err
	}
	return rest.Created(a.href("teams", t.ID), a.team(r.Who, t))
}

// getTeam serves GET /api/teams/{id}, an id or a slug: 200 and the team; 404.
func (a teamRoutes) getTeam(r *rest.Request) (rest.Reply, error) {
	return a.teamReply(r)(a.Principals.Team(r.Context(), r.Param("id")))
}

// teamReply replies with the result of a service: 200 and the team.
func (a teamRoutes) teamReply(r *rest.Request) func(principals.Team, error) (rest.Reply, error) {
	return func(t principals.Team, err error) (rest.Reply, error) {
		if err != nil {
			return rest.Reply{}, err
		}
		return rest.OK(a.team(r.Who, t))
	}
}

// putTeam serves PUT /api/teams/{id}: 200 and the changed team; what the body leaves out stays. For
// superusers and the team's admins.
func (a teamRoutes) putTeam(r *rest.Request) (rest.Reply, error) {
	in, err := rest.DecodeUpdate[teamInput](r, teamBody{})
	if err != nil {
		return rest.Reply{}, err
	}
	return a.teamReply(r)(a.Principals.UpdateTeam(r.Context(), r.Param("id"), func(t *principals.Team) error {
		in.apply(t)
		return nil
	}))
}

// deleteTeam serves DELETE /api/teams/{id}: 200; 409 when the team owns content and no reassignTo
// says who gets it.
func (a teamRoutes) deleteTeam(r *rest.Request) (rest.Reply, error) {
	return principalRoutes(a).deletePrincipal(r, r.Param("id"), a.Principals.DeleteTeam)
}

// deletePrincipalInput names the new owner of what a deleted principal owns.
type deletePrincipalInput struct {
	ReassignTo string `json:"reassignTo"`
}

func (a principalRoutes) deletePrincipal(
	r *rest.Request, id string, remove func(ctx context.Context, id, reassignTo string) error,
) (rest.Reply, error) {
	in, err := rest.Options[deletePrincipalInput](r)
	if err != nil {
		return rest.Reply{}, err
	}
	if err := remove(r.Context(), id, in.ReassignTo); err != nil {
		return rest.Reply{}, err
	}
	return rest.Done()
}

// memberBody is a membership as the API writes it.
type memberBody struct {
	TeamID      string   `json:"teamId"`
	TeamName    string   `json:"teamName"`
	Username    string   `json:"username"`
	DisplayName *string  `json:"displayName"`
	Role        string   `json:"role"`
	CreatedAt   hal.Time `json:"createdAt"`
	Tenant      string   `json:"tenant"`
}

// Relations implements openapi.Related.
func (memberBody) Relations() openapi.Relations {
	return openapi.Relations{Links: []string{"inf:members", "inf:team", "inf:user"}}
}

func (a teamRoutes) member(tenant string, m principals.Membership) hal.Resource {
	links := hal.Self(a.href("teams", m.TeamID, "members", m.Username)).
		With("inf:team", a.href("teams", m.TeamID)).With("inf:user", a.href("users", m.Username)).
		With("inf:members", a.href("teams", m.TeamID, "members"))
	return hal.Resource{Links: links, Row: m, Value: memberBody{
		TeamID: m.TeamID, TeamName: m.TeamName, Username: m.Username, DisplayName: m.DisplayName, Role: m.Role.String(),
		CreatedAt: hal.Time(m.CreatedAt), Tenant: tenant,
	}}
}

// listMembers serves GET /api/teams/{id}/members: 200 and a page of members, 100 unless limit says
// otherwise, ordered by name unless sort says otherwise (displayName, username, createdAt); 404.
func (a teamRoutes) listMembers(r *rest.Request) (rest.Reply, error) {
	return a.memberList(r, r.Param("id"), a.Principals.Members)
}

// listMemberships serves GET /api/users/{username}/memberships: 200 and a page of the user's teams,
// 100 unless limit says otherwise, ordered by name unless sort says otherwise (teamName,
// createdAt); 404.
func (a teamRoutes) listMemberships(r *rest.Request) (rest.Reply, error) {
	return a.memberList(r, r.Param("username"), a.Principals.Memberships)
}

func (a teamRoutes) memberList(
	r *rest.Request, of string,
	list func(context.Context, string, paging.Query) (paging.Page[principals.Membership], error),
) (rest.Reply, error) {
	q, err := r.Page(100)
	if err != nil {
		return rest.Reply{}, err
	}
	page, err := list(r.Context(), of, q)
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.OK(rest.Collection(a.BaseURL, r, q, page, "inf:membership", nil,
		func(m principals.Membership) hal.Resource {
			return a.member(r.Who.Tenant, m)
		}))
}

// getMember serves GET /api/teams/{id}/members/{username}: 200 and the membership; 404.
func (a teamRoutes) getMember(r *rest.Request) (rest.Reply, error) {
	m, err := a.Principals.Member(r.Context(), r.Param("id"), r.Param("username"))
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.OK(a.member(r.Who.Tenant, m))
}

// memberInput is the body of a write to a membership.
type memberInput struct {
	Role string `json:"role"`
}

// putMember serves PUT /api/teams/{id}/members/{username} {role}: 200 and the membership. For
// superusers and the team's admins.
func (a teamRoutes) putMember(r *rest.Request) (rest.Reply, error) {
	in, err := rest.DecodeUpdate[memberInput](r, memberBody{})
	if err != nil {
		return rest.Reply{}, err
	}
	role, err := actor.ParseRole(in.Role)
	if err != nil {
		return rest.Reply{}, err
	}
	m, err := a.Principals.PutMember(r.Context(), r.Param("id"), r.Param("username"), role)
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.OK(a.member(r.Who.Tenant, m))
}

// deleteMember serves DELETE /api/teams/{id}/members/{username}: 200; 404 when the user is not in
// the team.
func (a teamRoutes) deleteMember(r *rest.Request) (rest.Reply, error) {
	if err := a.Principals.DeleteMember(r.Context(), r.Param("id"), r.Param("username")); err != nil {
		return rest.Reply{}, err
	}
	return rest.Done()
}
