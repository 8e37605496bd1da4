package bunstore

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"time"

	"github.com/tenantcontent/tenantcontent/apps"
	"github.com/tenantcontent/tenantcontent/internal/bunx"
	"github.com/tenantcontent/tenantcontent/internal/slug"
	"github.com/tenantcontent/tenantcontent/paging"
)

// IDs implements apps.Store.
func (s *Store) IDs(ctx context.Context, tenant string) ([]string, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows, err := c.Rows(ctx, `SELECT id FROM tc_apps WHERE tenant_id = $1 AND `+listed+` ORDER BY id`, tenant)
	ids, err := bunx.Scan(rows, err, bunx.Text)
	return ids, bunx.Err(err, noun)
}

// Some implements apps.Store.
func (s *Store) Some(ctx context.Context, tenant string, ids []string) ([]apps.App, error) {
	return s.find(ctx, tenant, table, bunx.Lookup{}, ids)
}

// Heads implements apps.Store.
func (s *Store) Heads(ctx context.Context, tenant string, ids []string) ([]apps.App, error) {
	return s.find(ctx, tenant, heads, bunx.Lookup{}, ids)
}

// LockSome implements apps.Store.
func (s *Store) LockSome(ctx context.Context, tenant string, ids []string) ([]apps.App, error) {
	return s.find(ctx, tenant, heads, bunx.Lookup{Lock: true, Change: true}, ids)
}

// find reads the rows of t, which is table or heads, that have some ids.
func (s *Store) find(ctx context.Context, tenant string, t *bunx.Table[row], l bunx.Lookup, ids []string) ([]apps.App, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	l.Columns = t.Names
	l.Table, l.Where, l.Key = `tc_apps`, `tenant_id = $1`, `id`
	rows, err := c.Find(ctx, l, ids, tenant)
	meter := paging.BatchMeter(ctx)
	read := func(rows *sql.Rows) (apps.App, error) { return scan(t, tenant, rows) }
	all, err := bunx.ScanBatch(rows, err, read, func(a apps.App) bool {
		full, _ := meter.Add(rowSize + len(a.Defn) + len(a.Settings) + len(a.Sealed)) // it holds nothing
		return full
	})
	return all, bunx.Err(err, noun)
}

// Using implements apps.Store. Tags and datasets are seldom deleted, so all apps that have some are read.
func (s *Store) Using(ctx context.Context, tenant string, tags, datasets []string) ([]string, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows, err := c.Rows(ctx, `SELECT id, tags, datasets FROM tc_apps WHERE tenant_id = $1 AND (tags <> '[]' OR datasets <> '[]') ORDER BY id`, tenant)
	all, err := bunx.Scan(rows, err, func(rows *sql.Rows) (a apps.App, err error) {
		return a, rows.Scan(&a.ID, bunx.JSONArray(&a.Tags), bunx.JSONArray(&a.Datasets))
	})
	var ids []string
	for _, a := range all {
		if slices.ContainsFunc(a.Tags, func(tag string) bool { return slices.Contains(tags, tag) }) ||
			slices.ContainsFunc(a.Datasets, func(d apps.Dataset) bool { return slices.Contains(datasets, d.DatasetID) }) {
			ids = append(ids, a.ID)
		}
	}
	return ids, bunx.Err(err, noun)
}

// rowSize is about what a row has beside its long texts.
const rowSize = 1 << 10

// Libraries implements apps.Store.
func (s *Store) Libraries(ctx context.Context, tenant string, ids []string) (map[string]bool, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows, err := c.Rows(ctx, `SELECT library_id FROM tc_apps WHERE tenant_id = $1 AND library_id IN `+c.Among(2, 1), tenant, bunx.Keys(ids))
	found, err := bunx.Scan(rows, err, bunx.Text)
	all := make(map[string]bool, len(found))
	for _, id := range found {
		all[id] = true
	}
	return all, bunx.Err(err, noun)
}

// Slugs implements apps.Store.
func (s *Store) Slugs(ctx context.Context, tenant string, at []apps.Lookup) ([]apps.App, error) {
	if len(at) == 0 {
		return nil, nil
	}
	owners, slugs := make([]string, len(at)), make([]string, len(at))
	for i, p := range at {
		owners[i], slugs[i] = p.Owner, p.Slug
	}
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows, err := c.Rows(ctx, `SELECT `+heads.Names+` FROM tc_apps WHERE tenant_id = $1 AND `+listed+` AND (owner_id, slug) IN `+c.Among(2, 2),
		tenant, bunx.Keys(owners, slugs))
	all, err := bunx.Scan(rows, err, scanner(tenant))
	return all, bunx.Err(err, noun)
}

// PutAll implements apps.Store. A slug may pass from one row to another that is written with it, so those of yield
// give way first.
func (s *Store) PutAll(ctx context.Context, tenant string, all []apps.App, yield []string) error {
	if len(all) == 0 {
		return nil
	}
	return s.write(ctx, tenant, func(ctx context.Context, c bunx.Conn) error {
		if len(yield) > 0 {
			_, err := c.Exec(ctx, `UPDATE tc_apps SET slug = NULL WHERE tenant_id = $1 AND slug IS NOT NULL AND id IN `+c.Among(2, 1),
				tenant, bunx.Keys(yield))
			if err != nil {
				return bunx.Err(err, noun)
			}
		}
		return put(ctx, c, tenant, all, slugTaken, table.OnConflict)
	})
}

