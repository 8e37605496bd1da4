package aiinstr

import (
	"context"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/transfer"
)

// Unchecked has the methods of a Service that check no permission: they need no actor and take any
// tenant. They are for the program that builds the services and for its command line. Do not pass
// them what a request says before it has been checked.
type Unchecked struct{ s *Service }

// Unchecked returns the methods that check no permission.
func (s *Service) Unchecked() Unchecked { return Unchecked{s} }

// Type returns the entity type of instructions: they can be looked up, owned, reassigned and moved
// by bundles. Its functions do not check whether AI is on, either.
func (u Unchecked) Type() entity.Type {
	return entity.Type{
		Kind: Kind,
		Lookup: func(ctx context.Context, tenant, id string) (entity.Ref, error) {
			key, err := place(id)
			if err != nil {
				return entity.Ref{}, err
			}
			i, err := u.s.store.Get(ctx, tenant, key)
			return i.ref(), err
		},
		Find: func(ctx context.Context, tenant string, ids []string) (map[string]entity.Ref, error) {
			return transfer.Find(ctx, tenant, ids, u.s.store.Some, Instruction.ref)
		},
		Owned: u.s.store.Owned, Owners: u.s.store.Owners, Rename: u.s.store.RenameOwners,
		Reassign: func(ctx context.Context, tenant, from, to string) ([]entity.Ref, error) {
			moved, err := u.s.store.Reassign(ctx, tenant, from, to, u.s.clock.Stamp())
			return transfer.Refs(moved, Instruction.ref), err
		},
		Transferer: u.s.transferer(),
	}
}

// Hooks returns the count of instructions.
func (u Unchecked) Hooks() entity.Hooks {
	return entity.Hooks{Counts: entity.CountRows(60, "AI instructions", u.s.store.Count)}
}
