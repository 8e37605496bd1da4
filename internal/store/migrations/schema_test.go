package migrations_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/matryer/is"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"

	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// table is what must be equal on both engines. Lists of columns are joined with commas.
type table struct {
	columns  []string // in order, with NOT NULL
	primary  string
	indexes  []string // sorted: name, (columns), UNIQUE; without those of primary keys
	foreigns []string // sorted: (columns) -> table (columns) on delete, on update
}

func schemaOf(t *testing.T, db *bun.DB) map[string]table {
	t.Helper()
	q := sqliteSchema
	if db.Dialect().Name() == dialect.PG {
		q = postgresSchema
	}
	all := map[string]table{}
	for _, name := range list(t, db, q.tables) {
		all[name] = table{
			columns: list(t, db, q.columns, name), primary: strings.Join(list(t, db, q.primary, name), ""),
			indexes: sorted(list(t, db, q.indexes, name)), foreigns: sorted(list(t, db, q.foreigns, name)),
		}
	}
	return all
}

// sorted sorts by bytes, which some servers do not.
func sorted(s []string) []string {
	slices.Sort(s)
	return s
}

type queries struct{ tables, columns, primary, indexes, foreigns string }

var sqliteSchema = queries{
	tables: `SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'tc\_%' ESCAPE '\'`,
	columns: `SELECT name || CASE WHEN "notnull" OR pk THEN ' NOT NULL' ELSE '' END FROM pragma_table_info($1) ` +
		`ORDER BY cid`,
	primary: `SELECT coalesce(group_concat(name, ',' ORDER BY pk), '') FROM pragma_table_info($1) WHERE pk`,
	indexes: `SELECT l.name || ' (' || (SELECT group_concat(name, ',' ORDER BY seqno) FROM pragma_index_info(l.name)) || ')' ||
		CASE WHEN l."unique" THEN ' UNIQUE' ELSE '' END || CASE WHEN l.partial THEN ' WHERE' ELSE '' END
		FROM pragma_index_list($1) l WHERE l.origin <> 'pk'`,
	foreigns: `SELECT '(' || group_concat("from", ',' ORDER BY seq) || ') -> ' || "table" || ' ' || on_delete || ', ' || on_update
		FROM pragma_foreign_key_list($1) GROUP BY id`,
}

var postgresSchema = queries{
	tables: `SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace ` +
		`AND relkind IN ('r', 'p') AND NOT relispartition ORDER BY relname COLLATE "C"`,
	columns: `SELECT attname || CASE WHEN attnotnull THEN ' NOT NULL' ELSE '' END FROM pg_attribute
		WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum`,
	primary: `SELECT coalesce(string_agg(a.attname, ',' ORDER BY k.n), '') FROM pg_index i, unnest(i.indkey) WITH ORDINALITY k (attnum, n), pg_attribute a
		WHERE i.indrelid = $1::regclass AND i.indisprimary AND a.attrelid = i.indrelid AND a.attnum = k.attnum`,
	indexes: `SELECT c.relname || ' (' || string_agg(a.attname, ',' ORDER BY k.n) || ')' || CASE WHEN i.indisunique THEN ' UNIQUE' ELSE '' END ||
		CASE WHEN i.indpred IS NOT NULL THEN ' WHERE' ELSE '' END
		FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid, unnest(i.indkey) WITH ORDINALITY k (attnum, n), pg_attribute a
		WHERE i.indrelid = $1::regclass AND NOT i.indisprimary AND a.attrelid = i.indrelid AND a.attnum = k.attnum
		GROUP BY c.relname, i.indisunique, i.indpred`,
	foreigns: `SELECT '(' || string_agg(a.attname, ',' ORDER BY k.n) || ') -> ' || f.confrelid::regclass || ' ' ||
		CASE f.confdeltype WHEN 'c' THEN 'CASCADE' WHEN 'a' THEN 'NO ACTION' ELSE f.confdeltype::text END || ', ' ||
		CASE f.confupdtype WHEN 'c' THEN 'CASCADE' WHEN 'a' THEN 'NO ACTION' ELSE f.confupdtype::text END
		FROM pg_constraint f, unnest(f.conkey) WITH ORDINALITY k (attnum, n), pg_attribute a
		WHERE f.conrelid = $1::regclass AND f.contype = 'f' AND a.attrelid = f.conrelid AND a.attnum = k.attnum
		GROUP BY f.oid, f.confrelid, f.confdeltype, f.confupdtype`,
}

