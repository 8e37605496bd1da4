package principals_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"testing/iotest"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/principals"
)

func picture(t *testing.T, f *fixture, ctx context.Context, name string) string {
	t.Helper()
	_, r, err := f.Picture(ctx, name)
	is.New(t).NoErr(err)
	b, err := io.ReadAll(r)
	is.New(t).NoErr(errors.Join(err, r.Close()))
	return string(b)
}

func TestPicture(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		f.user(t, "jo")
		_, _, err := f.Picture(self(t, "mia"), "jo")
		is.Equal(code(err), errs.NotFound)

		u, err := f.PutPicture(self(t, "jo"), "jo", bytes.NewReader([]byte("first")))
		is.NoErr(err)
		first := *u.AvatarID
		is.Equal(*u.AvatarUpdatedAt, f.now)
		is.Equal(picture(t, f, self(t, "mia"), "jo"), "first") // every session sees it

		_, err = f.PutPicture(root(t), "jo", bytes.NewReader([]byte("second")))
		is.NoErr(err)
		is.Equal(picture(t, f, root(t), "jo"), "second")
		_, err = f.blobs.Open(t.Context(), "acme", first)
		is.Equal(code(err), errs.NotFound) // the one before is gone

		u, err = f.DeletePicture(self(t, "jo"), "jo")
		is.NoErr(err)
		is.Equal(u.AvatarID, nil)
		is.Equal(u.AvatarUpdatedAt, nil)
		_, err = f.DeletePicture(self(t, "jo"), "jo")
		is.NoErr(err)
	})
}

func TestPictureOfSomebodyElse(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		f.user(t, "jo")
		u, err := f.PutPicture(root(t), "jo", bytes.NewReader([]byte("mine")))
		is.NoErr(err)
		evil := as(t, actor.Actor{Tenant: "evil", User: "jo", Superuser: true})
		for name, c := range map[string]struct {
			ctx  context.Context
			want errs.Code
		}{
			"another user":   {self(t, "mia"), errs.Forbidden},
			"another tenant": {evil, errs.NotFound},
			"nobody":         {t.Context(), errs.Unauthenticated},
		} {
			t.Run(name, func(t *testing.T) {
				is := is.New(t)
				_, err := f.PutPicture(c.ctx, "jo", bytes.NewReader([]byte("theirs")))
				is.Equal(code(err), c.want)
				_, err = f.DeletePicture(c.ctx, "jo")
				is.Equal(code(err), c.want)
			})
		}
		_, _, err = f.Picture(evil, "jo")
		is.Equal(code(err), errs.NotFound)
		is.Equal(picture(t, f, root(t), "jo"), "mine")

		is.NoErr(f.DeleteUser(root(t), "jo", ""))
		_, err = f.blobs.Open(t.Context(), "acme", *u.AvatarID)
		is.Equal(code(err), errs.NotFound) // it goes with the user
	})
}

func TestFailedPictureKeepsTheOneBefore(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		f.user(t, "jo")
		_, err := f.PutPicture(self(t, "jo"), "jo", bytes.NewReader([]byte("before")))
		is.NoErr(err)
		_, err = f.PutPicture(self(t, "jo"), "jo", bytes.NewReader(make([]byte, principals.MaxPicture+1)))
		is.Equal(code(err), errs.TooLarge)
		fault := errors.New("fault")
		_, err = f.PutPicture(
			self(t, "jo"), "jo", io.MultiReader(bytes.NewReader([]byte("half")), iotest.ErrReader(fault)),
		)
		is.True(errors.Is(err, fault))
		is.Equal(picture(t, f, self(t, "jo"), "jo"), "before")
	})
}
