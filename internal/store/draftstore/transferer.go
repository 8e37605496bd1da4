package draftstore

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"time"

	"github.com/tenantcontent/tenantcontent/internal/drafts"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/text/slug"
	"github.com/tenantcontent/tenantcontent/paging"
)

// IDs implements drafts.Store.
func (s *Store[T]) IDs(ctx context.Context, tenant string) ([]string, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows, err := c.Rows(ctx, `SELECT id FROM `+s.rows+` WHERE tenant_id = $1 AND `+s.listed+` ORDER BY id`, tenant)
	ids, err := bunx.Scan(rows, err, bunx.Text)
	return ids, bunx.Err(err, s.noun.Name)
}

// Some implements drafts.Store.
func (s *Store[T]) Some(ctx context.Context, tenant string, ids []string) ([]T, error) {
	return s.find(ctx, tenant, s.table, bunx.Lookup{}, ids)
}

// Heads implements drafts.Store.
func (s *Store[T]) Heads(ctx context.Context, tenant string, ids []string) ([]T, error) {
	return s.find(ctx, tenant, s.heads, bunx.Lookup{}, ids)
}

// LockSome implements drafts.Store.
func (s *Store[T]) LockSome(ctx context.Context, tenant string, ids []string) ([]T, error) {
	return s.find(ctx, tenant, s.heads, bunx.Lookup{Lock: true, Change: true}, ids)
}

// find reads the rows of t, which is table or s.heads, that have some ids.
func (s *Store[T]) find(
	ctx context.Context, tenant string, t *bunx.Table[Row[T]], l bunx.Lookup, ids []string,
) ([]T, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	l.Columns = t.Names
	l.Table, l.Where, l.Key = s.rows, `tenant_id = $1`, `id`
	rows, err := c.Find(ctx, l, ids, tenant)
	meter := paging.BatchMeter(ctx)
	read := func(rows *sql.Rows) (T, error) { return s.scan(t, tenant, rows) }
	all, err := bunx.ScanBatch(rows, err, read, func(e T) bool {
		full, _ := meter.Add(rowSize + s.noun.Size(e)) // WithBatch holds nothing, so Add does not fail
		return full
	})
	return all, bunx.Err(err, s.noun.Name)
}

// rowSize is the approximate size of a row without its long texts.
const rowSize = 1 << 10

// Libraries implements drafts.Store.
func (s *Store[T]) Libraries(ctx context.Context, tenant string, ids []string) (map[string]bool, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows, err := c.Rows(
		ctx, `SELECT library_id FROM `+s.rows+` WHERE tenant_id = $1 AND library_id `+c.OneOf(2), tenant,
		bunx.Keys(ids),
	)
	all, err := bunx.TextSet(rows, err)
	return all, bunx.Err(err, s.noun.Name)
}

// Exist implements drafts.Store.
func (s *Store[T]) Exist(ctx context.Context, tenant string, ids []string) (map[string]bool, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows, err := c.Rows(
		ctx, `SELECT id FROM `+s.rows+` WHERE tenant_id = $1 AND id `+c.OneOf(2), tenant, bunx.Keys(ids),
	)
	all, err := bunx.TextSet(rows, err)
	return all, bunx.Err(err, s.noun.Name)
}

// Slugs implements drafts.Store.
func (s *Store[T]) Slugs(ctx context.Context, tenant string, at []drafts.Lookup) ([]T, error) {
	if len(at) == 0 {
		return nil, nil
	}
	owners, slugs := make([]string, len(at)), make([]string, len(at))
	for i, p := range at {
		owners[i], slugs[i] = p.Owner, p.Slug
	}
	ctx, c := bunx.For(ctx, s.db, tenant)
	l := bunx.Lookup{
		Columns: s.heads.Names,
		Table:   s.rows,
		Where:   "tenant_id = $1 AND " + s.listed,
		Key:     "owner_id, slug",
	}
	rows, err := c.FindBy(ctx, l, [][]string{owners, slugs}, tenant)
	all, err := bunx.Scan(rows, err, s.scanner(tenant))
	return all, bunx.Err(err, s.noun.Name)
}

// PutAll implements drafts.Store. A row can take the slug of another row that is written with it.
// So the slugs of the rows in yield are removed first.
func (s *Store[T]) PutAll(ctx context.Context, tenant string, all []T, yield []string) error {
	if len(all) == 0 {
		return nil
	}
	return s.notifier.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		if len(yield) > 0 {
			_, err := c.Exec(ctx, `UPDATE `+s.rows+
				` SET slug = NULL WHERE tenant_id = $1 AND slug IS NOT NULL AND id `+c.OneOf(2),
				tenant, bunx.Keys(yield))
			if err != nil {
				return bunx.Err(err, s.noun.Name)
			}
		}
		return s.put(ctx, c, tenant, all, s.taken, s.table.OnConflict)
	})
}

