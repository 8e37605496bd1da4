package bunstore_test

import (
	"errors"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/drafts/libraries"
	"github.com/tenantcontent/tenantcontent/internal/store/libraries"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/paging"
)

func TestStore(t *testing.T) {
	dbtest.EachStore(t, func(t *testing.T, open dbtest.Opener) {
		testStore(t, func(t *testing.T) libraries.Store { return bunstore.New(open(t), "library") })
	})
}

// TestKinds: the Store of one kind does not access the files of another kind's library with the
// same id.
func TestKinds(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, ctx, at := is.New(t), t.Context(), time.Date(2026, 11, 20, 20, 31, 0, 0, time.UTC)
		db := open(t)
		app, other := bunstore.New(db, "app"), bunstore.New(db, "library")
		file := libraries.File{
			Path:        "server/secret.js",
			ContentID:   "c",
			ContentType: "text/plain",
			CreatedAt:   at,
			UpdatedAt:   at,
		}
		_, err := app.Put(ctx, "acme", "l", file)
		is.NoErr(err)
		_, err = other.File(ctx, "acme", "l", file.Path)
		is.True(errors.Is(err, errs.NotFound))
		page, err := other.Page(ctx, "acme", "l", paging.Query{Limit: 10})
		is.NoErr(err)
		is.Equal(page.Total, 0)
		newest, err := other.Modified(ctx, "acme", []string{"l"})
		is.NoErr(err)
		is.Equal(len(newest), 0)
		is.True(errors.Is(other.Delete(ctx, "acme", "l", file.Path, at), errs.NotFound))
		is.NoErr(other.Copy(ctx, "acme", "l", "copy"))
		is.NoErr(other.Replace(ctx, "acme", "to", "l", at))
		is.NoErr(other.Replace(ctx, "acme", "l", "empty", at))
		is.NoErr(other.Remove(ctx, "acme", []string{"l"}, at))
		taken := file
		taken.ContentID, taken.Path = "d", "SERVER/secret.js" // no clash
		_, err = other.Put(ctx, "acme", "l", taken)
		is.NoErr(err)
		for _, library := range []string{"copy", "to"} {
			all, err := other.All(ctx, "acme", library)
			is.NoErr(err)
			is.Equal(len(all), 0)
		}
		all, err := app.All(ctx, "acme", "l")
		is.NoErr(err)
		is.Equal(all, []libraries.File{file})
	})
}
