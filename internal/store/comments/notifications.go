package bunstore

import (
	"context"
	"time"

	"github.com/tenantcontent/tenantcontent/comments"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/secure/guard"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/paging"
)

// notificationTable has the columns of a notification. Only its read state is changed.
var notificationTable = bunx.NewTable("tc_notifications", "n", []bunx.Column[comments.Notification]{
	{Name: "tenant_id", Key: true, Field: func(n *comments.Notification) any { return &n.Tenant }},
	{Name: "id", Key: true, Field: func(n *comments.Notification) any { return &n.ID }},
	// the account; readers pass the user
	{Name: "username", Once: true, Value: func(n *comments.Notification) any { return n.Username }},
	{Name: "type", Once: true, Field: func(n *comments.Notification) any { return &n.Type }},
	{Name: "state", Once: true, Field: func(n *comments.Notification) any { return (*string)(&n.State) }},
	{Name: "title", Once: true, Field: func(n *comments.Notification) any { return &n.Title }},
	{Name: "body", Once: true, Field: func(n *comments.Notification) any { return &n.Body }},
	{Name: "kind", Once: true, Field: func(n *comments.Notification) any {
		return bunx.TextOrNull((*string)(&n.Entity.Kind))
	}},
	{Name: "entity_id", Once: true, Field: func(n *comments.Notification) any { return bunx.TextOrNull(&n.Entity.ID) }},
	{Name: "comment_id", Once: true, Field: func(n *comments.Notification) any { return &n.CommentID }},
	{Name: "path", Once: true, Field: func(n *comments.Notification) any { return &n.Path }},
	{Name: "created_at", Once: true, Field: func(n *comments.Notification) any { return bunx.TimeOf(&n.CreatedAt) }},
	{Name: "updated_at", Field: func(n *comments.Notification) any { return bunx.TimeOf(&n.UpdatedAt) }},
	{Name: "read_at", Field: func(n *comments.Notification) any { return bunx.TimeOrNull(&n.ReadAt) }},
})

var notifications = bunx.List[comments.Notification]{
	Table: notificationTable, Key: "id", Order: "-createdAt",
	Sorts: []bunx.Sort[comments.Notification]{
		{Field: "createdAt", Column: "created_at", Value: func(n comments.Notification) string {
			return bunx.At(n.CreatedAt).String()
		}},
	},
}

// Enqueue implements comments.Queue.
func (s *Store) Enqueue(ctx context.Context, tenant string, all []comments.Notification) error {
	if len(all) == 0 {
		return nil
	}
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		names := make([]string, len(all))
		for i, n := range all {
			names[i] = n.Username
		}
		accounts, err := c.HoldUsers(ctx, tenant, names)
		if err != nil || len(accounts) == 0 {
			return err
		}
		var rows []comments.Notification
		for _, n := range all {
			if account, ok := accounts[n.Username]; ok {
				n.Tenant, n.Username = tenant, account
				rows = append(rows, n)
			}
		}
		_, err = notificationTable.Insert(ctx, c,
			` ON CONFLICT (tenant_id, comment_id, username, type) DO NOTHING`, rows...)
		return bunx.Err(err, "Notification")
	})
}

// ofAccount is the condition for a notification n of the user $2.
var ofAccount = `n.tenant_id = $1 AND n.username = ` + account

// The number of notifications of a user, and the number of unread ones.
var every, unread = bunx.Total("notifications", "= "+account), bunx.Total("unread_notifications", "= "+account)

// ofUser returns the rows of a user that meet a condition.
func ofUser(total, where, tenant, username string) rows {
	return rows{
		alias: "n", total: total, args: []any{tenant, username},
		below: `SELECT count(*) FROM tc_notifications n WHERE ` + where + ` AND n.comment_id = r.id`,
		own:   `SELECT count(*) FROM tc_notifications n WHERE ` + where + ` AND NOT ` + whosePresent("n"),
	}
}

