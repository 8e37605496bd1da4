// Package pagingtest has checks that every list of a Store must pass.
package pagingtest

import (
	"context"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/paging"
)

// TestBytes checks that the pages of a list end with the row that exceeds the limit in bytes. In
// both directions the pages must have the same rows as a page without that limit. TestBytes also
// checks the zero Query, CountOnly, and that invalid queries are errs.Invalid. The list must have
// at least two rows, and fewer than a page may have.
func TestBytes[T any](t *testing.T, page func(ctx context.Context, q paging.Query) (paging.Page[T], error)) {
	t.Helper()
	is := is.New(t)
	whole, err := page(t.Context(), paging.Query{Limit: paging.MaxLimit})
	is.NoErr(err)
	is.True(whole.Total >= 2)
	is.True(!whole.More)
	is.Equal(len(whole.Rows), whole.Total)

	usual, err := page(t.Context(), paging.Query{}) // the default page
	is.NoErr(err)
	is.Equal(usual.Rows, whole.Rows[:min(paging.DefaultLimit, whole.Total)])
	is.Equal(usual.Total, whole.Total)
	count, err := page(t.Context(), paging.Query{CountOnly: true, Limit: 1})
	is.NoErr(err)
	is.Equal([]int{len(count.Rows), count.Total}, []int{0, whole.Total})
	for _, q := range []paging.Query{
		{Start: -1}, {Limit: -1}, {Limit: paging.MaxLimit + 1}, {CountOnly: true, Start: -1},
		{Limit: 1, After: whole.First, Before: whole.Last},
	} {
		if _, err := page(t.Context(), q); errs.CodeOf(err) != errs.Invalid {
			t.Errorf("the page of %+v: %v, want errs.Invalid", q, err)
		}
	}

	ctx := paging.WithLimits(t.Context(), paging.Limits{MaxBytes: 1}) // any row exceeds it
	var first, last *paging.Position
	for i := range whole.Rows {
		var p paging.Page[T]
		for _, limit := range []int{1, paging.MaxLimit} {
			p, err = page(ctx, paging.Query{Start: i, Limit: limit, After: last})
			is.NoErr(err)
			is.Equal(p.Rows, whole.Rows[i:i+1])
			is.Equal(p.Total, whole.Total)
			is.Equal(p.More, i+1 < whole.Total)
		}
		first, last = p.First, p.Last
	}
	all, err := page(t.Context(), paging.Query{Start: whole.Total - 1, Limit: paging.MaxLimit, Before: first})
	is.NoErr(err)
	is.Equal(all.Rows, whole.Rows[:whole.Total-1])
	is.Equal([]int{all.Start, all.Total}, []int{0, whole.Total})
	for i := whole.Total - 2; i >= 0; i-- { // backwards
		var p paging.Page[T]
		for _, limit := range []int{1, paging.MaxLimit} {
			p, err = page(ctx, paging.Query{Start: i + 1, Limit: limit, Before: first})
			is.NoErr(err)
			is.Equal(p.Rows, whole.Rows[i:i+1])
			is.Equal([]int{p.Start, p.Total}, []int{i, whole.Total})
			is.True(p.More)
		}
		first = p.First
	}
}
