package bunstore_test

import (
	"fmt"
	"testing"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/internal/testkit/pagingtest"
)

func testSearch(t *testing.T, s domains.Store) {
	pagingtest.TestSearch(t, func(t *testing.T, n int, name, text string) {
		d := domain(fmt.Sprint("d", n))
		d.Name, d.Description = &name, &text
		insert(t, s, d)
	}, s.Page, func(d domains.Domain) string { return *d.Name })
}
