package domains

import (
	"context"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
)

// Unchecked has the methods of a Service that check no permission: they need no actor and take any
// tenant. They are for the program that builds the services, for its command line and, as those of
// logins check a password or what a provider sends, for requests of people who have not logged in
// yet. Do not pass the others what a request says before it has been checked.
type Unchecked struct{ s *Service }

// Unchecked returns the methods that check no permission.
func (s *Service) Unchecked() Unchecked { return Unchecked{s} }

// Usable returns errs.Conflict with the reason if a user of a domain could not log in, as far as
// that is known without asking its directory or provider.
func (u Unchecked) Usable(ctx context.Context, tenant, id string) error {
	d, err := u.s.get(ctx, tenant, id)
	if err != nil || id == Local {
		return err
	}
	if why := u.s.unready(d); why != "" {
		return errs.New(errs.Conflict, "A user of the domain %s could not log in: %s", id, why)
	}
	o, err := u.s.openWithRules(d)
	if err == nil && o.rules.Accounts != "" {
		err = errs.New(
			errs.Conflict,
			"A user of the domain %s could not log in: it logs in those of the domain %s, so let the user be of "+
				"that one",
			id, o.rules.Accounts,
		)
	}
	return err
}

// TiedEmail returns errs.Forbidden if people log in, at another domain, as the user of a domain who
// has their e-mail address.
func (u Unchecked) TiedEmail(ctx context.Context, tenant, id string) error {
	named, err := u.s.naming(ctx, tenant, id, func(r rules) bool { return r.AccountsBy == byEmail })
	if err == nil && named != "" {
		err = errs.New(
			errs.Forbidden,
			"Only a superuser may change the email of a user of the domain %s: people log in by it at the domain %s.",
			id, named,
		)
	}
	return err
}

// Hooks returns the count of domains, the columns of their secrets and keys, and what is done with
// the records of used logins: Sweep removes those that have expired.
func (u Unchecked) Hooks() entity.Hooks {
	return entity.Hooks{
		Counts: entity.CountRows(90, "domains", u.s.o.Store.Count),
		Sealed: []entity.SealedColumn{
			{Table: secretsTable, Column: secretsColumn, Key: "id"},
			{Table: secretsTable, Column: keysColumn, Key: "id"},
		},
		Due: []entity.Due{{Table: "tc_domain_logins", Column: "expires_at"}},
		Sweep: func(ctx context.Context, tenant string) (int, error) {
			return u.s.o.Store.Sweep(ctx, tenant, u.s.stamp())
		},
	}
}
