package bundles

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/files"
	"github.com/tenantcontent/tenantcontent/internal/transfer"
	"github.com/tenantcontent/tenantcontent/internal/transfer/archive"
)

// Backup is the archive of what a restore or deploy replaced: a download for the tenant's
// superusers, for a week. To undo a restore, restore the archive. To undo a deploy, import it with
// the rule Overwrite, and remove what the deploy made; do not restore it, as it has only the
// replaced rows of each kind, and a restore would remove all others. What it cannot restore is
// among the warnings.
type Backup = files.File

// lifetime is how long such an archive is kept.
const lifetime = 7 * 24 * time.Hour

// clear removes all rows of the archive's kinds that are not in the archive, after it has stored an
// archive of all rows of these kinds. It runs before the import, so that names and slugs are free.
func (l *importer) clear(ctx context.Context) error {
	there, others := plan{}, plan{}
	for kind, incoming := range l.index.ids {
		ids, err := l.s.transferers[kind].IDs(ctx, l.tenant)
		if err != nil {
			return err
		}
		if len(ids) > 0 {
			there[kind] = slices.Sorted(slices.Values(ids))
		}
		for _, id := range there[kind] {
			if !incoming[id] {
				others[kind] = append(others[kind], id)
			}
		}
	}
	going, err := l.hold(ctx, others)
	if err != nil {
		return err
	}
	// Kinds that are empty now are counted too: a restore of the kept archive empties them again.
	if err := l.keep(ctx, "restore", there, going, l.index.header.Counts); err != nil {
		return err
	}
	return l.remove(ctx, going)
}

// replace removes what earlier deploys of a bundle brought and this one does not have, after it has
// stored an archive of that and of what will be overwritten. It skips what no longer exists, or
// belongs to the system now.
func (l *importer) replace(ctx context.Context, gone plan) error {
	old, going := plan{}, plan{}
	for _, kind := range l.s.kinds {
		over := l.index.ids[kind]
		if l.into.Rule != entity.Overwrite {
			over = nil
		}
		if len(gone[kind])+len(over) == 0 {
			continue
		}
		ids, err := l.s.transferers[kind].IDs(ctx, l.tenant)
		if err != nil {
			return err
		}
		leaves := transfer.Set(gone[kind])
		spared, err := l.leftAlone(ctx, kind, over)
		if err != nil {
			return err
		}
		for _, id := range slices.Sorted(slices.Values(ids)) {
			switch {
			case leaves[id]:
				going[kind] = append(going[kind], id)
			case over[id] && !spared[id]:
				old[kind] = append(old[kind], id)
			}
		}
	}
	going, err := l.hold(ctx, going)
	if err != nil {
		return err
	}
	if l.crossTenant {
		if err := l.spareAdditions(ctx, going); err != nil {
			return err
		}
	}
	for kind, ids := range going {
		if len(ids) > 0 {
			old[kind] = slices.Sorted(slices.Values(append(old[kind], ids...)))
		}
	}
	if err := l.keep(ctx, "deploy", old, going, nil); err != nil {
		return err
	}
	return l.remove(ctx, going)
}

// leftAlone returns which rows of the archive are not overwritten, whatever the rule, if they
// exist.
func (l *importer) leftAlone(ctx context.Context, kind entity.Kind, over map[string]bool) (map[string]bool, error) {
	switch {
	case len(over) == 0:
		return nil, nil
	case l.crossTenant && kind == entity.KindUser:
		return over, nil
	case l.crossTenant:
		alone := maps.Clone(over)
		maps.DeleteFunc(alone, func(id string, _ bool) bool { return l.brought[entity.Key{Kind: kind, ID: id}] })
		return alone, nil
	}
	protected := l.s.typeOf(kind).Protected
	if protected == nil {
		return nil, nil
	}
	ids, err := protected(ctx, l.tenant, slices.Collect(maps.Keys(over)))
	return transfer.Set(ids), err
}

// keep stores a download with some rows of the tenant, of which some are going to be removed.
// counts names kinds without rows.
func (l *importer) keep(ctx context.Context, before string, p, going plan, counts map[entity.Kind]int) error {
	if len(p) == 0 {
		return nil
	}
	l.kept = p
	h := archive.Header{Tenant: l.tenant, Bundle: archive.Bundle{Name: "Before a " + before}, Counts: p.counts()}
	for kind := range counts {
		h.Counts[kind] += 0
	}
	name := fmt.Sprintf("before-%s-%s.tgz", before, l.s.stamp().Format("20060102-150405"))
	f, err := l.s.downloads.CreateForSuperusers(ctx, l.tenant, name, archive.ContentType, lifetime,
		func(w io.Writer) error {
			out, err := l.s.begin(w)
			if err != nil {
				return err
			}
			return l.s.write(ctx, l.tenant, h, p, out, func(row entity.Row) {
				if going.has(row.Key) {
					l.lost.secrets += secretsOf(row)
				}
			})
		})
	if errs.CodeOf(err) == errs.Invalid {
		err = errs.Wrap(
			errs.Invalid, err, "What the %s replaces cannot be kept, so nothing is done: %s", before,
			errs.MessageOf(err),
		)
	}
	l.report.Archive = &f
	return err
}

