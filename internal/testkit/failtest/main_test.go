package failtest_test

import (
	"os"
	"testing"

	"github.com/tenantcontent/tenantcontent"
)

// TestMain begins as the main function of a program does that opens an App.
func TestMain(m *testing.M) {
	tenantcontent.Child()
	os.Exit(m.Run())
}
