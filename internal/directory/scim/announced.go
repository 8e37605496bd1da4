package scim

import (
	"context"
	"time"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/directory/announced"
	"github.com/tenantcontent/tenantcontent/principals"
)

// announcing is a Store that announces its writes.
type announcing struct {
	Store
	profiles announced.Profiles
}

func announce(s Store, feed *entity.Changes) Store {
	if feed == nil {
		return s
	}
	return announcing{s, announced.Profiles{ProfileStore: s, Feed: announced.Feed{Changes: feed}}}
}

// AddDirectoryUsers implements Store.
func (a announcing) AddDirectoryUsers(
	ctx context.Context, tenant, domain string, all []principals.DirectoryUser, at time.Time,
) error {
	return a.profiles.AddDirectoryUsers(ctx, tenant, domain, all, at)
}

// EditDirectoryUsers implements Store.
func (a announcing) EditDirectoryUsers(
	ctx context.Context, tenant string, usernames []string, at time.Time, edit func(*principals.DirectoryUser),
) error {
	return a.profiles.EditDirectoryUsers(ctx, tenant, usernames, at, edit)
}

// InsertTeam implements Store.
func (a announcing) InsertTeam(ctx context.Context, tenant string, t principals.Team) error {
	if err := a.Store.InsertTeam(ctx, tenant, t); err != nil {
		return err
	}
	return a.profiles.Feed.Team(ctx, tenant, entity.ActionCreate, t.ID)
}

// UpdateTeam implements Store.
func (a announcing) UpdateTeam(
	ctx context.Context, tenant, id string, edit func(*principals.Team) error,
) (principals.Team, error) {
	t, err := a.Store.UpdateTeam(ctx, tenant, id, edit)
	if err != nil {
		return t, err
	}
	return t, a.profiles.Feed.Team(ctx, tenant, entity.ActionUpdate, id)
}

// AddMembers implements Store.
func (a announcing) AddMembers(ctx context.Context, tenant string, all []principals.Membership) error {
	if err := a.Store.AddMembers(ctx, tenant, all); err != nil {
		return err
	}
	return a.profiles.Feed.Members(ctx, tenant, all)
}

// RemoveMembers implements Store.
func (a announcing) RemoveMembers(ctx context.Context, tenant, teamID string, usernames []string) error {
	if err := a.Store.RemoveMembers(ctx, tenant, teamID, usernames); err != nil {
		return err
	}
	for _, name := range usernames {
		if err := a.profiles.Feed.Member(ctx, tenant, entity.ActionDelete, teamID, name); err != nil {
			return err
		}
	}
	return nil
}
