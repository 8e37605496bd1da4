package bunstore_test

import (
	"testing"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/domains/bunstore"
	"github.com/tenantcontent/tenantcontent/domains/domainstest"
	"github.com/tenantcontent/tenantcontent/internal/dbtest"
)

func TestStore(t *testing.T) {
	dbtest.EachStore(t, func(t *testing.T, open dbtest.Opener) {
		domainstest.TestStore(t, func(t *testing.T) domains.Store { return bunstore.New(open(t)) })
	})
}
