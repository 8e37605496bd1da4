package bundles

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/text/rawjson"
)

// loadBrought sets brought. An entity counts only if it is still the same one: one that was deleted
// and created again with its id does not.
func (p *plan) loadBrought(ctx context.Context) error {
	p.brought = map[entity.Key]bool{}
	source := ""
	switch {
	case p.crossTenant:
		source = p.caller.Tenant
	case p.bundle == "":
		return nil // nothing is recorded of it
	}
	for kind, ids := range p.contents.ids {
		fingerprints, err := p.s.store.Fingerprints(ctx, p.tenant, source, kind, slices.Collect(maps.Keys(ids)))
		if err != nil {
			return err
		}
		same, _, err := p.partition(ctx, kind, fingerprints)
		if err != nil {
			return err
		}
		for _, id := range same {
			p.brought[entity.Key{Kind: kind, ID: id}] = true
		}
	}
	return nil
}

// loadGone returns what earlier deploys brought of this bundle only and this one does not ship, if
// it is still the same. A manifest has no bundle, and removes nothing.
func (p *plan) loadGone(ctx context.Context) (idsByKind, error) {
	if p.bundle == "" {
		return nil, nil
	}
	before, err := p.s.store.Deployed(ctx, p.tenant, p.caller.Tenant, p.bundle)
	if err != nil {
		return nil, err
	}
	dropped := map[entity.Kind]map[string]string{}
	for _, d := range before {
		if d.Shared || p.contents.ids[d.Kind][d.ID] {
			continue
		}
		if dropped[d.Kind] == nil {
			dropped[d.Kind] = map[string]string{}
		}
		dropped[d.Kind][d.ID] = d.Fingerprint
	}
	gone := idsByKind{}
	for _, kind := range p.s.kinds {
		same, others, err := p.partition(ctx, kind, dropped[kind])
		if err != nil {
			return nil, err
		}
		gone[kind] = same
		for _, id := range others {
			p.warnStays(
				entity.Key{Kind: kind, ID: id},
				fmt.Sprintf("%s %s stays: it is not the one that the bundle brought.", kind, id),
			)
		}
	}
	return gone, nil
}

// partition splits entities into those that still have their fingerprints and those that have
// others; one that does not exist is in neither. Both are ordered.
func (p *plan) partition(
	ctx context.Context, kind entity.Kind, fingerprints map[string]string,
) (same, others []string, err error) {
	ids := slices.Sorted(maps.Keys(fingerprints))
	now, err := p.s.fingerprints(ctx, p.tenant, kind, ids)
	for _, id := range ids {
		switch fingerprint, there := now[id]; {
		case there && fingerprint == fingerprints[id]:
			same = append(same, id)
		case there:
			others = append(others, id)
		}
	}
	return same, others, err
}

// saveDeployed records what the deploys of a bundle have brought: what this one made, and what was
// brought before and is shipped again. For a manifest it records what its entries made in another
// tenant, so that they can be overwritten later, and for an import or a restore nothing.
func (w *writer) saveDeployed(ctx context.Context) error {
	keep, source, shipped := w.s.store.SetDeployed, w.caller.Tenant, w.brought
	if w.bundle == "" {
		if keep, shipped = w.s.store.AddDeployed, nil; !w.crossTenant {
			return nil
		}
	}
	for kind, ids := range byKind(w.created) { // others brought ones that are gone
		if err := w.s.store.ForgetDeployed(ctx, w.tenant, source, kind, ids); err != nil {
			return err
		}
	}
	var all []Deployment
	if w.crossTenant {
		files, err := w.shippedFiles(ctx)
		if err != nil {
			return err
		}
		all = files
	}
	for kind, ids := range byKind(shipped, w.created) {
		if w.crossTenant && kind == entity.KindUser {
			continue
		}
		fingerprints, err := w.s.fingerprints(ctx, w.tenant, kind, ids)
		if err != nil {
			return err
		}
		for id, fingerprint := range fingerprints {
			all = append(all, Deployment{Key: entity.Key{Kind: kind, ID: id}, Fingerprint: fingerprint})
		}
	}
	slices.SortFunc(all, func(a, b Deployment) int { return compareKeys(a.Key, b.Key) })
	return keep(ctx, w.tenant, source, w.bundle, all)
}

// announceDeploy announces the deploy of a bundle in its own tenant.
func (w *writer) announceDeploy(ctx context.Context) error {
	if w.bundle == "" {
		return nil
	}
	key := entity.Key{Kind: Kind, ID: w.bundle}
	return w.s.feed.Announce(ctx, w.caller.Tenant, entity.ActionDeploy, key)
}

// byKind returns the ids of some entities, in no order.
func byKind(sets ...map[entity.Key]bool) map[entity.Kind][]string {
	all := map[entity.Kind][]string{}
	for _, keys := range sets {
		for k := range keys {
			all[k.Kind] = append(all[k.Kind], k.ID)
		}
	}
	return all
}

func compareKeys(a, b entity.Key) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ID, b.ID))
}

// fingerprints returns the fingerprints of the given entities that exist, by id. They distinguish
// an entity from a later one with its id, such as a user's name or a color's key.
func (s *Service) fingerprints(
	ctx context.Context, tenant string, kind entity.Kind, ids []string,
) (map[string]string, error) {
	fingerprints := map[string]string{}
	for row, err := range s.present(ctx, tenant, kind, ids) {
		if err != nil {
			return nil, changed(err)
		}
		fingerprints[row.ID] = fingerprint(row.JSON)
	}
	return fingerprints, nil
}

// fingerprint returns the fingerprint of a row: a digest of its createdAt or, if it has none, of
// the whole row. What a tenant made its own (isManaged is false) by importing a row of another
// one's archive is not what a deploy had brought.
func fingerprint(row json.RawMessage) string {
	digested := []byte(row)
	if made := column(row, "createdAt"); made != "" {
		digested = []byte(made)
		rawjson.Each(row, func(member string, value json.RawMessage) {
			if member == "isManaged" && string(value) == "false" {
				digested = append(digested, " own"...)
			}
		})
	}
	sum := sha256.Sum256(digested)
	return hex.EncodeToString(sum[:])
}

// present returns the rows of the given entities that exist, in their order.
func (s *Service) present(
	ctx context.Context, tenant string, kind entity.Kind, ids []string,
) iter.Seq2[entity.Row, error] {
	return rowsOf(ids, func(some []string) iter.Seq2[entity.Row, error] {
		return func(yield func(entity.Row, error) bool) {
			needs, err := s.transferers[kind].Needs(ctx, tenant, some)
			if err != nil {
				yield(entity.Row{}, err)
				return
			}
			there := slices.DeleteFunc(slices.Clone(some), func(id string) bool { _, ok := needs[id]; return !ok })
			for row, err := range s.transferers[kind].Export(ctx, tenant, there) {
				if !yield(row, err) || err != nil {
					return
				}
			}
		}
	})
}
