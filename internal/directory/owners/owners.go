// Package owners finds the owners of apps, as whom what apps run calls the service, with the rights
// of the moment.
//
// It checks no permission. webhooks names its Owner; the root makes a Finder.
package owners

import (
	"context"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/handlers"
	"github.com/tenantcontent/tenantcontent/internal/limits/cache"
	"github.com/tenantcontent/tenantcontent/internal/text/uuids"
	"github.com/tenantcontent/tenantcontent/principals"
	"github.com/tenantcontent/tenantcontent/tenants"
)

// Owner is as whom a handler runs.
type Owner struct {
	Actor actor.Actor
	User  handlers.User
}

// Tenants looks up tenants. tenants.Unchecked implements it.
type Tenants interface {
	Lookup(ctx context.Context, id string) (tenants.Tenant, error)
}

// Principals looks up users and teams. *principals.Service implements it.
type Principals interface {
	User(ctx context.Context, username string) (principals.User, error)
	Team(ctx context.Context, id string) (principals.Team, error)
}

// Options configure a Finder. All are required.
type Options struct {
	Tenants    Tenants
	Principals Principals
	// ActorOf returns a user with the rights of the moment. Errors: errs.NotFound;
	// errs.Unauthenticated for a user that may not act.
	ActorOf func(ctx context.Context, tenant, username string) (actor.Actor, error)
	// Changes returns how often this process has changed a tenant's users and teams: see cache.New.
	Changes func(tenant string) uint64
}

// Finder finds owners, as they were a second ago at most.
type Finder struct {
	o     Options
	known *cache.Cache[Owner]
}

// New returns a Finder.
func New(o Options) *Finder { return &Finder{o, cache.New[Owner](o.Changes)} }

// Owner returns a user or a team as the owner of an app. Errors: errs.NotFound;
// errs.Unauthenticated for a user that may not act, and for "".
func (f *Finder) Owner(ctx context.Context, tenant, principal string) (Owner, error) {
	if principal == "" {
		return Owner{}, errs.New(
			errs.Unauthenticated,
			"somebody else has passed the app on to its owner, who has not deployed it since",
		)
	}
	return f.known.Get(ctx, tenant, principal, func() (Owner, error) {
		if _, isTeam := uuids.Parse(principal); isTeam {
			return f.team(ctx, tenant, principal)
		}
		return f.user(ctx, tenant, principal)
	})
}

// Actor returns the Actor of Owner.
func (f *Finder) Actor(ctx context.Context, tenant, principal string) (actor.Actor, error) {
	o, err := f.Owner(ctx, tenant, principal)
	return o.Actor, err
}

// Agent returns the actor that the agents of an owner's apps run as: for a team an actor that may
// use AI, as its members decide what the agents do. Errors: as Owner.
func (f *Finder) Agent(ctx context.Context, tenant, principal string) (actor.Actor, error) {
	a, err := f.Actor(ctx, tenant, principal)
	if _, isTeam := a.Teams[a.User]; isTeam {
		a.AI = true
	}
	return a, err
}

// team returns a team, which can do what a member of it can.
func (f *Finder) team(ctx context.Context, tenant, id string) (Owner, error) {
	if _, err := f.o.Tenants.Lookup(ctx, tenant); err != nil { // it is being deleted
		return Owner{}, err
	}
	a := actor.Actor{Tenant: tenant, User: id, Teams: map[string]actor.Role{id: actor.Member}}
	team, err := f.o.Principals.Team(actor.With(ctx, a), id)
	if err != nil {
		return Owner{}, err
	}
	return Owner{Actor: a, User: handlers.User{ID: id, Type: "Team", Name: team.Name}}, nil
}

func (f *Finder) user(ctx context.Context, tenant, username string) (o Owner, err error) {
	if o.Actor, err = f.o.ActorOf(ctx, tenant, username); err != nil {
		return Owner{}, err
	}
	o.User = handlers.User{ID: username, Type: "User", Name: username, Username: username, DisplayName: username}
	user, err := f.o.Principals.User(actor.With(ctx, o.Actor), username)
	if errs.CodeOf(err) == errs.NotFound { // a host's user may not be there
		return o, nil
	}
	if err == nil && user.DisplayName != nil {
		o.User.Name, o.User.DisplayName = *user.DisplayName, *user.DisplayName
	}
	if err == nil && user.Email != nil {
		o.User.Email = *user.Email
	}
	return o, err
}
