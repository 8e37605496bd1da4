package aiinstrtest_test

import (
	"testing"

	"github.com/tenantcontent/tenantcontent/aiinstr"
	"github.com/tenantcontent/tenantcontent/aiinstr/aiinstrtest"
)

// open returns an empty Store of the host, over a database with the tenants acme and evil and the principals that TestStore names.
var open func(t *testing.T) aiinstr.Store

// A test of the package of a Store calls TestStore.
func ExampleTestStore() {
	_ = testing.InternalTest{Name: "TestStore", F: func(t *testing.T) { aiinstrtest.TestStore(t, open) }}
}
