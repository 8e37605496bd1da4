package migrations_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/store/migrations"
)

// TestAssistants: existing assistants are moved into a new table, each with at most its newest
// draft, and everyone can still see them, also with row-level security.
func TestAssistants(t *testing.T) {
	each(t, func(t *testing.T, url string) {
		is, db := is.New(t), open(t, url)
		is.NoErr(migrations.RunBefore(t.Context(), db, "0029"))
		if _, c := bunx.For(t.Context(), db, ""); c.Postgres() {
			_, err := migrations.EnableRowLevelSecurity(t.Context(), db)
			is.NoErr(err)
		}
		write(t, db, "acme", `INSERT INTO tc_tenants (tenant_id, name, settings, key_check, created_at, updated_at)
			VALUES ($1, 'x', '{}', 'x', '2026-11-01 00:00:00.000000Z', '2026-11-01 00:00:00.000000Z')`, "acme")
		for _, e := range []struct {
			kind, id  string
			editingID any
			updated   string
		}{
			{"assistant", "one", nil, "01"}, {"report", "one", nil, "03"}, {"assistant", "old", "one", "04"},
			{"assistant", "new", "one", "05"}, {"assistant", "of-none", "none", "07"},
		} {
			write(t, db, "acme",
				`INSERT INTO tc_entities (tenant_id, kind, id, name, label, search, slug, description, owner_id,
					data, editing_id,
				system, source, source_id, created_at, updated_at) VALUES ($1, $2, $3, 'Name', 'name', 'sought',
				$3, 'text', 'jo', '{"a":1}', $4, $5,
				'from', 'there', '2026-11-01T09:00:00.123456Z', $6)`, "acme", e.kind,
				e.id, e.editingID, false, "2026-11-"+e.updated+"T09:00:00.123456Z")
		}
		is.NoErr(migrations.Run(t.Context(), db))
		ctx, c := bunx.For(t.Context(), db, "acme")
		read := func(query string) string {
			rows, err := c.Rows(ctx, query, "acme")
			all, err := bunx.Scan(rows, err, bunx.Text)
			is.NoErr(err)
			slices.Sort(all)
			return strings.Join(all, " ")
		}
		is.Equal(read(`SELECT id FROM tc_assistants WHERE tenant_id = $1 AND slug = id AND library_id = id AND
			name = 'Name' AND label = 'name' AND search = 'sought'
			AND description = 'text' AND owner_id = 'jo' AND data = '{"a":1}' AND instructions = '' AND NOT
			dispatcher AND skills = '[]'`),
			"new one")
		is.Equal(read(`SELECT id FROM tc_assistants WHERE tenant_id = $1 AND shared`), "one")
		is.Equal(
			read(`SELECT entity_id || principal_id FROM tc_assistant_shares WHERE tenant_id = $1 AND access_level = 1`),
			"one*",
		)
		is.Equal(read(`SELECT kind || ' ' || id FROM tc_entities WHERE tenant_id = $1`), "report one")
	})
}
