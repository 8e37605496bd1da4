package apps

import (
	"context"
	"slices"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/apps/manifest"
	"github.com/tenantcontent/tenantcontent/errs"
)

// Inside returns the id of an app whose insides the caller may see. Errors: errs.NotFound; errs.Forbidden.
func (s *Service) Inside(ctx context.Context, id string) (string, error) {
	app, err := s.rules.Inside(ctx, id)
	return app.ID, err
}

// Listens reports whether an event of an app, whose handler emits it with the rights of the caller, starts one of its agents. A manifest that cannot be
// read starts none. Errors: errs.NotFound.
func (s *Service) Listens(ctx context.Context, id, event string) (bool, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return false, err
	}
	app, err := s.rules.Head(ctx, a.Tenant, id)
	if err != nil {
		return false, err
	}
	m, err := s.manifest(ctx, app)
	if errs.CodeOf(err) == errs.Conflict {
		return false, nil
	}
	return slices.ContainsFunc(m.Agents, func(agent manifest.Agent) bool { return slices.Contains(agent.On, event) }), err
}
