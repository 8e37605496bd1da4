package entities

import (
	"context"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/port"
)

// Types gives the entity.Type of each ready kind, in the order of Kinds, but for those that Options.Others replaces.
func (s *Service) Types() []entity.Type {
	var types []entity.Type
	for _, k := range Kinds() {
		if !s.replaced(k.Kind) {
			types = append(types, s.entityType(k))
		}
	}
	return types
}

func (s *Service) replaced(kind entity.Kind) bool {
	_, ok := s.other(kind)
	return ok
}

func (s *Service) other(kind entity.Kind) (entity.Type, bool) {
	for _, t := range s.others {
		if t.Kind == kind {
			return t, true
		}
	}
	return entity.Type{}, false
}

func (s *Service) entityType(k Ready) entity.Type {
	var p entity.Porter = porter{s, k.Kind}
	if k.Kind == Library {
		p = filePorter{porter{s, k.Kind}}
	}
	return entity.Type{
		Kind: k.Kind, Commented: k.Commented, Porter: p,
		Lookup: func(ctx context.Context, tenant, id string) (entity.Ref, error) {
			e, err := s.find(ctx, tenant, k.Kind, id)
			if err != nil {
				return entity.Ref{}, err
			}
			return e.Ref(), nil
		},
		Find: func(ctx context.Context, tenant string, ids []string) (map[string]entity.Ref, error) {
			found := map[string]entity.Ref{}
			for batch := range port.Chunks(ids) {
				some, err := s.store.Heads(ctx, tenant, k.Kind, batch)
				if err != nil {
					return nil, err
				}
				for _, e := range some {
					found[e.ID] = e.Ref()
				}
			}
			return found, nil
		},
		Owned: func(ctx context.Context, tenant, owner string) (int, error) {
			return s.store.Owned(ctx, tenant, k.Kind, owner)
		},
		Reassign: func(ctx context.Context, tenant, from, to string) ([]entity.Ref, error) {
			moved, err := s.store.Reassign(ctx, tenant, k.Kind, from, to, k.DraftsEnd, s.stamp())
			if err != nil {
				return nil, err
			}
			refs := make([]entity.Ref, len(moved))
			for i, e := range moved {
				refs[i] = e.Ref()
			}
			return refs, nil
		},
	}
}
