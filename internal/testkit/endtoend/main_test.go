package endtoend_test

import (
	"os"
	"testing"

	"github.com/tenantcontent/tenantcontent/javascript"
)

// TestMain begins like the main function of a program that opens an App.
func TestMain(m *testing.M) {
	javascript.Child()
	os.Exit(m.Run())
}