// Owned implements drafts.Store.
func (s *Store[T]) Owned(ctx context.Context, tenant, owner string) (n int, err error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	err = c.One(
		ctx, s.noun.Name, `SELECT count(*) FROM `+s.rows+` WHERE tenant_id = $1 AND owner_id = $2`,
		[]any{tenant, owner}, &n,
	)
	return n, err
}

// Owners implements drafts.Store.
func (s *Store[T]) Owners(ctx context.Context, tenant string) ([]string, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows, err := c.Rows(ctx, `SELECT DISTINCT owner_id FROM `+s.rows+` WHERE tenant_id = $1`, tenant)
	owners, err := bunx.Scan(rows, err, bunx.Text)
	return owners, bunx.Err(err, s.noun.Name)
}

// RenameUsers implements drafts.Store.
func (s *Store[T]) RenameUsers(ctx context.Context, tenant string, names map[string]string) error {
	return s.notifier.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		for _, column := range []string{"owner_id", "editing_locked_by"} {
			if err := c.Rename(ctx, tenant, s.rows, column, names); err != nil {
				return bunx.Err(err, s.taken)
			}
		}
		return nil
	})
}

// OwnedDrafts implements drafts.Store.
func (s *Store[T]) OwnedDrafts(ctx context.Context, tenant, owner string) ([]T, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	if lock := c.ForChange(); lock != "" {
		rows, err := c.Rows(
			ctx,
			`SELECT id FROM `+s.rows+` WHERE tenant_id = $1 AND owner_id = $2 AND editing_id IS NULL ORDER BY id`+lock,
			tenant, owner,
		)
		if _, err := bunx.Scan(rows, err, bunx.Text); err != nil {
			return nil, bunx.Err(err, s.noun.Name)
		}
	}
	rows, err := c.Rows(ctx, `SELECT `+s.heads.Names+` FROM `+s.rows+
		` WHERE tenant_id = $1 AND owner_id = $2 AND editing_id IS NOT NULL ORDER BY id`+
		c.ForChange(), tenant, owner)
	all, err := bunx.Scan(rows, err, s.scanner(tenant))
	return all, bunx.Err(err, s.noun.Name)
}

// Reassign implements drafts.Store.
func (s *Store[T]) Reassign(ctx context.Context, tenant, from, to string, at time.Time) (moved []T, err error) {
	err = s.notifier.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		rows, err := c.Rows(
			ctx, `SELECT id FROM `+s.rows+` WHERE tenant_id = $1 AND owner_id = $2 ORDER BY id`+c.ForChange(),
			tenant, from,
		)
		if _, err := bunx.Scan(rows, err, bunx.Text); err != nil {
			return bunx.Err(err, s.noun.Name)
		}
		if err := s.renameClashes(ctx, c, tenant, from, to); err != nil {
			return err
		}
		rows, err = c.Rows(ctx, `UPDATE `+s.rows+
			` SET owner_id = $1, updated_at = $2 WHERE tenant_id = $3 AND owner_id = $4 RETURNING `+s.heads.Names,
			to, bunx.At(at), tenant, from)
		moved, err = bunx.Scan(rows, err, s.scanner(tenant))
		return bunx.Err(err, s.taken)
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(moved, func(a, b T) int { return strings.Compare(*s.noun.Fields(&a).ID, *s.noun.Fields(&b).ID) })
	return moved, nil
}

// renameClashes changes the slugs of entities of from that to also uses, each to the first of
// slug-2, slug-3… that neither uses.
func (s *Store[T]) renameClashes(ctx context.Context, c bunx.Conn, tenant, from, to string) error {
	slugs := `SELECT slug FROM ` + s.rows + ` WHERE tenant_id = $1 AND slug IS NOT NULL AND ` + s.listed +
		` AND owner_id `
	rows, err := c.Rows(ctx, `SELECT `+s.heads.Names+` FROM `+s.rows+` WHERE tenant_id = $1 AND owner_id = $2 AND `+
		s.listed+`
		AND slug IN (`+slugs+`= $3) ORDER BY id`, tenant, from, to)
	clash, err := bunx.Scan(rows, err, s.scanner(tenant))
	if err != nil || len(clash) == 0 {
		return bunx.Err(err, s.noun.Name)
	}
	taken := map[string]bool{}
	rows, err = c.Rows(ctx, slugs+`IN ($2, $3)`, tenant, from, to)
	_, err = bunx.Scan(rows, err, func(rows *sql.Rows) (slug string, err error) {
		err = rows.Scan(&slug)
		taken[slug] = true
		return slug, err
	})
	if err != nil {
		return bunx.Err(err, s.noun.Name)
	}
	for _, e := range clash {
		f := s.noun.Fields(&e)
		free := slug.FirstFree(**f.Slug, taken)
		taken[free] = true
		*f.Slug = &free
		_, err := c.Exec(
			ctx, `UPDATE `+s.rows+` SET slug = $1, search = $2 WHERE tenant_id = $3 AND id = $4`, free,
			search(f), tenant, *f.ID,
		)
		if err != nil {
			return bunx.Err(err, s.taken)
		}
	}
	return nil
}
