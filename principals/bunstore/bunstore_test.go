package bunstore_test

import (
	"testing"

	"github.com/tenantcontent/tenantcontent/internal/dbtest"
	"github.com/tenantcontent/tenantcontent/principals"
	"github.com/tenantcontent/tenantcontent/principals/bunstore"
	"github.com/tenantcontent/tenantcontent/principals/principalstest"
)

func TestStore(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		principalstest.TestStore(t, func(t *testing.T) principals.Store { return bunstore.New(open(t)) })
	})
}
