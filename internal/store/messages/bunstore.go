// Package bunstore stores events and messages of apps in PostgreSQL or SQLite. The root imports it.
package bunstore

import (
	"context"
	"database/sql"
	"slices"
	"time"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/apps/messages"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/text/fold"
	"github.com/tenantcontent/tenantcontent/paging"
)

// Store implements messages.Store.
type Store struct{ db *bun.DB }

// New returns a Store. The tables must exist: see tenantcontent.Migrate.
func New(db *bun.DB) *Store { return &Store{db: db} }

const eventTable, messageTable = "tc_events", "tc_messages"

// progress returns the columns of a row's Progress.
func progress[T any](of func(*T) *messages.Progress) []bunx.Column[T] {
	return []bunx.Column[T]{
		{Name: "state", Field: func(r *T) any { return (*string)(&of(r).State) }},
		{Name: "attempts", Field: func(r *T) any { return &of(r).Attempts }},
		{Name: "error", Field: func(r *T) any { return &of(r).Error }},
		{Name: "ended_at", Field: func(r *T) any { return bunx.TimeOrNull(&of(r).EndedAt) }},
	}
}

var events = bunx.NewTable(eventTable, "e", slices.Concat([]bunx.Column[messages.Event]{
	{Name: "tenant_id", Key: true, Field: func(e *messages.Event) any { return &e.Tenant }},
	{Name: "id", Key: true, Field: func(e *messages.Event) any { return &e.ID }},
	{Name: "app_id", Once: true, Field: func(e *messages.Event) any { return &e.App }},
	{Name: "name", Once: true, Field: func(e *messages.Event) any { return &e.Name }},
	{Name: "search", Once: true, Value: func(e *messages.Event) any { return fold.Search(e.Name) }},
	{Name: "payload", Once: true, Field: func(e *messages.Event) any { return bunx.JSON(&e.Payload) }},
	{Name: "user_id", Once: true, Field: func(e *messages.Event) any { return &e.UserID }},
	{Name: "size", Once: true, Field: func(e *messages.Event) any { return &e.Size }},
	{Name: "depth", Once: true, Field: func(e *messages.Event) any { return &e.Depth }},
	{Name: "created_at", Once: true, Field: func(e *messages.Event) any { return bunx.TimeOf(&e.CreatedAt) }},
	{Name: "updated_at", Field: func(e *messages.Event) any { return bunx.TimeOf(&e.UpdatedAt) }},
}, progress(func(e *messages.Event) *messages.Progress { return &e.Progress })))

var all = bunx.NewTable(messageTable, "m", slices.Concat([]bunx.Column[messages.Message]{
	{Name: "tenant_id", Key: true, Field: func(m *messages.Message) any { return &m.Tenant }},
	{Name: "id", Key: true, Field: func(m *messages.Message) any { return &m.ID }},
	{Name: "app_id", Once: true, Field: func(m *messages.Message) any { return &m.App }},
	{Name: "type", Once: true, Field: func(m *messages.Message) any { return (*string)(&m.Type) }},
	{Name: "recipient", Once: true, Field: func(m *messages.Message) any { return &m.Recipient }},
	{Name: "search", Once: true, Value: func(m *messages.Message) any { return fold.Search(m.Title, m.Recipient) }},
	{Name: "user_id", Once: true, Field: func(m *messages.Message) any { return &m.UserID }},
	{Name: "title", Once: true, Field: func(m *messages.Message) any { return &m.Title }},
	{Name: "body", Once: true, Field: func(m *messages.Message) any { return &m.Body }},
	{Name: "html", Once: true, Field: func(m *messages.Message) any { return &m.HTML }},
	{Name: "sender", Once: true, Field: func(m *messages.Message) any { return &m.From }},
	{Name: "path", Once: true, Field: func(m *messages.Message) any { return &m.Path }},
	{Name: "data", Once: true, Field: func(m *messages.Message) any { return bunx.JSONOrNull(&m.Data) }},
	{Name: "size", Once: true, Field: func(m *messages.Message) any { return &m.Size }},
	{Name: "created_at", Once: true, Field: func(m *messages.Message) any { return bunx.TimeOf(&m.CreatedAt) }},
	{Name: "updated_at", Field: func(m *messages.Message) any { return bunx.TimeOf(&m.UpdatedAt) }},
}, progress(func(m *messages.Message) *messages.Progress { return &m.Progress })))