// secretsOf returns how many secrets an entity has, of which its row has the masks.
func secretsOf(row entity.Row) int { return bytes.Count(row.JSON, []byte(`"`+entity.Mask+`"`)) }

// remove deletes entities, the kinds that need others first, after hold and keep. What deleted
// users and teams own passes to the importer's owner.
func (l *importer) remove(ctx context.Context, p plan) error {
	for _, kind := range slices.Backward(l.s.kinds) {
		ids := p[kind]
		if l.s.typeOf(kind).Owns {
			if err := l.passOn(ctx, ids); err != nil {
				return err
			}
		}
		if err := l.countLosses(ctx, kind, ids); err != nil {
			return err
		}
		for some := range slices.Chunk(ids, batch) {
			if err := l.drop(ctx, kind, some); err != nil {
				return err
			}
		}
	}
	l.warnOfLosses()
	return nil
}

// hold returns a plan without the users and teams, and others that own content, that stay, and
// locks the others so that they get no more content. It comes before anything is removed: a
// transaction that is creating content for them may need what is removed, and would deadlock with
// this one.
func (l *importer) hold(ctx context.Context, p plan) (plan, error) {
	p = maps.Clone(p)
	var going []string
	for _, kind := range l.s.kinds {
		if !l.s.typeOf(kind).Owns {
			continue
		}
		ids, err := l.spare(ctx, kind, p[kind])
		if err != nil {
			return nil, err
		}
		p[kind], going = ids, append(going, ids...)
	}
	if len(going) == 0 {
		return p, nil
	}
	return p, l.s.principals.LockPrincipals(ctx, l.tenant, append(going, l.into.Owner))
}

func (l *importer) drop(ctx context.Context, kind entity.Kind, ids []string) error {
	names := map[string]string{}
	if l.list {
		var err error
		if names, err = l.names(ctx, kind, ids); err != nil {
			return err
		}
	}
	if _, err := l.s.transferers[kind].Remove(ctx, l.tenant, ids); err != nil {
		return err
	}
	if !l.s.typeOf(kind).Owns {
		gone := make([]entity.Key, len(ids))
		for i, id := range ids {
			gone[i] = entity.Key{Kind: kind, ID: id}
		}
		if err := l.s.content.Deleted(ctx, l.tenant, gone...); err != nil {
			return err
		}
	}
	for _, id := range ids {
		l.count(Change{deleted, entity.Key{Kind: kind, ID: id}, names[id]})
	}
	return nil
}

// spare returns the users or teams to remove without those that stay, and warns of these: the owner
// of the import, and the users whom spareUsers names.
func (l *importer) spare(ctx context.Context, kind entity.Kind, ids []string) ([]string, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	why := map[string]string{l.into.Owner: "it gets what has no other owner"}
	if kind == entity.KindUser {
		if err := l.spareUsers(ctx, ids, why); err != nil {
			return nil, err
		}
	}
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool {
		switch {
		case why[id] == "":
			return false
		case l.crossTenant:
			l.warnStays(kind, id)
		default:
			l.warn(fmt.Sprintf("The %s %s stays: %s.", kind, id, why[id]))
		}
		return true
	}), nil
}

// spareUsers adds to why the users who are not removed, with the reason: the caller, and the last
// enabled superuser. In another tenant no users are removed.
func (l *importer) spareUsers(ctx context.Context, ids []string, why map[string]string) error {
	if l.crossTenant {
		for _, name := range ids {
			why[name] = "it is a user there"
		}
		return nil
	}
	why[l.self] = "it is yours"
	supers, err := l.s.principals.Superusers(ctx, l.tenant)
	if err != nil {
		return err
	}
	goes := transfer.Set(ids)
	left := slices.ContainsFunc(supers, func(name string) bool { return name == l.self || !goes[name] })
	if !left && len(supers) > 0 {
		last := max(0, slices.Index(supers, l.into.Owner))
		why[supers[last]] = "it is the last superuser"
	}
	return nil
}

// passOn moves what some principals own to the owner of the import.
func (l *importer) passOn(ctx context.Context, ids []string) error {
	for _, id := range ids {
		moved, err := l.s.content.Reassign(ctx, l.tenant, id, l.into.Owner)
		if err != nil {
			return err
		}
		if len(moved) == 0 {
			continue
		}
		sentence := fmt.Sprintf(
			"%s owned %s of content, which %s owns now.", id, entity.Count{N: len(moved), Of: "item"},
			l.into.Owner,
		)
		lost := slices.DeleteFunc(moved, func(r entity.Ref) bool {
			return l.kept.has(entity.Key{Kind: r.Kind, ID: r.ID})
		})
		if len(lost) > 0 {
			sentence += fmt.Sprintf(" The archive of what is replaced does not give %d of them back.", len(lost))
		}
		l.warnOwn(sentence)
	}
	return nil
}
