package bunstore_test

import (
	"testing"

	"github.com/tenantcontent/tenantcontent/apps"
	"github.com/tenantcontent/tenantcontent/apps/appstest"
	"github.com/tenantcontent/tenantcontent/apps/bunstore"
	"github.com/tenantcontent/tenantcontent/internal/dbtest"
)

func TestStore(t *testing.T) {
	dbtest.EachStore(t, func(t *testing.T, open dbtest.Opener) {
		appstest.TestStore(t, func(t *testing.T) apps.Store {
			return bunstore.New(dbtest.People(t, open(t), appstest.Principals()...))
		})
	})
}
