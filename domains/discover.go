package domains

import (
	"context"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/limits/limiter"
	"github.com/tenantcontent/tenantcontent/internal/secure/guard"
)

// SaveOption changes how Create and Update save a domain.
type SaveOption int

// Unasked saves a configuration whose provider is not there, such as one that is set up later: it
// is not asked.
const Unasked SaveOption = 1

// discover has a provider be asked for what it publishes if a configuration is a changed one.
func (s *Service) discover(ctx context.Context, d Domain, c change, o []SaveOption) error {
	provider, ok := c.realm.(Discoverer)
	if !ok || !c.is || len(o) > 0 {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, s.checkTime)
	defer cancel()
	err := provider.Discover(limited)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		err = errs.Wrap(errs.Invalid, err, "config: the provider has not answered in %v", s.checkTime)
	} else {
		err = inConfig(err)
	}
	if errs.CodeOf(err) == errs.Invalid {
		err = errs.Wrap(errs.Invalid, err, "%s (check=false saves it all the same)", errs.MessageOf(err))
	}
	return err
}

// discoverEdit calls discover for what an edit makes of a domain, and returns the change; the zero
// change if nobody was asked. keys are those that the domain has then, as none should be made in a
// transaction.
func (s *Service) discoverEdit(
	ctx context.Context, tenant, id string, edit func(*Domain) error, o []SaveOption,
) (c change, keys string, err error) {
	d, err := s.get(ctx, tenant, id)
	if err != nil {
		return change{}, "", err
	}
	if g := guard.Of(ctx, "domain"); g != nil && !g.Fits(d.Version(), true) {
		return change{}, "", guard.Stale() // the store checks it again
	}
	if d, err = s.withoutIDs(ctx, d); err != nil {
		return change{}, "", err
	}
	c, err = s.edit(&d, edit, 0, "")
	if err != nil {
		return change{}, "", err
	}
	if _, ok := c.realm.(Discoverer); !ok || len(o) > 0 {
		return change{}, d.SealedKeys, nil
	}
	return c, d.SealedKeys, s.discover(ctx, d, c, nil)
}

// takeTrial takes the place of a superuser who saves a domain or tries one out. Errors:
// errs.Unavailable.
func (l *lookup) takeTrial(ctx context.Context, tenant string) (leave func(), err error) {
	leave, err = l.trials.Acquire(ctx, 1, tenant)
	return leave, limiter.Unavailable(err, "Too many domains are saved or tried out at the moment. Try again.")
}

// opened keeps the realm of a domain that has been saved, which may have read what its provider
// publishes. One with the secrets of before takes its place, too, if they were sent: it does not
// pause (see Pausing).
func (s *Service) opened(d Domain, c change) {
	if (c.is || c.sent) && c.realm != nil {
		s.realms.replace(place{d.Tenant, d.ID}, opened{d.settings(), c.realm, c.rules})
	}
}
