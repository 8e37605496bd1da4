// Package draftstore stores entities that are edited in drafts in PostgreSQL or SQLite. Each noun
// has separate tables. The stores of these nouns import it.
package draftstore

import (
	"context"
	"database/sql"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/drafts"
	"github.com/tenantcontent/tenantcontent/internal/drafts/shares"
	"github.com/tenantcontent/tenantcontent/internal/secure/guard"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	sharestore "github.com/tenantcontent/tenantcontent/internal/store/shares"
	"github.com/tenantcontent/tenantcontent/internal/text/fold"
)

// Noun describes the table of one noun.
type Noun[T drafts.Entity] struct {
	Kind       entity.Kind
	Name       string // at the beginning of errors, such as App
	Article    string // in errors, such as An app
	Table      string // of the rows
	Shares     string // table of the shares
	Sealed     string // column of Fields.Sealed
	Fields     func(*T) drafts.Fields
	Columns    []bunx.Column[T] // in addition to those of Fields
	Long       []string         // columns that may be long: Head and Viewer.Brief do not read them
	Size       func(T) int      // bytes of the long columns of an entity
	Restorable bool             // the table has deleted_at
}

// Store implements drafts.Store.
type Store[T drafts.Entity] struct {
	noun           Noun[T]
	db             *bun.DB
	shares         *sharestore.Store
	notifier       bunx.Notifier
	rows, shared   string // names of the tables
	listed         string // condition of the partial indexes: neither a draft nor deleted
	table, heads   *bunx.Table[Row[T]]
	lists          map[bool]bunx.List[Row[T]] // the list, by whether the long columns are left out
	present        map[*bunx.Table[Row[T]]]lookups
	deleted        map[*bunx.Table[Row[T]]]lookups
	selectDraft    string
	taken, another string // the conflict in errors: the slug, the draft
}

// Row is a row of the table.
type Row[T drafts.Entity] struct {
	Entity T
	label  string // as it is stored
}

// New returns a Store. The tables must exist: see tenantcontent.Migrate.
func New[T drafts.Entity](db *bun.DB, n Noun[T]) *Store[T] {
	s := &Store[T]{
		noun: n, db: db, shares: sharestore.New(db, n.Shares, string(n.Kind)+"-share"),
		rows: n.Table, shared: n.Shares, listed: `editing_id IS NULL`,
		taken: n.Article + " of this owner with this slug", another: "A draft of this " + string(n.Kind),
	}
	state, gone := ``, ` AND false`
	if n.Restorable {
		s.listed += ` AND deleted_at IS NULL`
		state, gone = ` AND deleted_at IS NULL`, ` AND deleted_at IS NOT NULL`
	}
	s.table = bunx.NewTable(n.Table, "a", n.columns())
	s.heads = s.table.Without(n.Long...)
	s.lists = map[bool]bunx.List[Row[T]]{false: s.list(s.table), true: s.list(s.heads)}
	s.present, s.deleted = map[*bunx.Table[Row[T]]]lookups{}, map[*bunx.Table[Row[T]]]lookups{}
	for _, t := range []*bunx.Table[Row[T]]{s.table, s.heads} {
		s.present[t], s.deleted[t] = newLookups(t, state, ``), newLookups(t, gone, lastDeleted)
	}
	s.selectDraft = s.table.Select(`WHERE tenant_id = $1 AND editing_id = $2`)
	return s
}

// Notify makes the store call changed after each commit that changes rows or shares.
func (s *Store[T]) Notify(changed func(tenant string)) {
	s.notifier.Set(changed)
	s.shares.Notify(changed)
}

// HeadColumns returns the columns of an entity without those that may be long, with the alias a,
// and a function that reads them.
func (s *Store[T]) HeadColumns(tenant string) (columns string, read func(*sql.Rows) (T, error)) {
	return s.heads.Qualified, s.scanner(tenant)
}

