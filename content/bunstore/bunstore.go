// Package bunstore stores the ready kinds of content in PostgreSQL or SQLite. The root imports it.
package bunstore

import (
	"context"
	"database/sql"
	"encoding/json"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/content"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/bunx"
	"github.com/tenantcontent/tenantcontent/internal/fold"
	"github.com/tenantcontent/tenantcontent/internal/guard"
	"github.com/tenantcontent/tenantcontent/paging"
)

// Store implements content.Store.
type Store struct{ db *bun.DB }

// New returns a Store. The tables must be there: see tenantcontent.Migrate.
func New(db *bun.DB) *Store { return &Store{db: db} }

// row is the table's shape except for the column that is searched.
type row struct {
	bun.BaseModel `bun:"table:tc_entities,alias:e"`

	TenantID    string
	Kind        string
	ID          string `bun:"id"`
	Name        string
	Label       string
	Slug        *string
	Description *string
	OwnerID     string `bun:"owner_id"`
	Data        string
	EditingID   *string `bun:"editing_id"`
	System      bool
	Source      *string
	SourceID    *string `bun:"source_id"`
	CreatedAt   bunx.Time
	UpdatedAt   bunx.Time
}

func (r row) entity() content.Entity {
	return content.Entity{
		Tenant: r.TenantID, Kind: entity.Kind(r.Kind), ID: r.ID, Name: r.Name, Slug: r.Slug, Description: r.Description,
		OwnerID: r.OwnerID, Data: json.RawMessage(r.Data), EditingID: r.EditingID, System: r.System, Source: r.Source,
		SourceID: r.SourceID, CreatedAt: r.CreatedAt.Time, UpdatedAt: r.UpdatedAt.Time,
	}
}

var list = bunx.List[row]{
	Key: "id", Order: "name", Search: "search",
	Sorts: []bunx.Sort[row]{
		{Field: "name", Column: "label", Value: func(r row) string { return r.Label }},
		{Field: "createdAt", Column: "created_at", Value: func(r row) string { return r.CreatedAt.String() }},
		{Field: "updatedAt", Column: "updated_at", Value: func(r row) string { return r.UpdatedAt.String() }},
	},
}

// whole and heads are what a read gives: all columns, or all but the data, which may be long.
const (
	whole = `id, name, slug, description, owner_id, data, editing_id, system, source, source_id, created_at, updated_at`
	heads = `id, name, slug, description, owner_id, '', editing_id, system, source, source_id, created_at, updated_at`
)

