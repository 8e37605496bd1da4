package bunstore_test

import (
	"testing"

	"github.com/tenantcontent/tenantcontent/aiinstr"
	"github.com/tenantcontent/tenantcontent/internal/store/aiinstr"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

func TestStore(t *testing.T) {
	dbtest.EachStore(t, func(t *testing.T, open dbtest.Opener) {
		testStore(t, func(t *testing.T) aiinstr.Store {
			return bunstore.New(dbtest.People(t, open(t), "jo", "mia", "00000000-0000-7000-8000-000000000099"))
		})
	})
}
