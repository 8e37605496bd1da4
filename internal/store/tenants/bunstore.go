// Package bunstore stores tenants in PostgreSQL or SQLite. The root imports it.
package bunstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/secure/guard"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/store/tenantrows"
	"github.com/tenantcontent/tenantcontent/tenants"
)

// Store implements tenants.Store.
type Store struct {
	db       *bun.DB
	notifier bunx.Notifier
}

// New returns a Store. The tables must exist: see tenantcontent.Migrate.
func New(db *bun.DB) *Store { return &Store{db: db} }

// Notify makes the store call changed after each commit of an Update.
func (s *Store) Notify(changed func(tenant string)) *Store {
	s.notifier.Set(changed)
	return s
}

// row is a row of tc_tenants.
type row struct {
	tenants.Tenant
	keyCheck string
}

// table has the columns of a tenant. Readers pass its id. KeyCheck reads the key check, and Reseal
// writes it.
var table = bunx.NewTable("tc_tenants", "t", []bunx.Column[row]{
	{Name: "tenant_id", Key: true, Value: func(r *row) any { return r.ID }},
	{Name: "name", Field: func(r *row) any { return &r.Name }},
	{Name: "settings", Field: func(r *row) any { return settingsField{&r.Settings} }},
	{Name: "quota", Field: func(r *row) any { return &r.Quota.Bytes }},
	{Name: "max_workspaces", Field: func(r *row) any { return &r.Quota.Workspaces }},
	{Name: "key_check", Once: true, Value: func(r *row) any { return r.keyCheck }},
	{Name: "created_at", Once: true, Field: func(r *row) any { return bunx.TimeOf(&r.CreatedAt) }},
	{Name: "updated_at", Field: func(r *row) any { return bunx.TimeOf(&r.UpdatedAt) }},
})

var selectOne = table.Select(`WHERE tenant_id = $1 AND hidden IS NULL`)

var selectAll = `SELECT ` + table.Names + `, tenant_id FROM tc_tenants WHERE hidden IS NULL ORDER BY tenant_id`

// settingsField reads and writes the column of that name.
type settingsField struct{ s *tenants.Settings }

// Scan implements sql.Scanner.
func (f settingsField) Scan(src any) error {
	var text sql.NullString
	err := text.Scan(src)
	if err == nil {
		*f.s, err = decode(text.String)
	}
	return err
}

// Value implements driver.Valuer.
func (f settingsField) Value() (driver.Value, error) { return encode(*f.s) }

// settings is the JSON form of the column of that name.
type settings struct {
	AI            ai       `json:"ai"`
	Licenses      []string `json:"licenses"`
	DefaultDomain string   `json:"defaultDomain"`
	DeployFrom    []source `json:"deployFrom"`
}

// source is written as the tenant's id if it has no user.
type source tenants.Source

func (s source) MarshalJSON() ([]byte, error) {
	if s.RunAs == "" {
		return json.Marshal(s.Tenant)
	}
	return json.Marshal(map[string]string{"tenant": s.Tenant, "runAs": s.RunAs})
}

func (s *source) UnmarshalJSON(text []byte) error {
	if text[0] == '"' {
		return json.Unmarshal(text, &s.Tenant)
	}
	return json.Unmarshal(text, (*tenants.Source)(s))
}

type ai struct {
	Enabled bool `json:"enabled"`
}

func encode(s tenants.Settings) (string, error) {
	from := make([]source, len(s.DeployFrom))
	for i, f := range s.DeployFrom {
		from[i] = source(f)
	}
	text, err := json.Marshal(settings{ai{s.AI}, s.Licenses, s.DefaultDomain, from})
	return string(text), err
}

func decode(text string) (tenants.Settings, error) {
	s := settings{Licenses: []string{}, DefaultDomain: "local"}
	err := json.Unmarshal([]byte(text), &s)
	from := make([]tenants.Source, len(s.DeployFrom))
	for i, f := range s.DeployFrom {
		from[i] = tenants.Source(f)
	}
	return tenants.Settings{
		AI:            s.AI.Enabled,
		Licenses:      s.Licenses,
		DefaultDomain: s.DefaultDomain,
		DeployFrom:    from,
	}, err
}

