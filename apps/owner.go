package apps

import (
	"context"

	"github.com/tenantcontent/tenantcontent/actor"
)

// RunsAs returns the principal as whom webhooks and agents of the app run, "" for nobody. It is the
// owner, whose rights they have. An app that somebody else has passed on to its owner runs as
// nobody until the owner deploys it, or a superuser does: nobody gets the rights of others by
// making them the owner of code.
func (a App) RunsAs() string {
	if a.AwaitsOwner {
		return ""
	}
	return a.OwnerID
}

// speaks reports whether an actor may agree for an owner that code runs with the owner's rights.
func speaks(a actor.Actor, tenant, owner string) bool {
	_, member := a.Teams[owner]
	return a.Tenant == tenant && (member || owner == a.User || a.Superuser)
}

// passed sets AwaitsOwner after an actor has changed the owner of an app.
func passed(by actor.Actor, a *App) { a.AwaitsOwner = !speaks(by, a.Tenant, a.OwnerID) }

// deployedBy resets AwaitsOwner if the actor who has deployed the app may agree for its owner.
func (a *App) deployedBy(by actor.Actor) {
	a.AwaitsOwner = a.AwaitsOwner && !speaks(by, a.Tenant, a.OwnerID)
}

// caller returns the actor in ctx. Without one, the program itself calls, and caller returns a
// superuser of the tenant.
func caller(ctx context.Context, tenant string) actor.Actor {
	a, err := actor.From(ctx)
	if err != nil {
		return actor.Actor{Tenant: tenant, Superuser: true}
	}
	return a
}

// reassigned sets AwaitsOwner of apps that the caller has moved to another owner.
func (s *Service) reassigned(ctx context.Context, tenant string, moved []App) error {
	if len(moved) == 0 || speaks(caller(ctx, tenant), tenant, moved[0].OwnerID) {
		return nil
	}
	ids := make([]string, len(moved))
	for i, app := range moved {
		ids[i] = app.ID
	}
	return s.store.AwaitOwner(ctx, tenant, ids)
}
