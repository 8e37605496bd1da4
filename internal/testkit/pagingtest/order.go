package pagingtest

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/paging"
)

// TestOrder checks that a list is ordered by each of its sorts in both directions, with equal
// values ordered by key, and without a sort as by normal. The list must have some rows.
func TestOrder[T any](
	t *testing.T, page func(context.Context, paging.Query) (paging.Page[T], error), normal string,
	key func(a, b T) int, sorts map[string]func(a, b T) int,
) {
	t.Helper()
	is := is.New(t)
	same := func(a, b []T) bool { return slices.EqualFunc(a, b, func(x, y T) bool { return key(x, y) == 0 }) }
	read := func(sort string) []T {
		p, err := page(t.Context(), paging.Query{Limit: paging.MaxLimit, Sort: sort})
		is.NoErr(err)
		n := len(p.Rows)
		is.True(n > 1)
		before, err := page(t.Context(), paging.Query{Start: n - 1, Limit: n - 1, Sort: sort, Before: p.Last})
		is.NoErr(err)
		is.True(same(before.Rows, p.Rows[:n-1])) // also backwards
		return p.Rows
	}
	for field, compare := range sorts {
		up := read(field)
		is.True(slices.IsSortedFunc(up, func(a, b T) int {
			if c := compare(a, b); c != 0 {
				return c
			}
			return key(a, b)
		}))
		down := read("-" + field)
		is.True(slices.IsSortedFunc(down, func(a, b T) int { return compare(b, a) }))
		slices.Reverse(down)
		is.True(same(up, down)) // also for equal values
	}
	is.True(same(read(""), read(normal)))
}

// TestNewest checks that a list is only ordered by createdAt, in both directions and without a sort
// the newest first, with equal times ordered by id. The list must have some rows.
func TestNewest[T any](
	t *testing.T, page func(context.Context, paging.Query) (paging.Page[T], error), id func(T) string,
	created func(T) time.Time,
) {
	t.Helper()
	TestOrder(t, page, "-createdAt", func(a, b T) int {
		return strings.Compare(id(a), id(b))
	}, map[string]func(a, b T) int{
		"createdAt": func(a, b T) int { return created(a).Compare(created(b)) },
	})
}
