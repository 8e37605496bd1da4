// Package bunstore stores the list of workspaces in PostgreSQL or SQLite. The root imports it.
package bunstore

import (
	"context"
	"database/sql"
	"maps"
	"slices"
	"time"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/workspaces"
)

// Store implements workspaces.Store.
type Store struct {
	db        *bun.DB
	removeAll string
}

var _ workspaces.Store = (*Store)(nil)

// New returns a Store. The tables must exist: see tenantcontent.Migrate.
func New(db *bun.DB) *Store {
	return &Store{
		db:        db,
		removeAll: `DELETE FROM tc_workspaces WHERE tenant_id = $1 AND app_id ` + bunx.Conn{DB: db}.OneOf(2),
	}
}

// row is a row of tc_workspaces.
type row struct {
	tenant string
	workspaces.Record
}

var table = bunx.NewTable("tc_workspaces", "w", []bunx.Column[row]{
	{Name: "tenant_id", Key: true, Value: func(r *row) any { return r.tenant }},
	{Name: "app_id", Key: true, Field: func(r *row) any { return &r.App }},
	{Name: "engine", Field: func(r *row) any { return &r.Engine }},
	{Name: "password", Field: func(r *row) any { return &r.Sealed }},
	{Name: "created_at", Once: true, Field: func(r *row) any { return bunx.TimeOf(&r.CreatedAt) }},
})

var (
	selectOne = table.Select(`WHERE tenant_id = $1 AND app_id = $2`)
	insert    = table.InsertOne(`ON CONFLICT DO NOTHING`)
)

const selectLoose = `SELECT app_id FROM tc_workspaces WHERE tenant_id = $1 AND loose ORDER BY app_id LIMIT 1000`

// Get implements workspaces.Store.
func (s *Store) Get(ctx context.Context, tenant, app string) (workspaces.Record, bool, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	r, err := table.Scan(c.Row(ctx, selectOne, tenant, app))
	return r.Record, !c.InTx(), bunx.Err(err, "Workspace")
}

// Add implements workspaces.Store.
func (s *Store) Add(ctx context.Context, tenant string, r workspaces.Record) (workspaces.Record, bool, error) {
	err := bunx.WriteOne(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		_, err := c.Exec(ctx, insert, table.Args(&row{tenant, r})...)
		return bunx.Err(err, "Workspace")
	})
	if err != nil {
		return workspaces.Record{}, false, err
	}
	return s.Get(ctx, tenant, r.App)
}

// Engines implements workspaces.Store.
func (s *Store) Engines(ctx context.Context, tenant string) (map[string]int, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows, err := c.Rows(ctx, `SELECT engine, count(*) FROM tc_workspaces WHERE tenant_id = $1 GROUP BY engine`, tenant)
	all := map[string]int{}
	return all, bunx.Err(bunx.ScanMap(rows, err, all), "Workspace")
}

// Loose implements workspaces.Store. The database marks the rows of deleted apps.
func (s *Store) Loose(ctx context.Context, tenant string) ([]string, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows, err := c.Rows(ctx, selectLoose, tenant)
	all, err := bunx.Scan(rows, err, bunx.Text)
	return all, bunx.Err(err, "Workspace")
}

// Keep implements workspaces.Store.
func (s *Store) Keep(ctx context.Context, tenant string, apps []string, before time.Time) error {
	return bunx.WriteOne(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		_, err := c.Exec(
			ctx,
			`UPDATE tc_workspaces SET loose = false WHERE tenant_id = $1 AND created_at < $2 AND app_id `+c.OneOf(3),
			tenant, bunx.At(before), bunx.Keys(apps),
		)
		return bunx.Err(err, "Workspace")
	})
}

// Measured implements workspaces.Store.
func (s *Store) Measured(ctx context.Context, tenant string, sizes map[string]int64) error {
	own, c := bunx.For(ctx, s.db, tenant)
	rows, err := c.Rows(
		own, `SELECT app_id, bytes FROM tc_workspaces WHERE tenant_id = $1 AND app_id `+c.OneOf(2), tenant,
		bunx.Keys(slices.Collect(maps.Keys(sizes))),
	)
	changed, err := bunx.Scan(rows, err, func(rows *sql.Rows) (app string, err error) {
		var was int64
		if err = rows.Scan(&app, &was); err == nil && was == sizes[app] {
			app = ""
		}
		return app, err
	})
	changed = slices.DeleteFunc(changed, func(app string) bool { return app == "" })
	if err != nil || len(changed) == 0 {
		return bunx.Err(err, "Workspace")
	}
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		for _, app := range changed {
			if _, err := c.Exec(
				ctx, `UPDATE tc_workspaces SET bytes = $3 WHERE tenant_id = $1 AND app_id = $2`, tenant, app,
				sizes[app],
			); err != nil {
				return bunx.Err(err, "Workspace")
			}
		}
		return nil
	})
}

// Remove implements workspaces.Store.
func (s *Store) Remove(ctx context.Context, tenant string, apps []string) error {
	return bunx.WriteOne(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		_, err := c.Exec(ctx, s.removeAll, tenant, bunx.Keys(apps))
		return bunx.Err(err, "Workspace")
	})
}

// AfterCommit implements workspaces.Store.
func (s *Store) AfterCommit(ctx context.Context, f func()) { bunx.AfterCommit(ctx, f) }
