package bundles

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/text/fold"
	"github.com/tenantcontent/tenantcontent/internal/transfer"
)

// spareAdditions takes out of a plan what the people of another tenant added something of their own
// to, and what that needs: a deploy removes nothing that is theirs. The entities belong to the
// tenant from then on.
func (l *importer) spareAdditions(ctx context.Context, going plan) error {
	why := map[entity.Key]string{}
	for _, kind := range l.s.kinds {
		if err := l.additions(ctx, kind, going[kind], why); err != nil {
			return err
		}
	}
	if err := l.spareNeeded(ctx, going, why); err != nil {
		return err
	}
	for _, kind := range l.s.kinds {
		going[kind] = slices.DeleteFunc(slices.Clone(going[kind]), func(id string) bool {
			k := entity.Key{Kind: kind, ID: id}
			reason, stays := why[k]
			if !stays {
				l.tell(fmt.Sprintf("%s %s is removed: %s does not ship it any more.", kind, id, l.source))
				return false
			}
			l.warn(fmt.Sprintf("%s %s stays as it is.", kind, id))
			l.tell(fmt.Sprintf("%s %s stays, though %s does not ship it any more: %s.", kind, id, l.source, reason))
			return true
		})
	}
	return nil
}

// spareNeeded adds to why what entities of why need of a plan, at any depth.
func (l *importer) spareNeeded(ctx context.Context, going plan, why map[entity.Key]string) error {
	goes := map[entity.Key]bool{}
	for kind, ids := range going {
		for _, id := range ids {
			goes[entity.Key{Kind: kind, ID: id}] = true
		}
	}
	for next := slices.SortedFunc(maps.Keys(why), compareKeys); len(next) > 0; {
		stays := plan{}
		for _, k := range next {
			stays[k.Kind] = append(stays[k.Kind], k.ID)
		}
		next = nil
		for kind, ids := range stays {
			needs, err := l.s.transferers[kind].Needs(ctx, l.tenant, ids)
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
func (l *importer) additions(ctx context.Context, kind entity.Kind, ids []string, why map[entity.Key]string) error {
	if len(ids) == 0 {
		return nil
	}
	all, err := l.s.content.Additions(ctx, l.tenant, kind, ids)
	if err != nil {
		return err
	}
	secrets, err := l.ownSecrets(ctx, kind, ids)
	if err != nil {
		return err
	}
	owned := map[string]int{}
	if l.s.typeOf(kind).Owns {
		if owned, err = l.ownContent(ctx, ids); err != nil {
			return err
		}
	}
	for _, id := range ids {
		k, files := entity.Key{Kind: kind, ID: id}, []string(nil)
		if p, ok := l.s.transferers[kind].(entity.FileTransferer); ok {
			if files, err = l.ownFiles(ctx, p, k, nil); err != nil {
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
func (l *importer) ownSecrets(ctx context.Context, kind entity.Kind, ids []string) (map[string]int, error) {
	n := map[string]int{}
	for row, err := range l.s.present(ctx, l.tenant, kind, ids) {
		if err != nil {
			return nil, changed(err)
		}
		n[row.ID] = secretsOf(row)
	}
	return n, nil
}

// ownContent counts what principals own but for what deploys of the source brought.
func (l *importer) ownContent(ctx context.Context, principals []string) (map[string]int, error) {
	own, kinds, asked := map[string]int{}, map[entity.Kind]bool{}, transfer.Set(principals)
	for _, id := range principals {
		counts, err := l.s.content.Owned(ctx, l.tenant, id)
		if err != nil {
			return nil, err
		}
		for kind, n := range counts {
			own[id] += n
			kinds[kind] = true
		}
	}
	for kind := range kinds {
		if l.s.transferers[kind] == nil {
			continue
		}
		fingerprints, err := l.s.store.AllFingerprints(ctx, l.tenant, l.source, kind)
		if err != nil {
			return nil, err
		}
		for row, err := range l.s.present(ctx, l.tenant, kind, slices.Sorted(maps.Keys(fingerprints))) {
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

// shippedFile is the kind of the deployments that note the files of an entity which a deploy wrote.
// Their fingerprints are digests.
const shippedFile entity.Kind = "file of another tenant"

// fileID is the id of a file among deployments.
func fileID(k entity.Key, path string) string {
	sum := sha256.Sum256([]byte(string(k.Kind) + "\x00" + k.ID + "\x00" + path))
	return hex.EncodeToString(sum[:])
}

// ownFiles returns the paths of an entity's files that no deploy of the source wrote, or that were
// changed since. Paths of the archive are left out, and those that cannot be beside them.
func (l *importer) ownFiles(
	ctx context.Context, p entity.FileTransferer, k entity.Key, archived []string,
) ([]string, error) {
	all, err := p.Files(ctx, l.tenant, k.ID)
	if err != nil {
		return nil, err
	}
	ids := make([]string, len(all))
	for i, f := range all {
		ids[i] = fileID(k, f.Path)
	}
	fingerprints, err := l.s.store.Fingerprints(ctx, l.tenant, l.source, shippedFile, ids)
	if err != nil {
		return nil, err
	}
	var own []string
	apart := newPaths(archived)
	for i, f := range all {
		if apart.same[f.Path] {
			continue
		}
		wrote, ok := fingerprints[ids[i]]
		if ok {
			sum, err := l.digest(ctx, p, k.ID, f.Path)
			if err != nil {
				return nil, err
			}
			ok = hex.EncodeToString(sum) == wrote
		}
		switch {
		case ok:
		case apart.collides(f.Path):
			l.tell(fmt.Sprintf("%s %s: your file %s gave way to one that %s ships.", k.Kind, k.ID, f.Path, l.source))
		default:
			own = append(own, f.Path)
		}
	}
	return own, nil
}

// paths are the files of an archive's entity.
type paths struct {
	same, folded, folders map[string]bool
}

func newPaths(all []string) paths {
	p := paths{transfer.Set(all), map[string]bool{}, map[string]bool{}}
	for _, path := range all {
		path = fold.Text(path)
		p.folded[path] = true
		eachFolder(path, func(folder string) { p.folders[folder] = true })
	}
	return p
}

// collides reports whether a file cannot be beside the archive's: they differ in case alone, or one
// is a folder of the other.
func (p paths) collides(path string) bool {
	path = fold.Text(path)
	within := false
	eachFolder(path, func(folder string) { within = within || p.folded[folder] })
	return within || p.folded[path] || p.folders[path]
}

// eachFolder calls f with each folder that a path is in.
func eachFolder(path string, f func(folder string)) {
	for i, c := range path {
		if c == '/' {
			f(path[:i])
		}
	}
}

// shippedFiles returns the deployments of the archive's files that this deploy or earlier ones of
// the source wrote.
func (l *importer) shippedFiles(ctx context.Context) (all []Deployment, err error) {
	for kind, ids := range l.index.ids {
		if _, ok := l.s.transferers[kind].(entity.FileTransferer); !ok {
			continue
		}
		var asked []string
		for id := range ids {
			k := entity.Key{Kind: kind, ID: id}
			for _, path := range l.index.files[id] {
				if l.brought[k] || l.created[k] {
					asked = append(asked, fileID(k, path))
				}
			}
		}
		fingerprints, err := l.s.store.Fingerprints(ctx, l.tenant, l.source, shippedFile, asked)
		if err != nil {
			return nil, err
		}
		for _, id := range asked {
			if sum, ok := l.written[id]; ok {
				fingerprints[id] = sum
			}
			if fingerprints[id] != "" {
				all = append(all, Deployment{Key: entity.Key{Kind: shippedFile, ID: id}, Fingerprint: fingerprints[id]})
			}
		}
	}
	return all, nil
}
