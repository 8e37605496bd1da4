package bunstore_test

import (
	"testing"

	"github.com/tenantcontent/tenantcontent/apps/agents"
	"github.com/tenantcontent/tenantcontent/internal/store/agents"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

func TestStore(t *testing.T) {
	dbtest.EachStore(t, func(t *testing.T, open dbtest.Opener) {
		testStore(t, func(t *testing.T) agents.Store { return bunstore.New(open(t)) })
	})
}
