package tenants

import (
	"context"

	"github.com/tenantcontent/tenantcontent/errs"
)

// Unchecked has the methods of a Service that check no permission: they need no actor and take any tenant. They are for the
// program that builds the services and for its command line. Do not pass them what a request says before it has been checked.
type Unchecked struct{ s *Service }

// Unchecked returns the methods that check no permission.
func (s *Service) Unchecked() Unchecked { return Unchecked{s} }

// Add adds a tenant. Without a name it is named as its id. Errors: errs.Invalid naming the field; errs.Conflict for a taken id.
func (u Unchecked) Add(ctx context.Context, t Tenant) (Tenant, error) {
	if !ValidID(t.ID) {
		return Tenant{}, errs.New(errs.Invalid, "id must be 1 to 63 lower-case letters, digits and hyphens, and not begin with a hyphen")
	}
	if t.Name == "" {
		t.Name = t.ID
	}
	if err := t.accept(); err != nil {
		return Tenant{}, err
	}
	check, err := u.s.sealCheck(t.ID)
	if err != nil {
		return Tenant{}, err
	}
	t.CreatedAt = u.s.stamp()
	t.UpdatedAt = t.CreatedAt
	if err := u.s.store.Insert(ctx, t, check); err != nil {
		return Tenant{}, err
	}
	return t, nil
}

// Lookup returns a tenant. It returns errs.NotFound if there is none with this id.
func (u Unchecked) Lookup(ctx context.Context, id string) (Tenant, error) {
	return u.s.get(ctx, id)
}

// IDs returns the ids of all tenants, ordered.
func (u Unchecked) IDs(ctx context.Context) ([]string, error) { return u.s.store.IDs(ctx) }

// Counts returns how many rows of each sort a tenant has, zeros included. It returns errs.NotFound if there is no such tenant.
func (u Unchecked) Counts(ctx context.Context, id string) ([]Count, error) {
	if _, err := u.Lookup(ctx, id); err != nil {
		return nil, err
	}
	rows, err := u.s.hooks.TenantCounts(ctx, id)
	all := make([]Count, len(rows))
	for i, r := range rows {
		all[i] = Count{Of: r.Of, N: r.N}
	}
	return all, err
}

// Delete removes a tenant and all that it has. The other tenants lose their entries of DeployFrom for it and what their
// entity.Hooks remove, such as the records of its deploys, so that a tenant which is made with its id later has no right of it. It returns errs.NotFound if there is no such tenant.
func (u Unchecked) Delete(ctx context.Context, id string) error {
	if _, err := u.Lookup(ctx, id); err != nil {
		return err
	}
	err := u.s.store.Delete(ctx, id, u.s.stamp(), func(ctx context.Context, other string) error {
		return u.s.hooks.TenantDeleted(ctx, other, id)
	})
	if err != nil {
		return err
	}
	return u.s.hooks.Removed(ctx, id)
}

// AIEnabled reports whether a tenant's AI module is on. It asks the database at most once a second, and at once after a change
// that Options.Changes counts. It returns errs.NotFound if there is no such tenant.
func (u Unchecked) AIEnabled(ctx context.Context, tenant string) (bool, error) {
	return u.s.ai.Get(tenant, "", func() (bool, error) {
		t, err := u.Lookup(ctx, tenant)
		return t.Settings.AI, err
	})
}

// Licensed reports whether a tenant has a license. It returns errs.NotFound if there is no such tenant.
func (u Unchecked) Licensed(ctx context.Context, tenant, license string) (bool, error) {
	t, err := u.s.get(ctx, tenant)
	return t.Settings.Licensed(license), err
}

// DefaultDomain returns the id of a tenant's default authentication domain. It returns errs.NotFound if there is no such tenant.
func (u Unchecked) DefaultDomain(ctx context.Context, id string) (string, error) {
	t, err := u.Lookup(ctx, id)
	return t.Settings.DefaultDomain, err
}

// ForgetDomain resets a tenant's default domain to local if it is the given one. It joins the transaction in ctx. It returns
// errs.NotFound if there is no such tenant.
func (u Unchecked) ForgetDomain(ctx context.Context, id, domain string) error {
	t, err := u.Lookup(ctx, id)
	if err != nil || t.Settings.DefaultDomain != domain {
		return err
	}
	_, err = u.s.store.Update(ctx, id, func(t *Tenant) error {
		if t.Settings.DefaultDomain == domain {
			t.Settings.DefaultDomain, t.UpdatedAt = local, u.s.stamp()
		}
		return nil
	})
	return err
}

// DeploysFrom reports whether a source may deploy bundles into a tenant, and the user who owns and runs what comes from
// there, "" for none. It returns errs.NotFound if there is no such tenant.
func (u Unchecked) DeploysFrom(ctx context.Context, id, source string) (allowed bool, runAs string, err error) {
	t, err := u.Lookup(ctx, id)
	for _, from := range t.Settings.DeployFrom {
		if from.Tenant == source {
			return true, from.RunAs, err
		}
	}
	return false, "", err
}
