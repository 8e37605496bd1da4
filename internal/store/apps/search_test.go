package bunstore_test

import (
	"context"
	"testing"

	"github.com/tenantcontent/tenantcontent/apps"
	"github.com/tenantcontent/tenantcontent/internal/testkit/pagingtest"
	"github.com/tenantcontent/tenantcontent/paging"
)

// testSearch: an owner finds the same as a caller that sees all apps.
func testSearch(t *testing.T, s apps.Store) {
	viewer := apps.Viewer{All: true}
	page := func(ctx context.Context, tenant string, q paging.Query) (paging.Page[apps.App], error) {
		return s.Page(ctx, tenant, viewer, q)
	}
	name := func(a apps.App) string { return a.Name }
	pagingtest.TestSearch(t, func(t *testing.T, n int, name, text string) {
		a := newApp(n, "")
		a.Name, a.Description = name, &text
		insert(t, s, a)
		a.ID, a.LibraryID, a.OwnerID = id(n+100), id(n+2_000_000), "mia"
		a.Name, a.Description = "other", nil
		insert(t, s, a)
	}, page, name)
	viewer = apps.Viewer{Principals: []string{"jo"}}
	pagingtest.TestSearch(t, func(*testing.T, int, string, string) {}, page, name)
}
