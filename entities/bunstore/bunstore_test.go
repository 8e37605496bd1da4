package bunstore_test

import (
	"testing"

	"github.com/tenantcontent/tenantcontent/entities"
	"github.com/tenantcontent/tenantcontent/entities/bunstore"
	"github.com/tenantcontent/tenantcontent/entities/entitiestest"
	"github.com/tenantcontent/tenantcontent/internal/dbtest"
)

func TestStore(t *testing.T) {
	dbtest.EachStore(t, func(t *testing.T, open dbtest.Opener) {
		entitiestest.TestStore(t, func(t *testing.T) entities.Store { return bunstore.New(dbtest.People(t, open(t), "jo", "mia")) })
	})
}
