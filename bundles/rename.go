package bundles

import "context"

// RenameUsers replaces usernames in entries and in the records of deploys: names maps
// old ones to new ones, and no new one is an old one. It joins the transaction in ctx and needs no actor.
func (s *Service) RenameUsers(ctx context.Context, tenant string, names map[string]string) error {
	return s.store.RenameUsers(ctx, tenant, names)
}
