package storetest_test

import (
	"testing"

	"github.com/tenantcontent/tenantcontent/bundles"
	"github.com/tenantcontent/tenantcontent/bundles/storetest"
)

// open returns an empty Store of the host, over a database with the tenants acme and evil, each with the user jo.
var open func(t *testing.T) bundles.Store

// A test of the package of a Store calls TestStore.
func ExampleTestStore() {
	_ = testing.InternalTest{Name: "TestStore", F: func(t *testing.T) { storetest.TestStore(t, open) }}
}
