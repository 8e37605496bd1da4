package bunstore_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/assistants"
	"github.com/tenantcontent/tenantcontent/internal/drafts"
	"github.com/tenantcontent/tenantcontent/internal/testkit/pagingtest"
	"github.com/tenantcontent/tenantcontent/paging"
)

func search(t *testing.T, is *is.I, s assistants.Store) {
	pagingtest.TestSearch(t, func(t *testing.T, n int, name, text string) {
		a := assistant(n, "jo", fmt.Sprint("slug-", n))
		a.Name, a.Description = name, &text
		is.NoErr(s.Insert(t.Context(), "acme", a))
	}, func(ctx context.Context, tenant string, q paging.Query) (paging.Page[assistants.Assistant], error) {
		return s.Page(ctx, tenant, drafts.Viewer{Principals: []string{"jo"}}, q)
	}, func(a assistants.Assistant) string { return a.Name })
}
