package bunstore_test

import (
	"testing"

	"github.com/tenantcontent/tenantcontent/colors"
	"github.com/tenantcontent/tenantcontent/internal/testkit/pagingtest"
)

func testSearch(t *testing.T, s colors.Store) {
	pagingtest.TestSearch(t, func(t *testing.T, _ int, name, text string) {
		put(t, s, "acme", color(name+" "+text, "#123456"))
	}, s.Page, func(c colors.Color) string { return c.Key })
}
