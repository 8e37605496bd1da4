package indexer_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/matryer/is"
	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/colors"
	"github.com/tenantcontent/tenantcontent/content"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/jobs/indexer"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	colorstore "github.com/tenantcontent/tenantcontent/internal/store/colors"
	contentstore "github.com/tenantcontent/tenantcontent/internal/store/content"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/internal/text/fold"
	"github.com/tenantcontent/tenantcontent/paging"
)

var monday = time.Date(2026, 11, 16, 9, 0, 0, 0, time.UTC)

func put(t *testing.T, db *bun.DB, tenant string, keys ...string) {
	t.Helper()
	for some := range slices.Chunk(keys, 500) {
		all := make([]colors.Color, len(some))
		for i, key := range some {
			all[i] = colors.Color{Key: key, Color: "#123456", CreatedAt: monday, UpdatedAt: monday}
		}
		is.New(t).NoErr(colorstore.New(db).PutAll(t.Context(), tenant, all))
	}
}

// numbered returns n keys.
func numbered(prefix string, n int) (keys []string) {
	for i := range n {
		keys = append(keys, fmt.Sprintf("%s-%06d", prefix, i))
	}
	return keys
}

// run adds up the totals, and indexes until no work is due.
func run(t *testing.T, db *bun.DB) {
	t.Helper()
	_, err := bunx.FoldTotals(t.Context(), db)
	is.New(t).NoErr(err)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		is.New(t).NoErr(indexer.New(db, nil).Run(t.Context()))
		if count(t, db, "*", `SELECT count(*) FROM tc_search_lists WHERE reached IS NOT NULL`) == 0 {
			// the index waits for running transactions
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("an index is not built")
		}
	}
}

func count(t *testing.T, db *bun.DB, tenant, query string, args ...any) (n int) {
	t.Helper()
	ctx, c := bunx.For(t.Context(), db, tenant)
	is.New(t).NoErr(c.Row(ctx, query, args...).Scan(&n))
	return n
}

// find returns the keys of the colors that a search finds, and compares them with those that a
// filter of all keys finds.
func find(t *testing.T, db *bun.DB, tenant, q string) (keys []string) {
	t.Helper()
	is := is.New(t)
	page, err := colorstore.New(db).Page(t.Context(), tenant, paging.Query{Q: q, Limit: 1000})
	is.NoErr(err)
	for _, c := range page.Rows {
		keys = append(keys, c.Key)
	}
	var want []string
	for c, err := range colorstore.New(db).All(t.Context(), tenant, "") {
		is.NoErr(err)
		if fits(c.Key, q) {
			want = append(want, c.Key)
		}
	}
	slices.Sort(want)
	if page.Total != len(want) || !slices.Equal(keys, want[:min(len(want), 1000)]) {
		t.Errorf("%q finds %d of %d, not %d", q, len(keys), page.Total, len(want))
	}
	return keys
}

// fits reports whether a search without quotes finds a text.
func fits(text, q string) bool {
	text = fold.Search(text)
	return !slices.ContainsFunc(strings.Fields(fold.Search(q)), func(word string) bool {
		return !strings.Contains(text, word)
	})
}

const segments = `SELECT count(*) FROM tc_search_segments WHERE tenant_id = $1 AND state = 'live'`

