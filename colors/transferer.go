package colors

import (
	"context"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/transfer"
)

// Kind is the kind of colors in bundles. Their ids are keys.
const Kind entity.Kind = "color"

// TransferStore is the part of a Store that moves colors between tenants, many at once.
type TransferStore interface {
	// Keys returns all keys, ordered.
	Keys(ctx context.Context, tenant string) ([]string, error)
	// Some returns the given colors that exist, in any order.
	Some(ctx context.Context, tenant string, keys []string) ([]Color, error)
	// Replace adds colors of different keys or overwrites them, all but CreatedAt.
	Replace(ctx context.Context, tenant string, all []Color) error
	// Remove deletes colors and returns the number of those that existed.
	Remove(ctx context.Context, tenant string, keys []string) (int, error)
}

func (c Color) ref() entity.Ref { return entity.Ref{Kind: Kind, ID: c.Key, Name: c.Key} }

// transferer moves colors between tenants.
func (s *Service) transferer() entity.Transferer {
	return transfer.Transferer[Color]{
		Kind: Kind, ID: func(c Color) string { return c.Key },
		All: s.store.Keys, Some: s.store.Some, Row: toColumns, Read: s.readRow,
		Put: func(ctx context.Context, b *transfer.Batch[Color]) error {
			return s.store.Replace(ctx, b.Tenant, b.Write)
		},
		Drop: s.store.Remove, InTx: s.store.InTx,
	}
}

// columns are the columns of a row in an archive.
type columns struct {
	Color     string  `json:"color"`
	Source    *string `json:"source"`
	CreatedAt string  `json:"createdAt"`
	UpdatedAt string  `json:"updatedAt"`
}

func toColumns(c Color) any {
	return columns{c.Color, c.Source, transfer.Time(c.CreatedAt), transfer.Time(c.UpdatedAt)}
}

// readRow checks a row of another tenant.
func (s *Service) readRow(tenant string, r entity.Row) (Color, error) {
	row, now := transfer.Read(r), s.clock.Stamp()
	c := Color{
		Tenant: tenant, Key: r.ID, Color: row.Text("color"), Source: row.TextOrNull("source"),
		CreatedAt: row.Time("createdAt", now), UpdatedAt: row.Time("updatedAt", now),
	}
	return c, row.Accept(func() error { return c.check(r.JSON) })
}
