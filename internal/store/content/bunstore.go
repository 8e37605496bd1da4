// Package bunstore stores the built-in kinds of content in PostgreSQL or SQLite. The root imports
// it.
package bunstore

import (
	"context"
	"database/sql"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/content"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/secure/guard"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/text/fold"
	"github.com/tenantcontent/tenantcontent/paging"
)

// Store implements content.Store.
type Store struct{ db *bun.DB }

// New returns a Store. The tables must exist: see tenantcontent.Migrate.
func New(db *bun.DB) *Store { return &Store{db: db} }

// Count implements content.Store.
func (s *Store) Count(ctx context.Context, tenant string) (int, error) {
	return bunx.Count(ctx, s.db, tenant, "tc_entities")
}

// row is a row of tc_entities.
type row struct {
	content.Entity
	label string // as it is stored
}

// table has the columns of an entity. Readers pass the tenant and the kind. An import does not
// overwrite columns with Keep.
var table = bunx.NewTable("tc_entities", "e", []bunx.Column[row]{
	{Name: "tenant_id", Key: true, Value: func(r *row) any { return r.Tenant }},
	{Name: "kind", Key: true, Value: func(r *row) any { return string(r.Kind) }},
	{Name: "id", Key: true, Field: func(r *row) any { return &r.ID }},
	{Name: "name", Field: func(r *row) any { return &r.Name }},
	{Name: "label", Field: func(r *row) any { return &r.label }, Value: func(r *row) any { return fold.Text(r.Name) }},
	{Name: "search", Value: func(r *row) any { return search(r.Entity) }},
	{Name: "slug", Field: func(r *row) any { return &r.Slug }},
	{Name: "description", Field: func(r *row) any { return &r.Description }},
	{Name: "owner_id", Field: func(r *row) any { return &r.OwnerID }},
	{Name: "data", Field: func(r *row) any { return bunx.JSON(&r.Data) }},
	{Name: "editing_id", Keep: true, Field: func(r *row) any { return &r.EditingID }},
	{Name: "system", Keep: true, Field: func(r *row) any { return &r.System }},
	{Name: "source", Field: func(r *row) any { return &r.Source }},
	{Name: "source_id", Field: func(r *row) any { return &r.SourceID }},
	{Name: "created_at", Once: true, Field: func(r *row) any { return bunx.TimeOf(&r.CreatedAt) }},
	{Name: "updated_at", Field: func(r *row) any { return bunx.TimeOf(&r.UpdatedAt) }},
})

var list = bunx.List[row]{
	Table: table, Key: "id", Order: "name", Search: "search",
	Sorts: []bunx.Sort[row]{
		{Field: "name", Column: "label", Value: func(r row) string { return r.label }},
		{Field: "createdAt", Column: "created_at", Value: func(r row) string { return bunx.At(r.CreatedAt).String() }},
		{Field: "updatedAt", Column: "updated_at", Value: func(r row) string { return bunx.At(r.UpdatedAt).String() }},
	},
}

// heads are the columns of a row without its data, which may be long.
var heads = table.NamesWith("data", "''")

// scan reads a row of table.Names or heads.
func scan(tenant string, kind entity.Kind, from interface{ Scan(...any) error }) (content.Entity, error) {
	r, err := table.Scan(from)
	r.Tenant, r.Kind = tenant, kind
	return r.Entity, err
}

// scanner reads rows of a kind.
func scanner(tenant string, kind entity.Kind) func(*sql.Rows) (content.Entity, error) {
	return func(rows *sql.Rows) (content.Entity, error) { return scan(tenant, kind, rows) }
}

// InTx implements content.Store.
func (s *Store) InTx(ctx context.Context, fn func(context.Context) error) error {
	return bunx.InTx(ctx, s.db, fn)
}

// Get implements content.Store.
func (s *Store) Get(ctx context.Context, tenant string, kind entity.Kind, at content.Lookup) (content.Entity, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	return get(ctx, c, tenant, kind, at, "")
}

var (
	selectByID   = table.Select(`WHERE tenant_id = $1 AND kind = $2 AND id = $3`)
	selectBySlug = table.Select(`WHERE tenant_id = $1 AND kind = $2 AND owner_id = $3 AND slug = $4 ` +
		`AND editing_id IS NULL`)
)

