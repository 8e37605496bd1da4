package bunstore_test

import (
	"context"
	"io"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/blobs"
	blobstore "github.com/tenantcontent/tenantcontent/blobs/bunstore"
	"github.com/tenantcontent/tenantcontent/blobs/files/filestest"
	"github.com/tenantcontent/tenantcontent/downloads"
	"github.com/tenantcontent/tenantcontent/downloads/bunstore"
	"github.com/tenantcontent/tenantcontent/downloads/downloadstest"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/dbtest"
)

func TestStore(t *testing.T) {
	dbtest.EachStore(t, func(t *testing.T, open dbtest.Opener) {
		downloadstest.TestStore(t, func(t *testing.T) downloads.Options {
			db := dbtest.People(t, open(t), "jo", "joe", "mia", "mo", "root", "日本 🎨")
			return downloads.Options{Store: bunstore.New(db), Blobs: blobstore.New(db)}
		})
	})
}

// TestBytesComeWithTheirRow: were the blob complete before its row is there, a crash between them would leave it for ever.
func TestBytesComeWithTheirRow(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, db := is.New(t), dbtest.People(t, open(t), "jo")
		store := watched{bunstore.New(db), blobstore.New(db), t}
		_, err := downloads.New(downloads.Options{Store: store, Blobs: store.blobs}).Create(
			filestest.As(t, "acme", "jo"), "a", "", func(w io.Writer) error {
				_, err := w.Write(make([]byte, 2<<20))
				return err
			})
		is.NoErr(err)
	})
}

// watched is a Store that looks, when a row is inserted, whether others see its blob already.
type watched struct {
	downloads.Store
	blobs blobs.Store
	t     *testing.T
}

func (s watched) Insert(ctx context.Context, tenant string, d downloads.Download) error {
	_, err := s.blobs.Open(s.t.Context(), tenant, d.ID)
	is.New(s.t).Equal(errs.CodeOf(err), errs.NotFound)
	_, err = s.blobs.Open(ctx, tenant, d.ID)
	is.New(s.t).NoErr(err)
	return s.Store.Insert(ctx, tenant, d)
}
