// Package bunstore stores bundles in PostgreSQL or SQLite. The root imports it.
package bunstore

import (
	"context"
	"slices"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/bundles"
	"github.com/tenantcontent/tenantcontent/internal/secure/guard"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/text/fold"
	"github.com/tenantcontent/tenantcontent/internal/text/uuids"
	"github.com/tenantcontent/tenantcontent/paging"
)

// Store implements bundles.Store.
type Store struct{ db *bun.DB }

// New returns a Store. The tables must exist: see tenantcontent.Migrate.
func New(db *bun.DB) *Store { return &Store{db: db} }

// Count implements bundles.Store.
func (s *Store) Count(ctx context.Context, tenant string) (int, error) {
	return bunx.Count(ctx, s.db, tenant, "tc_bundles")
}

// bundle is a row of tc_bundles.
type bundle struct {
	bundles.Bundle
	label string // as it is stored

	entries, data int // of measured: number of entries, and bytes of their data
}

// entryBytes is the approximate size of an entry without its data.
const entryBytes = 384

// bytes returns the approximate size of the entries.
func (r bundle) bytes() int { return r.entries*entryBytes + r.data }

func (r bundle) bundle() bundles.Bundle { return r.Bundle }

var columns = []bunx.Column[bundle]{
	{Name: "tenant_id", Key: true, Field: func(b *bundle) any { return &b.Tenant }},
	{Name: "id", Key: true, Field: func(b *bundle) any { return &b.ID }},
	{Name: "name", Field: func(b *bundle) any { return &b.Name }},
	{Name: "slug", Field: func(b *bundle) any { return &b.Slug }},
	{Name: "label", Field: func(b *bundle) any {
		return &b.label
	}, Value: func(b *bundle) any { return fold.Text(b.Name) }},
	{Name: "search", Value: func(b *bundle) any { return search(b.Bundle) }},
	{Name: "description", Field: func(b *bundle) any { return &b.Description }},
	{Name: "created_at", Once: true, Field: func(b *bundle) any { return bunx.TimeOf(&b.CreatedAt) }},
	{Name: "updated_at", Field: func(b *bundle) any { return bunx.TimeOf(&b.UpdatedAt) }},
}

// table has the columns of a bundle.
var table = bunx.NewTable("tc_bundles", "b", columns)

// measured also has the size of a bundle's entries.
var measured = bunx.NewTable("tc_bundles", "b", append(slices.Clone(columns),
	bunx.Column[bundle]{Read: bunx.Total("bundle_entries", "= b.id"), Field: func(b *bundle) any { return &b.entries }},
	bunx.Column[bundle]{Read: bunx.Total("bundle_data", "= b.id"), Field: func(b *bundle) any { return &b.data }}))

func search(b bundles.Bundle) string {
	description := ""
	if b.Description != nil {
		description = *b.Description
	}
	return fold.Search(b.Name, b.Slug, description)
}

var list = bunx.List[bundle]{
	Table: measured, Key: "id", Order: "createdAt", Search: "search",
	Sorts: []bunx.Sort[bundle]{
		{Field: "createdAt", Column: "created_at", Value: func(r bundle) string {
			return bunx.At(r.CreatedAt).String()
		}},
		{Field: "name", Column: "label", Value: func(r bundle) string { return r.label }},
		{Field: "updatedAt", Column: "updated_at", Value: func(r bundle) string {
			return bunx.At(r.UpdatedAt).String()
		}},
	},
}

const slugTaken = "A bundle with this slug"

// InTx implements bundles.Store.
func (s *Store) InTx(ctx context.Context, fn func(context.Context) error) error {
	return bunx.InTx(bunx.WithWork(ctx, bunx.Long), s.db, fn)
}

// InTransaction implements bundles.Store.
func (s *Store) InTransaction(ctx context.Context) bool {
	_, c := bunx.For(ctx, s.db, bunx.Tenant(ctx))
	return c.InTx()
}

// DryRun implements bundles.Store.
func (s *Store) DryRun(ctx context.Context, fn func(context.Context) error) error {
	return bunx.DryRun(bunx.WithWork(ctx, bunx.Long), s.db, fn)
}

// Lock implements bundles.Store.
func (s *Store) Lock(ctx context.Context, tenant string) error {
	return bunx.LockTenant(ctx, s.db, tenant)
}

// Get implements bundles.Store.
func (s *Store) Get(ctx context.Context, tenant, key string) (bundles.Bundle, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	return get(ctx, c, tenant, key, "")
}

// Find implements bundles.Store.
func (s *Store) Find(ctx context.Context, tenant, key string) (bundles.Bundle, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	return find(ctx, c, tenant, key, "")
}

var (
	selectByID   = table.Select(`WHERE tenant_id = $1 AND id = $2`)
	selectBySlug = table.Select(`WHERE tenant_id = $1 AND slug = $2`)
)

func find(ctx context.Context, c bunx.Conn, tenant, key, lock string) (bundles.Bundle, error) {
	query := selectBySlug
	if uuids.Valid(key) {
		query = selectByID
	}
	r, err := table.Scan(c.Row(ctx, query+lock, tenant, key))
	if err != nil {
		return bundles.Bundle{}, bunx.Err(err, "Bundle")
	}
	return r.Bundle, nil
}

