package bunstore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/colors"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/testkit/fieldtest"
	"github.com/tenantcontent/tenantcontent/internal/testkit/pagingtest"
	"github.com/tenantcontent/tenantcontent/paging"
)

var (
	monday  = time.Date(2026, 11, 16, 9, 0, 0, 123456000, time.UTC)
	tuesday = monday.Add(24 * time.Hour)
)

// testStore runs all checks. open returns an empty Store whose database has the tenants acme and
// evil.
func testStore(t *testing.T, open func(t *testing.T) colors.Store) {
	for name, check := range map[string]func(*testing.T, colors.Store){
		"RoundTrip":             testRoundTrip,
		"PutKeepsSource":        testPutKeepsSource,
		"Swap":                  testSwap,
		"PutAll":                testPutAll,
		"DeleteIsIdempotent":    testDelete,
		"Isolation":             testIsolation,
		"Search":                testSearch,
		"FailedTxWritesNone":    testFailedTx,
		"ParallelPutsAllLand":   testParallelPuts,
		"Pages":                 testPages,
		"AllInOrder":            testAll,
		"AllLetsCallerWrite":    testAllWithWrites,
		"CanceledWritesNothing": testCanceled,
	} {
		t.Run(name, func(t *testing.T) { check(t, open(t)) })
	}
}

func put(t *testing.T, s colors.Store, tenant string, all ...colors.Color) {
	t.Helper()
	is.New(t).NoErr(s.PutAll(t.Context(), tenant, all))
}

func color(key, value string) colors.Color {
	return colors.Color{Key: key, Color: value, CreatedAt: monday, UpdatedAt: monday}
}

func keys(t *testing.T, s colors.Store, tenant, source string) []string {
	t.Helper()
	got := []string{}
	for c, err := range s.All(t.Context(), tenant, source) {
		is.New(t).NoErr(err)
		got = append(got, c.Key)
	}
	return got
}

func testRoundTrip(t *testing.T, s colors.Store) {
	is, ctx := is.New(t), t.Context()
	seed := "seed ✓"
	for _, want := range []colors.Color{
		{Key: "brand/primary 100%", Color: "#Ff0000", Source: &seed, CreatedAt: monday, UpdatedAt: tuesday},
		{Key: "'; DROP TABLE tc_colors; --?$1\\", Color: "#abc", CreatedAt: monday, UpdatedAt: monday},
		{Key: strings.Repeat("ü", 255), Color: "blue:500", CreatedAt: monday, UpdatedAt: monday},
		{Key: "日本 🎨", Color: "#000", CreatedAt: monday, UpdatedAt: monday},
	} {
		put(t, s, "acme", want)
		got, err := s.Get(ctx, "acme", want.Key)
		is.NoErr(err)
		want.Tenant = "acme"
		is.Equal(got, want)
		if want.Source != nil {
			fieldtest.Full(t, want)
		}
	}
	_, err := s.Get(ctx, "acme", "BRAND/primary 100%") // case matters
	is.Equal(errs.CodeOf(err), errs.NotFound)
}

func testPutKeepsSource(t *testing.T, s colors.Store) {
	is, ctx := is.New(t), t.Context()
	seed := "seed"
	put(t, s, "acme", colors.Color{Key: "red", Color: "#f00", Source: &seed, CreatedAt: monday, UpdatedAt: monday})
	got, err := s.Put(ctx, "acme", colors.Color{Key: "red", Color: "#e00", CreatedAt: tuesday, UpdatedAt: tuesday})
	is.NoErr(err)
	want := colors.Color{
		Tenant:    "acme",
		Key:       "red",
		Color:     "#e00",
		Source:    &seed,
		CreatedAt: monday,
		UpdatedAt: tuesday,
	}
	is.Equal(got, want) // source and creation time do not change
	got, err = s.Get(ctx, "acme", "red")
	is.NoErr(err)
	is.Equal(got, want)

	got, err = s.Put(ctx, "acme", color("new", "#123"))
	is.NoErr(err)
	is.Equal(got, colors.Color{Tenant: "acme", Key: "new", Color: "#123", CreatedAt: monday, UpdatedAt: monday})
}

// testSwap is the same for Swap, which returns what Put has overwritten.
func testSwap(t *testing.T, s colors.Store) {
	is, ctx := is.New(t), t.Context()
	seed := "seed"
	red := colors.Color{Tenant: "acme", Key: "red", Color: "#f00", Source: &seed, CreatedAt: monday, UpdatedAt: monday}
	put(t, s, "acme", red)
	set := colors.Color{Key: "red", Color: "#e00", CreatedAt: tuesday, UpdatedAt: tuesday}
	now, was, err := s.Swap(ctx, "acme", set)
	is.NoErr(err)
	is.Equal(*was, red)
	red.Color, red.UpdatedAt = "#e00", tuesday
	is.Equal(now, red)
	stored, err := s.Get(ctx, "acme", "red")
	is.NoErr(err)
	is.Equal(stored, red)

	now, was, err = s.Swap(ctx, "evil", color("red", "#123"))
	is.NoErr(err)
	is.True(was == nil) // that of the other tenant
	is.Equal(now, colors.Color{Tenant: "evil", Key: "red", Color: "#123", CreatedAt: monday, UpdatedAt: monday})
	stored, err = s.Get(ctx, "acme", "red")
	is.NoErr(err)
	is.Equal(stored, red)
}

