package domains

import (
	"context"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/slug"
)

// Lookup finds domains in a Store, for packages whose services are built before the Service of domains.
type Lookup struct{ Store Store }

// Known returns errs.Invalid if a tenant has no domain with an id. It needs no actor.
func (l Lookup) Known(ctx context.Context, tenant, id string) error {
	_, err := l.get(ctx, tenant, id)
	if errs.CodeOf(err) == errs.NotFound {
		return errs.New(errs.Invalid, "domain must be the id of a domain of the tenant")
	}
	return err
}

func (l Lookup) get(ctx context.Context, tenant, id string) (Domain, error) {
	if !slug.Valid(id) || !plain(tenant) {
		return Domain{}, errNotFound
	}
	return l.Store.Get(ctx, tenant, id)
}

// Hooks returns what is done with the records of used logins: Sweep removes those that have expired.
func (s *Service) Hooks() entity.Hooks {
	return entity.Hooks{Sweep: func(ctx context.Context, tenant string) (int, error) { return s.o.Store.Sweep(ctx, tenant, s.stamp()) }}
}
