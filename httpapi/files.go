package httpapi

import (
	"context"
	"io"

	"github.com/tenantcontent/tenantcontent/internal/rest"
	"github.com/tenantcontent/tenantcontent/internal/rest/openapi"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/files"
	"github.com/tenantcontent/tenantcontent/hal"
)

// fileRoutes serves staged files and downloads.
type fileRoutes struct{ *api }

// routes returns the rows of the route table.
func (a fileRoutes) routes() []rest.Route {
	return []rest.Route{
		{
			Method:  post,
			Pattern: "/api/uploads",
			Name:    "createUpload",
			Grants:  nothing,
			Heavy:   rest.Brief,
			Query:   []string{"filename"},
			Summary: "Stage a file",
			Takes:   openapi.Bytes("*/*", "multipart/form-data"),
			Gives:   openapi.Created(openapi.One[uploadBody]()),
			Fails:   []int{400},
			Handle:  a.createUpload,
		},
		{
			Method:  get,
			Pattern: "/api/uploads/:id",
			Name:    "getUpload",
			Grants:  nothing,
			Summary: "A staged file",
			Gives:   openapi.OK(openapi.One[uploadBody]()),
			Fails:   []int{404},
			Handle:  a.getUpload,
		},
		{
			Method:  del,
			Pattern: "/api/uploads/:id",
			Name:    "deleteUpload",
			Grants:  nothing,
			Row:     "upload",
			Writes:  rest.InTx,
			Options: rest.NoOptions{},
			Summary: "Remove a staged file",
			Gives:   openapi.OK(openapi.None()),
			Fails:   []int{404},
			Handle:  a.deleteUpload,
		},
		{
			Method:  get,
			Pattern: "/api/downloads",
			Name:    "listDownloads",
			Grants:  nothing,
			Query:   paged,
			Summary: "The files made for the caller",
			Gives:   openapi.OK(openapi.Page[downloadBody]("inf:download")),
			Fails:   []int{400},
			Handle:  a.listDownloads,
		},
		{
			Method:  get,
			Pattern: "/api/downloads/:id",
			Name:    "getDownload",
			Grants:  nothing,
			Summary: "A file made for the caller",
			Gives:   openapi.OK(openapi.One[downloadBody]()),
			Fails:   []int{404},
			Handle:  a.getDownload,
		},
		{
			Method:  get,
			Pattern: "/api/downloads/:id/content",
			Name:    "getDownloadContent",
			Grants:  nothing,
			Heavy:   rest.Brief,
			AnyType: true,
			Summary: "The bytes of a download",
			Gives:   openapi.Answers{200: openapi.Bytes("*/*"), 206: openapi.Bytes("*/*"), 304: openapi.None()},
			Fails:   []int{404, 412, 416},
			Handle:  a.getDownloadContent,
		},
	}
}

// uploadBody is an upload as the API writes it.
type uploadBody struct {
	ID          string   `json:"id"`
	Filename    string   `json:"filename"`
	Size        int64    `json:"size"`
	ContentType string   `json:"contentType"`
	CreatedAt   hal.Time `json:"createdAt"`
	ExpiresAt   hal.Time `json:"expiresAt"`
}

// Relations implements openapi.Related.
func (uploadBody) Relations() openapi.Relations { return openapi.Relations{} }

func (a fileRoutes) upload(u files.File) hal.Resource {
	return hal.Resource{Links: hal.Self(a.href("uploads", u.ID)), Row: u, Value: uploadBody{
		ID: u.ID, Filename: u.Filename, Size: u.Size, ContentType: u.ContentType,
		CreatedAt: hal.Time(u.CreatedAt), ExpiresAt: hal.Time(u.ExpiresAt),
	}}
}

