package assistantstest_test

import (
	"testing"

	"github.com/tenantcontent/tenantcontent/assistants"
	"github.com/tenantcontent/tenantcontent/assistants/assistantstest"
)

// open returns an empty Store of the host, over a database with the tenants acme and evil, each with the Principals.
var open func(t *testing.T) assistants.Store

// A test of the package of a Store calls TestStore.
func ExampleTestStore() {
	_ = testing.InternalTest{Name: "TestStore", F: func(t *testing.T) { assistantstest.TestStore(t, open) }}
}
