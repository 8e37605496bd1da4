package bunstore_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/apps"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/drafts/shares"
	"github.com/tenantcontent/tenantcontent/internal/testkit/pagingtest"
	"github.com/tenantcontent/tenantcontent/paging"
)

// compare are the orders of lists.
var compare = map[string]func(a, b apps.App) int{
	"name": func(a, b apps.App) int {
		return strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name))
	},
	"createdAt": func(a, b apps.App) int { return a.CreatedAt.Compare(b.CreatedAt) },
	"updatedAt": func(a, b apps.App) int { return a.UpdatedAt.Compare(b.UpdatedAt) },
}

func byID(a, b apps.App) int { return strings.Compare(a.ID, b.ID) }

func pages(s apps.Store, v apps.Viewer) func(context.Context, paging.Query) (paging.Page[apps.App], error) {
	return func(ctx context.Context, q paging.Query) (paging.Page[apps.App], error) {
		return s.Page(ctx, "acme", v, q)
	}
}

// testPages: every viewer of the same apps sees the same pages.
func testPages(t *testing.T, s apps.Store) {
	var all []apps.App
	for n := range 25 {
		a := newApp(n, fmt.Sprintf("s%02d", n))
		a.Name = fmt.Sprintf("name %02d", n/2) // equal names, which are ordered by id
		if n%2 == 1 {
			a.Name = strings.ToUpper(a.Name) // case does not matter
		}
		a.OwnerID = Principals()[n%3]
		a.CreatedAt = monday.Add(time.Duration(n%3) * time.Hour)
		a.UpdatedAt = a.CreatedAt
		all = append(all, a)
	}
	is := is.New(t)
	is.NoErr(s.PutAll(t.Context(), "acme", all, nil))
	for n := 2; n < 25; n += 3 {
		share(t, s, n, "blue", shares.Use) // those of red
	}
	viewers := map[string]apps.Viewer{
		"all":           {All: true},
		"owners":        {Principals: []string{"red", "jo", "mia"}},
		"owners, twice": {Principals: []string{"red", "jo", "mia", "jo"}},
		"shares":        {Principals: []string{"jo", "mia", "blue", "green", shares.Everyone}},
	}
	for name, v := range viewers {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			for _, sort := range []string{"", "name", "-name", "createdAt", "-updatedAt"} {
				keys := pagingtest.TestCursor(t, sort, pages(s, v), func(a apps.App) string { return a.ID })
				if sort == "" {
					is.True(slices.IsSorted(keys))
				}
			}
			pagingtest.TestBytes(t, pages(s, v))
			pagingtest.TestOrder(t, pages(s, v), "name", byID, compare)
			for q, total := range map[string]int{"S1": 10, "nAME 00": 2, "%": 0, "_": 0, "jo": 0} {
				page, err := s.Page(t.Context(), "acme", v, paging.Query{Limit: 5, Q: q})
				is.NoErr(err)
				is.Equal(page.Total, total)
				is.Equal(len(page.Rows), min(total, 5))
			}
			for _, q := range []paging.Query{{CountOnly: true}, {Limit: 5, Start: 25}, {Limit: 5, Start: 1000}} {
				page, err := s.Page(t.Context(), "acme", v, q)
				is.NoErr(err)
				is.Equal(page, paging.Page[apps.App]{Rows: []apps.App{}, Total: 25})
			}
			for _, q := range []paging.Query{
				{Limit: 5, Sort: "defn"}, {Limit: 5, Sort: "createdAt", After: &paging.Position{Value: "x", Key: "y"}},
				{Limit: 5, After: &paging.Position{Value: "\x00"}}, {Limit: 5, Q: "\xff"},
			} {
				_, err := s.Page(t.Context(), "acme", v, q)
				is.Equal(errs.CodeOf(err), errs.Invalid)
			}
		})
	}
	for _, v := range []apps.Viewer{{}, {Principals: []string{"green", "nobody"}}} {
		page, err := s.Page(t.Context(), "acme", v, paging.Query{Limit: 5})
		is.NoErr(err)
		is.Equal(page, paging.Page[apps.App]{Rows: []apps.App{}})
		page, err = s.Page(t.Context(), "acme", v, paging.Query{Limit: 5, Q: "name"})
		is.NoErr(err)
		is.Equal(page, paging.Page[apps.App]{Rows: []apps.App{}})
	}
}

