package pgsafe

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/matryer/is"
)

const countPrepared = "select count(*) from pg_prepared_statements"

func TestStatementsArePreparedOnce(t *testing.T) {
	is, db := is.New(t), openSafe(t, server(t), Config{StatementCache: 3})
	for range 3 {
		is.Equal(one[int](t, db, "select $1::int", 7), 7)
	}
	is.Equal(one[int](t, db, countPrepared), 1)
	name := one[string](t, db, "select name from pg_prepared_statements")
	for i := range 10 {
		is.Equal(one[int](t, db, fmt.Sprintf("select $1::int + %d", i), 7), 7+i)
		is.Equal(one[int](t, db, "select $1::int", 7), 7) // it is used often, so it is kept
	}
	is.Equal(one[int](t, db, countPrepared), 3)
	is.Equal(one[string](t, db, "select name from pg_prepared_statements where statement = 'select $1::int'"), name)
	is.Equal(one[int](t, db, countPrepared+" where statement like '%+ 9'"), 1)
	is.Equal(one[int](t, db, countPrepared+" where statement like '%+ 1'"), 0)

	_, err := db.Exec("select $1::nonsense", 1) // a statement that cannot be prepared is not kept
	is.Equal(Code(err), "42704")
	exec(t, db, "select $1::int, 1", 1)
	is.Equal(one[int](t, db, countPrepared), 3)
}

func TestPreparedStatementAfterDDL(t *testing.T) {
	const read = "select * from t where k = $1"
	url := inSchema(t)
	admin := openSafe(t, url, Config{})
	exec(t, admin, "create table t (k int)")
	exec(t, admin, "insert into t values (1)")
	t.Run("bare", func(t *testing.T) {
		is, db := is.New(t), openBare(t, url)
		s, err := db.Prepare(read)
		is.NoErr(err)
		is.NoErr(s.QueryRow(1).Scan(new(int)))
		exec(t, admin, "alter table t add v text default 'x'")
		is.Equal(Code(s.QueryRow(1).Scan(new(int), new(string))), featureUnsupported) // the defect
	})
	t.Run("safe", func(t *testing.T) {
		is, db := is.New(t), openSafe(t, url, Config{})
		is.Equal(columnsOf(t, db, read, 1), "k v")
		pid := one[int](t, db, "select pg_backend_pid()")
		exec(t, admin, "alter table t add w text default 'y'")
		is.Equal(columnsOf(t, db, read, 1), "k v w")

		exec(t, db, "deallocate all") // 26000
		is.Equal(columnsOf(t, db, read, 1), "k v w")

		exec(t, admin, "alter table t drop w")
		tx, err := db.Begin()
		is.NoErr(err)
		_, err = tx.Query(read, 1) // the transaction has failed: the caller must repeat it
		is.Equal(Code(err), featureUnsupported)
		is.NoErr(tx.Rollback())
		tx, err = db.Begin()
		is.NoErr(err)
		is.Equal(one[string](t, tx, "select v from t where k = $1", 1), "x")
		is.NoErr(tx.Commit())
		is.Equal(columnsOf(t, db, read, 1), "k v")

		conn, err := db.Conn(t.Context()) // a transaction that this package did not begin
		is.NoErr(err)
		run := func(query string, args ...any) error {
			_, err := conn.ExecContext(t.Context(), query, args...)
			return err
		}
		is.NoErr(run("begin"))
		is.NoErr(run("alter table t add u text"))
		is.Equal(Code(run(read, 1)), featureUnsupported)
		is.NoErr(run("rollback"))
		is.NoErr(conn.Close())
		is.Equal(one[int](t, db, "select pg_backend_pid()"), pid)
	})
}

func columnsOf(t *testing.T, db *sql.DB, query string, args ...any) string {
	t.Helper()
	rows, err := db.Query(query, args...)
	is.New(t).NoErr(err)
	defer rows.Close()
	names, err := rows.Columns()
	is.New(t).NoErr(err)
	is.New(t).True(rows.Next())
	return strings.Join(names, " ")
}

func TestKeyword(t *testing.T) {
	is := is.New(t)
	for query, want := range map[string]string{
		"":                            "",
		"COPY(select 1) to stdout":    "copy",
		"\n-- copy\n Select 1":        "select",
		"/* /* copy */ */ ( ; copy t": "copy",
		"/* open":                     "",
		"-- open":                     "",
		"/**/with x as":               "with",
		"/*/ copy */ x":               "x",
	} {
		is.Equal(keyword(query), want)
	}
}
