package queuetest_test

import (
	"testing"

	"github.com/tenantcontent/tenantcontent/queue"
	"github.com/tenantcontent/tenantcontent/queue/queuetest"
)

// open returns an empty Store of the host, over a database with the tenants acme and evil.
var open func(t *testing.T) queue.Store

// A test of the package of a Store calls TestStore.
func ExampleTestStore() {
	_ = testing.InternalTest{Name: "TestStore", F: func(t *testing.T) { queuetest.TestStore(t, open) }}
}
