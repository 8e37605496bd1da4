package httpapi

import (
	"io"
	"net/http"
	"strconv"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/hal"
	"github.com/tenantcontent/tenantcontent/principals"
)

// principalRoutes serves users and teams alike.
type principalRoutes struct{ *api }

// routes returns the rows of the route table.
func (a principalRoutes) routes() []Route {
	return []Route{
		{Method: get, Pattern: "/api/principal-list", Name: "listPrincipals", Grants: nothing, Heavy: brief, Query: none, Summary: "Every user and team", handle: a.listPrincipals},
		{Method: get, Pattern: "/api/principals/:id", Name: "resolvePrincipal", Grants: nothing, AnyType: true, Summary: "Redirect to the user or team", handle: a.resolvePrincipal},
		{Method: post, Pattern: "/api/principals/:id/_reassign", Name: "reassignPrincipal", Grants: rights, Heavy: long, Writes: InSlot, Options: reassignInput{}, Summary: "Give a principal's content to another one", handle: a.reassignPrincipal},
	}
}

// listPrincipals serves GET /api/principal-list: 200 and every user and team as a plain array, ordered by name.
func (a principalRoutes) listPrincipals(r *request) (reply, error) {
	return streamed(func(w io.Writer) error {
		return writeArray(w, a.Principals.Principals(r.Context()), func(dst []byte, p principals.Principal) []byte {
			return a.appendPrincipal(dst, r.who.Tenant, p)
		})
	})
}

// appendPrincipal appends one row of the list. It is written by hand because the list may
// be long.
func (a principalRoutes) appendPrincipal(dst []byte, tenant string, p principals.Principal) []byte {
	var userID, teamID *string
	if p.Type == principals.TypeTeam {
		teamID = &p.ID
	} else {
		userID = &p.ID
	}
	index, background, text := principals.Avatar(tenant, p.ID)
	dst = hal.AppendString(append(dst, `{"id":`...), p.ID)
	dst = hal.AppendStringOrNull(append(dst, `,"userId":`...), userID)
	dst = hal.AppendStringOrNull(append(dst, `,"teamId":`...), teamID)
	dst = hal.AppendString(append(dst, `,"type":`...), string(p.Type))
	dst = hal.AppendString(append(dst, `,"name":`...), p.Name)
	dst = hal.AppendStringOrNull(append(dst, `,"username":`...), userID)
	dst = hal.AppendStringOrNull(append(dst, `,"displayName":`...), p.DisplayName)
	dst = hal.AppendStringOrNull(append(dst, `,"email":`...), p.Email)
	dst = hal.AppendString(append(dst, `,"initials":`...), p.Initials())
	dst = hal.AppendString(append(dst, `,"avatarColor":{"background":`...), background)
	dst = hal.AppendString(append(dst, `,"text":`...), text)
	dst = strconv.AppendInt(append(dst, `},"colorIndex":`...), int64(index), 10)
	if p.AvatarUpdatedAt != nil {
		dst = hal.AppendString(append(dst, `,"avatarUrl":`...), a.href("users", p.ID, "avatar"))
	}
	dst = hal.AppendTimeOrNull(append(dst, `,"avatarUpdatedAt":`...), p.AvatarUpdatedAt)
	dst = hal.AppendStringOrNull(append(dst, `,"color":`...), p.Color)
	dst = hal.AppendStringOrNull(append(dst, `,"icon":`...), p.Icon)
	dst = hal.AppendStringOrNull(append(dst, `,"materialIcon":`...), p.MaterialIcon)
	dst = hal.AppendString(append(dst, `,"tenant":`...), tenant)
	return append(dst, '}')
}

// reassignInput names the new owner of what a principal owns.
type reassignInput struct {
	To string `json:"to"`
}

// reassignPrincipal serves POST /api/principals/{id}/_reassign: 200 and what has a new owner, as a plain array; 400 when to
// is unknown, * or the principal itself; 401 for callers who may not; 404.
func (a principalRoutes) reassignPrincipal(r *request) (reply, error) {
	in, err := options[reassignInput](r)
	if err != nil {
		return reply{}, err
	}
	if in.To == "" {
		return reply{}, errs.New(errs.Invalid, "to is required")
	}
	moved, err := a.Principals.Reassign(r.Context(), r.param("id"), in.To)
	if err != nil {
		return reply{}, err
	}
	return streamed(func(w io.Writer) error {
		row := []byte{'['}
		for i, ref := range moved {
			if i > 0 {
				row = append(row, ',')
			}
			row = hal.AppendString(append(row, `{"type":`...), string(ref.Kind))
			row = hal.AppendString(append(row, `,"id":`...), ref.ID)
			row = hal.AppendString(append(row, `,"name":`...), ref.Name)
			row = append(hal.AppendString(append(row, `,"ownerId":`...), ref.OwnerID), '}')
			if _, err := w.Write(row); err != nil {
				return err
			}
			row = row[:0]
		}
		_, err := w.Write(append(row, ']'))
		return err
	})
}

// resolvePrincipal serves GET /api/principals/{id}: 302 to the user or the team, a path below that of the base
// URL, with an empty body; 404.
func (a principalRoutes) resolvePrincipal(r *request) (reply, error) {
	p, err := a.Principals.Resolve(r.Context(), r.param("id"))
	if err != nil {
		return reply{}, err
	}
	kind := "users"
	if p.Type == principals.TypeTeam {
		kind = "teams"
	}
	return reply{status: http.StatusFound, header: map[string]string{"Location": a.mount + hal.Href(kind, p.ID)}}, nil
}
