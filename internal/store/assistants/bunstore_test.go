package bunstore_test

import (
	"testing"

	"github.com/tenantcontent/tenantcontent/assistants"
	"github.com/tenantcontent/tenantcontent/internal/store/assistants"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

func TestStore(t *testing.T) {
	dbtest.EachStore(t, func(t *testing.T, open dbtest.Opener) {
		testStore(t, func(t *testing.T) assistants.Store {
			return bunstore.New(dbtest.People(t, open(t), Principals()...))
		})
	})
}
