package httpapi_test

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// paint adds n colors to acme, c100000 and so on, with one statement.
func (w *world) paint(t testing.TB, n int) {
	t.Helper()
	err := bunx.Write(t.Context(), w.db, "acme", func(ctx context.Context, c bunx.Conn) error {
		_, err := c.Exec(ctx, `INSERT INTO tc_colors (tenant_id, key, search, color, created_at, updated_at)
			WITH RECURSIVE n (i) AS (SELECT 100000 UNION ALL SELECT i + 1 FROM n WHERE i < $1)
			SELECT 'acme', 'c' || i, 'c' || i, '#ABC', $2, $2 FROM n`, 99999+n, bunx.At(w.now()))
		return err
	})
	is.New(t).NoErr(err)
}

// follow returns the keys on all pages from target on. between runs after each page.
func (w *world) follow(t testing.TB, target string, between func(p page)) []string {
	t.Helper()
	var keys []string
	for target != "" {
		p := read[page](t, w.must(t, "mia", "GET", target, ""))
		for _, row := range p.Embedded["inf:color"] {
			keys = append(keys, row["key"].(string))
		}
		between(p)
		target = p.next()
	}
	return keys
}

func TestFollowingNext(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is := is.New(t)
		w := newWorld(t, open)
		w.paint(t, 1050)
		for _, sort := range []string{"", "-key", "createdAt", "-updatedAt"} {
			pages := 0
			keys := w.follow(t, "/api/colors?sort="+sort, func(p page) {
				pages++
				is.Equal(p.Total, 1050)
				is.Equal(p.Count, min(100, 1050-p.Start))
			})
			is.Equal(pages, 11)
			is.Equal(len(keys), 1050)
			if strings.HasPrefix(sort, "-") {
				slices.Reverse(keys)
			}
			is.True(slices.IsSorted(keys))
			is.Equal(len(slices.Compact(keys)), 1050)
		}
	})
}

// TestFollowingNextMeanwhile: rows that come and go before the position move nothing behind it.
func TestFollowingNextMeanwhile(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is := is.New(t)
		w := newWorld(t, open)
		w.paint(t, 1050)
		n := 0
		keys := w.follow(t, "/api/colors?limit=70", func(page) {
			w.must(t, "dana", "PUT", fmt.Sprintf("/api/colors/a%d", n), `{"color": "#000"}`)
			w.must(t, "dana", "PUT", fmt.Sprintf("/api/colors/b%d", n), `{"color": "#000"}`)
			w.must(t, "dana", "DELETE", fmt.Sprintf("/api/colors/c%d", 100_000+n), "")
			n++
		})
		is.Equal(len(keys), 1050)
		is.True(slices.IsSorted(keys))
		is.Equal(keys[0], "c100000")
		is.Equal(len(slices.Compact(keys)), 1050)
	})
}

func TestPrev(t *testing.T) {
	is := is.New(t)
	w := newWorld(t, dbtest.SQLite)
	w.paint(t, 30)
	for _, sort := range []string{"", "-key", "createdAt", "-updatedAt"} {
		var starts []int
		var keys []any
		for target := "/api/colors?start=25&limit=10&q=C&sort=" + sort; target != ""; {
			p := read[page](t, w.must(t, "mia", "GET", target, ""))
			starts = append(starts, p.Start)
			rows := p.Embedded["inf:color"]
			for i := range rows {
				keys = append(keys, rows[len(rows)-1-i]["key"])
			}
			if p.next() != "" {
				is.Equal(read[page](t, w.must(t, "mia", "GET", p.next(), "")).Start, p.Start+p.Count)
			}
			target = strings.TrimPrefix(p.Links["prev"].Href, baseURL)
			is.Equal(strings.Contains(target, "cursor="), p.Start > 0)
		}
		is.Equal(starts, []int{25, 15, 5, 0})
		is.Equal(len(keys), 30) // each once, also on the first page, which has 5
		for i, row := range read[page](
			t, w.must(t, "mia", "GET", "/api/colors?q=C&sort="+sort, ""),
		).Embedded["inf:color"] {
			is.Equal(row["key"], keys[29-i])
		}
	}
}

