package httpapi

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"slices"

	"github.com/tenantcontent/tenantcontent/internal/rest"
	"github.com/tenantcontent/tenantcontent/internal/rest/openapi"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/principals"
)

// avatarRoutes serves the pictures of users.
type avatarRoutes struct{ *api }

// routes returns the rows of the route table.
func (a avatarRoutes) routes() []rest.Route {
	return []rest.Route{
		{
			Method:  get,
			Pattern: "/api/users/:username/avatar",
			Name:    "getAvatar",
			Grants:  nothing,
			AnyType: true,
			Summary: "A user's picture",
			Gives:   openapi.OK(openapi.Bytes("image/*")),
			Fails:   []int{404},
			Handle:  a.getAvatar,
		},
		{
			Method:  put,
			Pattern: "/api/users/:username/avatar",
			Name:    "putAvatar",
			Grants:  profiles,
			Row:     "avatar",
			Query:   []string{"filename"},
			Summary: "Set a user's picture",
			Takes:   openapi.Bytes("*/*", "multipart/form-data"),
			Gives:   openapi.OK(openapi.One[userBody]()),
			Fails:   []int{403},
			Handle:  a.putAvatar,
		},
		{
			Method:  del,
			Pattern: "/api/users/:username/avatar",
			Name:    "deleteAvatar",
			Grants:  profiles,
			Row:     "avatar",
			Writes:  rest.InTx,
			Options: rest.NoOptions{},
			Summary: "Remove a user's picture",
			Gives:   openapi.OK(openapi.None()),
			Fails:   []int{403, 404},
			Handle:  a.deleteAvatar,
		},
	}
}

// avatarBody describes the picture of a principal, or the initials and colors that replace it.
type avatarBody struct {
	Initials    string          `json:"initials"`
	ColorIndex  int             `json:"colorIndex"`
	AvatarColor avatarColorBody `json:"avatarColor"`
	AvatarURL   string          `json:"avatarUrl,omitempty"`
}

// avatarColorBody are the colors of the initials, in hex.
type avatarColorBody struct {
	Background string `json:"background"`
	Text       string `json:"text"`
}

func avatar(tenant, id, initials string) avatarBody {
	b := avatarBody{Initials: initials}
	b.ColorIndex, b.AvatarColor.Background, b.AvatarColor.Text = principals.Avatar(tenant, id)
	return b
}

func (a userRoutes) userAvatar(u principals.User) avatarBody {
	b := avatar(u.Tenant, u.Username, u.Initials())
	if u.AvatarUpdatedAt != nil {
		b.AvatarURL = a.href("users", u.Username, "avatar")
	}
	return b
}

// pictures lists the content types that an avatar may have, as detected from its bytes. SVG is not
// one of them: it can carry scripts.
var pictures = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// putAvatar serves PUT /api/users/{username}/avatar, the picture as the raw body or the multipart
// field file: 200 and the user, with the ETag of the picture; 413 past 1 MiB; 415 for anything but
// a PNG, JPEG, GIF or WebP. One's own, or a superuser anybody's.
func (a avatarRoutes) putAvatar(r *rest.Request) (rest.Reply, error) {
	_, _, content, err := r.File("avatar")
	if err != nil {
		return rest.Reply{}, err
	}
	// Read before the transaction begins: a slow sender must not hold one.
	picture, err := io.ReadAll(io.LimitReader(content, principals.MaxPicture+1))
	if err != nil {
		return rest.Reply{}, err
	}
	if !slices.Contains(pictures, http.DetectContentType(picture)) {
		return rest.Reply{}, errs.New(errs.Unsupported, "The picture must be a PNG, JPEG, GIF or WebP.")
	}
	leave, err := r.Slot()
	if err != nil {
		return rest.Reply{}, err
	}
	defer leave()
	u, err := a.Principals.PutPicture(r.Context(), r.Param("username"), bytes.NewReader(picture))
	answer, err := userRoutes(a).userReply(r)(u, err)
	if err == nil {
		answer.Header = map[string]string{"Etag": rest.FileTag(u.PictureVersion())}
	}
	return answer, err
}

// getAvatar serves GET /api/users/{username}/avatar: 200 and the picture; 404.
func (a avatarRoutes) getAvatar(r *rest.Request) (rest.Reply, error) {
	u, content, err := a.Principals.Picture(r.Context(), r.Param("username"))
	if err != nil {
		return rest.Reply{}, err
	}
	head := make([]byte, 512)
	n, err := io.ReadFull(content, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return rest.Reply{}, errors.Join(err, content.Close())
	}
	return rest.File(u.PictureVersion(), http.DetectContentType(head[:n]), "", *u.AvatarUpdatedAt, content)
}

// deleteAvatar serves DELETE /api/users/{username}/avatar: 200, also when there is none.
func (a avatarRoutes) deleteAvatar(r *rest.Request) (rest.Reply, error) {
	if _, err := a.Principals.DeletePicture(r.Context(), r.Param("username")); err != nil {
		return rest.Reply{}, err
	}
	return rest.Done()
}
