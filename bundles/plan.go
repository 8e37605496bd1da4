package bundles

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/transfer"
)

// plan is what an import, restore or deploy does in one tenant.
//
// Each of them has three stages: survey reads the archive to its end and lists its contents;
// planImport, planRestore or planDeploy decides what happens to what the tenant has; write does
// that. The first two change nothing, but planning locks what it decides on. The Transferers decide
// on each row, so that write decides on the rows batch by batch, and memory does not grow with the
// archive.
type plan struct {
	s        *Service
	tenant   string
	caller   actor.Actor // their tenant is the source of a deploy
	contents contents
	into     entity.ImportOptions
	dry      bool
	*report

	backup   string    // "restore" or "deploy": what the backup comes before
	replaced idsByKind // what the backup has
	removed  idsByKind // the part of replaced that is removed

	bundle string // id of the bundle that is deployed, "" for none
	// rows of the archive that earlier deploys brought, and that still exist: of any bundle or, in
	// another tenant, of the source's
	brought map[entity.Key]bool
}

// idsByKind is some entities: by kind, ordered by id.
type idsByKind map[entity.Kind][]string

func (p idsByKind) counts() map[entity.Kind]int {
	counts := map[entity.Kind]int{}
	for kind, ids := range p {
		counts[kind] = len(ids)
	}
	return counts
}

// empty reports whether the contents have no entities, or none of some kinds.
func (p idsByKind) empty() bool {
	for _, ids := range p {
		if len(ids) > 0 {
			return false
		}
	}
	return true
}

// has reports whether an entity is among them.
func (p idsByKind) has(k entity.Key) bool {
	_, found := slices.BinarySearch(p[k.Kind], k.ID)
	return found
}

func (s *Service) plan(tenant string, caller actor.Actor, c contents, o ImportOptions) *plan {
	p := &plan{
		s: s, tenant: tenant, caller: caller, contents: c, dry: o.DryRun,
		report: newReport(c.header.Counts, o.Changes, tenant != caller.Tenant),
	}
	p.into = entity.ImportOptions{Rule: o.Rule, Warnings: &p.sums, OwnArchive: c.header.Tenant == tenant}
	return p
}

// planImport plans an import into the caller's tenant, which it locks.
func (s *Service) planImport(ctx context.Context, a actor.Actor, c contents, o ImportOptions) (*plan, error) {
	if err := s.store.Lock(ctx, a.Tenant); err != nil {
		return nil, err
	}
	p := s.plan(a.Tenant, a, c, o)
	var err error
	p.into.Owner, err = s.owner(ctx, a.Tenant, a.User, o.Owner)
	return p, err
}

// planRestore plans an import that also removes all rows of the archive's kinds that are not in the
// archive, after a backup of all rows of these kinds. They are removed before the import, so that
// names and slugs are free.
func (s *Service) planRestore(ctx context.Context, a actor.Actor, c contents, o ImportOptions) (*plan, error) {
	p, err := s.planImport(ctx, a, c, o)
	if err != nil {
		return nil, err
	}
	others := idsByKind{}
	p.backup, p.replaced = "restore", idsByKind{}
	for kind, incoming := range c.ids {
		ids, err := s.transferers[kind].IDs(ctx, p.tenant)
		if err != nil {
			return nil, err
		}
		// Kinds without entities count, too: a restore of the backup empties them again.
		p.replaced[kind] = slices.Sorted(slices.Values(ids))
		for _, id := range p.replaced[kind] {
			if !incoming[id] {
				others[kind] = append(others[kind], id)
			}
		}
	}
	p.removed, err = p.hold(ctx, others)
	return p, err
}

// planDeploy plans a deploy into a tenant, which it locks. It removes what earlier deploys of the
// bundle brought and this one does not have, after a backup of that and of what is overwritten. It
// skips what no longer exists, or belongs to the system now.
func (s *Service) planDeploy(
	ctx context.Context, a actor.Actor, tenant string, from shipment, o ImportOptions,
) (*plan, error) {
	if err := s.store.Lock(ctx, tenant); err != nil {
		return nil, err
	}
	runAs, err := s.deployOwner(ctx, tenant, a.Tenant)
	if err != nil { // perhaps no longer allowed
		return nil, err
	}
	p := s.plan(tenant, a, from.contents, o)
	p.backup, p.bundle = "deploy", from.bundle
	for _, e := range from.dangling {
		p.warn(fmt.Sprintf("The bundle's entry %s %s refers to nothing any more.", e.Type, short(e.EntityID)))
	}
	gone, err := p.loadGone(ctx)
	if err != nil {
		return nil, err
	}
	if err := p.loadBrought(ctx); err != nil {
		return nil, err
	}
	if p.crossTenant {
		p.limitRights()
		p.into.Owner, err = s.ownerThere(ctx, tenant, runAs)
	} else {
		p.into.Owner, err = s.owner(ctx, tenant, a.User, "")
	}
	if err != nil {
		return nil, err
	}
	return p, p.replace(ctx, gone)
}

// limitRights sets the options by which a deploy from another tenant brings no rights.
func (p *plan) limitRights() {
	p.into.CrossTenant, p.into.DeployedTeams = true, map[string]bool{}
	p.into.Notify = func(sentence string) { p.tell(sentence) }
	for k := range p.brought {
		if k.Kind == entity.KindTeam {
			p.into.DeployedTeams[k.ID] = true
		}
	}
}

