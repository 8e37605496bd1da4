package jsvmtest_test

import (
	"testing"

	"github.com/tenantcontent/tenantcontent/jsvm"
	"github.com/tenantcontent/tenantcontent/jsvm/jsvmtest"
)

// open returns the host's own Runtime with these limits.
var open func(t *testing.T, highest jsvm.Limits) jsvm.Runtime

// A test of the package of a Runtime calls Test. One without the race detector calls TestAttacks.
func ExampleTest() {
	_ = testing.InternalTest{Name: "TestRuntime", F: func(t *testing.T) { jsvmtest.Test(t, open) }}
	_ = testing.InternalTest{Name: "TestAttacksMemory", F: func(t *testing.T) { jsvmtest.TestAttacks(t, open) }}
}
