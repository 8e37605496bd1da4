// Package actor defines the caller of a service: its user, its tenant and its rights. A context
// carries it.
//
//	ctx = actor.With(ctx, actor.Actor{Tenant: "acme", User: "jo", Teams: map[string]actor.Role{
//		team: actor.Designer,
//	}})
//	a, err := actor.From(ctx) // errs.Unauthenticated for a context without a caller
//	_, err = actor.Allowed(ctx, actor.Superuser)
//
// Every noun imports it and checks the caller before each query. Sessions and hosts make actors.
package actor

import (
	"context"
	"maps"
	"slices"

	"github.com/tenantcontent/tenantcontent/errs"
)

// Role is what a user may do in a team. Roles are ordered: a higher role may do all that a lower
// one may.
type Role int

// The roles, low to high. NoRole is the role of a user without a team.
const (
	NoRole Role = iota
	Member
	Designer
	DataWizard
	Publisher
	Admin
)

var roleNames = [...]string{"", "member", "designer", "dataWizard", "publisher", "admin"}

// String returns the role's name as the API writes it, "" for NoRole.
func (r Role) String() string {
	if r < NoRole || r > Admin {
		return ""
	}
	return roleNames[r]
}

// RoleHint is the end of a refusal for a missing role. It explains how roles are assigned.
const RoleHint = "A superuser gives roles, in a team: PUT /api/teams/{id}/members/{username}."

// ParseRole reads a role's name as the API writes it. Errors: errs.Invalid for any other text.
func ParseRole(name string) (Role, error) {
	if i := slices.Index(roleNames[:], name); i > 0 {
		return Role(i), nil
	}
	return NoRole, errs.New(errs.Invalid, "role must be one of member, designer, dataWizard, publisher and admin")
}

// Actor is the caller of a service: one user of one tenant, with the user's current rights.
type Actor struct {
	Tenant    string          // tenant id, never empty
	User      string          // username, never empty
	Superuser bool            // passes every check in its tenant, and no check of another tenant
	AI        bool            // holds the `ai` credential (globalPermissions.ai)
	Teams     map[string]Role // team id to role in it
	// role over the whole tenant that Capped leaves a superuser, not as a member of a team; else
	// NoRole
	Wide     Role
	ReadOnly bool   // a read-only API token: only GET and HEAD
	Token    string // id of the API token that was used, "" for a session or a host's actor
	Session  string // id of the session that was used, "" for an API token or a host's actor
}

// Role returns the highest role over all teams; tenant-wide rules use it.
func (a Actor) Role() Role {
	highest := a.Wide
	for _, r := range a.Teams {
		highest = max(highest, r)
	}
	return highest
}

// Capped returns the actor with at most the tenant-wide rights of by, the owner of an app that
// calls the service for the actor. The actor keeps its name, its memberships and its token or
// session, and so all rows that it owns and all shares. Its role in each team is at most the
// highest role of by. It has AI only if both have AI or are superusers, and stays a superuser only
// if both are. Another superuser becomes an actor with the highest role of by over the whole
// tenant, and has in teams only the rights of its memberships.
func (a Actor) Capped(by Actor) Actor {
	a.AI = (a.AI || a.Superuser) && (by.AI || by.Superuser)
	if by.Superuser {
		return a
	}
	highest := by.Role()
	if a.Superuser {
		a.Superuser, a.Wide = false, Admin
	}
	a.Wide = min(a.Wide, highest)
	a.Teams = maps.Clone(a.Teams)
	for id, role := range a.Teams {
		a.Teams[id] = min(role, highest)
	}
	return a
}

// Permission is a tenant-wide right, as the API names it.
type Permission string

// The tenant-wide permissions. Every session has the empty permission.
const (
	ColorWrite Permission = "color:write" // Designer; color.edit and color.delete resolve to it
	// EntityWrite is the permission to make a report, a dataset or another plain entity. It needs
	// Designer, too.
	EntityWrite Permission = "entity:write"
	Superuser   Permission = "superuser" // only superusers
	// SuperuserRead is the permission to read what only superusers may read. A read-only token can
	// have it.
	SuperuserRead Permission = "superuser:read"
)

// floors holds the lowest role that has a permission. Only superusers have a permission that is not
// in it.
var floors = map[Permission]Role{ColorWrite: Designer, EntityWrite: Designer}

// Can reports whether the actor has the permission in its tenant.
func (a Actor) Can(p Permission) bool {
	switch {
	case p == "":
		return true
	case a.ReadOnly && p != SuperuserRead: // all other permissions are for writing
		return false
	case a.Superuser:
		return true
	}
	floor, ok := floors[p]
	return ok && a.Role() >= floor
}

// Owns reports whether the actor may do with a row of ownerID what its owner may: the actor is the
// owner, a Designer in the owning team, or a superuser. It is false for a read-only token.
func (a Actor) Owns(ownerID string) bool {
	return !a.ReadOnly && (a.Superuser || a.User == ownerID || a.Teams[ownerID] >= Designer)
}

// Require returns errs.Forbidden if the actor does not have the permission.
func (a Actor) Require(p Permission) error {
	if a.Can(p) {
		return nil
	}
	if a.ReadOnly && p != SuperuserRead {
		return a.OnlyReads()
	}
	if floor, ok := floors[p]; ok {
		return errs.New(errs.Forbidden, "This needs the role %s or a higher one. %s", floor, RoleHint)
	}
	return errs.New(errs.Forbidden, "This needs a superuser.")
}

// OnlyReads returns the errs.Forbidden for a write by an actor with ReadOnly.
func (a Actor) OnlyReads() error {
	if _, team := a.Teams[a.User]; team { // the owner of an app, whose webhooks and agents run as the owner
		return errs.New(
			errs.Forbidden,
			"The app belongs to a team, so its webhooks and agents can only read. Give it to a user, if they "+
				"shall write.",
		)
	}
	return errs.New(errs.Forbidden, "This token can only read.")
}

type ctxKey struct{}

// With returns a context that carries the actor.
func With(ctx context.Context, a Actor) context.Context {
	return context.WithValue(ctx, ctxKey{}, a)
}

// From returns the actor of a context. It returns errs.Unauthenticated if the context has no actor,
// or the actor has no tenant or no user.
func From(ctx context.Context) (Actor, error) {
	a, ok := ctx.Value(ctxKey{}).(Actor)
	if !ok || a.Tenant == "" || a.User == "" {
		return Actor{}, errs.New(errs.Unauthenticated, "Log in first.")
	}
	return a, nil
}

// Allowed returns the actor of a context if it has the permission. Errors: errs.Unauthenticated,
// errs.Forbidden.
func Allowed(ctx context.Context, p Permission) (Actor, error) {
	a, err := From(ctx)
	if err != nil {
		return Actor{}, err
	}
	return a, a.Require(p)
}

// Permissions returns the tenant-wide permissions that are shown to a caller.
func Permissions() []Permission { return []Permission{ColorWrite, EntityWrite} }
