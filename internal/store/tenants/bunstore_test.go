package bunstore_test

import (
	"testing"

	"github.com/tenantcontent/tenantcontent/internal/store/tenants"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/tenants"
)

func TestStore(t *testing.T) {
	dbtest.EachStore(t, func(t *testing.T, open dbtest.Opener) {
		testStore(t, func(t *testing.T) tenants.Store { return bunstore.New(open(t)) })
	})
}