var eventList = bunx.List[messages.Event]{
	Table: events, Key: "id", Order: "-createdAt", Search: "search",
	Sorts: []bunx.Sort[messages.Event]{
		{Field: "createdAt", Column: "created_at", Value: func(e messages.Event) string {
			return bunx.At(e.CreatedAt).String()
		}},
	},
}

var messageList = bunx.List[messages.Message]{
	Table: all, Key: "id", Order: "-createdAt", Search: "search",
	Sorts: []bunx.Sort[messages.Message]{
		{Field: "createdAt", Column: "created_at", Value: func(m messages.Message) string {
			return bunx.At(m.CreatedAt).String()
		}},
	},
}

// InTx implements messages.Store.
func (s *Store) InTx(ctx context.Context, fn func(context.Context) error) error {
	return bunx.InTx(ctx, s.db, fn)
}

// InsertEvent implements messages.Store.
func (s *Store) InsertEvent(ctx context.Context, tenant string, e messages.Event) error {
	e.Tenant = tenant
	return bunx.WriteOne(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		_, err := events.Insert(ctx, c, "", e)
		return bunx.Err(err, "Event")
	})
}

// InsertMessages implements messages.Store.
func (s *Store) InsertMessages(ctx context.Context, tenant string, some []messages.Message) error {
	if len(some) == 0 {
		return nil
	}
	some = slices.Clone(some)
	for i := range some {
		some[i].Tenant = tenant
	}
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		_, err := all.Insert(ctx, c, "", some...)
		return bunx.Err(err, "Message")
	})
}

// Events implements messages.Store.
func (s *Store) Events(
	ctx context.Context, tenant, app string, f messages.Filter, q paging.Query,
) (paging.Page[messages.Event], error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	// an app has at most some 10,000
	of := bunx.Part{Where: "e.tenant_id = $1 AND e.app_id = $2", Args: []any{tenant, app}}
	if f.State != "" {
		of = of.And("e.state = @", string(f.State))
	}
	return bunx.Page(ctx, c, eventList, of, func(e messages.Event) string { return e.ID }, q)
}

// Messages implements messages.Store.
func (s *Store) Messages(
	ctx context.Context, tenant, app string, f messages.Filter, q paging.Query,
) (paging.Page[messages.Message], error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	of := bunx.Part{Where: "m.tenant_id = $1 AND m.app_id = $2", Args: []any{tenant, app}}
	if f.State != "" {
		of = of.And("m.state = @", string(f.State))
	}
	if f.Type != "" {
		of = of.And("m.type = @", string(f.Type))
	}
	return bunx.Page(ctx, c, messageList, of, func(m messages.Message) string { return m.ID }, q)
}

var (
	selectEvent   = events.Select(`WHERE tenant_id = $1 AND app_id = $2 AND id = $3`)
	selectMessage = all.Select(`WHERE tenant_id = $1 AND app_id = $2 AND id = $3`)
)

// Event implements messages.Store.
func (s *Store) Event(ctx context.Context, tenant, app, id string) (messages.Event, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	e, err := events.Scan(c.Row(ctx, selectEvent, tenant, app, id))
	if err != nil {
		return messages.Event{}, bunx.Err(err, "Event")
	}
	return e, nil
}

// Message implements messages.Store.
func (s *Store) Message(ctx context.Context, tenant, app, id string) (messages.Message, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	m, err := all.Scan(c.Row(ctx, selectMessage, tenant, app, id))
	if err != nil {
		return messages.Message{}, bunx.Err(err, "Message")
	}
	return m, nil
}

var (
	// The condition is on state and not on ended_at: PostgreSQL would search the index of rows that
	// have not ended.
	deliverEvents = `UPDATE tc_events SET state = 'delivered', attempts = $1, error = NULL, ended_at = $2, updated_at = $2
		WHERE tenant_id = $3 AND state NOT IN ('delivered', 'dead') AND id IN `
	anyMessage = all.Select(`WHERE tenant_id = $1 AND id = $2`)
)

