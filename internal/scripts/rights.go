package scripts

import (
	"context"
	"encoding/json"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/apps"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/handlers/jsvm"
)

// An app that calls the service for its viewer has the viewer's rows, memberships and shares, and
// no more tenant-wide rights than its owner: see actor.Actor.Capped. That holds for the calls of
// its pages, and for fetch, datasets and messages of its server routes. Its webhooks and agents run
// as the owner. Which roles of the manifest a viewer has does not depend on it.

// ofMember has the tenant-wide rights of a member: those of an app that belongs to nobody who can
// be asked.
var ofMember = actor.Actor{Teams: map[string]actor.Role{"": actor.Member}}

// Capped returns the actor that an app calls the service as for a viewer, with the rights that its
// owner has now. An app of a team, one whose owner is disabled, and one that was passed on to an
// owner who has not deployed it have the tenant-wide rights of a member.
func (b *Binder) Capped(ctx context.Context, app apps.App, viewer actor.Actor) (actor.Actor, error) {
	if b.o.Owner == nil {
		return viewer.Capped(ofMember), nil
	}
	owner, err := b.o.Owner(ctx, app.Tenant, app.RunsAs())
	switch errs.CodeOf(err) {
	case errs.Unauthenticated, errs.NotFound:
		owner, err = ofMember, nil
	}
	return viewer.Capped(owner), err
}

// CappedIn returns a context with the actor of Capped.
func (b *Binder) CappedIn(ctx context.Context, app apps.App, viewer actor.Actor) (context.Context, error) {
	who, err := b.Capped(ctx, app, viewer)
	return actor.With(ctx, who), err
}

// capping returns a function of a script that acts as a viewer, with the rights that the owner of
// the app has at each call.
func (b *Binder) capping(c Call, f jsvm.Function) jsvm.Function {
	id := c.App.ID
	if c.App.EditingID != nil { // a draft belongs to the owner of its app
		id = *c.App.EditingID
	}
	return func(ctx context.Context, args json.RawMessage) (json.RawMessage, error) {
		now, err := b.o.Apps.Unchecked().Running(ctx, c.App.Tenant, id)
		if err != nil {
			return nil, err
		}
		ctx, err = b.CappedIn(ctx, now.App, c.Who)
		if err != nil {
			return nil, err
		}
		return f(ctx, args)
	}
}
