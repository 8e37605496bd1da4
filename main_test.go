package tenantcontent_test

import (
	"os"
	"testing"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/internal/store/tenantrows"
)

// TestMain begins as the main function of a program does that opens an App.
func TestMain(m *testing.M) {
	tenantcontent.Child()
	tenantrows.SetWorkFactor(10)
	os.Exit(m.Run())
}
