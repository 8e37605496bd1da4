package bundles_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/bundles"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/principals"
)

// vanishing is a world in which the report of a bundle goes away while the library before it is
// exported, and is made again by again.
func vanishing(t *testing.T, open dbtest.Opener) (s *world, b bundles.Bundle, again func()) {
	db := open(t)
	w := newWorld(t, db)
	report := w.make(t, "acme", "report", "R", `{}`)
	b = w.bundle(t, "B", "library "+w.make(t, "acme", "library", "L", `{}`), "report "+report)
	kept := w.export(t, "acme", b.ID)
	var once sync.Once
	s = opened(t, db, libraries(w, func(p entity.FileTransferer) entity.Transferer {
		return meddling{p, func() {
			once.Do(func() {
				if err := w.Content.Delete(w.as(t, "acme"), "report", report); err != nil {
					t.Error(err)
				}
			})
		}}
	}))
	return s, b, func() {
		_, err := w.Bundles.Import(w.as(t, "acme"), bytes.NewReader(kept), bundles.ImportOptions{})
		is.New(t).NoErr(err)
		once = sync.Once{}
	}
}

// TestPieceGoesAway while it is exported: what was written has no end, and nobody takes it for an
// archive.
func TestPieceGoesAway(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is := is.New(t)
		w, b, again := vanishing(t, open)
		acme := w.as(t, "acme")
		e, err := w.Bundles.Export(acme, b.ID)
		is.NoErr(err)
		var part bytes.Buffer
		is.Equal(errs.CodeOf(e.Write(acme, &part)), errs.Conflict)
		_, err = w.App.Bundles.Import(acme, bytes.NewReader(part.Bytes()), bundles.ImportOptions{})
		is.Equal(errs.CodeOf(err), errs.Invalid)

		again()
		_, err = w.App.Bundles.Deploy(acme, b.ID, []string{"evil"}, bundles.ImportOptions{})
		is.Equal(errs.CodeOf(err), errs.Conflict)
		is.Equal(w.names(t, "evil", "library"), "") // nothing is deployed

		again()
		login, err := w.Sessions.Login(t.Context(), principals.Credentials{
			Tenant: "acme", Domain: "local", Username: "admin", Password: "open sesame",
		})
		is.NoErr(err)
		server := httptest.NewServer(w)
		defer server.Close()
		req, err := http.NewRequest(http.MethodPost, server.URL+"/api/bundles/b/_export", nil)
		is.NoErr(err)
		req.Header.Set("Authorization", "Bearer "+login.Token)
		res, err := http.DefaultClient.Do(req)
		is.NoErr(err)
		_, err = io.Copy(io.Discard, res.Body)
		// the connection is cut when it took long to find out
		is.True(res.StatusCode == http.StatusConflict || err != nil)
		is.NoErr(res.Body.Close())
	})
}

// TestEntriesBeyondArchiveSize: entries that no archive takes, each as the API takes it, are
// refused before anything is written.
func TestEntriesBeyondArchiveSize(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		is, acme := is.New(t), w.as(t, "acme")
		var m bundles.Manifest
		for i := range 257 {
			tag := w.make(t, "acme", "tag", fmt.Sprint("Tag ", i), `{}`)
			m.Entries = append(m.Entries, bundles.Entry{
				Type:     "tagged",
				EntityID: tag,
				Data:     []byte(`{"a":"` + strings.Repeat("x", 65_500) + `"}`),
			})
		}
		_, err := w.Bundles.ExportManifest(acme, m)
		is.Equal(errs.CodeOf(err), errs.Invalid)
		is.True(strings.HasPrefix(
			errs.MessageOf(err), "The entries do not fit into one archive: make several bundles of them. ",
		))
		is.True(strings.HasSuffix(errs.MessageOf(err), "bytes: at most 16777216 are allowed."))
		_, err = w.Bundles.DeployManifest(acme, m, []string{"evil"}, bundles.ImportOptions{})
		is.Equal(errs.CodeOf(err), errs.Invalid)

		m.Entries = m.Entries[:250]
		_, err = w.Bundles.ExportManifest(acme, m)
		is.NoErr(err)
		narrow := opened(t, w.db, func(c *tenantcontent.Config) { c.ArchiveLimits.Members = 252 })
		e, err := narrow.Bundles.ExportManifest(acme, m)
		is.NoErr(err)
		is.NoErr(e.Write(acme, io.Discard)) // as many as there may be
		narrow = opened(t, w.db, func(c *tenantcontent.Config) { c.ArchiveLimits.Members = 251 })
		_, err = narrow.Bundles.ExportManifest(acme, m)
		is.Equal(errs.CodeOf(err), errs.Invalid)
		is.True(strings.Contains(errs.MessageOf(err), "at most 251 members, and this one has 252"))
	})
}

// TestTwiceTheSame: entries without a bundle may not be the same either, however they are named.
func TestTwiceTheSame(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		is, acme := is.New(t), w.as(t, "acme")
		tag, report := w.make(t, "acme", "tag", "Red", `{}`), w.make(t, "acme", "report", "Red", `{}`)
		first := []bundles.Entry{{Type: "global"}, {Type: "tagged", EntityID: tag}, {Type: "report", EntityID: report}}
		_, err := w.Bundles.ExportManifest(acme, bundles.Manifest{Entries: first})
		is.NoErr(err)
		for want, e := range map[string]bundles.Entry{
			"entries[3] is the same as entries[0].": {Type: "global", EntityID: "ignored"},
			"entries[3] is the same as entries[1].": {Type: "tagged", EntityID: "jo:red", Data: []byte(`{"other":1}`)},
		} {
			m := bundles.Manifest{Entries: append(slices.Clone(first), e)}
			_, err := w.Bundles.ExportManifest(acme, m)
			is.Equal(errs.CodeOf(err), errs.Conflict)
			is.Equal(errs.MessageOf(err), want)
			_, err = w.Bundles.DeployManifest(acme, m, []string{"evil"}, bundles.ImportOptions{})
			is.Equal(errs.MessageOf(err), want)
		}
	})
}