// scan reads a row of whole or heads.
func scan(tenant string, kind entity.Kind, from interface{ Scan(...any) error }) (content.Entity, error) {
	r := row{TenantID: tenant, Kind: string(kind)}
	err := from.Scan(&r.ID, &r.Name, &r.Slug, &r.Description, &r.OwnerID, &r.Data, &r.EditingID, &r.System, &r.Source, &r.SourceID,
		&r.CreatedAt, &r.UpdatedAt)
	return r.entity(), err
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

func get(ctx context.Context, c bunx.Conn, tenant string, kind entity.Kind, at content.Lookup, lock string) (content.Entity, error) {
	const from = `SELECT ` + whole + ` FROM tc_entities WHERE tenant_id = $1 AND kind = $2 AND `
	var r *sql.Row
	if at.ID != "" {
		r = c.Row(ctx, from+`id = $3`+lock, tenant, kind, at.ID)
	} else {
		r = c.Row(ctx, from+`owner_id = $3 AND slug = $4 AND editing_id IS NULL`+lock, tenant, kind, at.Owner, at.Slug)
	}
	e, err := scan(tenant, kind, r)
	if err != nil {
		return content.Entity{}, bunx.Err(err, content.Noun(kind))
	}
	return e, nil
}

// Page implements content.Store.
func (s *Store) Page(ctx context.Context, tenant string, kind entity.Kind, q paging.Query) (paging.Page[content.Entity], error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows := c.NewSelect().Model((*row)(nil)).Where("e.tenant_id = ?", tenant).Where("e.kind = ?", kind).Where("e.editing_id IS NULL")
	page, err := bunx.Page(ctx, rows, list, func(r row) string { return r.ID }, q)
	return paging.Map(page, row.entity), err
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

// put writes rows with one statement.
func put(ctx context.Context, c bunx.Conn, tenant string, kind entity.Kind, all []content.Entity, onConflict string) error {
	const columns = 16
	args := make([]any, 0, columns*len(all))
	for _, e := range all {
		args = append(args, tenant, kind, e.ID, e.Name, fold.Text(e.Name), search(e), e.Slug, e.Description, e.OwnerID, string(e.Data),
			e.EditingID, e.System, e.Source, e.SourceID, bunx.At(e.CreatedAt), bunx.At(e.UpdatedAt))
	}
	_, err := c.Exec(ctx, `INSERT INTO tc_entities (tenant_id, kind, id, name, label, search, slug, description, owner_id, data,
		editing_id, system, source, source_id, created_at, updated_at) VALUES `+bunx.Values(len(all), columns)+onConflict, args...)
	return bunx.Err(err, slugTaken(kind))
}

func slugTaken(kind entity.Kind) string {
	return content.Noun(entity.Kind(content.WithArticle(kind))) + " of this owner with this slug"
}

// Update implements content.Store.
func (s *Store) Update(ctx context.Context, tenant string, kind entity.Kind, at content.Lookup, edit func(*content.Entity) error) (content.Entity, error) {
	var e content.Entity
	err := bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) (err error) {
		if e, err = get(ctx, c, tenant, kind, at, c.ForUpdate()); err != nil {
			return err
		}
		was := e
		if err := edit(&e); err != nil {
			return err
		}
		if err := guard.Check(ctx, string(kind), was); err != nil {
			return err
		}
		e.Tenant, e.Kind, e.ID, e.CreatedAt = was.Tenant, was.Kind, was.ID, was.CreatedAt
		n, err := c.Exec(ctx, `UPDATE tc_entities SET name = $1, label = $2, search = $3, slug = $4, description = $5, owner_id = $6,
			data = $7, editing_id = $8, system = $9, source = $10, source_id = $11, updated_at = $12
			WHERE tenant_id = $13 AND kind = $14 AND id = $15`,
			e.Name, fold.Text(e.Name), search(e), e.Slug, e.Description, e.OwnerID, string(e.Data), e.EditingID, e.System, e.Source,
			e.SourceID, bunx.At(e.UpdatedAt), tenant, kind, e.ID)
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
func (s *Store) Delete(ctx context.Context, tenant string, kind entity.Kind, at content.Lookup, may func(content.Entity) error) (blobs []string, err error) {
	err = bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
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
		var n int
		n, blobs, err = remove(ctx, c, tenant, kind, []string{e.ID})
		return bunx.Found(n, err, content.Noun(kind))
	})
	return blobs, err
}

// remove deletes rows, and the names of libraries' files with them.
func remove(ctx context.Context, c bunx.Conn, tenant string, kind entity.Kind, ids []string) (n int, blobs []string, err error) {
	n, err = c.Exec(ctx, `DELETE FROM tc_entities WHERE tenant_id = $1 AND kind = $2 AND id IN `+c.Among(3, 1),
		tenant, kind, bunx.Keys(ids))
	if err != nil || kind != content.Library {
		return n, nil, bunx.Err(err, content.Noun(kind))
	}
	rows, err := c.Rows(ctx, `DELETE FROM tc_library_files WHERE tenant_id = $1 AND library_id IN `+c.Among(2, 1)+` RETURNING blob_id`,
		tenant, bunx.Keys(ids))
	blobs, err = bunx.Scan(rows, err, func(rows *sql.Rows) (id string, err error) { return id, rows.Scan(&id) })
	return n, blobs, bunx.Err(err, "File")
}
