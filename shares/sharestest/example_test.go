package sharestest_test

import (
	"testing"

	"github.com/tenantcontent/tenantcontent/shares"
	"github.com/tenantcontent/tenantcontent/shares/sharestest"
)

// open returns an empty Store of the host, over a database with the tenants acme and evil, each with the principals that TestStore
// names, and what runs a function in one transaction.
var open func(t *testing.T) (shares.Store, sharestest.InTx)

// A test of the package of a Store calls TestStore.
func ExampleTestStore() {
	_ = testing.InternalTest{Name: "TestStore", F: func(t *testing.T) { sharestest.TestStore(t, open) }}
}
