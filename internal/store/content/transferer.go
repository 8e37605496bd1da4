package bunstore

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"time"

	"github.com/tenantcontent/tenantcontent/content"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/text/fold"
	"github.com/tenantcontent/tenantcontent/internal/text/slug"
	"github.com/tenantcontent/tenantcontent/paging"
)

// IDs implements content.Store.
func (s *Store) IDs(ctx context.Context, tenant string, kind entity.Kind) ([]string, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows, err := c.Rows(ctx,
		`SELECT id FROM tc_entities WHERE tenant_id = $1 AND kind = $2 AND editing_id IS NULL AND NOT system
		ORDER BY id`, tenant, kind)
	ids, err := bunx.Scan(rows, err, bunx.Text)
	return ids, bunx.Err(err, content.Noun(kind))
}

// Some implements content.Store.
func (s *Store) Some(ctx context.Context, tenant string, kind entity.Kind, ids []string) ([]content.Entity, error) {
	return s.find(ctx, tenant, kind, bunx.Lookup{Columns: table.Names}, ids)
}

// Heads implements content.Store.
func (s *Store) Heads(ctx context.Context, tenant string, kind entity.Kind, ids []string) ([]content.Entity, error) {
	return s.find(ctx, tenant, kind, bunx.Lookup{Columns: heads}, ids)
}

// LockSome implements content.Store.
func (s *Store) LockSome(ctx context.Context, tenant string, kind entity.Kind, ids []string) ([]content.Entity, error) {
	return s.find(ctx, tenant, kind, bunx.Lookup{Columns: heads, Lock: true}, ids)
}

// find reads the rows of a kind that have some ids.
func (s *Store) find(
	ctx context.Context, tenant string, kind entity.Kind, l bunx.Lookup, ids []string,
) ([]content.Entity, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	l.Table, l.Where, l.Key = `tc_entities`, `tenant_id = $1 AND kind = $2`, `id`
	rows, err := c.Find(ctx, l, ids, tenant, kind)
	meter := paging.BatchMeter(ctx)
	all, err := bunx.ScanBatch(rows, err, scanner(tenant, kind), func(e content.Entity) bool {
		full, _ := meter.Add(rowSize + len(e.Data)) // WithBatch holds nothing, so Add does not fail
		return full
	})
	return all, bunx.Err(err, content.Noun(kind))
}

// rowSize is the approximate size of a row without its data.
const rowSize = 1 << 10

// Slugs implements content.Store.
func (s *Store) Slugs(
	ctx context.Context, tenant string, kind entity.Kind, at []content.Lookup,
) ([]content.Entity, error) {
	owners, slugs := make([]string, len(at)), make([]string, len(at))
	for i, p := range at {
		owners[i], slugs[i] = p.Owner, p.Slug
	}
	ctx, c := bunx.For(ctx, s.db, tenant)
	l := bunx.Lookup{
		Columns: heads,
		Table:   "tc_entities",
		Where:   "tenant_id = $1 AND kind = $2 AND editing_id IS NULL",
		Key:     "owner_id, slug",
	}
	rows, err := c.FindBy(ctx, l, [][]string{owners, slugs}, tenant, kind)
	all, err := bunx.Scan(rows, err, scanner(tenant, kind))
	return all, bunx.Err(err, content.Noun(kind))
}

// Transferable implements content.Store.
func (s *Store) Transferable(ctx context.Context, tenant string, keys []entity.Key) (map[entity.Key]bool, error) {
	ids := map[entity.Kind][]string{}
	for _, k := range keys {
		ids[k.Kind] = append(ids[k.Kind], k.ID)
	}
	there := map[entity.Key]bool{}
	for kind, some := range ids {
		all, err := s.find(ctx, tenant, kind, bunx.Lookup{Columns: heads}, some)
		if err != nil {
			return nil, err
		}
		for _, e := range all {
			if e.EditingID == nil && !e.System {
				there[entity.Key{Kind: kind, ID: e.ID}] = true
			}
		}
	}
	return there, nil
}

// PutAll implements content.Store. A row can take the slug of another row that is written with it.
// So the slugs of the rows in yield are removed first.
func (s *Store) PutAll(
	ctx context.Context, tenant string, kind entity.Kind, all []content.Entity, yield []string,
) error {
	if len(all) == 0 {
		return nil
	}
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		if len(yield) > 0 {
			_, err := c.Exec(ctx,
				`UPDATE tc_entities SET slug = NULL WHERE tenant_id = $1 AND kind = $2 AND slug IS NOT NULL AND id `+
					c.OneOf(3), tenant, kind, bunx.Keys(yield))
			if err != nil {
				return bunx.Err(err, content.Noun(kind))
			}
		}
		return put(ctx, c, tenant, kind, all, table.OnConflict)
	})
}

