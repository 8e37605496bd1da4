package failtest_test

import (
	"os"
	"testing"

	"github.com/tenantcontent/tenantcontent/javascript"
)

// TestMain begins as the main function of a program does that opens an App. The tests run where
// they may mount file systems.
func TestMain(m *testing.M) {
	javascript.Child()
	if code, done := runInNamespace(); done {
		os.Exit(code)
	}
	os.Exit(m.Run())
}
