package content

import (
	"context"

	"github.com/tenantcontent/tenantcontent/entity"
)

// Unchecked has the methods of a Service that check no permission: they need no actor and take any
// tenant. They are for the program that builds the services and for its command line. Do not pass
// them what a request says before it has been checked.
type Unchecked struct{ s *Service }

// Unchecked returns the methods that check no permission.
func (s *Service) Unchecked() Unchecked { return Unchecked{s} }

// SetSystem sets whether an entity, found by id or natural id, belongs to the service itself. It
// returns errs.NotFound if there is no such entity.
func (u Unchecked) SetSystem(
	ctx context.Context, tenant string, kind entity.Kind, id string, system bool,
) (e Entity, err error) {
	of := entity.Subject{Kind: kind, ID: id, Action: entity.ActionUpdate}
	err = u.s.feed.In(ctx, nil, tenant, of, func(ctx context.Context) error {
		e, err = u.s.update(ctx, tenant, kind, id, func(e *Entity) error {
			e.System, e.UpdatedAt = system, u.s.clock.Stamp()
			return nil
		})
		return err
	})
	return e, err
}

// Types returns the entity.Type of each ready kind, in the order of Kinds, except those that
// Options.Others replaces.
func (u Unchecked) Types() []entity.Type {
	var types []entity.Type
	for _, k := range Kinds() {
		if !u.s.replaced(k.Kind) {
			types = append(types, u.s.entityType(k))
		}
	}
	return types
}

// Hooks returns the count of entities.
func (u Unchecked) Hooks() entity.Hooks {
	return entity.Hooks{Counts: entity.CountRows(30, "items of content", u.s.store.Count)}
}
