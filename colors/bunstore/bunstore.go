// Package bunstore stores colors in PostgreSQL or SQLite. The root imports it.
package bunstore

import (
	"context"
	"database/sql"
	"iter"
	"strconv"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/colors"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/bunx"
	"github.com/tenantcontent/tenantcontent/internal/fold"
	"github.com/tenantcontent/tenantcontent/internal/guard"
	"github.com/tenantcontent/tenantcontent/paging"
)

// chunk is how many colors All reads with one statement; a smaller palette is read at one point in time.
const chunk = 16384

// Store implements colors.Store.
type Store struct{ db *bun.DB }

// New returns a Store. The tables must be there: see tenantcontent.Migrate.
func New(db *bun.DB) *Store { return &Store{db: db} }

// row is the table's shape.
type row struct {
	bun.BaseModel `bun:"table:tc_colors,alias:c"`

	TenantID  string
	Key       string
	Color     string
	Source    *string
	CreatedAt bunx.Time
	UpdatedAt bunx.Time
}

func (r row) color() colors.Color {
	return colors.Color{
		Tenant: r.TenantID, Key: r.Key, Color: r.Color, Source: r.Source,
		CreatedAt: r.CreatedAt.Time, UpdatedAt: r.UpdatedAt.Time,
	}
}

var list = bunx.List[row]{
	Key: "key", Order: "key", Search: "search",
	Sorts: []bunx.Sort[row]{
		{Field: "key", Column: "key", Value: func(r row) string { return r.Key }},
		{Field: "createdAt", Column: "created_at", Value: func(r row) string { return r.CreatedAt.String() }},
		{Field: "updatedAt", Column: "updated_at", Value: func(r row) string { return r.UpdatedAt.String() }},
	},
}

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
	r := row{TenantID: tenant, Key: key}
	err := c.One(ctx, "Color", `SELECT color, source, created_at, updated_at FROM tc_colors WHERE tenant_id = $1 AND key = $2`,
		[]any{tenant, key}, &r.Color, &r.Source, &r.CreatedAt, &r.UpdatedAt)
	return r.color(), err
}

// Page implements colors.Store.
func (s *Store) Page(ctx context.Context, tenant string, q paging.Query) (paging.Page[colors.Color], error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows := c.NewSelect().Model((*row)(nil)).Where("c.tenant_id = ?", tenant)
	page, err := bunx.Page(ctx, rows, list, func(r row) string { return r.Key }, q)
	return paging.Map(page, row.color), err
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

// some gives up to chunk colors whose keys come after a key.
func (s *Store) some(ctx context.Context, tenant, source, after string) ([]colors.Color, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	query := `SELECT key, color, source, created_at, updated_at FROM tc_colors WHERE tenant_id = $1 AND key > $2`
	args := []any{tenant, after}
	if source != "" {
		query += ` AND source = $3`
		args = append(args, source)
	}
	rows, err := c.Rows(ctx, query+` ORDER BY key LIMIT `+strconv.Itoa(chunk), args...)
	some, err := bunx.Scan(rows, err, func(rows *sql.Rows) (colors.Color, error) {
		r := row{TenantID: tenant}
		err := rows.Scan(&r.Key, &r.Color, &r.Source, &r.CreatedAt, &r.UpdatedAt)
		return r.color(), err
	})
	return some, bunx.Err(err, "Color")
}

// Put implements colors.Store.
func (s *Store) Put(ctx context.Context, tenant string, color colors.Color) (colors.Color, error) {
	if guard.Of(ctx, "color") != nil {
		return s.putGuarded(ctx, tenant, color)
	}
	err := bunx.WriteOne(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		var created bunx.Time
		err := c.One(ctx, "Color", `INSERT INTO tc_colors (tenant_id, key, search, color, source, created_at, updated_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7)
			ON CONFLICT (tenant_id, key) DO UPDATE SET color = excluded.color, updated_at = excluded.updated_at
			RETURNING source, created_at`,
			[]any{tenant, color.Key, fold.Text(color.Key), color.Color, color.Source, bunx.At(color.CreatedAt), bunx.At(color.UpdatedAt)},
			&color.Source, &created)
		color.Tenant, color.CreatedAt = tenant, created.Time
		return err
	})
	return color, err
}

// putGuarded is Put if the color is as the guard in ctx demands.
func (s *Store) putGuarded(ctx context.Context, tenant string, color colors.Color) (colors.Color, error) {
	color.Tenant = tenant
	err := bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		g := guard.Of(ctx, "color")
		was, err := check(ctx, c, tenant, color.Key)
		if err != nil {
			return err
		}
		if was == nil {
			if err := g.Missing(); err != nil {
				return err
			}
			n, err := c.Exec(ctx, `INSERT INTO tc_colors (tenant_id, key, search, color, source, created_at, updated_at)
				VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (tenant_id, key) DO NOTHING`,
				tenant, color.Key, fold.Text(color.Key), color.Color, color.Source, bunx.At(color.CreatedAt), bunx.At(color.UpdatedAt))
			if err == nil && n == 0 { // somebody else added it meanwhile
				return guard.Stale()
			}
			return bunx.Err(err, "Color")
		}
		color.Source, color.CreatedAt = was.Source, was.CreatedAt
		_, err = c.Exec(ctx, `UPDATE tc_colors SET color = $3, updated_at = $4 WHERE tenant_id = $1 AND key = $2`,
			tenant, color.Key, color.Color, bunx.At(color.UpdatedAt))
		return bunx.Err(err, "Color")
	})
	return color, err
}

// check locks a color and checks the guard in ctx against it. It returns nil if there is no such color.
func check(ctx context.Context, c bunx.Conn, tenant, key string) (*colors.Color, error) {
	r := row{TenantID: tenant, Key: key}
	err := c.One(ctx, "Color", `SELECT color, source, created_at, updated_at FROM tc_colors WHERE tenant_id = $1 AND key = $2`+c.ForUpdate(),
		[]any{tenant, key}, &r.Color, &r.Source, &r.CreatedAt, &r.UpdatedAt)
	if errs.CodeOf(err) == errs.NotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	color := r.color()
	return &color, guard.Check(ctx, "color", color)
}

// PutAll implements colors.Store.
func (s *Store) PutAll(ctx context.Context, tenant string, all []colors.Color) error {
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		const columns = 7
		args := make([]any, 0, columns*len(all))
		for _, color := range all {
			args = append(args, tenant, color.Key, fold.Text(color.Key), color.Color, color.Source,
				bunx.At(color.CreatedAt), bunx.At(color.UpdatedAt))
		}
		_, err := c.Exec(ctx, `INSERT INTO tc_colors (tenant_id, key, search, color, source, created_at, updated_at) VALUES `+
			bunx.Values(len(all), columns)+
			` ON CONFLICT (tenant_id, key) DO UPDATE SET color = excluded.color, updated_at = excluded.updated_at,
			source = coalesce(excluded.source, tc_colors.source)`, args...)
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
