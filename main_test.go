package tenantcontent_test

import (
	"os"
	"testing"

	"github.com/tenantcontent/tenantcontent/internal/secure/agefile"
	"github.com/tenantcontent/tenantcontent/javascript"
)

// TestMain begins as the main function of a program does that opens an App.
func TestMain(m *testing.M) {
	javascript.Child()
	agefile.SetWorkFactor(10)
	os.Exit(m.Run())
}
