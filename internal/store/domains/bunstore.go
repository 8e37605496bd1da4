// Package bunstore stores authentication domains in PostgreSQL or SQLite. The root imports it.
package bunstore

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/internal/secure/guard"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/text/fold"
	"github.com/tenantcontent/tenantcontent/paging"
)

// Store implements domains.Store.
type Store struct {
	db       *bun.DB
	notifier bunx.Notifier
}

// New returns a Store. The tables must exist: see tenantcontent.Migrate.
func New(db *bun.DB) *Store { return &Store{db: db} }

// Notify makes the store call changed after each commit of an Insert, Update or Delete.
func (s *Store) Notify(changed func(tenant string)) *Store {
	s.notifier.Set(changed)
	return s
}

// Count implements domains.Store.
func (s *Store) Count(ctx context.Context, tenant string) (int, error) {
	return bunx.Count(ctx, s.db, tenant, "tc_domains")
}

// row is a row of tc_domains.
type row struct {
	domains.Domain
	label string // as it is stored
}

func (r row) domain() domains.Domain { return r.Domain }

// table has the columns of a domain. SetScanned writes the time of the scan.
var table = bunx.NewTable("tc_domains", "d", []bunx.Column[row]{
	{Name: "tenant_id", Key: true, Field: func(r *row) any { return &r.Tenant }},
	{Name: "id", Key: true, Field: func(r *row) any { return &r.ID }},
	{Name: "name", Field: func(r *row) any { return &r.Name }},
	{Name: "label", Field: func(r *row) any {
		return &r.label
	}, Value: func(r *row) any { return fold.Text(name(r.Domain)) }},
	{Name: "search", Value: func(r *row) any { return search(r.Domain) }},
	{Name: "description", Field: func(r *row) any { return &r.Description }},
	{Name: "type", Field: func(r *row) any { return &r.Type }},
	{Name: "config", Field: func(r *row) any { return bunx.JSONOrNull(&r.Config) }},
	{Name: "secrets", Field: func(r *row) any { return bunx.TextOrNull(&r.Sealed) }},
	{Name: "keys_sealed", Field: func(r *row) any { return bunx.TextOrNull(&r.SealedKeys) }},
	{Name: "id_attribute", Field: func(r *row) any { return bunx.TextOrNull(&r.IDs.People) }},
	{Name: "group_id_attribute", Field: func(r *row) any { return bunx.TextOrNull(&r.IDs.Groups) }},
	{Name: "scanned_at", Once: true, Field: func(r *row) any { return bunx.TimeOrNull(&r.ScannedAt) }},
	{Name: "created_at", Once: true, Field: func(r *row) any { return bunx.TimeOf(&r.CreatedAt) }},
	{Name: "updated_at", Field: func(r *row) any { return bunx.TimeOf(&r.UpdatedAt) }},
})

// name returns the name of a domain for people.
func name(d domains.Domain) string {
	if d.Name != nil {
		return *d.Name
	}
	return d.ID
}

func search(d domains.Domain) string {
	description := ""
	if d.Description != nil {
		description = *d.Description
	}
	return fold.Search(d.ID, name(d), description)
}

var list = bunx.List[row]{
	Table: table.Without("config", "secrets", "keys_sealed"), Key: "id", Order: "name", Search: "search",
	Sorts: []bunx.Sort[row]{
		{Field: "name", Column: "label", Value: func(r row) string { return r.label }},
		{Field: "id", Column: "id", Value: func(r row) string { return r.ID }},
		{Field: "createdAt", Column: "created_at", Value: func(r row) string { return bunx.At(r.CreatedAt).String() }},
		{Field: "updatedAt", Column: "updated_at", Value: func(r row) string { return bunx.At(r.UpdatedAt).String() }},
	},
}

// InTx implements domains.Store.
func (s *Store) InTx(ctx context.Context, fn func(context.Context) error) error {
	return bunx.InTx(bunx.WithWork(ctx, bunx.Long), s.db, fn)
}

// DryRun implements domains.Store.
func (s *Store) DryRun(ctx context.Context, fn func(context.Context) error) error {
	return bunx.DryRun(bunx.WithWork(ctx, bunx.Long), s.db, fn)
}

// LockTenant implements domains.Store.
func (s *Store) LockTenant(ctx context.Context, tenant string) error {
	return bunx.LockTenant(ctx, s.db, tenant)
}

