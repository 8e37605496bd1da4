package httpapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/files"
	"github.com/tenantcontent/tenantcontent/hal"
	"github.com/tenantcontent/tenantcontent/internal/drafts/blobs"
)

// fileRoutes serves staged files and downloads.
type fileRoutes struct{ *api }

// routes returns the rows of the route table.
func (a fileRoutes) routes() []Route {
	return []Route{
		{Method: post, Pattern: "/api/uploads", Name: "createUpload", Grants: nothing, Heavy: brief, Query: []string{"filename"}, Summary: "Stage a file", handle: a.createUpload},
		{Method: get, Pattern: "/api/uploads/:id", Name: "getUpload", Grants: nothing, Summary: "A staged file", handle: a.getUpload},
		{Method: del, Pattern: "/api/uploads/:id", Name: "deleteUpload", Grants: nothing, Row: "upload", Writes: InTx, Options: noOptions{}, Summary: "Remove a staged file", handle: a.deleteUpload},
		{Method: get, Pattern: "/api/downloads", Name: "listDownloads", Grants: nothing, Query: paged, Summary: "The files made for the caller", handle: a.listDownloads},
		{Method: get, Pattern: "/api/downloads/:id", Name: "getDownload", Grants: nothing, Summary: "A file made for the caller", handle: a.getDownload},
		{Method: get, Pattern: "/api/downloads/:id/content", Name: "getDownloadContent", Grants: nothing, Heavy: brief, AnyType: true, Summary: "The bytes of a download", handle: a.getDownloadContent},
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

func (a *api) download(d files.File) hal.Resource {
	links := hal.Self(a.href("downloads", d.ID)).With("inf:content", a.href("downloads", d.ID, "content")).With("inf:downloads", a.href("downloads"))
	return hal.Resource{Links: links, Value: downloadBody{
		Type: "download", ID: d.ID, Filename: d.Filename, Size: d.Size, Chunks: d.Chunks, User: d.Username,
		Created: d.CreatedAt.UnixMilli(),
	}}
}

// createUpload serves POST /api/uploads: 201 and the upload, from the multipart field file or, with ?filename=, from the
// raw body. 413 when it has too many bytes.
func (a fileRoutes) createUpload(r *request) (reply, error) {
	name, contentType, content, err := r.file("")
	if err != nil {
		return reply{}, err
	}
	u, err := a.Uploads.Create(r.Context(), name, contentType, content)
	if err != nil {
		return reply{}, err
	}
	return created(a.href("uploads", u.ID), a.upload(u))
}

// getUpload serves GET /api/uploads/{id}: 200 and the upload; 404.
func (a fileRoutes) getUpload(r *request) (reply, error) {
	u, err := a.Uploads.Get(r.Context(), r.param("id"))
	if err != nil {
		return reply{}, err
	}
	return ok(a.upload(u))
}

// deleteUpload serves DELETE /api/uploads/{id}: 200; 404.
func (a fileRoutes) deleteUpload(r *request) (reply, error) {
	if err := a.Uploads.Delete(r.Context(), r.param("id")); err != nil {
		return reply{}, err
	}
	return done()
}

// file returns the file in a request, to be read once: the multipart field file, or the raw body with ?filename=. Without
// that parameter the file has the name otherwise; if that is empty, the parameter is required.
func (r *request) file(otherwise string) (name, contentType string, content io.Reader, err error) {
	query, err := parseQuery(r.Request)
	if err != nil {
		return "", "", nil, err
	}
	given := r.Header.Get("Content-Type")
	mediaType, _, err := mime.ParseMediaType(given)
	if err != nil && given != "" {
		return "", "", nil, errs.Wrap(errs.Invalid, err, "The Content-Type header cannot be read.")
	}
	if mediaType != "multipart/form-data" {
		if name = cmp.Or(query.Get("filename"), otherwise); name == "" {
			return "", "", nil, errs.New(errs.Invalid, "Send the file as the multipart field file, or as the raw body with ?filename=.")
		}
		return name, mediaType, r.Body, nil
	}
	if err := r.readForm(nil); err != nil {
		return "", "", nil, err
	}
	if name = query.Get("filename"); name == "" {
		name = r.part.FileName()
	}
	return name, r.part.Header.Get("Content-Type"), r.formFile(), nil
}

// cut is the file in a form. Its Read returns errs.Invalid if the form ends before the file does.
type cut struct{ io.Reader }

func (c cut) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) && errs.CodeOf(err) == errs.Internal {
		err = errs.Wrap(errs.Invalid, err, "The form cannot be read to its end.")
	}
	return n, err
}