func TestPageEdges(t *testing.T) {
	is := is.New(t)
	w := newWorld(t, dbtest.SQLite)
	w.paint(t, 1005)
	for target, want := range map[string][2]int{ // count, total
		"/api/colors": {100, 1005}, "/api/colors?limit=0": {0, 1005}, "/api/colors?limit=1000": {1000, 1005},
		"/api/colors?start=1005": {0, 1005},
		"/api/colors?start=1004": {1, 1005}, "/api/colors?start=9223372036854775807": {0, 1005},
		"/api/colors?sort=&q=&cursor=": {100, 1005}, "/api/colors?q=C10000": {10, 10}, "/api/colors?q=%25": {0, 0},
		"/api/colors?q=%20%E3%80%80": {100, 1005}, "/api/colors?q=0000+%C4%87&limit=5": {5, 10},
		"/api/colors?q=%22c+1%22": {0, 0},
		"/api/colors?q=c_0":       {0, 0}, "/api/colors?q=%5C": {0, 0},
		"/api/colors?q=%27": {0, 0}, "/api/users": {5, 5}, "/api/teams": {1, 1},
	} {
		p := read[page](t, w.must(t, "mia", "GET", target, ""))
		is.Equal([2]int{p.Count, p.Total}, want)
		is.Equal(p.next() != "", p.Count > 0 && p.Start+p.Count < p.Total)
		is.Equal(p.Links["prev"].Href != "", p.Start > 0)
	}
	for i := range 20 {
		w.must(t, "admin", "POST", "/api/users", fmt.Sprintf(`{"username": "u%02d"}`, i))
		w.must(t, "admin", "POST", "/api/teams", fmt.Sprintf(`{"name": "u%02d"}`, i))
	}
	is.Equal(read[page](t, w.must(t, "mia", "GET", "/api/users", "")).Count, 20) // the default of users and teams
	is.Equal(read[page](t, w.must(t, "mia", "GET", "/api/teams", "")).Count, 20)
	is.Equal(w.do(t, "mia", "GET", "/api/colors?q="+strings.Repeat("x", 1000), "").status, 200)
	is.Equal(
		w.do(t, "mia", "GET", "/api/colors?q="+strings.Repeat("x", 1001), "").message(t),
		"q must have at most 1000 bytes",
	)
	words := url.QueryEscape("c a0 b0 d0 e0 f0 g0 h0 i0 j0 k0 l0 m0 n0 o0 p0 q0 r0 s0 t0 u0")
	is.Equal(
		w.do(t, "mia", "GET", "/api/colors?q="+words, "").message(t),
		"q must have at most 20 words; words in double quotes count as one",
	)
}

// TestLinksKeepParameters: what filters and orders a list goes on.
func TestLinksKeepParameters(t *testing.T) {
	is := is.New(t)
	w := newWorld(t, dbtest.SQLite)
	w.paint(t, 30)
	p := read[page](t, w.must(t, "mia", "GET", "/api/colors?start=10&limit=5&sort=-key&q=c10", ""))
	for rel, start := range map[string]string{"self": "10", "next": "15", "prev": "5"} {
		u, err := url.Parse(p.Links[rel].Href)
		is.NoErr(err)
		q := u.Query()
		is.Equal(q.Has("cursor"), rel != "self")
		q.Del("cursor")
		is.Equal(q, url.Values{"start": {start}, "limit": {"5"}, "sort": {"-key"}, "q": {"c10"}})
	}
}

// TestForeignCursor: a cursor serves the list that it was made for and no other.
func TestForeignCursor(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is := is.New(t)
		w := newWorld(t, open)
		w.paint(t, 30)
		next := read[page](t, w.must(t, "mia", "GET", "/api/colors?limit=10&q=c", "")).next()
		u, err := url.Parse(next)
		is.NoErr(err)
		cursor := "&cursor=" + u.Query().Get("cursor")
		for _, target := range []string{
			"/api/colors?start=11&limit=10&q=c", "/api/colors?limit=10&q=c",
			"/api/colors?start=10&limit=10", "/api/colors?start=10&limit=10&q=C",
			"/api/colors?start=10&limit=10&q=c&sort=-key",
			"/api/colors?start=10&limit=10&q=c&sort=createdAt", "/api/users?start=10&limit=10&q=c",
		} {
			a := w.do(t, "mia", "GET", target+cursor, "")
			is.Equal(a.status, 400)
			is.True(strings.HasPrefix(a.message(t), "cursor does not fit"))
		}
		is.Equal(w.must(t, "mia", "GET", "/api/colors?start=10&limit=3&q=c"+cursor, "").status, 200) // limit may change
		// a place, not a right
		stranger := read[page](t, w.must(t, "eve", "GET", next, ""))
		is.Equal(stranger.Count+stranger.Total, 0)
	})
}