// DeliverEvents implements messages.Store.
func (s *Store) DeliverEvents(
	ctx context.Context, tenant string, ids []string, attempts int, now time.Time,
) (all []messages.Event, err error) {
	err = bunx.WriteOne(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		rows, err := c.Rows(ctx, deliverEvents+bunx.In(4, len(ids))+` RETURNING `+events.Names, bunx.Args(
			ids, attempts, bunx.At(now), tenant,
		)...)
		all, err = bunx.Scan(rows, err, func(rows *sql.Rows) (messages.Event, error) { return events.Scan(rows) })
		return bunx.Err(err, "Event")
	})
	return all, err
}

// AnyMessage implements messages.Store.
func (s *Store) AnyMessage(ctx context.Context, tenant, id string) (messages.Message, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	m, err := all.Scan(c.Row(ctx, anyMessage, tenant, id))
	return m, bunx.Err(err, "Message")
}

// HasMessages implements messages.Store.
func (s *Store) HasMessages(ctx context.Context, tenant string, ids []string) (bool, error) {
	if len(ids) == 0 {
		return false, nil
	}
	ctx, c := bunx.For(ctx, s.db, tenant)
	n := 0
	err := c.One(
		ctx, "Message", `SELECT count(*) FROM tc_messages WHERE tenant_id = $1 AND id IN `+bunx.In(2, len(ids)),
		bunx.Args(ids, tenant), &n,
	)
	return n > 0, err
}

// SetEvent implements messages.Store.
func (s *Store) SetEvent(ctx context.Context, tenant, id string, p messages.Progress, now time.Time) error {
	return s.set(ctx, eventTable, "Event", tenant, id, p, now)
}

// SetMessage implements messages.Store.
func (s *Store) SetMessage(ctx context.Context, tenant, id string, p messages.Progress, now time.Time) error {
	return s.set(ctx, messageTable, "Message", tenant, id, p, now)
}

func (s *Store) set(ctx context.Context, table, what, tenant, id string, p messages.Progress, now time.Time) error {
	return bunx.WriteOne(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		n, err := c.Exec(ctx, `UPDATE `+table+
			` SET state = $1, attempts = $2, error = $3, ended_at = $4, updated_at = $5 WHERE tenant_id = $6 `+
			`AND id = $7`,
			string(p.State), p.Attempts, p.Error, bunx.AtOrNull(p.EndedAt), bunx.At(now), tenant, id)
		return bunx.Found(n, err, what)
	})
}

// EventUsage implements messages.Store.
func (s *Store) EventUsage(ctx context.Context, tenant, app string, day time.Time) (messages.Usage, error) {
	return s.usage(ctx, tenant,
		`SELECT count(CASE WHEN ended_at IS NULL THEN 1 END), count(CASE WHEN created_at >= $3 THEN 1 END),
			coalesce(sum(size), 0)
		FROM tc_events WHERE tenant_id = $1 AND app_id = $2`, app, day)
}

// MessageUsage implements messages.Store.
func (s *Store) MessageUsage(ctx context.Context, tenant, app string, day time.Time) (messages.Usage, error) {
	return s.usage(ctx, tenant,
		`SELECT count(CASE WHEN ended_at IS NULL THEN 1 END), count(CASE WHEN created_at >= $3 THEN 1 END),
			coalesce(sum(size), 0)
		FROM tc_messages WHERE tenant_id = $1 AND app_id = $2`, app, day)
}

func (s *Store) usage(ctx context.Context, tenant, query, app string, day time.Time) (u messages.Usage, err error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	err = c.One(ctx, "Usage", query, []any{tenant, app, bunx.At(day)}, &u.Waiting, &u.Day, &u.Bytes)
	return u, err
}

