// Package bunstore stores apps in PostgreSQL or SQLite. The root imports it.
package bunstore

import (
	"context"
	"database/sql"
	"slices"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/apps"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/store/draftstore"
)

// rows are the apps with their drafts and shares.
type rows = draftstore.Store[apps.App]

// Store implements apps.Store.
type Store struct {
	*rows
	db *bun.DB
}

// New returns a Store. The tables must exist: see tenantcontent.Migrate.
func New(db *bun.DB) *Store {
	return &Store{draftstore.New(db, draftstore.Noun[apps.App]{
		Kind: apps.Kind, Name: noun, Article: "An app",
		Table: "tc_apps", Shares: "tc_app_shares", Sealed: "env_sealed", Fields: apps.Fields,
		Columns: columns, Long: []string{"defn"}, Restorable: true,
		Size: func(a apps.App) int { return len(a.Defn) + len(a.Settings) + len(a.Sealed) },
	}), db}
}

// Notify makes the store call changed after each commit that changes rows of apps or shares, but
// not after changes of views and favorites.
func (s *Store) Notify(changed func(tenant string)) *Store {
	s.rows.Notify(changed)
	return s
}

const noun = "App"

// columns are those that only apps have. An import does not overwrite columns with Keep.
var columns = []bunx.Column[apps.App]{
	{Name: "type", Field: func(a *apps.App) any { return (*string)(&a.Type) }},
	{Name: "defn", Field: func(a *apps.App) any { return bunx.JSON(&a.Defn) }},
	{Name: "webhook_secret", Keep: true, Field: func(a *apps.App) any { return bunx.TextOrNull(&a.WebhookSecret) }},
	{Name: "settings", Field: func(a *apps.App) any { return bunx.JSON(&a.Settings) }},
	{Name: "origin", Field: func(a *apps.App) any { return &a.Origin }},
	{Name: "is_managed", Field: func(a *apps.App) any { return &a.IsManaged }},
	{Name: "datasets", Field: func(a *apps.App) any { return bunx.JSONArray(&a.Datasets) }},
	{Name: "tags", Field: func(a *apps.App) any { return bunx.JSONArray(&a.Tags) }},
	{Name: "source", Field: func(a *apps.App) any { return &a.Source }},
	{Name: "source_id", Field: func(a *apps.App) any { return &a.SourceID }},
	{Name: "defn_updated_at", Field: func(a *apps.App) any { return bunx.TimeOrNull(&a.DefnUpdatedAt) }},
	{Name: "deployed_at", Field: func(a *apps.App) any { return bunx.TimeOrNull(&a.DeployedAt) }},
	{Name: "awaits_owner", Field: func(a *apps.App) any { return &a.AwaitsOwner }},
}

// AwaitOwner implements apps.Store.
func (s *Store) AwaitOwner(ctx context.Context, tenant string, ids []string) error {
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		_, err := c.Exec(
			ctx, `UPDATE tc_apps SET awaits_owner = $3 WHERE tenant_id = $1 AND id `+c.OneOf(2), tenant,
			bunx.Keys(ids), true,
		)
		return bunx.Err(err, noun)
	})
}

// Using implements apps.Store. Tags and datasets are seldom deleted, so it reads all apps that have
// any.
func (s *Store) Using(ctx context.Context, tenant string, tags, datasets []string) ([]string, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows, err := c.Rows(
		ctx,
		`SELECT id, tags, datasets FROM tc_apps WHERE tenant_id = $1 AND (tags <> '[]' OR datasets <> '[]') `+
			`ORDER BY id`,
		tenant,
	)
	all, err := bunx.Scan(rows, err, func(rows *sql.Rows) (a apps.App, err error) {
		return a, rows.Scan(&a.ID, bunx.JSONArray(&a.Tags), bunx.JSONArray(&a.Datasets))
	})
	var ids []string
	for _, a := range all {
		if slices.ContainsFunc(a.Tags, func(tag string) bool { return slices.Contains(tags, tag) }) ||
			slices.ContainsFunc(a.Datasets, func(d apps.Dataset) bool {
				return slices.Contains(datasets, d.DatasetID)
			}) {
			ids = append(ids, a.ID)
		}
	}
	return ids, bunx.Err(err, noun)
}
