package principals

import (
	"context"
	"time"
)

// Unchecked has the methods of a Service that check no permission: they need no actor and take any tenant. They are for the
// program that builds the services and for its command line. Do not pass them what a request says before it has been checked.
type Unchecked struct{ s *Service }

// Unchecked returns the methods that check no permission.
func (s *Service) Unchecked() Unchecked { return Unchecked{s} }

// LockDomain locks a tenant until the transaction in ctx ends: other callers that lock it wait. It returns errs.Invalid for the
// domain Local, and errs.NotFound if there is no such tenant, or it has no such domain.
func (u Unchecked) LockDomain(ctx context.Context, tenant, domain string) error {
	return u.s.lockDomain(ctx, tenant, domain)
}

// Rename changes the names of users wherever they are stored; names maps old ones to new ones. Names may pass from one user to
// another, in a circle too, but must not be those of other users. It joins the transaction in ctx.
func (u Unchecked) Rename(ctx context.Context, tenant string, names map[string]string, at time.Time) error {
	return u.s.rename(ctx, tenant, names, at)
}
