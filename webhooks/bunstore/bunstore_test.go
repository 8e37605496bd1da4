package bunstore_test

import (
	"testing"

	"github.com/tenantcontent/tenantcontent/internal/dbtest"
	"github.com/tenantcontent/tenantcontent/webhooks"
	"github.com/tenantcontent/tenantcontent/webhooks/bunstore"
	"github.com/tenantcontent/tenantcontent/webhooks/webhookstest"
)

func TestStore(t *testing.T) {
	dbtest.EachStore(t, func(t *testing.T, open dbtest.Opener) {
		webhookstest.TestStore(t, func(t *testing.T) webhooks.Store { return bunstore.New(open(t)) })
	})
}
