package files_test

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/files"
	"github.com/tenantcontent/tenantcontent/internal/secure/guard"
	blobstore "github.com/tenantcontent/tenantcontent/internal/store/blobs"
	filestore "github.com/tenantcontent/tenantcontent/internal/store/files"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

func optionsUploads(t *testing.T) files.Options {
	db := dbtest.People(t, dbtest.SQLite(t), "jo", "mo", "root")
	return files.Options{Store: filestore.Uploads(db), Blobs: blobstore.New(db)}
}

// as returns a context of an actor: "jo", or "root", who is a superuser.
func as(t *testing.T, tenant, user string) context.Context {
	return actor.With(t.Context(), actor.Actor{Tenant: tenant, User: user, Superuser: user == "root"})
}

func TestUploadIsForItsUploaderAndSuperusers(t *testing.T) {
	is, s := is.New(t), files.NewUploads(optionsUploads(t))
	u, err := s.Create(as(t, "acme", "jo"), files.Draft{
		Filename: "dir/a.txt", ContentType: "text/plain",
	}, strings.NewReader("some text"))
	is.NoErr(err)
	is.Equal(u.Filename+" "+u.ContentType+" "+u.Username, "a.txt text/plain jo")
	for _, ctx := range []context.Context{as(t, "acme", "jo"), as(t, "acme", "root")} {
		got, err := s.Get(ctx, u.ID)
		is.NoErr(err)
		is.Equal(got, u)
		got, r, err := s.Open(ctx, u.ID)
		is.NoErr(err)
		is.Equal(got, u)
		text, err := io.ReadAll(r)
		is.NoErr(err)
		is.Equal(string(text), "some text")
		is.NoErr(r.Close())
	}
	for want, callers := range map[errs.Code][]context.Context{
		errs.NotFound:        {as(t, "acme", "mo"), as(t, "evil", "jo"), as(t, "evil", "root")},
		errs.Unauthenticated: {t.Context()},
	} {
		for _, ctx := range callers {
			_, err := s.Get(ctx, u.ID)
			is.Equal(errs.CodeOf(err), want)
			_, _, err = s.Open(ctx, u.ID)
			is.Equal(errs.CodeOf(err), want)
			is.Equal(errs.CodeOf(s.Delete(ctx, u.ID)), want)
		}
	}
	_, err = s.Create(t.Context(), files.Draft{Filename: "a"}, strings.NewReader("x"))
	is.Equal(errs.CodeOf(err), errs.Unauthenticated)
	is.NoErr(s.Delete(as(t, "acme", "root"), strings.ToUpper(u.ID)))
	is.Equal(errs.CodeOf(s.Delete(as(t, "acme", "jo"), u.ID)), errs.NotFound)
}

func TestDeleteOfUploadChecksItsCondition(t *testing.T) {
	is, s, jo := is.New(t), files.NewUploads(optionsUploads(t)), as(t, "acme", "jo")
	u, err := s.Create(jo, files.Draft{Filename: "a"}, strings.NewReader("x"))
	is.NoErr(err)
	for _, fits := range []bool{false, true} {
		ctx := guard.With(jo, &guard.Guard{Row: "upload", Fits: func(version string, exists bool) bool {
			is.Equal(version, u.Version())
			return fits && exists
		}})
		err := s.Delete(ctx, u.ID)
		is.Equal(err == nil, fits)
		is.True(fits || errs.CodeOf(err) == errs.Stale)
	}
}

func TestLimitsOfUploads(t *testing.T) {
	is, o, jo := is.New(t), optionsUploads(t), as(t, "acme", "jo")
	now := time.Date(2026, 11, 16, 9, 0, 0, 0, time.UTC)
	o.Limit, o.Quota, o.Lifetime, o.Now = 3, 5, time.Minute, func() time.Time { return now }
	s := files.NewUploads(o)
	_, err := s.Create(jo, files.Draft{Filename: "a"}, strings.NewReader("1234"))
	is.Equal(errs.CodeOf(err), errs.TooLarge)
	u, err := s.Create(jo, files.Draft{Filename: "a"}, strings.NewReader("123"))
	is.NoErr(err)
	_, err = s.Create(jo, files.Draft{Filename: "b"}, strings.NewReader("123"))
	is.Equal(errs.CodeOf(err), errs.Full) // 2 bytes are left
	now = now.Add(time.Minute)
	_, err = s.Get(jo, u.ID)
	is.Equal(errs.CodeOf(err), errs.NotFound)
	is.Equal(errs.CodeOf(s.Delete(jo, u.ID)), errs.NotFound)
}
