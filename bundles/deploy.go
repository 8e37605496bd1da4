package bundles

import (
	"cmp"
	"context"
	"fmt"
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
// unless another one is given. It first keeps, in each tenant, an archive of what it will replace, and warns of what that
// cannot bring back, and of entries that refer to nothing any more. It needs a superuser.
//
// A tenant remembers what each bundle brought. What it ships no more is removed there, whatever the rule, unless another
// bundle brought it too, or it is not the piece that came: a tenant that deletes it and makes its own under the same id, name
// or key keeps that, with a warning, and so does one whose own piece was overwritten. A piece that comes back from an
// archive is the one that it was. Which one it is, a row's createdAt says; of a kind whose rows have none, one that was
// changed counts as the tenant's own. With the rule Fail a bundle can be deployed once: then its rows are there.
//
// In another tenant than the caller's all superusers stay as well, also those whom the bundle once brought, with a
// warning. What is answered there, in a dry run too, is for the caller, who may not know that tenant's users. So it counts,
// and names what the bundle has or once brought: a change has the name that the archive's row gives, else the id; what stays
// does so without a reason; whoever gets the content of removed users is not named; and of the warnings of Porters, which may
// name anybody, there is only the number, but for those that are sums. An import of the bundle's archive by the tenant's own
// superusers says it all. That a piece is there, and whether it says the same, the counts do tell.
//
// Deploys and imports into one tenant wait for each other, up to 30 seconds; a deploy to several tenants waits for one after
// the other.
//
// All tenants are checked before anything is done: each must be the caller's own or list it in deployFrom. It is asked
// again in each one's transaction.
// Errors: errs.Forbidden naming the first that does not, also for one that is not there; errs.Invalid for no tenants or a
// bad option; errs.NotFound for the bundle; as Import. What goes wrong in the first tenant is the error, and nothing was
// deployed anywhere. Once one is deployed to, it stays so: what goes wrong in a later one is its Err, that one is as it
// was, and the next ones are tried.
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
		if err := s.lets(ctx, tenant, a.Tenant); err != nil {
			return err
		}
	}
	return nil
}

// lets asks whether a tenant lets another one deploy into it. Errors: errs.Forbidden, also when it is not there.
func (s *Service) lets(ctx context.Context, tenant, source string) error {
	if tenant == source {
		return nil
	}
	from, err := s.tenants.DeployFrom(ctx, tenant)
	if err != nil && errs.CodeOf(err) != errs.NotFound {
		return err
	}
	if !slices.Contains(from, source) {
		return errs.New(errs.Forbidden, "The tenant %q does not let %s deploy into it: see its deployFrom.", short(tenant), source)
	}
	return nil
}

func (s *Service) deploy(ctx context.Context, a actor.Actor, e *Export, bundle string, tenants []string, o How) ([]Deployed, error) {
	from := shipment{bundle: bundle}
	in, end, err := s.spool(func(w io.Writer) (err error) {
		from.dangling, err = e.write(ctx, w)
		return err
	})
	if err != nil {
		return nil, err
	}
	defer end()
	from.in = in
	if from.look, err = s.survey(in); err != nil {
		return nil, err
	}
	var results []Deployed
	done := false
	for i, tenant := range tenants {
		if slices.Contains(tenants[:i], tenant) {
			continue
		}
		report, err := s.deployTo(ctx, a, tenant, from, o)
		if err != nil && (!done || ctx.Err() != nil) {
			return nil, err
		}
		done = true
		results = append(results, Deployed{Tenant: tenant, Report: report, Err: err})
	}
	return results, nil
}

// shipment is what a deploy brings into each tenant.
type shipment struct {
	bundle   string // id, "" for none
	look     survey
	in       io.ReadSeeker
	dangling []Entry
}

func (s *Service) deployTo(ctx context.Context, a actor.Actor, tenant string, from shipment, o How) (report Report, err error) {
	err = s.transaction(ctx, tenant, o, func(ctx context.Context) error {
		l := s.landing(tenant, from.look, o)
		for _, e := range from.dangling {
			l.warn(fmt.Sprintf("The bundle's entry %s %s refers to nothing any more.", e.Type, short(e.EntityID)))
		}
		if err := s.store.Lock(ctx, tenant); err != nil {
			return err
		}
		if err := s.lets(ctx, tenant, a.Tenant); err != nil { // no more, perhaps
			return err
		}
		if l.into.Owner, err = s.owner(ctx, tenant, a.User, ""); err != nil {
			return err
		}
		l.self, l.abroad = a.User, tenant != a.Tenant
		before, err := l.recall(ctx, a.Tenant, from.bundle)
		if err != nil {
			return err
		}
		if err := l.replace(ctx, before.gone); err != nil {
			return err
		}
		if err := l.run(ctx, from.in); err != nil {
			return err
		}
		report = l.report
		if from.bundle == "" {
			return nil
		}
		return l.remember(ctx, a.Tenant, from.bundle, before.stays)
	})
	if o.DryRun {
		report.Archive = nil
	}
	return report, err
}
