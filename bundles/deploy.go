package bundles

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"time"

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
// the rule Overwrite unless another one is given. In each tenant it first stores an archive of what
// it will replace, and warns of what that archive cannot restore, and of entries that refer to
// nothing any more. It needs a superuser.
//
// Each tenant has a record of the entities that deploys of the bundle made. Those that the bundle
// no longer ships are removed, whatever the rule, unless another bundle brought them, too, or the
// tenant has replaced them by its own: an entity that the tenant deleted and created again under
// the same id, name or key stays, with a warning, and so does one of its own that was overwritten.
// An entity restored from an archive counts as the same, but not an app that an archive of another
// tenant brought back, which is not managed. Entities are distinguished by the createdAt of their
// rows; if the rows of a kind have none, a changed entity counts as the tenant's own. With the rule
// Fail a bundle can be deployed only once, as its rows exist after that.
//
// Into another tenant than the caller's a deploy brings no rights: see
// entity.ImportOptions.CrossTenant. No users come, the tenant's are neither changed nor removed,
// and teams come without members. Of rows that are there, it overwrites those alone that deploys of
// the caller's tenant brought; others are skipped, and with the rule Fail a conflict. What is no
// longer shipped stays with all that it needs if the tenant's people added to it what would be
// removed with it, such as members or comments. What is new belongs to the user whom the tenant's
// deployFrom names for the source, else to its first superuser, but for what belongs to teams that
// come with it. The tenant's superusers are told in a notification what was left out and done.
//
// The report on such a tenant, in a dry run too, must not reveal its users to the caller. It counts
// each user of the bundle as skipped, whether or not the tenant has one of that name. It names only
// what the bundle has or once had: a change has the name in the archive's row, else the id. It does
// not say why something stays, nor who gets the content of removed teams. Of the warnings of
// Transferers, which may name anybody, it has only the number, except for sums. The counts do
// reveal whether rows other than users exist. The tenant's own superusers get everything by
// importing the bundle's archive.
//
// Deploys and imports into one tenant wait for each other, up to 30 seconds; a deploy to several
// tenants waits for one after the other.
//
// All tenants are checked first, and again in their transactions: each must be the caller's own or
// list it in deployFrom.
// Errors: errs.Forbidden naming the first that does not, or does not exist; errs.Invalid for no
// tenants or a bad option; errs.NotFound for the bundle; as Import. An error in the first tenant is
// returned, and nothing is deployed anywhere. After that, an error in a later tenant becomes its
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
	defer func(start time.Time) { s.observe(ctx, a.Tenant, "deploy", start, err) }(time.Now())
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
	if from.index, err = s.survey(in); err != nil {
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
		results = append(results, Deployed{Tenant: tenant, ImportResult: report, Err: err})
	}
	return results, nil
}

// shipment is the content of a deploy, for each tenant.
type shipment struct {
	bundle   string // id, "" for none
	index    survey
	in       io.ReadSeeker
	dangling []Entry
}

func (s *Service) deployTo(
	ctx context.Context, a actor.Actor, tenant string, from shipment, o ImportOptions,
) (report ImportResult, err error) {
	err = s.transaction(ctx, tenant, o, func(ctx context.Context) error {
		l := s.importer(tenant, from.index, o)
		for _, e := range from.dangling {
			l.warn(fmt.Sprintf("The bundle's entry %s %s refers to nothing any more.", e.Type, short(e.EntityID)))
		}
		if err := s.store.Lock(ctx, tenant); err != nil {
			return err
		}
		runAs, err := s.deployOwner(ctx, tenant, a.Tenant)
		if err != nil { // perhaps no longer allowed
			return err
		}
		l.self, l.crossTenant = a.User, tenant != a.Tenant
		before, err := l.loadDeployed(ctx, a.Tenant, from.bundle)
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
		return l.saveDeployed(ctx, a.Tenant, from.bundle, before.stays)
	})
	if o.DryRun {
		report.Archive = nil
	}
	return report, err
}

// fromTenant prepares an importer that comes from another tenant: who owns what is new, and what
// its deploys brought.
func (l *importer) fromTenant(ctx context.Context, source, runAs string, before deployedBefore) error {
	l.source, l.brought, l.written = source, before.stays, map[string]string{}
	l.into.CrossTenant, l.into.DeployedTeams, l.into.Notify = true, map[string]bool{}, func(sentence string) {
		l.tell(sentence)
	}
	for k := range l.brought {
		if k.Kind == entity.KindTeam {
			l.into.DeployedTeams[k.ID] = true
		}
	}
	known := map[string]bool{}
	var err error
	if runAs != "" {
		if known, err = l.s.principals.Known(ctx, l.tenant, []string{runAs}); err != nil {
			return err
		}
	}
	if known[runAs] {
		l.into.Owner = runAs
		return nil
	}
	l.into.Owner, err = l.s.firstSuperuser(ctx, l.tenant, "")
	if err == nil && l.into.Owner == "" { // not a user who happens to have the caller's name
		err = errs.New(
			errs.Forbidden,
			"The tenant %q has nobody to own what comes: it needs a superuser, or a user in its deployFrom.",
			l.tenant,
		)
	}
	return err
}

// leaveOwn removes the rows from the batch that would overwrite entities which deploys of the
// source did not make. The caller is told how many, the tenant's superusers which. With another
// rule than Overwrite there are none.
func (l *importer) leaveOwn(ctx context.Context, kind entity.Kind) error {
	if !l.crossTenant || l.into.Rule != entity.Overwrite {
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
	there, err := l.s.transferers[kind].Needs(ctx, l.tenant, ids)
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
