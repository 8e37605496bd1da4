package bunstore_test

import (
	"testing"

	"github.com/tenantcontent/tenantcontent/assistants"
	"github.com/tenantcontent/tenantcontent/assistants/assistantstest"
	"github.com/tenantcontent/tenantcontent/assistants/bunstore"
	"github.com/tenantcontent/tenantcontent/internal/dbtest"
)

func TestStore(t *testing.T) {
	dbtest.EachStore(t, func(t *testing.T, open dbtest.Opener) {
		assistantstest.TestStore(t, func(t *testing.T) assistants.Store {
			return bunstore.New(dbtest.People(t, open(t), assistantstest.Principals()...))
		})
	})
}
