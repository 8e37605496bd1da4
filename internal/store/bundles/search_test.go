package bunstore_test

import (
	"testing"

	"github.com/tenantcontent/tenantcontent/bundles"
	"github.com/tenantcontent/tenantcontent/internal/testkit/pagingtest"
)

func testSearch(t *testing.T, s bundles.Store) {
	pagingtest.TestSearch(t, func(t *testing.T, n int, name, text string) {
		b := bundle(n)
		b.Name, b.Description = name, &text
		add(t, s, "acme", b)
	}, s.Page, func(b bundles.Bundle) string { return b.Name })
}