// Get implements domains.Store.
func (s *Store) Get(ctx context.Context, tenant, id string) (domains.Domain, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	r, err := one(ctx, c, tenant, id, "")
	return r.Domain, err
}

var selectOne = table.Select(`WHERE tenant_id = $1 AND id = $2`)

func one(ctx context.Context, c bunx.Conn, tenant, id, lock string) (row, error) {
	r, err := table.Scan(c.Row(ctx, selectOne+lock, tenant, id))
	return r, bunx.Err(err, "Domain")
}

// Page implements domains.Store.
func (s *Store) Page(ctx context.Context, tenant string, q paging.Query) (paging.Page[domains.Domain], error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	all := bunx.Part{
		Where: "d.tenant_id = $1",
		Args:  []any{tenant},
		Total: bunx.Total("domains", bunx.Whole),
		Index: &bunx.Index{List: "domains"},
	}
	page, err := bunx.Page(ctx, c, list, all, func(r row) string { return r.ID }, q)
	return paging.Map(page, row.domain), err
}

// All implements domains.Store.
func (s *Store) All(ctx context.Context, tenant, driver string) ([]domains.Domain, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	q := table.Rows(c).Where("d.tenant_id = ?", tenant)
	if driver != "" {
		q = q.Where("d.type = ?", driver)
	}
	rows, err := table.All(ctx, q.OrderExpr("d.id"))
	all := make([]domains.Domain, len(rows))
	for i, r := range rows {
		all[i] = r.Domain
	}
	return all, bunx.Err(err, "Domain")
}

// Size implements domains.Store.
func (s *Store) Size(ctx context.Context, tenant string) (n, bytes int, err error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	err = c.One(ctx, "Domain",
		`SELECT count(*), coalesce(sum(coalesce(octet_length(config), 0) + coalesce(octet_length(secrets), 0)), 0)
		FROM tc_domains WHERE tenant_id = $1`, []any{tenant}, &n, &bytes)
	return n, bytes, err
}

// Insert implements domains.Store.
func (s *Store) Insert(ctx context.Context, tenant string, d domains.Domain) error {
	return s.notifier.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		d.Tenant = tenant
		_, err := table.Insert(ctx, c, "", row{Domain: d})
		return bunx.Err(err, "A domain with the id "+d.ID)
	})
}

// Update implements domains.Store.
func (s *Store) Update(
	ctx context.Context, tenant, id string, edit func(*domains.Domain) error,
) (domains.Domain, error) {
	var d domains.Domain
	err := s.notifier.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		was, err := one(ctx, c, tenant, id, c.ForUpdate())
		if err != nil {
			return err
		}
		changed := was
		if err := edit(&changed.Domain); err != nil {
			return err
		}
		if err := guard.Check(ctx, "domain", was.Domain); err != nil {
			return err
		}
		if err := table.Restore(&changed, &was); err != nil {
			return err
		}
		d = changed.Domain
		_, err = table.Update(ctx, c, &changed)
		return bunx.Err(err, "Domain")
	})
	if err != nil {
		return domains.Domain{}, err
	}
	return d, nil
}

// Delete implements domains.Store.
func (s *Store) Delete(ctx context.Context, tenant, id string) error {
	return s.notifier.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		if guard.Of(ctx, "domain") != nil {
			was, err := one(ctx, c, tenant, id, c.ForUpdate())
			if err != nil {
				return err
			}
			if err := guard.Check(ctx, "domain", was.Domain); err != nil {
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
		n, err := c.Exec(
			ctx, `UPDATE tc_domains SET scanned_at = $1 WHERE tenant_id = $2 AND id = $3`, bunx.At(at), tenant,
			domain,
		)
		return bunx.Found(n, err, "Domain")
	})
}

// SetIDs implements domains.Store.
func (s *Store) SetIDs(
	ctx context.Context, tenant, domain string, ids domains.IDAttributes,
) (known domains.IDAttributes, err error) {
	err = bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		return c.One(ctx, "Domain",
			`UPDATE tc_domains SET id_attribute = coalesce(id_attribute, nullif(CAST($1 AS text), '')),
			group_id_attribute = coalesce(group_id_attribute, nullif(CAST($2 AS text), '')) WHERE tenant_id = $3 AND id = $4
			RETURNING coalesce(id_attribute, ''), coalesce(group_id_attribute, '')`,
			[]any{ids.People, ids.Groups, tenant, domain}, &known.People, &known.Groups)
	})
	return known, err
}
