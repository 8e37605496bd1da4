// Package shares defines the shares of apps and assistants: who has access to one, and at which
// level.
//
// Nouns whose entities are shared import it, with internal/store/shares for the rows of their own
// tables, and httpapi does.
package shares

import (
	"context"
	"slices"
	"time"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/secure/guard"
)

// Everyone is the principal of shares that are for every user of the tenant.
const Everyone = "*"

// Level is the access that a share grants. A higher one includes the lower ones.
type Level int

// The levels, low to high.
const (
	None  Level = iota // nothing
	Use                // run an app, talk to an assistant
	Write              // change it, where the role of the caller allows it
	Admin              // of an assistant alone: share it and delete it
)

// Share is what one principal may do with an entity.
type Share struct {
	PrincipalID string   // a username, the id of a team, or Everyone
	Level       Level    // None to the highest level of the entity's kind
	Roles       []string // ids of roles of the entity's manifest, each once, ordered; empty for none
	CreatedAt   time.Time
	UpdatedAt   time.Time
}

// Version changes with every change of the share.
func (s Share) Version() string {
	return guard.Version(s.PrincipalID, int(s.Level), s.Roles, s.CreatedAt, s.UpdatedAt)
}

// The most that a share may have.
const (
	MaxRoles = 100 // of a manifest
	MaxRole  = 128 // characters of the id of one
)

// Accept checks a share whose highest level is top, and orders its roles. Errors: errs.Invalid
// naming the field.
func (s *Share) Accept(top Level) error {
	if s.Level < None || s.Level > top {
		return errs.New(errs.Invalid, "accessLevel must be a number from 0 to %d", top)
	}
	slices.Sort(s.Roles)
	s.Roles = slices.Compact(s.Roles)
	if len(s.Roles) > MaxRoles {
		return errs.New(errs.Invalid, "roles must have at most %d ids", MaxRoles)
	}
	for _, role := range s.Roles {
		if role == "" || len([]rune(role)) > MaxRole {
			return errs.New(errs.Invalid, "roles must be ids of 1 to %d characters", MaxRole)
		}
	}
	return nil
}

// Principals returns the ids that stand for an actor in shares: the user's own, those of the user's
// teams, and Everyone.
func Principals(a actor.Actor) []string {
	ids := make([]string, 0, len(a.Teams)+2)
	ids = append(ids, a.User, Everyone)
	for team := range a.Teams {
		ids = append(ids, team)
	}
	slices.Sort(ids)
	return ids
}

// Grant is the access that all shares of an entity together grant an actor.
type Grant struct {
	Level Level
	Roles []string // ordered, each once
}

// Store keeps the shares of the entities of one kind. The callers of Put, Delete and Replace hold
// the principals first and lock the entity then, in the transaction in ctx, so that nobody waits in
// a circle. The tests beside its bun-backed store say what every implementation must do.
type Store interface {
	// All returns the shares of an entity, ordered by PrincipalID.
	All(ctx context.Context, tenant, id string) ([]Share, error)
	// Some returns the shares of some entities, by their ids, ordered by PrincipalID.
	Some(ctx context.Context, tenant string, ids []string) (map[string][]Share, error)
	// One returns the share of a principal. It fails with errs.NotFound.
	One(ctx context.Context, tenant, id, principal string) (Share, error)
	// Put adds a share, or overwrites that of its principal except for CreatedAt.
	Put(ctx context.Context, tenant, id string, s Share) (Share, error)
	// Delete fails with errs.NotFound when the principal has no share.
	Delete(ctx context.Context, tenant, id, principal string) error
	// Grants returns the grants of somebody with these principal ids at some entities. Those
	// without one are left out.
	Grants(ctx context.Context, tenant string, ids, principals []string) (map[string]Grant, error)
	// Replace makes the shares of some entities, by their ids, exactly these, with their times. It
	// fails with errs.Conflict when a principal has two of one entity.
	Replace(ctx context.Context, tenant string, all map[string][]Share) error
	// Remove removes all shares of some entities.
	Remove(ctx context.Context, tenant string, ids []string) error
	// SharedWith returns the ids of the entities that have a share of one of some principals, each
	// once, ordered.
	SharedWith(ctx context.Context, tenant string, principals []string) ([]string, error)
	// RemovePrincipals removes the shares of principals who are deleted. The caller has locked the
	// entities that have one.
	RemovePrincipals(ctx context.Context, tenant string, principals []string) error
	// RenameUsers replaces the names of users; names maps old ones to new ones, and no new one is
	// an old one.
	RenameUsers(ctx context.Context, tenant string, names map[string]string) error
}
