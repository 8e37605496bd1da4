package bunstore_test

import (
	"testing"

	"github.com/tenantcontent/tenantcontent/internal/store/webhooks"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/webhooks"
)

func TestStore(t *testing.T) {
	dbtest.EachStore(t, func(t *testing.T, open dbtest.Opener) {
		testStore(t, func(t *testing.T) webhooks.Store { return bunstore.New(open(t)) })
	})
}
