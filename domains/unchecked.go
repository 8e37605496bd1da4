package domains

import (
	"context"

	"github.com/tenantcontent/tenantcontent/entity"
)

// Unchecked has the methods of a Service that check no permission: they need no actor and take any
// tenant. They are for the program that builds the services, for its command line and, as those of
// logins check a password or what a provider sends, for requests of people who have not logged in
// yet. Do not pass the others what a request says before it has been checked.
type Unchecked struct{ s *Service }

// Unchecked returns the methods that check no permission.
func (s *Service) Unchecked() Unchecked { return Unchecked{s} }

// Hooks returns the count of domains, the columns of their secrets and keys, and what is done with
// the records of used logins: Sweep removes those that have expired.
func (u Unchecked) Hooks() entity.Hooks {
	return entity.Hooks{
		Counts: entity.CountRows(90, "domains", u.s.store.Count),
		Sealed: []entity.SealedColumn{
			{Table: secretsTable, Column: secretsColumn, Key: "id"},
			{Table: secretsTable, Column: keysColumn, Key: "id"},
		},
		Due: []entity.Due{{Table: "tc_domain_logins", Column: "expires_at"}},
		Sweep: func(ctx context.Context, tenant string) (int, error) {
			return u.s.store.Sweep(ctx, tenant, u.s.clock.Stamp())
		},
	}
}
