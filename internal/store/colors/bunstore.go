// Package bunstore stores colors in PostgreSQL or SQLite. The root imports it.
package bunstore

import (
	"context"
	"database/sql"
	"iter"
	"slices"
	"strconv"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/colors"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/secure/guard"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/text/fold"
	"github.com/tenantcontent/tenantcontent/paging"
)

// chunk is the number of colors that All reads with one statement. A smaller palette is read as of
// one point in time.
const chunk = 16384

// Store implements colors.Store.
type Store struct{ db *bun.DB }

// New returns a Store. The tables must exist: see tenantcontent.Migrate.
func New(db *bun.DB) *Store { return &Store{db: db} }

// Count implements colors.Store.
func (s *Store) Count(ctx context.Context, tenant string) (int, error) {
	return bunx.Count(ctx, s.db, tenant, "tc_colors")
}

// table has the columns of a color. Readers pass the tenant.
var table = bunx.NewTable("tc_colors", "c", []bunx.Column[colors.Color]{
	{Name: "tenant_id", Key: true, Value: func(c *colors.Color) any { return c.Tenant }},
	{Name: "key", Key: true, Field: func(c *colors.Color) any { return &c.Key }},
	{Name: "search", Once: true, Value: func(c *colors.Color) any { return fold.Search(c.Key) }},
	{Name: "color", Field: func(c *colors.Color) any { return &c.Color }},
	{Name: "source", Keep: true, Field: func(c *colors.Color) any { return &c.Source }},
	{Name: "created_at", Once: true, Field: func(c *colors.Color) any { return bunx.TimeOf(&c.CreatedAt) }},
	{Name: "updated_at", Field: func(c *colors.Color) any { return bunx.TimeOf(&c.UpdatedAt) }},
})

// scanner reads rows of a tenant.
func scanner(tenant string) func(*sql.Rows) (colors.Color, error) {
	return func(rows *sql.Rows) (colors.Color, error) {
		c, err := table.Scan(rows)
		c.Tenant = tenant
		return c, err
	}
}

// rowsOf returns colors as rows of a tenant.
func rowsOf(tenant string, all []colors.Color) []colors.Color {
	rows := slices.Clone(all)
	for i := range rows {
		rows[i].Tenant = tenant
	}
	return rows
}

func key(c colors.Color) string { return c.Key }

var list = bunx.List[colors.Color]{
	Table: table, Key: "key", Order: "key", Search: "search",
	Sorts: []bunx.Sort[colors.Color]{
		{Field: "key", Column: "key", Value: key},
		{Field: "createdAt", Column: "created_at", Value: func(c colors.Color) string {
			return bunx.At(c.CreatedAt).String()
		}},
		{Field: "updatedAt", Column: "updated_at", Value: func(c colors.Color) string {
			return bunx.At(c.UpdatedAt).String()
		}},
	},
}

// The fixed texts. Put keeps the source and the creation time of an existing row.
var (
	selectOne    = table.Select(`WHERE tenant_id = $1 AND key = $2`)
	selectSome   = table.Select(`WHERE tenant_id = $1 AND key > $2 ORDER BY key LIMIT ` + strconv.Itoa(chunk))
	selectSomeOf = table.Select(`WHERE tenant_id = $1 AND key > $2 AND source = $3 ORDER BY key LIMIT ` +
		strconv.Itoa(chunk))
	putOne  = table.InsertOne(table.OnConflict + ` RETURNING source, created_at`)
	swapOne = `WITH was AS (SELECT color, updated_at FROM tc_colors WHERE tenant_id = $1 AND key = $2) ` + putOne +
		`, (SELECT color FROM was), (SELECT updated_at FROM was)`
)

// InTx implements colors.Store.
func (s *Store) InTx(ctx context.Context, fn func(context.Context) error) error {
	return bunx.InTx(bunx.WithWork(ctx, bunx.Long), s.db, fn)
}

// Lock implements colors.Store.
func (s *Store) Lock(ctx context.Context, tenant string) error {
	return bunx.LockTenant(ctx, s.db, tenant)
}

// Get implements colors.Store.
func (s *Store) Get(ctx context.Context, tenant, key string) (colors.Color, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	color := colors.Color{Tenant: tenant}
	err := c.One(ctx, "Color", selectOne, []any{tenant, key}, table.Dest(&color)...)
	return color, err
}

// Page implements colors.Store.
func (s *Store) Page(ctx context.Context, tenant string, q paging.Query) (paging.Page[colors.Color], error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	page, err := bunx.Page(ctx, c, list, bunx.Part{
		Where: "c.tenant_id = $1",
		Args:  []any{tenant},
		Total: bunx.Total("colors", bunx.Whole),
		Index: &bunx.Index{List: "colors"},
	}, key, q)
	for i := range page.Rows {
		page.Rows[i].Tenant = tenant
	}
	return page, err
}

