// Package bunstore stores apps in PostgreSQL or SQLite. The root imports it.
package bunstore

import (
	"context"
	"database/sql"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/apps"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/bunx"
	"github.com/tenantcontent/tenantcontent/internal/fold"
	"github.com/tenantcontent/tenantcontent/internal/guard"
	"github.com/tenantcontent/tenantcontent/shares"
	sharestore "github.com/tenantcontent/tenantcontent/shares/bunstore"
)

// Store implements apps.Store.
type Store struct {
	db      *bun.DB
	shares  *sharestore.Store
	changed func(tenant string)
}

// New returns a Store. The tables must be there: see tenantcontent.Migrate.
func New(db *bun.DB) *Store {
	return &Store{db: db, shares: sharestore.New(db, "tc_app_shares", "app-share")}
}

// Notify makes the store call changed after each commit that changes rows of apps or shares. Views and favorites are none.
func (s *Store) Notify(changed func(tenant string)) *Store {
	s.changed = changed
	s.shares.Notify(changed)
	return s
}

// write does as bunx.Write and calls the function of Notify.
func (s *Store) write(ctx context.Context, tenant string, fn func(ctx context.Context, c bunx.Conn) error) error {
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		if s.changed != nil {
			bunx.AfterCommit(ctx, func() { s.changed(tenant) })
		}
		return fn(ctx, c)
	})
}

// row is a row of tc_apps.
type row struct {
	apps.App
	label string // as it is stored
}

// table has the columns of an app. Whoever reads knows the tenant. What has Keep is not overwritten by an import. The columns
// webhook_secret and db_role_password are not among them.
var table = bunx.NewTable("tc_apps", "a", []bunx.Column[row]{
	{Name: "tenant_id", Key: true, Value: func(r *row) any { return r.Tenant }},
	{Name: "id", Key: true, Field: func(r *row) any { return &r.ID }},
	{Name: "type", Field: func(r *row) any { return (*string)(&r.Type) }},
	{Name: "name", Field: func(r *row) any { return &r.Name }},
	{Name: "label", Field: func(r *row) any { return &r.label }, Value: func(r *row) any { return fold.Text(r.Name) }},
	{Name: "search", Value: func(r *row) any { return search(r.App) }},
	{Name: "slug", Field: func(r *row) any { return &r.Slug }},
	{Name: "description", Field: func(r *row) any { return &r.Description }},
	{Name: "owner_id", Field: func(r *row) any { return &r.OwnerID }},
	{Name: "defn", Field: func(r *row) any { return bunx.JSON(&r.Defn) }},
	{Name: "env_sealed", Field: func(r *row) any { return bunx.TextOrNull(&r.Sealed) }},
	{Name: "settings", Field: func(r *row) any { return bunx.JSON(&r.Settings) }},
	{Name: "origin", Field: func(r *row) any { return &r.Origin }},
	{Name: "library_id", Once: true, Field: func(r *row) any { return &r.LibraryID }},
	{Name: "editing_id", Once: true, Field: func(r *row) any { return &r.EditingID }},
	{Name: "base", Keep: true, Field: func(r *row) any { return bunx.TextOrNull(&r.Base) }},
	{Name: "editing_session", Keep: true, Field: func(r *row) any { return &r.Lock.Session }},
	{Name: "editing_heartbeat_at", Keep: true, Field: func(r *row) any { return bunx.TimeOrNull(&r.Lock.HeartbeatAt) }},
	{Name: "editing_locked_by", Keep: true, Field: func(r *row) any { return &r.Lock.LockedBy }},
	{Name: "shared", Once: true, Field: func(r *row) any { return &r.Shared }},
	{Name: "is_managed", Field: func(r *row) any { return &r.IsManaged }},
	{Name: "folder_id", Field: func(r *row) any { return &r.FolderID }},
	{Name: "datasets", Field: func(r *row) any { return bunx.JSONArray(&r.Datasets) }},
	{Name: "tags", Field: func(r *row) any { return bunx.JSONArray(&r.Tags) }},
	{Name: "source", Field: func(r *row) any { return &r.Source }},
	{Name: "source_id", Field: func(r *row) any { return &r.SourceID }},
	{Name: "defn_updated_at", Field: func(r *row) any { return bunx.TimeOrNull(&r.DefnUpdatedAt) }},
	{Name: "deployed_at", Field: func(r *row) any { return bunx.TimeOrNull(&r.DeployedAt) }},
	{Name: "deleted_at", Keep: true, Field: func(r *row) any { return bunx.TimeOrNull(&r.DeletedAt) }},
	{Name: "created_at", Once: true, Field: func(r *row) any { return bunx.TimeOf(&r.CreatedAt) }},
	{Name: "updated_at", Field: func(r *row) any { return bunx.TimeOf(&r.UpdatedAt) }},
})

