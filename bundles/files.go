package bundles

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/text/fold"
	"github.com/tenantcontent/tenantcontent/internal/transfer"
	"github.com/tenantcontent/tenantcontent/internal/transfer/archive"
)

// sameEntity is an entity with files that is unchanged so far.
type sameEntity struct {
	change int // its index in ImportResult.Changes
	files  map[string]entity.File
}

// leave records an identical row, whose files may still differ.
func (w *writer) leave(ctx context.Context, c Change) error {
	if p, ok := w.s.transferers[c.Kind].(entity.FileTransferer); ok {
		if err := w.comparePaths(ctx, p, &c); err != nil {
			return err
		}
		if c.Action != unchanged {
			if err := w.differs(c.Key); err != nil {
				return err
			}
			c.Action = string(entity.Skipped)
		}
	}
	w.skipped[c.Key] = true
	w.count(c)
	return nil
}

// differs returns the error for an entity that exists with different files, nil if it is skipped.
func (w *writer) differs(k entity.Key) error {
	if w.into.Rule == entity.Fail {
		return errs.New(errs.Conflict, "%s %s exists already, with other files.", k.Kind, k.ID)
	}
	return nil
}

// comparePaths compares the paths of an unchanged entity's files with those in the archive, before
// files are removed.
func (w *writer) comparePaths(ctx context.Context, p entity.FileTransferer, c *Change) error {
	if c.Action != unchanged {
		return nil
	}
	files, err := p.Files(ctx, w.tenant, c.ID)
	if err != nil {
		return err
	}
	has := sameEntity{change: len(w.result.Changes), files: map[string]entity.File{}}
	for _, f := range files {
		has.files[f.Path] = f
	}
	differ := func(path string) bool { _, ok := has.files[path]; return !ok }
	if len(files) != len(w.contents.files[c.ID]) || slices.ContainsFunc(w.contents.files[c.ID], differ) {
		c.Action = string(entity.Updated)
		return nil
	}
	w.same[c.Key] = has
	return nil
}

// clearFiles removes the files of an overwritten entity that are not in the archive, before new
// ones are written: a path may differ from another one only in case, or be a folder now.
func (w *writer) clearFiles(ctx context.Context, p entity.FileTransferer, c *Change) error {
	if err := w.comparePaths(ctx, p, c); err != nil {
		return err
	}
	keep := w.contents.files[c.ID]
	if w.crossTenant {
		own, err := w.ownFiles(ctx, p, c.Key, keep)
		if err != nil {
			return err
		}
		keep = slices.Concat(keep, own)
	}
	return p.KeepFiles(ctx, w.tenant, c.ID, keep)
}

// importFile imports a file, unless its entity is left out.
func (w *writer) importFile(ctx context.Context, m archive.Member, r io.Reader) error {
	k, f := entity.Key{Kind: w.contents.fileKind(m.ID), ID: m.ID}, *m.File
	p := w.s.transferers[k.Kind].(entity.FileTransferer)
	_, identical := w.same[k]
	switch {
	case identical && w.leavesIdentical():
		return w.compareFile(ctx, p, k, f, r)
	case w.skipped[k]:
		return nil
	case !w.crossTenant:
		return w.putFile(ctx, p, k, f, r)
	}
	sum := sha256.New()
	err := w.putFile(ctx, p, k, f, io.TeeReader(r, sum))
	w.digests[fileID(k, f.Path)] = hex.EncodeToString(sum.Sum(nil))
	return err
}

// compareFile compares a file of an identical entity with the stored one.
func (w *writer) compareFile(
	ctx context.Context, p entity.FileTransferer, k entity.Key, f entity.File, r io.Reader,
) error {
	sum := sha256.New()
	if _, err := io.Copy(sum, r); err != nil {
		return err
	}
	before, err := w.storedDigest(ctx, p, k, f)
	if err != nil || bytes.Equal(before, sum.Sum(nil)) {
		return err
	}
	w.amend(w.same[k].change, entity.Skipped)
	delete(w.same, k)
	return w.differs(k)
}

