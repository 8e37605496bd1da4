package profile

import (
	"context"
	"time"

	"github.com/tenantcontent/tenantcontent/entity"
)

// Store is the part of a principals.ProfileStore that writes.
type Store interface {
	AddDirectoryUsers(ctx context.Context, tenant, domain string, all []User, at time.Time) error
	EditDirectoryUsers(ctx context.Context, tenant string, usernames []string, at time.Time, edit func(*User)) error
}

// Announced is a Store that announces its writes, in the transaction in ctx, which must have one.
type Announced struct {
	store Store
	feed  *entity.Changes
}

// Announce returns an Announced. feed may be nil.
func Announce(s Store, feed *entity.Changes) Announced { return Announced{s, feed} }

// AddDirectoryUsers implements Store.
func (a Announced) AddDirectoryUsers(
	ctx context.Context, tenant, domain string, all []User, at time.Time,
) error {
	if err := a.store.AddDirectoryUsers(ctx, tenant, domain, all, at); err != nil {
		return err
	}
	names := make([]string, len(all))
	for i, u := range all {
		names[i] = u.Username
	}
	return a.feed.Each(ctx, tenant, entity.ActionCreate, entity.Keys(entity.KindUser, names...)...)
}

// EditDirectoryUsers implements Store. It announces the users that edit has changed.
func (a Announced) EditDirectoryUsers(
	ctx context.Context, tenant string, usernames []string, at time.Time, edit func(*User),
) error {
	var changed []string
	err := a.store.EditDirectoryUsers(ctx, tenant, usernames, at, func(u *User) {
		was := *u
		if edit(u); *u != was {
			changed = append(changed, was.Username)
		}
	})
	if err != nil {
		return err
	}
	return a.feed.Each(ctx, tenant, entity.ActionUpdate, entity.Keys(entity.KindUser, changed...)...)
}
