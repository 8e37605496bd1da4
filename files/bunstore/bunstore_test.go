package bunstore_test

import (
	"testing"

	blobstore "github.com/tenantcontent/tenantcontent/blobs/bunstore"
	"github.com/tenantcontent/tenantcontent/files/bunstore"
	"github.com/tenantcontent/tenantcontent/files/filestest"
	"github.com/tenantcontent/tenantcontent/internal/dbtest"
)

func TestStore(t *testing.T) {
	dbtest.EachStore(t, func(t *testing.T, open dbtest.Opener) {
		db := dbtest.People(t, open(t), "jo", "joe", "mia", "mo", "root", "日本 🎨")
		t.Run("Uploads", func(t *testing.T) { filestest.TestStore(t, bunstore.Uploads(db)) })
		t.Run("Downloads", func(t *testing.T) { filestest.TestStore(t, bunstore.Downloads(db)) })
		t.Run("Service", func(t *testing.T) { filestest.TestService(t, bunstore.Uploads(db), blobstore.New(db)) })
	})
}
