package bunstore

import (
	"context"
	"fmt"
	"slices"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/apps"
	"github.com/tenantcontent/tenantcontent/internal/bunx"
	"github.com/tenantcontent/tenantcontent/paging"
)

// lists are the list of apps, and that without Defn.
var lists = map[bool]bunx.List[row]{false: newList(table), true: newList(heads)}

func newList(t *bunx.Table[row]) bunx.List[row] {
	return bunx.List[row]{
		Table: t, Key: "id", Order: "name", Search: "search",
		Sorts: []bunx.Sort[row]{
			{Field: "name", Column: "label", Value: func(r row) string { return r.label }},
			{Field: "createdAt", Column: "created_at", Value: func(r row) string { return bunx.At(r.CreatedAt).String() }},
			{Field: "updatedAt", Column: "updated_at", Value: func(r row) string { return bunx.At(r.UpdatedAt).String() }},
		},
	}
}

func key(r row) string { return r.ID }

// maxMerged is the most principals whose apps are merged. Those of more are collected and sorted.
const maxMerged = 100

// Page implements apps.Store. What a viewer sees is scattered among what others have, so a page merges the apps of each principal,
// which an index has in order, with the shared ones, and reads no more of them than it shows. A search reads all that the viewer
// sees.
func (s *Store) Page(ctx context.Context, tenant string, v apps.Viewer, q paging.Query) (paging.Page[apps.App], error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	principals, list := distinct(v.Principals), lists[v.NoDefn]
	var page paging.Page[row]
	var err error
	switch {
	case v.All || q.Q != "" || len(principals) > maxMerged:
		page, err = bunx.Page(ctx, visible(list.Table.Rows(c), tenant, v.All, principals), list, key, q)
	default:
		page, err = merged(ctx, c, list, tenant, principals, q)
	}
	return paging.Map(page, func(r row) apps.App {
		r.Tenant = tenant
		return r.App
	}), err
}

// distinct returns the ids, each once and ordered.
func distinct(ids []string) []string { return slices.Compact(slices.Sorted(slices.Values(ids))) }

// visible selects the apps that some principals see, or all.
func visible(rows *bun.SelectQuery, tenant string, all bool, principals []string) *bun.SelectQuery {
	rows = rows.Where("a.tenant_id = ?", tenant).Where("a.editing_id IS NULL").Where("a.deleted_at IS NULL")
	if all {
		return rows
	}
	if len(principals) == 0 {
		return rows.Where("false")
	}
	ids := bun.List(principals)
	return rows.Where(`a.id IN (SELECT o.id FROM tc_apps AS o WHERE o.tenant_id = ? AND o.owner_id IN (?) AND o.editing_id IS NULL AND o.deleted_at IS NULL
		UNION SELECT s.entity_id FROM tc_app_shares AS s WHERE s.tenant_id = ? AND s.principal_id IN (?) AND s.access_level > 0)`, tenant, ids, tenant, ids)
}

// merged returns a page of what some principals see.
func merged(ctx context.Context, c bunx.Conn, list bunx.List[row], tenant string, principals []string, q paging.Query) (page paging.Page[row], err error) {
	r, err := list.Range(q)
	if err != nil {
		return page, err
	}
	m := newMerge(c, principals)
	if q.Limit > 0 {
		args := append([]any{tenant, q.Limit + 1, q.Start}, m.args...) // one more tells whether there are more
		if r.After != nil {
			args[2] = 0
			args = append(args, r.After.Value, r.After.Key)
		}
		rows, err := c.Rows(ctx, m.page(list.Table.Qualified, r), args...)
		if err := list.Fill(ctx, rows, err, key, q, &page, &page.Total); err != nil || len(page.Rows) > 0 {
			return page, err
		}
	}
	err = c.One(ctx, noun, m.count(), append([]any{tenant}, m.args...), &page.Total)
	return page, err
}

// Drafts implements apps.Store.
func (s *Store) Drafts(ctx context.Context, tenant string, v apps.Viewer) ([]apps.App, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	query, args := selectDrafts, []any{tenant}
	if !v.All {
		query, args = fmt.Sprintf(selectSeenDrafts, c.Among(2, 1)), append(args, bunx.Keys(v.Principals))
	}
	rows, err := c.Rows(ctx, query, args...)
	all, err := bunx.Scan(rows, err, scanner(tenant))
	return all, bunx.Err(err, noun)
}

// Drafts are few, so each one's app is looked up.
var (
	selectDrafts = `SELECT ` + heads.Qualified + ` FROM tc_apps a JOIN tc_apps o ON o.tenant_id = a.tenant_id AND o.id = a.editing_id
		WHERE a.tenant_id = $1 AND a.editing_id IS NOT NULL AND a.deleted_at IS NULL AND o.deleted_at IS NULL` + order("a.", "label", "ASC")
	selectSeenDrafts = `WITH principals (id) AS %s SELECT ` + heads.Qualified + ` FROM tc_apps a JOIN tc_apps o ON o.tenant_id = a.tenant_id AND o.id = a.editing_id
		WHERE a.tenant_id = $1 AND a.editing_id IS NOT NULL AND a.deleted_at IS NULL AND o.deleted_at IS NULL
			AND (o.owner_id IN (SELECT id FROM principals) OR EXISTS (SELECT 1 FROM tc_app_shares s WHERE s.tenant_id = $1 AND s.entity_id = o.id
				AND s.principal_id IN (SELECT id FROM principals) AND s.access_level > 0))` + order("a.", "label", "ASC")
)
