package dbtest

import (
	"testing"

	"github.com/matryer/is"
	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
)

// stored are the tables whose bytes are counted in the list storage of tc_totals: its part, and an
// expression over a row.
var stored = []struct{ table, part, bytes string }{
	{"tc_blob_chunks", "files", "octet_length(bytes)"},
	{"tc_workspaces", "workspaces", "bytes"},
	{"tc_agent_runs", "records", "256 + size"},
	{"tc_agents", "records", "256 + octet_length(definition) + octet_length(overrides)"},
	{"tc_ai_instructions", "records", "256 + octet_length(content)"},
	{"tc_apps", "records", "512 + octet_length(defn) + octet_length(settings) + coalesce(octet_length(env_sealed), 0)"},
	{"tc_assistants", "records", "512 + octet_length(instructions) + octet_length(data) + octet_length(skills)"},
	{"tc_bundle_entries", "records", "256 + octet_length(data)"},
	{"tc_comments", "records", "256 + octet_length(message)"},
	{"tc_entities", "records", "256 + octet_length(data) + coalesce(octet_length(description), 0)"},
	{"tc_events", "records", "256 + size"},
	{"tc_handler_deployments", "records", "256 + octet_length(sources)"},
	{"tc_handler_programs", "records", "256 + octet_length(code) + octet_length(map)"},
	{"tc_messages", "records", "256 + size"},
	{"tc_webhook_invocations", "records", "256 + octet_length(logs) + coalesce(octet_length(error), 0)"},
	{"tc_webhook_requests", "records", "256 + size"},
}

// StoredTables returns the tables whose bytes are counted.
func StoredTables() (names []string) {
	for _, s := range stored {
		names = append(names, s.table)
	}
	return names
}

// CheckStored fails the test if the counted storage of a tenant differs from that of its rows, and
// returns the bytes of each part. It runs one statement, so it can run while others write.
func CheckStored(t testing.TB, db *bun.DB, tenant string) map[string]int64 {
	t.Helper()
	is := is.New(t)
	is.Helper()
	text := `SELECT part, n AS counted, 0 AS n FROM tc_totals WHERE tenant_id = $1 AND list = 'storage'`
	for _, s := range stored {
		text += ` UNION ALL SELECT '` + s.part + `', 0, ` + s.bytes + ` FROM ` + s.table + ` WHERE tenant_id = $1`
	}
	ctx, c := bunx.For(t.Context(), db, tenant)
	rows, err := c.Rows(
		ctx,
		`SELECT part, CAST(sum(counted) AS bigint), CAST(sum(n) AS bigint) FROM (`+text+`) AS stored GROUP BY part`,
		tenant,
	)
	is.NoErr(err)
	defer func() { _ = rows.Close() }()
	parts := map[string]int64{}
	for rows.Next() {
		var part string
		var counted, n int64
		is.NoErr(rows.Scan(&part, &counted, &n))
		if counted != n {
			t.Errorf("%s of %s: %d bytes, and %d are counted", part, tenant, n, counted)
		}
		parts[part] = n
	}
	is.NoErr(rows.Err())
	return parts
}
