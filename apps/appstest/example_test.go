package appstest_test

import (
	"testing"

	"github.com/tenantcontent/tenantcontent/apps"
	"github.com/tenantcontent/tenantcontent/apps/appstest"
)

// open returns an empty Store of the host, over a database with the tenants acme and evil, each with the Principals.
var open func(t *testing.T) apps.Store

// A test of the package of a Store calls TestStore.
func ExampleTestStore() {
	_ = testing.InternalTest{Name: "TestStore", F: func(t *testing.T) { appstest.TestStore(t, open) }}
}
