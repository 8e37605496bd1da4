// Package bunstore stores comments, activities and notifications in PostgreSQL or SQLite. The root
// imports it.
package bunstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/comments"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/paging"
)

// Store implements comments.Store and comments.Queue.
type Store struct{ db *bun.DB }

// New returns a Store. The tables must exist: see tenantcontent.Migrate.
func New(db *bun.DB) *Store { return &Store{db: db} }

// Count implements comments.Store.
func (s *Store) Count(ctx context.Context, tenant string) (int, error) {
	return bunx.Count(ctx, s.db, tenant, "tc_comments")
}

// table has the columns of a comment. Other columns are the number of its replies, which add
// counts, and the numbers that show whether the comment was removed and its author deleted.
var table = bunx.NewTable("tc_comments", "c", []bunx.Column[comments.Comment]{
	{Name: "tenant_id", Key: true, Field: func(c *comments.Comment) any { return &c.Tenant }},
	{Name: "id", Key: true, Field: func(c *comments.Comment) any { return &c.ID }},
	{Name: "kind", Once: true, Field: func(c *comments.Comment) any { return (*string)(&c.Entity.Kind) }},
	{Name: "entity_id", Once: true, Field: func(c *comments.Comment) any { return &c.Entity.ID }},
	{Name: "parent_id", Once: true, Field: func(c *comments.Comment) any { return &c.ParentID }},
	{Name: "user_id", Once: true, Field: func(c *comments.Comment) any { return &c.UserID }},
	{Name: "author_gone", Once: true, Read: "NOT " + ofAuthor, Field: func(c *comments.Comment) any {
		return &c.AuthorGone
	}},
	{Name: "message", Field: func(c *comments.Comment) any { return &c.Message }},
	{Name: "public", Field: func(c *comments.Comment) any { return &c.Public }},
	{Name: "mentions", Field: func(c *comments.Comment) any { return mentions{&c.Mentions} }},
	{Name: "replies", Once: true, Value: func(*comments.Comment) any { return 0 }},
	{Name: "created_at", Once: true, Field: func(c *comments.Comment) any { return bunx.TimeOf(&c.CreatedAt) }},
	{Name: "updated_at", Field: func(c *comments.Comment) any { return bunx.TimeOf(&c.UpdatedAt) }},
	{Name: "edited_at", Field: func(c *comments.Comment) any { return bunx.TimeOrNull(&c.EditedAt) }},
})

// mention is the stored form of a mention.
type mention struct {
	Username    string  `json:"username"`
	DisplayName *string `json:"displayName"`
}

// mentions reads and writes the column of that name. NULL is an empty list.
type mentions struct{ all *[]comments.Mention }

// Scan implements sql.Scanner.
func (m mentions) Scan(src any) error {
	var text sql.NullString
	err := text.Scan(src)
	*m.all = nil
	if text.Valid {
		*m.all = parse(text.String)
	}
	return err
}

// Value implements driver.Valuer.
func (m mentions) Value() (driver.Value, error) { return format(*m.all), nil }

func parse(text string) []comments.Mention {
	var kept []mention
	_ = json.Unmarshal([]byte(text), &kept) // format wrote valid JSON
	var all []comments.Mention
	for _, m := range kept {
		all = append(all, comments.Mention(m))
	}
	return all
}

func format(all []comments.Mention) driver.Value {
	if len(all) == 0 {
		return nil
	}
	kept := make([]mention, len(all))
	for i, m := range all {
		kept[i] = mention(m)
	}
	raw, _ := json.Marshal(kept) // strings can always be encoded
	return string(raw)
}

func key(c comments.Comment) string { return c.ID }

var list = bunx.List[comments.Comment]{
	Table: table, Key: "id", Order: "-createdAt",
	Sorts: []bunx.Sort[comments.Comment]{
		{Field: "createdAt", Column: "created_at", Value: func(c comments.Comment) string {
			return bunx.At(c.CreatedAt).String()
		}},
	},
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

var selectOne = table.Select(`AS c WHERE c.tenant_id = $1 AND c.id = $2 AND ` + present)

func get(ctx context.Context, c bunx.Conn, tenant, id, lock string) (n comments.Comment, err error) {
	err = c.One(ctx, "Comment", selectOne+lock, []any{tenant, id}, table.Dest(&n)...)
	return n, err
}

// replies is the number of direct replies to a comment, NULL if the comment does not exist.
const replies = `(SELECT replies FROM tc_comments c WHERE c.tenant_id = $1 AND c.id = $2 AND ` + present + `)`

// Replies implements comments.Store.
func (s *Store) Replies(ctx context.Context, tenant, id string, q paging.Query) (paging.Page[comments.Comment], error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	of := bunx.Part{
		Where: `c.tenant_id = $1 AND c.parent_id = $2 AND ` + replies + ` IS NOT NULL`, Args: []any{tenant, id},
		Total: replies, What: "Comment",
	}
	return bunx.Page(ctx, c, list, of, key, q)
}

// List implements comments.Store.
func (s *Store) List(
	ctx context.Context, tenant string, of entity.Key, q paging.Query,
) (paging.Page[comments.Comment], error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	thread := bunx.Part{
		Where: `c.tenant_id = $1 AND c.kind = $2 AND c.entity_id = $3 AND c.parent_id IS NULL
			AND c.thread_no = (SELECT thread_no FROM tc_comment_threads WHERE tenant_id = $1 AND kind = $2 AND entity_id = $3)`,
		Args: []any{tenant, of.Kind, of.ID},
		// before the first comment, the row does not exist
		Total: `coalesce((SELECT total FROM tc_comment_threads WHERE tenant_id = $1 AND kind = $2 ` +
			`AND entity_id = $3), 0)`,
	}
	return bunx.Page(ctx, c, list, thread, key, q)
}
