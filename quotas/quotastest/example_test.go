package quotastest_test

import (
	"testing"

	"github.com/tenantcontent/tenantcontent/quotas"
	"github.com/tenantcontent/tenantcontent/quotas/quotastest"
)

// The Store of the host, over a database with the tenants acme and evil, and what changes it.
var (
	store   quotas.Store
	changes map[string]quotastest.Change
)

// A test of the package of a Store calls TestStore.
func ExampleTestStore() {
	_ = testing.InternalTest{Name: "TestStore", F: func(t *testing.T) { quotastest.TestStore(t, store, changes) }}
}
