package bunstore_test

import (
	"testing"

	"github.com/tenantcontent/tenantcontent/internal/dbtest"
	"github.com/tenantcontent/tenantcontent/queue"
	"github.com/tenantcontent/tenantcontent/queue/bunstore"
	"github.com/tenantcontent/tenantcontent/queue/queuetest"
)

func TestStore(t *testing.T) {
	dbtest.EachStore(t, func(t *testing.T, open dbtest.Opener) {
		queuetest.TestStore(t, func(t *testing.T) queue.Store { return bunstore.New(open(t)) })
	})
}
