package comments

import (
	"context"

	"github.com/tenantcontent/tenantcontent/entity"
)

// Removals is what removes rows later: see Hooks.RemoveRest.
type Removals interface {
	// Later leaves to RemoveRest what Store.Delete or Store.DeleteAll has, in the transaction in
	// ctx.
	Later(ctx context.Context, tenant string, gone ...entity.Key) error
}

// removeLater leaves the rows of removed comments on entities to a Removals.
func (s *Service) removeLater(ctx context.Context, tenant string, gone ...entity.Key) error {
	if s.removals == nil || len(gone) == 0 {
		return nil
	}
	return s.removals.Later(ctx, tenant, gone...)
}

// removeRest removes rows of the comments on an entity, or of a user's feed and notifications.
func (s *Service) removeRest(ctx context.Context, tenant string, of entity.Key, n int) (more bool, err error) {
	if of.Kind == entity.KindUser {
		return s.store.RemoveAccount(ctx, tenant, of.ID, n)
	}
	return s.store.RemoveRest(ctx, tenant, of, n)
}