// columns returns the columns of a row. Readers pass the tenant. An import does not overwrite
// columns with Keep.
func (n Noun[T]) columns() []bunx.Column[Row[T]] {
	of := func(r *Row[T]) drafts.Fields { return n.Fields(&r.Entity) }
	all := []bunx.Column[Row[T]]{
		{Name: "tenant_id", Key: true, Value: func(r *Row[T]) any { return *of(r).Tenant }},
		{Name: "id", Key: true, Field: func(r *Row[T]) any { return of(r).ID }},
		{Name: "name", Field: func(r *Row[T]) any { return of(r).Name }},
		{Name: "label", Field: func(r *Row[T]) any {
			return &r.label
		}, Value: func(r *Row[T]) any { return fold.Text(*of(r).Name) }},
		{Name: "search", Value: func(r *Row[T]) any { return search(of(r)) }},
		{Name: "slug", Field: func(r *Row[T]) any { return of(r).Slug }},
		{Name: "description", Field: func(r *Row[T]) any { return of(r).Description }},
		{Name: "owner_id", Field: func(r *Row[T]) any { return of(r).OwnerID }},
		{Name: n.Sealed, Field: func(r *Row[T]) any { return bunx.TextOrNull(of(r).Sealed) }},
		{Name: "library_id", Once: true, Field: func(r *Row[T]) any { return of(r).LibraryID }},
		{Name: "editing_id", Once: true, Field: func(r *Row[T]) any { return of(r).EditingID }},
		{Name: "base", Keep: true, Field: func(r *Row[T]) any { return bunx.TextOrNull(of(r).Base) }},
		{Name: "editing_session", Keep: true, Field: func(r *Row[T]) any { return &of(r).Lock.Session }},
		{Name: "editing_heartbeat_at", Keep: true, Field: func(r *Row[T]) any {
			return bunx.TimeOrNull(&of(r).Lock.HeartbeatAt)
		}},
		{Name: "editing_locked_by", Keep: true, Field: func(r *Row[T]) any { return &of(r).Lock.LockedBy }},
		{Name: "shared", Once: true, Field: func(r *Row[T]) any { return of(r).Shared }},
		{Name: "folder_id", Field: func(r *Row[T]) any { return of(r).FolderID }},
		{Name: "created_at", Once: true, Field: func(r *Row[T]) any { return bunx.TimeOf(of(r).CreatedAt) }},
		{Name: "updated_at", Field: func(r *Row[T]) any { return bunx.TimeOf(of(r).UpdatedAt) }},
	}
	if n.Restorable {
		all = append(all, bunx.Column[Row[T]]{Name: "deleted_at", Keep: true, Field: func(r *Row[T]) any {
			return bunx.TimeOrNull(of(r).DeletedAt)
		}})
	}
	for _, c := range n.Columns {
		own := bunx.Column[Row[T]]{Name: c.Name, Once: c.Once, Keep: c.Keep}
		if c.Field != nil {
			own.Field = func(r *Row[T]) any { return c.Field(&r.Entity) }
		}
		if c.Value != nil {
			own.Value = func(r *Row[T]) any { return c.Value(&r.Entity) }
		}
		all = append(all, own)
	}
	return all
}

func search(f drafts.Fields) string { return fold.Search(*f.Name, or(*f.Slug), or(*f.Description)) }

