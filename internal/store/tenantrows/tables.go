// Package tenantrows handles the rows of a tenant in all tables. It reads the tables from the
// database's catalog, and counts, deletes, exports and imports the rows.
//
// internal/store/tenants and the root import it.
package tenantrows

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
)

// Type is the type of a column. Both engines have the same columns, with different types.
type Type string

// The types of columns. SQLite stores times as texts, which are recognized by the names of their
// columns, and booleans as numbers.
const (
	Text    Type = "text"
	Integer Type = "integer"
	Bool    Type = "bool"
	Time    Type = "time"
	Bytes   Type = "bytes"
)

// Column is a column of a table.
type Column struct {
	Name string
	Type Type
}

// Table is a table with rows of tenants. Its first column is tenant_id.
type Table struct {
	Name    string
	Columns []Column // without tenant_id
	Key     []string // the columns of the primary key after tenant_id
	Self    string   // the column that refers to a row of the same table, or ""
	parents []string
}

// derived are tables whose rows the database creates from those of others.
var derived = map[string][]string{
	"tc_principals": {"tc_users", "tc_teams"}, "tc_totals": nil,
	"tc_search_docs": nil, "tc_search_grams": nil,
	"tc_search_lists": nil, "tc_search_noted": nil, "tc_search_segments": nil,
}

// Derived reports whether the database creates the rows of a table from those of others.
func Derived(table string) bool {
	_, made := derived[table]
	return made
}

// behind are tables that must follow others without a foreign key: a schedule that is due creates
// jobs, and imported jobs may have their keys.
var behind = map[string][]string{"tc_job_schedules": {"tc_jobs"}}

// catalog has the statements that read the catalog of one engine.
type catalog struct{ columns, parents string }

var onSQLite = catalog{
	columns: `SELECT m.name, c.name, lower(c.type), c.pk FROM sqlite_master m, pragma_table_info(m.name) c
		WHERE m.type = 'table' AND m.name LIKE 'tc\_%' ESCAPE '\' AND m.sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY m.name, c.cid`,
	parents: `SELECT m.name, f."table", f."from" FROM sqlite_master m, pragma_foreign_key_list(m.name) f
		WHERE m.type = 'table' AND m.name LIKE 'tc\_%' ESCAPE '\' AND f."from" <> 'tenant_id' ORDER BY 1, 2, 3`,
}

var onPostgres = catalog{
	columns: `SELECT r.relname, a.attname, t.typname, coalesce(array_position(i.indkey::int2[], a.attnum), -1) + 1
		FROM pg_class r JOIN pg_attribute a ON a.attrelid = r.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
		JOIN pg_type t ON t.oid = a.atttypid LEFT JOIN pg_index i ON i.indrelid = r.oid AND i.indisprimary
		WHERE r.relnamespace = current_schema()::regnamespace AND r.relkind IN ('r', 'p') AND NOT r.relispartition AND r.relname LIKE 'tc\_%'
		ORDER BY r.relname COLLATE "C", a.attnum`,
	parents: `SELECT r.relname, p.relname, a.attname FROM pg_constraint f JOIN pg_class r ON r.oid = f.conrelid AND NOT r.relispartition
		JOIN pg_class p ON p.oid = f.confrelid AND NOT p.relispartition JOIN pg_attribute a ON a.attrelid = r.oid AND a.attnum = ANY (f.conkey)
		WHERE f.contype = 'f' AND f.connamespace = current_schema()::regnamespace AND r.relname LIKE 'tc\_%' AND a.attname <> 'tenant_id' ORDER BY 1, 2, 3`,
}

// types are the types of columns by their names in the catalogs.
var types = map[string]Type{
	"text": Text, "integer": Integer, "blob": Bytes,
	"int2": Integer, "int4": Integer, "int8": Integer, "bool": Bool,
	"timestamptz": Time, "bytea": Bytes, "json": Text, "jsonb": Text,
}

// Tables returns the tables with rows of tenants, except that of the tenants. Each follows those to
// which its foreign keys refer.
func Tables(ctx context.Context, db *bun.DB) ([]Table, error) {
	ctx, c := bunx.For(ctx, db, "")
	from := onSQLite
	if c.Postgres() {
		from = onPostgres
	}
	rows, err := c.Rows(ctx, from.columns)
	columns, err := bunx.Scan(rows, err, func(rows *sql.Rows) (col catalogColumn, err error) {
		err = rows.Scan(&col.table, &col.name, &col.kind, &col.key)
		return col, err
	})
	if err != nil {
		return nil, bunx.Err(err, "Table")
	}
	all, err := tables(columns)
	if err != nil {
		return nil, err
	}
	rows, err = c.Rows(ctx, from.parents)
	foreign, err := bunx.Scan(rows, err, func(rows *sql.Rows) (f [3]string, err error) {
		return f, rows.Scan(&f[0], &f[1], &f[2])
	})
	if err != nil {
		return nil, bunx.Err(err, "Table")
	}
	for i := range all {
		for _, f := range foreign {
			switch {
			case f[0] != all[i].Name:
			case f[1] == f[0]:
				all[i].Self = f[2]
			default:
				all[i].parents = append(all[i].parents, f[1])
			}
		}
		all[i].parents = append(all[i].parents, derived[all[i].Name]...)
		all[i].parents = append(all[i].parents, behind[all[i].Name]...)
	}
	return ordered(all), nil
}