// InTx implements tenants.Store.
func (s *Store) InTx(ctx context.Context, fn func(context.Context) error) error {
	return bunx.InTx(ctx, s.db, fn)
}

// Get implements tenants.Store.
func (s *Store) Get(ctx context.Context, id string) (tenants.Tenant, error) {
	ctx, c := bunx.For(ctx, s.db, id)
	return get(ctx, c, id, "")
}

func get(ctx context.Context, c bunx.Conn, id, lock string) (tenants.Tenant, error) {
	var r row
	if err := c.One(ctx, "Tenant "+id, selectOne+lock, []any{id}, table.Dest(&r)...); err != nil {
		return tenants.Tenant{}, err
	}
	r.ID = id
	return r.Tenant, nil
}

// lock locks a tenant's row against other writers until the transaction ends. Inserts that refer to
// the row do not wait, as they would with FOR UPDATE.
func lock(c bunx.Conn) string {
	if c.Postgres() {
		return " FOR NO KEY UPDATE"
	}
	return ""
}

// All implements tenants.Store.
func (s *Store) All(ctx context.Context) ([]tenants.Tenant, error) {
	ctx, c := bunx.For(ctx, s.db, "")
	rows, err := c.Rows(ctx, selectAll)
	all, err := bunx.Scan(rows, err, func(rows *sql.Rows) (t tenants.Tenant, err error) {
		var r row
		var id string
		err = rows.Scan(append(table.Dest(&r), &id)...)
		r.ID = id
		return r.Tenant, err
	})
	return all, bunx.Err(err, "Tenant")
}

// IDs implements tenants.Store.
func (s *Store) IDs(ctx context.Context) ([]string, error) {
	return s.ids(ctx, `SELECT tenant_id FROM tc_tenants WHERE hidden IS NULL ORDER BY tenant_id`)
}

// HiddenIDs implements tenants.Store.
func (s *Store) HiddenIDs(ctx context.Context) ([]string, error) {
	return s.ids(ctx, `SELECT tenant_id FROM tc_tenants WHERE hidden IS NOT NULL`)
}

func (s *Store) ids(ctx context.Context, query string) ([]string, error) {
	ctx, c := bunx.For(ctx, s.db, "")
	rows, err := c.Rows(ctx, query)
	ids, err := bunx.Scan(rows, err, bunx.Text)
	return ids, bunx.Err(err, "Tenant")
}

// Insert implements tenants.Store.
func (s *Store) Insert(ctx context.Context, t tenants.Tenant, keyCheck string) error {
	return bunx.Write(ctx, s.db, t.ID, func(ctx context.Context, c bunx.Conn) error {
		_, err := table.Insert(ctx, c, "", row{t, keyCheck})
		return bunx.Err(err, "A tenant with this id")
	})
}

// Update implements tenants.Store.
func (s *Store) Update(ctx context.Context, id string, edit func(*tenants.Tenant) error) (tenants.Tenant, error) {
	var t tenants.Tenant
	err := bunx.Write(ctx, s.db, id, func(ctx context.Context, c bunx.Conn) (err error) {
		s.notifier.AfterCommit(ctx, id)
		if t, err = get(ctx, c, id, lock(c)); err != nil {
			return err
		}
		was, changed := row{Tenant: t}, row{Tenant: t}
		if err := edit(&changed.Tenant); err != nil {
			return err
		}
		if err := guard.Check(ctx, "tenant", was); err != nil {
			return err
		}
		if err := table.Restore(&changed, &was); err != nil {
			return err
		}
		changed.ID = id
		t = changed.Tenant
		n, err := table.Update(ctx, c, &changed)
		return bunx.Found(n, err, "Tenant "+id)
	})
	if err != nil {
		return tenants.Tenant{}, err
	}
	return t, nil
}

// Any implements tenants.Store.
func (s *Store) Any(ctx context.Context) (there bool, err error) {
	ctx, c := bunx.For(ctx, s.db, "")
	err = c.One(ctx, "Tenant", `SELECT EXISTS (SELECT 1 FROM tc_tenants)`, nil, &there)
	return there, err
}

