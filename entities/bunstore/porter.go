package bunstore

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/tenantcontent/tenantcontent/entities"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/bunx"
	"github.com/tenantcontent/tenantcontent/internal/fold"
)

// IDs implements entities.Store.
func (s *Store) IDs(ctx context.Context, tenant string, kind entity.Kind) ([]string, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows, err := c.Rows(ctx, `SELECT id FROM tc_entities WHERE tenant_id = $1 AND kind = $2 AND editing_id IS NULL AND NOT system
		ORDER BY id`, tenant, kind)
	ids, err := bunx.Scan(rows, err, func(rows *sql.Rows) (id string, err error) { return id, rows.Scan(&id) })
	return ids, bunx.Err(err, entities.Noun(kind))
}

// Some implements entities.Store.
func (s *Store) Some(ctx context.Context, tenant string, kind entity.Kind, ids []string) ([]entities.Entity, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	return some(ctx, c, whole, tenant, kind, `id`, ids, "")
}

// Heads implements entities.Store.
func (s *Store) Heads(ctx context.Context, tenant string, kind entity.Kind, ids []string) ([]entities.Entity, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	return some(ctx, c, heads, tenant, kind, `id`, ids, ` ORDER BY id`+c.ForUpdate())
}

// Slugs implements entities.Store.
func (s *Store) Slugs(ctx context.Context, tenant string, kind entity.Kind, slugs []string) ([]entities.Entity, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	return some(ctx, c, heads, tenant, kind, `editing_id IS NULL AND slug`, slugs, "")
}

// some reads the rows of a kind with one of some values in a column.
func some(ctx context.Context, c bunx.Conn, columns, tenant string, kind entity.Kind, column string, values []string, rest string) ([]entities.Entity, error) {
	if len(values) == 0 {
		return nil, nil
	}
	rows, err := c.Rows(ctx, `SELECT `+columns+` FROM tc_entities WHERE tenant_id = $1 AND kind = $2 AND `+column+` IN `+
		bunx.In(3, len(values))+rest, bunx.Args(values, tenant, kind)...)
	all, err := bunx.Scan(rows, err, scanner(tenant, kind))
	return all, bunx.Err(err, entities.Noun(kind))
}

// Shippable implements entities.Store. Each kind is asked by its own, so that the primary key serves all of it.
func (s *Store) Shippable(ctx context.Context, tenant string, ids []string) (map[entity.Key]bool, error) {
	there := map[entity.Key]bool{}
	if len(ids) == 0 {
		return there, nil
	}
	kinds := make([]string, 0, len(entities.Kinds()))
	for _, k := range entities.Kinds() {
		kinds = append(kinds, string(k.Kind))
	}
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows, err := c.Rows(ctx, `SELECT kind, id FROM tc_entities WHERE tenant_id = $1 AND kind IN `+bunx.In(2, len(kinds))+
		` AND id IN `+bunx.In(2+len(kinds), len(ids))+` AND editing_id IS NULL AND NOT system`,
		append(bunx.Args(kinds, tenant), bunx.Args(ids)...)...)
	_, err = bunx.Scan(rows, err, func(rows *sql.Rows) (k entity.Key, err error) {
		err = rows.Scan(&k.Kind, &k.ID)
		there[k] = true
		return k, err
	})
	return there, bunx.Err(err, "Entity")
}

// PutAll implements entities.Store. A slug may pass from one row to another that is written with it, so the slugs of the
// rows that are there give way first.
func (s *Store) PutAll(ctx context.Context, tenant string, kind entity.Kind, all []entities.Entity, there []string) error {
	if len(all) == 0 {
		return nil
	}
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		if len(there) > 0 {
			_, err := c.Exec(ctx, `UPDATE tc_entities SET slug = NULL WHERE tenant_id = $1 AND kind = $2 AND slug IS NOT NULL AND id IN `+
				bunx.In(3, len(there)), bunx.Args(there, tenant, kind)...)
			if err != nil {
				return bunx.Err(err, entities.Noun(kind))
			}
		}
		return put(ctx, c, tenant, kind, all, ` ON CONFLICT (tenant_id, kind, id) DO UPDATE SET name = excluded.name, label = excluded.label,
			search = excluded.search, slug = excluded.slug, description = excluded.description, owner_id = excluded.owner_id,
			data = excluded.data, source = excluded.source, source_id = excluded.source_id, updated_at = excluded.updated_at`)
	})
}

