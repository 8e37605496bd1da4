package handlerstest_test

import (
	"testing"

	"github.com/tenantcontent/tenantcontent/handlers"
	"github.com/tenantcontent/tenantcontent/handlers/handlerstest"
)

// open returns an empty Store of the host, over a database with the tenants acme and evil, and what runs a function in one transaction.
var open func(t *testing.T) (handlers.Store, handlerstest.InTx)

// A test of the package of a Store calls TestStore.
func ExampleTestStore() {
	_ = testing.InternalTest{Name: "TestStore", F: func(t *testing.T) { handlerstest.TestStore(t, open) }}
}
