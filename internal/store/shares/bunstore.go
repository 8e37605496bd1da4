// Package bunstore stores shares in PostgreSQL or SQLite. Each kind of entity has a separate table.
// The stores of nouns that are shared import it.
package bunstore

import (
	"context"
	"database/sql"
	"maps"
	"slices"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/drafts/shares"
	"github.com/tenantcontent/tenantcontent/internal/secure/guard"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
)

// Store implements shares.Store.
type Store struct {
	db    *bun.DB
	table *bunx.Table[share]
	row   string // for conditional writes

	selectAll, selectSome, selectOne, lockOne, upsert string
	deleteOne, deleteSome, deletePrincipals           string
	sharedWith, manyGrants                            string
	grants                                            bunx.Lookup

	notifier bunx.Notifier
}

// Notify makes the store call changed after each commit that changes shares.
func (s *Store) Notify(changed func(tenant string)) *Store {
	s.notifier.Set(changed)
	return s
}

// New returns a Store over a table of shares, such as that of apps, which must exist: see
// tenantcontent.Migrate. row is the guard.Guard.Row of conditional writes to it.
func New(db *bun.DB, table, row string) *Store {
	s := &Store{db: db, table: newTable(table), row: row}
	c := bunx.Conn{DB: db} // only for its dialect
	s.selectAll = s.table.Select(`WHERE tenant_id = $1 AND entity_id = $2 ORDER BY principal_id`)
	s.selectSome = s.table.Select(`WHERE tenant_id = $1 AND entity_id ` + c.OneOf(2) +
		` ORDER BY entity_id, principal_id`)
	s.selectOne = s.table.Select(`WHERE tenant_id = $1 AND entity_id = $2 AND principal_id = $3`)
	s.lockOne = s.selectOne
	if c.Postgres() {
		s.lockOne += ` FOR UPDATE`
	}
	s.upsert = s.table.InsertOne(s.table.OnConflict)
	s.deleteOne = `DELETE FROM ` + table + ` WHERE tenant_id = $1 AND entity_id = $2` + ` AND principal_id = $3`
	s.deleteSome = `DELETE FROM ` + table + ` WHERE tenant_id = $1 AND entity_id ` + c.OneOf(2)
	ofPrincipals := ` FROM ` + table + ` WHERE tenant_id = $1 AND principal_id ` + c.OneOf(2)
	s.sharedWith = `SELECT entity_id` + ofPrincipals
	s.deletePrincipals = `DELETE` + ofPrincipals
	s.manyGrants = `SELECT entity_id, access_level, roles FROM ` + table +
		` WHERE tenant_id = $1 AND access_level > 0 AND entity_id ` + c.OneOf(2) + ` AND principal_id IN ` +
		c.Among(3, 1)
	s.grants = bunx.Lookup{
		Columns: `entity_id, access_level, roles`, Table: table, Key: `entity_id`,
		Where: `tenant_id = $1 AND access_level > 0 AND principal_id ` + c.OneOf(2),
	}
	return s
}

// share is a row.
type share struct {
	tenant, entity string
	shares.Share
}

// newTable returns the columns of a share. Readers pass the tenant themselves.
func newTable(name string) *bunx.Table[share] {
	return bunx.NewTable(name, "s", []bunx.Column[share]{
		{Name: "tenant_id", Key: true, Value: func(s *share) any { return s.tenant }},
		{Name: "entity_id", Key: true, Field: func(s *share) any { return &s.entity }},
		{Name: "principal_id", Key: true, Field: func(s *share) any { return &s.PrincipalID }},
		{Name: "access_level", Field: func(s *share) any { return &s.Level }},
		{Name: "roles", Field: func(s *share) any { return bunx.JSONArray(&s.Roles) }},
		{Name: "created_at", Once: true, Field: func(s *share) any { return bunx.TimeOf(&s.CreatedAt) }},
		{Name: "updated_at", Field: func(s *share) any { return bunx.TimeOf(&s.UpdatedAt) }},
	})
}

func (s *Store) scan(rows *sql.Rows) (shares.Share, error) {
	row, err := s.table.Scan(rows)
	return row.Share, err
}

// All implements shares.Store.
func (s *Store) All(ctx context.Context, tenant, id string) ([]shares.Share, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows, err := c.Rows(ctx, s.selectAll, tenant, id)
	all, err := bunx.Scan(rows, err, s.scan)
	return all, bunx.Err(err, "Share")
}

// Some implements shares.Store.
func (s *Store) Some(ctx context.Context, tenant string, ids []string) (map[string][]shares.Share, error) {
	some := map[string][]shares.Share{}
	if len(ids) == 0 {
		return some, nil
	}
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows, err := c.Rows(ctx, s.selectSome, tenant, bunx.Keys(ids))
	all, err := bunx.Scan(rows, err, func(rows *sql.Rows) (share, error) { return s.table.Scan(rows) })
	for _, row := range all {
		some[row.entity] = append(some[row.entity], row.Share)
	}
	return some, bunx.Err(err, "Share")
}

// One implements shares.Store.
func (s *Store) One(ctx context.Context, tenant, id, principal string) (shares.Share, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	return s.one(ctx, c, s.selectOne, tenant, id, principal)
}