// Remove implements content.Store. It first locks the rows in the order of their ids. A transaction
// that writes a file waits, and then finds that the library does not exist.
func (s *Store) Remove(ctx context.Context, tenant string, kind entity.Kind, ids []string) (n int, err error) {
	if len(ids) == 0 {
		return 0, nil
	}
	err = bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) (err error) {
		if _, err := s.LockSome(ctx, tenant, kind, ids); err != nil {
			return err
		}
		n, err = remove(ctx, c, tenant, kind, ids)
		return err
	})
	return n, err
}

// Owned implements content.Store.
func (s *Store) Owned(ctx context.Context, tenant string, kind entity.Kind, owner string) (n int, err error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	err = c.One(ctx, content.Noun(kind),
		`SELECT count(*) FROM tc_entities WHERE tenant_id = $1 AND owner_id = $2 AND kind = $3`,
		[]any{tenant, owner, kind}, &n)
	return n, err
}

// Owners implements content.Store.
func (s *Store) Owners(ctx context.Context, tenant string, kind entity.Kind) ([]string, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows, err := c.Rows(
		ctx, `SELECT DISTINCT owner_id FROM tc_entities WHERE tenant_id = $1 AND kind = $2`, tenant, kind,
	)
	owners, err := bunx.Scan(rows, err, bunx.Text)
	return owners, bunx.Err(err, content.Noun(kind))
}

// RenameOwners implements content.Store.
func (s *Store) RenameOwners(ctx context.Context, tenant string, kind entity.Kind, names map[string]string) error {
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		return bunx.Err(
			c.Rename(ctx, tenant, "tc_entities", "owner_id", names, bunx.Is{Column: "kind", Value: kind}),
			slugTaken(kind),
		)
	})
}

// DeleteDrafts implements content.Store.
func (s *Store) DeleteDrafts(
	ctx context.Context, tenant string, kind entity.Kind, owner string,
) (ended []string, err error) {
	err = bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		rows, err := c.Rows(ctx,
			`DELETE FROM tc_entities WHERE tenant_id = $1 AND owner_id = $2 AND kind = $3 AND editing_id IS NOT NULL
			RETURNING id`, tenant, owner, kind)
		ended, err = bunx.Scan(rows, err, bunx.Text)
		return bunx.Err(err, content.Noun(kind))
	})
	return ended, err
}

// Reassign implements content.Store.
func (s *Store) Reassign(
	ctx context.Context, tenant string, kind entity.Kind, from, to string, at time.Time,
) (moved []content.Entity, err error) {
	err = bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		if err := renameClashes(ctx, c, tenant, kind, from, to); err != nil {
			return err
		}
		rows, err := c.Rows(ctx,
			`UPDATE tc_entities SET owner_id = $1, updated_at = $2 WHERE tenant_id = $3 AND owner_id = $4 AND kind = $5
			RETURNING `+heads, to, bunx.At(at), tenant, from, kind)
		moved, err = bunx.Scan(rows, err, scanner(tenant, kind))
		return bunx.Err(err, slugTaken(kind))
	})
	slices.SortFunc(moved, func(a, b content.Entity) int { return strings.Compare(a.ID, b.ID) })
	return moved, err
}

// renameClashes changes the slugs of entities of from that to also uses, each to the first of
// slug-2, slug-3… that neither uses.
func renameClashes(ctx context.Context, c bunx.Conn, tenant string, kind entity.Kind, from, to string) error {
	const slugs = `SELECT slug FROM tc_entities WHERE tenant_id = $1 AND kind = $2 AND slug IS NOT NULL ` +
		`AND editing_id IS NULL AND owner_id `
	rows, err := c.Rows(ctx, `SELECT `+heads+
		` FROM tc_entities WHERE tenant_id = $1 AND kind = $2 AND owner_id = $3 AND editing_id IS NULL
		AND slug IN (`+slugs+`= $4) ORDER BY id`+c.ForUpdate(), tenant, kind, from, to)
	clash, err := bunx.Scan(rows, err, scanner(tenant, kind))
	if err != nil || len(clash) == 0 {
		return bunx.Err(err, content.Noun(kind))
	}
	taken := map[string]bool{}
	rows, err = c.Rows(ctx, slugs+`IN ($3, $4)`, tenant, kind, from, to)
	_, err = bunx.Scan(rows, err, func(rows *sql.Rows) (slug string, err error) {
		err = rows.Scan(&slug)
		taken[slug] = true
		return slug, err
	})
	if err != nil {
		return bunx.Err(err, content.Noun(kind))
	}
	for _, e := range clash {
		free := slug.FirstFree(*e.Slug, taken)
		taken[free] = true
		_, err := c.Exec(ctx,
			`UPDATE tc_entities SET slug = $1, search = $2 WHERE tenant_id = $3 AND kind = $4 AND id = $5`,
			free, fold.Search(e.Name, free, or(e.Description)), tenant, kind, e.ID)
		if err != nil {
			return bunx.Err(err, slugTaken(kind))
		}
	}
	return nil
}
