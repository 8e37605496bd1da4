package principals

import (
	"context"
	"io"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/clock"
	"github.com/tenantcontent/tenantcontent/internal/drafts/blobs"
	"github.com/tenantcontent/tenantcontent/internal/secure/guard"
)

// MaxPicture is how many bytes a user's picture may have.
const MaxPicture = 1 << 20

// picture is the id of a picture's bytes: each picture has its own.
type picture string

// Version changes with the bytes of the picture.
func (p picture) Version() string { return guard.Version(string(p)) }

// PictureVersion changes with the bytes of the user's picture; "" without one.
func (u User) PictureVersion() string {
	if u.AvatarID == nil {
		return ""
	}
	return picture(*u.AvatarID).Version()
}

// PutPicture replaces a user's picture. Users set their own, superusers anybody's. It does not
// check that the bytes are a picture.
// Errors: errs.Forbidden; errs.NotFound; errs.TooLarge past MaxPicture; r's own.
func (s *Service) PutPicture(ctx context.Context, username string, r io.Reader) (User, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return User{}, err
	}
	var u User
	err = s.store.InTx(ctx, func(ctx context.Context) error {
		id := clock.Clock{}.NewID() // no answer shows it
		u, err = s.changePicture(ctx, a, username, &id)
		if err != nil {
			return err
		}
		_, err = blobs.Put(ctx, s.blobs, a.Tenant, id, MaxPicture, s.clock.Stamp(), r)
		return err
	})
	return u, err
}

// DeletePicture removes the picture of a user. A user without one stays. Errors: errs.Forbidden;
// errs.NotFound.
func (s *Service) DeletePicture(ctx context.Context, username string) (User, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return User{}, err
	}
	var u User
	err = s.store.InTx(ctx, func(ctx context.Context) error {
		u, err = s.changePicture(ctx, a, username, nil)
		return err
	})
	return u, err
}

// changePicture sets the id of a user's picture, and removes the bytes of the previous one.
func (s *Service) changePicture(ctx context.Context, a actor.Actor, username string, id *string) (User, error) {
	var before *string
	u, err := s.UpdateUser(ctx, username, func(u *User) error {
		if err := checkPicture(ctx, u.AvatarID); err != nil {
			return err
		}
		before, u.AvatarID, u.AvatarUpdatedAt = u.AvatarID, id, nil
		if now := s.clock.Stamp(); id != nil {
			u.AvatarUpdatedAt = &now
		}
		return nil
	})
	if err != nil || before == nil {
		return u, err
	}
	return u, s.blobs.Delete(ctx, a.Tenant, *before)
}

// checkPicture checks the condition of a write against the picture as it is before.
func checkPicture(ctx context.Context, id *string) error {
	if id == nil {
		return guard.Of(ctx, "avatar").Missing()
	}
	return guard.Check(ctx, "avatar", picture(*id))
}

// Picture returns a user's picture to any session; the caller closes it. Errors: errs.NotFound,
// also for a user without one.
func (s *Service) Picture(ctx context.Context, username string) (User, io.ReadSeekCloser, error) {
	u, err := s.User(ctx, username)
	if err != nil {
		return User{}, nil, err
	}
	if u.AvatarID == nil {
		return User{}, nil, errs.New(errs.NotFound, "The user has no picture.")
	}
	r, err := s.blobs.Open(ctx, u.Tenant, *u.AvatarID)
	return u, r, err
}
