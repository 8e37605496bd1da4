package files

import (
	"context"
	"time"

	"github.com/tenantcontent/tenantcontent/entity"
)

// Hooks returns what is done with files when their users change, and with expired ones.
func (s FileStore) Hooks() entity.Hooks {
	return entity.Hooks{
		Renamed: s.Store.RenameUsers,
		Deleted: func(ctx context.Context, tenant string, gone ...entity.Key) error {
			var users []string
			for _, key := range gone {
				if key.Kind == entity.KindUser {
					users = append(users, key.ID)
				}
			}
			return s.Forget(ctx, tenant, users...)
		},
		Dependents: func(ctx context.Context, tenant string, kind entity.Kind, ids []string, at time.Time) ([]entity.Dependent, error) {
			if kind != entity.KindUser {
				return nil, nil
			}
			n, err := s.Store.CountOfUsers(ctx, tenant, ids, at)
			return []entity.Dependent{{Count: entity.Count{N: n, Of: "file"}, Rank: 5}}, err
		},
		Sweep: s.Sweep,
	}
}
