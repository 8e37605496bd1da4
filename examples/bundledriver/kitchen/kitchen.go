// Package kitchen has recipes: a kind of content in a table of the host's, and the driver that
// ships it in bundles. kitchen_test.go checks that the driver keeps its promises.
//
// The program in the folder above imports it.
package kitchen

import (
	"context"
	"encoding/json"
	"iter"
	"slices"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/bundles"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
)

// Kind is the kind of content, and the type of the bundle entries that ship it.
const Kind entity.Kind = "recipe"

// Recipe is what the host keeps.
type Recipe struct {
	bun.BaseModel `bun:"table:recipes" json:"-"`

	TenantID string `bun:",pk" json:"-"`
	ID       string `bun:"id,pk" json:"-"`
	Title    string `json:"title"`
	Steps    string `json:"steps"`
	PartOf   string `json:"partOf,omitempty"` // id of another recipe, "" for none
}

// Table makes the host's table.
const Table = `CREATE TABLE recipes (tenant_id text, id text, title text, steps text, part_of text, PRIMARY KEY ` +
	`(tenant_id, id))`

// Recipes is both the driver and the Transferer of recipes.
type Recipes struct{ DB *bun.DB }

var (
	_ bundles.Driver    = Recipes{}
	_ entity.Transferer = Recipes{}
)

// Descriptor implements bundles.Driver.
func (r Recipes) Descriptor() bundles.Descriptor {
	return bundles.Descriptor{
		ID: string(Kind), Name: "host:recipe", Label: "Recipe", Column: "recipeId", Editor: "recipeOptions",
		Icon: bundles.Icon{Material: "restaurant"},
	}
}

// Content implements bundles.Driver.
func (r Recipes) Content() []entity.Type { return []entity.Type{r.Type()} }

// Type is what the host tells of its kind. It goes into Config.Entities too, so that recipes can be
// found by what else works on content of every kind, and commented at /api/recipes/{id}/comments.
func (r Recipes) Type() entity.Type {
	return entity.Type{Kind: Kind, Lookup: r.Lookup, Transferer: r, Commented: true}
}

// Lookup finds a recipe.
func (r Recipes) Lookup(ctx context.Context, tenant, id string) (entity.Ref, error) {
	some, err := r.some(ctx, tenant, []string{id})
	if err != nil {
		return entity.Ref{}, err
	}
	if len(some) == 0 {
		return entity.Ref{}, errs.New(errs.NotFound, "Recipe not found.")
	}
	return entity.Ref{Kind: Kind, ID: id, Name: some[0].Title}, nil
}

func (r Recipes) some(ctx context.Context, tenant string, ids []string) (some []Recipe, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	ctx, db := tenantcontent.Conn(ctx, r.DB, tenant) // joins the transaction, if there is one
	err = db.NewSelect().Model(&some).Where("tenant_id = ? AND id IN (?)", tenant, bun.List(ids)).Scan(ctx)
	return some, err
}

// Insert adds a recipe.
func (r Recipes) Insert(ctx context.Context, recipe Recipe) error {
	ctx, db := tenantcontent.Conn(ctx, r.DB, recipe.TenantID)
	_, err := db.NewInsert().Model(&recipe).Exec(ctx)
	return err
}

// IDs implements entity.Transferer.
func (r Recipes) IDs(ctx context.Context, tenant string) (ids []string, err error) {
	ctx, db := tenantcontent.Conn(ctx, r.DB, tenant)
	err = db.NewSelect().Model((*Recipe)(nil)).Column("id").Where("tenant_id = ?", tenant).Order("id").Scan(ctx, &ids)
	return ids, err
}

// Needs implements entity.Transferer: a recipe needs the one that it is part of.
func (r Recipes) Needs(ctx context.Context, tenant string, ids []string) (map[string][]entity.Key, error) {
	some, err := r.some(ctx, tenant, ids)
	needs := map[string][]entity.Key{}
	for _, recipe := range some {
		needs[recipe.ID] = nil // it is there
		if recipe.PartOf != "" {
			needs[recipe.ID] = []entity.Key{{Kind: Kind, ID: recipe.PartOf}}
		}
	}
	return needs, err
}

// Export implements entity.Transferer. It is asked for a few hundred at a time at most.
func (r Recipes) Export(ctx context.Context, tenant string, ids []string) iter.Seq2[entity.Row, error] {
	return func(yield func(entity.Row, error) bool) {
		some, err := r.some(ctx, tenant, ids)
		if err != nil {
			yield(entity.Row{}, err)
			return
		}
		for _, id := range ids {
			row := entity.Row{Key: entity.Key{Kind: Kind, ID: id}}
			i := slices.IndexFunc(some, func(recipe Recipe) bool { return recipe.ID == id })
			if i < 0 {
				yield(row, errs.New(errs.NotFound, "recipe %s not found", id))
				return
			}
			if row.JSON, err = json.Marshal(some[i]); !yield(row, err) || err != nil {
				return
			}
		}
	}
}

// Import implements entity.Transferer.
func (r Recipes) Import(
	ctx context.Context, tenant string, rows []entity.Row, l entity.ImportOptions,
) ([]entity.ImportAction, []string, error) {
	actions := make([]entity.ImportAction, len(rows))
	err := tenantcontent.InTx(ctx, r.DB, func(ctx context.Context) error {
		ids, err := r.IDs(ctx, tenant)
		for i, row := range rows {
			if err == nil {
				actions[i], err = r.land(ctx, tenant, row, l.Rule, slices.Contains(ids, row.ID))
			}
		}
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	return actions, nil, nil
}

func (r Recipes) land(
	ctx context.Context, tenant string, row entity.Row, rule entity.Rule, there bool,
) (entity.ImportAction, error) {
	recipe := &Recipe{}
	if row.Kind != Kind || json.Unmarshal(row.JSON, &recipe) != nil || recipe == nil {
		return "", errs.New(errs.Invalid, "recipe %s: not a recipe", row.ID)
	}
	recipe.TenantID, recipe.ID = tenant, row.ID
	ctx, db := tenantcontent.Conn(ctx, r.DB, tenant)
	switch {
	case !slices.Contains([]entity.Rule{entity.Skip, entity.Overwrite, entity.Fail}, rule):
		return "", errs.New(errs.Invalid, "updateRule must be one of skip, overwrite and fail")
	case !there:
		return entity.Created, r.Insert(ctx, *recipe)
	case rule == entity.Fail:
		return "", errs.New(errs.Conflict, "recipe %s exists already", row.ID)
	case rule == entity.Skip:
		return entity.Skipped, nil
	}
	_, err := db.NewUpdate().Model(recipe).WherePK().Exec(ctx)
	return entity.Updated, err
}

// Remove implements entity.Transferer. Comments on the recipes are removed by who calls it.
func (r Recipes) Remove(ctx context.Context, tenant string, ids []string) (n int, err error) {
	if len(ids) == 0 {
		return 0, nil
	}
	err = tenantcontent.InTx(ctx, r.DB, func(ctx context.Context) error {
		ctx, db := tenantcontent.Conn(ctx, r.DB, tenant)
		res, err := db.NewDelete().Model((*Recipe)(nil)).Where(
			"tenant_id = ? AND id IN (?)", tenant, bun.List(ids),
		).Exec(ctx)
		if err != nil {
			return err
		}
		removed, err := res.RowsAffected()
		n = int(removed)
		return err
	})
	return n, err
}
