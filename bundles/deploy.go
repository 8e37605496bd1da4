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
// bundle brought it too, or it is not the entity that came: a tenant that deletes it and makes its own under the same id, name
// or key keeps that, with a warning, and so does one whose own entity was overwritten. An entity that comes back from an
// archive is the one that it was. Which one it is, a row's createdAt says; of a kind whose rows have none, one that was
// changed counts as the tenant's own. With the rule Fail a bundle can be deployed once: then its rows are there.
//
// Into another tenant than the caller's a deploy brings no rights: see entity.Landing.CrossTenant. Its users are neither
// changed nor removed, and teams come without members. Of rows that are there, it overwrites those alone that deploys of the
// caller's tenant brought; others are skipped, and with the rule Fail a conflict. What is no longer shipped stays with all that
// it needs if the tenant's people added to it what would be removed with it, such as members or comments. What is new belongs to the user whom the
// tenant's deployFrom names for the source, else to its first superuser, but for what belongs to users and teams that come with
// it. The tenant's superusers are told in a notification what was left out and done.
//
// What is answered there, in a dry run too, is for the caller, who may not know that tenant's users. So it counts, users as
// created when the bundle first brings them and then as skipped, whether they were there or not, and names what the bundle has
// or once brought: a change has the name that the archive's row has, else the id; what stays does so without a reason; whoever
// gets the content of removed teams is not named; and of the warnings of Porters, which may name anybody, there is only the
// number, but for those that are sums. An import of the bundle's archive by the tenant's own superusers brings all. The counts
// do tell that a row other than a user is there.
//
// Deploys and imports into one tenant wait for each other, up to 30 seconds; a deploy to several tenants waits for one after
// the other.
//
// All tenants are checked before anything is done: each must be the caller's own or list it in deployFrom. It is asked
// again in each one's transaction.
// Errors: errs.Forbidden naming the first that does not, also for one that does not exist; errs.Invalid for no tenants or a
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
	if tenants, err = s.mayDeploy(ctx, a, tenants, &o); err != nil {
		return nil, err
	}
	e, err := s.Export(ctx, b.ID)
	if err != nil {
		return nil, err
	}
	return s.deploy(ctx, a, e, b.ID, tenants, o)
}

// DeployManifest does as Deploy for entries that no bundle has. Another tenant remembers what they brought, so that it can be
// overwritten later, but not that it came together: nothing is ever removed.
func (s *Service) DeployManifest(ctx context.Context, m Manifest, tenants []string, o How) ([]Deployed, error) {
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

// mayDeploy checks the options and asks each tenant once. It returns the tenants without those named again.
func (s *Service) mayDeploy(ctx context.Context, a actor.Actor, tenants []string, o *How) ([]string, error) {
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
		if _, err := s.lets(ctx, tenant, a.Tenant); err != nil {
			return nil, err
		}
	}
	return once, nil
}

// lets asks whether a tenant lets another one deploy into it, and for the user who gets what comes, "" for none. It returns
// errs.Forbidden if it does not, also when it does not exist.
func (s *Service) lets(ctx context.Context, tenant, source string) (runAs string, err error) {
	if tenant == source {
		return "", nil
	}
	allowed, runAs, err := s.tenants.DeploysFrom(ctx, tenant, source)
	if err != nil && errs.CodeOf(err) != errs.NotFound {
		return "", err
	}
	if !allowed {
		return "", errs.New(errs.Forbidden, "The tenant %q does not let %s deploy into it: see its deployFrom.", short(tenant), source)
	}
	return runAs, nil
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
	for _, tenant := range tenants {
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
		runAs, err := s.lets(ctx, tenant, a.Tenant)
		if err != nil { // no more, perhaps
			return err
		}
		l.self, l.crossTenant = a.User, tenant != a.Tenant
		before, err := l.recall(ctx, a.Tenant, from.bundle)
		if err != nil {
			return err
		}
		if l.crossTenant {
			err = l.fromTenant(ctx, a.Tenant, runAs, before)
		} else {
			l.into.Owner, err = s.owner(ctx, tenant, a.User, "")
		}
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
		if l.crossTenant {
			if err := l.notify(ctx, a.Tenant); err != nil {
				return err
			}
		}
		return l.remember(ctx, a.Tenant, from.bundle, before.stays)
	})
	if o.DryRun {
		report.Archive = nil
	}
	return report, err
}

// fromTenant prepares a landing that comes from another tenant: who owns what is new, and what its deploys brought.
func (l *landing) fromTenant(ctx context.Context, source, runAs string, before memory) error {
	l.source, l.brought, l.written = source, before.stays, map[string]string{}
	l.into.CrossTenant, l.into.Brought = true, map[string]bool{}
	for k := range l.brought {
		if k.Kind == "team" {
			l.into.Brought[k.ID] = true
		}
	}
	known := map[string]bool{}
	var err error
	if runAs != "" {
		if known, err = l.s.people.Known(ctx, l.tenant, []string{runAs}); err != nil {
			return err
		}
	}
	if known[runAs] {
		l.into.Owner = runAs
		return nil
	}
	l.into.Owner, err = l.s.firstSuperuser(ctx, l.tenant, l.self)
	return err
}

// leaveOwn takes those of the gathered rows away that would overwrite what the source's deploys did not bring: the tenant's own
// rows, and other tenants'. The caller learns how many; the tenant's superusers which. Users stay anyway, and so does all with
// another rule.
func (l *landing) leaveOwn(ctx context.Context, kind entity.Kind) error {
	if !l.crossTenant || l.into.Rule != entity.Overwrite || kind == "user" {
		return nil
	}
	var ids []string
	for _, r := range l.rows {
		if !l.brought[r.Key] {
			ids = append(ids, r.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	there, err := l.s.porters[kind].Needs(ctx, l.tenant, ids)
	if err != nil {
		return err
	}
	names := l.shippedNames(kind, ids)
	l.rows = slices.DeleteFunc(l.rows, func(r entity.Row) bool {
		if _, is := there[r.ID]; !is || l.brought[r.Key] {
			return false
		}
		l.skipped[r.Key] = true
		l.count(Change{string(entity.Skipped), r.Key, names[r.ID]})
		l.tell(fmt.Sprintf("%s %s is your own and stays as it is: no deploy from %s brought it.", kind, r.ID, l.source))
		return true
	})
	return nil
}
