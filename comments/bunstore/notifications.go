package bunstore

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/comments"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/bunx"
	"github.com/tenantcontent/tenantcontent/internal/guard"
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
	ReadAt    bunx.Time
}

func notificationRow(tenant string, n comments.Notification) notification {
	r := notification{
		TenantID: tenant, ID: n.ID, Username: n.Username, Type: n.Type, State: n.State, Title: n.Title, Body: n.Body,
		CommentID: n.CommentID, CreatedAt: bunx.At(n.CreatedAt), UpdatedAt: bunx.At(n.UpdatedAt),
		ReadAt: bunx.AtOrNull(n.ReadAt),
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
		ReadAt: r.ReadAt.Ptr(),
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
func (s *Store) Notifications(ctx context.Context, tenant, username string, f comments.NotificationFilter, q paging.Query) (paging.Page[comments.Notification], error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows := c.NewSelect().Model((*notification)(nil)).Where("n.tenant_id = ?", tenant).Where("n.username = ?", username)
	if !f.Since.IsZero() {
		rows = rows.Where("n.created_at >= ?", bunx.At(f.Since))
	}
	if f.Read != nil {
		rows = rows.Where(map[bool]string{false: "n.read_at IS NULL", true: "n.read_at IS NOT NULL"}[*f.Read])
	}
	page, err := bunx.Page(ctx, rows, notifications, notification.key, q)
	return paging.Map(page, notification.notification), err
}

// Notification implements comments.Store.
func (s *Store) Notification(ctx context.Context, tenant, username, id string) (comments.Notification, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	return oneNotification(ctx, c.NewSelect(), tenant, username, id)
}

func oneNotification(ctx context.Context, q *bun.SelectQuery, tenant, username, id string) (comments.Notification, error) {
	var r notification
	err := q.Model(&r).Where("n.tenant_id = ?", tenant).Where("n.username = ?", username).Where("n.id = ?", id).Scan(ctx)
	if err != nil {
		return comments.Notification{}, bunx.Err(err, "Notification")
	}
	return r.notification(), nil
}

// SetRead implements comments.Store.
func (s *Store) SetRead(ctx context.Context, tenant, username, id string, read bool, at time.Time) (n comments.Notification, err error) {
	err = bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		if n, err = oneNotification(ctx, c.Lock(c.NewSelect()), tenant, username, id); err != nil {
			return err
		}
		if err := guard.Check(ctx, "notification", n); err != nil {
			return err
		}
		if read == (n.ReadAt != nil) {
			return nil
		}
		if n.ReadAt, n.UpdatedAt = nil, at; read {
			n.ReadAt = &at
		}
		_, err := c.Exec(ctx, `UPDATE tc_notifications SET read_at = $1, updated_at = $2 WHERE tenant_id = $3 AND username = $4 AND id = $5`,
			bunx.AtOrNull(n.ReadAt), bunx.At(at), tenant, username, id)
		return bunx.Err(err, "Notification")
	})
	return n, err
}

// SetAllRead implements comments.Store.
func (s *Store) SetAllRead(ctx context.Context, tenant, username string, read bool, at time.Time) (n int, err error) {
	query := `UPDATE tc_notifications SET read_at = NULL, updated_at = $1 WHERE tenant_id = $2 AND username = $3 AND read_at IS NOT NULL`
	if read {
		query = `UPDATE tc_notifications SET read_at = $1, updated_at = $1 WHERE tenant_id = $2 AND username = $3 AND read_at IS NULL`
	}
	err = bunx.WriteOne(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) (err error) {
		n, err = c.Exec(ctx, query, bunx.At(at), tenant, username)
		return bunx.Err(err, "Notification")
	})
	return n, err
}

// Unread implements comments.Store.
func (s *Store) Unread(ctx context.Context, tenant, username string) (n int, err error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	err = c.One(ctx, "Notification", `SELECT count(*) FROM tc_notifications WHERE tenant_id = $1 AND username = $2 AND read_at IS NULL`,
		[]any{tenant, username}, &n)
	return n, err
}