// heads reads rows without Defn, which may be long.
var heads = table.Without("defn")

func search(a apps.App) string { return fold.Search(a.Name, or(a.Slug), or(a.Description)) }

func or(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// scan reads a row of t, which is table or heads.
func scan(t *bunx.Table[row], tenant string, from interface{ Scan(...any) error }) (apps.App, error) {
	r, err := t.Scan(from)
	r.Tenant = tenant
	return r.App, err
}

// scanner reads rows of heads.
func scanner(tenant string) func(*sql.Rows) (apps.App, error) {
	return func(rows *sql.Rows) (apps.App, error) { return scan(heads, tenant, rows) }
}

const (
	noun      = "App"
	slugTaken = "An app of this owner with this slug"
)

// listed is the condition of the partial indexes: neither a draft nor deleted.
const listed = `editing_id IS NULL AND deleted_at IS NULL`

// InTx implements apps.Store.
func (s *Store) InTx(ctx context.Context, fn func(context.Context) error) error {
	return bunx.InTx(ctx, s.db, fn)
}

// Shares implements apps.Store.
func (s *Store) Shares() shares.Store { return s.shares }

// Get implements apps.Store.
func (s *Store) Get(ctx context.Context, tenant string, at apps.Lookup) (apps.App, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	return get(ctx, c, tenant, table, at, "")
}

// Head implements apps.Store.
func (s *Store) Head(ctx context.Context, tenant string, at apps.Lookup) (apps.App, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	return get(ctx, c, tenant, heads, at, "")
}

const bySlug = ` AND owner_id = $2 AND slug = $3 AND editing_id IS NULL`

// lookups are the statements that find an app.
type lookups struct{ id, library, slug string }

func newLookups(t *bunx.Table[row], state, one string) lookups {
	where := `WHERE tenant_id = $1 AND deleted_at ` + state
	return lookups{t.Select(where + ` AND id = $2`), t.Select(where + ` AND library_id = $2`), t.Select(where + bySlug + one)}
}

// Several deleted apps of an owner may have the same slug: the one that was deleted last is found.
const lastDeleted = ` ORDER BY deleted_at DESC, id DESC LIMIT 1`

var (
	present      = newLookups(table, `IS NULL`, ``)
	presentHeads = newLookups(heads, `IS NULL`, ``)
	deleted      = newLookups(table, `IS NOT NULL`, lastDeleted)
	deletedHeads = newLookups(heads, `IS NOT NULL`, lastDeleted)
	selectDraft  = table.Select(`WHERE tenant_id = $1 AND editing_id = $2`)
)

// get reads an app with the columns of t, which is table or heads.
func get(ctx context.Context, c bunx.Conn, tenant string, t *bunx.Table[row], at apps.Lookup, lock string) (apps.App, error) {
	l := present
	switch {
	case at.Deleted && t == heads:
		l = deletedHeads
	case at.Deleted:
		l = deleted
	case t == heads:
		l = presentHeads
	}
	switch {
	case at.ID != "":
		return one(ctx, c, tenant, t, noun, l.id+lock, tenant, at.ID)
	case at.Library != "":
		return one(ctx, c, tenant, t, noun, l.library+lock, tenant, at.Library)
	}
	return one(ctx, c, tenant, t, noun, l.slug+lock, tenant, at.Owner, at.Slug)
}

// one reads the one row of a statement, of table or heads.
func one(ctx context.Context, c bunx.Conn, tenant string, t *bunx.Table[row], what, query string, args ...any) (apps.App, error) {
	a, err := scan(t, tenant, c.Row(ctx, query, args...))
	if err != nil {
		return apps.App{}, bunx.Err(err, what)
	}
	return a, nil
}

// Lock implements apps.Store.
func (s *Store) Lock(ctx context.Context, tenant string, at apps.Lookup) (apps.App, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	return get(ctx, c, tenant, table, at, c.ForChange())
}

// Draft implements apps.Store.
func (s *Store) Draft(ctx context.Context, tenant, id string) (apps.App, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	return one(ctx, c, tenant, table, "Draft", selectDraft, tenant, id)
}

// LockDraft implements apps.Store.
func (s *Store) LockDraft(ctx context.Context, tenant, id string) (apps.App, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	return one(ctx, c, tenant, table, "Draft", selectDraft+c.ForChange(), tenant, id)
}

// Count implements apps.Store.
func (s *Store) Count(ctx context.Context, tenant string) (n int, err error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	err = c.One(ctx, "App", `SELECT count(*) FROM tc_apps WHERE tenant_id = $1 AND editing_id IS NULL`, []any{tenant}, &n)
	return n, err
}

// Drafted implements apps.Store.
func (s *Store) Drafted(ctx context.Context, tenant string, ids []string) (map[string]bool, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows, err := c.Rows(ctx, `SELECT editing_id FROM tc_apps WHERE tenant_id = $1 AND editing_id IN `+c.Among(2, 1), tenant, bunx.Keys(ids))
	found, err := bunx.Scan(rows, err, bunx.Text)
	drafted := make(map[string]bool, len(found))
	for _, id := range found {
		drafted[id] = true
	}
	return drafted, bunx.Err(err, "App")
}

// Hold implements apps.Store.
func (s *Store) Hold(ctx context.Context, tenant string, principals []string) (map[string]bool, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	return c.HoldPrincipals(ctx, tenant, principals)
}

// Insert implements apps.Store.
func (s *Store) Insert(ctx context.Context, tenant string, a apps.App) error {
	return s.write(ctx, tenant, func(ctx context.Context, c bunx.Conn) error {
		if err := holdOwner(ctx, c, tenant, a.OwnerID); err != nil {
			return err
		}
		what := slugTaken
		if a.EditingID != nil {
			what = "A draft of this app"
		}
		return put(ctx, c, tenant, []apps.App{a}, what, "")
	})
}

// put writes rows with one statement, which ends with onConflict. what names the row that is in the way.
func put(ctx context.Context, c bunx.Conn, tenant string, all []apps.App, what, onConflict string) error {
	rows := make([]row, len(all))
	for i, a := range all {
		a.Tenant = tenant
		rows[i].App = a
	}
	_, err := table.Insert(ctx, c, onConflict, rows...)
	return bunx.Err(err, what)
}

// Update implements apps.Store.
func (s *Store) Update(ctx context.Context, tenant string, at apps.Lookup, edit func(*apps.App) error) (apps.App, error) {
	var a apps.App
	err := s.write(ctx, tenant, func(ctx context.Context, c bunx.Conn) (err error) {
		if a, err = get(ctx, c, tenant, table, at, c.ForChange()); err != nil {
			return err
		}
		was, changed := row{App: a}, row{App: a}
		if err := edit(&changed.App); err != nil {
			return err
		}
		if err := guard.Check(ctx, string(apps.Kind), was); err != nil {
			return err
		}
		if err := table.Restore(&changed, &was); err != nil {
			return err
		}
		changed.Tenant = tenant
		a = changed.App
		n, err := table.Update(ctx, c, &changed)
		if err != nil {
			return bunx.Err(err, slugTaken)
		}
		return bunx.Found(n, nil, noun)
	})
	if err != nil {
		return apps.App{}, err
	}
	return a, nil
}

// holdOwner is HoldPrincipal of a user or team alone: what everyone would own, everyone could see.
func holdOwner(ctx context.Context, c bunx.Conn, tenant, id string) error {
	if id == shares.Everyone {
		return errs.New(errs.Forbidden, "%s is no user or team, so no app can belong to it.", id)
	}
	return c.HoldPrincipal(ctx, tenant, id)
}

// Remove implements apps.Store.
func (s *Store) Remove(ctx context.Context, tenant string, ids []string) (gone []apps.App, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	err = s.write(ctx, tenant, func(ctx context.Context, c bunx.Conn) error {
		rows, err := c.Rows(ctx, `SELECT id FROM tc_apps WHERE tenant_id = $1 AND editing_id IN `+c.Among(2, 1)+` ORDER BY id`+c.ForChange(),
			tenant, bunx.Keys(ids))
		drafts, err := bunx.Scan(rows, err, bunx.Text)
		if err != nil {
			return bunx.Err(err, noun)
		}
		all := append(drafts, ids...)
		if err := s.shares.Remove(ctx, tenant, all); err != nil {
			return err
		}
		rows, err = c.Rows(ctx, `DELETE FROM tc_apps WHERE tenant_id = $1 AND id IN `+c.Among(2, 1)+` RETURNING `+heads.Names, tenant, bunx.Keys(all))
		gone, err = bunx.Scan(rows, err, scanner(tenant))
		return bunx.Err(err, noun)
	})
	if err != nil {
		return nil, err
	}
	return gone, nil
}

// SetShared implements apps.Store.
func (s *Store) SetShared(ctx context.Context, tenant string, ids []string) error {
	return s.write(ctx, tenant, func(ctx context.Context, c bunx.Conn) error {
		_, err := c.Exec(ctx, `UPDATE tc_apps SET shared = EXISTS (SELECT 1 FROM tc_app_shares s WHERE s.tenant_id = $1 AND s.entity_id = tc_apps.id
			AND s.access_level > 0) WHERE tenant_id = $1 AND id IN `+c.Among(2, 1), tenant, bunx.Keys(ids))
		return bunx.Err(err, noun)
	})
}