// TestSearchesFindWhatAFilterFinds: a search finds the same as a filter of all rows, for words of
// all scripts and symbols. It searches without an index, with an index, with noted rows, after rows
// were removed and renamed, and after the index was rebuilt.
func TestSearchesFindWhatAFilterFinds(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, db := is.New(t), open(t)
		signs := []rune("aAbBßẞſKKÉée\u0301İıΣςσǄﬀøŁ½日本語が\u3099हि한ꮟᏏᏸ%_\\'`|&<> -/\n😀")
		text := func() string {
			r := make([]rune, 1+rand.IntN(9))
			for i := range r {
				r[i] = signs[rand.IntN(len(signs))]
			}
			return string(r)
		}
		var keys []string
		check := func() {
			t.Helper()
			for range 30 {
				find(t, db, "acme", text())
				r := []rune(keys[rand.IntN(len(keys))])
				from := rand.IntN(len(r))
				part := string(r[from : from+1+rand.IntN(len(r)-from)])
				find(t, db, "acme", part)
				find(t, db, "acme", part+" "+string(signs[rand.IntN(len(signs))])+" "+keys[rand.IntN(len(keys))])
			}
			for _, q := range []string{"row-", "row-00012", "%%%", `\\\`, "___", "STRASSE", "00012 ROW", "00 row 012",
				"ro\u0301w-00012", "row-00 zqx", "creme brulee", "BRÛLÉE", strings.Repeat("x", 3900)} {
				find(t, db, "acme", q)
			}
			_, err := colorstore.New(db).Page(t.Context(), "acme", paging.Query{Q: "a\x00bc", Limit: 10})
			is.True(err != nil)
		}
		for range 600 {
			keys = append(keys, text())
		}
		keys = append(numbered("row", 2000), keys...)
		keys = append(keys, "Straße", "100%%%", "a___b", `c:\\\d`, "Brûlée, crème", "cre\u0300me brûlée")
		slices.Sort(keys)
		keys = slices.Compact(keys)
		put(t, db, "acme", keys...)
		check()
		is.Equal(count(t, db, "acme", segments, "acme"), 0)
		run(t, db)
		is.True(count(t, db, "acme", segments, "acme") > 0)
		check()
		put(t, db, "acme", "zqx one", "ZQX two")
		is.Equal(len(find(t, db, "acme", "zQx")), 2) // noted
		is.True(count(t, db, "acme", `SELECT count(*) FROM tc_search_noted WHERE tenant_id = $1`, "acme") >= 2)
		is.NoErr(colorstore.New(db).Delete(t.Context(), "acme", "zqx one"))
		is.Equal(len(find(t, db, "acme", "zqx")), 1)
		for round := range 9 { // merges segments
			put(t, db, "acme", numbered(fmt.Sprint("more", round), 520)...)
			run(t, db)
			find(t, db, "acme", fmt.Sprint("more", round))
		}
		is.Equal(count(t, db, "acme", `SELECT count(*) FROM tc_search_noted WHERE tenant_id = $1`, "acme"), 0)
		is.True(count(t, db, "acme", segments, "acme") < 8)
		is.Equal(count(t, db, "*", `SELECT count(*) FROM tc_search_segments WHERE state <> 'live'`), 0)
		is.Equal(len(find(t, db, "acme", "zqx")), 1)
		check()
		execute(t, db, `DELETE FROM tc_colors WHERE tenant_id = 'acme' AND key LIKE 'more%'`)
		execute(t, db, `DELETE FROM tc_colors WHERE tenant_id = 'acme' AND key > 'row-000300' AND key < 'row-1'`)
		execute(t, db, `UPDATE tc_search_lists SET n = 100000 WHERE tenant_id = 'acme'`) // most rows were deleted
		run(t, db)
		is.Equal(count(t, db, "acme", segments, "acme"), 1)
		check()
		if db.Dialect().Name().String() == "sqlite" {
			_, err := db.DB.ExecContext(t.Context(), "VACUUM")
			is.NoErr(err)
			check()
		}
	})
}

func execute(t *testing.T, db *bun.DB, query string) {
	t.Helper()
	is.New(t).NoErr(bunx.Write(t.Context(), db, "acme", func(ctx context.Context, c bunx.Conn) error {
		_, err := c.Exec(ctx, query)
		return err
	}))
}

// TestSearchesAreTheTenants: rows of one tenant are not found by others. They do not make a trigram
// frequent in the indexes of others.
func TestSearchesAreTheTenants(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, db := is.New(t), open(t)
		put(t, db, "acme", numbered("common", 2500)...)
		put(t, db, "evil", append(numbered("other", 2500), "the common one")...)
		run(t, db)
		is.Equal(find(t, db, "evil", "common"), []string{"the common one"})
		// counted twice if the row is also noted
		is.True(count(
			t, db, "evil",
			`SELECT CAST(sum(n) AS bigint) FROM tc_search_grams WHERE tenant_id = $1 AND gram = 'mmo'`, "evil",
		) <= 2)
		is.Equal(len(find(t, db, "acme", "common")), 1000)
	})
}

// TestKindsHaveIndexesOfTheirOwn: each kind has a separate index, and a row is noted when its text
// changes.
func TestKindsHaveIndexesOfTheirOwn(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, db := is.New(t), open(t)
		store := contentstore.New(db)
		add := func(kind entity.Kind, n int, name string) {
			is.NoErr(store.InTx(t.Context(), func(ctx context.Context) error {
				for i := range n {
					id := fmt.Sprintf("%s-%05d", kind, i)
					err := store.Insert(ctx, "acme", content.Entity{
						Kind:      kind,
						ID:        id,
						Name:      name,
						Slug:      &id,
						OwnerID:   "*",
						Data:      []byte(`{}`),
						CreatedAt: monday,
						UpdatedAt: monday,
					})
					if err != nil {
						return err
					}
				}
				return nil
			}))
		}
		find := func(kind entity.Kind, q string) int {
			page, err := store.Page(t.Context(), "acme", kind, paging.Query{Q: q, Limit: 10})
			is.NoErr(err)
			is.Equal(len(page.Rows), min(page.Total, 10))
			return page.Total
		}
		add("report", 2100, "Quarter")
		add("dataset", 3, "Quarter")
		run(t, db)
		is.Equal(count(t, db, "acme", segments+` AND list = 'entities' AND part = 'report'`, "acme"), 1)
		is.Equal(count(t, db, "acme", segments, "acme"), 1) // the other kind has few
		is.Equal(find("report", "quarter"), 2100)
		is.Equal(find("dataset", "quarter"), 3)
		is.Equal(find("report", "report-00007"), 1)
		_, err := store.Update(t.Context(), "acme", "report", content.Lookup{ID: "report-00007"},
			func(e *content.Entity) error {
				e.Name = "ZQX"
				return nil
			})
		is.NoErr(err)
		is.Equal(find("report", "zqx"), 1)
		is.Equal(find("report", "quarter"), 2099)
	})
}

// TestSearchesBesideWrites: an existing row is always found, while other transactions write, rename
// and remove rows, and while several processes index and are killed.
func TestSearchesBesideWrites(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, db := is.New(t), open(t)
		put(t, db, "acme", numbered("row", 2000)...)
		put(t, db, "acme", "constant zqx")
		_, err := bunx.FoldTotals(t.Context(), db)
		is.NoErr(err)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var others sync.WaitGroup
		for n := range 2 {
			others.Go(func() { // index, and be killed
				for ctx.Err() == nil {
					some, kill := context.WithTimeout(ctx, time.Duration(1+rand.IntN(60))*time.Millisecond)
					// takes the lists that the other one has claimed
					later := func() time.Time { return time.Now().Add(time.Duration(rand.IntN(10)) * time.Minute) }
					_ = indexer.New(db, later).Run(some)
					kill()
				}
			})
			others.Go(func() {
				for i := 0; ctx.Err() == nil; i++ {
					put(t, db, "acme", numbered(fmt.Sprint("more", n, i%7), 300)...)
					if i%3 == 0 {
						_ = bunx.Write(ctx, db, "acme", func(ctx context.Context, c bunx.Conn) error {
							_, err := c.Exec(
								ctx, `DELETE FROM tc_colors WHERE tenant_id = 'acme' AND key > $1 AND key < $2`,
								fmt.Sprint("more", n), fmt.Sprint("more", n, "9"),
							)
							return err
						})
					}
				}
			})
		}
		for i := range 40 {
			key := fmt.Sprintf("new zqx %d", i)
			put(t, db, "acme", key)
			page, err := colorstore.New(db).Page(t.Context(), "acme", paging.Query{Q: "zqx", Limit: 100})
			is.NoErr(err)
			is.Equal(page.Total, i+2) // a writer finds its own row
			is.Equal(len(page.Rows), i+2)
		}
		stop()
		others.Wait()
		later := func() time.Time { return time.Now().Add(time.Hour) } // claims of the killed processes have expired
		is.NoErr(indexer.New(db, later).Run(t.Context()))
		for _, q := range []string{"zqx", "row-00012", "more03-0001", "more15-00029"} {
			find(t, db, "acme", q)
		}
		is.Equal(count(t, db, "*", `SELECT count(*) FROM tc_search_segments WHERE state <> 'live'`), 0)
	})
}

// TestBuildWithoutItsClaimForgetsNoNotes: a process that paused for longer than its claim does not
// remove notes of rows that another one has already read.
func TestBuildWithoutItsClaimForgetsNoNotes(t *testing.T) {
	is := is.New(t)
	db := dbtest.Postgres(t)
	put(t, db, "acme", numbered("color", 3000)...)
	_, err := bunx.FoldTotals(t.Context(), db)
	is.NoErr(err)
	put(t, db, "acme", numbered("noted", 600)...)
	var once atomic.Bool
	slow := dbtest.Watched(t, db, func(statement string) {
		if !strings.Contains(statement, "AND claim_ends_at = $5") || once.Swap(true) {
			return
		}
		// this process pauses; after two minutes another process claims the list and builds the
		// index
		other := indexer.New(db, func() time.Time { return time.Now().Add(3 * time.Minute) })
		for range 5 {
			is.NoErr(other.Run(t.Context()))
		}
		is.Equal(count(t, db, "*", `SELECT count(*) FROM tc_search_lists WHERE reached IS NOT NULL`), 0)
		put(t, db, "acme", "zebra-new")
		is.Equal(len(find(t, db, "acme", "zebra")), 1)
	})
	for !once.Load() && t.Context().Err() == nil { // until transactions of other tests have ended
		is.NoErr(indexer.New(slow, nil).Run(t.Context()))
		time.Sleep(10 * time.Millisecond)
	}
	is.Equal(len(find(t, db, "acme", "zebra")), 1)
	run(t, db)
	is.Equal(len(find(t, db, "acme", "zebra")), 1)
}
