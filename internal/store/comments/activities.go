package bunstore

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"slices"

	"github.com/tenantcontent/tenantcontent/comments"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/paging"
)

// activityTable has the columns of an activity. When a comment is edited, its activity is written
// again with the same id and time.
var activityTable = bunx.NewTable("tc_activities", "a", []bunx.Column[comments.Activity]{
	{Name: "tenant_id", Key: true, Field: func(a *comments.Activity) any { return &a.Tenant }},
	{Name: "id", Key: true, Field: func(a *comments.Activity) any { return &a.ID }},
	{Name: "type", Once: true, Field: func(a *comments.Activity) any { return &a.Type }},
	{Name: "kind", Once: true, Field: func(a *comments.Activity) any { return (*string)(&a.Entity.Kind) }},
	{Name: "entity_id", Once: true, Field: func(a *comments.Activity) any { return &a.Entity.ID }},
	{Name: "comment_id", Once: true, Field: func(a *comments.Activity) any { return &a.CommentID }},
	{Name: "user_id", Once: true, Field: func(a *comments.Activity) any { return &a.UserID }},
	{Name: "excerpt", Field: func(a *comments.Activity) any { return &a.Excerpt }},
	{Name: "created_at", Once: true, Field: func(a *comments.Activity) any { return bunx.TimeOf(&a.CreatedAt) }},
})

// account is the account of the user $2.
var account = bunx.Account("$2")

// feedItem is an activity in the feed of a user.
type feedItem struct {
	tenant, activity, account string
	created                   bunx.Time // creation time of the activity, for the order of the feed
}

// feedTable has the columns of a feed item. A row is written once and read only in a join.
var feedTable = bunx.NewTable("tc_feed", "f", []bunx.Column[feedItem]{
	{Name: "tenant_id", Key: true, Value: func(f *feedItem) any { return f.tenant }},
	{Name: "activity_id", Key: true, Value: func(f *feedItem) any { return f.activity }},
	{Name: "username", Key: true, Value: func(f *feedItem) any { return f.account }},
	{Name: "created_at", Once: true, Value: func(f *feedItem) any { return f.created }},
})

func activityKey(a comments.Activity) string { return a.ID }

// newest returns a list of activities by the columns of a table: tc_activities, or tc_feed, which
// also has the time.
func newest(key, created string) bunx.List[comments.Activity] {
	return bunx.List[comments.Activity]{
		Table: activityTable, Key: key, Order: "-createdAt",
		Sorts: []bunx.Sort[comments.Activity]{
			{Field: "createdAt", Column: created, Value: func(a comments.Activity) string {
				return bunx.At(a.CreatedAt).String()
			}},
		},
	}
}

// PutActivity implements comments.Store.
func (s *Store) PutActivity(ctx context.Context, tenant string, a comments.Activity, concerned []string) error {
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		accounts, err := c.HoldUsers(ctx, tenant, concerned)
		if err != nil {
			return err
		}
		id, created, err := putActivity(ctx, c, tenant, a)
		if err != nil || len(accounts) == 0 {
			return bunx.Err(err, "Activity")
		}
		rows := make([]feedItem, 0, len(accounts))
		for _, account := range slices.Sorted(maps.Values(accounts)) {
			rows = append(rows, feedItem{tenant, id, account, created})
		}
		_, err = feedTable.Insert(ctx, c, "", rows...)
		return bunx.Err(err, "Activity")
	})
}

