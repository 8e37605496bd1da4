package bunstore_test

import (
	"testing"

	"github.com/tenantcontent/tenantcontent/aiinstr"
	"github.com/tenantcontent/tenantcontent/internal/testkit/pagingtest"
)

func testSearch(t *testing.T, s aiinstr.Store) {
	pagingtest.TestSearch(t, func(t *testing.T, n int, name, text string) {
		i := instruction(n, name)
		i.Description = &text
		insert(t, s, i)
	}, s.Page, func(i aiinstr.Instruction) string { return i.Slug })
}
