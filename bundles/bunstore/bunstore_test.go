package bunstore_test

import (
	"testing"

	"github.com/tenantcontent/tenantcontent/bundles"
	"github.com/tenantcontent/tenantcontent/bundles/bunstore"
	"github.com/tenantcontent/tenantcontent/bundles/storetest"
	"github.com/tenantcontent/tenantcontent/internal/dbtest"
)

func TestStore(t *testing.T) {
	dbtest.EachStore(t, func(t *testing.T, open dbtest.Opener) {
		storetest.TestStore(t, func(t *testing.T) bundles.Store { return bunstore.New(dbtest.People(t, open(t), "jo")) })
	})
}
