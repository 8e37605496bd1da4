package principals

import (
	"context"
	"time"
)

// Unchecked has the methods of a Service that check no permission: they need no actor and take any
// tenant. They are for the program that builds the services and for its command line. Do not pass
// them what a request says before it has been checked.
type Unchecked struct{ s *Service }

// Unchecked returns the methods that check no permission.
func (s *Service) Unchecked() Unchecked { return Unchecked{s} }

// LockDomain locks a tenant until the transaction in ctx ends: other callers that lock it wait. It
// returns errs.Invalid for the domain Local, and errs.NotFound if there is no such tenant, or it
// has no such domain.
func (p Unchecked) LockDomain(ctx context.Context, tenant, domain string) error {
	return p.s.lockDomain(ctx, tenant, domain)
}

// Rename changes the names of users wherever they are stored; names maps old ones to new ones.
// Names may pass from one user to another, in a circle too, but must not be those of other users.
// It joins the transaction in ctx.
func (p Unchecked) Rename(ctx context.Context, tenant string, names map[string]string, at time.Time) error {
	return p.s.rename(ctx, tenant, names, at)
}

// Disabled removes the sessions and personal tokens of users who have been disabled, in the
// transaction that disables them.
func (p Unchecked) Disabled(ctx context.Context, tenant string, usernames ...string) error {
	if p.s.content == nil {
		return nil
	}
	return p.s.content.Disabled(ctx, tenant, usernames...)
}

// FreeSlug returns a slug for a new team: the one that is wanted, or else the first of slug-2,
// slug-3… that no team has. It runs two statements at most.
func (p Unchecked) FreeSlug(ctx context.Context, tenant, wanted string) (string, error) {
	return p.s.freeSlug(ctx, tenant, wanted)
}

// LockPrincipals keeps content from being added for users and teams until the transaction in ctx
// ends, and waits for what is just being added: a caller that removes them then finds all that they
// own. The tenant must be locked before. Ids that do not exist are no error.
func (p Unchecked) LockPrincipals(ctx context.Context, tenant string, ids []string) error {
	return p.s.store.LockPrincipals(ctx, tenant, ids)
}

// Known returns the given principal ids of a tenant, Everyone's too, that exist.
func (p Unchecked) Known(ctx context.Context, tenant string, ids []string) (map[string]bool, error) {
	return p.s.store.Known(ctx, tenant, ids)
}

// Username returns the exact name of the user of a tenant with a name, in any spelling of it. It
// returns errs.NotFound if there is none.
func (p Unchecked) Username(ctx context.Context, tenant, name string) (string, error) {
	u, err := p.s.find(ctx, tenant, name)
	return u.Username, err
}

// CanonicalName is like Service.CanonicalName for a tenant.
func (p Unchecked) CanonicalName(ctx context.Context, tenant, name string) (string, error) {
	return p.s.canonicalName(ctx, tenant, name)
}

// Superusers returns the names of the enabled superusers of a tenant, ordered by name ignoring
// case.
func (p Unchecked) Superusers(ctx context.Context, tenant string) ([]string, error) {
	return p.s.store.EnabledSuperusers(ctx, tenant)
}