// downloadBody is a download as the API writes it.
type downloadBody struct {
	Type     string `json:"type"`
	ID       string `json:"id"`
	Filename string `json:"filename"`
	Size     int64  `json:"size"`
	Chunks   int    `json:"chunks"`
	User     string `json:"user"`
	Created  int64  `json:"created"` // epoch milliseconds
}

// Relations implements openapi.Related.
func (downloadBody) Relations() openapi.Relations {
	return openapi.Relations{Links: []string{"inf:content", "inf:downloads"}}
}

func (a fileRoutes) download(d files.File) hal.Resource {
	links := hal.Self(a.href("downloads", d.ID)).With(
		"inf:content", a.href("downloads", d.ID, "content"),
	).With("inf:downloads", a.href("downloads"))
	return hal.Resource{Links: links, Value: downloadBody{
		Type: "download", ID: d.ID, Filename: d.Filename, Size: d.Size, Chunks: d.Chunks, User: d.Username,
		Created: d.CreatedAt.UnixMilli(),
	}}
}

// createUpload serves POST /api/uploads: 201 and the upload, from the multipart field file or, with
// ?filename=, from the raw body. 413 when it has too many bytes.
func (a fileRoutes) createUpload(r *rest.Request) (rest.Reply, error) {
	name, contentType, content, err := r.File("")
	if err != nil {
		return rest.Reply{}, err
	}
	u, err := a.Uploads.Create(r.Context(), files.Draft{Filename: name, ContentType: contentType}, content)
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.Created(a.href("uploads", u.ID), a.upload(u))
}

// getUpload serves GET /api/uploads/{id}: 200 and the upload; 404.
func (a fileRoutes) getUpload(r *rest.Request) (rest.Reply, error) {
	u, err := a.Uploads.Get(r.Context(), r.Param("id"))
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.OK(a.upload(u))
}

// deleteUpload serves DELETE /api/uploads/{id}: 200; 404.
func (a fileRoutes) deleteUpload(r *rest.Request) (rest.Reply, error) {
	if err := a.Uploads.Delete(r.Context(), r.Param("id")); err != nil {
		return rest.Reply{}, err
	}
	return rest.Done()
}

// staged opens an upload that a body names. It returns errs.Invalid, not errs.NotFound, if there is
// no such upload.
func (a fileRoutes) staged(ctx context.Context, uploadID string) (io.ReadSeekCloser, error) {
	if uploadID == "" {
		return nil, errs.New(errs.Invalid, "uploadId is required")
	}
	_, file, err := a.Uploads.Open(ctx, uploadID)
	if errs.CodeOf(err) == errs.NotFound {
		return nil, errs.New(errs.Invalid, "uploadId names no upload of yours, or one that has expired")
	}
	return file, err
}

// listDownloads serves GET /api/downloads: the caller's downloads and, for a superuser, those that
// are kept for all superusers of the tenant, such as what a deploy from another tenant has
// replaced. The newest are first; sort is createdAt or -createdAt.
func (a fileRoutes) listDownloads(r *rest.Request) (rest.Reply, error) {
	q, err := r.Page(100)
	if err != nil {
		return rest.Reply{}, err
	}
	page, err := a.Downloads.List(r.Context(), q)
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.OK(rest.Collection(a.BaseURL, r, q, page, "inf:download", nil, a.download))
}

// getDownload serves GET /api/downloads/{id}: 200 and the download with a link to its bytes; 404.
func (a fileRoutes) getDownload(r *rest.Request) (rest.Reply, error) {
	d, err := a.Downloads.Get(r.Context(), r.Param("id"))
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.OK(a.download(d))
}

// getDownloadContent serves GET /api/downloads/{id}/content: 200 and the bytes, 206 for a range of
// them; 404; 416 for a range outside of them.
func (a fileRoutes) getDownloadContent(r *rest.Request) (rest.Reply, error) {
	d, content, err := a.Downloads.Open(r.Context(), r.Param("id"))
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.File(d.Version(), d.ContentType, d.Filename, d.CreatedAt, content)
}
