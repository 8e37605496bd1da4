// Package announced announces what scans of directories and providers of identities write.
package announced

import (
	"context"
	"time"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/principals"
)

// Feed announces changes of users, teams and memberships, in the transaction in ctx.
type Feed struct{ Changes *entity.Changes }

// Profiles is a ProfileStore that announces its writes.
type Profiles struct {
	principals.ProfileStore
	Feed Feed
}

// AddDirectoryUsers implements principals.ProfileStore.
func (p Profiles) AddDirectoryUsers(
	ctx context.Context, tenant, domain string, all []principals.DirectoryUser, at time.Time,
) error {
	if err := p.ProfileStore.AddDirectoryUsers(ctx, tenant, domain, all, at); err != nil {
		return err
	}
	names := make([]string, len(all))
	for i, u := range all {
		names[i] = u.Username
	}
	return p.Feed.users(ctx, tenant, entity.ActionCreate, names)
}

// EditDirectoryUsers implements principals.ProfileStore.
func (p Profiles) EditDirectoryUsers(
	ctx context.Context, tenant string, usernames []string, at time.Time, edit func(*principals.DirectoryUser),
) error {
	var changed []string
	err := p.ProfileStore.EditDirectoryUsers(ctx, tenant, usernames, at, func(u *principals.DirectoryUser) {
		was := *u
		if edit(u); *u != was {
			changed = append(changed, was.Username)
		}
	})
	if err != nil {
		return err
	}
	return p.Feed.users(ctx, tenant, entity.ActionUpdate, changed)
}

func (f Feed) users(ctx context.Context, tenant string, action entity.Action, names []string) error {
	return f.Changes.Each(ctx, tenant, action, entity.Keys(entity.KindUser, names...)...)
}

// Team announces a change of a team.
func (f Feed) Team(ctx context.Context, tenant string, action entity.Action, id string) error {
	return f.Changes.Each(ctx, tenant, action, entity.Key{Kind: entity.KindTeam, ID: id})
}

// Member announces a change of a membership.
func (f Feed) Member(ctx context.Context, tenant string, action entity.Action, team, username string) error {
	return f.Changes.Each(ctx, tenant, action, entity.Key{Kind: entity.KindMember, ID: team + "/" + username})
}

// Members announces that there are memberships.
func (f Feed) Members(ctx context.Context, tenant string, all []principals.Membership) error {
	for _, m := range all {
		if err := f.Member(ctx, tenant, entity.ActionUpdate, m.TeamID, m.Username); err != nil {
			return err
		}
	}
	return nil
}
