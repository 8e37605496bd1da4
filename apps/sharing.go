package apps

import (
	"context"
	"slices"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/uuids"
	"github.com/tenantcontent/tenantcontent/shares"
)

// Shares returns the shares of an app, ordered by principal, to those who see its insides. A draft has those of its app.
// Errors: errs.NotFound; errs.Forbidden.
func (s *Service) Shares(ctx context.Context, id string) ([]shares.Share, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return nil, err
	}
	app, err := s.inside(ctx, a, id)
	if err != nil {
		return nil, err
	}
	return s.store.Shares().All(ctx, a.Tenant, original(app))
}

// Share returns the share of one principal. It is for those for whom Shares is. Errors: errs.NotFound; errs.Forbidden.
func (s *Service) Share(ctx context.Context, id, principal string) (shares.Share, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return shares.Share{}, err
	}
	app, err := s.inside(ctx, a, id)
	if err != nil {
		return shares.Share{}, err
	}
	if principal, err = s.principal(ctx, a.Tenant, principal); err != nil {
		return shares.Share{}, err
	}
	return s.store.Shares().One(ctx, a.Tenant, original(app), principal)
}

// principal returns the exact id of the principal that is meant by one: UUIDs are in lower case, and names of users may be spelled
// differently. An unknown one is returned as it is.
func (s *Service) principal(ctx context.Context, tenant, id string) (string, error) {
	if team, ok := uuids.Parse(id); ok {
		return team, nil
	}
	if s.o.CanonicalName == nil {
		return id, nil
	}
	return s.o.CanonicalName(ctx, tenant, id)
}

// PutShare shares an app with a principal, or changes the share: edit gets the share that is there, or one of shares.None. It needs
// the permission share. A role that it adds must be one of the manifest of the app, or of its draft. Errors: errs.NotFound;
// errs.Forbidden; errs.Invalid naming the field, also for an unknown principal; errs.Conflict for a manifest that cannot be read.
func (s *Service) PutShare(ctx context.Context, id, principal string, edit func(*shares.Share)) (put shares.Share, err error) {
	err = s.reshare(ctx, id, principal, func(ctx context.Context, app App, who string, known bool) error {
		share, err := s.store.Shares().One(ctx, app.Tenant, app.ID, who)
		if err != nil && errs.CodeOf(err) != errs.NotFound {
			return err
		}
		now := s.stamp()
		if err != nil {
			share = shares.Share{PrincipalID: who, CreatedAt: now}
		}
		had := slices.Clone(share.Roles)
		edit(&share)
		if err := share.Accept(shares.Write); err != nil {
			return err
		}
		if err := s.knownRoles(ctx, app, share.Roles, had); err != nil {
			return err
		}
		if !known {
			return errs.New(errs.Invalid, "principalId: %q is no user or team of this tenant", who)
		}
		share.UpdatedAt = now
		put, err = s.store.Shares().Put(ctx, app.Tenant, app.ID, share)
		return err
	})
	return put, err
}

// knownRoles returns errs.Invalid for a role that neither was there nor is one of the manifest of an app or of its draft.
func (s *Service) knownRoles(ctx context.Context, app App, roles, had []string) error {
	added := slices.DeleteFunc(slices.Clone(roles), func(role string) bool { return slices.Contains(had, role) })
	if len(added) == 0 {
		return nil
	}
	m, err := s.manifest(ctx, app)
	if err != nil {
		return err
	}
	added = slices.DeleteFunc(added, m.HasRole)
	if len(added) == 0 {
		return nil
	}
	d, err := s.store.Draft(ctx, app.Tenant, app.ID)
	if err == nil {
		m, err = s.manifest(ctx, d)
	}
	if err != nil && errs.CodeOf(err) != errs.NotFound {
		return err
	}
	if added = slices.DeleteFunc(added, m.HasRole); len(added) > 0 {
		return errs.New(errs.Invalid, "roles: %q is no role of the app's manifest", added[0])
	}
	return nil
}

// DeleteShare ends a share. It needs the permission share. Errors: errs.NotFound; errs.Forbidden.
func (s *Service) DeleteShare(ctx context.Context, id, principal string) error {
	return s.reshare(ctx, id, principal, func(ctx context.Context, app App, who string, _ bool) error {
		return s.store.Shares().Delete(ctx, app.Tenant, app.ID, who)
	})
}

// reshare calls change with an app that the caller may share and the exact id of a principal, and whether the tenant has that.
func (s *Service) reshare(ctx context.Context, id, principal string, change func(ctx context.Context, app App, who string, known bool) error) error {
	a, err := actor.From(ctx)
	if err != nil {
		return err
	}
	who, err := s.principal(ctx, a.Tenant, principal)
	if err != nil {
		return err
	}
	return s.sharing(ctx, id, who, func(ctx context.Context, app App, known bool) error {
		if err := change(ctx, app, who, known); err != nil {
			return err
		}
		return s.store.SetShared(ctx, app.Tenant, []string{app.ID})
	})
}

// sharing calls do with an app that the caller may share, and whether the tenant has a principal. It holds the principal, then locks
// the app.
func (s *Service) sharing(ctx context.Context, id, principal string, do func(ctx context.Context, app App, known bool) error) error {
	a, err := actor.From(ctx)
	if err != nil {
		return err
	}
	return s.store.InTx(ctx, func(ctx context.Context) error {
		held, err := s.store.Hold(ctx, a.Tenant, []string{principal})
		if err != nil {
			return err
		}
		app, grant, err := s.lockNamed(ctx, a, id)
		if err != nil {
			return err
		}
		if app.EditingID != nil {
			return errDraft("share the app itself")
		}
		if err := toShare.check(a, app, grant); err != nil {
			return err
		}
		return do(ctx, app, held[principal])
	})
}

// Sharing calls do with the id of an app that the caller may share, in a transaction in which nobody else changes or removes the app.
// Errors: those of do; errs.NotFound; errs.Forbidden; errs.Invalid for a draft, and if roles has something else than ids of roles of
// the app's manifest; errs.Conflict for a manifest that cannot be read.
func (s *Service) Sharing(ctx context.Context, id string, roles []string, do func(ctx context.Context, id string) error) error {
	a, err := actor.From(ctx)
	if err != nil {
		return err
	}
	return s.sharing(ctx, id, a.User, func(ctx context.Context, app App, _ bool) error {
		if err := s.knownRoles(ctx, app, roles, nil); err != nil {
			return err
		}
		return do(ctx, app.ID)
	})
}

// Sharable returns the id of an app that the caller may share, also with a token that can only read. Errors: errs.NotFound;
// errs.Forbidden; errs.Invalid for a draft.
func (s *Service) Sharable(ctx context.Context, id string) (string, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return "", err
	}
	app, err := s.sharable(ctx, a, id)
	return app.ID, err
}

// sharable returns an app that an actor may share, also with a token that can only read.
func (s *Service) sharable(ctx context.Context, a actor.Actor, id string) (App, error) {
	app, grant, err := s.open(ctx, a, id)
	a.ReadOnly = false
	switch {
	case err != nil:
		return App{}, err
	case app.EditingID != nil:
		return App{}, errDraft("share the app itself")
	}
	return app, toShare.check(a, app, grant)
}

// Roles returns the roles of the manifest that the caller has by shares of an app, ordered. Errors: errs.NotFound.
func (s *Service) Roles(ctx context.Context, id string) ([]string, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return nil, err
	}
	_, grant, err := s.findHead(ctx, a, id)
	if err != nil {
		return nil, err
	}
	return grant.Roles, nil
}