// Hide implements tenants.Store.
func (s *Store) Hide(ctx context.Context, id string, why tenants.Hidden, at time.Time) error {
	return s.hide(
		ctx, id,
		`UPDATE tc_tenants SET hidden = $2, hidden_at = $3 WHERE tenant_id = $1 AND (hidden IS NULL OR hidden = $2)`,
		string(why), bunx.At(at),
	)
}

// Rehide implements tenants.Store.
func (s *Store) Rehide(
	ctx context.Context, id string, was tenants.Hidden, since time.Time, why tenants.Hidden, at time.Time,
) error {
	return s.hide(ctx, id,
		`UPDATE tc_tenants SET hidden = $4, hidden_at = $5 WHERE tenant_id = $1 AND hidden = $2 AND hidden_at = $3`,
		string(was), bunx.At(since), string(why), bunx.At(at))
}

// Show implements tenants.Store.
func (s *Store) Show(ctx context.Context, id string, was tenants.Hidden, since time.Time) error {
	return s.hide(
		ctx, id,
		`UPDATE tc_tenants SET hidden = NULL, hidden_at = NULL WHERE tenant_id = $1 AND hidden = $2 AND hidden_at = $3`,
		string(was), bunx.At(since),
	)
}

func (s *Store) hide(ctx context.Context, id, query string, args ...any) error {
	return bunx.Write(ctx, s.db, id, func(ctx context.Context, c bunx.Conn) error {
		s.notifier.AfterCommit(ctx, id)
		n, err := c.Exec(ctx, query, append([]any{id}, args...)...)
		return bunx.Found(n, err, "Tenant "+id)
	})
}

// Hidden implements tenants.Store.
func (s *Store) Hidden(ctx context.Context, id string) (why tenants.Hidden, at time.Time, err error) {
	ctx, c := bunx.For(ctx, s.db, id)
	err = c.One(
		ctx, "Tenant "+id, `SELECT coalesce(hidden, ''), hidden_at FROM tc_tenants WHERE tenant_id = $1`,
		[]any{id}, (*string)(&why), bunx.TimeOf(&at),
	)
	return why, at, err
}

