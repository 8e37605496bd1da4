// Package bunstore stores AI instructions in PostgreSQL or SQLite. The root imports it.
package bunstore

import (
	"context"
	"database/sql"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/aiinstr"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/bunx"
	"github.com/tenantcontent/tenantcontent/internal/fold"
	"github.com/tenantcontent/tenantcontent/internal/guard"
	"github.com/tenantcontent/tenantcontent/internal/uuids"
	"github.com/tenantcontent/tenantcontent/paging"
)

// what names an instruction in errors.
const what = "AI instruction"

// Store implements aiinstr.Store.
type Store struct{ db *bun.DB }

// New returns a Store. The tables must be there: see tenantcontent.Migrate.
func New(db *bun.DB) *Store { return &Store{db: db} }

// row is the table's shape except for the column that is searched.
type row struct {
	bun.BaseModel `bun:"table:tc_ai_instructions,alias:i"`

	TenantID    string
	ID          string `bun:"id"`
	Slug        string
	Description *string
	Content     string
	OwnerID     string `bun:"owner_id"`
	CreatedAt   bunx.Time
	UpdatedAt   bunx.Time
}

func (r row) instruction() aiinstr.Instruction {
	return aiinstr.Instruction{
		Tenant: r.TenantID, ID: r.ID, Slug: r.Slug, Description: r.Description, Content: r.Content, OwnerID: r.OwnerID,
		CreatedAt: r.CreatedAt.Time, UpdatedAt: r.UpdatedAt.Time,
	}
}

var list = bunx.List[row]{
	Key: "id", Order: "slug", Search: "search",
	Sorts: []bunx.Sort[row]{
		{Field: "slug", Column: "slug", Value: func(r row) string { return r.Slug }},
		{Field: "createdAt", Column: "created_at", Value: func(r row) string { return r.CreatedAt.String() }},
		{Field: "updatedAt", Column: "updated_at", Value: func(r row) string { return r.UpdatedAt.String() }},
	},
}

const columns = `tenant_id, id, slug, description, content, owner_id, created_at, updated_at`

func scan(from interface{ Scan(...any) error }) (aiinstr.Instruction, error) {
	var r row
	err := from.Scan(&r.TenantID, &r.ID, &r.Slug, &r.Description, &r.Content, &r.OwnerID, &r.CreatedAt, &r.UpdatedAt)
	return r.instruction(), err
}

func scanRows(rows *sql.Rows) (aiinstr.Instruction, error) { return scan(rows) }

// InTx implements aiinstr.Store.
func (s *Store) InTx(ctx context.Context, fn func(context.Context) error) error {
	return bunx.InTx(ctx, s.db, fn)
}

// Get implements aiinstr.Store.
func (s *Store) Get(ctx context.Context, tenant, key string) (aiinstr.Instruction, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	return get(ctx, c, tenant, key, "")
}

func get(ctx context.Context, c bunx.Conn, tenant, key, lock string) (aiinstr.Instruction, error) {
	column := "id"
	if !uuids.Valid(key) {
		column = "slug"
	}
	i, err := scan(c.Row(ctx, `SELECT `+columns+` FROM tc_ai_instructions WHERE tenant_id = $1 AND `+column+` = $2`+lock, tenant, key))
	if err != nil {
		return aiinstr.Instruction{}, bunx.Err(err, what)
	}
	return i, nil
}

// Page implements aiinstr.Store.
func (s *Store) Page(ctx context.Context, tenant string, q paging.Query) (paging.Page[aiinstr.Instruction], error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows := c.NewSelect().Model((*row)(nil)).Where("i.tenant_id = ?", tenant)
	page, err := bunx.Page(ctx, rows, list, func(r row) string { return r.ID }, q)
	return paging.Map(page, row.instruction), err
}

// maxSlugs is how many slugs Contents looks up with one statement; a text with more takes several.
const maxSlugs = 10_000

