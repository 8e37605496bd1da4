package httpapi

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"slices"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/principals"
)

// avatarRoutes serves the pictures of users.
type avatarRoutes struct{ *api }

// routes returns the rows of the route table.
func (a avatarRoutes) routes() []Route {
	return []Route{
		{Method: get, Pattern: "/api/users/:username/avatar", Name: "getAvatar", Grants: nothing, AnyType: true, Summary: "A user's picture", handle: a.getAvatar},
		{Method: put, Pattern: "/api/users/:username/avatar", Name: "putAvatar", Grants: profiles, Row: "avatar", Query: []string{"filename"}, Summary: "Set a user's picture", handle: a.putAvatar},
		{Method: del, Pattern: "/api/users/:username/avatar", Name: "deleteAvatar", Grants: profiles, Row: "avatar", Writes: InTx, Options: noOptions{}, Summary: "Remove a user's picture", handle: a.deleteAvatar},
	}
}

// avatarBody describes the picture of a principal, or the initials and colors that replace it.
type avatarBody struct {
	Initials    string `json:"initials"`
	ColorIndex  int    `json:"colorIndex"`
	AvatarColor struct {
		Background string `json:"background"`
		Text       string `json:"text"`
	} `json:"avatarColor"`
	AvatarURL string `json:"avatarUrl,omitempty"`
}

func avatar(tenant, id, initials string) avatarBody {
	b := avatarBody{Initials: initials}
	b.ColorIndex, b.AvatarColor.Background, b.AvatarColor.Text = principals.Avatar(tenant, id)
	return b
}

func (a *api) userAvatar(u principals.User) avatarBody {
	b := avatar(u.Tenant, u.Username, u.Initials())
	if u.AvatarUpdatedAt != nil {
		b.AvatarURL = a.href("users", u.Username, "avatar")
	}
	return b
}

// pictures lists the content types that an avatar may have, as detected from its bytes. SVG is not one of them: it can
// carry scripts.
var pictures = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// putAvatar serves PUT /api/users/{username}/avatar, the picture as the raw body or the multipart field file: 200 and the
// user, with the ETag of the picture; 413 past 1 MiB; 415 for anything but a PNG, JPEG, GIF or WebP. One's own, or a superuser anybody's.
func (a avatarRoutes) putAvatar(r *request) (reply, error) {
	_, _, content, err := r.file("avatar")
	if err != nil {
		return reply{}, err
	}
	// Read before the transaction begins: a slow sender must not hold one.
	picture, err := io.ReadAll(io.LimitReader(content, principals.MaxPicture+1))
	if err != nil {
		return reply{}, err
	}
	if !slices.Contains(pictures, http.DetectContentType(picture)) {
		return reply{}, errs.New(errs.Unsupported, "The picture must be a PNG, JPEG, GIF or WebP.")
	}
	leave, err := a.writeSlot(r)
	if err != nil {
		return reply{}, err
	}
	defer leave()
	u, err := a.Principals.SetPicture(r.Context(), r.param("username"), bytes.NewReader(picture))
	answer, err := a.userReply(r)(u, err)
	if err == nil {
		answer.header = map[string]string{"Etag": fileTag(u.PictureVersion())}
	}
	return answer, err
}

// getAvatar serves GET /api/users/{username}/avatar: 200 and the picture; 404.
func (a avatarRoutes) getAvatar(r *request) (reply, error) {
	u, content, err := a.Principals.Picture(r.Context(), r.param("username"))
	if err != nil {
		return reply{}, err
	}
	head := make([]byte, 512)
	n, err := io.ReadFull(content, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return reply{}, errors.Join(err, content.Close())
	}
	return file(u.PictureVersion(), http.DetectContentType(head[:n]), "", *u.AvatarUpdatedAt, content)
}

// deleteAvatar serves DELETE /api/users/{username}/avatar: 200, also when there is none.
func (a avatarRoutes) deleteAvatar(r *request) (reply, error) {
	if _, err := a.Principals.RemovePicture(r.Context(), r.param("username")); err != nil {
		return reply{}, err
	}
	return done()
}
