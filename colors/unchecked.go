package colors

import (
	"context"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/transfer"
)

// Unchecked has the methods of a Service that check no permission: they need no actor and take any
// tenant. They are for the program that builds the services and for its command line. Do not pass
// them what a request says before it has been checked.
type Unchecked struct{ s *Service }

// Unchecked returns the methods that check no permission.
func (s *Service) Unchecked() Unchecked { return Unchecked{s} }

// Type returns the entity type of colors: they can be looked up and moved by bundles, and have no
// owners.
func (u Unchecked) Type() entity.Type {
	return entity.Type{
		Kind: Kind, Transferer: u.s.transferer(),
		Lookup: func(ctx context.Context, tenant, id string) (entity.Ref, error) {
			if validKey(id) != nil { // cannot exist, and the database may refuse the text
				return entity.Ref{}, errs.New(errs.NotFound, "Color not found.")
			}
			c, err := u.s.store.Get(ctx, tenant, id)
			return c.ref(), err
		},
		Find: func(ctx context.Context, tenant string, keys []string) (map[string]entity.Ref, error) {
			return transfer.Find(ctx, tenant, keys, u.s.store.Some, Color.ref)
		},
	}
}

// Hooks returns the count of colors.
func (u Unchecked) Hooks() entity.Hooks {
	return entity.Hooks{Counts: entity.CountRows(50, "colors", u.s.store.Count)}
}
