package entities

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"

	"github.com/google/uuid"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/port"
)

// porter moves the pieces of one kind between tenants. It asks for no actor: its callers have their own rules.
type porter struct {
	s    *Service
	kind entity.Kind
}

// columns are a piece on its way. Drafts do not travel, and no row makes a system piece.
type columns struct {
	Name        string          `json:"name"`
	Slug        *string         `json:"slug"`
	Description *string         `json:"description"`
	OwnerID     string          `json:"ownerId"`
	Data        json.RawMessage `json:"data"`
	Source      *string         `json:"source"`
	SourceID    *string         `json:"sourceId"`
	CreatedAt   string          `json:"createdAt"`
	UpdatedAt   string          `json:"updatedAt"`
}

// IDs implements entity.Porter.
func (p porter) IDs(ctx context.Context, tenant string) ([]string, error) {
	return p.s.store.IDs(ctx, tenant, p.kind)
}

// Export implements entity.Porter. A draft is not there; a system piece is, for whoever names it.
func (p porter) Export(ctx context.Context, tenant string, ids []string) iter.Seq2[entity.Row, error] {
	return port.Export(ids, func(batch []string) (map[string]entity.Row, error) {
		some, err := p.s.store.Some(ctx, tenant, p.kind, batch)
		if err != nil {
			return nil, err
		}
		rows := make(map[string]entity.Row, len(some))
		for _, e := range some {
			if e.EditingID != nil {
				continue
			}
			rows[e.ID], err = port.Row(p.kind, e.ID, columns{
				e.Name, e.Slug, e.Description, e.OwnerID, e.Data, e.Source, e.SourceID, port.Time(e.CreatedAt), port.Time(e.UpdatedAt),
			})
			if err != nil {
				return nil, err
			}
		}
		return rows, nil
	}, func(id string) error { return errs.New(errs.NotFound, "%s %s not found.", p.kind, id) })
}

// Import implements entity.Porter. A piece of the system stays as it is, with a warning; the id of a draft, and a slug
// that another piece of the same owner has here, are errs.Conflict.
func (p porter) Import(ctx context.Context, tenant string, rows []entity.Row, l entity.Landing) (arrivals []entity.Arrival, warnings []string, err error) {
	if err := port.Check(p.kind, rows); err != nil {
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
	all, owners := make([]Entity, len(rows)), make([]string, len(rows))
	for i, r := range rows {
		var err error
		if all[i], err = p.read(tenant, r); err != nil {
			return nil, err
		}
		owners[i] = all[i].OwnerID
	}
	heads, err := p.s.store.Heads(ctx, tenant, p.kind, port.IDs(rows))
	if err != nil {
		return nil, err
	}
	arrivals, err := port.Arrive(rows, port.In(heads, func(e Entity) string { return e.ID }), l.Rule)
	if err != nil {
		return nil, err
	}
	there := map[string]Entity{}
	for _, e := range heads {
		if e.EditingID != nil {
			return nil, errs.New(errs.Conflict, "%s %s: this id belongs to a draft.", p.kind, e.ID)
		}
		there[e.ID] = e
	}
	known, err := port.Known(ctx, p.s.directory, tenant, owners)
	if err != nil {
		return nil, err
	}
	var write []Entity
	var over []string
	for i, e := range all {
		if arrivals[i] == entity.Updated && there[e.ID].System {
			arrivals[i] = entity.Skipped
			*warnings = append(*warnings, fmt.Sprintf("%s %s belongs to the system here and stays as it is.", p.kind, e.ID))
		}
		if arrivals[i] == entity.Skipped {
			continue
		}
		e.OwnerID = port.Owner(rows[i].Key, e.OwnerID, known, l, warnings)
		write = append(write, e)
		if arrivals[i] == entity.Updated {
			over = append(over, e.ID)
		}
	}
	if len(write) == 0 {
		return arrivals, nil
	}
	if err := p.freeSlugs(ctx, tenant, write, over); err != nil {
		return nil, err
	}
	return arrivals, p.s.store.PutAll(ctx, tenant, p.kind, write, over)
}

// natural is what a slug is unique by.
type natural struct{ owner, slug string }

// freeSlugs refuses a slug that another piece of the owner has and keeps.
func (p porter) freeSlugs(ctx context.Context, tenant string, write []Entity, over []string) error {
	leaves := port.In(over, func(id string) string { return id })
	taken, slugs := map[natural]string{}, []string{}
	for _, e := range write {
		if e.Slug == nil {
			continue
		}
		at := natural{e.OwnerID, *e.Slug}
		if other, ok := taken[at]; ok {
			return p.slugTaken(e, other)
		}
		taken[at], slugs = e.ID, append(slugs, *e.Slug)
	}
	if len(slugs) == 0 {
		return nil
	}
	rivals, err := p.s.store.Slugs(ctx, tenant, p.kind, slugs)
	if err != nil {
		return err
	}
	for _, r := range rivals {
		if id, ok := taken[natural{r.OwnerID, *r.Slug}]; ok && id != r.ID && !leaves(r.ID) {
			return p.slugTaken(Entity{ID: id, Slug: r.Slug}, r.ID)
		}
	}
	return nil
}

func (p porter) slugTaken(e Entity, other string) error {
	return errs.New(errs.Conflict, "%s %s: the slug %s belongs to %s.", p.kind, e.ID, *e.Slug, other)
}

// read checks a row of another tenant.
func (p porter) read(tenant string, r entity.Row) (Entity, error) {
	if id, err := uuid.Parse(r.ID); err != nil || id.String() != r.ID {
		return Entity{}, port.Bad(r.Key, "the id must be a UUID in lower case")
	}
	c, now := port.Read(r), p.s.stamp()
	e := Entity{
		Tenant: tenant, Kind: p.kind, ID: r.ID, Name: c.Text("name"), Slug: c.TextOrNull("slug"), Description: c.TextOrNull("description"),
		OwnerID: c.Text("ownerId"), Data: c.JSON("data"), Source: c.TextOrNull("source"), SourceID: c.TextOrNull("sourceId"),
		CreatedAt: c.Time("createdAt", now), UpdatedAt: c.Time("updatedAt", now),
	}
	if c.Err() != nil {
		return Entity{}, c.Err()
	}
	return e, port.Why(r.Key, e.accept())
}

// Remove implements entity.Porter. A library's files go with it.
func (p porter) Remove(ctx context.Context, tenant string, ids []string) (int, error) {
	n := 0
	err := p.s.store.InTx(ctx, func(ctx context.Context) error {
		for batch := range port.Chunks(ids) {
			some, blobs, err := p.s.store.Remove(ctx, tenant, p.kind, batch)
			if err != nil {
				return err
			}
			if err := p.s.drop(ctx, tenant, blobs); err != nil {
				return err
			}
			for _, id := range batch {
				if err := p.s.forgetAll(ctx, tenant, entity.Key{Kind: p.kind, ID: id}); err != nil {
					return err
				}
			}
			n += some
		}
		return nil
	})
	return n, err
}
