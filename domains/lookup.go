package domains

import (
	"context"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/text/slug"
)

// Lookup finds domains in a Store and checks no permission, as Unchecked does: packages need it
// whose services are built before the Service of domains.
type Lookup struct{ Store Store }

// Known returns errs.Invalid if a tenant has no domain with an id.
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
