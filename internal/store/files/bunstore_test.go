package bunstore_test

import (
	"testing"

	blobstore "github.com/tenantcontent/tenantcontent/internal/store/blobs"
	"github.com/tenantcontent/tenantcontent/internal/store/files"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

func TestStore(t *testing.T) {
	dbtest.EachStore(t, func(t *testing.T, open dbtest.Opener) {
		db := dbtest.People(t, open(t), "jo", "joe", "mia", "mo", "root", "日本 🎨")
		t.Run("Uploads", func(t *testing.T) { testStore(t, bunstore.Uploads(db)) })
		t.Run("Downloads", func(t *testing.T) { testStore(t, bunstore.Downloads(db)) })
		t.Run("Service", func(t *testing.T) { testService(t, bunstore.Uploads(db), blobstore.New(db)) })
	})
}