func or(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// of returns an entity of a row.
func (s *Store[T]) of(r Row[T], tenant string) T {
	*s.noun.Fields(&r.Entity).Tenant = tenant
	return r.Entity
}

// scan reads a row of t, which is table or heads.
func (s *Store[T]) scan(t *bunx.Table[Row[T]], tenant string, from interface{ Scan(...any) error }) (T, error) {
	r, err := t.Scan(from)
	return s.of(r, tenant), err
}

// scanner reads rows of heads.
func (s *Store[T]) scanner(tenant string) func(*sql.Rows) (T, error) {
	return func(rows *sql.Rows) (T, error) { return s.scan(s.heads, tenant, rows) }
}

// InTx implements drafts.Store.
func (s *Store[T]) InTx(ctx context.Context, fn func(context.Context) error) error {
	return bunx.InTx(ctx, s.db, fn)
}

// Shares implements drafts.Store.
func (s *Store[T]) Shares() shares.Store { return s.shares }

// Get implements drafts.Store.
func (s *Store[T]) Get(ctx context.Context, tenant string, at drafts.Lookup) (T, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	return s.get(ctx, c, tenant, s.table, at, "")
}

// Head implements drafts.Store.
func (s *Store[T]) Head(ctx context.Context, tenant string, at drafts.Lookup) (T, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	return s.get(ctx, c, tenant, s.heads, at, "")
}

// lookups are the statements that find an entity.
type lookups struct{ id, library, slug string }

func newLookups[T drafts.Entity](t *bunx.Table[Row[T]], state, one string) lookups {
	where := `WHERE tenant_id = $1` + state
	return lookups{
		t.Select(where + ` AND id = $2`), t.Select(where + ` AND library_id = $2`),
		t.Select(where + ` AND owner_id = $2 AND slug = $3 AND editing_id IS NULL` + one),
	}
}

// Several deleted entities of an owner may have the same slug. The most recently deleted one is
// found.
const lastDeleted = ` ORDER BY deleted_at DESC, id DESC LIMIT 1`

// get reads an entity with the columns of t, which is table or heads.
func (s *Store[T]) get(
	ctx context.Context, c bunx.Conn, tenant string, t *bunx.Table[Row[T]], at drafts.Lookup, lock string,
) (T, error) {
	l := s.present[t]
	if at.Deleted {
		l = s.deleted[t]
	}
	switch {
	case at.ID != "":
		return s.one(ctx, c, tenant, t, s.noun.Name, l.id+lock, tenant, at.ID)
	case at.Library != "":
		return s.one(ctx, c, tenant, t, s.noun.Name, l.library+lock, tenant, at.Library)
	}
	return s.one(ctx, c, tenant, t, s.noun.Name, l.slug+lock, tenant, at.Owner, at.Slug)
}

// one reads the only row of a statement, of table or heads.
func (s *Store[T]) one(
	ctx context.Context, c bunx.Conn, tenant string, t *bunx.Table[Row[T]], what, query string, args ...any,
) (T, error) {
	e, err := s.scan(t, tenant, c.Row(ctx, query, args...))
	if err != nil {
		return *new(T), bunx.Err(err, what)
	}
	return e, nil
}

// Lock implements drafts.Store.
func (s *Store[T]) Lock(ctx context.Context, tenant string, at drafts.Lookup) (T, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	return s.get(ctx, c, tenant, s.table, at, c.ForChange())
}

// Draft implements drafts.Store.
func (s *Store[T]) Draft(ctx context.Context, tenant, id string) (T, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	return s.one(ctx, c, tenant, s.table, "Draft", s.selectDraft, tenant, id)
}

// LockDraft implements drafts.Store.
func (s *Store[T]) LockDraft(ctx context.Context, tenant, id string) (T, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	return s.one(ctx, c, tenant, s.table, "Draft", s.selectDraft+c.ForChange(), tenant, id)
}

// Count implements drafts.Store.
func (s *Store[T]) Count(ctx context.Context, tenant string) (n int, err error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	err = c.One(
		ctx, s.noun.Name, `SELECT count(*) FROM `+s.rows+` WHERE tenant_id = $1 AND editing_id IS NULL`,
		[]any{tenant}, &n,
	)
	return n, err
}

// Drafted implements drafts.Store.
func (s *Store[T]) Drafted(ctx context.Context, tenant string, ids []string) (map[string]bool, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows, err := c.Rows(
		ctx, `SELECT editing_id FROM `+s.rows+` WHERE tenant_id = $1 AND editing_id `+c.OneOf(2), tenant,
		bunx.Keys(ids),
	)
	drafted, err := bunx.TextSet(rows, err)
	return drafted, bunx.Err(err, s.noun.Name)
}

// Hold implements drafts.Store.
func (s *Store[T]) Hold(ctx context.Context, tenant string, principals []string) (map[string]bool, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	return c.HoldPrincipals(ctx, tenant, principals)
}

// Insert implements drafts.Store.
func (s *Store[T]) Insert(ctx context.Context, tenant string, e T) error {
	return s.notifier.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		f := s.noun.Fields(&e)
		if err := s.holdOwner(ctx, c, tenant, *f.OwnerID); err != nil {
			return err
		}
		what := s.taken
		if *f.EditingID != nil {
			what = s.another
		}
		return s.put(ctx, c, tenant, []T{e}, what, "")
	})
}

