package apps

import (
	"context"
	"slices"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
)

// knownRoles returns errs.Invalid for a new role that is in none of these manifests: that of the
// app, that of its next deploy and that of its draft.
func (s *Service) knownRoles(ctx context.Context, app App, roles, had []string) error {
	added := slices.DeleteFunc(slices.Clone(roles), func(role string) bool { return slices.Contains(had, role) })
	if len(added) == 0 {
		return nil
	}
	m, err := s.manifest(ctx, app)
	if err != nil {
		return err
	}
	if added = slices.DeleteFunc(added, m.HasRole); len(added) == 0 {
		return nil
	}
	if m, err = s.nextManifest(ctx, app.Tenant, app.LibraryID); err != nil {
		return err
	}
	if added = slices.DeleteFunc(added, m.HasRole); len(added) == 0 {
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

// CheckShare returns the id of an app that the caller may share, also with a token that can only
// read. Errors: errs.NotFound; errs.Forbidden; errs.Invalid for a draft.
func (s *Service) CheckShare(ctx context.Context, id string) (string, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return "", err
	}
	o, err := s.sharable(ctx, a, id)
	if err != nil {
		return "", err
	}
	return o.app.ID, nil
}

// sharable returns an app that an actor may share, also with a token that can only read.
func (s *Service) sharable(ctx context.Context, a actor.Actor, id string) (*opened, error) {
	o, err := s.open(ctx, a, id)
	if err != nil {
		return nil, err
	}
	return o, s.rules.CheckShare(a, o.app, o.grant)
}

// Roles returns the roles of the manifest that the caller has by shares of an app, ordered. Errors:
// errs.NotFound.
func (s *Service) Roles(ctx context.Context, id string) ([]string, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return nil, err
	}
	_, grant, err := s.rules.FindHead(ctx, a, id)
	if err != nil {
		return nil, err
	}
	return grant.Roles, nil
}
