package bunstore_test

import (
	"testing"

	"github.com/tenantcontent/tenantcontent/confirmations"
	"github.com/tenantcontent/tenantcontent/confirmations/bunstore"
	"github.com/tenantcontent/tenantcontent/confirmations/confirmationstest"
	"github.com/tenantcontent/tenantcontent/internal/dbtest"
)

func TestStore(t *testing.T) {
	dbtest.EachStore(t, func(t *testing.T, open dbtest.Opener) {
		confirmationstest.TestStore(t, func(t *testing.T) confirmations.Store { return bunstore.New(open(t)) })
	})
}
