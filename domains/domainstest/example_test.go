package domainstest_test

import (
	"testing"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/domains/domainstest"
)

// open returns an empty Store of the host, over a database with the tenants acme and evil, each with the domain local alone.
var open func(t *testing.T) domains.Store

// A test of the package of a Store calls TestStore.
func ExampleTestStore() {
	_ = testing.InternalTest{Name: "TestStore", F: func(t *testing.T) { domainstest.TestStore(t, open) }}
}
