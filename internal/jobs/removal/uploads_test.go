package removal_test

import (
	"io"
	"path/filepath"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/files"
	"github.com/tenantcontent/tenantcontent/internal/store/migrations"
)

// TestUploadsOfDeletedUsersAreGoneAtOnce: uploads that wait for a job are invisible, even to those
// that may see all uploads.
func TestUploadsOfDeletedUsersAreGoneAtOnce(t *testing.T) {
	is := is.New(t)
	w := open(t, "sqlite:"+filepath.Join(t.TempDir(), "removal.db"))
	defer func() { _ = w.db.Close() }()
	is.NoErr(migrations.Run(t.Context(), w.db))
	w.fill(t)
	var ids []string
	for range 300 {
		f, err := w.uploads.Create(t.Context(), "acme", files.Draft{
			Username: "u00", Filename: "f",
		}, func(to io.Writer) error {
			_, err := io.WriteString(to, "x")
			return err
		})
		is.NoErr(err)
		ids = append(ids, f.ID)
	}
	everyone := func(files.File) bool { return true }
	_, err := w.uploads.Get(t.Context(), "acme", ids[0], everyone)
	is.NoErr(err)
	is.NoErr(w.delete(t.Context(), 1))
	for _, id := range ids {
		_, err := w.uploads.Get(t.Context(), "acme", id, everyone)
		_, bytes, opening := w.uploads.Open(t.Context(), "acme", id, everyone)
		if errs.CodeOf(err) != errs.NotFound || errs.CodeOf(opening) != errs.NotFound {
			t.Fatal(id, err, bytes, opening)
		}
	}
}
