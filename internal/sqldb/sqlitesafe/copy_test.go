package sqlitesafe

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/matryer/is"
)

// TestCopy: a copy beside writers ends and is a snapshot: it contains all or nothing of each
// transaction.
func TestCopy(t *testing.T) {
	is, path := is.New(t), file(t)
	db, err := openPool(path, limits{every: usual.every, most: 1 << 20, wait: usual.wait}, Options{})
	is.NoErr(err)
	run(t, db, "CREATE TABLE a (n INTEGER, filler TEXT); CREATE TABLE b (n INTEGER, filler TEXT)")
	add := func(n int) {
		if err := inTx(context.Background(), db, func(tx *sql.Tx) error {
			if _, err := tx.Exec("INSERT INTO a VALUES ($1, $2)", n, strings.Repeat("x", 10_000)); err != nil {
				return err
			}
			_, err := tx.Exec("INSERT INTO b VALUES ($1, $2)", n, strings.Repeat("y", 10_000))
			return err
		}); err != nil {
			t.Error(err)
		}
	}
	for n := range 500 { // 10 MB: several steps
		add(n)
	}
	writing, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for n := 500; writing.Err() == nil; n++ {
			add(n)
		}
	})
	to := filepath.Join(t.TempDir(), "copy?%.db")
	steps, last := 0, int64(0)
	err = Copy(t.Context(), path, to, func(done, all int64) {
		steps++
		is.True(done >= last && done <= all)
		last = done
		if done == all {
			is.Equal(all, sizeOf(to))
		}
	})
	stop()
	wg.Wait()
	is.NoErr(err)
	is.True(steps > 1)

	copied := reopen(t, to)
	is.True(count(t, copied, "SELECT count(*) FROM a") >= 500)
	is.Equal(count(t, copied, "SELECT count(*) FROM a"), count(t, copied, "SELECT max(n) + 1 FROM a"))
	is.Equal(count(t, copied, "SELECT count(*) FROM a"), count(t, copied, "SELECT count(*) FROM b"))
	var ok string
	is.NoErr(copied.QueryRow("PRAGMA integrity_check").Scan(&ok))
	is.Equal(ok, "ok")
	is.NoErr(copied.Close())
	is.NoErr(db.Close())

	ctx, cancel := context.WithCancel(t.Context())
	err = Copy(ctx, path, filepath.Join(t.TempDir(), "canceled.db"), func(int64, int64) { cancel() })
	is.True(errors.Is(err, context.Canceled))
	is.True(Copy(t.Context(), filepath.Join(t.TempDir(), "missing.db"), filepath.Join(t.TempDir(), "x.db"), nil) != nil)
}
