// Package bunstore stores AI instructions in PostgreSQL or SQLite. The root imports it.
package bunstore

import (
	"context"
	"database/sql"
	"slices"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/aiinstr"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/secure/guard"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/text/fold"
	"github.com/tenantcontent/tenantcontent/internal/text/uuids"
	"github.com/tenantcontent/tenantcontent/paging"
)

// what is the name of an instruction in errors.
const what = "AI instruction"

// Store implements aiinstr.Store.
type Store struct{ db *bun.DB }

// New returns a Store. The tables must exist: see tenantcontent.Migrate.
func New(db *bun.DB) *Store { return &Store{db: db} }

// Count implements aiinstr.Store.
func (s *Store) Count(ctx context.Context, tenant string) (int, error) {
	return bunx.Count(ctx, s.db, tenant, "tc_ai_instructions")
}

// table has the columns of an instruction.
var table = bunx.NewTable("tc_ai_instructions", "i", []bunx.Column[aiinstr.Instruction]{
	{Name: "tenant_id", Key: true, Field: func(i *aiinstr.Instruction) any { return &i.Tenant }},
	{Name: "id", Key: true, Field: func(i *aiinstr.Instruction) any { return &i.ID }},
	{Name: "slug", Field: func(i *aiinstr.Instruction) any { return &i.Slug }},
	{Name: "search", Value: func(i *aiinstr.Instruction) any { return search(*i) }},
	{Name: "description", Field: func(i *aiinstr.Instruction) any { return &i.Description }},
	{Name: "content", Field: func(i *aiinstr.Instruction) any { return &i.Content }},
	{Name: "owner_id", Field: func(i *aiinstr.Instruction) any { return &i.OwnerID }},
	{Name: "created_at", Once: true, Field: func(i *aiinstr.Instruction) any { return bunx.TimeOf(&i.CreatedAt) }},
	{Name: "updated_at", Field: func(i *aiinstr.Instruction) any { return bunx.TimeOf(&i.UpdatedAt) }},
})

func search(i aiinstr.Instruction) string {
	description := ""
	if i.Description != nil {
		description = *i.Description
	}
	return fold.Search(i.Slug, description)
}

func key(i aiinstr.Instruction) string { return i.ID }

var list = bunx.List[aiinstr.Instruction]{
	Table: table, Key: "id", Order: "slug", Search: "search",
	Sorts: []bunx.Sort[aiinstr.Instruction]{
		{Field: "slug", Column: "slug", Value: func(i aiinstr.Instruction) string { return i.Slug }},
		{Field: "createdAt", Column: "created_at", Value: func(i aiinstr.Instruction) string {
			return bunx.At(i.CreatedAt).String()
		}},
		{Field: "updatedAt", Column: "updated_at", Value: func(i aiinstr.Instruction) string {
			return bunx.At(i.UpdatedAt).String()
		}},
	},
}

func scanRows(rows *sql.Rows) (aiinstr.Instruction, error) { return table.Scan(rows) }

// InTx implements aiinstr.Store.
func (s *Store) InTx(ctx context.Context, fn func(context.Context) error) error {
	return bunx.InTx(ctx, s.db, fn)
}

// Get implements aiinstr.Store.
func (s *Store) Get(ctx context.Context, tenant, key string) (aiinstr.Instruction, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	return get(ctx, c, tenant, key, "")
}

var (
	selectByID   = table.Select(`WHERE tenant_id = $1 AND id = $2`)
	selectBySlug = table.Select(`WHERE tenant_id = $1 AND slug = $2`)
)

func get(ctx context.Context, c bunx.Conn, tenant, key, lock string) (aiinstr.Instruction, error) {
	query := selectByID
	if !uuids.Valid(key) {
		query = selectBySlug
	}
	i, err := table.Scan(c.Row(ctx, query+lock, tenant, key))
	if err != nil {
		return aiinstr.Instruction{}, bunx.Err(err, what)
	}
	return i, nil
}

// Page implements aiinstr.Store.
func (s *Store) Page(ctx context.Context, tenant string, q paging.Query) (paging.Page[aiinstr.Instruction], error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	return bunx.Page(ctx, c, list, bunx.Part{
		Where: "i.tenant_id = $1",
		Args:  []any{tenant},
		Total: bunx.Total("ai_instructions", bunx.Whole),
		Index: &bunx.Index{List: "ai_instructions"},
	}, key, q)
}

// maxSlugs is the most slugs that Contents looks up with one statement. For more it runs several.
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
	rows, err := c.Rows(ctx, `SELECT slug, content FROM tc_ai_instructions WHERE tenant_id = $1 AND slug IN `+
		bunx.In(2, len(slugs)),
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

// put writes rows with one statement, which ends with onConflict.
func put(ctx context.Context, c bunx.Conn, tenant string, all []aiinstr.Instruction, onConflict string) error {
	rows := slices.Clone(all)
	for i := range rows {
		rows[i].Tenant = tenant
	}
	_, err := table.Insert(ctx, c, onConflict, rows...)
	return bunx.Err(err, "An AI instruction with this slug")
}

// Update implements aiinstr.Store.
func (s *Store) Update(
	ctx context.Context, tenant, key string, edit func(*aiinstr.Instruction) error,
) (aiinstr.Instruction, error) {
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
		if err := table.Restore(&i, &was); err != nil {
			return err
		}
		i.Slug, i.OwnerID = was.Slug, was.OwnerID // an import changes them; an edit does not
		n, err := table.Update(ctx, c, &i)
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
