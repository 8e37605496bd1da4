package content

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/transfer"
)

// transferer moves the entities of one kind between tenants. A draft does not exist for it; a
// system entity does, for whoever names it, and no import overwrites it.
func (s *Service) transferer(kind entity.Kind) transfer.Transferer[Entity] {
	return transfer.Transferer[Entity]{
		Kind: kind, ID: func(e Entity) string { return e.ID },
		All:  func(ctx context.Context, tenant string) ([]string, error) { return s.store.IDs(ctx, tenant, kind) },
		Some: s.some(kind), Row: toColumns, Refs: s.refs,
		Read: func(tenant string, r entity.Row) (Entity, error) { return s.readRow(tenant, kind, r) },
		There: func(ctx context.Context, tenant string, all []Entity, l entity.ImportOptions) ([]Entity, error) {
			return s.heads(ctx, tenant, kind, all, l)
		},
		Guard: func(e Entity, l entity.ImportOptions) string {
			if e.EditingID != nil && l.Rule != entity.Fail {
				return "is a draft here"
			}
			return ""
		},
		Spare: func(e Entity) string {
			if e.System {
				return "belongs to the system here"
			}
			return ""
		},
		Owner: func(e *Entity) *string { return &e.OwnerID }, Directory: s.directory,
		Natural: func(e Entity) string {
			if e.Slug == nil {
				return ""
			}
			return e.NaturalID()
		},
		Rename: func(e *Entity, slug string) { e.Slug = &slug },
		Taken: func(ctx context.Context, tenant string, naturals []string) (map[string]string, error) {
			return s.taken(ctx, tenant, kind, naturals)
		},
		Free: func(e *Entity) map[string]*json.RawMessage { return map[string]*json.RawMessage{"data": &e.Data} },
		Put: func(ctx context.Context, b *transfer.Batch[Entity]) error {
			return s.store.PutAll(ctx, b.Tenant, kind, b.Write, b.Yield)
		},
		Drop: func(ctx context.Context, tenant string, ids []string) (int, error) {
			return s.dropAll(ctx, tenant, kind, ids)
		},
		InTx: s.store.InTx,
	}
}

// columns are the columns of a row in an archive. Drafts do not travel, and no row makes a system
// entity.
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

func toColumns(e Entity) any {
	return columns{
		e.Name, e.Slug, e.Description, e.OwnerID, e.Data, e.Source, e.SourceID, transfer.Time(e.CreatedAt),
		transfer.Time(e.UpdatedAt),
	}
}

// readRow checks a row of another tenant.
func (s *Service) readRow(tenant string, kind entity.Kind, r entity.Row) (Entity, error) {
	c, now := transfer.ReadUUID(r), s.clock.Stamp()
	e := Entity{
		Tenant: tenant, Kind: kind, ID: r.ID,
		Name: c.Text("name"), Slug: c.TextOrNull("slug"), Description: c.TextOrNull("description"),
		OwnerID: c.Text("ownerId"), Data: c.JSON("data"),
		Source: c.TextOrNull("source"), SourceID: c.TextOrNull("sourceId"),
		CreatedAt: c.Time("createdAt", now), UpdatedAt: c.Time("updatedAt", now),
	}
	err := c.Accept(e.acceptRow)
	return e, err
}

// some returns entities but drafts.
func (s *Service) some(kind entity.Kind) transfer.Some[Entity] {
	return func(ctx context.Context, tenant string, ids []string) ([]Entity, error) {
		all, err := s.store.Some(ctx, tenant, kind, ids)
		return slices.DeleteFunc(all, func(e Entity) bool { return e.EditingID != nil }), err
	}
}

// heads locks the given entities that exist. It returns errs.Conflict for the id of a draft, but
// not in a deploy from another tenant, whose caller must not learn of drafts, and for a library
// with the id of an app's.
func (s *Service) heads(
	ctx context.Context, tenant string, kind entity.Kind, all []Entity, l entity.ImportOptions,
) ([]Entity, error) {
	ids := transfer.IDs(all, func(e Entity) string { return e.ID })
	if err := s.unreserved(ctx, tenant, kind, ids); err != nil {
		return nil, err
	}
	there, err := s.store.LockSome(ctx, tenant, kind, ids)
	for _, e := range there {
		if e.EditingID != nil && !l.CrossTenant {
			return nil, errs.New(errs.Conflict, "%s %s: this id belongs to a draft.", kind, e.ID)
		}
	}
	return there, err
}

// unreserved returns errs.Conflict for libraries with ids of Options.Reserved.
func (s *Service) unreserved(ctx context.Context, tenant string, kind entity.Kind, ids []string) error {
	if kind != Library || s.reserved == nil {
		return nil
	}
	reserved, err := s.reserved(ctx, tenant, ids)
	for _, id := range ids {
		if reserved[id] {
			return errs.New(
				errs.Conflict, "%s %s: this id belongs to the library of an app: import it with another id.",
				kind, id,
			)
		}
	}
	return err
}

// taken returns the ids of the entities with some natural ids by these.
func (s *Service) taken(
	ctx context.Context, tenant string, kind entity.Kind, naturals []string,
) (map[string]string, error) {
	at := make([]Lookup, len(naturals))
	for i, natural := range naturals {
		colon := strings.LastIndexByte(natural, ':')
		at[i] = Lookup{Owner: natural[:colon], Slug: natural[colon+1:]}
	}
	some, err := s.store.Slugs(ctx, tenant, kind, at)
	ids := make(map[string]string, len(some))
	for _, e := range some {
		ids[e.NaturalID()] = e.ID
	}
	return ids, err
}

// dropAll removes entities with their files and with what hangs on them.
func (s *Service) dropAll(ctx context.Context, tenant string, kind entity.Kind, ids []string) (int, error) {
	n, err := s.store.Remove(ctx, tenant, kind, ids)
	if err != nil {
		return 0, err
	}
	return n, s.removeFiles(ctx, tenant, kind, ids)
}