// Owned implements apps.Store.
func (s *Store) Owned(ctx context.Context, tenant, owner string) (n int, err error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	err = c.One(ctx, noun, `SELECT count(*) FROM tc_apps WHERE tenant_id = $1 AND owner_id = $2`, []any{tenant, owner}, &n)
	return n, err
}

// Owners implements apps.Store.
func (s *Store) Owners(ctx context.Context, tenant string) ([]string, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows, err := c.Rows(ctx, `SELECT DISTINCT owner_id FROM tc_apps WHERE tenant_id = $1`, tenant)
	owners, err := bunx.Scan(rows, err, bunx.Text)
	return owners, bunx.Err(err, noun)
}

// RenameUsers implements apps.Store.
func (s *Store) RenameUsers(ctx context.Context, tenant string, names map[string]string) error {
	return s.write(ctx, tenant, func(ctx context.Context, c bunx.Conn) error {
		for _, column := range []string{"owner_id", "editing_locked_by"} {
			if err := c.Rename(ctx, tenant, "tc_apps", column, names); err != nil {
				return bunx.Err(err, slugTaken)
			}
		}
		return nil
	})
}

// OwnedDrafts implements apps.Store.
func (s *Store) OwnedDrafts(ctx context.Context, tenant, owner string) ([]apps.App, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	if lock := c.ForChange(); lock != "" {
		rows, err := c.Rows(ctx, `SELECT id FROM tc_apps WHERE tenant_id = $1 AND owner_id = $2 AND editing_id IS NULL ORDER BY id`+lock, tenant, owner)
		if _, err := bunx.Scan(rows, err, bunx.Text); err != nil {
			return nil, bunx.Err(err, noun)
		}
	}
	rows, err := c.Rows(ctx, `SELECT `+heads.Names+` FROM tc_apps WHERE tenant_id = $1 AND owner_id = $2 AND editing_id IS NOT NULL ORDER BY id`+
		c.ForChange(), tenant, owner)
	all, err := bunx.Scan(rows, err, scanner(tenant))
	return all, bunx.Err(err, noun)
}

// Reassign implements apps.Store.
func (s *Store) Reassign(ctx context.Context, tenant, from, to string, at time.Time) (moved []apps.App, err error) {
	err = s.write(ctx, tenant, func(ctx context.Context, c bunx.Conn) error {
		rows, err := c.Rows(ctx, `SELECT id FROM tc_apps WHERE tenant_id = $1 AND owner_id = $2 ORDER BY id`+c.ForChange(), tenant, from)
		if _, err := bunx.Scan(rows, err, bunx.Text); err != nil {
			return bunx.Err(err, noun)
		}
		if err := renameClashes(ctx, c, tenant, from, to); err != nil {
			return err
		}
		rows, err = c.Rows(ctx, `UPDATE tc_apps SET owner_id = $1, updated_at = $2 WHERE tenant_id = $3 AND owner_id = $4 RETURNING `+heads.Names,
			to, bunx.At(at), tenant, from)
		moved, err = bunx.Scan(rows, err, scanner(tenant))
		return bunx.Err(err, slugTaken)
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(moved, func(a, b apps.App) int { return strings.Compare(a.ID, b.ID) })
	return moved, nil
}

// renameClashes sets the slugs of those apps of from whose slugs to has already, each to the first of slug-2, slug-3… that neither has.
func renameClashes(ctx context.Context, c bunx.Conn, tenant, from, to string) error {
	const slugs = `SELECT slug FROM tc_apps WHERE tenant_id = $1 AND slug IS NOT NULL AND ` + listed + ` AND owner_id `
	rows, err := c.Rows(ctx, `SELECT `+heads.Names+` FROM tc_apps WHERE tenant_id = $1 AND owner_id = $2 AND `+listed+`
		AND slug IN (`+slugs+`= $3) ORDER BY id`, tenant, from, to)
	clash, err := bunx.Scan(rows, err, scanner(tenant))
	if err != nil || len(clash) == 0 {
		return bunx.Err(err, noun)
	}
	taken := map[string]bool{}
	rows, err = c.Rows(ctx, slugs+`IN ($2, $3)`, tenant, from, to)
	_, err = bunx.Scan(rows, err, func(rows *sql.Rows) (slug string, err error) {
		err = rows.Scan(&slug)
		taken[slug] = true
		return slug, err
	})
	if err != nil {
		return bunx.Err(err, noun)
	}
	for _, a := range clash {
		free := slug.FirstFree(*a.Slug, taken)
		taken[free] = true
		a.Slug = &free
		_, err := c.Exec(ctx, `UPDATE tc_apps SET slug = $1, search = $2 WHERE tenant_id = $3 AND id = $4`, free, search(a), tenant, a.ID)
		if err != nil {
			return bunx.Err(err, slugTaken)
		}
	}
	return nil
}
