package bundles

import (
	"cmp"
	"context"
	"io"
	"slices"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
)

// Deployed is what a deploy did in one tenant.
type Deployed struct {
	Tenant string
	Report
	// Err is why this tenant was left as it was, when another one had been deployed to by then.
	Err error
}

// Deploy exports a bundle and imports it into other tenants, each in a transaction of its own, with the rule Overwrite
// unless another one is given. Rows that an earlier deploy of the bundle made in a tenant, and that the bundle ships no
// more, are removed there, unless another bundle ships them there too. It first keeps, in each tenant, an archive of what
// it will replace. It needs a superuser.
//
// All tenants are checked before anything is done: each must be the caller's own or list it in deployFrom.
// Errors: errs.Forbidden naming the first that does not, also for one that is not there; errs.Invalid for no tenants or a
// bad option; errs.NotFound for the bundle; as Import for the first tenant. When a later tenant fails the ones before are
// deployed to: its Err says why, and the next ones are tried.
func (s *Service) Deploy(ctx context.Context, bundle string, tenants []string, o How) ([]Deployed, error) {
	a, err := actor.Allowed(ctx, actor.Superuser)
	if err != nil {
		return nil, err
	}
	b, err := s.get(ctx, a.Tenant, bundle)
	if err != nil {
		return nil, err
	}
	if err := s.mayDeploy(ctx, a, tenants, &o); err != nil {
		return nil, err
	}
	e, err := s.Export(ctx, b.ID)
	if err != nil {
		return nil, err
	}
	return s.deploy(ctx, a, e, b.ID, tenants, o)
}

// DeployManifest does as Deploy for entries that no bundle has. Nothing remembers that they came together, so nothing is
// ever removed.
func (s *Service) DeployManifest(ctx context.Context, m Manifest, tenants []string, o How) ([]Deployed, error) {
	a, err := actor.Allowed(ctx, actor.Superuser)
	if err != nil {
		return nil, err
	}
	if err := s.mayDeploy(ctx, a, tenants, &o); err != nil {
		return nil, err
	}
	e, err := s.ExportManifest(ctx, m)
	if err != nil {
		return nil, err
	}
	return s.deploy(ctx, a, e, "", tenants, o)
}

func (s *Service) mayDeploy(ctx context.Context, a actor.Actor, tenants []string, o *How) error {
	o.Rule = cmp.Or(o.Rule, entity.Overwrite)
	if err := o.check(); err != nil {
		return err
	}
	if len(tenants) == 0 {
		return errs.New(errs.Invalid, "tenants must name at least one tenant")
	}
	for _, tenant := range tenants {
		if tenant == a.Tenant {
			continue
		}
		from, err := s.tenants.DeployFrom(ctx, tenant)
		if err != nil && errs.CodeOf(err) != errs.NotFound {
			return err
		}
		if !slices.Contains(from, a.Tenant) { // one that is not there looks the same
			return errs.New(errs.Forbidden, "The tenant %q does not let %s deploy into it: see its deployFrom.", short(tenant), a.Tenant)
		}
	}
	return nil
}

func (s *Service) deploy(ctx context.Context, a actor.Actor, e *Export, bundle string, tenants []string, o How) ([]Deployed, error) {
	in, end, err := s.spool(func(w io.Writer) error { return e.Write(ctx, w) })
	if err != nil {
		return nil, err
	}
	defer end()
	look, err := s.survey(in)
	if err != nil {
		return nil, err
	}
	var results []Deployed
	done := false
	for i, tenant := range tenants {
		if slices.Contains(tenants[:i], tenant) {
			continue
		}
		report, err := s.deployTo(ctx, a, tenant, bundle, look, in, o)
		if err != nil && (!done || ctx.Err() != nil) {
			return nil, err
		}
		done = true
		results = append(results, Deployed{Tenant: tenant, Report: report, Err: err})
	}
	return results, nil
}

func (s *Service) deployTo(ctx context.Context, a actor.Actor, tenant, bundle string, look survey, in io.ReadSeeker, o How) (report Report, err error) {
	err = s.transaction(ctx, o, func(ctx context.Context) error {
		l := s.landing(tenant, look, o)
		if err := s.store.Lock(ctx, tenant); err != nil {
			return err
		}
		if l.into.Owner, err = s.owner(ctx, tenant, a.User, ""); err != nil {
			return err
		}
		if tenant == a.Tenant {
			l.self = a.User
		}
		before, gone, err := s.earlier(ctx, tenant, a.Tenant, bundle, look)
		if err != nil {
			return err
		}
		if err := l.replace(ctx, gone); err != nil {
			return err
		}
		if err := l.run(ctx, in); err != nil {
			return err
		}
		report = l.report
		if bundle == "" {
			return nil
		}
		for k := range l.created {
			if !slices.Contains(before, k) {
				before = append(before, k)
			}
		}
		slices.SortFunc(before, compareKeys)
		return s.store.SetDeployed(ctx, tenant, a.Tenant, bundle, slices.Compact(before))
	})
	if o.DryRun {
		report.Archive = nil
	}
	return report, err
}

// earlier gives what earlier deploys of a bundle made and this one ships again, and what is to go.
func (s *Service) earlier(ctx context.Context, tenant, source, bundle string, look survey) (stays []entity.Key, gone plan, err error) {
	gone = plan{}
	if bundle == "" {
		return nil, gone, nil
	}
	all, alone, err := s.store.Deployed(ctx, tenant, source, bundle)
	if err != nil {
		return nil, nil, err
	}
	for _, k := range all {
		if look.ids[k.Kind][k.ID] {
			stays = append(stays, k)
		}
	}
	for _, k := range alone {
		if !look.ids[k.Kind][k.ID] && s.porters[k.Kind] != nil {
			gone[k.Kind] = append(gone[k.Kind], k.ID)
		}
	}
	return stays, gone, nil
}