// Forget implements tenants.Store.
func (s *Store) Forget(
	ctx context.Context, id string, at time.Time, others []string,
	forget func(ctx context.Context, other string) error,
) error {
	targets, err := s.targets(ctx, id)
	if err != nil {
		return err
	}
	all := slices.Concat(others, targets)
	slices.Sort(all)
	for _, other := range slices.Compact(all) {
		if other == id {
			continue
		}
		err := bunx.InTx(ctx, s.db, func(ctx context.Context) error {
			if slices.Contains(targets, other) { // its row is locked in that case
				if err := s.removeSource(ctx, other, id, at); err != nil {
					return err
				}
			}
			return forget(ctx, other)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Empty implements tenants.Store.
func (s *Store) Empty(ctx context.Context, id string, progress func(rows int)) error {
	all, err := tenantrows.Tables(ctx, s.db)
	if err != nil {
		return err
	}
	return tenantrows.Delete(ctx, s.db, id, all, progress)
}

// Delete implements tenants.Store. Rows that the tenant has got since Empty are deleted with its
// row.
func (s *Store) Delete(ctx context.Context, id string) error {
	all, err := tenantrows.Tables(ctx, s.db)
	if err != nil {
		return err
	}
	return bunx.Write(ctx, s.db, id, func(ctx context.Context, c bunx.Conn) error {
		s.notifier.AfterCommit(ctx, id)
		n, err := c.Exec(
			ctx, `DELETE FROM tc_tenants WHERE tenant_id = $1 AND hidden = $2`, id, string(tenants.Deleting),
		)
		if err := bunx.Found(n, err, "Tenant "+id); err != nil {
			return err
		}
		left, err := tenantrows.Count(ctx, s.db, id, all)
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("tenants: rows are left of %s: %v", id, left)
		}
		return err
	})
}

// KeyChecks implements tenants.Store.
func (s *Store) KeyChecks(ctx context.Context, beginning int) ([]string, error) {
	ctx, c := bunx.For(ctx, s.db, "")
	var ids []string
	for from := ""; ; { // one search of the index for each
		var check, id string
		err := c.One(ctx, "Tenant",
			`SELECT key_check, tenant_id FROM tc_tenants WHERE hidden IS NULL AND key_check >= $1 `+
				`ORDER BY key_check, tenant_id LIMIT 1`,
			[]any{from}, &check, &id)
		if errs.CodeOf(err) == errs.NotFound {
			return ids, nil
		}
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
		if from = check + "\x01"; len(check) >= beginning {
			from = check[:beginning] + "\U0010ffff" // after all texts with this beginning
		}
	}
}

// targets returns the tenants whose DeployFrom has a source.
func (s *Store) targets(ctx context.Context, source string) ([]string, error) {
	ctx, c := bunx.For(ctx, s.db, "")
	rows, err := c.Rows(ctx, `SELECT tenant_id, settings FROM tc_tenants WHERE settings LIKE $1`, `%"`+source+`"%`)
	var ids []string
	_, err = bunx.Scan(rows, err, func(rows *sql.Rows) (id string, err error) {
		var settings tenants.Settings
		err = rows.Scan(&id, settingsField{&settings})
		if slices.ContainsFunc(settings.DeployFrom, isFrom(source)) {
			ids = append(ids, id)
		}
		return id, err
	})
	return ids, bunx.Err(err, "Tenant")
}

func isFrom(source string) func(tenants.Source) bool {
	return func(from tenants.Source) bool { return from.Tenant == source }
}

// removeSource removes a source from a tenant's DeployFrom. It waits for a running deploy from the
// source.
func (s *Store) removeSource(ctx context.Context, tenant, source string, at time.Time) error {
	_, err := s.Update(ctx, tenant, func(t *tenants.Tenant) error {
		if from := slices.DeleteFunc(
			slices.Clone(t.Settings.DeployFrom), isFrom(source),
		); len(from) < len(t.Settings.DeployFrom) {
			t.Settings.DeployFrom, t.UpdatedAt = from, at
		}
		return nil
	})
	if errs.CodeOf(err) == errs.NotFound { // it has been deleted since
		return nil
	}
	return err
}

// KeyCheck implements tenants.Store.
func (s *Store) KeyCheck(ctx context.Context, id string) (string, error) {
	ctx, c := bunx.For(ctx, s.db, id)
	var sealed string
	err := c.One(ctx, "Tenant "+id, `SELECT key_check FROM tc_tenants WHERE tenant_id = $1`, []any{id}, &sealed)
	return sealed, err
}

// Reseal implements tenants.Store.
func (s *Store) Reseal(
	ctx context.Context, id string, columns []entity.SealedColumn, reseal func(tenants.Secret) (string, error),
) (int, error) {
	written := 0
	err := bunx.Write(ctx, s.db, id, func(ctx context.Context, c bunx.Conn) error {
		for _, column := range columns {
			all, err := sealed(ctx, c, id, column)
			if err != nil {
				return err
			}
			for _, old := range all {
				fresh, err := reseal(old)
				if err != nil {
					return err
				}
				if fresh == old.Sealed {
					continue
				}
				_, err = c.Exec(ctx, `UPDATE `+column.Table+` SET `+column.Column+` = $1 WHERE tenant_id = $2 AND `+
					column.Key+` = $3`,
					fresh, id, old.Row)
				if err != nil {
					return bunx.Err(err, "Secret")
				}
				written++
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return written, nil
}

// sealed returns a tenant's values of one column and locks their rows.
func sealed(ctx context.Context, c bunx.Conn, tenant string, in entity.SealedColumn) ([]tenants.Secret, error) {
	rows, err := c.Rows(ctx, `SELECT `+in.Key+`, `+in.Column+` FROM `+in.Table+
		` WHERE tenant_id = $1 AND `+in.Column+` IS NOT NULL ORDER BY `+in.Key+lock(c), tenant)
	all, err := bunx.Scan(rows, err, func(rows *sql.Rows) (tenants.Secret, error) {
		s := tenants.Secret{Table: in.Table, Column: in.Column}
		err := rows.Scan(&s.Row, &s.Sealed)
		return s, err
	})
	return all, bunx.Err(err, "Secret")
}
