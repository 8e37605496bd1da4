package dirsync

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

// PutTeams implements Store.
func (a announcing) PutTeams(ctx context.Context, tenant string, all []principals.Team, yield []string) error {
	if err := a.Store.PutTeams(ctx, tenant, all, yield); err != nil {
		return err
	}
	for _, t := range all {
		if err := a.profiles.Feed.Team(ctx, tenant, entity.ActionCreate, t.ID); err != nil {
			return err
		}
	}
	return nil
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

// PutMember implements Store.
func (a announcing) PutMember(ctx context.Context, tenant string, m principals.Membership) error {
	if err := a.Store.PutMember(ctx, tenant, m); err != nil {
		return err
	}
	return a.profiles.Feed.Members(ctx, tenant, []principals.Membership{m})
}

// DeleteMembers implements Store.
func (a announcing) DeleteMembers(ctx context.Context, tenant string, all []MemberKey) error {
	if err := a.Store.DeleteMembers(ctx, tenant, all); err != nil {
		return err
	}
	for _, m := range all {
		err := a.profiles.Feed.Member(ctx, tenant, entity.ActionDelete, m.TeamID, m.Username)
		if err != nil {
			return err
		}
	}
	return nil
}
