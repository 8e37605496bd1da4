package contenttest_test

import (
	"testing"

	"github.com/tenantcontent/tenantcontent/content"
	"github.com/tenantcontent/tenantcontent/content/contenttest"
)

// open returns an empty Store of the host, over a database with the tenants acme and evil, each with the principals jo and mia.
var open func(t *testing.T) content.Store

// A test of the package of a Store calls TestStore.
func ExampleTestStore() {
	_ = testing.InternalTest{Name: "TestStore", F: func(t *testing.T) { contenttest.TestStore(t, open) }}
}
