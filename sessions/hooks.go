package sessions

import (
	"context"
	"time"

	"github.com/tenantcontent/tenantcontent/entity"
)

// Hooks returns what is done with sessions and tokens: those of renamed users follow them and those of deleted ones go by
// themselves, and Sweep removes the sessions that have ended.
func (s *Service) Hooks() entity.Hooks {
	return entity.Hooks{
		Dependents: func(ctx context.Context, tenant string, kind entity.Kind, ids []string, at time.Time) ([]entity.Dependent, error) {
			if kind != entity.KindUser {
				return nil, nil
			}
			tokens, sessions, err := s.o.Store.OfUsers(ctx, tenant, ids, at)
			return []entity.Dependent{
				{Count: entity.Count{N: tokens, Of: "API token"}, Rank: 3}, {Count: entity.Count{N: sessions, Of: "session"}, Rank: 3},
			}, err
		},
		Sweep: func(ctx context.Context, tenant string) (int, error) { return s.o.Store.Sweep(ctx, tenant, s.now()) },
	}
}