func testPutAll(t *testing.T, s colors.Store) {
	is, ctx := is.New(t), t.Context()
	one, two := "one", "two"
	put(t, s, "acme", colors.Color{
		Key:       "a",
		Color:     "#aaa",
		Source:    &one,
		CreatedAt: monday,
		UpdatedAt: monday,
	}, color("b", "#bbb"))
	put(t, s, "acme", color("a", "#a0a0a0"), colors.Color{
		Key:       "b",
		Color:     "#bbb",
		Source:    &two,
		CreatedAt: tuesday,
		UpdatedAt: tuesday,
	})
	a, err := s.Get(ctx, "acme", "a")
	is.NoErr(err)
	is.Equal(a.Color, "#a0a0a0")
	is.Equal(*a.Source, "one") // without a source, the stored one does not change
	b, err := s.Get(ctx, "acme", "b")
	is.NoErr(err)
	is.Equal(*b.Source, "two")
	is.Equal(b.CreatedAt, monday)
	is.Equal(b.UpdatedAt, tuesday)
}

func testDelete(t *testing.T, s colors.Store) {
	is, ctx := is.New(t), t.Context()
	put(t, s, "acme", color("red", "#f00"))
	is.NoErr(s.Delete(ctx, "acme", "red"))
	is.NoErr(s.Delete(ctx, "acme", "red"))
	_, err := s.Get(ctx, "acme", "red")
	is.Equal(errs.CodeOf(err), errs.NotFound)
}

func testIsolation(t *testing.T, s colors.Store) {
	is, ctx := is.New(t), t.Context()
	put(t, s, "acme", color("red", "#f00"), color("blue", "#00f"))
	put(t, s, "evil", color("red", "#666"))
	for tenant, want := range map[string]int{"acme": 2, "evil": 1, "none": 0} {
		n, err := s.Count(ctx, tenant)
		is.NoErr(err)
		is.Equal(n, want)
	}

	_, err := s.Get(ctx, "evil", "blue")
	is.Equal(errs.CodeOf(err), errs.NotFound) // another tenant sees nothing
	is.Equal(keys(t, s, "evil", ""), []string{"red"})
	page, err := s.Page(ctx, "evil", paging.Query{Limit: 10})
	is.NoErr(err)
	is.Equal(page.Total, 1) // nor counts it
	_, err = s.Put(ctx, "evil", color("blue", "#111"))
	is.NoErr(err)
	is.NoErr(s.Delete(ctx, "evil", "red"))

	red, err := s.Get(ctx, "acme", "red")
	is.NoErr(err)
	is.Equal(red.Color, "#f00") // another tenant cannot change it
	blue, err := s.Get(ctx, "acme", "blue")
	is.NoErr(err)
	is.Equal(blue.Color, "#00f")
}

func testFailedTx(t *testing.T, s colors.Store) {
	is, ctx := is.New(t), t.Context()
	put(t, s, "acme", color("old", "#111"))
	fault := errors.New("fault")
	err := s.InTx(ctx, func(ctx context.Context) error {
		put := s.PutAll(ctx, "acme", []colors.Color{color("new", "#222"), color("old", "#333")})
		is.NoErr(errors.Join(put, s.Delete(ctx, "acme", "old")))
		_, err := s.Get(ctx, "acme", "new")
		is.NoErr(err) // the transaction sees its own writes
		return fault
	})
	is.True(errors.Is(err, fault))
	is.Equal(keys(t, s, "acme", ""), []string{"old"})
	old, err := s.Get(ctx, "acme", "old")
	is.NoErr(err)
	is.Equal(old.Color, "#111")
}

func testParallelPuts(t *testing.T, s colors.Store) {
	is, ctx := is.New(t), t.Context()
	var wg sync.WaitGroup
	fails := make(chan error, 20)
	for i := range 20 {
		wg.Go(func() {
			_, err := s.Put(ctx, "acme", color(fmt.Sprintf("k%02d", i), "#123456"))
			_, same := s.Put(ctx, "acme", color("same", fmt.Sprintf("#1234%02d", i)))
			fails <- errors.Join(err, same)
		})
	}
	wg.Wait()
	close(fails)
	for err := range fails {
		is.NoErr(err)
	}
	is.Equal(len(keys(t, s, "acme", "")), 21)
}

