package sqlite

import (
	"fmt"
	"slices"
	"strings"

	"modernc.org/sqlite"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/sqltext"
)

// guard decides what the statements of a connection may do.
type guard struct {
	host    bool   // the statement is the host's
	reads   bool   // the statement can only read
	refused string // why something was refused, for people
	wrote   bool   // what was refused is a write of a statement that can only read
}

// recorded is the table of the migrations that have been run.
const recorded = "_migrations"

// pragmas are those that only read, each about a table or index of the schema.
var pragmas = []string{"table_info", "table_xinfo", "index_list", "index_info", "index_xinfo", "foreign_key_list"}

// readable are the tables of SQLite's own that tenants can read.
var readable = []string{"sqlite_schema", "sqlite_master", "sqlite_sequence"}

// builtin are virtual tables that are there without being made, beside those named sqlite_… and
// pragma_….
var builtin = []string{"dbstat", "bytecode", "tables_used", "fts3tokenize", "completion"}

func (g *guard) refuse(format string, args ...any) sqlite.AuthorizerReturnCode {
	g.refused = fmt.Sprintf(format, args...)
	return sqlite.AuthorizerDeny
}

// authorize is the authorizer of a connection. Any other action is refused.
func (g *guard) authorize(action sqlite.AuthorizerActionCode, a, b, database, _ string) sqlite.AuthorizerReturnCode {
	if g.host {
		return sqlite.AuthorizerOK
	}
	switch action {
	case sqlite.AuthSelect, sqlite.AuthRecursive:
		return sqlite.AuthorizerOK
	case sqlite.AuthRead:
		if name := strings.ToLower(a); slices.Contains(builtin, name) ||
			(strings.HasPrefix(name, "sqlite_") || strings.HasPrefix(name, "pragma_")) &&
				!slices.Contains(readable, name) {
			return g.refuse("The table %s cannot be used in a workspace.", a)
		}
		return sqlite.AuthorizerOK
	case sqlite.AuthInsert, sqlite.AuthUpdate, sqlite.AuthDelete:
		return g.write(database, "written", a)
	case sqlite.AuthCreateTable, sqlite.AuthCreateIndex, sqlite.AuthCreateView, sqlite.AuthCreateTrigger,
		sqlite.AuthDropTable, sqlite.AuthDropIndex, sqlite.AuthDropView, sqlite.AuthDropTrigger, sqlite.AuthReindex:
		return g.write(database, "changed", a, b)
	case sqlite.AuthAlterTable: // its arguments are the database and the table
		return g.write(a, "changed", b)
	case sqlite.AuthFunction:
		if why := refusedFunction(b); why != "" {
			return g.refuse("%s", why)
		}
		return sqlite.AuthorizerOK
	case sqlite.AuthPragma:
		if slices.Contains(pragmas, strings.ToLower(a)) && b != "" {
			return sqlite.AuthorizerOK
		}
		return g.refuse(
			"PRAGMA %s is not allowed in a workspace. Allowed are %s, each of a table or index in parentheses.",
			a, strings.Join(pragmas, ", "),
		)
	case sqlite.AuthCreateTempTable, sqlite.AuthCreateTempIndex, sqlite.AuthCreateTempView,
		sqlite.AuthCreateTempTrigger,
		sqlite.AuthDropTempTable, sqlite.AuthDropTempIndex, sqlite.AuthDropTempView, sqlite.AuthDropTempTrigger:
		return g.refuse("Temporary tables, indexes, views and triggers are not allowed in a workspace.")
	case sqlite.AuthCreateVTable, sqlite.AuthDropVTable:
		return g.refuse("Virtual tables are not allowed in a workspace.")
	case sqlite.AuthAttach, sqlite.AuthDetach:
		return g.refuse("A workspace is one database: others cannot be attached.")
	}
	return g.refuse("This statement is not allowed in a workspace.")
}

// write authorizes a statement that writes a database, whose tables have some names among others.
func (g *guard) write(database, written string, names ...string) sqlite.AuthorizerReturnCode {
	if g.reads {
		g.wrote = true
		return sqlite.AuthorizerDeny
	}
	if slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, recorded) }) {
		return g.refuse("The table %s is %s by the server alone.", recorded, written)
	}
	return g.inMain(database)
}

// refusedFunction returns why a function cannot be used, for people, "" for one that can.
func refusedFunction(name string) string {
	switch name = strings.ToLower(name); name {
	case "load_extension", "fts3_tokenizer", "readfile", "writefile", "edit", "sqlite_compileoption_get",
		"sqlite_compileoption_used", "sqlite_log":
		return fmt.Sprintf("The function %s cannot be used in a workspace.", name)
	case "json_patch", "jsonb_patch", "json_pretty", "jsonb_group_array", "jsonb_group_object": // see functions.go
		return fmt.Sprintf("The function %s cannot be used in a workspace: do it in JavaScript.", name)
	}
	if strings.HasPrefix(name, "geopoly_") || strings.HasPrefix(name, "rtree") {
		return fmt.Sprintf("The function %s cannot be used in a workspace.", name)
	}
	return ""
}

// callsRefused returns errs.Invalid if a statement calls a function that cannot be used. SQLite
// does not call the authorizer for the expression of a generated column that ALTER TABLE adds.
func callsRefused(s sqltext.Statement) error {
	for i, t := range s.Tokens {
		if name, ok := identifier(t); ok && i+1 < len(s.Tokens) && s.Tokens[i+1].Sign("(") {
			if why := refusedFunction(name); why != "" {
				return errs.New(errs.Invalid, "%s", why)
			}
		}
	}
	return nil
}

func (g *guard) inMain(database string) sqlite.AuthorizerReturnCode {
	if database != "main" {
		return g.refuse("The database %s cannot be written in a workspace.", database)
	}
	return sqlite.AuthorizerOK
}
