package httpapi

import (
	"io"
	"net/http"
	"strconv"

	"github.com/tenantcontent/tenantcontent/internal/rest"
	"github.com/tenantcontent/tenantcontent/internal/rest/openapi"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/hal"
	"github.com/tenantcontent/tenantcontent/principals"
)

// principalRoutes serves users and teams alike.
type principalRoutes struct{ *api }

// routes returns the rows of the route table.
func (a principalRoutes) routes() []rest.Route {
	return []rest.Route{
		{
			Method:  get,
			Pattern: "/api/principal-list",
			Name:    "listPrincipals",
			Grants:  nothing,
			Heavy:   rest.Brief,
			Query:   none,
			Summary: "Every user and team",
			Gives:   openapi.OK(openapi.List[principalRow]()),
			Handle:  a.listPrincipals,
		},
		{
			Method:  get,
			Pattern: "/api/principals/:id",
			Name:    "resolvePrincipal",
			Grants:  nothing,
			AnyType: true,
			Summary: "Redirect to the user or team",
			Gives:   openapi.Answers{302: openapi.None()},
			Fails:   []int{404},
			Handle:  a.resolvePrincipal,
		},
		{
			Method:  post,
			Pattern: "/api/principals/:id/_reassign",
			Name:    "reassignPrincipal",
			Grants:  rights,
			Heavy:   rest.Long,
			Writes:  rest.InSlot,
			Options: reassignInput{},
			Summary: "Give a principal's content to another one",
			Gives:   openapi.OK(openapi.List[reassignedRow]()),
			Fails:   []int{400, 404},
			Handle:  a.reassignPrincipal,
		},
	}
}

// listPrincipals serves GET /api/principal-list: 200 and every user and team as a plain array,
// ordered by name.
func (a principalRoutes) listPrincipals(r *rest.Request) (rest.Reply, error) {
	return rest.Streamed(func(w io.Writer) error {
		return rest.WriteArray(w, a.Principals.Principals(r.Context()), func(
			dst []byte, p principals.Principal,
		) []byte {
			return a.appendPrincipal(dst, r.Who.Tenant, p)
		})
	})
}

// principalRow is a row of the list of principals.
type principalRow struct {
	ID              string          `json:"id"`
	UserID          *string         `json:"userId"`
	TeamID          *string         `json:"teamId"`
	Type            string          `json:"type" enum:"User Team"`
	Name            string          `json:"name"`
	Username        *string         `json:"username"`
	DisplayName     *string         `json:"displayName"`
	Email           *string         `json:"email"`
	Initials        string          `json:"initials"`
	AvatarColor     avatarColorBody `json:"avatarColor"`
	ColorIndex      int             `json:"colorIndex"`
	AvatarURL       string          `json:"avatarUrl,omitempty"`
	AvatarUpdatedAt *hal.Time       `json:"avatarUpdatedAt"`
	Color           *string         `json:"color"`
	Icon            *string         `json:"icon"`
	MaterialIcon    *string         `json:"materialIcon"`
	Tenant          string          `json:"tenant"`
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

// reassignedRow is an entity that has a new owner.
type reassignedRow struct {
	Type    string `json:"type"`
	ID      string `json:"id"`
	Name    string `json:"name"`
	OwnerID string `json:"ownerId"`
}

// reassignPrincipal serves POST /api/principals/{id}/_reassign: 200 and what has a new owner, as a
// plain array; 400 when to is unknown, * or the principal itself; 401 for callers who may not; 404.
func (a principalRoutes) reassignPrincipal(r *rest.Request) (rest.Reply, error) {
	in, err := rest.Options[reassignInput](r)
	if err != nil {
		return rest.Reply{}, err
	}
	if in.To == "" {
		return rest.Reply{}, errs.New(errs.Invalid, "to is required")
	}
	leave, err := r.Slot()
	if err != nil {
		return rest.Reply{}, err
	}
	defer leave()
	moved, err := a.Principals.Reassign(r.Context(), r.Param("id"), in.To)
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.Streamed(func(w io.Writer) error {
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

// resolvePrincipal serves GET /api/principals/{id}: 302 to the user or the team, a path below that
// of the base URL, with an empty body; 404.
func (a principalRoutes) resolvePrincipal(r *rest.Request) (rest.Reply, error) {
	p, err := a.Principals.Resolve(r.Context(), r.Param("id"))
	if err != nil {
		return rest.Reply{}, err
	}
	kind := "users"
	if p.Type == principals.TypeTeam {
		kind = "teams"
	}
	return rest.Reply{
		Status: http.StatusFound,
		Header: map[string]string{"Location": a.mount + hal.Href(kind, p.ID)},
	}, nil
}
