package repository_test

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/matryer/is"
)

// tablesOf are the tables of each store, by its folder.
var tablesOf = map[string][]string{
	"internal/store/agents":        {"tc_agent_runs", "tc_agent_steps", "tc_agents"},
	"internal/store/aiinstr":       {"tc_ai_instructions"},
	"internal/store/apps":          {"tc_app_favorites", "tc_app_shares", "tc_app_views", "tc_app_visits", "tc_apps"},
	"internal/store/assistants":    {"tc_assistant_shares", "tc_assistants"},
	"internal/store/confirmations": {"tc_confirmations"},
	"internal/store/blobs":         {"tc_blobs", "tc_blob_chunks"},
	"internal/store/bundles":       {"tc_bundles", "tc_bundle_entries", "tc_deployments"},
	"internal/store/changes":       {"tc_change_feeds", "tc_changes", "tc_new_changes"},
	"internal/store/colors":        {"tc_colors"},
	"internal/store/comments": {
		"tc_activities", "tc_comment_threads", "tc_comments", "tc_feed", "tc_notifications",
	},
	"internal/store/content": {"tc_entities"},
	"internal/store/domains": {"tc_domain_logins", "tc_domain_scans", "tc_domains"},
	"internal/store/files":   {"tc_downloads", "tc_uploads"},
	"internal/sqldb/bunx": {
		"tc_former_users", "tc_search_docs", "tc_search_grams", "tc_search_lists", "tc_search_noted",
		"tc_search_segments", "tc_totals",
	},
	"internal/store/handlers": {
		"tc_handler_calls", "tc_handler_deployments", "tc_handler_programs", "tc_handler_routes",
	},
	"internal/store/libraries": {"tc_library_contents", "tc_library_files", "tc_library_released"},
	"internal/store/messages":  {"tc_events", "tc_messages"},
	"internal/store/principals": {
		"tc_login_networks", "tc_memberships", "tc_principals", "tc_scim_users", "tc_teams", "tc_users",
	},
	"internal/store/quotas":     {},
	"internal/store/queue":      {"tc_job_schedules", "tc_jobs"},
	"internal/store/sessions":   {"tc_provider_sessions", "tc_sessions", "tc_tokens"},
	"internal/store/tenants":    {"tc_tenants"},
	"internal/store/webhooks":   {"tc_webhook_days", "tc_webhook_invocations", "tc_webhook_requests"},
	"internal/store/workspaces": {"tc_workspaces"},
}

// readsOf are the tables of other stores that a package may read.
var readsOf = map[string][]string{
	// an authentication, which is one statement in each request
	"internal/store/sessions": {"tc_users", "tc_memberships", "tc_teams", "tc_tenants"},
	// LockTenant, HoldPrincipal and HoldUsers
	"internal/sqldb/bunx":   {"tc_tenants", "tc_principals", "tc_users"},
	"internal/store/quotas": {"tc_tenants", "tc_workspaces"},
	"internal/store/queue":  {"tc_tenants"}, // the jobs of a hidden tenant wait
}

// internal are the tables of internal/jobs/removal and internal/jobs/sweep, and one that existed
// before tc_former_users.
var internal = []string{"tc_removals", "tc_leases", "tc_comment_authors"}

var tableName = regexp.MustCompile(`\btc_[a-z_]*[a-z]`)

// TestStoresReadTheirTables: the sources of a store contain only the names of its own tables, and
// each table belongs to one store. It has found the store of tenants, which read the tables of nine
// nouns to count them.
func TestStoresReadTheirTables(t *testing.T) {
	is := is.New(t)
	owner := map[string]string{}
	for dir, tables := range tablesOf {
		for _, table := range tables {
			is.Equal(owner[table], "") // one store
			owner[table] = dir
		}
	}
	named := map[string]map[string]bool{} // by folder
	is.NoErr(fs.WalkDir(os.DirFS("."), ".", func(file string, _ fs.DirEntry, err error) error {
		dir := path.Dir(file)
		if err != nil || tablesOf[dir] == nil || path.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go") {
			return err
		}
		source, err := os.ReadFile(file)
		if named[dir] == nil {
			named[dir] = map[string]bool{}
		}
		for _, table := range tableName.FindAllString(string(source), -1) {
			named[dir][table] = true
			if owner[table] != dir && !slices.Contains(readsOf[dir], table) {
				t.Errorf(
					"%s names %s, which is not among the store's tables: call the package that has it, or declare "+
						"an entity.Hooks",
					file, table,
				)
			}
		}
		return err
	}))
	for _, list := range []map[string][]string{tablesOf, readsOf} {
		for dir, tables := range list {
			for _, table := range tables {
				if !named[dir][table] {
					t.Errorf("%s does not name %s: take it out of the list", dir, table)
				}
			}
		}
	}
	sources, err := fs.Glob(os.DirFS("."), "internal/store/migrations/sqlite/*.sql")
	is.NoErr(err)
	is.True(len(sources) > 0)
	created := regexp.MustCompile(`CREATE TABLE (tc_[a-z_]+)`)
	for _, file := range sources {
		source, err := os.ReadFile(file)
		is.NoErr(err)
		for _, table := range created.FindAllStringSubmatch(string(source), -1) {
			if owner[strings.TrimSuffix(table[1], "_new")] == "" && !slices.Contains(internal, table[1]) {
				t.Errorf("no store has the table %s", table[1])
			}
		}
	}
}
