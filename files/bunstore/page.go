package bunstore

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/files"
	"github.com/tenantcontent/tenantcontent/internal/bunx"
	"github.com/tenantcontent/tenantcontent/paging"
)

// Page implements files.Store.
func (s *Store) Page(ctx context.Context, tenant string, usernames []string, at time.Time, q paging.Query) (paging.Page[files.File], error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows := s.rows.Rows(c).Where("f.tenant_id = ?", tenant).Where("f.username IN (?)", bun.List(usernames)).Where("f.expires_at > ?", bunx.At(at))
	list := bunx.List[row]{
		Table: s.rows, Key: "id", Order: "-createdAt",
		Sorts: []bunx.Sort[row]{{Field: "createdAt", Column: "created_at", Value: func(r row) string { return bunx.At(r.CreatedAt).String() }}},
	}
	page, err := bunx.Page(ctx, rows, list, func(r row) string { return r.ID }, q)
	return paging.Map(page, func(r row) files.File { return r.File }), err
}