func get(
	ctx context.Context, c bunx.Conn, tenant string, kind entity.Kind, at content.Lookup, lock string,
) (content.Entity, error) {
	var r *sql.Row
	if at.ID != "" {
		r = c.Row(ctx, selectByID+lock, tenant, kind, at.ID)
	} else {
		r = c.Row(ctx, selectBySlug+lock, tenant, kind, at.Owner, at.Slug)
	}
	e, err := scan(tenant, kind, r)
	if err != nil {
		return content.Entity{}, bunx.Err(err, content.Noun(kind))
	}
	return e, nil
}

// Page implements content.Store.
func (s *Store) Page(
	ctx context.Context, tenant string, kind entity.Kind, q paging.Query,
) (paging.Page[content.Entity], error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	of := bunx.Part{Where: "e.tenant_id = $1 AND e.kind = $2 AND e.editing_id IS NULL",
		Args: []any{tenant, kind}, Total: bunx.Total("entities", "= $2"),
		Index: &bunx.Index{List: "entities", Part: string(kind), Where: "tenant_id = $1 AND kind = $2"}}
	page, err := bunx.Page(ctx, c, list, of, func(r row) string { return r.ID }, q)
	return paging.Map(page, func(r row) content.Entity {
		r.Tenant, r.Kind = tenant, kind
		return r.Entity
	}), err
}

func search(e content.Entity) string { return fold.Search(e.Name, or(e.Slug), or(e.Description)) }

func or(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// Insert implements content.Store.
func (s *Store) Insert(ctx context.Context, tenant string, e content.Entity) error {
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		if err := c.HoldPrincipal(ctx, tenant, e.OwnerID); err != nil {
			return err
		}
		return put(ctx, c, tenant, e.Kind, []content.Entity{e}, "")
	})
}

// put writes rows with one statement, which ends with onConflict.
func put(
	ctx context.Context, c bunx.Conn, tenant string, kind entity.Kind, all []content.Entity, onConflict string,
) error {
	rows := make([]row, len(all))
	for i, e := range all {
		e.Tenant, e.Kind = tenant, kind
		rows[i].Entity = e
	}
	_, err := table.Insert(ctx, c, onConflict, rows...)
	return bunx.Err(err, slugTaken(kind))
}

func slugTaken(kind entity.Kind) string {
	return content.Noun(entity.Kind(content.WithArticle(kind))) + " of this owner with this slug"
}

// Update implements content.Store.
func (s *Store) Update(
	ctx context.Context, tenant string, kind entity.Kind, at content.Lookup, edit func(*content.Entity) error,
) (content.Entity, error) {
	var e content.Entity
	err := bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) (err error) {
		if e, err = get(ctx, c, tenant, kind, at, c.ForUpdate()); err != nil {
			return err
		}
		was, changed := row{Entity: e}, row{Entity: e}
		if err := edit(&changed.Entity); err != nil {
			return err
		}
		if err := guard.Check(ctx, string(kind), was); err != nil {
			return err
		}
		if err := table.Restore(&changed, &was); err != nil {
			return err
		}
		changed.Tenant, changed.Kind = tenant, kind
		e = changed.Entity
		n, err := table.Update(ctx, c, &changed)
		if err != nil {
			return bunx.Err(err, slugTaken(kind))
		}
		return bunx.Found(n, nil, content.Noun(kind))
	})
	if err != nil {
		return content.Entity{}, err
	}
	return e, nil
}

// Delete implements content.Store.
func (s *Store) Delete(
	ctx context.Context, tenant string, kind entity.Kind, at content.Lookup, may func(content.Entity) error,
) error {
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		e, err := get(ctx, c, tenant, kind, at, c.ForUpdate())
		if err != nil {
			return err
		}
		if err := may(e); err != nil {
			return err
		}
		if err := guard.Check(ctx, string(kind), e); err != nil {
			return err
		}
		n, err := remove(ctx, c, tenant, kind, []string{e.ID})
		return bunx.Found(n, err, content.Noun(kind))
	})
}

func remove(ctx context.Context, c bunx.Conn, tenant string, kind entity.Kind, ids []string) (int, error) {
	n, err := c.Exec(
		ctx, `DELETE FROM tc_entities WHERE tenant_id = $1 AND kind = $2 AND id `+c.OneOf(3), tenant, kind,
		bunx.Keys(ids),
	)
	return n, bunx.Err(err, content.Noun(kind))
}