// filler returns a value that fits a column.
func filler(t *testing.T, db *bun.DB, table, column string) string {
	t.Helper()
	if db.Dialect().Name() != dialect.PG {
		kind := list(t, db, "SELECT type FROM pragma_table_info($1) WHERE name = $2", table, column)
		return map[string]string{"TEXT": "''", "INTEGER": "0"}[strings.ToUpper(kind[0])]
	}
	kind := list(
		t, db,
		"SELECT data_type FROM information_schema.columns WHERE table_schema = current_schema() "+
			"AND table_name = $1 AND column_name = $2",
		table, column,
	)
	switch kind[0] {
	case "text":
		return "''"
	case "boolean":
		return "false"
	case "timestamp with time zone":
		return "'2026-11-20T20:31:00Z'"
	}
	return "0"
}

func TestBothEnginesHaveTheSameSchema(t *testing.T) {
	dbtest.Server(t)
	is := is.New(t)
	lite, pg := schemaOf(t, dbtest.SQLite(t)), schemaOf(t, dbtest.Postgres(t))
	is.True(len(lite) > 5)
	for name := range lite {
		is.Equal(lite[name].columns, pg[name].columns)
		is.Equal(lite[name].primary, pg[name].primary)
		is.Equal(lite[name].indexes, pg[name].indexes)
		is.Equal(lite[name].foreigns, pg[name].foreigns)
	}
	is.Equal(len(pg), len(lite))
}

// TestTenantIsFirst: the tenant is the first column of every key, index and foreign key. So the
// database can be distributed by tenant, and a row cannot refer to a row of another tenant.
func TestTenantIsFirst(t *testing.T) {
	dbtest.Server(t)
	is := is.New(t)
	for name, table := range schemaOf(t, dbtest.Postgres(t)) {
		if name == "tc_migrations" || name == "tc_leases" {
			continue
		}
		is.Equal(table.columns[0], "tenant_id NOT NULL")
		is.Equal(strings.Split(table.primary, ",")[0], "tenant_id")
		for _, s := range slices.Concat(table.indexes, table.foreigns) {
			_, list, _ := strings.Cut(s, "(")
			first, _, _ := strings.Cut(list, ")")
			columns := strings.Split(first, ",")
			due := !strings.Contains(s, "UNIQUE") && (len(columns) == 2 && columns[1] == "tenant_id" ||
				strings.HasPrefix(s, "tc_jobs_wake (") || strings.HasPrefix(s, "tc_job_schedules_next ("))
			if columns[0] != "tenant_id" && !due { // due rows are found over all tenants
				t.Errorf("%s: %s does not start with the tenant", name, s)
			}
		}
		if name != "tc_tenants" {
			is.True(len(table.foreigns) > 0) // deleted with its tenant
		}
	}
}

// TestForeignKeysPairTheTenant: the first column of a foreign key refers to the other table's
// tenant.
func TestForeignKeysPairTheTenant(t *testing.T) {
	dbtest.Server(t)
	bad := list(t, dbtest.Postgres(t), `SELECT f.conrelid::regclass || ' ' || f.conname FROM pg_constraint f
		JOIN pg_attribute a ON a.attrelid = f.conrelid AND a.attnum = f.conkey[1] JOIN pg_attribute b ON b.attrelid = f.confrelid AND b.attnum = f.confkey[1]
		WHERE f.contype = 'f' AND f.connamespace = current_schema()::regnamespace AND (a.attname <> 'tenant_id' OR b.attname <> 'tenant_id')`)
	is.New(t).Equal(len(bad), 0)
}

// TestForeignKeysHaveIndexes: every foreign key has an index that begins with its columns, so that
// a delete reads no more rows in a larger table. A partial index does not count, because it is not
// used for that.
func TestForeignKeysHaveIndexes(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		for name, table := range schemaOf(t, open(t)) {
			for _, foreign := range table.foreigns {
				columns, _, _ := strings.Cut(strings.TrimPrefix(foreign, "("), ")")
				begins := func(index string) bool { return strings.HasPrefix(index+",", columns+",") }
				if !begins(table.primary) && !slices.ContainsFunc(table.indexes, func(index string) bool {
					_, index, _ = strings.Cut(index, " (")
					index, rest, _ := strings.Cut(index, ")")
					return begins(index) && !strings.HasSuffix(rest, " WHERE")
				}) {
					t.Errorf("%s has no index for %s", name, foreign)
				}
			}
		}
	})
}

// TestTextSortsByBytes: in every column of an index, text sorts by bytes on PostgreSQL, as it does
// on SQLite.
func TestTextSortsByBytes(t *testing.T) {
	dbtest.Server(t)
	bad := list(t, dbtest.Postgres(t), `SELECT DISTINCT a.attrelid::regclass || '.' || a.attname
		FROM pg_index i, unnest(i.indkey) k, pg_attribute a, pg_collation c
		WHERE i.indrelid IN (SELECT oid FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relname <> 'tc_migrations')
		AND a.attrelid = i.indrelid AND a.attnum = k AND c.oid = a.attcollation AND c.collname <> 'C'`)
	is.New(t).Equal(bad, nil)
}
