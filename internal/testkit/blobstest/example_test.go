package blobstest_test

import (
	"testing"

	"github.com/tenantcontent/tenantcontent/internal/drafts/blobs"
	"github.com/tenantcontent/tenantcontent/internal/testkit/blobstest"
)

// open returns an empty Store of the host, over a database with the tenants acme and evil.
var open func(t *testing.T) blobs.Store

// A test of the package of a Store calls TestStore.
func ExampleTestStore() {
	_ = testing.InternalTest{Name: "TestStore", F: func(t *testing.T) { blobstest.TestStore(t, open) }}
}
