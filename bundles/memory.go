package bundles

import (
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

// deployedBefore has the entities of a tenant that earlier deploys brought and that still exist.
type deployedBefore struct {
	stays map[entity.Key]bool // of any bundle (in another tenant: of the source's), and shipped again
	gone  plan                // of this bundle alone, and no longer shipped
}

// loadDeployed returns what earlier deploys brought. An entity counts only if it is still the same
// one: one that was deleted and created again with its id does not. bundle is "" for the entries of
// a manifest, which remove nothing.
func (l *importer) loadDeployed(ctx context.Context, source, bundle string) (deployedBefore, error) {
	m := deployedBefore{stays: map[entity.Key]bool{}, gone: plan{}}
	if bundle != "" {
		if err := l.loadGone(ctx, source, bundle, m.gone); err != nil {
			return m, err
		}
	}
	if !l.crossTenant {
		source = "" // a tenant's own bundles share what they bring with those of others
	}
	for kind, ids := range l.index.ids {
		if !l.crossTenant && bundle == "" {
			break
		}
		fingerprints, err := l.s.store.Fingerprints(ctx, l.tenant, source, kind, slices.Collect(maps.Keys(ids)))
		if err != nil {
			return m, err
		}
		same, _, err := l.partition(ctx, kind, fingerprints)
		if err != nil {
			return m, err
		}
		for _, id := range same {
			m.stays[entity.Key{Kind: kind, ID: id}] = true
		}
	}
	return m, nil
}

// loadGone adds to a plan what earlier deploys of a bundle brought and this one does not ship.
func (l *importer) loadGone(ctx context.Context, source, bundle string, gone plan) error {
	before, err := l.s.store.Deployed(ctx, l.tenant, source, bundle)
	if err != nil {
		return err
	}
	dropped := map[entity.Kind]map[string]string{}
	for _, d := range before {
		if d.Shared || l.index.ids[d.Kind][d.ID] {
			continue
		}
		if dropped[d.Kind] == nil {
			dropped[d.Kind] = map[string]string{}
		}
		dropped[d.Kind][d.ID] = d.Fingerprint
	}
	for _, kind := range l.s.kinds {
		same, others, err := l.partition(ctx, kind, dropped[kind])
		if err != nil {
			return err
		}
		gone[kind] = same
		for _, id := range others {
			if l.crossTenant {
				l.warnStays(kind, id)
			} else {
				l.warn(fmt.Sprintf("%s %s stays: it is not the one that the bundle brought.", kind, id))
			}
		}
	}
	return nil
}

// partition splits entities into those that still have their fingerprints and those that have
// others; one that does not exist is in neither. Both are ordered.
func (l *importer) partition(
	ctx context.Context, kind entity.Kind, fingerprints map[string]string,
) (same, others []string, err error) {
	ids := slices.Sorted(maps.Keys(fingerprints))
	now, err := l.s.fingerprints(ctx, l.tenant, kind, ids)
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
// tenant, so that they can be overwritten later.
func (l *importer) saveDeployed(ctx context.Context, source, bundle string, stays map[entity.Key]bool) error {
	keep := l.s.store.SetDeployed
	if bundle == "" {
		if stays, keep = nil, l.s.store.AddDeployed; !l.crossTenant {
			return nil
		}
	}
	made := plan{}
	for k := range l.created {
		made[k.Kind] = append(made[k.Kind], k.ID)
	}
	for kind, ids := range made { // others brought ones that are gone
		if err := l.s.store.ForgetDeployed(ctx, l.tenant, source, kind, ids); err != nil {
			return err
		}
	}
	brought := plan{}
	for _, keys := range []map[entity.Key]bool{stays, l.created} {
		for k := range keys {
			brought[k.Kind] = append(brought[k.Kind], k.ID)
		}
	}
	var all []Deployment
	if l.crossTenant {
		delete(brought, entity.KindUser)
		files, err := l.shippedFiles(ctx)
		if err != nil {
			return err
		}
		all = append(all, files...)
	}
	for kind, ids := range brought {
		fingerprints, err := l.s.fingerprints(ctx, l.tenant, kind, ids)
		if err != nil {
			return err
		}
		for id, fingerprint := range fingerprints {
			all = append(all, Deployment{Key: entity.Key{Kind: kind, ID: id}, Fingerprint: fingerprint})
		}
	}
	slices.SortFunc(all, func(a, b Deployment) int { return compareKeys(a.Key, b.Key) })
	return keep(ctx, l.tenant, source, bundle, all)
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
