package bunstore

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/blobs/files"
	"github.com/tenantcontent/tenantcontent/internal/bunx"
	"github.com/tenantcontent/tenantcontent/paging"
)

// row is a file in a list; Page says of which table.
type row struct {
	bun.BaseModel `bun:"alias:f"`

	ID          string `bun:"id"`
	Username    string
	Filename    string
	ContentType string
	Size        int64
	Chunks      int
	CreatedAt   bunx.Time
	ExpiresAt   bunx.Time
}

func (r row) file() files.File {
	return files.File{
		ID: r.ID, Filename: r.Filename, ContentType: r.ContentType, Size: r.Size, Chunks: r.Chunks, Username: r.Username,
		CreatedAt: r.CreatedAt.Time, ExpiresAt: r.ExpiresAt.Time,
	}
}

var list = bunx.List[row]{
	Key: "id", Order: "-createdAt",
	Sorts: []bunx.Sort[row]{{Field: "createdAt", Column: "created_at", Value: func(r row) string { return r.CreatedAt.String() }}},
}

// Page implements files.Store.
func (s *Store) Page(ctx context.Context, tenant string, usernames []string, at time.Time, q paging.Query) (paging.Page[files.File], error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows := c.NewSelect().Model((*row)(nil)).ModelTableExpr("? AS f", bun.Ident(s.table)).
		Where("f.tenant_id = ?", tenant).Where("f.username IN (?)", bun.List(usernames)).Where("f.expires_at > ?", bunx.At(at))
	page, err := bunx.Page(ctx, rows, list, func(r row) string { return r.ID }, q)
	return paging.Map(page, row.file), err
}
