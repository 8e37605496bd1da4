package bunstore_test

import (
	"testing"

	"github.com/tenantcontent/tenantcontent/internal/dbtest"
	"github.com/tenantcontent/tenantcontent/tenants"
	"github.com/tenantcontent/tenantcontent/tenants/bunstore"
	"github.com/tenantcontent/tenantcontent/tenants/tenantstest"
)

func TestStore(t *testing.T) {
	dbtest.EachStore(t, func(t *testing.T, open dbtest.Opener) {
		tenantstest.TestStore(t, func(t *testing.T) tenants.Store { return bunstore.New(open(t)) })
	})
}