// putFile writes a file, and records whether it changes the stored one.
func (w *writer) putFile(
	ctx context.Context, p entity.FileTransferer, k entity.Key, f entity.File, r io.Reader,
) error {
	has, same := w.same[k]
	if !same {
		if err := w.noteUndeployed(ctx, p, k, f.Path); err != nil {
			return err
		}
		return p.PutFile(ctx, w.tenant, k.ID, f, r)
	}
	before, err := w.storedDigest(ctx, p, k, f)
	if err != nil {
		return err
	}
	sum := sha256.New()
	if err := p.PutFile(ctx, w.tenant, k.ID, f, io.TeeReader(r, sum)); err != nil {
		return err
	}
	if bytes.Equal(before, sum.Sum(nil)) {
		return nil
	}
	w.amend(has.change, entity.Updated)
	delete(w.same, k)
	return w.noteUndeployed(ctx, p, k, f.Path)
}

// storedDigest returns the digest of the stored file of an unchanged entity that a file of the
// archive replaces, nil if their sizes or types differ.
func (w *writer) storedDigest(
	ctx context.Context, p entity.FileTransferer, k entity.Key, f entity.File,
) ([]byte, error) {
	if old := w.same[k].files[f.Path]; old.Size != f.Size || old.ContentType != f.ContentType {
		return nil, nil
	}
	return w.digest(ctx, p, k.ID, f.Path)
}

func (p *plan) digest(ctx context.Context, t entity.FileTransferer, id, path string) ([]byte, error) {
	r, err := t.OpenFile(ctx, p.tenant, id, path)
	if err != nil {
		return nil, err
	}
	sum := sha256.New()
	_, err = io.Copy(sum, r)
	return sum.Sum(nil), errors.Join(err, r.Close())
}

// noteUndeployed adds a warning, for the caller and in a deploy also for the tenant's superusers,
// if an entity does not run a file that was written until somebody deploys it. There is one for
// each entity.
func (w *writer) noteUndeployed(ctx context.Context, p entity.FileTransferer, k entity.Key, path string) error {
	d, ok := p.(entity.Deployable)
	if !ok || w.undeployed[k] {
		return nil
	}
	sentence, err := d.Undeployed(ctx, w.tenant, k.ID, path)
	if sentence == "" || err != nil {
		return err
	}
	w.undeployed[k] = true
	w.warn(sentence)
	if w.crossTenant {
		w.tell(sentence)
	}
	return nil
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
func (p *plan) ownFiles(
	ctx context.Context, t entity.FileTransferer, k entity.Key, archived []string,
) ([]string, error) {
	all, err := t.Files(ctx, p.tenant, k.ID)
	if err != nil {
		return nil, err
	}
	ids := make([]string, len(all))
	for i, f := range all {
		ids[i] = fileID(k, f.Path)
	}
	source := p.caller.Tenant
	fingerprints, err := p.s.store.Fingerprints(ctx, p.tenant, source, shippedFile, ids)
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
			sum, err := p.digest(ctx, t, k.ID, f.Path)
			if err != nil {
				return nil, err
			}
			ok = hex.EncodeToString(sum) == wrote
		}
		switch {
		case ok:
		case apart.collides(f.Path):
			p.tell(fmt.Sprintf("%s %s: your file %s gave way to one that %s ships.", k.Kind, k.ID, f.Path, source))
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

// collides reports whether a file cannot be beside the archive's: they differ only in case, or one
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
func (w *writer) shippedFiles(ctx context.Context) (all []Deployment, err error) {
	for _, kind := range w.contents.fileKinds {
		var asked []string
		for id := range w.contents.ids[kind] {
			k := entity.Key{Kind: kind, ID: id}
			for _, path := range w.contents.files[id] {
				if w.brought[k] || w.created[k] {
					asked = append(asked, fileID(k, path))
				}
			}
		}
		fingerprints, err := w.s.store.Fingerprints(ctx, w.tenant, w.caller.Tenant, shippedFile, asked)
		if err != nil {
			return nil, err
		}
		for _, id := range asked {
			if sum, ok := w.digests[id]; ok {
				fingerprints[id] = sum
			}
			if fingerprints[id] != "" {
				all = append(all, Deployment{Key: entity.Key{Kind: shippedFile, ID: id}, Fingerprint: fingerprints[id]})
			}
		}
	}
	return all, nil
}
