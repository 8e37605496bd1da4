package comments

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/tenantcontent/tenantcontent/entity"
)

// DependentStore is the part of a Store that counts what goes with entities and users.
type DependentStore interface {
	// Threads returns how many comments that reply to none some entities of a kind have, by id;
	// those without any are left out.
	Threads(ctx context.Context, tenant string, kind entity.Kind, ids []string) (map[string]int, error)
	// OfUsers returns how many notifications some users have, and of how many comments they are the
	// authors.
	OfUsers(ctx context.Context, tenant string, usernames []string) (notifications, comments int, err error)
}

// kindApp is the kind of the apps, which notify users.
const kindApp entity.Kind = "app"

// mayHave reports whether there may be comments on entities of a kind.
func (s *Service) mayHave(kind entity.Kind) bool { return isParent(kind) || s.takes(kind) }

func (s *Service) deleted(ctx context.Context, tenant string, gone ...entity.Key) error {
	var later []entity.Key
	byKind := map[entity.Kind][]string{}
	for _, key := range gone {
		if key.Kind == kindApp {
			if err := s.store.DeleteNotices(ctx, tenant, key); err != nil {
				return err
			}
		}
		if s.mayHave(key.Kind) {
			byKind[key.Kind] = append(byKind[key.Kind], key.ID)
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(byKind)) {
		rest, err := s.store.DeleteAll(ctx, tenant, kind, byKind[kind], s.clock.Stamp())
		if err != nil {
			return err
		}
		later = append(later, entity.Keys(kind, rest...)...)
	}
	return s.removeLater(ctx, tenant, later...)
}

func (s *Service) dependents(
	ctx context.Context, tenant string, kind entity.Kind, ids []string, _ time.Time,
) ([]entity.Dependent, error) {
	if kind == entity.KindUser {
		notifications, written, err := s.store.OfUsers(ctx, tenant, ids)
		return []entity.Dependent{
			{Count: entity.Count{N: notifications, Of: "notification"}, Rank: 2},
			{Count: entity.Count{N: written, Of: "comment authorship"}, Rank: 6},
		}, err
	}
	threads, err := s.threads(ctx, tenant, kind, ids)
	sum := thread(0)
	for _, n := range threads {
		sum.N += n
	}
	return []entity.Dependent{sum}, err
}

func (s *Service) additions(
	ctx context.Context, tenant string, kind entity.Kind, ids []string,
) (map[string][]entity.Dependent, error) {
	threads, err := s.threads(ctx, tenant, kind, ids)
	all := make(map[string][]entity.Dependent, len(threads))
	for id, n := range threads {
		all[id] = []entity.Dependent{thread(n)}
	}
	return all, err
}

func (s *Service) threads(ctx context.Context, tenant string, kind entity.Kind, ids []string) (map[string]int, error) {
	if !s.mayHave(kind) {
		return nil, nil
	}
	return s.store.Threads(ctx, tenant, kind, ids)
}

func thread(n int) entity.Dependent {
	return entity.Dependent{Count: entity.Count{N: n, Of: "comment thread"}, Rank: 3}
}
