package tenantcontent

import (
	"context"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/apps/agents"
	"github.com/tenantcontent/tenantcontent/apps/messages"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/drafts/manifest"
	"github.com/tenantcontent/tenantcontent/internal/handlers"
	"github.com/tenantcontent/tenantcontent/internal/limits/cache"
	"github.com/tenantcontent/tenantcontent/internal/text/uuids"
	"github.com/tenantcontent/tenantcontent/webhooks"
)

// owners returns what finds the owners of apps, as whom webhooks run. changes counts changes of
// users and teams, as cache.New has it.
func (app *App) owners(
	c Config, changes func(tenant string) uint64,
) func(ctx context.Context, tenant, principal string) (webhooks.Owner, error) {
	known := cache.New[webhooks.Owner](changes)
	return func(ctx context.Context, tenant, principal string) (webhooks.Owner, error) {
		if principal == "" {
			return webhooks.Owner{}, errs.New(
				errs.Unauthenticated,
				"somebody else has passed the app on to its owner, who has not deployed it since",
			)
		}
		return known.Get(ctx, tenant, principal, func() (webhooks.Owner, error) {
			if _, isTeam := uuids.Parse(principal); isTeam {
				return app.teamAsOwner(ctx, tenant, principal)
			}
			return app.userAsOwner(ctx, c, tenant, principal)
		})
	}
}

// agentOwners returns what finds the actors that the agents of apps run as: their owners, and for a
// team somebody who may use AI, as its members decide what it does.
func agentOwners(owner func(
	ctx context.Context, tenant, principal string,
) (webhooks.Owner, error)) func(ctx context.Context, tenant, principal string) (actor.Actor, error) {
	return func(ctx context.Context, tenant, principal string) (actor.Actor, error) {
		o, err := owner(ctx, tenant, principal)
		if _, isTeam := o.Actor.Teams[o.Actor.User]; isTeam {
			o.Actor.AI = true
		}
		return o.Actor, err
	}
}

// installer is what apps needs of agents, which are built behind them.
type installer struct{ app *App }

// Check implements apps.Agents.
func (i installer) Check(all []manifest.Agent, tools []handlers.Route) error {
	return i.app.Agents.Unchecked().Check(all, tools)
}

// Install implements apps.Agents.
func (i installer) Install(ctx context.Context, app handlers.App, all []manifest.Agent, tools []handlers.Route) error {
	return i.app.Agents.Unchecked().Install(ctx, app, all, tools)
}

// listening is what messages needs of apps and agents.
type listening struct{ app *App }

// CheckInternals implements messages.Apps.
func (l listening) CheckInternals(ctx context.Context, id string) (string, error) {
	return l.app.Apps.CheckInternals(ctx, id)
}

// CheckRecords implements messages.Apps.
func (l listening) CheckRecords(ctx context.Context, id string) (string, error) {
	return l.app.Apps.CheckRecords(ctx, id)
}

// Listens implements messages.Apps.
func (l listening) Listens(ctx context.Context, app, event string) (bool, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return false, err
	}
	return l.app.Agents.Unchecked().Listens(ctx, a.Tenant, app, event)
}

// start starts what an event starts: agents of its app.
func (app *App) start(ctx context.Context, e messages.Event) error {
	return app.Agents.Unchecked().Emitted(ctx, agents.Event{
		Tenant:  e.Tenant,
		ID:      e.ID,
		App:     e.App,
		Name:    e.Name,
		Payload: e.Payload,
		Depth:   e.Depth,
	})
}

// agentApp returns an app whose agents run.
func (app *App) agentApp(ctx context.Context, tenant, id string) (agents.App, error) {
	running, err := app.Apps.Unchecked().Running(ctx, tenant, id)
	if err == nil && running.DeletedAt != nil {
		err = errs.New(errs.NotFound, "App not found.")
	}
	return agents.App{Name: running.Name, Owner: running.RunsAs(), Env: running.Env}, err
}

// teamAsOwner returns a team as a handler's user. It can do what a member of the team can.
func (app *App) teamAsOwner(ctx context.Context, tenant, id string) (webhooks.Owner, error) {
	if _, err := app.Tenants.Unchecked().Lookup(ctx, tenant); err != nil { // it is being deleted
		return webhooks.Owner{}, err
	}
	a := actor.Actor{Tenant: tenant, User: id, Teams: map[string]actor.Role{id: actor.Member}}
	team, err := app.Principals.Team(actor.With(ctx, a), id)
	if err != nil {
		return webhooks.Owner{}, err
	}
	return webhooks.Owner{Actor: a, User: handlers.User{ID: id, Type: "Team", Name: team.Name}}, nil
}

// userAsOwner returns a user with the rights of the moment: those of Config.Resume if the host
// authenticates its users itself.
func (app *App) userAsOwner(ctx context.Context, c Config, tenant, username string) (o webhooks.Owner, err error) {
	switch {
	case c.Authenticate == nil || c.KeepLogins && c.Resume == nil:
		o.Actor, err = app.Sessions.Unchecked().ActorOf(ctx, tenant, username)
	case c.Resume != nil:
		o.Actor, err = c.Resume(ctx, tenant, username)
	default:
		err = errs.New(
			errs.Unauthenticated, "the host does not say what the owner of the app may do: see Config.Resume",
		)
	}
	if err != nil {
		return webhooks.Owner{}, err
	}
	o.User = handlers.User{ID: username, Type: "User", Name: username, Username: username, DisplayName: username}
	user, err := app.Principals.User(actor.With(ctx, o.Actor), username)
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

// checkWebhook returns errs.Invalid for a handler whose config no webhook can have, naming its
// file.
func checkWebhook(_ context.Context, _ handlers.App, r handlers.Route) error {
	if r.Area != handlers.Webhooks {
		return nil
	}
	if err := webhooks.CheckConfig(r.Config); err != nil {
		return errs.New(errs.Invalid, "%s:1:1: %s.", r.File, errs.MessageOf(err))
	}
	return nil
}