// put writes rows with one statement, which ends with onConflict. what is the name of the conflict
// in errors.
func (s *Store[T]) put(ctx context.Context, c bunx.Conn, tenant string, all []T, what, onConflict string) error {
	rows := make([]Row[T], len(all))
	for i, e := range all {
		rows[i].Entity = s.of(Row[T]{Entity: e}, tenant)
	}
	_, err := s.table.Insert(ctx, c, onConflict, rows...)
	return bunx.Err(err, what)
}

// Update implements drafts.Store.
func (s *Store[T]) Update(ctx context.Context, tenant string, at drafts.Lookup, edit func(*T) error) (T, error) {
	var e T
	err := s.notifier.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) (err error) {
		if e, err = s.get(ctx, c, tenant, s.table, at, c.ForChange()); err != nil {
			return err
		}
		was, changed := Row[T]{Entity: e}, Row[T]{Entity: e}
		if err := edit(&changed.Entity); err != nil {
			return err
		}
		if err := guard.Check(ctx, string(s.noun.Kind), e); err != nil {
			return err
		}
		if err := s.table.Restore(&changed, &was); err != nil {
			return err
		}
		e = s.of(changed, tenant)
		changed.Entity = e
		n, err := s.table.Update(ctx, c, &changed)
		if err != nil {
			return bunx.Err(err, s.taken)
		}
		return bunx.Found(n, nil, s.noun.Name)
	})
	if err != nil {
		return *new(T), err
	}
	return e, nil
}

// holdOwner is HoldPrincipal for a user or team only: everyone could see what "*" owned.
func (s *Store[T]) holdOwner(ctx context.Context, c bunx.Conn, tenant, id string) error {
	if id == shares.Everyone {
		return errs.New(errs.Forbidden, "%s is no user or team, so no %s can belong to it.", id, s.noun.Kind)
	}
	return c.HoldPrincipal(ctx, tenant, id)
}

// Remove implements drafts.Store.
func (s *Store[T]) Remove(ctx context.Context, tenant string, ids []string) (gone []T, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	err = s.notifier.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		rows, err := c.Rows(ctx, `SELECT id FROM `+s.rows+` WHERE tenant_id = $1 AND editing_id `+c.OneOf(2)+
			` ORDER BY editing_id`+c.ForChange(),
			tenant, bunx.Keys(ids))
		drafts, err := bunx.Scan(rows, err, bunx.Text)
		if err != nil {
			return bunx.Err(err, s.noun.Name)
		}
		all := append(drafts, ids...)
		if err := s.shares.Remove(ctx, tenant, all); err != nil {
			return err
		}
		rows, err = c.Rows(
			ctx, `DELETE FROM `+s.rows+` WHERE tenant_id = $1 AND id `+c.OneOf(2)+` RETURNING `+s.heads.Names,
			tenant, bunx.Keys(all),
		)
		gone, err = bunx.Scan(rows, err, s.scanner(tenant))
		return bunx.Err(err, s.noun.Name)
	})
	if err != nil {
		return nil, err
	}
	return gone, nil
}

// SetShared implements drafts.Store.
func (s *Store[T]) SetShared(ctx context.Context, tenant string, ids []string) error {
	return s.notifier.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		_, err := c.Exec(ctx, `UPDATE `+s.rows+` SET shared = EXISTS (SELECT 1 FROM `+s.shared+
			` s WHERE s.tenant_id = $1 AND s.entity_id = `+s.rows+`.id
			AND s.access_level > 0) WHERE tenant_id = $1 AND id `+c.OneOf(2), tenant, bunx.Keys(ids))
		return bunx.Err(err, s.noun.Name)
	})
}
