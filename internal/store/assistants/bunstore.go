// Package bunstore stores assistants in PostgreSQL or SQLite. The root imports it.
package bunstore

import (
	"context"
	"database/sql"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/assistants"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/store/draftstore"
)

// rows are the assistants with their drafts and shares.
type rows = draftstore.Store[assistants.Assistant]

// Store implements assistants.Store.
type Store struct {
	*rows
	db *bun.DB
}

// New returns a Store. The tables must exist: see tenantcontent.Migrate.
func New(db *bun.DB) *Store {
	return &Store{draftstore.New(db, draftstore.Noun[assistants.Assistant]{
		Kind: assistants.Kind, Name: noun, Article: "An assistant",
		Table: "tc_assistants", Shares: "tc_assistant_shares", Sealed: "secrets_sealed",
		Fields: assistants.Fields, Columns: columns, Long: []string{"instructions", "skills", "data"},
		Size: func(a assistants.Assistant) int { return len(a.Instructions) + len(a.Data) + len(a.Sealed) },
	}), db}
}

const noun = "Assistant"

// columns are those that only assistants have.
var columns = []bunx.Column[assistants.Assistant]{
	{Name: "instructions", Field: func(a *assistants.Assistant) any { return &a.Instructions }},
	{Name: "welcome", Field: func(a *assistants.Assistant) any { return &a.Welcome }},
	{Name: "dispatcher", Field: func(a *assistants.Assistant) any { return &a.Dispatcher }},
	{Name: "suggestions", Field: func(a *assistants.Assistant) any { return bunx.JSONArray(&a.Suggestions) }},
	{Name: "model_id", Field: func(a *assistants.Assistant) any { return &a.ModelID }},
	{Name: "embedded", Field: func(a *assistants.Assistant) any { return &a.Embedded }},
	{Name: "data", Field: func(a *assistants.Assistant) any { return bunx.JSON(&a.Data) }},
	{Name: "skills", Field: func(a *assistants.Assistant) any { return bunx.JSONArray(&a.Skills) }},
	{Name: "datasets", Field: func(a *assistants.Assistant) any { return bunx.JSONArray(&a.Datasets) }},
	{Name: "refs", Field: func(a *assistants.Assistant) any { return bunx.JSONArray(&a.References) }},
	{Name: "secrets_at", Field: func(a *assistants.Assistant) any { return bunx.TimeOrNull(&a.SecretsAt) }},
}

// Using implements assistants.Store. The knowledge of assistants is seldom deleted, so it reads all
// assistants that have any.
func (s *Store) Using(ctx context.Context, tenant string, some []entity.Key) ([]string, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows, err := c.Rows(
		ctx,
		`SELECT id, datasets, refs FROM tc_assistants WHERE tenant_id = $1 AND (datasets <> '[]' OR refs <> '[]') `+
			`ORDER BY id`,
		tenant,
	)
	all, err := bunx.Scan(rows, err, func(rows *sql.Rows) (a assistants.Assistant, err error) {
		return a, rows.Scan(&a.ID, bunx.JSONArray(&a.Datasets), bunx.JSONArray(&a.References))
	})
	var ids []string
	for _, a := range all {
		if a.Uses(some) {
			ids = append(ids, a.ID)
		}
	}
	return ids, bunx.Err(err, noun)
}
