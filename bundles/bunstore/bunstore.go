// Package bunstore stores bundles in PostgreSQL or SQLite. The root imports it.
package bunstore

import (
	"context"
	"errors"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/bundles"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/bunx"
	"github.com/tenantcontent/tenantcontent/internal/fold"
	"github.com/tenantcontent/tenantcontent/internal/guard"
	"github.com/tenantcontent/tenantcontent/internal/uuids"
	"github.com/tenantcontent/tenantcontent/paging"
)

// Store implements bundles.Store.
type Store struct{ db *bun.DB }

// New returns a Store. The tables must be there: see tenantcontent.Migrate.
func New(db *bun.DB) *Store { return &Store{db: db} }

// bundle is the table's shape.
type bundle struct {
	bun.BaseModel `bun:"table:tc_bundles,alias:b"`

	TenantID    string `bun:",pk"`
	ID          string `bun:"id,pk"`
	Name        string
	Slug        string
	Label       string
	Search      string
	Description *string
	CreatedAt   bunx.Time
	UpdatedAt   bunx.Time
}

func bundleRow(tenant string, b bundles.Bundle) bundle {
	description := ""
	if b.Description != nil {
		description = *b.Description
	}
	return bundle{
		TenantID: tenant, ID: b.ID, Name: b.Name, Slug: b.Slug, Label: fold.Text(b.Name),
		Search: fold.Search(b.Name, b.Slug, description), Description: b.Description,
		CreatedAt: bunx.At(b.CreatedAt), UpdatedAt: bunx.At(b.UpdatedAt),
	}
}

func (r bundle) bundle() bundles.Bundle {
	return bundles.Bundle{
		Tenant: r.TenantID, ID: r.ID, Name: r.Name, Slug: r.Slug, Description: r.Description,
		CreatedAt: r.CreatedAt.Time, UpdatedAt: r.UpdatedAt.Time,
	}
}