// All implements colors.Store.
func (s *Store) All(ctx context.Context, tenant, source string) iter.Seq2[colors.Color, error] {
	return func(yield func(colors.Color, error) bool) {
		for after := ""; ; {
			some, err := s.some(ctx, tenant, source, after)
			if err != nil {
				yield(colors.Color{}, err)
				return
			}
			for _, c := range some {
				if !yield(c, nil) {
					return
				}
			}
			if len(some) < chunk {
				return
			}
			after = some[len(some)-1].Key
		}
	}
}

// some returns up to chunk colors whose keys are greater than a key.
func (s *Store) some(ctx context.Context, tenant, source, after string) ([]colors.Color, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	query, args := selectSome, []any{tenant, after}
	if source != "" {
		query, args = selectSomeOf, append(args, source)
	}
	rows, err := c.Rows(ctx, query, args...)
	some, err := bunx.Scan(rows, err, scanner(tenant))
	return some, bunx.Err(err, "Color")
}

// Put implements colors.Store.
func (s *Store) Put(ctx context.Context, tenant string, color colors.Color) (colors.Color, error) {
	if guard.Of(ctx, "color") != nil {
		color, _, err := s.swapRead(ctx, tenant, color)
		return color, err
	}
	color.Tenant = tenant
	err := bunx.WriteOne(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		return c.One(ctx, "Color", putOne, table.Args(&color), &color.Source, bunx.TimeOf(&color.CreatedAt))
	})
	return color, err
}

// Swap implements colors.Store.
func (s *Store) Swap(
	ctx context.Context, tenant string, color colors.Color,
) (now colors.Color, was *colors.Color, err error) {
	if _, c := bunx.For(ctx, s.db, tenant); guard.Of(ctx, "color") != nil || !c.Postgres() {
		return s.swapRead(ctx, tenant, color)
	}
	color.Tenant = tenant
	before := color
	var set *string
	var updated bunx.Time
	err = bunx.WriteOne(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		return c.One(
			ctx, "Color", swapOne, table.Args(&color), &color.Source, bunx.TimeOf(&color.CreatedAt), &set, &updated,
		)
	})
	if err != nil || set == nil {
		return color, nil, err
	}
	before.Color, before.Source, before.CreatedAt, before.UpdatedAt = *set, color.Source, color.CreatedAt, updated.Time
	return color, &before, nil
}

// swapRead is Swap that reads and locks the color, and checks it against the guard in ctx. On
// SQLite it takes less time than a statement that returns what it has overwritten.
func (s *Store) swapRead(
	ctx context.Context, tenant string, color colors.Color,
) (now colors.Color, was *colors.Color, err error) {
	color.Tenant = tenant
	err = bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) (err error) {
		g := guard.Of(ctx, "color")
		if was, err = check(ctx, c, tenant, color.Key); err != nil {
			return err
		}
		if was == nil {
			if err := g.Missing(); err != nil {
				return err
			}
			n, err := table.Insert(ctx, c, ` ON CONFLICT (tenant_id, key) DO NOTHING`, color)
			if err == nil && n == 0 { // another transaction added it since
				return guard.Stale()
			}
			return bunx.Err(err, "Color")
		}
		color.Source, color.CreatedAt = was.Source, was.CreatedAt
		_, err = table.Update(ctx, c, &color)
		return bunx.Err(err, "Color")
	})
	return color, was, err
}

// check locks a color and checks it against the guard in ctx. It returns nil if the color does not
// exist.
func check(ctx context.Context, c bunx.Conn, tenant, key string) (*colors.Color, error) {
	color := colors.Color{Tenant: tenant}
	err := c.One(ctx, "Color", selectOne+c.ForUpdate(), []any{tenant, key}, table.Dest(&color)...)
	if errs.CodeOf(err) == errs.NotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &color, guard.Check(ctx, "color", color)
}

// PutAll implements colors.Store.
func (s *Store) PutAll(ctx context.Context, tenant string, all []colors.Color) error {
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		_, err := table.Insert(ctx, c, table.OnConflict+
			`, source = coalesce(excluded.source, tc_colors.source)`, rowsOf(tenant, all)...)
		return bunx.Err(err, "Color")
	})
}

// Delete implements colors.Store.
func (s *Store) Delete(ctx context.Context, tenant, key string) error {
	return bunx.WriteOne(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		if guard.Of(ctx, "color") != nil {
			if _, err := check(ctx, c, tenant, key); err != nil {
				return err
			}
		}
		_, err := c.Exec(ctx, `DELETE FROM tc_colors WHERE tenant_id = $1 AND key = $2`, tenant, key)
		return bunx.Err(err, "Color")
	})
}
