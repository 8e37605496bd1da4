package bunstore_test

import (
	"testing"

	principalstore "github.com/tenantcontent/tenantcontent/internal/store/principals"
	"github.com/tenantcontent/tenantcontent/internal/store/sessions"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

func TestStore(t *testing.T) {
	dbtest.EachStore(t, func(t *testing.T, open dbtest.Opener) {
		testStore(t, func(t *testing.T) Stores {
			db := open(t)
			return Stores{Store: bunstore.New(db), Users: principalstore.New(db)}
		})
	})
}
