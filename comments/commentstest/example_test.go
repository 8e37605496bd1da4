package commentstest_test

import (
	"testing"

	"github.com/tenantcontent/tenantcontent/comments/commentstest"
)

// open returns an empty Store of the host, over a database with the tenants acme and evil and the users and principals that TestStore names.
var open func(t *testing.T) commentstest.Store

// A test of the package of a Store calls TestStore.
func ExampleTestStore() {
	_ = testing.InternalTest{Name: "TestStore", F: func(t *testing.T) { commentstest.TestStore(t, open) }}
}