var list = bunx.List[bundle]{
	Key: "id", Order: "createdAt", Search: "search",
	Sorts: []bunx.Sort[bundle]{
		{Field: "createdAt", Column: "created_at", Value: func(r bundle) string { return r.CreatedAt.String() }},
		{Field: "name", Column: "label", Value: func(r bundle) string { return r.Label }},
		{Field: "updatedAt", Column: "updated_at", Value: func(r bundle) string { return r.UpdatedAt.String() }},
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
	_, running := c.IDB.(bun.Tx)
	return running
}

// errRehearsed ends a rehearsal that went well.
var errRehearsed = errors.New("rehearsed")

// RunAndRollBack implements bundles.Store.
func (s *Store) RunAndRollBack(ctx context.Context, fn func(context.Context) error) error {
	if s.InTransaction(ctx) {
		return errs.New(errs.Invalid, "A dry run must not run in another transaction.")
	}
	err := s.InTx(ctx, func(ctx context.Context) error {
		if err := fn(ctx); err != nil {
			return err
		}
		return errRehearsed
	})
	if errors.Is(err, errRehearsed) {
		return nil
	}
	return err
}

// Lock implements bundles.Store.
func (s *Store) Lock(ctx context.Context, tenant string) error {
	return bunx.LockTenant(ctx, s.db, tenant)
}

// Get implements bundles.Store.
func (s *Store) Get(ctx context.Context, tenant, key string) (bundles.Bundle, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	return get(ctx, c, c.NewSelect(), tenant, key)
}

// Find implements bundles.Store.
func (s *Store) Find(ctx context.Context, tenant, key string) (bundles.Bundle, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	return find(ctx, c.NewSelect(), tenant, key)
}

func find(ctx context.Context, q *bun.SelectQuery, tenant, key string) (bundles.Bundle, error) {
	column := "slug"
	if uuids.Valid(key) {
		column = "id"
	}
	var r bundle
	err := q.Model(&r).Where("b.tenant_id = ?", tenant).Where("b.? = ?", bun.Ident(column), key).Scan(ctx)
	if err != nil {
		return bundles.Bundle{}, bunx.Err(err, "Bundle")
	}
	return r.bundle(), nil
}

func get(ctx context.Context, c bunx.Conn, q *bun.SelectQuery, tenant, key string) (bundles.Bundle, error) {
	b, err := find(ctx, q, tenant, key)
	if err != nil {
		return bundles.Bundle{}, err
	}
	one := []bundles.Bundle{b}
	_, err = addEntries(ctx, c, tenant, one, paging.NewWholeMeter(ctx))
	return one[0], err
}

// withEntries reads the entries of bundles into them, with one statement, and returns of how many bundles: it ends with the
// one whose entries fill a page, which has all of its own.
func withEntries(ctx context.Context, c bunx.Conn, tenant string, some []bundles.Bundle) (int, error) {
	if len(some) == 0 {
		return 0, nil
	}
	whole, err := addEntries(ctx, c, tenant, some, paging.NewMeter(ctx))
	if whole || err != nil {
		return len(some), err
	}
	meter := paging.NewWholeMeter(ctx)
	for i := range some {
		if _, err := addEntries(ctx, c, tenant, some[i:i+1], meter); err != nil || meter.Full() {
			return i + 1, err
		}
	}
	return len(some), nil
}

// addEntries reads the entries of bundles into them, and reports whether these are all.
func addEntries(ctx context.Context, c bunx.Conn, tenant string, some []bundles.Bundle, meter *paging.Meter) (bool, error) {
	ids, place := make([]string, len(some)), make(map[string]int, len(some))
	for i := range some {
		ids[i], place[some[i].ID], some[i].Entries = some[i].ID, i, []bundles.Entry{}
	}
	rows, more, err := bunx.Bounded[entry](ctx, c.NewSelect().Model((*entry)(nil)).Where("e.tenant_id = ?", tenant).
		Where("e.bundle_id IN (?)", bun.List(ids)).OrderExpr("e.bundle_id, e.created_at, e.id"), meter)
	if err != nil || more {
		return false, bunx.Err(err, "Entry")
	}
	for _, r := range rows {
		b := &some[place[r.BundleID]]
		b.Entries = append(b.Entries, r.entry())
	}
	return true, nil
}

// Page implements bundles.Store.
func (s *Store) Page(ctx context.Context, tenant string, q paging.Query) (paging.Page[bundles.Bundle], error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows := c.NewSelect().Model((*bundle)(nil)).Where("b.tenant_id = ?", tenant)
	key := func(r bundle) string { return r.ID }
	found, err := bunx.Page(ctx, rows, list, key, q)
	if err != nil {
		return paging.Page[bundles.Bundle]{}, err
	}
	page := paging.Map(found, bundle.bundle)
	n, err := withEntries(ctx, c, tenant, page.Rows)
	if err != nil || n == len(page.Rows) {
		return page, err
	}
	err = list.Cut(&found, n, key, q)
	page.Rows, page.More, page.Last = page.Rows[:n], found.More, found.Last
	return page, err
}

// All implements bundles.Store.
func (s *Store) All(ctx context.Context, tenant string) ([]bundles.Bundle, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows, _, err := bunx.Bounded[bundle](ctx, c.NewSelect().Model((*bundle)(nil)).Where("b.tenant_id = ?", tenant).
		OrderExpr("b.created_at, b.id"), paging.NewWholeMeter(ctx))
	all := make([]bundles.Bundle, len(rows))
	for i, r := range rows {
		all[i] = r.bundle()
	}
	return all, bunx.Err(err, "Bundle")
}

// Insert implements bundles.Store.
func (s *Store) Insert(ctx context.Context, tenant string, b bundles.Bundle) error {
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		r := bundleRow(tenant, b)
		_, err := c.NewInsert().Model(&r).Exec(ctx)
		return bunx.Err(err, slugTaken)
	})
}

// Update implements bundles.Store.
func (s *Store) Update(ctx context.Context, tenant, key string, edit func(*bundles.Bundle) error) (b bundles.Bundle, err error) {
	err = bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		if b, err = get(ctx, c, c.Lock(c.NewSelect()), tenant, key); err != nil {
			return err
		}
		was := b
		if err := edit(&b); err != nil {
			return err
		}
		if err := guard.Check(ctx, "bundle", was); err != nil {
			return err
		}
		b.Tenant, b.ID, b.CreatedAt, b.Entries = was.Tenant, was.ID, was.CreatedAt, was.Entries
		r := bundleRow(tenant, b)
		_, err := c.NewUpdate().Model(&r).WherePK().Exec(ctx)
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
			b, err := find(ctx, c.Lock(c.NewSelect()), tenant, key)
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
