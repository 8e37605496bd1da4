package bunstore_test

import (
	"testing"

	"github.com/tenantcontent/tenantcontent/internal/chat/confirmations"
	"github.com/tenantcontent/tenantcontent/internal/store/confirmations"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

func TestStore(t *testing.T) {
	dbtest.EachStore(t, func(t *testing.T, open dbtest.Opener) {
		testStore(t, func(t *testing.T) confirmations.Store { return bunstore.New(open(t)) })
	})
}
