// Package bunstore stores authentication domains in PostgreSQL or SQLite. The root imports it.
package bunstore

import (
	"context"
	"encoding/json"
	"time"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/internal/bunx"
	"github.com/tenantcontent/tenantcontent/internal/fold"
	"github.com/tenantcontent/tenantcontent/internal/guard"
	"github.com/tenantcontent/tenantcontent/paging"
)

// Store implements domains.Store.
type Store struct{ db *bun.DB }

// New returns a Store. The tables must be there: see tenantcontent.Migrate.
func New(db *bun.DB) *Store { return &Store{db: db} }

// row is the table's shape.
type row struct {
	bun.BaseModel `bun:"table:tc_domains,alias:d"`

	TenantID    string `bun:",pk"`
	ID          string `bun:"id,pk"`
	Name        *string
	Label       string
	Search      string
	Description *string
	Type        string
	Config      *string
	Secrets     *string
	ScannedAt   bunx.Time
	CreatedAt   bunx.Time
	UpdatedAt   bunx.Time
}

func rowOf(tenant string, d domains.Domain) row {
	label := d.ID
	if d.Name != nil {
		label = *d.Name
	}
	description := ""
	if d.Description != nil {
		description = *d.Description
	}
	return row{
		TenantID: tenant, ID: d.ID, Name: d.Name, Label: fold.Text(label), Search: fold.Search(d.ID, label, description),
		Description: d.Description, Type: d.Type, Config: orNull(string(d.Config)), Secrets: orNull(d.Sealed),
		ScannedAt: bunx.AtOrNull(d.ScannedAt), CreatedAt: bunx.At(d.CreatedAt), UpdatedAt: bunx.At(d.UpdatedAt),
	}
}

func (r row) domain() domains.Domain {
	d := domains.Domain{
		Tenant: r.TenantID, ID: r.ID, Name: r.Name, Description: r.Description, Type: r.Type,
		ScannedAt: r.ScannedAt.Ptr(), CreatedAt: r.CreatedAt.Time, UpdatedAt: r.UpdatedAt.Time,
	}
	if r.Config != nil {
		d.Config = json.RawMessage(*r.Config)
	}
	if r.Secrets != nil {
		d.Sealed = *r.Secrets
	}
	return d
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

var list = bunx.List[row]{
	Key: "id", Order: "name", Search: "search",
	Sorts: []bunx.Sort[row]{
		{Field: "name", Column: "label", Value: func(r row) string { return r.Label }},
		{Field: "id", Column: "id", Value: func(r row) string { return r.ID }},
		{Field: "createdAt", Column: "created_at", Value: func(r row) string { return r.CreatedAt.String() }},
		{Field: "updatedAt", Column: "updated_at", Value: func(r row) string { return r.UpdatedAt.String() }},
	},
}

// InTx implements domains.Store.
func (s *Store) InTx(ctx context.Context, fn func(context.Context) error) error {
	return bunx.InTx(bunx.WithWork(ctx, bunx.Long), s.db, fn)
}

// LockTenant implements domains.Store.
func (s *Store) LockTenant(ctx context.Context, tenant string) error {
	return bunx.LockTenant(ctx, s.db, tenant)
}

// Get implements domains.Store.
func (s *Store) Get(ctx context.Context, tenant, id string) (domains.Domain, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	r, err := one(ctx, c.NewSelect(), tenant, id)
	return r.domain(), err
}

func one(ctx context.Context, q *bun.SelectQuery, tenant, id string) (row, error) {
	var r row
	err := q.Model(&r).Where("d.tenant_id = ?", tenant).Where("d.id = ?", id).Scan(ctx)
	return r, bunx.Err(err, "Domain")
}

// Page implements domains.Store.
func (s *Store) Page(ctx context.Context, tenant string, q paging.Query) (paging.Page[domains.Domain], error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows := c.NewSelect().Model((*row)(nil)).ExcludeColumn("config", "secrets", "search").Where("d.tenant_id = ?", tenant)
	page, err := bunx.Page(ctx, rows, list, func(r row) string { return r.ID }, q)
	return paging.Map(page, row.domain), err
}

// All implements domains.Store.
func (s *Store) All(ctx context.Context, tenant, driver string) ([]domains.Domain, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	var rows []row
	q := c.NewSelect().Model(&rows).ExcludeColumn("label", "search").Where("d.tenant_id = ?", tenant)
	if driver != "" {
		q.Where("d.type = ?", driver)
	}
	err := q.OrderExpr("d.id").Scan(ctx)
	all := make([]domains.Domain, len(rows))
	for i, r := range rows {
		all[i] = r.domain()
	}
	return all, bunx.Err(err, "Domain")
}

// Size implements domains.Store.
func (s *Store) Size(ctx context.Context, tenant string) (n, bytes int, err error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	err = c.One(ctx, "Domain", `SELECT count(*), coalesce(sum(coalesce(octet_length(config), 0) + coalesce(octet_length(secrets), 0)), 0)
		FROM tc_domains WHERE tenant_id = $1`, []any{tenant}, &n, &bytes)
	return n, bytes, err
}

// Insert implements domains.Store.
func (s *Store) Insert(ctx context.Context, tenant string, d domains.Domain) error {
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		r := rowOf(tenant, d)
		_, err := c.NewInsert().Model(&r).Exec(ctx)
		return bunx.Err(err, "A domain with the id "+d.ID)
	})
}

// Update implements domains.Store.
func (s *Store) Update(ctx context.Context, tenant, id string, edit func(*domains.Domain) error) (domains.Domain, error) {
	var d domains.Domain
	err := bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		was, err := one(ctx, c.Lock(c.NewSelect()), tenant, id)
		if err != nil {
			return err
		}
		d = was.domain()
		if err := edit(&d); err != nil {
			return err
		}
		if err := guard.Check(ctx, "domain", was.domain()); err != nil {
			return err
		}
		d.Tenant, d.ID, d.ScannedAt, d.CreatedAt = tenant, id, was.ScannedAt.Ptr(), was.CreatedAt.Time
		r := rowOf(tenant, d)
		_, err = c.NewUpdate().Model(&r).WherePK().Exec(ctx)
		return bunx.Err(err, "Domain")
	})
	if err != nil {
		return domains.Domain{}, err
	}
	return d, nil
}

// Delete implements domains.Store.
func (s *Store) Delete(ctx context.Context, tenant, id string) error {
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		if guard.Of(ctx, "domain") != nil {
			was, err := one(ctx, c.Lock(c.NewSelect()), tenant, id)
			if err != nil {
				return err
			}
			if err := guard.Check(ctx, "domain", was.domain()); err != nil {
				return err
			}
		}
		n, err := c.Exec(ctx, `DELETE FROM tc_domains WHERE tenant_id = $1 AND id = $2`, tenant, id)
		return bunx.Found(n, err, "Domain")
	})
}

// SetScanned implements domains.Store.
func (s *Store) SetScanned(ctx context.Context, tenant, domain string, at time.Time) error {
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		n, err := c.Exec(ctx, `UPDATE tc_domains SET scanned_at = $1 WHERE tenant_id = $2 AND id = $3`, bunx.At(at), tenant, domain)
		return bunx.Found(n, err, "Domain")
	})
}
