package pagingtest_test

import (
	"context"
	"testing"

	"github.com/tenantcontent/tenantcontent/internal/testkit/pagingtest"
	"github.com/tenantcontent/tenantcontent/paging"
)

// list is a method of the host's Store that returns a page, such as that of colors.Store.
var list func(ctx context.Context, q paging.Query) (paging.Page[string], error)

// A test of a Store calls TestBytes when there are some rows.
func ExampleTestBytes() {
	_ = testing.InternalTest{Name: "TestPages", F: func(t *testing.T) { pagingtest.TestBytes(t, list) }}
}
