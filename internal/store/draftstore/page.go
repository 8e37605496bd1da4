package draftstore

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/tenantcontent/tenantcontent/internal/drafts"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/paging"
)

func (s *Store[T]) list(t *bunx.Table[Row[T]]) bunx.List[Row[T]] {
	at := func(r Row[T], of func(drafts.Fields) *time.Time) string {
		return bunx.At(*of(s.noun.Fields(&r.Entity))).String()
	}
	return bunx.List[Row[T]]{
		Table: t, Key: "id", Order: "name", Search: "search",
		Sorts: []bunx.Sort[Row[T]]{
			{Field: "name", Column: "label", Value: func(r Row[T]) string { return r.label }},
			{Field: "createdAt", Column: "created_at", Value: func(r Row[T]) string {
				return at(r, func(f drafts.Fields) *time.Time { return f.CreatedAt })
			}},
			{Field: "updatedAt", Column: "updated_at", Value: func(r Row[T]) string {
				return at(r, func(f drafts.Fields) *time.Time { return f.UpdatedAt })
			}},
		},
	}
}

func (s *Store[T]) key(r Row[T]) string { return *s.noun.Fields(&r.Entity).ID }

// maxMerged is the most principals whose entities are merged. With more, all entities are collected
// and sorted.
const maxMerged = 100

// Page implements drafts.Store. A viewer sees entities of several principals. A page merges the
// entities of each principal, which an index has in order, with the shared ones, and reads no more
// of them than it shows. A search reads all that the viewer sees.
func (s *Store[T]) Page(ctx context.Context, tenant string, v drafts.Viewer, q paging.Query) (paging.Page[T], error) {
	q, err := q.Checked()
	if err != nil {
		return paging.Page[T]{}, err
	}
	ctx, c := bunx.For(ctx, s.db, tenant)
	principals, list := distinct(v.Principals), s.lists[v.Brief]
	var page paging.Page[Row[T]]
	switch {
	case v.All || q.Q != "" || len(principals) > maxMerged:
		page, err = bunx.Page(ctx, c, list, s.visible(c, tenant, v.All, principals), s.key, q)
	default:
		page, err = s.merged(ctx, c, list, tenant, principals, q)
	}
	return paging.Map(page, func(r Row[T]) T { return s.of(r, tenant) }), err
}

// distinct returns the ids, sorted and without duplicates.
func distinct(ids []string) []string { return slices.Compact(slices.Sorted(slices.Values(ids))) }

// visible returns the part of the list that some principals see, or all of it.
func (s *Store[T]) visible(c bunx.Conn, tenant string, all bool, principals []string) bunx.Part {
	part := bunx.Part{Where: `a.tenant_id = $1 AND ` + s.listedAs("a."),
		Args: []any{tenant}, Total: bunx.Total(strings.TrimPrefix(s.rows, "tc_"), bunx.Whole),
		Index: &bunx.Index{List: strings.TrimPrefix(s.rows, "tc_")}}
	if all {
		return part
	}
	among := c.OneOf(2)
	part.Where += ` AND a.id IN (SELECT o.id FROM ` + s.rows + ` AS o WHERE o.tenant_id = $1 AND o.owner_id ` +
		among + ` AND ` + s.listedAs("o.") + `
		UNION SELECT s.entity_id FROM ` + s.shared + ` AS s WHERE s.tenant_id = $1 AND s.principal_id ` + among +
		` AND s.access_level > 0)`
	part.Args, part.Total = append(part.Args, bunx.Keys(principals)), ""
	return part
}

// merged returns a page of what some principals see.
func (s *Store[T]) merged(
	ctx context.Context, c bunx.Conn, list bunx.List[Row[T]], tenant string, principals []string,
	q paging.Query,
) (page paging.Page[Row[T]], err error) {
	r, q, err := list.Range(q)
	if err != nil {
		return page, err
	}
	m := s.newMerge(c, principals)
	if q.Limit > 0 {
		args := append([]any{tenant, q.Limit + 1, q.Start}, m.args...) // one more row shows whether more rows follow
		if r.After != nil {
			args[2] = 0
			args = append(args, r.After.Value, r.After.Key)
		}
		rows, err := c.Rows(ctx, m.page(list.Table.Qualified, r), args...)
		if err := list.Fill(ctx, rows, err, s.key, q, &page, &page.Total); err != nil || len(page.Rows) > 0 {
			return page, err
		}
	}
	err = c.One(ctx, s.noun.Name, m.count(), append([]any{tenant}, m.args...), &page.Total)
	return page, err
}

// Drafts implements drafts.Store.
func (s *Store[T]) Drafts(ctx context.Context, tenant string, v drafts.Viewer) ([]T, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	alive, sees := `TRUE`, `TRUE`
	if s.noun.Restorable {
		alive = `a.deleted_at IS NULL AND o.deleted_at IS NULL`
	}
	with, args := ``, []any{tenant}
	if !v.All {
		with, args = `WITH principals (id) AS `+c.Among(2, 1)+` `, append(args, bunx.Keys(v.Principals))
		sees = `(o.owner_id IN (SELECT id FROM principals) OR EXISTS (SELECT 1 FROM ` + s.shared +
			` s WHERE s.tenant_id = $1 AND s.entity_id = o.id
			AND s.principal_id IN (SELECT id FROM principals) AND s.access_level > 0))`
	}
	// Drafts are few, so the entity of each is looked up. It is a value, which is never joined.
	query := with + `SELECT ` + s.heads.Qualified + ` FROM ` + s.rows +
		` a WHERE a.tenant_id = $1 AND a.editing_id IS NOT NULL
		AND (SELECT ` + alive + ` AND ` + sees + ` FROM ` + s.rows +
		` o WHERE o.tenant_id = $1 AND o.id = a.editing_id)` + order("a.", "label", "ASC")
	rows, err := c.Rows(ctx, query, args...)
	all, err := bunx.Scan(rows, err, s.scanner(tenant))
	return all, bunx.Err(err, s.noun.Name)
}

// listedAs returns listed with another name of the table.
func (s *Store[T]) listedAs(table string) string {
	return strings.NewReplacer("editing_id", table+"editing_id", "deleted_at", table+"deleted_at").Replace(s.listed)
}
