package colors

import (
	"context"
	"iter"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/port"
)

// Kind is the kind of content that a color is for bundles. Its ids are keys.
const Kind entity.Kind = "color"

// PorterStore is the part of a Store that moves colors between tenants, many at once.
type PorterStore interface {
	// Keys gives all keys, ordered.
	Keys(ctx context.Context, tenant string) ([]string, error)
	// Some gives those of some colors that are there, in any order.
	Some(ctx context.Context, tenant string, keys []string) ([]Color, error)
	// Replace adds colors of different keys or overwrites them, all but CreatedAt.
	Replace(ctx context.Context, tenant string, all []Color) error
	// Remove deletes colors and gives the number of those that were there.
	Remove(ctx context.Context, tenant string, keys []string) (int, error)
}

// Type is what a host can do with colors: find and ship them. Nobody owns them.
func (s *Service) Type() entity.Type {
	return entity.Type{
		Kind: Kind, Porter: s.Porter(),
		Lookup: func(ctx context.Context, tenant, id string) (entity.Ref, error) {
			if validKey(id) != nil { // not there, and not for the database to read
				return entity.Ref{}, errs.New(errs.NotFound, "Color not found.")
			}
			c, err := s.store.Get(ctx, tenant, id)
			return entity.Ref{Kind: Kind, ID: c.Key, Name: c.Key}, err
		},
	}
}

// Porter moves colors between tenants. It asks for no actor: its callers have their own rules.
func (s *Service) Porter() entity.Porter { return porter{s} }

type porter struct{ s *Service }

// columns are a color on its way.
type columns struct {
	Color     string  `json:"color"`
	Source    *string `json:"source"`
	CreatedAt string  `json:"createdAt"`
	UpdatedAt string  `json:"updatedAt"`
}

// IDs implements entity.Porter.
func (p porter) IDs(ctx context.Context, tenant string) ([]string, error) {
	return p.s.store.Keys(ctx, tenant)
}

// Needs implements entity.Porter: a color needs nothing.
func (p porter) Needs(ctx context.Context, tenant string, ids []string) (map[string][]entity.Key, error) {
	needs := map[string][]entity.Key{}
	for batch := range port.Chunks(ids) {
		some, err := p.s.store.Some(ctx, tenant, batch)
		if err != nil {
			return nil, err
		}
		for _, c := range some {
			needs[c.Key] = nil
		}
	}
	return needs, nil
}

// Export implements entity.Porter.
func (p porter) Export(ctx context.Context, tenant string, ids []string) iter.Seq2[entity.Row, error] {
	return port.Export(ids, func(batch []string) (map[string]entity.Row, error) {
		some, err := p.s.store.Some(ctx, tenant, batch)
		if err != nil {
			return nil, err
		}
		rows := make(map[string]entity.Row, len(some))
		for _, c := range some {
			rows[c.Key], err = port.Row(Kind, c.Key, columns{c.Color, c.Source, port.Time(c.CreatedAt), port.Time(c.UpdatedAt)})
			if err != nil {
				return nil, err
			}
		}
		return rows, nil
	}, func(id string) error { return errs.New(errs.NotFound, "color %s not found.", id) })
}

// Import implements entity.Porter.
func (p porter) Import(ctx context.Context, tenant string, rows []entity.Row, l entity.Landing) (arrivals []entity.Arrival, warnings []string, err error) {
	if err := port.Check(Kind, rows); err != nil {
		return nil, nil, err
	}
	err = p.s.store.InTx(ctx, func(ctx context.Context) error {
		for batch := range port.Chunks(rows) {
			some, err := p.land(ctx, tenant, batch, l)
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
	return arrivals, nil, nil
}

func (p porter) land(ctx context.Context, tenant string, rows []entity.Row, l entity.Landing) ([]entity.Arrival, error) {
	all := make([]Color, len(rows))
	for i, r := range rows {
		var err error
		if all[i], err = p.s.readRow(tenant, r); err != nil {
			return nil, err
		}
	}
	there, err := p.s.store.Some(ctx, tenant, port.IDs(rows))
	if err != nil {
		return nil, err
	}
	arrivals, err := port.Arrive(rows, port.In(there, func(c Color) string { return c.Key }), l.Rule)
	if err != nil {
		return nil, err
	}
	write := make([]Color, 0, len(all))
	for i, c := range all {
		if arrivals[i] != entity.Skipped {
			write = append(write, c)
		}
	}
	return arrivals, p.s.store.Replace(ctx, tenant, write)
}

// readRow checks a row of another tenant.
func (s *Service) readRow(tenant string, r entity.Row) (Color, error) {
	row, now := port.Read(r), s.stamp()
	c := Color{
		Tenant: tenant, Key: r.ID, Color: row.Text("color"), Source: row.TextOrNull("source"),
		CreatedAt: row.Time("createdAt", now), UpdatedAt: row.Time("updatedAt", now),
	}
	if row.Err() != nil {
		return Color{}, row.Err()
	}
	return c, port.Why(r.Key, c.check(r.JSON))
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
