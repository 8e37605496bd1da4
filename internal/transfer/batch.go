package transfer

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
)

// Batch is a batch of rows with different ids that are imported into a tenant.
type Batch[T any] struct {
	Tenant string
	Write  []T          // entities of the rows, except those that are skipped
	There  map[string]T // existing entities with the ids of the rows, by id, as returned by Transferer.There
	Over   []string     // ids of existing entities in Write
	Yield  []string     // ids of those in Over whose slug another entity in Write takes

	into     entity.ImportOptions
	actions  []entity.ImportAction
	warnings []string
}

// Warn adds a sentence for people.
func (b *Batch[T]) Warn(format string, args ...any) {
	b.warnings = append(b.warnings, fmt.Sprintf(format, args...))
}

// Sum adds counts to a sentence for people that appears once for all rows of the import. It does
// nothing if the first count is 0. See entity.Warnings.
func (b *Batch[T]) Sum(sentence string, counts ...entity.Count) {
	if counts[0].N > 0 {
		b.into.Warnings.Add(sentence, counts...)
	}
}

// check returns errs.Invalid for an unknown rule, rows of another kind and duplicate ids.
func (p Transferer[T]) check(rows []entity.Row, rule entity.Rule) error {
	if !slices.Contains([]entity.Rule{entity.Skip, entity.Overwrite, entity.Fail}, rule) {
		return errs.New(errs.Invalid, "updateRule must be one of skip, overwrite and fail")
	}
	seen := make(map[string]bool, len(rows))
	for _, r := range rows {
		if r.Kind != p.Kind {
			return Bad(r.Key, "is not of the kind %s", p.Kind)
		}
		if seen[r.ID] {
			return Bad(r.Key, "is given twice")
		}
		seen[r.ID] = true
	}
	return nil
}

// land imports one batch.
func (p Transferer[T]) land(
	ctx context.Context, tenant string, rows []entity.Row, l entity.ImportOptions,
) (*Batch[T], error) {
	items := make([]T, len(rows))
	for i, r := range rows {
		var err error
		if items[i], err = p.Read(tenant, r); err != nil {
			return nil, err
		}
	}
	there, err := p.there(ctx, tenant, items, l)
	if err != nil {
		return nil, err
	}
	b := &Batch[T]{Tenant: tenant, There: p.byID(there), into: l}
	for _, item := range items {
		if err := p.arrive(b, item); err != nil {
			return nil, err
		}
	}
	if len(b.Write) == 0 {
		return b, nil
	}
	for _, step := range []func(context.Context, *Batch[T]) error{p.own, p.claim, p.keepSecrets, p.Put} {
		if err := step(ctx, b); err != nil {
			return nil, err
		}
	}
	return b, nil
}

func (p Transferer[T]) there(ctx context.Context, tenant string, items []T, l entity.ImportOptions) ([]T, error) {
	if p.There != nil {
		return p.There(ctx, tenant, items, l)
	}
	return p.Some(ctx, tenant, IDs(items, p.ID))
}

func (p Transferer[T]) byID(items []T) map[string]T {
	by := make(map[string]T, len(items))
	for _, item := range items {
		by[p.ID(item)] = item
	}
	return by
}

// arrive decides what is done with an entity. It returns errs.Conflict if the entity exists and the
// rule is Fail.
func (p Transferer[T]) arrive(b *Batch[T], item T) error {
	id := p.ID(item)
	old, there := b.There[id]
	action := entity.Created
	switch {
	case there && p.guard(old, b.into) != "":
		action = entity.Skipped
		b.Warn("%s %s %s and stays as it is.", p.Kind, id, p.guard(old, b.into))
	case there && b.into.Rule == entity.Fail:
		return errs.New(errs.Conflict, "%s %s exists already.", p.Kind, id)
	case there && b.into.Rule == entity.Skip:
		action = entity.Skipped
	case there && p.spare(old) != "":
		action = entity.Skipped
		b.Warn("%s %s %s and stays as it is.", p.Kind, id, p.spare(old))
	case there:
		action = entity.Updated
		b.Over = append(b.Over, id)
	}
	if b.actions = append(b.actions, action); action != entity.Skipped {
		b.Write = append(b.Write, item)
	}
	return nil
}

func (p Transferer[T]) spare(old T) string {
	if p.Spare == nil {
		return ""
	}
	return p.Spare(old)
}

func (p Transferer[T]) guard(old T, l entity.ImportOptions) string {
	if p.Guard == nil || !l.CrossTenant {
		return ""
	}
	return p.Guard(old, l)
}

// CrossTenant reports whether the rows are deployed from another tenant: see entity.ImportOptions.
func (b *Batch[T]) CrossTenant() bool { return b.into.CrossTenant }

// OwnArchive reports whether the rows come from an archive of the tenant itself: see
// entity.ImportOptions.
func (b *Batch[T]) OwnArchive() bool { return b.into.OwnArchive }

// own sets the owner of each entity to the owner in its row if that is a principal of the tenant,
// else to ImportOptions.Owner.
func (p Transferer[T]) own(ctx context.Context, b *Batch[T]) error {
	if p.Owner == nil {
		return nil
	}
	if b.into.CrossTenant {
		p.ownCrossTenant(b)
		return nil
	}
	known, err := Known(ctx, p.Directory, b.Tenant, IDs(b.Write, func(item T) string { return *p.Owner(&item) }))
	if err != nil {
		return err
	}
	for i := range b.Write {
		owner := p.Owner(&b.Write[i])
		if known[*owner] && *owner != "*" { // "*" is a principal that cannot own anything
			continue
		}
		if *owner != "" {
			b.Warn(
				"%s %s: its owner %s is not known here; %s owns it now.", p.Kind, p.ID(b.Write[i]),
				Short(*owner), b.into.Owner,
			)
		}
		*owner = b.into.Owner
	}
	return nil
}

