package indexer_test

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/matryer/is"
	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/internal/jobs/indexer"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/store/engines"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// The environment variables of a process that indexes until it is killed: its database, and the
// minutes by which its clock is ahead. With these it can claim the lists of a killed process.
const (
	killedDatabase = "INDEXER_TEST_DATABASE"
	killedMinutes  = "INDEXER_TEST_MINUTES"
)

// ahead returns a clock that is ahead by some minutes.
func ahead(minutes int) func() time.Time {
	return func() time.Time { return time.Now().Add(time.Duration(minutes) * time.Minute) }
}

// TestKilledWhileIndexing: processes are killed while they build an index and add to it. After each
// kill a search finds what a LIKE finds, and the next process removes what is incomplete.
func TestKilledWhileIndexing(t *testing.T) {
	if url := os.Getenv(killedDatabase); url != "" {
		db, err := engines.Open(url)
		is.New(t).NoErr(err)
		minutes, err := strconv.Atoi(os.Getenv(killedMinutes))
		is.New(t).NoErr(err)
		for {
			_ = indexer.New(db, ahead(minutes)).Run(t.Context())
			time.Sleep(time.Millisecond)
		}
	}
	const kills, step = 6, 3 // minutes: longer than a claim
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, db := is.New(t), open(t)
		check := func() {
			t.Helper()
			for _, q := range []string{"row-001", "00123", "more3-00", "row-00012x"} {
				find(t, db, "acme", q)
			}
		}
		put(t, db, "acme", numbered("row", 3000)...)
		_, err := bunx.FoldTotals(t.Context(), db)
		is.NoErr(err)
		half := 0
		for i := range kills {
			other := exec.Command(os.Args[0], "-test.run=^TestKilledWhileIndexing$")
			other.Env = append(os.Environ(), killedDatabase+"="+address(t, db), killedMinutes+"="+strconv.Itoa(step*i))
			is.NoErr(other.Start())
			for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
				working := count(
					t, db, "acme",
					`SELECT count(*) FROM tc_search_lists WHERE tenant_id = $1 AND claim_ends_at > $2`, "acme",
					bunx.At(ahead(step*i)()),
				)
				if working > 0 {
					break
				}
				if time.Now().After(end) {
					t.Error("the other process does not begin")
					break
				}
			}
			time.Sleep(time.Duration(rand.IntN(30)) * time.Millisecond)
			is.NoErr(other.Process.Kill())
			_ = other.Wait()
			half += count(
				t, db, "acme",
				`SELECT count(*) FROM tc_search_lists WHERE tenant_id = $1 AND claim_ends_at IS NOT NULL`,
				"acme",
			)
			check()
			put(t, db, "acme", numbered(fmt.Sprint("more", i), 600)...)
			check()
		}
		t.Logf("%d of %d were killed while they worked on the list", half, kills)
		for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
			is.NoErr(indexer.New(db, ahead(step*kills)).Run(t.Context()))
			if count(
				t, db, "acme",
				`SELECT count(*) FROM tc_search_lists WHERE tenant_id = $1 AND usable AND reached IS NULL`,
				"acme",
			) == 1 {
				break
			}
			is.True(time.Now().Before(end))
		}
		check()
		is.Equal(count(t, db, "*", `SELECT count(*) FROM tc_search_segments WHERE state <> 'live'`), 0)
		is.Equal(count(t, db, "acme", `SELECT count(*) FROM tc_search_noted WHERE tenant_id = $1`, "acme"), 0)
		for _, table := range []string{"docs", "grams"} { // no rows remain of removed segments
			is.Equal(count(t, db, "acme", `SELECT count(*) FROM tc_search_`+table+` x WHERE tenant_id = $1
				AND NOT EXISTS (SELECT 1 FROM tc_search_segments s WHERE s.tenant_id = x.tenant_id AND s.list = x.list AND s.part = x.part AND s.segment = x.segment)`,
				"acme"),
				0)
		}
	})
}

// address returns the URL of a database of a test.
func address(t *testing.T, db *bun.DB) string {
	t.Helper()
	is, query := is.New(t), `SELECT file FROM pragma_database_list WHERE name = 'main'`
	postgres := db.Dialect().Name().String() == "pg"
	if postgres {
		query = `SELECT current_database()`
	}
	var name string
	is.NoErr(db.QueryRowContext(t.Context(), query).Scan(&name))
	if !postgres {
		return "sqlite:" + name
	}
	u, err := url.Parse(dbtest.Server(t).URL)
	is.NoErr(err)
	u.User, u.Path = url.User("tester"), "/"+name
	u.RawQuery += "&row_level_security=on"
	return u.String()
}
