package handlers_test

import (
	"os"
	"testing"

	"github.com/tenantcontent/tenantcontent/internal/handlers/quickjs"
)

func TestMain(m *testing.M) {
	quickjs.Child()
	os.Exit(m.Run())
}
