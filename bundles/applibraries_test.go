package bundles_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/apps"
	"github.com/tenantcontent/tenantcontent/bundles"
	"github.com/tenantcontent/tenantcontent/content"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// TestNoArchiveTakesTheLibraryOfAnApp: neither an import, a restore nor a deploy from another
// tenant brings a library with the id of that of an app or draft, or reaches its files.
func TestNoArchiveTakesTheLibraryOfAnApp(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		is, acme, evil := is.New(t), w.as(t, "acme"), w.as(t, "evil")
		id := w.make(t, "evil", "app", "Sales", `{}`)
		_, err := w.Apps.PutFile(evil, id, entity.File{Path: "server/secret.js"}, strings.NewReader("secret"))
		is.NoErr(err)
		draft, err := w.Apps.Edit(evil, id, false)
		is.NoErr(err)
		app, err := w.Apps.Get(evil, id)
		is.NoErr(err)
		for of, library := range map[string]string{app.ID: app.LibraryID, draft.ID: draft.LibraryID} {
			file := packed(t, map[string]string{
				"library " + library:                    `{"name": "Mine", "ownerId": "jo"}`,
				"file " + library + " server/secret.js": "taken",
			}, nil)
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
			_, err = w.Bundles.DeployManifest(acme, bundles.Manifest{Entries: []bundles.Entry{{
				Type:     "library",
				EntityID: library,
			}}}, []string{"evil"}, bundles.ImportOptions{})
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

// TestDeployLeavesOwnApp: an app that a tenant imports itself, after it has purged the one that
// came, is its own, and no deploy overwrites it. One that comes back from an archive of the tenant
// is what it was.
func TestDeployLeavesOwnApp(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		is, acme, evil := is.New(t), w.as(t, "acme"), w.as(t, "evil")
		id := w.make(t, "acme", "app", "Sales", `{}`)
		_, err := w.Apps.PutFile(acme, id, entity.File{Path: "index.html"}, strings.NewReader("of acme"))
		is.NoErr(err)
		deploy := func() bundles.Counts {
			t.Helper()
			done, err := w.Bundles.DeployManifest(
				acme, bundles.Manifest{Entries: []bundles.Entry{{Type: "app", EntityID: id}}}, []string{"evil"},
				bundles.ImportOptions{},
			)
			is.NoErr(err)
			return done[0].Counts
		}
		bring := func(file []byte) {
			t.Helper()
			is.NoErr(w.Apps.Delete(evil, id))
			is.NoErr(w.Apps.Purge(evil, id))
			_, err := w.Bundles.Import(evil, bytes.NewReader(file), bundles.ImportOptions{})
			is.NoErr(err)
		}
		is.Equal(deploy().Created, 1)
		bring(w.export(t, "evil", "", "app "+id))
		app, err := w.Apps.Get(evil, id)
		is.NoErr(err)
		is.True(app.IsManaged)
		is.Equal(*app.Origin, "deployed")
		is.Equal(deploy().Updated, 1)

		bring(w.export(t, "acme", "", "app "+id))
		app, err = w.Apps.Get(evil, id)
		is.NoErr(err)
		is.True(!app.IsManaged)
		draft, err := w.Apps.Edit(evil, id, false)
		is.NoErr(err)
		_, err = w.Apps.PutFile(evil, draft.ID, entity.File{Path: "index.html"}, strings.NewReader("of evil"))
		is.NoErr(err)
		is.Equal(deploy().Skipped, 1)
		_, err = w.Apps.Commit(evil, id, apps.PublishOptions{})
		is.NoErr(err)
	})
}

// TestImportLeavesUnknownTags: an app is imported without the datasets and tags that are neither in
// the archive nor in the tenant.
func TestImportLeavesUnknownTags(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		is, evil := is.New(t), w.as(t, "evil")
		set, tag := w.make(t, "evil", "dataset", "Sales", `{}`), w.make(t, "evil", "tag", "T", `{}`)
		const id, none = "0198c2a0-0000-7000-8000-000000000001", "0198c2a0-0000-7000-8000-000000000002"
		file := packed(t, map[string]string{"app " + id: `{"name": "Mine", "ownerId": "jo", "tags": ["` + tag +
			`", "` + none + `"], "datasets": [
			{"alias": "a", "datasetId": "` + set + `", "label": ""}, {"alias": "b", "datasetId": "` + none +
			`", "label": ""}]}`},
			nil)
		r, err := w.Bundles.Import(evil, bytes.NewReader(file), bundles.ImportOptions{})
		is.NoErr(err)
		is.Equal(len(r.Warnings), 2)
		app, err := w.Apps.Get(evil, id)
		is.NoErr(err)
		is.Equal(app.Tags, []string{tag})
		is.Equal(len(app.Datasets), 1)
		is.Equal(app.Datasets[0].DatasetID, set)
	})
}

// TestCommitAfterRekey: a change of the key of the program is no change of an app.
func TestCommitAfterRekey(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, db, old := is.New(t), open(t), tenantcontent.NewSecretKey()
		w := newWorld(t, db, func(c *tenantcontent.Config) { c.SecretKey = old })
		acme := w.as(t, "acme")
		id, secret := w.make(t, "acme", "app", "Sales", `{}`), "secret"
		_, err := w.Apps.PutVariable(acme, id, "TOKEN", secret)
		is.NoErr(err)
		_, err = w.Apps.Edit(acme, id, false)
		is.NoErr(err)
		keys := tenantcontent.NewSecretKey() + "," + old
		n, err := tenantcontent.Rekey(t.Context(), tenantcontent.Config{DB: db, SecretKey: keys})
		is.NoErr(err)
		is.True(n > 0)
		after := opened(t, db, func(c *tenantcontent.Config) { c.SecretKey = keys })
		_, err = after.Apps.Commit(acme, id, apps.PublishOptions{})
		is.NoErr(err)
	})
}
