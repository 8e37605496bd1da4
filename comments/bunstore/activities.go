package bunstore

import (
	"context"
	"database/sql"
	"errors"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/comments"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/bunx"
	"github.com/tenantcontent/tenantcontent/paging"
)

// activity is the table's shape.
type activity struct {
	bun.BaseModel `bun:"table:tc_activities,alias:a"`

	TenantID  string `bun:"tenant_id"`
	ID        string `bun:"id"`
	Type      string
	Kind      entity.Kind
	EntityID  string  `bun:"entity_id"`
	CommentID *string `bun:"comment_id"`
	UserID    string  `bun:"user_id"`
	Excerpt   string
	CreatedAt bunx.Time
}

func (r activity) activity() comments.Activity {
	return comments.Activity{
		Tenant: r.TenantID, ID: r.ID, Type: r.Type, Entity: entity.Key{Kind: r.Kind, ID: r.EntityID}, CommentID: r.CommentID,
		UserID: r.UserID, Excerpt: r.Excerpt, CreatedAt: r.CreatedAt.Time,
	}
}

func (r activity) key() string { return r.ID }

// newest is a list of activities by the columns of a table: tc_activities, or tc_feed, which holds the time too.
func newest(key, created string) bunx.List[activity] {
	return bunx.List[activity]{
		Key: key, Order: "-createdAt",
		Sorts: []bunx.Sort[activity]{{Field: "createdAt", Column: created, Value: func(r activity) string { return r.CreatedAt.String() }}},
	}
}

// PutActivity implements comments.Store.
func (s *Store) PutActivity(ctx context.Context, tenant string, a comments.Activity, concerned []string) error {
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		id, created, err := putActivity(ctx, c, tenant, a)
		if err != nil || len(concerned) == 0 {
			return bunx.Err(err, "Activity")
		}
		var args []any
		for _, name := range concerned {
			args = append(args, tenant, id, name, created)
		}
		_, err = c.Exec(ctx, `INSERT INTO tc_feed (tenant_id, activity_id, username, created_at) VALUES `+bunx.Values(len(concerned), 4), args...)
		return bunx.Err(err, "Activity")
	})
}

// putActivity adds an activity, or rebuilds the one of its comment and takes it out of all feeds. It returns the id and time
// that it has.
func putActivity(ctx context.Context, c bunx.Conn, tenant string, a comments.Activity) (id string, created bunx.Time, err error) {
	err = c.Row(ctx, `SELECT id, created_at FROM tc_activities WHERE tenant_id = $1 AND comment_id = $2 AND type = $3`,
		tenant, a.CommentID, a.Type).Scan(&id, &created)
	if errors.Is(err, sql.ErrNoRows) {
		_, err = c.Exec(ctx, `INSERT INTO tc_activities (tenant_id, id, type, kind, entity_id, comment_id, user_id, excerpt, created_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
			tenant, a.ID, a.Type, a.Entity.Kind, a.Entity.ID, a.CommentID, a.UserID, a.Excerpt, bunx.At(a.CreatedAt))
		return a.ID, bunx.At(a.CreatedAt), err
	}
	if err != nil {
		return "", bunx.Time{}, err
	}
	if _, err = c.Exec(ctx, `UPDATE tc_activities SET excerpt = $1 WHERE tenant_id = $2 AND id = $3`, a.Excerpt, tenant, id); err != nil {
		return "", bunx.Time{}, err
	}
	_, err = c.Exec(ctx, `DELETE FROM tc_feed WHERE tenant_id = $1 AND activity_id = $2`, tenant, id)
	return id, created, err
}

// Activities implements comments.Store.
func (s *Store) Activities(ctx context.Context, tenant string, of entity.Key, q paging.Query) (paging.Page[comments.Activity], error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows := c.NewSelect().Model((*activity)(nil)).Where("a.tenant_id = ?", tenant)
	if of != (entity.Key{}) {
		rows = rows.Where("a.kind = ?", of.Kind).Where("a.entity_id = ?", of.ID)
	}
	page, err := bunx.Page(ctx, rows, newest("id", "created_at"), activity.key, q)
	return paging.Map(page, activity.activity), err
}

// Activity implements comments.Store.
func (s *Store) Activity(ctx context.Context, tenant, id string) (comments.Activity, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	var r activity
	if err := c.NewSelect().Model(&r).Where("a.tenant_id = ?", tenant).Where("a.id = ?", id).Scan(ctx); err != nil {
		return comments.Activity{}, bunx.Err(err, "Activity")
	}
	return r.activity(), nil
}

// Feed implements comments.Store.
func (s *Store) Feed(ctx context.Context, tenant, username string, q paging.Query) (paging.Page[comments.Activity], error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows := c.NewSelect().Model((*activity)(nil)).
		Join("JOIN tc_feed AS f ON f.tenant_id = a.tenant_id AND f.activity_id = a.id").
		Where("f.tenant_id = ?", tenant).Where("f.username = ?", username)
	page, err := bunx.Page(ctx, rows, newest("f.activity_id", "f.created_at"), activity.key, q)
	return paging.Map(page, activity.activity), err
}
