package bunstore_test

import (
	"context"
	"testing"

	"github.com/tenantcontent/tenantcontent/apps/messages"
	"github.com/tenantcontent/tenantcontent/internal/testkit/pagingtest"
	"github.com/tenantcontent/tenantcontent/paging"
)

func testSearch(t *testing.T, s messages.Store) {
	t.Run("events", func(t *testing.T) {
		pagingtest.TestSearch(t, func(t *testing.T, n int, name, text string) {
			e := event(n, "shop")
			e.Name = name + " " + text
			put(t, s, "acme", e)
		}, func(ctx context.Context, tenant string, q paging.Query) (paging.Page[messages.Event], error) {
			return s.Events(ctx, tenant, "shop", messages.Filter{}, q)
		}, func(e messages.Event) string { return e.Name })
	})
	t.Run("messages", func(t *testing.T) {
		pagingtest.TestSearch(t, func(t *testing.T, n int, name, text string) {
			m := message(n, "shop")
			m.Title, m.Recipient = name, text
			put(t, s, "acme", m)
		}, func(ctx context.Context, tenant string, q paging.Query) (paging.Page[messages.Message], error) {
			return s.Messages(ctx, tenant, "shop", messages.Filter{}, q)
		}, func(m messages.Message) string { return m.Title })
	})
}
