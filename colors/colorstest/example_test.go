package colorstest_test

import (
	"testing"

	"github.com/tenantcontent/tenantcontent/colors"
	"github.com/tenantcontent/tenantcontent/colors/colorstest"
)

// open returns an empty Store of the host, over a database with the tenants acme and evil.
var open func(t *testing.T) colors.Store

// A test of the package of a Store calls TestStore.
func ExampleTestStore() {
	_ = testing.InternalTest{Name: "TestStore", F: func(t *testing.T) { colorstest.TestStore(t, open) }}
}
