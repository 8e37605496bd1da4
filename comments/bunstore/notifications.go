package bunstore

import (
	"context"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/comments"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/bunx"
	"github.com/tenantcontent/tenantcontent/paging"
)

// notification is the table's shape.
type notification struct {
	bun.BaseModel `bun:"table:tc_notifications,alias:n"`

	TenantID  string `bun:"tenant_id"`
	ID        string `bun:"id"`
	Username  string
	Type      string
	State     comments.State
	Title     string
	Body      string
	Kind      *entity.Kind
	EntityID  *string `bun:"entity_id"`
	CommentID *string `bun:"comment_id"`
	CreatedAt bunx.Time
	UpdatedAt bunx.Time
}

func notificationRow(tenant string, n comments.Notification) notification {
	r := notification{
		TenantID: tenant, ID: n.ID, Username: n.Username, Type: n.Type, State: n.State, Title: n.Title, Body: n.Body,
		CommentID: n.CommentID, CreatedAt: bunx.At(n.CreatedAt), UpdatedAt: bunx.At(n.UpdatedAt),
	}
	if n.Entity != (entity.Key{}) {
		r.Kind, r.EntityID = &n.Entity.Kind, &n.Entity.ID
	}
	return r
}

func (r notification) notification() comments.Notification {
	n := comments.Notification{
		Tenant: r.TenantID, ID: r.ID, Username: r.Username, Type: r.Type, State: r.State, Title: r.Title, Body: r.Body,
		CommentID: r.CommentID, CreatedAt: r.CreatedAt.Time, UpdatedAt: r.UpdatedAt.Time,
	}
	if r.Kind != nil && r.EntityID != nil {
		n.Entity = entity.Key{Kind: *r.Kind, ID: *r.EntityID}
	}
	return n
}

func (r notification) key() string { return r.ID }

var notifications = bunx.List[notification]{
	Key: "id", Order: "-createdAt",
	Sorts: []bunx.Sort[notification]{
		{Field: "createdAt", Column: "created_at", Value: func(r notification) string { return r.CreatedAt.String() }},
	},
}

// Enqueue implements comments.Queue.
func (s *Store) Enqueue(ctx context.Context, tenant string, all []comments.Notification) error {
	if len(all) == 0 {
		return nil
	}
	rows := make([]notification, len(all))
	for i, n := range all {
		rows[i] = notificationRow(tenant, n)
	}
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		_, err := c.NewInsert().Model(&rows).On("CONFLICT (tenant_id, comment_id, username, type) DO NOTHING").Exec(ctx)
		return bunx.Err(err, "Notification")
	})
}

// Notifications implements comments.Store.
func (s *Store) Notifications(ctx context.Context, tenant, username string, q paging.Query) (paging.Page[comments.Notification], error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows := c.NewSelect().Model((*notification)(nil)).Where("n.tenant_id = ?", tenant).Where("n.username = ?", username)
	page, err := bunx.Page(ctx, rows, notifications, notification.key, q)
	return paging.Map(page, notification.notification), err
}
