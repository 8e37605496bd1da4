package bundles

import (
	"cmp"
	"context"
	"io"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
)

// Deployed is the result of a deploy in one tenant.
type Deployed struct {
	Tenant string
	ImportResult
	// Err is the error that left this tenant unchanged, if another tenant had been deployed to
	// before.
	Err error
}

// Deploy exports a bundle and imports it into other tenants, each in a transaction of its own, with
// the rule Overwrite unless another one is given; with Fail it can be deployed only once. Whatever
// the rule, it removes what earlier deploys of the bundle brought and it no longer ships: see
// Deployment. It first stores an archive of what it replaces, and warns of what that archive cannot
// restore. Into another tenant it brings no rights: see entity.ImportOptions and docs/api.md. All
// tenants are checked first, and again in their transactions. It needs a superuser.
//
// Errors: as Import; errs.Forbidden naming a tenant that is not the caller's, and does not list it
// in deployFrom; errs.Invalid for no tenants; errs.NotFound for the bundle. An error in the first
// tenant is returned, and nothing is deployed anywhere. An error in a later tenant becomes its
// Deployed.Err and leaves it unchanged, and the next ones are tried.
func (s *Service) Deploy(ctx context.Context, bundle string, tenants []string, o ImportOptions) ([]Deployed, error) {
	a, err := actor.Allowed(ctx, actor.Superuser)
	if err != nil {
		return nil, err
	}
	b, err := s.get(ctx, a.Tenant, bundle)
	if err != nil {
		return nil, err
	}
	if tenants, err = s.mayDeploy(ctx, a, tenants, &o); err != nil {
		return nil, err
	}
	e, err := s.Export(ctx, b.ID)
	if err != nil {
		return nil, err
	}
	return s.deploy(ctx, a, e, b.ID, tenants, o)
}

// DeployManifest is like Deploy for entries that are in no bundle. Another tenant has a record of
// the entities, so that later deploys can overwrite them, but deploys of manifests never remove
// any.
func (s *Service) DeployManifest(
	ctx context.Context, m Manifest, tenants []string, o ImportOptions,
) ([]Deployed, error) {
	a, err := actor.Allowed(ctx, actor.Superuser)
	if err != nil {
		return nil, err
	}
	if tenants, err = s.mayDeploy(ctx, a, tenants, &o); err != nil {
		return nil, err
	}
	e, err := s.ExportManifest(ctx, m)
	if err != nil {
		return nil, err
	}
	return s.deploy(ctx, a, e, "", tenants, o)
}

// maxTenants is how many tenants one deploy may name.
const maxTenants = 1000

// mayDeploy checks the options and each tenant. It returns the tenants without duplicates.
func (s *Service) mayDeploy(ctx context.Context, a actor.Actor, tenants []string, o *ImportOptions) ([]string, error) {
	o.Rule = cmp.Or(o.Rule, entity.Overwrite)
	if err := o.check(); err != nil {
		return nil, err
	}
	if len(tenants) == 0 {
		return nil, errs.New(errs.Invalid, "tenants must name at least one tenant")
	}
	once, seen := []string{}, map[string]bool{}
	for _, tenant := range tenants {
		if !seen[tenant] {
			once, seen[tenant] = append(once, tenant), true
		}
	}
	if len(once) > maxTenants {
		return nil, errs.New(errs.Invalid, "tenants must name at most %d tenants", maxTenants)
	}
	for _, tenant := range once {
		if _, err := s.deployOwner(ctx, tenant, a.Tenant); err != nil {
			return nil, err
		}
	}
	return once, nil
}

// deployOwner returns the user who gets new entities when source deploys into a tenant, "" for
// none. It returns errs.Forbidden if the tenant does not allow that or does not exist.
func (s *Service) deployOwner(ctx context.Context, tenant, source string) (runAs string, err error) {
	if tenant == source {
		return "", nil
	}
	allowed, runAs, err := s.tenants.DeploysFrom(ctx, tenant, source)
	if err != nil && errs.CodeOf(err) != errs.NotFound {
		return "", err
	}
	if !allowed {
		return "", errs.New(
			errs.Forbidden, "The tenant %q does not let %s deploy into it: see its deployFrom.", short(tenant),
			source,
		)
	}
	return runAs, nil
}

func (s *Service) deploy(
	ctx context.Context, a actor.Actor, e *Export, bundle string, tenants []string, o ImportOptions,
) (all []Deployed, err error) {
	ctx, observed := s.started(ctx, a.Tenant, "deploy")
	defer func() { s.ended(ctx, observed, err) }()
	from := shipment{bundle: bundle}
	in, end, err := s.spool(func(w io.Writer) (err error) {
		from.dangling, err = e.write(ctx, w)
		return err
	})
	if err != nil {
		return nil, err
	}
	defer end()
	observed.Sent = s.sizeOf(in)
	if from.contents, err = s.survey(in); err != nil {
		return nil, err
	}
	for _, tenant := range tenants {
		result, err := s.importAs(ctx, tenant, in, o, func(ctx context.Context) (*plan, error) {
			return s.planDeploy(ctx, a, tenant, from, o)
		})
		if err != nil && (len(all) == 0 || ctx.Err() != nil) {
			return nil, err
		}
		all = append(all, Deployed{Tenant: tenant, ImportResult: result, Err: err})
	}
	return all, nil
}

// shipment is what a deploy brings to each tenant.
type shipment struct {
	bundle   string // id, "" for none
	contents contents
	dangling []Entry
}
