package bunstore_test

import (
	"testing"

	"github.com/tenantcontent/tenantcontent/agents"
	"github.com/tenantcontent/tenantcontent/agents/agentstest"
	"github.com/tenantcontent/tenantcontent/agents/bunstore"
	"github.com/tenantcontent/tenantcontent/internal/dbtest"
)

func TestStore(t *testing.T) {
	dbtest.EachStore(t, func(t *testing.T, open dbtest.Opener) {
		agentstest.TestStore(t, func(t *testing.T) agents.Store { return bunstore.New(open(t)) })
	})
}
