package domains

import (
	"context"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
)

// CheckInspect returns the id of a domain to a superuser, also with a token that can only read.
// Errors: errs.Forbidden; errs.NotFound.
func (s *Service) CheckInspect(ctx context.Context, id string) (string, error) {
	a, err := actor.Allowed(ctx, actor.SuperuserRead)
	if err != nil {
		return "", err
	}
	d, err := s.get(ctx, a.Tenant, id)
	return d.ID, err
}

// Changing calls do with the id of a domain, in a transaction in which nobody else changes or
// removes it. It needs a superuser. Errors: errs.Forbidden; errs.NotFound; those of do.
func (s *Service) Changing(ctx context.Context, id string, do func(ctx context.Context, id string) error) error {
	a, err := actor.Allowed(ctx, actor.Superuser)
	if err != nil {
		return err
	}
	return s.changing(ctx, a.Tenant, id, func(ctx context.Context, d Domain) error { return do(ctx, d.ID) })
}

// Provisioning is Changing for a domain whose users a provider of identities may keep by SCIM.
// Errors: also errs.Invalid for the domain local; errs.Conflict for one that is scanned.
func (s *Service) Provisioning(ctx context.Context, id string, do func(ctx context.Context, id string) error) error {
	a, err := actor.Allowed(ctx, actor.Superuser)
	if err != nil {
		return err
	}
	return s.changing(ctx, a.Tenant, id, func(ctx context.Context, d Domain) error {
		if err := s.provisioned(d); err != nil {
			return err
		}
		return do(ctx, d.ID)
	})
}

func (s *Service) changing(ctx context.Context, tenant, id string, do func(ctx context.Context, d Domain) error) error {
	return s.store.InTx(ctx, func(ctx context.Context) error {
		if err := s.store.LockTenant(ctx, tenant); err != nil {
			return err
		}
		d, err := s.get(ctx, tenant, id)
		if err != nil {
			return err
		}
		return do(ctx, d)
	})
}

// provisioned returns the reason why no provider of identities can keep the users of a domain, nil
// if there is none.
func (s *Service) provisioned(d Domain) error {
	if d.ID == Local {
		return errs.New(
			errs.Invalid, "The users of the domain %s are kept here: SCIM is for those of another one.", Local,
		)
	}
	if info, _ := s.info(d.Type); info.ScanComponent != nil {
		return errs.New(
			errs.Conflict,
			"The users of the domain %s are those of its directory (%s), which is scanned: SCIM would change what "+
				"a scan changes back.",
			d.ID, d.Type,
		)
	}
	return nil
}

// Provisioned returns the reason why no provider of identities can keep the users of a domain by
// SCIM, nil if there is none. Errors: errs.NotFound; errs.Invalid for the domain local;
// errs.Conflict for one that is scanned.
func (u Unchecked) Provisioned(ctx context.Context, tenant, id string) error {
	d, err := u.s.get(ctx, tenant, id)
	if err != nil {
		return err
	}
	return u.s.provisioned(d)
}
