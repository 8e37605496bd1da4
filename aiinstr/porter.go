package aiinstr

import (
	"context"
	"iter"

	"github.com/google/uuid"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/port"
)

// Type is what a host can do with instructions: they are found, owned, reassigned and shipped. It asks for no actor and
// not whether AI is on: its callers have their own rules.
func (s *Service) Type() entity.Type {
	return entity.Type{
		Kind: Kind,
		Lookup: func(ctx context.Context, tenant, id string) (entity.Ref, error) {
			key, err := place(id)
			if err != nil {
				return entity.Ref{}, err
			}
			i, err := s.store.Get(ctx, tenant, key)
			return i.ref(), err
		},
		Owned: s.store.Owned,
		Reassign: func(ctx context.Context, tenant, from, to string) ([]entity.Ref, error) {
			moved, err := s.store.Reassign(ctx, tenant, from, to, s.stamp())
			refs := make([]entity.Ref, len(moved))
			for n, i := range moved {
				refs[n] = i.ref()
			}
			return refs, err
		},
		Porter: s.Porter(),
	}
}

func (i Instruction) ref() entity.Ref {
	return entity.Ref{Kind: Kind, ID: i.ID, Name: i.Slug, OwnerID: i.OwnerID}
}

// Porter moves instructions between tenants.
func (s *Service) Porter() entity.Porter { return porter{s} }

type porter struct{ s *Service }

// columns are an instruction on its way.
type columns struct {
	Slug        string  `json:"slug"`
	Description *string `json:"description"`
	Content     string  `json:"content"`
	OwnerID     string  `json:"ownerId"`
	CreatedAt   string  `json:"createdAt"`
	UpdatedAt   string  `json:"updatedAt"`
}

// IDs implements entity.Porter.
func (p porter) IDs(ctx context.Context, tenant string) ([]string, error) {
	return p.s.store.IDs(ctx, tenant)
}

// Needs implements entity.Porter: an instruction needs those that its content refers to, at any depth once their own
// needs are asked for.
func (p porter) Needs(ctx context.Context, tenant string, ids []string) (map[string][]entity.Key, error) {
	needs := map[string][]entity.Key{}
	for batch := range port.Chunks(ids) {
		some, err := p.s.store.Some(ctx, tenant, batch)
		if err != nil {
			return nil, err
		}
		slugs, refs := []string{}, expansion{texts: map[string][]part{}, asked: map[string]bool{}}
		for _, i := range some {
			refs.texts[i.ID] = parse(i.Content)
			slugs = append(slugs, refs.ask(i.ID)...)
		}
		taken := map[string]string{}
		for some := range port.Chunks(slugs) {
			more, err := p.s.store.Slugs(ctx, tenant, some)
			if err != nil {
				return nil, err
			}
			for slug, id := range more {
				taken[slug] = id
			}
		}
		for _, i := range some {
			needs[i.ID] = needed(i.ID, refs.texts[i.ID], taken)
		}
	}
	return needs, nil
}

// needed gives what a text refers to, in the order it does.
func needed(own string, parts []part, taken map[string]string) []entity.Key {
	var keys []entity.Key
	seen := map[string]bool{own: true, "": true}
	for _, p := range parts {
		if id := taken[p.slug]; !seen[id] {
			seen[id] = true
			keys = append(keys, entity.Key{Kind: Kind, ID: id})
		}
	}
	return keys
}

// Export implements entity.Porter.
func (p porter) Export(ctx context.Context, tenant string, ids []string) iter.Seq2[entity.Row, error] {
	return port.Export(ids, func(batch []string) (map[string]entity.Row, error) {
		some, err := p.s.store.Some(ctx, tenant, batch)
		rows := make(map[string]entity.Row, len(some))
		for _, i := range some {
			if err != nil {
				break
			}
			rows[i.ID], err = port.Row(Kind, i.ID, columns{
				i.Slug, i.Description, i.Content, i.OwnerID, port.Time(i.CreatedAt), port.Time(i.UpdatedAt),
			})
		}
		return rows, err
	}, func(id string) error { return errs.New(errs.NotFound, "AI instruction %s not found.", id) })
}

