package bunstore_test

import (
	"context"
	"testing"

	"github.com/tenantcontent/tenantcontent/content"
	"github.com/tenantcontent/tenantcontent/internal/testkit/pagingtest"
	"github.com/tenantcontent/tenantcontent/paging"
)

func testSearch(t *testing.T, s content.Store) {
	pagingtest.TestSearch(t, func(t *testing.T, n int, name, text string) {
		e := newEntity(n, "")
		e.Name, e.Description = name, &text
		insert(t, s, e)
		e.ID, e.Kind = id(n+100), "dataset" // of which none is found
		insert(t, s, e)
	}, func(ctx context.Context, tenant string, q paging.Query) (paging.Page[content.Entity], error) {
		return s.Page(ctx, tenant, "report", q)
	}, func(e content.Entity) string { return e.Name })
}
