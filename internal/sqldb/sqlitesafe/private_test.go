package sqlitesafe

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/matryer/is"
	"pgregory.net/rapid"
)

type dryKey struct{}

// dryPool returns a pool whose transactions use private copies if the context is dry.
func dryPool(t testing.TB) *sql.DB {
	t.Helper()
	db, err := Open(file(t), Options{DryRun: func(ctx context.Context) bool { return ctx.Value(dryKey{}) != nil }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func dry(t testing.TB) context.Context { return context.WithValue(t.Context(), dryKey{}, true) }

// TestDryRun: a dry run sees what it writes and what was stored when it began. Others see none of
// its writes, and neither waits for the other.
func TestDryRun(t *testing.T) {
	is, db := is.New(t), dryPool(t)
	run(t, db, "INSERT INTO t (who, n) VALUES ('before', 1)")
	writer := begin(t, db, nil) // the writer is held: the dry run begins nevertheless
	tx, err := db.BeginTx(dry(t), nil)
	is.NoErr(err)
	is.Equal(count(t, tx, all), 1)
	_, err = writer.Exec("INSERT INTO t (who, n) VALUES ('meanwhile', 2)")
	is.NoErr(err)
	_, err = tx.Exec("INSERT INTO t (who, n) VALUES ($1, $2)", "dry", 3)
	is.NoErr(err)
	_, err = tx.Exec("DELETE FROM t WHERE who = 'before'")
	is.NoErr(err)
	is.NoErr(writer.Commit())
	is.Equal(count(t, tx, "SELECT sum(n) FROM t"), 3) // its own
	is.Equal(count(t, db, "SELECT sum(n) FROM t"), 1+2)
	usable(t, db)
	is.NoErr(tx.Rollback())
	is.Equal(count(t, db, "SELECT sum(n) FROM t"), 1+2)
	usable(t, db)
}

// TestDryRunCannotCommit: a commit of a dry run fails and writes nothing.
func TestDryRunCannotCommit(t *testing.T) {
	is, db := is.New(t), dryPool(t)
	tx, err := db.BeginTx(dry(t), nil)
	is.NoErr(err)
	_, err = tx.Exec("INSERT INTO t (who) VALUES ('dry')")
	is.NoErr(err)
	is.True(tx.Commit() != nil)
	is.Equal(count(t, db, all), 0)
	usable(t, db)
}

// TestDryRunEnds: after failed statements and ended contexts, a dry run and the pool are in the
// same state as after a transaction that writes.
func TestDryRunEnds(t *testing.T) {
	is, db := is.New(t), dryPool(t)
	run(t, db, "INSERT INTO t (id) VALUES (1)")
	tx, err := db.BeginTx(dry(t), nil)
	is.NoErr(err)
	_, err = tx.Exec("INSERT INTO t (id) VALUES (3), (2), (1)")
	is.True(err != nil)
	is.Equal(count(t, tx, all), 1) // only the statement is undone
	is.NoErr(tx.Rollback())

	tx, err = db.BeginTx(dry(t), nil)
	is.NoErr(err)
	_, err = tx.ExecContext(soon(t), fills)
	is.True(errors.Is(err, context.DeadlineExceeded))
	_ = tx.Rollback()
	is.Equal(count(t, db, all), 1)
	usable(t, db)
	privates.Range(func(_, _ any) bool { t.Error("a private copy is left"); return false })
	openFiles.Range(func(_, _ any) bool { t.Error("a file of a private copy is left"); return false })
}

// TestDryRunSpills: a dry run that writes more than the cache of a connection holds, in steps of
// which some are undone, reads the same as a transaction.
func TestDryRunSpills(t *testing.T) {
	is, db := is.New(t), dryPool(t)
	text := strings.Repeat("x", 3000)
	fill := func(ctx context.Context) (sum string) {
		tx, err := db.BeginTx(ctx, nil)
		is.NoErr(err)
		defer func() { is.NoErr(tx.Rollback()) }()
		for i := range 20_000 {
			_, err := tx.Exec("INSERT INTO t (who, n) VALUES ($1, $2)", fmt.Sprint(text, i), i)
			is.NoErr(err)
		}
		_, err = tx.Exec("SAVEPOINT s; DELETE FROM t; ROLLBACK TO s; DELETE FROM t " +
			"WHERE n % 3 = 0; UPDATE t SET who = who || n WHERE n % 5 = 0")
		is.NoErr(err)
		is.NoErr(
			tx.QueryRow("SELECT count(*) || '/' || sum(length(who)) || '/' || sum(n) || '/' || (SELECT " +
				"integrity_check FROM pragma_integrity_check) FROM t").Scan(&sum),
		)
		return sum
	}
	got := fill(dry(t))
	is.True(strings.HasSuffix(got, "/ok"))
	is.Equal(got, fill(t.Context()))
	is.Equal(count(t, db, all), 0)
}

// TestDryRunLeavesNoFile: the temporary files of a dry run are removed.
func TestDryRunLeavesNoFile(t *testing.T) {
	is, db, dir := is.New(t), dryPool(t), t.TempDir()
	t.Setenv("TMPDIR", dir)
	t.Setenv("TMP", dir) // for Windows
	tx, err := db.BeginTx(dry(t), nil)
	is.NoErr(err)
	_, err = tx.Exec("INSERT INTO t (who) VALUES ('dry')")
	is.NoErr(err)
	is.NoErr(tx.Rollback())
	left, err := os.ReadDir(dir)
	is.NoErr(err)
	is.Equal(len(left), 0)
}

// TestPrivateCopyRefusesWritesAtItsEnd: a statement that runs after the end of its transaction
// fails.
func TestPrivateCopyRefusesWritesAtItsEnd(t *testing.T) {
	is, db := is.New(t), dryPool(t)
	tx, err := db.BeginTx(dry(t), nil)
	is.NoErr(err)
	privates.Range(func(_, p any) bool { p.(*private).end(); return true })
	_, err = tx.Exec(strings.Replace(fills, "100000000", "1000000", 1))
	is.True(err != nil)
	_ = tx.Rollback()
	usable(t, db)
}

// TestDryRunDoesWhatATransactionDoes compares a dry run with a transaction for random statements.
func TestDryRunDoesWhatATransactionDoes(t *testing.T) {
	db := dryPool(t)
	run(t, db, "CREATE TABLE child (id INTEGER PRIMARY KEY, t integer REFERENCES t (id) ON DELETE CASCADE) STRICT")
	run(t, db, "CREATE UNIQUE INDEX whos ON t (who)")
	rapid.Check(t, func(t *rapid.T) {
		statements := rapid.SliceOfN(rapid.SampledFrom([]string{
			"INSERT INTO t (id, who, n) VALUES (abs($1) % 50, 'w' || $1, $1)",
			"INSERT INTO t (who, n) VALUES (hex(randomblob(2000)), $1)", "DELETE FROM t WHERE id % 7 = abs($1) % 7",
			"UPDATE t SET who = 'w' || $1 WHERE id = 1", "INSERT INTO child (t) VALUES (abs($1) % 50)",
			"DELETE FROM t WHERE id = $1", "UPDATE t SET id = id + 1000 WHERE n = $1",
			"INSERT INTO t (who) VALUES ('w' || $1) ON CONFLICT DO NOTHING",
		}), 1, 40).Draw(t, "statements")
		args := rapid.SliceOfN(rapid.IntRange(-60, 60), len(statements), len(statements)).Draw(t, "args")
		trace := func(ctx context.Context) (lines []string) {
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = tx.Rollback() }()
			for i, s := range statements {
				n := int64(-1)
				res, err := tx.Exec(s, args[i])
				if err == nil {
					n, _ = res.RowsAffected()
				}
				var rows string
				if err := tx.QueryRow("SELECT (SELECT count(*) || '/' || total(id) " +
					"FROM t) || '/' || (SELECT count(*) || '/' || total(t) FROM child)").Scan(&rows); err != nil {
					t.Fatal(err)
				}
				lines = append(lines, fmt.Sprint(s, " ", args[i], ": ", n, " ", err, " ", rows))
			}
			return lines
		}
		if got, want := trace(context.WithValue(
			context.Background(), dryKey{}, true,
		)), trace(context.Background()); strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Fatalf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}
