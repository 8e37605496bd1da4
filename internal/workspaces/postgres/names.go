package postgres

import (
	"slices"
	"strings"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/sqltext"
)

// own are the names of PostgreSQL that begin with pg_ and that tenants can use.
var own = []string{"pg_typeof", "pg_sleep", "pg_size_pretty", "pg_column_size"}

// internal are the names that tenants cannot use, beside those that begin with pg_: what Lockdown
// takes away, and what shows the names that belong to an id of another role's object.
var internal = []string{
	"set_config", "current_setting", "regclass", "regnamespace", "regrole", "regproc",
	"regprocedure", "regtype", "regoper", "regoperator", "regconfig", "regdictionary", "regcollation",
	"to_regclass", "to_regnamespace", "to_regrole", "to_regproc", "to_regprocedure", "to_regtype",
	"to_regoper", "to_regoperator", "to_regcollation", "format_type", "obj_description", "col_description",
	"shobj_description", "ts_stat", "ts_rewrite", "loread", "lowrite",
}

// prefixes are how further names begin that tenants cannot use.
var prefixes = []string{
	"lo_", "dblink", "query_to_xml", "table_to_xml", "schema_to_xml", "database_to_xml", "cursor_to_xml",
	"inet_server_", "inet_client_",
}

// names returns errs.Invalid if a statement has a name that tenants cannot use, or writes to the
// table of migrations.
func names(s sqltext.Statement) error {
	read := s.Tokens[0].Is("SELECT") && !s.Has("INTO")
	for _, t := range s.Tokens {
		if t.Kind != sqltext.Word && t.Kind != sqltext.Quoted {
			continue
		}
		if t.Kind == sqltext.Quoted && strings.HasPrefix(strings.ToUpper(s.Text[t.Pos:]), "U&") {
			return errs.New(
				errs.Invalid,
				"Identifiers of the form U&\"…\" cannot be used in a workspace: write the characters themselves.",
			)
		}
		name := strings.ToLower(t.Value)
		if name == recorded && !read {
			return errs.New(errs.Invalid, "The table %s is written by the server alone.", recorded)
		}
		if strings.HasPrefix(name, "pg_") && !slices.Contains(own, name) || slices.Contains(internal, name) ||
			slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) }) {
			return errs.New(errs.Invalid, "The name %s cannot be used in a workspace.", t.Value)
		}
	}
	return nil
}
