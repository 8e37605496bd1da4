package failtest_test

import (
	"os"
	"testing"

	"github.com/tenantcontent/tenantcontent/javascript"
)

// TestMain begins like the main function of a program that opens an App. The tests run in a process
// that may mount file systems.
func TestMain(m *testing.M) {
	javascript.Child()
	if code, done := runInNamespace(); done {
		os.Exit(code)
	}
	os.Exit(m.Run())
}
