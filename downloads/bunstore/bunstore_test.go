package bunstore_test

import (
	"testing"

	blobstore "github.com/tenantcontent/tenantcontent/blobs/bunstore"
	"github.com/tenantcontent/tenantcontent/downloads"
	"github.com/tenantcontent/tenantcontent/downloads/bunstore"
	"github.com/tenantcontent/tenantcontent/downloads/downloadstest"
	"github.com/tenantcontent/tenantcontent/internal/dbtest"
)

func TestStore(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		downloadstest.TestStore(t, func(t *testing.T) downloads.Options {
			db := open(t)
			return downloads.Options{Store: bunstore.New(db), Blobs: blobstore.New(db)}
		})
	})
}