// putActivity adds an activity. If its comment has one, it rewrites that and removes it from all
// feeds. It returns the id and creation time of the activity.
func putActivity(
	ctx context.Context, c bunx.Conn, tenant string, a comments.Activity,
) (id string, created bunx.Time, err error) {
	a.Tenant = tenant
	err = c.Row(ctx, `SELECT id, created_at FROM tc_activities WHERE tenant_id = $1 AND comment_id = $2 AND type = $3`,
		tenant, a.CommentID, a.Type).Scan(&id, &created)
	if errors.Is(err, sql.ErrNoRows) {
		_, err = activityTable.Insert(ctx, c, "", a)
		return a.ID, bunx.At(a.CreatedAt), err
	}
	if err != nil {
		return "", bunx.Time{}, err
	}
	a.ID = id
	if _, err = activityTable.Update(ctx, c, &a); err != nil {
		return "", bunx.Time{}, err
	}
	_, err = c.Exec(ctx, `DELETE FROM tc_feed WHERE tenant_id = $1 AND activity_id = $2`, tenant, id)
	return id, created, err
}

// Activities implements comments.Store.
func (s *Store) Activities(
	ctx context.Context, tenant string, of entity.Key, q paging.Query,
) (paging.Page[comments.Activity], error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	these := bunx.Part{Where: "a.tenant_id = $1", Args: []any{tenant}, Total: bunx.Total("activities", bunx.Whole)}
	if of != (entity.Key{}) {
		these = bunx.Part{
			Where: "a.tenant_id = $1 AND a.kind = $2 AND a.entity_id = $3", Args: []any{tenant, of.Kind, of.ID},
			Total: bunx.Total("entity_activities", "= $2 || '/' || $3"),
		}
	}
	these, err := ofPresent(ctx, c, these, rows{
		alias: "a", total: these.Total, args: these.Args,
		below: `SELECT count(CASE WHEN ` + these.Where +
			` THEN 1 END) FROM tc_activities a WHERE a.tenant_id = $1 AND a.comment_id = r.id`,
		own: `SELECT count(*) FROM tc_activities a WHERE ` + these.Where + ` AND NOT ` + whosePresent("a"),
	})
	if err != nil {
		return paging.Page[comments.Activity]{}, err
	}
	return bunx.Page(ctx, c, newest("a.id", "a.created_at"), these, activityKey, q)
}

var selectActivity = activityTable.Select(`AS a WHERE a.tenant_id = $1 AND a.id = $2 AND ` + whosePresent("a"))

// Activity implements comments.Store.
func (s *Store) Activity(ctx context.Context, tenant, id string) (comments.Activity, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	a, err := activityTable.Scan(c.Row(ctx, selectActivity, tenant, id))
	if err != nil {
		return comments.Activity{}, bunx.Err(err, "Activity")
	}
	return a, nil
}

// Feed implements comments.Store.
func (s *Store) Feed(
	ctx context.Context, tenant, username string, q paging.Query,
) (paging.Page[comments.Activity], error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	list := newest("f.activity_id", "f.created_at")
	list.Join = ` JOIN tc_feed AS f ON f.tenant_id = a.tenant_id AND f.activity_id = a.id`
	of := bunx.Part{
		Where: "f.tenant_id = $1 AND f.username = " + account,
		Args:  []any{tenant, username},
		Total: bunx.Total("feed", "= "+account),
	}
	of, err := ofPresent(ctx, c, of, rows{
		alias: "a", total: of.Total, args: of.Args,
		// Use the key of the activity. By the username PostgreSQL may search all of the user's feed
		// for each.
		below: `SELECT coalesce(sum((SELECT count(*) FROM tc_feed f WHERE f.tenant_id = $1 ` +
			`AND f.activity_id = a.id AND f.username || '' = ` + account + `)), 0)
			FROM tc_activities a WHERE a.tenant_id = $1 AND a.comment_id = r.id`,
		own: `SELECT count(*) FROM tc_feed f WHERE f.tenant_id = $1 AND f.username = ` + account +
			` AND NOT coalesce((SELECT ` + present + ` FROM tc_activities a
			CROSS JOIN tc_comments c WHERE a.tenant_id = $1 AND a.id = f.activity_id AND c.tenant_id = $1 AND c.id = a.comment_id), TRUE)`,
	})
	if err != nil {
		return paging.Page[comments.Activity]{}, err
	}
	return bunx.Page(ctx, c, list, of, activityKey, q)
}
