package domains

import (
	"context"

	"github.com/tenantcontent/tenantcontent/entity"
)

// Unchecked has the methods of a Service that check no permission: they need no actor and take any tenant. They are for the
// program that builds the services and for its command line. Do not pass them what a request says before it has been checked.
type Unchecked struct{ s *Service }

// Unchecked returns the methods that check no permission.
func (s *Service) Unchecked() Unchecked { return Unchecked{s} }

// Hooks returns the count of domains, the column of their secrets, and what is done with the records of used logins: Sweep removes
// those that have expired.
func (u Unchecked) Hooks() entity.Hooks {
	return entity.Hooks{
		Counts: entity.CountRows(90, "domains", u.s.o.Store.Count),
		Sealed: []entity.SealedColumn{{Table: secretsTable, Column: secretsColumn, Key: "id"}},
		Sweep: func(ctx context.Context, tenant string) (int, error) {
			return u.s.o.Store.Sweep(ctx, tenant, u.s.stamp())
		},
	}
}