func (s *Store) one(ctx context.Context, c bunx.Conn, query, tenant, id, principal string) (shares.Share, error) {
	row, err := s.table.Scan(c.Row(ctx, query, tenant, id, principal))
	if err != nil {
		return shares.Share{}, bunx.Err(err, "Share")
	}
	return row.Share, nil
}

// Put implements shares.Store.
func (s *Store) Put(ctx context.Context, tenant, id string, put shares.Share) (shares.Share, error) {
	err := s.notifier.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		was, err := s.one(ctx, c, s.lockOne, tenant, id, put.PrincipalID)
		switch errs.CodeOf(err) {
		case "":
			put.CreatedAt = was.CreatedAt
			err = guard.Check(ctx, s.row, was)
		case errs.NotFound:
			err = guard.Of(ctx, s.row).Missing()
		}
		if err != nil {
			return err
		}
		_, err = c.Exec(ctx, s.upsert, s.table.Args(&share{tenant, id, put})...)
		return bunx.Err(err, "Share")
	})
	if err != nil {
		return shares.Share{}, err
	}
	return put, nil
}

// Delete implements shares.Store. A condition is checked after the row has been locked.
func (s *Store) Delete(ctx context.Context, tenant, id, principal string) error {
	return s.notifier.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		was, err := s.one(ctx, c, s.lockOne, tenant, id, principal)
		if err != nil {
			return err
		}
		if err := guard.Check(ctx, s.row, was); err != nil {
			return err
		}
		n, err := c.Exec(ctx, s.deleteOne, tenant, id, principal)
		return bunx.Found(n, err, "Share")
	})
}

// maxLookedUp is the most principals that are looked up for each entity. PostgreSQL sorts their
// array for each. More principals are compared with the shares of all entities.
const maxLookedUp = 200

// Grants implements shares.Store.
func (s *Store) Grants(ctx context.Context, tenant string, ids, principals []string) (map[string]shares.Grant, error) {
	grants := make(map[string]shares.Grant, len(ids))
	if len(ids) == 0 || len(principals) == 0 {
		return grants, nil
	}
	ctx, c := bunx.For(ctx, s.db, tenant)
	find := func() (*sql.Rows, error) { return c.Find(ctx, s.grants, ids, tenant, bunx.Keys(principals)) }
	if len(principals) > maxLookedUp {
		find = func() (*sql.Rows, error) {
			return c.Rows(ctx, s.manyGrants, tenant, bunx.Keys(ids), bunx.Keys(principals))
		}
	}
	rows, err := find()
	_, err = bunx.Scan(rows, err, func(rows *sql.Rows) (none struct{}, err error) {
		var id string
		var given shares.Grant
		if err := rows.Scan(&id, &given.Level, bunx.JSONArray(&given.Roles)); err != nil {
			return none, err
		}
		if have, ok := grants[id]; ok {
			given.Level = max(given.Level, have.Level)
			given.Roles = slices.Concat(have.Roles, given.Roles)
			slices.Sort(given.Roles)
			given.Roles = slices.Compact(given.Roles)
		}
		grants[id] = given
		return none, nil
	})
	if err != nil {
		return nil, bunx.Err(err, "Share")
	}
	return grants, nil
}

// Replace implements shares.Store.
func (s *Store) Replace(ctx context.Context, tenant string, all map[string][]shares.Share) error {
	if len(all) == 0 {
		return nil
	}
	return s.notifier.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		ids := slices.Sorted(maps.Keys(all))
		var rows []share
		for _, id := range ids {
			for _, put := range all[id] {
				rows = append(rows, share{tenant, id, put})
			}
		}
		if _, err := c.Exec(ctx, s.deleteSome, tenant, bunx.Keys(ids)); err != nil {
			return bunx.Err(err, "Share")
		}
		_, err := s.table.Insert(ctx, c, "", rows...)
		return bunx.Err(err, "Share")
	})
}

// Remove implements shares.Store.
func (s *Store) Remove(ctx context.Context, tenant string, ids []string) error {
	return s.notifier.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		_, err := c.Exec(ctx, s.deleteSome, tenant, bunx.Keys(ids))
		return bunx.Err(err, "Share")
	})
}

// SharedWith implements shares.Store.
func (s *Store) SharedWith(ctx context.Context, tenant string, principals []string) ([]string, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows, err := c.Rows(ctx, s.sharedWith, tenant, bunx.Keys(principals))
	ids, err := bunx.Scan(rows, err, bunx.Text)
	slices.Sort(ids) // SQLite could otherwise read the shares of all entities, which it has in this order
	return slices.Compact(ids), bunx.Err(err, "Share")
}

// RemovePrincipals implements shares.Store.
func (s *Store) RemovePrincipals(ctx context.Context, tenant string, principals []string) error {
	return s.notifier.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		_, err := c.Exec(ctx, s.deletePrincipals, tenant, bunx.Keys(principals))
		return bunx.Err(err, "Share")
	})
}

// RenameUsers implements shares.Store.
func (s *Store) RenameUsers(ctx context.Context, tenant string, names map[string]string) error {
	return s.notifier.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		return bunx.Err(c.Rename(ctx, tenant, s.table.Name, "principal_id", names), "Share")
	})
}