type catalogColumn struct {
	table, name, kind string
	key               int // position in the primary key, from 1, or 0
}

// tables groups columns by table.
func tables(columns []catalogColumn) (all []Table, err error) {
	keys := map[string]map[int]string{}
	for i, col := range columns {
		if i == 0 || columns[i-1].table != col.table {
			if col.name != "tenant_id" || col.table == "tc_tenants" {
				continue
			}
			all = append(all, Table{Name: col.table})
			keys[col.table] = map[int]string{}
			continue
		}
		if len(all) == 0 || all[len(all)-1].Name != col.table {
			continue
		}
		kind, ok := types[col.kind]
		if !ok {
			return nil, fmt.Errorf(
				"tenantrows: the column %s.%s has the type %s, which has no place here", col.table, col.name,
				col.kind,
			)
		}
		if kind == Text && (strings.HasSuffix(col.name, "_at") || col.name == "last_viewed_feed") {
			kind = Time
		}
		t := &all[len(all)-1]
		t.Columns = append(t.Columns, Column{col.name, kind})
		if col.key > 0 {
			keys[col.table][col.key] = col.name
		}
	}
	for i := range all {
		for n := range len(keys[all[i].Name]) {
			all[i].Key = append(all[i].Key, keys[all[i].Name][n+2]) // after tenant_id
		}
	}
	return all, nil
}

// ordered sorts tables so that each follows its parents.
func ordered(all []Table) (sorted []Table) {
	done := map[string]bool{"tc_tenants": true}
	for len(all) > 0 {
		rest := all[:0:0]
		for _, t := range all {
			if slices.ContainsFunc(t.parents, func(p string) bool { return !done[p] }) {
				rest = append(rest, t)
				continue
			}
			sorted = append(sorted, t)
		}
		for _, t := range sorted {
			done[t.Name] = true
		}
		if len(rest) == len(all) { // tables that refer to each other
			return append(sorted, rest...)
		}
		all = rest
	}
	return sorted
}

// Count returns the number of rows that a tenant has in each of the tables. Tables without rows are
// left out.
func Count(ctx context.Context, db *bun.DB, tenant string, all []Table) (map[string]int, error) {
	counts := map[string]int{}
	for _, t := range all {
		n, err := bunx.Count(ctx, db, tenant, t.Name)
		if err != nil {
			return nil, bunx.Err(err, t.Name)
		}
		if n > 0 {
			counts[t.Name] = n
		}
	}
	return counts, nil
}

// The number of rows that a step deletes. Rows with bytes are large.
const (
	stepRows  = 500
	stepBytes = 16
)

// Delete deletes the rows of a tenant in all tables, in several transactions, those to which others
// refer last. It calls progress with the number of rows of each step. It may be interrupted and
// called again. It ends if the tenant is not hidden for deletion any more: another Delete has then
// completed, and a new tenant may have the id.
func Delete(ctx context.Context, db *bun.DB, tenant string, all []Table, progress func(rows int)) error {
	for deleted := true; deleted; { // triggers and running requests may write deleted rows again
		deleted = false
		for _, t := range slices.Backward(all) {
			n, err := t.delete(ctx, db, tenant, deleting, progress)
			if err != nil {
				return fmt.Errorf("delete the rows of %s: %w", t.Name, err)
			}
			deleted = deleted || n > 0
		}
	}
	return nil
}

// The reasons for which a tenant is hidden: the values of package tenants.
const (
	deleting  = "deleting"
	importing = "importing"
)

// delete deletes the rows of a tenant while it is hidden for a reason.
func (t Table) delete(ctx context.Context, db *bun.DB, tenant, why string, progress func(int)) (n int, err error) {
	step := stepRows
	if slices.ContainsFunc(t.Columns, func(c Column) bool { return c.Type == Bytes }) {
		step = stepBytes
	}
	_, c := bunx.For(ctx, db, tenant)
	some := func(where string) string { // some of the rows
		where += ` AND EXISTS (SELECT 1 FROM tc_tenants WHERE tenant_id = $1 AND hidden = $2)`
		if c.Postgres() {
			return ` WHERE ` + c.Some(t.Name, where, step)
		}
		key := strings.Join(t.Key, ", ") // some tables do not have a rowid
		return fmt.Sprintf(
			` WHERE tenant_id = $1 AND (%s) IN (SELECT %s FROM %s WHERE tenant_id = $1 AND %s LIMIT %d)`, key,
			key, t.Name, where, step,
		)
	}
	statements := []string{`DELETE FROM ` + t.Name + some("true")}
	if t.Self != "" { // a row cannot be deleted before those that refer to it
		statements = []string{
			`UPDATE ` + t.Name + ` SET ` + t.Self + ` = NULL` + some(t.Self+" IS NOT NULL"), statements[0],
		}
	}
	for _, query := range statements {
		for {
			changed := 0
			err := bunx.WriteOne(ctx, db, tenant, func(ctx context.Context, c bunx.Conn) (err error) {
				changed, err = c.Exec(ctx, query, tenant, why)
				return bunx.Err(err, t.Name)
			})
			if err != nil {
				return n, err
			}
			if n += changed; changed > 0 && strings.HasPrefix(query, "DELETE") {
				progress(changed)
			}
			if changed < step {
				break
			}
			if err := entity.Step(ctx); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}
