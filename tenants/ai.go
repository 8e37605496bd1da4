package tenants

import "context"

// AIEnabled reports whether a tenant's AI module is on, without an actor. It asks the database
// at most once a second, and at once after a change by this process, when Options.Changes counts those. Errors:
// errs.NotFound.
func (s *Service) AIEnabled(ctx context.Context, tenant string) (bool, error) {
	return s.ai.Get(tenant, "", func() (bool, error) {
		t, err := s.Lookup(ctx, tenant)
		return t.Settings.AI, err
	})
}
