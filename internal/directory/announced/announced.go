// Package announced announces the teams and memberships that scans of directories and providers of
// identities write. Package profile does the same for users.
//
// dirsync and scim import it.
package announced

import (
	"context"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/principals"
)

// MemberKey names a membership: a team and a user in it.
type MemberKey struct{ TeamID, Username string }

// TeamStore is the part of a Store of dirsync and scim that writes teams and memberships.
type TeamStore interface {
	// InsertTeam, UpdateTeam and PutMember are those of principals.Store.
	InsertTeam(ctx context.Context, tenant string, t principals.Team) error
	UpdateTeam(ctx context.Context, tenant, id string, edit func(*principals.Team) error) (principals.Team, error)
	PutMember(ctx context.Context, tenant string, m principals.Membership) error
	// PutTeams is that of principals.TransferStore. It is called with new teams only.
	PutTeams(ctx context.Context, tenant string, all []principals.Team, yield []string) error
	// AddMembers adds memberships; those that exist keep their roles.
	AddMembers(ctx context.Context, tenant string, all []principals.Membership) error
	// DeleteMembers removes memberships. It ignores those that do not exist.
	DeleteMembers(ctx context.Context, tenant string, all []MemberKey) error
}

// Teams is a TeamStore that announces its writes, in the transaction in ctx, which must have one.
type Teams struct {
	store TeamStore
	feed  *entity.Changes
}

// Announce returns a Teams. feed may be nil.
func Announce(s TeamStore, feed *entity.Changes) Teams { return Teams{s, feed} }

// InsertTeam implements TeamStore.
func (a Teams) InsertTeam(ctx context.Context, tenant string, t principals.Team) error {
	if err := a.store.InsertTeam(ctx, tenant, t); err != nil {
		return err
	}
	return a.teams(ctx, tenant, entity.ActionCreate, t.ID)
}

// UpdateTeam implements TeamStore.
func (a Teams) UpdateTeam(
	ctx context.Context, tenant, id string, edit func(*principals.Team) error,
) (principals.Team, error) {
	t, err := a.store.UpdateTeam(ctx, tenant, id, edit)
	if err != nil {
		return t, err
	}
	return t, a.teams(ctx, tenant, entity.ActionUpdate, id)
}

// PutTeams implements TeamStore.
func (a Teams) PutTeams(ctx context.Context, tenant string, all []principals.Team, yield []string) error {
	if err := a.store.PutTeams(ctx, tenant, all, yield); err != nil {
		return err
	}
	ids := make([]string, len(all))
	for i, t := range all {
		ids[i] = t.ID
	}
	return a.teams(ctx, tenant, entity.ActionCreate, ids...)
}

// PutMember implements TeamStore.
func (a Teams) PutMember(ctx context.Context, tenant string, m principals.Membership) error {
	if err := a.store.PutMember(ctx, tenant, m); err != nil {
		return err
	}
	return a.members(ctx, tenant, entity.ActionUpdate, a.feed.Part(m.TeamID, m.Username))
}

// AddMembers implements TeamStore.
func (a Teams) AddMembers(ctx context.Context, tenant string, all []principals.Membership) error {
	if err := a.store.AddMembers(ctx, tenant, all); err != nil {
		return err
	}
	ids := make([]string, len(all))
	for i, m := range all {
		ids[i] = a.feed.Part(m.TeamID, m.Username)
	}
	return a.members(ctx, tenant, entity.ActionUpdate, ids...)
}

// DeleteMembers implements TeamStore.
func (a Teams) DeleteMembers(ctx context.Context, tenant string, all []MemberKey) error {
	if err := a.store.DeleteMembers(ctx, tenant, all); err != nil {
		return err
	}
	ids := make([]string, len(all))
	for i, m := range all {
		ids[i] = a.feed.Part(m.TeamID, m.Username)
	}
	return a.members(ctx, tenant, entity.ActionDelete, ids...)
}

func (a Teams) teams(ctx context.Context, tenant string, action entity.Action, ids ...string) error {
	return a.feed.Each(ctx, tenant, action, entity.Keys(entity.KindTeam, ids...)...)
}

func (a Teams) members(ctx context.Context, tenant string, action entity.Action, ids ...string) error {
	return a.feed.Each(ctx, tenant, action, entity.Keys(entity.KindMember, ids...)...)
}
