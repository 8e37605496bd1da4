package webhookstest_test

import (
	"testing"

	"github.com/tenantcontent/tenantcontent/webhooks"
	"github.com/tenantcontent/tenantcontent/webhooks/webhookstest"
)

// open returns an empty Store of the host, over a database with the tenants acme and evil.
var open func(t *testing.T) webhooks.Store

// A test of the package of a Store calls TestStore.
func ExampleTestStore() {
	_ = testing.InternalTest{Name: "TestStore", F: func(t *testing.T) { webhookstest.TestStore(t, open) }}
}