// Notifications implements comments.Store.
func (s *Store) Notifications(
	ctx context.Context, tenant, username string, f comments.NotificationFilter, q paging.Query,
) (paging.Page[comments.Notification], error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	of := bunx.Part{Where: ofAccount, Args: []any{tenant, username}, Total: every}
	switch {
	case f.Read == nil:
	case *f.Read:
		of.Where, of.Total = of.Where+" AND n.read_at IS NOT NULL", every+" - "+unread
	default:
		of.Where, of.Total = of.Where+" AND n.read_at IS NULL", unread
	}
	if !f.Since.IsZero() {
		of = of.And("n.created_at >= @", bunx.At(f.Since))
	}
	of, err := ofPresent(ctx, c, of, ofUser(every, of.Where, tenant, username))
	if err != nil {
		return paging.Page[comments.Notification]{}, err
	}
	page, err := bunx.Page(ctx, c, notifications, of, func(n comments.Notification) string { return n.ID }, q)
	for i := range page.Rows {
		page.Rows[i].Username = username
	}
	return page, err
}

// Notification implements comments.Store.
func (s *Store) Notification(ctx context.Context, tenant, username, id string) (comments.Notification, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	return oneNotification(ctx, c, tenant, username, id, "")
}

var selectNotification = notificationTable.Select(`AS n WHERE ` + ofAccount + ` AND n.id = $3 AND ` + whosePresent("n"))

func oneNotification(
	ctx context.Context, c bunx.Conn, tenant, username, id, lock string,
) (comments.Notification, error) {
	n, err := notificationTable.Scan(c.Row(ctx, selectNotification+lock, tenant, username, id))
	if err != nil {
		return comments.Notification{}, bunx.Err(err, "Notification")
	}
	n.Username = username
	return n, nil
}

// SetRead implements comments.Store.
func (s *Store) SetRead(
	ctx context.Context, tenant, username, id string, read bool, at time.Time,
) (n comments.Notification, err error) {
	err = bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		if n, err = oneNotification(ctx, c, tenant, username, id, c.ForUpdate()); err != nil {
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
		_, err := notificationTable.Update(ctx, c, &n)
		return bunx.Err(err, "Notification")
	})
	return n, err
}

// DeleteNotices implements comments.Store.
func (s *Store) DeleteNotices(ctx context.Context, tenant string, of entity.Key) error {
	return bunx.WriteOne(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		_, err := c.Exec(
			ctx,
			`DELETE FROM tc_notifications WHERE tenant_id = $1 AND kind = $2 AND entity_id = $3 AND comment_id IS NULL`,
			tenant, of.Kind, of.ID,
		)
		return bunx.Err(err, "Notification")
	})
}

// SweepNotices implements comments.Store.
func (s *Store) SweepNotices(ctx context.Context, tenant, noticeType string, before time.Time) (n int, err error) {
	return bunx.DeleteSteps(
		ctx, s.db, tenant, "tc_notifications", "id", `state = 'delivered' AND created_at < $2 AND type = $3`,
		bunx.At(before), noticeType,
	)
}

// SetAllRead implements comments.Store.
func (s *Store) SetAllRead(ctx context.Context, tenant, username string, read bool, at time.Time) (n int, err error) {
	query := `UPDATE tc_notifications AS n SET read_at = NULL, updated_at = $3 WHERE ` + ofAccount +
		` AND n.read_at IS NOT NULL AND `
	if read {
		query = `UPDATE tc_notifications AS n SET read_at = $3, updated_at = $3 WHERE ` + ofAccount +
			` AND n.read_at IS NULL AND `
	}
	err = bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		h, err := hide(ctx, c, ofUser(every, ofAccount, tenant, username))
		if err != nil {
			return err
		}
		n, err = c.Exec(ctx, query+h.shown, tenant, username, bunx.At(at))
		return bunx.Err(err, "Notification")
	})
	return n, err
}

// Unread implements comments.Store.
func (s *Store) Unread(ctx context.Context, tenant, username string) (n int, err error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	args := []any{tenant, username}
	var all bool
	err = c.One(ctx, "Notification", `SELECT `+unread+`, `+allSettled, args, &n, &all)
	if err != nil || all {
		return n, err
	}
	h, err := hide(ctx, c, ofUser(unread, ofAccount+` AND n.read_at IS NULL`, tenant, username))
	if err != nil {
		return 0, err
	}
	return n, c.One(ctx, "Notification", `SELECT `+unread+` - `+h.n, args, &n)
}
