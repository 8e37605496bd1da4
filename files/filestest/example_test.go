package filestest_test

import (
	"testing"

	"github.com/tenantcontent/tenantcontent/files"
	"github.com/tenantcontent/tenantcontent/files/filestest"
)

// open returns an empty Store of the host, over a database with the tenants acme and evil, each with the principals that TestStore
// names.
var open func(t *testing.T) files.Store

// A test of the package of a Store calls TestStore.
func ExampleTestStore() {
	_ = testing.InternalTest{Name: "TestStore", F: func(t *testing.T) { filestest.TestStore(t, open(t)) }}
}