// testVisible compares pages with those of a list in memory, for apps with random owners, shares,
// drafts and deletions.
func testVisible(t *testing.T, s apps.Store) {
	is, random := is.New(t), rand.New(rand.NewPCG(10, 2026))
	const apart = 60
	var all []apps.App
	type access struct {
		principal string
		level     shares.Level
	}
	given := map[string][]access{}
	is.NoErr(s.InTx(t.Context(), func(ctx context.Context) error {
		for n := range apart {
			a := newApp(n, fmt.Sprintf("s%d", n))
			a.Name = fmt.Sprintf("%c%d", 'A'+rune(random.IntN(2)*32), random.IntN(12))
			a.OwnerID = Principals()[random.IntN(len(Principals()))]
			a.CreatedAt = monday.Add(time.Duration(random.IntN(20)) * time.Minute)
			a.UpdatedAt = monday.Add(time.Duration(random.IntN(20)) * time.Hour)
			switch random.IntN(8) {
			case 0:
				a.DeletedAt = &tuesday
			case 1:
				original := id(n + 500)
				a.EditingID = &original
			}
			if err := s.Insert(ctx, "acme", a); err != nil {
				return err
			}
			all = append(all, a)
			for _, principal := range append([]string{shares.Everyone}, Principals()...) {
				if random.IntN(7) > 0 {
					continue
				}
				level := shares.Level(random.IntN(3))
				given[a.ID] = append(given[a.ID], access{principal, level})
				_, err := s.Shares().Put(ctx, "acme", a.ID, shares.Share{
					PrincipalID: principal,
					Level:       level,
					CreatedAt:   monday,
					UpdatedAt:   monday,
				})
				if err != nil {
					return err
				}
			}
		}
		return nil
	}))
	for range 6 {
		var v apps.Viewer
		for _, principal := range append([]string{shares.Everyone}, Principals()...) {
			if random.IntN(2) == 0 {
				v.Principals = append(v.Principals, principal)
			}
		}
		var seen []apps.App
		for _, a := range all {
			sees := slices.Contains(v.Principals, a.OwnerID) || slices.ContainsFunc(given[a.ID], func(g access) bool {
				return g.level > shares.None && slices.Contains(v.Principals, g.principal)
			})
			if sees && a.DeletedAt == nil && a.EditingID == nil {
				seen = append(seen, a)
			}
		}
		for field, order := range compare {
			for _, desc := range []bool{false, true} {
				sort, sorted := field, slices.Clone(seen)
				slices.SortFunc(sorted, func(a, b apps.App) int { return cmp.Or(order(a, b), byID(a, b)) })
				if desc {
					sort = "-" + sort
					slices.Reverse(sorted)
				}
				comparePages(t, pages(s, v), sort, 1+random.IntN(9), sorted)
			}
		}
	}
}

// comparePages reads all pages by cursor, forwards and backwards, and compares them with the list.
func comparePages(
	t *testing.T, page func(context.Context, paging.Query) (paging.Page[apps.App], error), sort string,
	limit int, want []apps.App,
) {
	t.Helper()
	is := is.New(t)
	q := paging.Query{Limit: limit, Sort: sort}
	var last paging.Page[apps.App]
	for start := 0; start == 0 || start < len(want); start += limit {
		q.Start = start
		p, err := page(t.Context(), q)
		is.NoErr(err)
		is.Equal(ids(p.Rows), ids(want[start:min(start+limit, len(want))]))
		is.Equal([]any{p.Total, p.More}, []any{len(want), start+limit < len(want)})
		q.After, last = p.Last, p
	}
	for start := q.Start; start > 0; {
		p, err := page(t.Context(), paging.Query{Limit: limit, Sort: sort, Before: last.First, Start: start})
		is.NoErr(err)
		is.Equal(ids(p.Rows), ids(want[max(0, start-limit):start]))
		is.Equal([]int{p.Start, p.Total}, []int{max(0, start-limit), len(want)})
		start, last = p.Start, p
	}
}

// testManyPrincipals: a viewer in very many teams sees what each team sees.
func testManyPrincipals(t *testing.T, s apps.Store) {
	is := is.New(t)
	mia, red := newApp(2, "b"), newApp(3, "c")
	mia.OwnerID, red.OwnerID = "mia", "red"
	insert(t, s, newApp(1, "a"), mia, red)
	share(t, s, 3, "blue", shares.Use)
	principals := []string{"jo", "blue"}
	for _, more := range []int{1, 30, 98, 99, 300, 2000} {
		v := apps.Viewer{Principals: slices.Clone(principals)}
		for n := range more {
			v.Principals = append(v.Principals, fmt.Sprintf("team-%d", n))
		}
		for _, q := range []paging.Query{
			{Limit: 5}, {Limit: 1}, {Limit: 5, Q: "name"}, {Limit: 1, Start: 1}, {Limit: 5, Sort: "-updatedAt"},
		} {
			page, err := s.Page(t.Context(), "acme", v, q)
			is.NoErr(err)
			is.Equal(page.Total, 2)
			want := numbered(1, 3)
			if q.Sort != "" {
				slices.Reverse(want)
			}
			is.Equal(ids(page.Rows), want[q.Start:min(2, q.Start+q.Limit)])
		}
	}
}
