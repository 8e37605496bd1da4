package sqlitesafe

import (
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"
)

// TestShrink checks that the pages of deleted rows are removed from the file beside writers, and
// that some stay for new rows.
func TestShrink(t *testing.T) {
	is, path := is.New(t), file(t)
	db, err := openPool(path, limits{
		every: 10 * time.Millisecond,
		most:  16 << 20,
		free:  100,
		wait:  usual.wait,
	}, Options{})
	is.NoErr(err)
	defer func() { _ = db.Close() }()
	insert := func(rows int) {
		is.NoErr(inTx(t.Context(), db, func(tx *sql.Tx) error {
			for range rows {
				if _, err := tx.Exec("INSERT INTO t (who) VALUES ($1)", strings.Repeat("x", 5000)); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	insert(5000)
	full := count(t, db, "SELECT page_count FROM pragma_page_count")
	is.True(full > 5000)
	run(t, db, "DELETE FROM t WHERE id > 500")
	free := func() int { return count(t, db, "SELECT freelist_count FROM pragma_freelist_count") }
	for end := time.Now().Add(time.Minute); free() > max(
		100, count(t, db, "SELECT page_count / 10 FROM pragma_page_count"),
	); insert(1) {
		if time.Now().After(end) {
			t.Fatalf("%d pages are free", free())
		}
	}
	is.True(count(t, db, "SELECT page_count FROM pragma_page_count") < full/4)
	is.True(free() > 0) // some pages stay free
	is.NoErr(db.Close())
	is.True(sizeOf(path) < int64(full)*4096/4)

	db = reopen(t, path)
	var ok string
	is.NoErr(db.QueryRow("PRAGMA integrity_check").Scan(&ok))
	is.Equal(ok, "ok")
}

// TestShrinkLeavesOlderFiles: a database that was created without auto_vacuum is not changed.
func TestShrinkLeavesOlderFiles(t *testing.T) {
	is, path := is.New(t), file(t)
	db := reopen(t, path)
	run(t, db, "PRAGMA auto_vacuum = 0")
	run(t, db, "VACUUM")
	is.NoErr(db.Close())
	db, err := openPool(path, limits{
		every: 10 * time.Millisecond,
		most:  16 << 20,
		free:  1,
		wait:  usual.wait,
	}, Options{})
	is.NoErr(err)
	defer func() { _ = db.Close() }()
	is.Equal(count(t, db, "SELECT auto_vacuum FROM pragma_auto_vacuum"), 0)
	run(t, db, "INSERT INTO t (who) VALUES ('"+strings.Repeat("x", 100_000)+"')")
	run(t, db, "DELETE FROM t")
	pages := count(t, db, "SELECT page_count FROM pragma_page_count")
	time.Sleep(100 * time.Millisecond)
	is.Equal(count(t, db, "SELECT page_count FROM pragma_page_count"), pages)
}