func testPages(t *testing.T, s colors.Store) {
	is, ctx := is.New(t), t.Context()
	var all []colors.Color
	for i := range 25 { // no two columns have the same order
		n := i * 7 % 25
		all = append(all, colors.Color{
			Key: fmt.Sprintf("Key %02d", n), Color: "#123",
			// equal times, which are ordered by key
			CreatedAt: monday.Add(time.Duration(n%3) * time.Hour),
			UpdatedAt: monday.Add(time.Duration(n%4) * 24 * time.Hour),
		})
	}
	put(t, s, "acme", all...)
	for _, sort := range []string{"", "key", "-key", "createdAt", "-updatedAt"} {
		t.Run("sort="+sort, func(t *testing.T) {
			pagingtest.TestCursor(t, sort, func(
				ctx context.Context, q paging.Query,
			) (paging.Page[colors.Color], error) {
				return s.Page(ctx, "acme", q)
			}, func(c colors.Color) string { return c.Key })
			pagingtest.TestBytes(t, func(ctx context.Context, q paging.Query) (paging.Page[colors.Color], error) {
				q.Sort = sort
				return s.Page(ctx, "acme", q)
			})
		})
	}
	pagingtest.TestOrder(t, func(ctx context.Context, q paging.Query) (paging.Page[colors.Color], error) {
		return s.Page(ctx, "acme", q)
	}, "key", func(a, b colors.Color) int {
		return strings.Compare(a.Key, b.Key)
	}, map[string]func(a, b colors.Color) int{
		"key":       func(a, b colors.Color) int { return strings.Compare(a.Key, b.Key) },
		"createdAt": func(a, b colors.Color) int { return a.CreatedAt.Compare(b.CreatedAt) },
		"updatedAt": func(a, b colors.Color) int { return a.UpdatedAt.Compare(b.UpdatedAt) },
	})
	for _, c := range []struct {
		q     paging.Query
		total int
	}{
		{paging.Query{Limit: 5, Q: `"kEY 1"`}, 10},
		{paging.Query{Limit: 5, Q: "1 kEY"}, 12}, // also key 01 and key 21
		{paging.Query{Limit: 5, Q: "%"}, 0},      // % is not a wildcard
		{paging.Query{Limit: 5, Q: "_"}, 0},
		{paging.Query{Limit: 5, Q: `\`}, 0},
		{paging.Query{CountOnly: true}, 25},
		{paging.Query{Limit: 5, Start: 1000}, 25},
	} {
		page, err := s.Page(ctx, "acme", c.q)
		is.NoErr(err)
		is.Equal(page.Total, c.total)
	}
	_, err := s.Page(ctx, "acme", paging.Query{Limit: 5, Sort: "tenant_id"})
	is.Equal(errs.CodeOf(err), errs.Invalid)
	_, err = s.Page(ctx, "acme", paging.Query{
		Limit: 5,
		Sort:  "createdAt",
		After: &paging.Position{Value: "x", Key: "y"},
	})
	is.Equal(errs.CodeOf(err), errs.Invalid) // a cursor of another list
}

func testAll(t *testing.T, s colors.Store) {
	is := is.New(t)
	seed := "seed"
	put(t, s, "acme", color("b", "#bbb"), color("B", "#bbb"), color("ä", "#aaa"), color("a b", "#aaa"),
		colors.Color{Key: "a", Color: "#aaa", Source: &seed, CreatedAt: monday, UpdatedAt: monday})
	is.Equal(keys(t, s, "acme", ""), []string{"B", "a", "a b", "b", "ä"}) // by bytes, on every database
	is.Equal(keys(t, s, "acme", "seed"), []string{"a"})
	is.Equal(keys(t, s, "acme", "nope"), []string{})

	var many []colors.Color
	for i := range 500 {
		many = append(many, color(fmt.Sprintf("m%06d", i), "#123"))
	}
	for chunk := range 40 { // more than a store reads at once
		for i := range many {
			many[i].Key = fmt.Sprintf("m%06d", chunk*500+i)
		}
		put(t, s, "evil", many...)
	}
	got := keys(t, s, "evil", "")
	is.Equal(len(got), 20000)
	is.Equal(got[0], "m000000")
	is.Equal(got[19999], "m019999")
}

func testAllWithWrites(t *testing.T, s colors.Store) {
	is, ctx := is.New(t), t.Context()
	put(t, s, "acme", color("a", "#aaa"), color("b", "#bbb"))
	for c, err := range s.All(ctx, "acme", "") {
		is.NoErr(err)
		is.NoErr(s.Delete(ctx, "acme", c.Key))
	}
	is.Equal(len(keys(t, s, "acme", "")), 0)
}

func testCanceled(t *testing.T, s colors.Store) {
	is := is.New(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Put(ctx, "acme", color("a", "#aaa"))
	is.True(errors.Is(err, context.Canceled))
	is.Equal(len(keys(t, s, "acme", "")), 0)
}
