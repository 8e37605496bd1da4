package content

import (
	"context"
	"slices"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/transfer"
)

// replaced reports whether the host keeps a kind itself.
func (s *Service) replaced(kind entity.Kind) bool { return slices.Contains(s.hostKinds, kind) }

// other returns the type of a kind that is kept elsewhere.
func (s *Service) other(kind entity.Kind) (entity.Type, bool) {
	own := slices.ContainsFunc(Kinds(), func(k KindInfo) bool { return k.Kind == kind })
	if s.registry == nil || own && !s.replaced(kind) {
		return entity.Type{}, false
	}
	return s.registry.Type(kind)
}

func (s *Service) entityType(k KindInfo) entity.Type {
	var p entity.Transferer = s.transferer(k.Kind)
	if k.Kind == Library {
		p = fileTransferer{p, s}
	}
	return entity.Type{
		Kind: k.Kind, Commented: k.Commented, Transferer: p,
		Lookup: func(ctx context.Context, tenant, id string) (entity.Ref, error) {
			e, err := s.find(ctx, tenant, k.Kind, id)
			if err != nil {
				return entity.Ref{}, err
			}
			return e.Ref(), nil
		},
		Find: func(ctx context.Context, tenant string, ids []string) (map[string]entity.Ref, error) {
			return transfer.Find(ctx, tenant, ids, func(
				ctx context.Context, tenant string, ids []string,
			) ([]Entity, error) {
				return s.store.Heads(ctx, tenant, k.Kind, ids)
			}, Entity.Ref)
		},
		Owned: func(ctx context.Context, tenant, owner string) (int, error) {
			return s.store.Owned(ctx, tenant, k.Kind, owner)
		},
		Owners: func(ctx context.Context, tenant string) ([]string, error) {
			return s.store.Owners(ctx, tenant, k.Kind)
		},
		Rename: func(ctx context.Context, tenant string, names map[string]string) error {
			return s.store.RenameOwners(ctx, tenant, k.Kind, names)
		},
		Reassign: func(ctx context.Context, tenant, from, to string) ([]entity.Ref, error) {
			if k.DraftsEnd {
				if err := s.endDrafts(ctx, tenant, k.Kind, from); err != nil {
					return nil, err
				}
			}
			moved, err := s.store.Reassign(ctx, tenant, k.Kind, from, to, s.clock.Stamp())
			return transfer.Refs(moved, Entity.Ref), err
		},
	}
}

// endDrafts removes an owner's drafts of a kind with what hangs on them.
func (s *Service) endDrafts(ctx context.Context, tenant string, kind entity.Kind, owner string) error {
	ids, err := s.store.DeleteDrafts(ctx, tenant, kind, owner)
	if err != nil {
		return err
	}
	ended := make([]entity.Key, len(ids))
	for i, id := range ids {
		ended[i] = entity.Key{Kind: kind, ID: id}
	}
	return s.forgetAll(ctx, tenant, ended...)
}
