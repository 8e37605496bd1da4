package bundles_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/bundles"
	"github.com/tenantcontent/tenantcontent/content"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
)

// TestNoArchiveTakesTheLibraryOfAnApp: neither an import, a restore nor a deploy from another tenant brings a library with the id of
// that of an app or draft, or reaches its files.
func TestNoArchiveTakesTheLibraryOfAnApp(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		is, acme, evil := is.New(t), w.as(t, "acme"), w.as(t, "evil")
		id := w.make(t, "evil", "app", "Sales", `{}`)
		_, err := w.Apps.PutFile(evil, id, "server/secret.js", "", strings.NewReader("secret"))
		is.NoErr(err)
		draft, err := w.Apps.Edit(evil, id, false)
		is.NoErr(err)
		app, err := w.Apps.Get(evil, id)
		is.NoErr(err)
		for of, library := range map[string]string{app.ID: app.LibraryID, draft.ID: draft.LibraryID} {
			file := packed(t, map[string]string{"library " + library: `{"name": "Mine", "ownerId": "jo"}`, "file " + library + " server/secret.js": "taken"}, nil)
			for _, o := range []bundles.ImportOptions{
				{Rule: entity.Skip}, {Rule: entity.Overwrite}, {Rule: entity.Fail}, {Rule: entity.Skip, DryRun: true},
			} {
				_, err = w.Bundles.Import(evil, bytes.NewReader(file), o)
				is.True(errors.Is(err, errs.Conflict))
			}
			_, err = w.Bundles.Restore(evil, bytes.NewReader(file), bundles.ImportOptions{})
			is.True(errors.Is(err, errs.Conflict))

			_, err = w.Bundles.Import(acme, bytes.NewReader(file), bundles.ImportOptions{}) // where no app has it
			is.NoErr(err)
			_, err = w.Bundles.DeployManifest(acme, bundles.Manifest{Entries: []bundles.Entry{{Type: "library", EntityID: library}}}, []string{"evil"}, bundles.ImportOptions{})
			is.True(errors.Is(err, errs.Conflict))

			_, err = w.Content.Get(evil, content.Library, library)
			is.True(errors.Is(err, errs.NotFound))
			_, r, err := w.Apps.OpenFile(evil, of, "server/secret.js")
			is.NoErr(err)
			text, err := io.ReadAll(r)
			is.NoErr(err)
			is.NoErr(r.Close())
			is.Equal(string(text), "secret")
		}
	})
}