// sender reads a request's body as it arrives. The connection of a client that does not send it in time is cut, whether a
// handler reads the body or not.
type sender struct {
	io.ReadCloser
	*transfer
	control *http.ResponseController
	ended   bool
	failed  bool
}

// newSender returns the sender of a request's body and starts its time-out. It returns nil if there is no body.
func newSender(w *response, r *http.Request) *sender {
	if r.ContentLength == 0 {
		return nil
	}
	s := &sender{ReadCloser: r.Body, control: &w.control, transfer: w.transfers.begin(w.control.SetReadDeadline)}
	s.extend()
	r.Body = s
	return s
}

// leave is called when the answer begins: net/http reads what is left of a body before it sends one.
func (s *sender) leave() {
	if s != nil && !s.ended {
		s.transfer.end()
		_ = s.control.SetReadDeadline(time.Now().Add(min(time.Second, s.of.timeout()/2)))
	}
}

// drain reads the rest of a body before the client is told to try again: most clients read no answer before they have sent
// everything, and net/http cuts those with much left to send. It stops if a client sends nothing for a second or is slow, and
// does not wait for one that expects 100 Continue.
func (s *sender) drain(r *http.Request) {
	if s == nil || s.ended || s.failed || s.bytes == 0 && r.Header.Get("Expect") != "" {
		return
	}
	chunk := make([]byte, 32<<10)
	for begun := time.Now(); time.Since(begun) < s.of.timeout(); {
		_ = s.control.SetReadDeadline(time.Now().Add(min(time.Second, s.of.timeout()/2)))
		if _, err := s.ReadCloser.Read(chunk); err != nil {
			s.ended = errors.Is(err, io.EOF)
			break
		}
	}
	s.transfer.end()
	if s.ended {
		_ = s.control.SetReadDeadline(time.Time{})
	}
}

// end is called when the request has been answered.
func (s *sender) end() {
	if s != nil {
		s.transfer.end()
	}
}

func (s *sender) Read(p []byte) (int, error) {
	n, err := s.step(func() (int, error) { return s.ReadCloser.Read(p) })
	switch {
	case errors.Is(err, io.EOF):
		s.ended = true
		s.transfer.end()
		_ = s.control.SetReadDeadline(time.Time{}) // what the handler does next may take longer
	case err != nil:
		s.failed = true
		err = errs.Wrap(errs.Invalid, err, "The body could not be read to its end.")
	}
	return n, err
}

// staged opens an upload that a body names. It returns errs.Invalid, not errs.NotFound, if there is no such upload.
func (a *api) staged(ctx context.Context, uploadID string) (io.ReadSeekCloser, error) {
	if uploadID == "" {
		return nil, errs.New(errs.Invalid, "uploadId is required")
	}
	_, file, err := a.Uploads.Open(ctx, uploadID)
	if errs.CodeOf(err) == errs.NotFound {
		return nil, errs.New(errs.Invalid, "uploadId names no upload of yours, or one that has expired")
	}
	return file, err
}

// listDownloads serves GET /api/downloads: the caller's downloads and, for a superuser, those that are kept for all
// superusers of the tenant, such as what a deploy from another tenant has replaced. The newest are first; sort is
// createdAt or -createdAt.
func (a fileRoutes) listDownloads(r *request) (reply, error) {
	q, err := r.page(100)
	if err != nil {
		return reply{}, err
	}
	page, err := a.Downloads.Page(r.Context(), q)
	if err != nil {
		return reply{}, err
	}
	return ok(collection(a.api, r, q, page, "inf:download", nil, a.download))
}

// getDownload serves GET /api/downloads/{id}: 200 and the download with a link to its bytes; 404.
func (a fileRoutes) getDownload(r *request) (reply, error) {
	d, err := a.Downloads.Get(r.Context(), r.param("id"))
	if err != nil {
		return reply{}, err
	}
	return ok(a.download(d))
}

// getDownloadContent serves GET /api/downloads/{id}/content: 200 and the bytes, 206 for a range of them; 404; 416 for a
// range outside of them.
func (a fileRoutes) getDownloadContent(r *request) (reply, error) {
	d, content, err := a.Downloads.Open(r.Context(), r.param("id"))
	if err != nil {
		return reply{}, err
	}
	return file(d.Version(), d.ContentType, d.Filename, d.CreatedAt, content)
}

