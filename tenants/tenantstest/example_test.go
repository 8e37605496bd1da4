package tenantstest_test

import (
	"testing"

	"github.com/tenantcontent/tenantcontent/tenants"
	"github.com/tenantcontent/tenantcontent/tenants/tenantstest"
)

// open returns an empty Store of the host, over a database with the tenants acme and evil alone.
var open func(t *testing.T) tenants.Store

// A test of the package of a Store calls TestStore.
func ExampleTestStore() {
	_ = testing.InternalTest{Name: "TestStore", F: func(t *testing.T) { tenantstest.TestStore(t, open) }}
}