// ownerThere returns the owner of what a deploy from another tenant makes: the user whom the tenant
// names for it, else its first superuser.
func (s *Service) ownerThere(ctx context.Context, tenant, runAs string) (string, error) {
	if runAs != "" {
		known, err := s.principals.Known(ctx, tenant, []string{runAs})
		if err != nil || known[runAs] {
			return runAs, err
		}
	}
	owner, err := s.firstSuperuser(ctx, tenant, "")
	if err == nil && owner == "" { // not a user who happens to have the caller's name
		err = errs.New(
			errs.Forbidden,
			"The tenant %q has nobody to own what comes: it needs a superuser, or a user in its deployFrom.",
			tenant,
		)
	}
	return owner, err
}

// replace plans what a deploy overwrites and, of some entities that the bundle no longer ships,
// what it removes.
func (p *plan) replace(ctx context.Context, gone idsByKind) error {
	overwritten, going := idsByKind{}, idsByKind{}
	for _, kind := range p.s.kinds {
		over := p.contents.ids[kind]
		if p.into.Rule != entity.Overwrite {
			over = nil
		}
		if len(gone[kind])+len(over) == 0 {
			continue
		}
		ids, err := p.s.transferers[kind].IDs(ctx, p.tenant)
		if err != nil {
			return err
		}
		leaves := transfer.Set(gone[kind])
		spared, err := p.leftAlone(ctx, kind, over)
		if err != nil {
			return err
		}
		for _, id := range slices.Sorted(slices.Values(ids)) {
			switch {
			case leaves[id]:
				going[kind] = append(going[kind], id)
			case over[id] && !spared[id]:
				overwritten[kind] = append(overwritten[kind], id)
			}
		}
	}
	going, err := p.hold(ctx, going)
	if err == nil && p.crossTenant {
		err = p.spareAdditions(ctx, going)
	}
	p.removed, p.replaced = going, overwritten
	for kind, ids := range going {
		if len(ids) > 0 { // else a restore of the backup would empty the kind
			p.replaced[kind] = slices.Sorted(slices.Values(append(overwritten[kind], ids...)))
		}
	}
	return err
}

// leftAlone returns which rows of the archive are not overwritten, whatever the rule, if they
// exist.
func (p *plan) leftAlone(ctx context.Context, kind entity.Kind, over map[string]bool) (map[string]bool, error) {
	switch {
	case len(over) == 0:
		return nil, nil
	case p.crossTenant && kind == entity.KindUser:
		return over, nil
	case p.crossTenant:
		others := maps.Clone(over)
		maps.DeleteFunc(others, func(id string, _ bool) bool { return p.brought[entity.Key{Kind: kind, ID: id}] })
		return others, nil
	}
	protected := p.s.typeOf(kind).Protected
	if protected == nil {
		return nil, nil
	}
	ids, err := protected(ctx, p.tenant, slices.Collect(maps.Keys(over)))
	return transfer.Set(ids), err
}

// hold returns some entities without the users and teams, and others that own content, that stay,
// and locks the others so that they get no more content. It comes before anything is removed: a
// transaction that is creating content for them may need what is removed, and would deadlock with
// this one.
func (p *plan) hold(ctx context.Context, all idsByKind) (idsByKind, error) {
	all = maps.Clone(all)
	var going []string
	for _, kind := range p.s.kinds {
		if !p.s.typeOf(kind).Owns {
			continue
		}
		ids, err := p.spare(ctx, kind, all[kind])
		if err != nil {
			return nil, err
		}
		all[kind], going = ids, append(going, ids...)
	}
	if len(going) == 0 {
		return all, nil
	}
	return all, p.s.principals.LockPrincipals(ctx, p.tenant, append(going, p.into.Owner))
}

// spare returns the users or teams to remove without those that stay, and warns of these: the owner
// of the import, and the users whom spareUsers names.
func (p *plan) spare(ctx context.Context, kind entity.Kind, ids []string) ([]string, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	why := map[string]string{p.into.Owner: "it gets what has no other owner"}
	if kind == entity.KindUser {
		if err := p.spareUsers(ctx, ids, why); err != nil {
			return nil, err
		}
	}
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool {
		if why[id] != "" {
			p.warnStays(entity.Key{Kind: kind, ID: id}, fmt.Sprintf("The %s %s stays: %s.", kind, id, why[id]))
		}
		return why[id] != ""
	}), nil
}

// spareUsers adds to why the users who are not removed, with the reason: the caller, and the last
// enabled superuser. In another tenant no users are removed.
func (p *plan) spareUsers(ctx context.Context, ids []string, why map[string]string) error {
	if p.crossTenant {
		for _, name := range ids {
			why[name] = "it is a user there"
		}
		return nil
	}
	self := p.caller.User
	why[self] = "it is yours"
	supers, err := p.s.principals.Superusers(ctx, p.tenant)
	if err != nil {
		return err
	}
	goes := transfer.Set(ids)
	left := slices.ContainsFunc(supers, func(name string) bool { return name == self || !goes[name] })
	if !left && len(supers) > 0 {
		last := max(0, slices.Index(supers, p.into.Owner))
		why[supers[last]] = "it is the last superuser"
	}
	return nil
}
