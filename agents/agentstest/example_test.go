package agentstest_test

import (
	"testing"

	"github.com/tenantcontent/tenantcontent/agents"
	"github.com/tenantcontent/tenantcontent/agents/agentstest"
)

// open returns an empty Store of the host, over a database with the tenants acme and evil.
var open func(t *testing.T) agents.Store

// A test of the package of a Store calls TestStore.
func ExampleTestStore() {
	_ = testing.InternalTest{Name: "TestStore", F: func(t *testing.T) { agentstest.TestStore(t, open) }}
}
