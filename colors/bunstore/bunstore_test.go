package bunstore_test

import (
	"testing"

	"github.com/tenantcontent/tenantcontent/colors"
	"github.com/tenantcontent/tenantcontent/colors/bunstore"
	"github.com/tenantcontent/tenantcontent/colors/colorstest"
	"github.com/tenantcontent/tenantcontent/internal/dbtest"
)

func TestStore(t *testing.T) {
	dbtest.EachStore(t, func(t *testing.T, open dbtest.Opener) {
		colorstest.TestStore(t, func(t *testing.T) colors.Store { return bunstore.New(open(t)) })
	})
}
