package bunstore_test

import (
	"testing"

	blobstore "github.com/tenantcontent/tenantcontent/blobs/bunstore"
	"github.com/tenantcontent/tenantcontent/internal/dbtest"
	"github.com/tenantcontent/tenantcontent/uploads"
	"github.com/tenantcontent/tenantcontent/uploads/bunstore"
	"github.com/tenantcontent/tenantcontent/uploads/uploadstest"
)

func TestStore(t *testing.T) {
	dbtest.EachStore(t, func(t *testing.T, open dbtest.Opener) {
		uploadstest.TestStore(t, func(t *testing.T) uploads.Options {
			db := dbtest.People(t, open(t), "jo", "joe", "mia", "mo", "root", "日本 🎨")
			return uploads.Options{Store: bunstore.New(db), Blobs: blobstore.New(db)}
		})
	})
}
