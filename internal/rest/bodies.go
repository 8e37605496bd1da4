package rest

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/drafts/blobs"
)

// File returns the file in a request, to be read once: the multipart field file, or the raw body
// with ?filename=. Without that parameter the file has the name otherwise; if that is empty, the
// parameter is required.
func (r *Request) File(otherwise string) (name, contentType string, content io.Reader, err error) {
	query, err := ParseQuery(r.Request)
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
			return "", "", nil, errs.New(
				errs.Invalid, "Send the file as the multipart field file, or as the raw body with ?filename=.",
			)
		}
		return name, mediaType, r.Body, nil
	}
	if err := r.readForm(nil); err != nil {
		return "", "", nil, err
	}
	if name = query.Get("filename"); name == "" {
		name = r.Part.FileName()
	}
	return name, r.Part.Header.Get("Content-Type"), r.FormFile(), nil
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

// sender reads a request's body as it arrives. The connection of a client that does not send it in
// time is cut, whether a handler reads the body or not.
type sender struct {
	io.ReadCloser
	*transfer
	control *http.ResponseController
	ended   bool
	failed  bool
}

// NewSender returns the sender of a request's body and starts its time-out. It returns nil if there
// is no body.
func NewSender(w *Response, r *http.Request) *sender {
	if r.ContentLength == 0 {
		return nil
	}
	s := &sender{ReadCloser: r.Body, control: &w.Control, transfer: w.Transfers.Begin(w.Control.SetReadDeadline)}
	s.extend()
	r.Body = s
	return s
}

// leave is called when the answer begins: net/http reads what is left of a body before it sends
// one.
func (s *sender) leave() {
	if s != nil && !s.ended {
		s.transfer.end()
		_ = s.control.SetReadDeadline(time.Now().Add(min(time.Second, s.of.timeout()/2)))
	}
}

// Drain reads the rest of a body before the client is told to try again: most clients read no
// answer before they have sent everything, and net/http cuts those with much left to send. It stops
// if a client sends nothing for a second or is slow, and does not wait for one that expects 100
// Continue.
func (s *sender) Drain(r *http.Request) {
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
	n, err := s.Step(func() (int, error) { return s.ReadCloser.Read(p) })
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

// File replies with stored bytes of a version: 200, or 206 for a range of them. With a name the
// browser saves them as a file.
func File(version, contentType, name string, modified time.Time, content io.ReadSeekCloser) (Reply, error) {
	header := map[string]string{"Content-Type": contentType, "Etag": FileTag(version), "Cache-Control": cached}
	if name != "" {
		header["Content-Disposition"] = Disposition(name)
	}
	return Reply{Header: header, Serve: func(w *Response, r *http.Request) error {
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

// Unchanged reports whether a client that reads has the version of a file already, and returns the
// reply to it, 304, then. Other conditions than If-None-Match are for file.
func Unchanged(r *Request, version string) (Reply, bool) {
	tag := FileTag(version)
	if r.Conditions == nil || r.Conditions.Match != nil || r.Header["If-Unmodified-Since"] != nil ||
		!r.Conditions.unchanged(tag) {
		return Reply{}, false
	}
	return Reply{Serve: func(w *Response, _ *http.Request) error {
		w.tag(tag, true)
		return nil
	}}, true
}

// holdFile acquires the memory of a file that is sent: what a blobs.Reader has of it at once.
func (w *Response) holdFile(content io.Seeker) error {
	size, err := content.Seek(0, io.SeekEnd)
	if err == nil {
		_, err = content.Seek(0, io.SeekStart)
	}
	n := min(size, blobs.ChunkSize)
	if err != nil || n <= Small {
		return err
	}
	w.Memory.exact = true
	return w.Memory.Hold(int(n))
}

// FileTag returns the strong entity tag of a file.
func FileTag(version string) string { return `"` + version + `"` }

// maxRanges is how many ranges of a file one answer may have. Each may read a chunk of its own, so
// that the whole file is cheaper than more of them.
const maxRanges = 8

// beyond is a range outside every file.
const beyond = "9223372036854775807-"

// ranges returns a Range header as http.ServeContent reads it, and whether there is one to follow.
// One with another unit than bytes, malformed ranges, or too many of them is to be ignored, where
// http.ServeContent replies 416. Positions that no int64 holds are replaced by the largest int64,
// and the last 0 bytes by a range outside the file.
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
		case !ok || first == "" && !isTo || first != "" && !isFrom || last != "" && !isTo || isFrom && isTo &&
			from > to:
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

// receiver is the http.ResponseWriter of http.ServeContent. It discards the plain text of failures
// and keeps their status.
type receiver struct {
	http.ResponseWriter
	failure error
}

func (w *receiver) WriteHeader(status int) {
	switch {
	case status < http.StatusBadRequest:
		w.ResponseWriter.WriteHeader(status)
	case status < http.StatusInternalServerError:
		w.failure = ContentStatus(status)
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

// Disposition returns a Content-Disposition header that makes browsers save the body as a file.
func Disposition(filename string) string {
	return mime.FormatMediaType("attachment", map[string]string{"filename": filename})
}
