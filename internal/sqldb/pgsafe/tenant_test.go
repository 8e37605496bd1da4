package pgsafe

import (
	"context"
	"database/sql"
	"strings"
	"testing"

	"github.com/matryer/is"
)

type tenantKey struct{}

func forTenant(t *testing.T, name string) context.Context {
	return context.WithValue(t.Context(), tenantKey{}, name)
}

var byContext = Config{Tenant: func(ctx context.Context) string {
	name, _ := ctx.Value(tenantKey{}).(string)
	return name
}}

const showTenant = "select coalesce(current_setting('tenantcontent.tenant', true), 'never set')"

// tenantOf returns the tenant that a statement sees, with and without arguments.
func tenantOf(t *testing.T, q querier, name string) string {
	t.Helper()
	var a, b string
	is.New(t).NoErr(q.QueryRowContext(forTenant(t, name), showTenant).Scan(&a))
	is.New(t).NoErr(q.QueryRowContext(forTenant(t, name), showTenant+" where $1", true).Scan(&b))
	is.New(t).Equal(a, b)
	return a
}

func TestTenantFollowsTheStatement(t *testing.T) {
	is, db := is.New(t), openSafe(t, server(t), byContext)
	for _, name := range []string{"", "acme", "acme", "evil", "", "it's"} {
		is.Equal(tenantOf(t, db, name), name)
		_, err := db.ExecContext(forTenant(t, name), "do $$begin assert current_setting('tenantcontent.tenant') = '"+
			strings.ReplaceAll(name, "'", "''")+"'; end$$")
		is.NoErr(err)
	}
	_, err := db.ExecContext(forTenant(t, "a\x00b"), "select 1")
	is.True(strings.Contains(err.Error(), "UTF-8"))
	is.Equal(tenantOf(t, db, "acme"), "acme")

	off := openSafe(t, server(t), Config{})
	is.Equal(tenantOf(t, off, "acme"), "never set")
}

func TestTenantInTransactions(t *testing.T) {
	is, db := is.New(t), openSafe(t, server(t), byContext)
	is.Equal(tenantOf(t, db, "acme"), "acme")
	begin := func() *sql.Tx {
		tx, err := db.BeginTx(forTenant(t, "evil"), nil)
		is.NoErr(err)
		return tx
	}

	tx := begin()
	is.Equal(tenantOf(t, tx, "evil"), "evil")
	is.Equal(tenantOf(t, tx, "other"), "other")
	is.NoErr(tx.Rollback()) // resets the setting
	is.Equal(tenantOf(t, db, "other"), "other")

	tx = begin()
	is.Equal(tenantOf(t, tx, "acme"), "acme")
	is.NoErr(tx.Commit())
	is.Equal(tenantOf(t, db, "acme"), "acme")
	is.Equal(tenantOf(t, db, "other"), "other")

	for _, back := range []string{"rollback to savepoint s", "select 1; rollback to s"} {
		tx = begin()
		_, err := tx.ExecContext(forTenant(t, "evil"), "savepoint s")
		is.NoErr(err)
		is.Equal(tenantOf(t, tx, "acme"), "acme")
		_, err = tx.ExecContext(forTenant(t, "acme"), back)
		is.NoErr(err)
		is.Equal(tenantOf(t, tx, "acme"), "acme")
		_, err = tx.ExecContext(forTenant(t, "acme"), "nonsense")
		is.Equal(Code(err), "42601")
		_, err = tx.ExecContext(forTenant(t, "other"), "rollback to savepoint s") // works in a failed transaction
		is.NoErr(err)
		is.Equal(tenantOf(t, tx, "other"), "other")
		is.NoErr(tx.Commit())
		is.Equal(tenantOf(t, db, "other"), "other")
	}

	tx = begin()
	is.Equal(tenantOf(t, tx, "acme"), "acme")
	_, err := tx.ExecContext(forTenant(t, "acme"), "nonsense")
	is.Equal(Code(err), "42601")
	is.True(tx.Commit() != nil)
	is.Equal(tenantOf(t, db, "acme"), "acme")
}

func TestTenantAfterAFailedCommit(t *testing.T) {
	is, db := is.New(t), openSafe(t, inSchema(t), byContext)
	exec(t, db, "create table t (k int unique deferrable initially deferred)")
	is.Equal(tenantOf(t, db, "acme"), "acme")
	tx, err := db.BeginTx(forTenant(t, "acme"), nil)
	is.NoErr(err)
	_, err = tx.ExecContext(forTenant(t, "evil"), "insert into t values (1), (1)")
	is.NoErr(err)
	is.Equal(Code(tx.Commit()), "23505") // resets the setting
	is.Equal(tenantOf(t, db, "evil"), "evil")
}

func TestTenantSurvivesWhatStatementsDo(t *testing.T) {
	is, db := is.New(t), openSafe(t, server(t), byContext)
	conn, err := db.Conn(t.Context())
	is.NoErr(err)
	defer conn.Close()
	for _, query := range []string{
		"set tenantcontent.tenant = 'evil'", "reset all", "discard all", "select 1; set tenantcontent.tenant = 'evil'",
		"do $$begin perform set_config('tenantcontent.tenant', 'evil', false); end$$",
		"begin", "rollback", "begin", "commit",
	} {
		is.Equal(tenantOf(t, conn, "acme"), "acme")
		_, err := conn.ExecContext(forTenant(t, "acme"), query)
		is.NoErr(err)
	}
	is.Equal(tenantOf(t, conn, "acme"), "acme")
}

// TestTenantAndRowLevelSecurity uses the setting in policies for row-level security.
func TestTenantAndRowLevelSecurity(t *testing.T) {
	is, db := is.New(t), openSafe(t, inSchema(t), byContext)
	exec(t, db, "create table t (tenant text, v int)")
	exec(t, db, "insert into t values ('acme', 1), ('evil', 2)")
	exec(t, db, "alter table t enable row level security")
	exec(t, db, "create policy p on t using (tenant = current_setting('tenantcontent.tenant', true))")
	exec(t, db, "grant usage on schema "+one[string](t, db, "select current_schema()")+" to pg_monitor")
	exec(t, db, "grant select on t to pg_monitor")
	exec(t, db, "set role pg_monitor")
	defer exec(t, db, "reset role")
	for name, want := range map[string]int{"acme": 1, "evil": 2, "": 0} {
		var got int
		is.NoErr(db.QueryRowContext(forTenant(t, name), "select coalesce(sum(v), 0) from t where $1", true).Scan(&got))
		is.Equal(got, want)
	}
}
