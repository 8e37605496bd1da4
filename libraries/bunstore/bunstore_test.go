package bunstore_test

import (
	"testing"

	"github.com/tenantcontent/tenantcontent/internal/dbtest"
	"github.com/tenantcontent/tenantcontent/libraries"
	"github.com/tenantcontent/tenantcontent/libraries/bunstore"
	"github.com/tenantcontent/tenantcontent/libraries/librariestest"
)

func TestStore(t *testing.T) {
	dbtest.EachStore(t, func(t *testing.T, open dbtest.Opener) {
		librariestest.TestStore(t, func(t *testing.T) libraries.Store { return bunstore.New(open(t)) })
	})
}