// Summary implements messages.Store.
func (s *Store) Summary(ctx context.Context, tenant, app string) (messages.Summary, error) {
	type count struct {
		of    messages.Type
		state messages.State
		n     int
	}
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows, err := c.Rows(
		ctx,
		`SELECT type, state, count(*) FROM tc_messages WHERE tenant_id = $1 AND app_id = $2 GROUP BY type, state`,
		tenant, app,
	)
	counts, err := bunx.Scan(rows, err, func(rows *sql.Rows) (n count, err error) {
		err = rows.Scan((*string)(&n.of), (*string)(&n.state), &n.n)
		return n, err
	})
	if err != nil {
		return nil, bunx.Err(err, "Message")
	}
	summary := messages.Summary{}
	for _, n := range counts {
		if summary[n.of] == nil {
			summary[n.of] = map[messages.State]int{}
		}
		summary[n.of][n.state] = n.n
	}
	return summary, nil
}

// RenameUsers implements messages.Store.
func (s *Store) RenameUsers(ctx context.Context, tenant string, names map[string]string) error {
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		for _, table := range []string{eventTable, messageTable} {
			if err := c.Rename(ctx, tenant, table, "user_id", names); err != nil {
				return bunx.Err(err, "Message")
			}
		}
		return bunx.Err(
			c.Rename(
				ctx, tenant, messageTable, "recipient", names,
				bunx.Is{Column: "type", Value: string(messages.TypeNotification)},
			),
			"Message",
		)
	})
}

// ForgetUsers implements messages.Store.
func (s *Store) ForgetUsers(ctx context.Context, tenant string, ids []string) error {
	return s.each(ctx, tenant, ids,
		`DELETE FROM tc_messages WHERE tenant_id = $1 AND type = 'notification' AND recipient IN `,
		`UPDATE tc_messages SET user_id = NULL WHERE tenant_id = $1 AND user_id IN `,
		`UPDATE tc_events SET user_id = NULL WHERE tenant_id = $1 AND user_id IN `)
}

// DeleteApps implements messages.Store.
func (s *Store) DeleteApps(ctx context.Context, tenant string, apps []string) error {
	return s.each(
		ctx, tenant, apps, `DELETE FROM tc_messages WHERE tenant_id = $1 AND app_id IN `,
		`DELETE FROM tc_events WHERE tenant_id = $1 AND app_id IN `,
	)
}

// each runs statements, which end with IN, for some ids.
func (s *Store) each(ctx context.Context, tenant string, ids []string, statements ...string) error {
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		for _, statement := range statements {
			if _, err := c.ExecIn(ctx, statement, ids, tenant); err != nil {
				return bunx.Err(err, "Message")
			}
		}
		return nil
	})
}

// Expire implements messages.Store.
func (s *Store) Expire(ctx context.Context, tenant string, before, now time.Time, reason string) (n int, err error) {
	for _, table := range []string{eventTable, messageTable} {
		some, err := bunx.Steps(ctx, s.db, tenant, `UPDATE `+table+
			` SET state = 'dead', error = $1, ended_at = $2, updated_at = $2 WHERE tenant_id = $3 AND id IN
			(SELECT id FROM `+table+` WHERE tenant_id = $3 AND ended_at IS NULL AND created_at < $4`+bunx.StepLimit+`)`,
			reason,
			bunx.At(now), tenant, bunx.At(before))
		if n += some; err != nil {
			return n, err
		}
	}
	return n, nil
}

// Sweep implements messages.Store.
func (s *Store) Sweep(ctx context.Context, tenant string, before time.Time, keep int) (n int, err error) {
	for _, table := range []string{eventTable, messageTable} {
		for _, q := range []struct {
			where string
			arg   any
		}{
			{`ended_at < $2`, bunx.At(before)},
			{`id IN (SELECT id FROM
				(SELECT id, row_number() OVER (PARTITION BY app_id ORDER BY ended_at DESC, id DESC) AS place FROM ` +
				table + ` WHERE tenant_id = $1 AND ended_at IS NOT NULL) AS ended
				WHERE place > $2)`, keep},
		} {
			some, err := bunx.DeleteSteps(ctx, s.db, tenant, table, "id", q.where, q.arg)
			if n += some; err != nil {
				return n, err
			}
		}
	}
	return n, nil
}