// ownCrossTenant keeps the owners of existing entities. A new entity belongs to the owner in its
// row only if a deploy created that principal.
func (p Transferer[T]) ownCrossTenant(b *Batch[T]) {
	for i := range b.Write {
		owner := p.Owner(&b.Write[i])
		if old, there := b.There[p.ID(b.Write[i])]; there {
			*owner = *p.Owner(&old)
		} else if !b.into.DeployedTeams[*owner] {
			*owner = b.into.Owner
		}
	}
}

// claim returns errs.Conflict for a slug of an entity that is not part of the batch.
func (p Transferer[T]) claim(ctx context.Context, b *Batch[T]) error {
	if p.Natural == nil {
		return nil
	}
	if b.into.CrossTenant {
		if err := p.freeSlugs(ctx, b); err != nil {
			return err
		}
	}
	claimed, naturals := map[string]string{}, []string{}
	for _, item := range b.Write {
		natural, id := p.Natural(item), p.ID(item)
		if natural == "" {
			continue
		}
		if other, ok := claimed[natural]; ok {
			return p.taken(id, natural, "to "+other)
		}
		claimed[natural] = id
		if old, there := b.There[id]; !there || p.Natural(old) != natural { // else it has the slug itself
			naturals = append(naturals, natural)
		}
	}
	for _, id := range b.Over {
		if to, ok := claimed[p.Natural(b.There[id])]; ok && to != id {
			b.Yield = append(b.Yield, id)
		}
	}
	if len(naturals) == 0 {
		return nil
	}
	taken, err := p.Taken(ctx, b.Tenant, naturals)
	if err != nil {
		return err
	}
	leaves := Set(b.Over)
	for _, item := range b.Write {
		natural, id := p.Natural(item), p.ID(item)
		if other, ok := taken[natural]; ok && natural != "" && other != id && !leaves[other] {
			return p.taken(id, natural, "to "+other)
		}
	}
	return nil
}

func (p Transferer[T]) taken(id, natural, holder string) error {
	return errs.New(errs.Conflict, "%s %s: the slug %s belongs %s.", p.Kind, id, slugOf(natural), holder)
}

// slugOf returns the slug in a natural id.
func slugOf(natural string) string { return natural[strings.LastIndexByte(natural, ':')+1:] }

// few is the number of entities of the tenant that are read at once for their secrets, because each
// may be long.
const few = 32

// keepSecrets replaces the masks in the rows by the tenant's own secrets, which it reads from the
// overwritten entities. It warns of secrets that are lost because the rows have no place for them.
// In a deploy from another tenant, secrets in JSON that changes otherwise are lost, too: the other
// tenant could have changed the server to which a password is sent.
func (p Transferer[T]) keepSecrets(ctx context.Context, b *Batch[T]) error {
	if p.Free == nil {
		return nil
	}
	var created, over []*T
	for i := range b.Write {
		item := &b.Write[i]
		if _, there := b.There[p.ID(*item)]; there {
			over = append(over, item)
		} else {
			created = append(created, item)
		}
	}
	p.reveal(b, created, nil)
	for some := range slices.Chunk(over, few) {
		ours, err := p.Some(ctx, b.Tenant, IDs(some, func(item *T) string { return p.ID(*item) }))
		if err != nil {
			return err
		}
		p.reveal(b, some, p.byID(ours))
	}
	return nil
}

// reveal replaces masks by the secrets of ours. It warns how many masks have no secret, and how
// many secrets have no mask. It also warns how many secrets are in JSON that changes otherwise,
// such as the host to which a password is sent. In a deploy from another tenant, reveal removes the
// secrets in such JSON.
func (p Transferer[T]) reveal(b *Batch[T], items []*T, ours map[string]T) {
	for _, item := range items {
		own, missing, lost, moved, dropped := ours[p.ID(*item)], 0, 0, 0, 0
		was := p.Free(&own)
		for column, data := range p.Free(item) {
			kept, without := entity.KeepSecrets(*data, *was[column])
			if len(*was[column]) == 0 { // then kept contains no secrets
				*data, missing = kept, missing+without
				continue
			}
			rest, homeless := entity.KeepSecrets(*was[column], kept) // both have the same secrets
			bare, n := entity.KeepSecrets(kept, nil)
			switch {
			case b.into.CrossTenant && !entity.SameJSON(kept, *was[column]):
				kept, dropped = bare, dropped+n
			case !b.into.CrossTenant && len(rest) > 0 && !bytes.Equal(rest, kept):
				moved += n
			}
			*data, missing, lost = kept, missing+without, lost+homeless
		}
		row := entity.Count{N: 1, Of: string(p.Kind) + " row"}
		b.Sum("%s of %s did not travel: set them again here.", entity.Count{N: missing, Of: "secret"}, row)
		b.Sum(
			"%s of %s got lost with what was replaced: set them again here.",
			entity.Count{N: lost, Of: "secret"}, row,
		)
		b.Sum(
			"%s of %s stayed while what is around them changed: check where they go.",
			entity.Count{N: moved, Of: "secret"}, row,
		)
		b.Sum(
			"%s of %s got removed, since what is around them changed: set them again here.",
			entity.Count{N: dropped, Of: "secret"}, row,
		)
	}
}
