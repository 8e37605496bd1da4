package principals

import "context"

// LockPrincipals keeps content from being added for users and teams until the transaction in ctx ends, and waits for what is
// just being added: who removes them asks only then what they own. The tenant must be locked before. Those that are not
// there are no error. It needs no actor.
func (s *Service) LockPrincipals(ctx context.Context, tenant string, ids []string) error {
	return s.store.LockPrincipals(ctx, tenant, ids)
}