// file replies with stored bytes of a version: 200, or 206 for a range of them. With a name the browser saves them as a file.
func file(version, contentType, name string, modified time.Time, content io.ReadSeekCloser) (reply, error) {
	header := map[string]string{"Content-Type": contentType, "Etag": fileTag(version), "Cache-Control": cached}
	if name != "" {
		header["Content-Disposition"] = disposition(name)
	}
	return reply{header: header, serve: func(w *response, r *http.Request) error {
		defer func() { _ = content.Close() }()
		if err := w.holdFile(content); err != nil {
			return err
		}
		if value, ok := ranges(r.Header.Values("Range")); ok {
			r.Header.Set("Range", value)
		} else {
			r.Header.Del("Range")
		}
		to := &receiver{ResponseWriter: w}
		http.ServeContent(to, r, "", modified, content)
		return to.failure
	}}, nil
}

// unchanged reports whether a client that reads has the version of a file already, and returns the reply to it, 304, then. Other
// conditions than If-None-Match are for file.
func unchanged(r *request, version string) (reply, bool) {
	tag := fileTag(version)
	if r.conditions == nil || r.conditions.match != nil || r.Header["If-Unmodified-Since"] != nil || !r.conditions.unchanged(tag) {
		return reply{}, false
	}
	return reply{serve: func(w *response, _ *http.Request) error {
		w.tag(tag, true)
		return nil
	}}, true
}

// holdFile acquires the memory of a file that is sent: what a blobs.Reader has of it at once.
func (w *response) holdFile(content io.Seeker) error {
	size, err := content.Seek(0, io.SeekEnd)
	if err == nil {
		_, err = content.Seek(0, io.SeekStart)
	}
	n := min(size, blobs.ChunkSize)
	if err != nil || n <= small {
		return err
	}
	w.memory.exact = true
	return w.memory.hold(int(n))
}

// fileTag returns the strong entity tag of a file.
func fileTag(version string) string { return `"` + version + `"` }

// maxRanges is how many ranges of a file one answer may have. Each may read a chunk of its own, so that the whole file is
// cheaper than more of them.
const maxRanges = 8

// beyond is a range outside every file.
const beyond = "9223372036854775807-"

// ranges returns a Range header as http.ServeContent reads it, and whether there is one to follow. One with another unit than
// bytes, malformed ranges, or too many of them is to be ignored, where http.ServeContent replies 416. Positions that no int64
// holds are replaced by the largest int64, and the last 0 bytes by a range outside the file.
func ranges(values []string) (string, bool) {
	unit, set, ok := strings.Cut(strings.Join(values, ","), "=")
	if !ok || !strings.EqualFold(unit, "bytes") || strings.Count(set, ",") >= maxRanges {
		return "", false
	}
	var all []string
	for one := range strings.SplitSeq(set, ",") {
		if one = strings.Trim(one, " \t"); one == "" {
			continue
		}
		first, last, ok := strings.Cut(one, "-")
		from, isFrom := position(first)
		to, isTo := position(last)
		switch {
		case !ok || first == "" && !isTo || first != "" && !isFrom || last != "" && !isTo || isFrom && isTo && from > to:
			return "", false
		case first == "" && to == 0:
			all = append(all, beyond)
		case first == "":
			all = append(all, fmt.Sprintf("-%d", to))
		case last == "":
			all = append(all, fmt.Sprintf("%d-", from))
		default:
			all = append(all, fmt.Sprintf("%d-%d", from, to))
		}
	}
	return "bytes=" + strings.Join(all, ","), len(all) > 0
}

// position reads a number of digits alone, the largest int64 for one that is larger.
func position(digits string) (n int64, ok bool) {
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return 0, false
	}
	n, _ = strconv.ParseInt(digits, 10, 64) // of a larger one it is the largest
	return n, true
}

// receiver is the http.ResponseWriter of http.ServeContent. It discards the plain text of failures and keeps their status.
type receiver struct {
	http.ResponseWriter
	failure error
}

func (w *receiver) WriteHeader(status int) {
	switch {
	case status < http.StatusBadRequest:
		w.ResponseWriter.WriteHeader(status)
	case status < http.StatusInternalServerError:
		w.failure = contentStatus(status)
	default:
		w.failure = fmt.Errorf("http.ServeContent: %d", status)
	}
}

func (w *receiver) Write(p []byte) (int, error) {
	if w.failure != nil {
		return len(p), nil
	}
	return w.ResponseWriter.Write(p)
}

// disposition returns a Content-Disposition header that makes browsers save the body as a file.
func disposition(filename string) string {
	return mime.FormatMediaType("attachment", map[string]string{"filename": filename})
}
