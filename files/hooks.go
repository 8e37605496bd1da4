package files

import (
	"context"
	"time"

	"github.com/tenantcontent/tenantcontent/entity"
)

const (
	batch     = 100            // how many files are looked up at once, to delete them
	abandoned = 24 * time.Hour // how long after its begin a blob that is not complete counts as left behind
)

// Hooks returns what is done with files: those of renamed users follow them, and those of deleted
// ones end, so that later users with their names do not get them. Sweep removes those that have
// expired, and what broken ones left.
func (s *Service) Hooks() entity.Hooks {
	return entity.Hooks{Renamed: s.o.Store.RenameUsers, RemoveRest: s.removeRest,
		Dependents: s.dependents, Sweep: s.sweep, Due: []entity.Due{
			{Table: s.o.Table, Column: "expires_at"},
			{Table: "tc_blobs", Column: "created_at", Where: "NOT complete", Age: abandoned},
		}}
}

// removeRest ends files of a deleted user. Nobody finds them any more, and the next sweep removes
// them: the bytes of many are too much for one transaction.
func (s *Service) removeRest(ctx context.Context, tenant string, of entity.Key, n int) (more bool, err error) {
	if of.Kind != entity.KindUser {
		return false, nil
	}
	return s.o.Store.Forget(ctx, tenant, of.ID, s.clock.Now(), n)
}

// dependents counts the files of some users.
func (s *Service) dependents(
	ctx context.Context, tenant string, kind entity.Kind, ids []string, at time.Time,
) ([]entity.Dependent, error) {
	if kind != entity.KindUser {
		return nil, nil
	}
	n, err := s.o.Store.CountOfUsers(ctx, tenant, ids, at)
	return []entity.Dependent{{Count: entity.Count{N: n, Of: "file"}, Rank: 5}}, err
}

// sweep removes the expired files of a tenant, and returns their number. It also removes blobs, of
// any kind, that were begun a day ago and never completed.
func (s *Service) sweep(ctx context.Context, tenant string) (int, error) {
	now, n := s.clock.Now(), 0
	for {
		ids, err := s.o.Store.Expired(ctx, tenant, now, batch)
		if err != nil {
			return n, err
		}
		for _, id := range ids {
			if err := s.Delete(ctx, tenant, id); err != nil {
				return n, err
			}
			n++
		}
		if len(ids) < batch {
			break
		}
		if err := entity.Step(ctx); err != nil {
			return n, err
		}
	}
	_, err := s.o.Blobs.Sweep(ctx, tenant, now.Add(-abandoned))
	return n, err
}