// Contents implements aiinstr.Store.
func (s *Store) Contents(ctx context.Context, tenant string, slugs []string, most int) (map[string]string, error) {
	all := map[string]string{}
	for len(slugs) > 0 {
		some := slugs[:min(len(slugs), maxSlugs)]
		slugs = slugs[len(some):]
		if err := s.contents(ctx, tenant, some, &most, all); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (s *Store) contents(ctx context.Context, tenant string, slugs []string, most *int, all map[string]string) error {
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows, err := c.Rows(ctx, `SELECT slug, content FROM tc_ai_instructions WHERE tenant_id = $1 AND slug IN `+bunx.In(2, len(slugs)),
		bunx.Args(slugs, tenant)...)
	_, err = bunx.Scan(rows, err, func(rows *sql.Rows) (none struct{}, err error) {
		var slug, content string
		if err := rows.Scan(&slug, &content); err != nil {
			return none, err
		}
		if *most -= len(content); *most < 0 {
			return none, errs.New(errs.Invalid, "The instructions that the text refers to are too long together.")
		}
		all[slug] = content
		return none, nil
	})
	return bunx.Err(err, what)
}

// Insert implements aiinstr.Store.
func (s *Store) Insert(ctx context.Context, tenant string, i aiinstr.Instruction) error {
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		if err := c.HoldPrincipal(ctx, tenant, i.OwnerID); err != nil {
			return err
		}
		return put(ctx, c, tenant, []aiinstr.Instruction{i}, "")
	})
}

// put writes rows with one statement.
func put(ctx context.Context, c bunx.Conn, tenant string, all []aiinstr.Instruction, onConflict string) error {
	const columns = 9
	args := make([]any, 0, columns*len(all))
	for _, i := range all {
		description := ""
		if i.Description != nil {
			description = *i.Description
		}
		args = append(args, tenant, i.ID, i.Slug, fold.Search(i.Slug, description), i.Description, i.Content, i.OwnerID,
			bunx.At(i.CreatedAt), bunx.At(i.UpdatedAt))
	}
	_, err := c.Exec(ctx, `INSERT INTO tc_ai_instructions (tenant_id, id, slug, search, description, content, owner_id, created_at, updated_at)
		VALUES `+bunx.Values(len(all), columns)+onConflict, args...)
	return bunx.Err(err, "An AI instruction with this slug")
}

// Update implements aiinstr.Store.
func (s *Store) Update(ctx context.Context, tenant, key string, edit func(*aiinstr.Instruction) error) (aiinstr.Instruction, error) {
	var i aiinstr.Instruction
	err := bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) (err error) {
		if i, err = get(ctx, c, tenant, key, c.ForUpdate()); err != nil {
			return err
		}
		was := i
		if err := edit(&i); err != nil {
			return err
		}
		if err := guard.Check(ctx, "ai-instruction", was); err != nil {
			return err
		}
		i.Tenant, i.ID, i.Slug, i.OwnerID, i.CreatedAt = was.Tenant, was.ID, was.Slug, was.OwnerID, was.CreatedAt
		description := ""
		if i.Description != nil {
			description = *i.Description
		}
		n, err := c.Exec(ctx, `UPDATE tc_ai_instructions SET search = $1, description = $2, content = $3, updated_at = $4
			WHERE tenant_id = $5 AND id = $6`,
			fold.Search(i.Slug, description), i.Description, i.Content, bunx.At(i.UpdatedAt), tenant, i.ID)
		return bunx.Found(n, err, what)
	})
	if err != nil {
		return aiinstr.Instruction{}, err
	}
	return i, nil
}

// Delete implements aiinstr.Store.
func (s *Store) Delete(ctx context.Context, tenant, key string, may func(aiinstr.Instruction) error) error {
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		i, err := get(ctx, c, tenant, key, c.ForUpdate())
		if err != nil {
			return err
		}
		if err := may(i); err != nil {
			return err
		}
		if err := guard.Check(ctx, "ai-instruction", i); err != nil {
			return err
		}
		n, err := c.Exec(ctx, `DELETE FROM tc_ai_instructions WHERE tenant_id = $1 AND id = $2`, tenant, i.ID)
		return bunx.Found(n, err, what)
	})
}
