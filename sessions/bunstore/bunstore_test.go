package bunstore_test

import (
	"testing"

	"github.com/tenantcontent/tenantcontent/internal/dbtest"
	principalstore "github.com/tenantcontent/tenantcontent/principals/bunstore"
	"github.com/tenantcontent/tenantcontent/sessions/bunstore"
	"github.com/tenantcontent/tenantcontent/sessions/sessionstest"
)

func TestStore(t *testing.T) {
	dbtest.EachStore(t, func(t *testing.T, open dbtest.Opener) {
		sessionstest.TestStore(t, func(t *testing.T) sessionstest.Stores {
			db := open(t)
			return sessionstest.Stores{Store: bunstore.New(db), Users: principalstore.New(db)}
		})
	})
}
