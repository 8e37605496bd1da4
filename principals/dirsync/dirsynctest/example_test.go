package dirsynctest_test

import (
	"testing"

	"github.com/tenantcontent/tenantcontent/principals/dirsync/dirsynctest"
)

// open returns an empty Store of the host, over a database with the tenants acme and evil.
var open func(t *testing.T) dirsynctest.Store

// A test of the package of a Store calls TestStore.
func ExampleTestStore() {
	_ = testing.InternalTest{Name: "TestStore", F: func(t *testing.T) { dirsynctest.TestStore(t, open) }}
}
