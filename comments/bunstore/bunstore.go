// Package bunstore stores comments, activities and notifications in PostgreSQL or SQLite. The root imports it.
package bunstore

import (
	"context"
	"encoding/json"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/comments"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/bunx"
	"github.com/tenantcontent/tenantcontent/paging"
)

// Store implements comments.Store and comments.Queue.
type Store struct{ db *bun.DB }

// New returns a Store. The tables must be there: see tenantcontent.Migrate.
func New(db *bun.DB) *Store { return &Store{db: db} }

// row is the table's shape except for the number of replies.
type row struct {
	bun.BaseModel `bun:"table:tc_comments,alias:c"`

	TenantID  string `bun:"tenant_id"`
	ID        string `bun:"id"`
	Kind      entity.Kind
	EntityID  string  `bun:"entity_id"`
	ParentID  *string `bun:"parent_id"`
	UserID    string  `bun:"user_id"`
	Gone      bool    `bun:"author_gone"`
	Message   string
	Public    bool
	Mentions  *string // JSON
	CreatedAt bunx.Time
	UpdatedAt bunx.Time
}

// mention is how mentions are kept.
type mention struct {
	Username    string  `json:"username"`
	DisplayName *string `json:"displayName"`
}

func (r row) comment() comments.Comment {
	return comments.Comment{
		Tenant: r.TenantID, ID: r.ID, Message: r.Message, Public: r.Public, UserID: r.UserID, AuthorGone: r.Gone,
		Entity: entity.Key{Kind: r.Kind, ID: r.EntityID}, ParentID: r.ParentID, Mentions: parse(r.Mentions),
		CreatedAt: r.CreatedAt.Time, UpdatedAt: r.UpdatedAt.Time,
	}
}

func parse(text *string) []comments.Mention {
	if text == nil {
		return nil
	}
	var kept []mention
	_ = json.Unmarshal([]byte(*text), &kept) // it is what format wrote
	var all []comments.Mention
	for _, m := range kept {
		all = append(all, comments.Mention(m))
	}
	return all
}

func format(all []comments.Mention) *string {
	if len(all) == 0 {
		return nil
	}
	kept := make([]mention, len(all))
	for i, m := range all {
		kept[i] = mention(m)
	}
	raw, _ := json.Marshal(kept) // strings always encode
	text := string(raw)
	return &text
}

// listed is a row of a list, with the total of the list.
type listed struct {
	row   `bun:",extend"`
	Total int `bun:",scanonly"`
}

func (r listed) key() string { return r.ID }

func (r listed) total() int { return r.Total }

var list = bunx.List[listed]{
	Key: "id", Order: "-createdAt",
	Sorts: []bunx.Sort[listed]{{Field: "createdAt", Column: "created_at", Value: func(r listed) string { return r.CreatedAt.String() }}},
}

// InTx implements comments.Store.
func (s *Store) InTx(ctx context.Context, fn func(context.Context) error) error {
	return bunx.InTx(ctx, s.db, fn)
}

// Get implements comments.Store.
func (s *Store) Get(ctx context.Context, tenant, id string) (comments.Comment, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	return get(ctx, c, tenant, id, "")
}

func get(ctx context.Context, c bunx.Conn, tenant, id, lock string) (comments.Comment, error) {
	r := row{TenantID: tenant, ID: id}
	err := c.One(ctx, "Comment", `SELECT kind, entity_id, parent_id, user_id, author_gone, message, public, mentions, created_at, updated_at
		FROM tc_comments WHERE tenant_id = $1 AND id = $2`+lock, []any{tenant, id},
		&r.Kind, &r.EntityID, &r.ParentID, &r.UserID, &r.Gone, &r.Message, &r.Public, &r.Mentions, &r.CreatedAt, &r.UpdatedAt)
	return r.comment(), err
}

// Replies implements comments.Store.
func (s *Store) Replies(ctx context.Context, tenant, id string, q paging.Query) (paging.Page[comments.Comment], error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	kept := c.NewSelect().Table("tc_comments").Column("replies").Where("tenant_id = ?", tenant).Where("id = ?", id)
	rows := c.NewSelect().Model((*listed)(nil)).Where("c.tenant_id = ?", tenant).Where("c.parent_id = ?", id)
	return page(ctx, rows, kept, q)
}

// Top implements comments.Store.
func (s *Store) Top(ctx context.Context, tenant string, of entity.Key, q paging.Query) (paging.Page[comments.Comment], error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	kept := c.NewSelect().Table("tc_comment_threads").
		ColumnExpr("coalesce(max(total), 0)"). // no row before the first comment
		Where("tenant_id = ?", tenant).Where("kind = ?", of.Kind).Where("entity_id = ?", of.ID)
	rows := c.NewSelect().Model((*listed)(nil)).Where("c.tenant_id = ?", tenant).
		Where("c.kind = ?", of.Kind).Where("c.entity_id = ?", of.ID).Where("c.parent_id IS NULL")
	return page(ctx, rows, kept, q)
}

// page reads comments whose total is kept.
func page(ctx context.Context, rows, kept *bun.SelectQuery, q paging.Query) (paging.Page[comments.Comment], error) {
	p, err := bunx.Counted(ctx, rows, kept, "Comment", list, listed.key, listed.total, q)
	return paging.Map(p, func(r listed) comments.Comment { return r.comment() }), err
}