// Import implements entity.Porter. An instruction whose slug another one has here is errs.Conflict.
func (p porter) Import(ctx context.Context, tenant string, rows []entity.Row, l entity.Landing) (arrivals []entity.Arrival, warnings []string, err error) {
	if err := port.Check(Kind, rows); err != nil {
		return nil, nil, err
	}
	err = p.s.store.InTx(ctx, func(ctx context.Context) error {
		for batch := range port.Chunks(rows) {
			some, err := p.land(ctx, tenant, batch, l, &warnings)
			if err != nil {
				return err
			}
			arrivals = append(arrivals, some...)
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	return arrivals, warnings, nil
}

// land imports one batch.
func (p porter) land(ctx context.Context, tenant string, rows []entity.Row, l entity.Landing, warnings *[]string) ([]entity.Arrival, error) {
	there, err := p.s.store.Some(ctx, tenant, port.IDs(rows))
	if err != nil {
		return nil, err
	}
	arrivals, err := port.Arrive(rows, port.In(there, func(i Instruction) string { return i.ID }), l.Rule)
	if err != nil {
		return nil, err
	}
	all := make([]Instruction, len(rows))
	owners, slugs := []string{}, []string{}
	for n, r := range rows {
		if all[n], err = p.s.read(tenant, r); err != nil {
			return nil, err
		}
		owners, slugs = append(owners, all[n].OwnerID), append(slugs, all[n].Slug)
	}
	known, err := port.Known(ctx, p.s.directory, tenant, owners)
	if err != nil {
		return nil, err
	}
	taken, err := p.s.store.Slugs(ctx, tenant, slugs)
	if err != nil {
		return nil, err
	}
	written := map[string]string{} // slug to id, of what is written
	over := map[string]bool{}      // ids that are overwritten
	var write []Instruction
	var overwritten []string
	for n, i := range all {
		if arrivals[n] == entity.Skipped {
			continue
		}
		i.OwnerID = port.Owner(rows[n].Key, i.OwnerID, known, l, warnings)
		if other, ok := written[i.Slug]; ok {
			return nil, slugTaken(i, other)
		}
		written[i.Slug] = i.ID
		write = append(write, i)
		if arrivals[n] == entity.Updated {
			over[i.ID], overwritten = true, append(overwritten, i.ID)
		}
	}
	for _, i := range write {
		if other, ok := taken[i.Slug]; ok && other != i.ID && !over[other] {
			return nil, slugTaken(i, other)
		}
	}
	if len(write) == 0 {
		return arrivals, nil
	}
	return arrivals, p.s.store.PutAll(ctx, tenant, write, overwritten)
}

func slugTaken(i Instruction, other string) error {
	return errs.New(errs.Conflict, "%s %s: the slug %s belongs to %s.", Kind, i.ID, i.Slug, other)
}

// read checks a row of another tenant.
func (s *Service) read(tenant string, r entity.Row) (Instruction, error) {
	if id, err := uuid.Parse(r.ID); err != nil || id.String() != r.ID {
		return Instruction{}, port.Bad(r.Key, "the id must be a UUID")
	}
	c, now := port.Read(r), s.stamp()
	i := Instruction{
		Tenant: tenant, ID: r.ID, Slug: c.Text("slug"), Description: c.TextOrNull("description"), Content: c.Text("content"),
		OwnerID: c.Text("ownerId"), CreatedAt: c.Time("createdAt", now), UpdatedAt: c.Time("updatedAt", now),
	}
	if c.Err() != nil {
		return Instruction{}, c.Err()
	}
	return i, port.Why(r.Key, i.accept())
}

// Remove implements entity.Porter.
func (p porter) Remove(ctx context.Context, tenant string, ids []string) (int, error) {
	n := 0
	err := p.s.store.InTx(ctx, func(ctx context.Context) error {
		for batch := range port.Chunks(ids) {
			some, err := p.s.store.Remove(ctx, tenant, batch)
			if err != nil {
				return err
			}
			n += some
		}
		return nil
	})
	return n, err
}
