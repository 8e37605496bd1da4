package bundles

import "context"

// RenameUsers gives the entries of users who are renamed, and what deploys have noted of them, their new names: names maps
// old ones to new ones, and no new one is an old one. It joins the transaction in ctx and asks for no actor.
func (s *Service) RenameUsers(ctx context.Context, tenant string, names map[string]string) error {
	return s.store.RenameUsers(ctx, tenant, names)
}
