package files_test

import (
	"context"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/files"
	blobstore "github.com/tenantcontent/tenantcontent/internal/store/blobs"
	filestore "github.com/tenantcontent/tenantcontent/internal/store/files"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/paging"
)

func optionsDownloads(t *testing.T) files.Options {
	db := dbtest.People(t, dbtest.SQLite(t), "jo", "mo", "root")
	return files.Options{Store: filestore.Downloads(db), Blobs: blobstore.New(db)}
}

func some(w io.Writer) error {
	_, err := io.WriteString(w, "some text")
	return err
}

// checkDownload checks that Get and Open find a download, or fail with a code.
func checkDownload(t *testing.T, ctx context.Context, s *files.Downloads, d files.File, want errs.Code) {
	t.Helper()
	is := is.New(t)
	got, err := s.Get(ctx, d.ID)
	_, r, openErr := s.Open(ctx, d.ID)
	if want != "" {
		is.Equal(errs.CodeOf(err), want)
		is.Equal(errs.CodeOf(openErr), want)
		return
	}
	is.NoErr(err)
	is.NoErr(openErr)
	is.Equal(got, d)
	text, err := io.ReadAll(r)
	is.NoErr(err)
	is.Equal(string(text), "some text")
	is.NoErr(r.Close())
}

func TestDownloadIsForItsCreatorAlone(t *testing.T) {
	is, o := is.New(t), optionsDownloads(t)
	now := time.Date(2026, 11, 16, 9, 0, 0, 0, time.UTC)
	o.Lifetime, o.Now = time.Minute, func() time.Time { return now }
	s := files.NewDownloads(o)
	d, err := s.Create(as(t, "acme", "jo"), files.Draft{Filename: "dir/a.txt", ContentType: "text/plain"}, some)
	is.NoErr(err)
	is.Equal(d.Filename+" "+d.ContentType+" "+d.Username, "a.txt text/plain jo")
	checkDownload(t, as(t, "acme", "jo"), s, d, "")
	for _, ctx := range []context.Context{
		as(t, "acme", "mo"), as(t, "acme", "root"), as(t, "evil", "jo"), as(t, "evil", "root"),
	} {
		checkDownload(t, ctx, s, d, errs.NotFound)
	}
	checkDownload(t, t.Context(), s, d, errs.Unauthenticated)
	_, err = s.Create(t.Context(), files.Draft{Filename: "a"}, some)
	is.Equal(errs.CodeOf(err), errs.Unauthenticated)
	now = now.Add(time.Minute)
	checkDownload(t, as(t, "acme", "jo"), s, d, errs.NotFound)
}

func TestDownloadForSuperusers(t *testing.T) {
	is, o := is.New(t), optionsDownloads(t)
	now := time.Date(2026, 11, 16, 9, 0, 0, 0, time.UTC)
	o.Now = func() time.Time { return now }
	s := files.NewDownloads(o)
	d, err := s.Unchecked().CreateForSuperusers(
		t.Context(), "acme", files.Draft{
			Filename: "before.tgz", ContentType: "application/gzip", Lifetime: 7 * 24 * time.Hour,
		}, some,
	)
	is.NoErr(err)
	is.Equal(d.ExpiresAt, now.Add(7*24*time.Hour))
	checkDownload(t, as(t, "acme", "jo"), s, d, errs.NotFound)
	checkDownload(t, as(t, "evil", "root"), s, d, errs.NotFound)
	now = d.ExpiresAt.Add(-time.Microsecond)
	checkDownload(t, as(t, "acme", "root"), s, d, "")
	now = d.ExpiresAt
	checkDownload(t, as(t, "acme", "root"), s, d, errs.NotFound)
}

// TestPageListsWhatGetReturns: a list has what its reader may fetch.
func TestPageListsWhatGetReturns(t *testing.T) {
	is, o := is.New(t), optionsDownloads(t)
	now := time.Date(2026, 11, 16, 9, 0, 0, 0, time.UTC)
	o.Now = func() time.Time { return now }
	s := files.NewDownloads(o)
	for i, name := range []string{"jo", "root", "jo"} {
		_, err := s.Create(as(t, "acme", name), files.Draft{Filename: fmt.Sprint(name, i+1)}, some)
		is.NoErr(err)
		now = now.Add(time.Second)
	}
	_, err := s.Unchecked().CreateForSuperusers(t.Context(), "acme", files.Draft{
		Filename: "all", Lifetime: time.Hour,
	}, some)
	is.NoErr(err)
	list := func(tenant, user string) (names []string) {
		page, err := s.List(as(t, tenant, user), paging.Query{Limit: 10})
		is.NoErr(err)
		is.Equal(page.Total, len(page.Rows))
		for _, d := range page.Rows {
			checkDownload(t, as(t, tenant, user), s, d, "")
			names = append(names, d.Filename)
		}
		return names
	}
	is.Equal(list("acme", "jo"), []string{"jo3", "jo1"}) // the newest first
	is.Equal(list("acme", "root"), []string{"all", "root2"})
	is.Equal(list("acme", "mo"), nil)
	is.Equal(list("evil", "root"), nil) // another tenant
	is.Equal(list("evil", "jo"), nil)
	now = now.Add(time.Hour)
	is.Equal(list("acme", "root"), []string{"root2"}) // the other one has expired
	_, err = s.List(t.Context(), paging.Query{Limit: 10})
	is.Equal(errs.CodeOf(err), errs.Unauthenticated)
}