// Remove implements entities.Store. The rows are locked in the order of their ids first: a file that is just being
// written waits, and then finds no library.
func (s *Store) Remove(ctx context.Context, tenant string, kind entity.Kind, ids []string) (n int, blobs []string, err error) {
	if len(ids) == 0 {
		return 0, nil, nil
	}
	err = bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) (err error) {
		if _, err := some(ctx, c, heads, tenant, kind, `id`, ids, ` ORDER BY id`+c.ForUpdate()); err != nil {
			return err
		}
		n, blobs, err = remove(ctx, c, tenant, kind, ids)
		return err
	})
	return n, blobs, err
}

// Owned implements entities.Store.
func (s *Store) Owned(ctx context.Context, tenant string, kind entity.Kind, owner string) (n int, err error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	err = c.One(ctx, entities.Noun(kind), `SELECT count(*) FROM tc_entities WHERE tenant_id = $1 AND owner_id = $2 AND kind = $3`,
		[]any{tenant, owner, kind}, &n)
	return n, err
}

// Reassign implements entities.Store.
func (s *Store) Reassign(ctx context.Context, tenant string, kind entity.Kind, from, to string, endDrafts bool, at time.Time) (moved []entities.Entity, err error) {
	err = bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		if endDrafts {
			_, err := c.Exec(ctx, `DELETE FROM tc_entities WHERE tenant_id = $1 AND owner_id = $2 AND kind = $3 AND editing_id IS NOT NULL`,
				tenant, from, kind)
			if err != nil {
				return bunx.Err(err, entities.Noun(kind))
			}
		}
		rows, err := c.Rows(ctx, `SELECT `+heads+` FROM tc_entities WHERE tenant_id = $1 AND owner_id = $2 AND kind = $3
			ORDER BY id`+c.ForUpdate(), tenant, from, kind)
		if moved, err = bunx.Scan(rows, err, scanner(tenant, kind)); err != nil || len(moved) == 0 {
			return bunx.Err(err, entities.Noun(kind))
		}
		if err := s.rename(ctx, c, tenant, kind, moved, to); err != nil {
			return err
		}
		for i := range moved {
			moved[i].OwnerID, moved[i].UpdatedAt = to, at
		}
		_, err = c.Exec(ctx, `UPDATE tc_entities SET owner_id = $1, updated_at = $2 WHERE tenant_id = $3 AND owner_id = $4 AND kind = $5`,
			to, bunx.At(at), tenant, from, kind)
		return bunx.Err(err, slugTaken(kind))
	})
	return moved, err
}

// rename gives the pieces whose slugs their new owner has already the first of slug-2, slug-3… that is free.
func (s *Store) rename(ctx context.Context, c bunx.Conn, tenant string, kind entity.Kind, moved []entities.Entity, to string) error {
	rows, err := c.Rows(ctx, `SELECT slug FROM tc_entities WHERE tenant_id = $1 AND owner_id = $2 AND kind = $3 AND slug IS NOT NULL
		AND editing_id IS NULL`, tenant, to, kind)
	slugs, err := bunx.Scan(rows, err, func(rows *sql.Rows) (slug string, err error) { return slug, rows.Scan(&slug) })
	if err != nil {
		return bunx.Err(err, entities.Noun(kind))
	}
	taken, clash := map[string]bool{}, map[string]bool{}
	for _, slug := range slugs {
		taken[slug], clash[slug] = true, true
	}
	for _, e := range moved {
		if e.Slug != nil {
			taken[*e.Slug] = true
		}
	}
	for i, e := range moved {
		if e.Slug == nil || e.EditingID != nil || !clash[*e.Slug] {
			continue
		}
		free := firstFree(*e.Slug, taken)
		taken[free], moved[i].Slug = true, &free
		_, err := c.Exec(ctx, `UPDATE tc_entities SET slug = $1, search = $2 WHERE tenant_id = $3 AND kind = $4 AND id = $5`,
			free, fold.Search(e.Name, free, or(e.Description)), tenant, kind, e.ID)
		if err != nil {
			return bunx.Err(err, slugTaken(kind))
		}
	}
	return nil
}

// firstFree gives the first of slug-2, slug-3… that is not taken, within the 128 characters of a slug.
func firstFree(slug string, taken map[string]bool) string {
	for n := 2; ; n++ {
		end := fmt.Sprintf("-%d", n)
		try := slug[:min(len(slug), 128-len(end))] + end
		if !taken[try] {
			return try
		}
	}
}