func get(ctx context.Context, c bunx.Conn, tenant, key, lock string) (bundles.Bundle, error) {
	b, err := find(ctx, c, tenant, key, lock)
	if err != nil {
		return bundles.Bundle{}, err
	}
	one := []bundles.Bundle{b}
	return one[0], addEntries(ctx, c, tenant, one, paging.NewWholeMeter(ctx))
}

// fitting returns the number of bundles whose entries fill a page, at least 1.
func fitting(ctx context.Context, some []bundle) (int, error) {
	meter := paging.NewMeter(ctx)
	for i, b := range some {
		if full, err := meter.Add(b.bytes()); full || err != nil {
			return i + 1, err
		}
	}
	return len(some), nil
}

// addEntries reads the entries of bundles with one statement.
func addEntries(ctx context.Context, c bunx.Conn, tenant string, some []bundles.Bundle, meter *paging.Meter) error {
	if len(some) == 0 {
		return nil
	}
	ids, place := make([]string, len(some)), make(map[string]int, len(some))
	for i := range some {
		ids[i], place[some[i].ID], some[i].Entries = some[i].ID, i, []bundles.Entry{}
	}
	rows, _, err := entryTable.Bounded(ctx, entryTable.Rows(c).Where("e.tenant_id = ?", tenant).
		Where("e.bundle_id IN (?)", bun.List(ids)).OrderExpr("e.bundle_id, e.created_at, e.id"), meter)
	if err != nil {
		return bunx.Err(err, "Entry")
	}
	for _, r := range rows {
		b := &some[place[r.BundleID]]
		b.Entries = append(b.Entries, r)
	}
	return nil
}

// Page implements bundles.Store.
func (s *Store) Page(ctx context.Context, tenant string, q paging.Query) (paging.Page[bundles.Bundle], error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	all := bunx.Part{
		Where: "b.tenant_id = $1",
		Args:  []any{tenant},
		Total: bunx.Total("bundles", bunx.Whole),
		Index: &bunx.Index{List: "bundles"},
	}
	key := func(r bundle) string { return r.ID }
	found, err := bunx.Page(ctx, c, list, all, key, q)
	if err != nil {
		return paging.Page[bundles.Bundle]{}, err
	}
	n, err := fitting(ctx, found.Rows)
	if err != nil {
		return paging.Page[bundles.Bundle]{}, err
	}
	if n < len(found.Rows) {
		if err := list.Cut(&found, n, key, q); err != nil {
			return paging.Page[bundles.Bundle]{}, err
		}
	}
	page := paging.Map(found, bundle.bundle)
	return page, addEntries(ctx, c, tenant, page.Rows, nil) // fitting has counted their bytes
}

// All implements bundles.Store.
func (s *Store) All(ctx context.Context, tenant string) ([]bundles.Bundle, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows, _, err := table.Bounded(ctx, table.Rows(c).Where("b.tenant_id = ?", tenant).
		OrderExpr("b.created_at, b.id"), paging.NewWholeMeter(ctx))
	all := make([]bundles.Bundle, len(rows))
	for i, r := range rows {
		all[i] = r.Bundle
	}
	return all, bunx.Err(err, "Bundle")
}

// Insert implements bundles.Store.
func (s *Store) Insert(ctx context.Context, tenant string, b bundles.Bundle) error {
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		b.Tenant = tenant
		_, err := table.Insert(ctx, c, "", bundle{Bundle: b})
		return bunx.Err(err, slugTaken)
	})
}

// Update implements bundles.Store.
func (s *Store) Update(
	ctx context.Context, tenant, key string, edit func(*bundles.Bundle) error,
) (b bundles.Bundle, err error) {
	err = bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		if b, err = get(ctx, c, tenant, key, c.ForUpdate()); err != nil {
			return err
		}
		was, row := bundle{Bundle: b}, bundle{Bundle: b}
		if err := edit(&row.Bundle); err != nil {
			return err
		}
		if err := guard.Check(ctx, "bundle", was); err != nil {
			return err
		}
		if err := table.Restore(&row, &was); err != nil {
			return err
		}
		row.Entries = was.Entries // they are in another table
		b = row.Bundle
		_, err := table.Update(ctx, c, &row)
		return bunx.Err(err, slugTaken)
	})
	if err != nil {
		return bundles.Bundle{}, err
	}
	return b, nil
}

// Delete implements bundles.Store.
func (s *Store) Delete(ctx context.Context, tenant, key string) error {
	column := "slug"
	if uuids.Valid(key) {
		column = "id"
	}
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		if guard.Of(ctx, "bundle") != nil {
			b, err := find(ctx, c, tenant, key, c.ForUpdate())
			if err != nil {
				return err
			}
			if err := guard.Check(ctx, "bundle", b); err != nil {
				return err
			}
		}
		n, err := c.Exec(ctx, `DELETE FROM tc_bundles WHERE tenant_id = $1 AND `+column+` = $2`, tenant, key)
		return bunx.Found(n, err, "Bundle")
	})
}
