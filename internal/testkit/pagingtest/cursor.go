package pagingtest

import (
	"context"
	"slices"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/paging"
)

// TestCursor reads a list of 25 rows in pages of 10, by offset and by cursor. It checks that both
// return the same rows, each once, and returns their keys in order.
func TestCursor[T any](
	t *testing.T, sort string, page func(context.Context, paging.Query) (paging.Page[T], error),
	key func(T) string,
) []string {
	t.Helper()
	is := is.New(t)
	var byOffset, byCursor []string
	var after *paging.Position
	for start := 0; start < 25; start += 10 {
		p, err := page(t.Context(), paging.Query{Start: start, Limit: 10, Sort: sort})
		is.NoErr(err)
		is.Equal(p.Total, 25)
		next, err := page(t.Context(), paging.Query{Start: start, Limit: 10, Sort: sort, After: after})
		is.NoErr(err)
		after = next.Last
		is.Equal(len(next.Rows), len(p.Rows))
		for i, row := range p.Rows {
			byOffset, byCursor = append(byOffset, key(row)), append(byCursor, key(next.Rows[i]))
		}
	}
	is.Equal(byOffset, byCursor)
	is.Equal(len(slices.Compact(slices.Sorted(slices.Values(byOffset)))), 25)
	return byOffset
}
