package bundles

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/transfer"
)

// spareAdditions takes out of going what the people of another tenant added something of their own
// to, and what that needs: a deploy removes nothing that is theirs. The entities belong to the
// tenant from then on.
func (p *plan) spareAdditions(ctx context.Context, going idsByKind) error {
	why := map[entity.Key]string{}
	for _, kind := range p.s.kinds {
		if err := p.additions(ctx, kind, going[kind], why); err != nil {
			return err
		}
	}
	if err := p.spareNeeded(ctx, going, why); err != nil {
		return err
	}
	for _, kind := range p.s.kinds {
		going[kind] = slices.DeleteFunc(slices.Clone(going[kind]), func(id string) bool {
			k := entity.Key{Kind: kind, ID: id}
			reason, stays := why[k]
			if !stays {
				p.tell(fmt.Sprintf("%s %s is removed: %s does not ship it any more.", kind, id, p.caller.Tenant))
				return false
			}
			p.warn(fmt.Sprintf("%s %s stays as it is.", kind, id))
			p.tell(fmt.Sprintf(
				"%s %s stays, though %s does not ship it any more: %s.", kind, id, p.caller.Tenant, reason,
			))
			return true
		})
	}
	return nil
}

// spareNeeded adds to why what entities of why need of going, at any depth.
func (p *plan) spareNeeded(ctx context.Context, going idsByKind, why map[entity.Key]string) error {
	goes := map[entity.Key]bool{}
	for kind, ids := range going {
		for _, id := range ids {
			goes[entity.Key{Kind: kind, ID: id}] = true
		}
	}
	for next := slices.SortedFunc(maps.Keys(why), compareKeys); len(next) > 0; {
		stays := idsByKind{}
		for _, k := range next {
			stays[k.Kind] = append(stays[k.Kind], k.ID)
		}
		next = nil
		for kind, ids := range stays {
			needs, err := p.s.transferers[kind].Needs(ctx, p.tenant, ids)
			if err != nil {
				return err
			}
			for _, keys := range needs {
				for _, k := range keys {
					if _, known := why[k]; goes[k] && !known {
						why[k] = "what stays needs it"
						next = append(next, k)
					}
				}
			}
		}
	}
	return nil
}

// additions notes in why which of some entities have something that the tenant's people added, and
// what.
func (p *plan) additions(ctx context.Context, kind entity.Kind, ids []string, why map[entity.Key]string) error {
	if len(ids) == 0 {
		return nil
	}
	all, err := p.s.content.Additions(ctx, p.tenant, kind, ids)
	if err != nil {
		return err
	}
	secrets, err := p.ownSecrets(ctx, kind, ids)
	if err != nil {
		return err
	}
	owned := map[string]int{}
	if p.s.typeOf(kind).Owns {
		if owned, err = p.ownContent(ctx, ids); err != nil {
			return err
		}
	}
	for _, id := range ids {
		k, files := entity.Key{Kind: kind, ID: id}, []string(nil)
		if t, ok := p.s.transferers[kind].(entity.FileTransferer); ok {
			if files, err = p.ownFiles(ctx, t, k, nil); err != nil {
				return err
			}
		}
		counts := entity.Counts(slices.Concat(all[id], []entity.Dependent{
			{Count: entity.Count{N: owned[id], Of: "owned row"}, Rank: 2},
			{Count: entity.Count{N: len(files), Of: "file"}}, {Count: entity.Count{N: secrets[id], Of: "secret"}},
		}))
		if len(counts) > 0 {
			why[k] = listed(counts)
		}
	}
	return nil
}

// ownSecrets counts the secrets of entities that a deploy brought. None came with them, and no
// archive holds them.
func (p *plan) ownSecrets(ctx context.Context, kind entity.Kind, ids []string) (map[string]int, error) {
	n := map[string]int{}
	for row, err := range p.s.present(ctx, p.tenant, kind, ids) {
		if err != nil {
			return nil, changed(err)
		}
		n[row.ID] = secretsOf(row)
	}
	return n, nil
}

// ownContent counts what principals own but for what deploys of the source brought.
func (p *plan) ownContent(ctx context.Context, principals []string) (map[string]int, error) {
	own, kinds, asked := map[string]int{}, map[entity.Kind]bool{}, transfer.Set(principals)
	for _, id := range principals {
		counts, err := p.s.content.Owned(ctx, p.tenant, id)
		if err != nil {
			return nil, err
		}
		for kind, n := range counts {
			own[id] += n
			kinds[kind] = true
		}
	}
	for kind := range kinds {
		if p.s.transferers[kind] == nil {
			continue
		}
		fingerprints, err := p.s.store.AllFingerprints(ctx, p.tenant, p.caller.Tenant, kind)
		if err != nil {
			return nil, err
		}
		for row, err := range p.s.present(ctx, p.tenant, kind, slices.Sorted(maps.Keys(fingerprints))) {
			if err != nil {
				return nil, changed(err)
			}
			if owner := column(row.JSON, "ownerId"); asked[owner] && fingerprint(row.JSON) == fingerprints[row.ID] {
				own[owner]--
			}
		}
	}
	return own, nil
}
