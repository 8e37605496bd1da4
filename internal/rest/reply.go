package rest

import (
	"io"
	"iter"
	"maps"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/hal"
	"github.com/tenantcontent/tenantcontent/internal/limits/limiter"
	"github.com/tenantcontent/tenantcontent/internal/limits/spool"
)

// Reply is the answer that a handler returns: a status, headers, and one of a JSON body, a stream
// or nothing.
type Reply struct {
	Status  int
	Header  map[string]string
	Cookies []*http.Cookie
	Body    any                                      // encoded as JSON; nil: an empty body
	Stream  func(w io.Writer) error                  // writes a body chunk by chunk
	Serve   func(w *Response, r *http.Request) error // writes the whole answer: files with ranges
	Holds   int64                                    // memory that a stream holds, whatever it writes
	Early   bool                                     // send the first bytes of a stream soon
}

// OK replies 200 with a JSON body.
func OK(body any) (Reply, error) { return Reply{Status: http.StatusOK, Body: body}, nil }

// Done replies 200 with an empty body, as to a successful DELETE.
func Done() (Reply, error) { return Reply{Status: http.StatusOK}, nil }

// Created replies 201 with Location and a JSON body.
func Created(location string, body any) (Reply, error) {
	return Reply{Status: http.StatusCreated, Header: map[string]string{"Location": location}, Body: body}, nil
}

// SeeOther replies 303 to an address.
func SeeOther(to string) Reply {
	return Reply{Status: http.StatusSeeOther, Header: map[string]string{"Location": to}}
}

// Streamed replies 200 with a JSON body that write streams.
func Streamed(write func(w io.Writer) error) (Reply, error) {
	return Reply{Status: http.StatusOK, Stream: write}, nil
}

// ordinary are headers of every answer whose reply has no others in their place.
var ordinary = http.Header{"X-Content-Type-Options": {"nosniff"}, "Cache-Control": {"no-store"}}

// Write sends the reply. It fails only while nothing has been sent, so that the failure can be the
// answer; a stream that fails later cuts the connection, so that nobody takes half an answer for a
// whole one.
func (a Reply) Write(w *Response, r *http.Request) error {
	if w.Redirects != nil && a.Header["Location"] != "" && a.Status >= 300 && a.Status < 400 {
		return w.Redirects
	}
	h := w.Header()
	maps.Copy(h, ordinary)
	for name, value := range a.Header {
		h.Set(name, value)
	}
	for _, c := range a.Cookies {
		http.SetCookie(w, c)
	}
	switch {
	case a.Serve != nil:
		return a.Serve(w, r)
	case a.Stream != nil:
		return a.writeStream(w, r)
	case a.Body == nil:
		h.Set("Content-Length", "0")
		w.WriteHeader(a.Status)
		return nil
	}
	res, single := a.Body.(hal.Resource)
	if res.List {
		return a.writeRows(w)
	}
	reads := IsRead(r.Method)
	tagged := single && h.Get("Etag") == "" && (a.Status == http.StatusOK && (reads || r.Method == http.MethodPut) ||
		a.Status == http.StatusCreated && !w.Secret)
	if tagged && res.Beside != nil {
		tag, err := res.Tag()
		if err != nil {
			return err
		}
		if w.tag(tag, reads) {
			return nil
		}
	}
	if single && res.Last != nil {
		return a.writeRows(w)
	}
	body, err := hal.Append(make([]byte, 0, 1024), a.Body)
	full := err == nil && len(body) > Small && w.Memory.Hold(len(body)) != nil
	if full && w.Repeatable {
		err = ErrNoMemory
	}
	if err != nil {
		return err
	}
	if tagged && res.Beside == nil && w.tag(res.TagOf(body), reads) {
		return nil
	}
	if a.Header["Content-Type"] == "" {
		w.setType()
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(a.Status)
	w.Place.Leave()
	if full {
		w.WriteSpooled(body)
	} else {
		_, _ = w.Write(body) // a client that has gone needs no answer
	}
	return nil
}

// WriteSpooled is Write for a body that is not to be in memory while the client receives it.
func (w *Response) WriteSpooled(body []byte) {
	f, err := spool.New()
	if err == nil {
		defer func() { _ = f.Close() }()
		_, err = f.Write(body)
	}
	if err != nil {
		_, _ = w.Write(body)
		return
	}
	_, _ = io.CopyBuffer(w, io.NewSectionReader(f, 0, int64(len(body))), make([]byte, chunkSize))
}

// tag sets the entity tag of the answer. It reports whether it has answered a read with 304, as the
// client has it already.
func (w *Response) tag(tag string, read bool) (answered bool) {
	if read && !w.Secret {
		// first: in a map that has eight keys already, replacing a value allocates
		w.Header()["Cache-Control"] = cachedHeader
	}
	w.Header()["Etag"] = []string{tag}
	if !read {
		return false
	}
	if w.Conditions.unchanged(tag) {
		w.WriteHeader(http.StatusNotModified)
		return true
	}
	return false
}

// cached is the Cache-Control of answers with an entity tag: the client alone keeps them, and asks
// before each use whether they are current.
const cached = "private, no-cache"

var cachedHeader = []string{cached}

// writeRows sends a resource with rows: at once when it is small, and otherwise row by row.
func (a Reply) writeRows(w *Response) error {
	sent := false
	send := func(body []byte) error {
		if !sent {
			w.setType()
			w.WriteHeader(a.Status)
			sent = true
		}
		_, err := w.Write(body)
		return err
	}
	body, err := hal.Stream(make([]byte, 0, 1024), a.Body, func(body []byte) ([]byte, error) {
		if len(body) < streamBuffer {
			return body, nil
		}
		return body[:0], send(body)
	})
	if err == nil {
		if !sent {
			w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		}
		w.Place.Leave()
		err = send(body)
	}
	if err != nil && sent {
		w.Failure = err
		panic(http.ErrAbortHandler)
	}
	return err
}

func (a Reply) writeStream(w *Response, r *http.Request) error {
	if a.Holds > 0 {
		if err := w.await(r.Context(), a.Holds); err != nil {
			return err
		}
	}
	if w.Header().Get("Content-Type") == "" {
		w.setType()
	}
	out := &delayedStream{w: w, status: a.Status, control: &w.Control}
	if a.Early {
		defer time.AfterFunc(streamDelay, out.begin).Stop()
		defer out.end() // it may just have fired
	}
	err := a.Stream(out)
	if err == nil {
		err = out.finish()
	}
	if sent := out.end(); err != nil && sent {
		w.Failure = err
		panic(http.ErrAbortHandler)
	}
	return err
}

// delayedStream holds the first bytes of a stream back, so that a failure before them can still be
// the answer.
type delayedStream struct {
	w       *Response
	status  int
	control *http.ResponseController

	mu    sync.Mutex // begin has a goroutine of its own
	buf   []byte
	sent  bool
	ended bool
}

const (
	// streamBuffer is how many bytes a delayedStream buffers before it sends them.
	streamBuffer = 64 << 10
	// streamHolds is about how many bytes a long list holds while it is streamed: its buffer, and
	// the rows that are read at once.
	streamHolds = 256 << 10
	// streamDelay is how long an early stream may fail with an answer of its own: half of the
	// longest that a caller may wait for the first byte of an archive.
	streamDelay = 100 * time.Millisecond
)

func (l *delayedStream) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.buf = append(l.buf, p...)
	if len(l.buf) < streamBuffer {
		return len(p), nil
	}
	if !l.sent && l.w.Repeatable {
		if err := l.w.Memory.Hold(streamHolds); err != nil {
			return 0, err
		}
	}
	return len(p), l.flush(l.w)
}

// begin sends what has been buffered, if nothing was sent yet. The next Write returns its error.
func (l *delayedStream) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sent || l.ended {
		return
	}
	_ = l.flush(l.w.ResponseWriter) // the request keeps its place: it is still computing
	_ = l.control.Flush()           // as far as the writer can
}

// finish sends the rest.
func (l *delayedStream) finish() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.flush(l.w)
}

// end stops begin from sending anything, and reports whether something was sent.
func (l *delayedStream) end() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	return l.sent
}

func (l *delayedStream) flush(to io.Writer) error {
	if !l.sent {
		l.w.WriteHeader(l.status)
		l.sent = true
	}
	n, err := to.Write(l.buf)
	if to != l.w {
		l.w.sent += int64(n)
	}
	l.buf = l.buf[:0]
	return err
}

// Response is the http.ResponseWriter of a request. It records what was sent, for the log, and
// enforces the client's time-outs.
type Response struct {
	http.ResponseWriter
	ID      string
	Route   *Route // nil until it is found
	Control http.ResponseController
	Sender  *sender
	Status  int
	Failure error        // why the answer was cut
	Who     *actor.Actor // nil until the route is found
	Code    errs.Code    // of the error that the answer tells of
	Place   *place
	HAL     bool // the client prefers application/hal+json

	Redirects  error       // of an answer that is a redirect: see As
	Conditions *conditions // of the request; nil for none
	Secret     bool        // Route.Secret

	Transfers  *Transfers
	Out        *transfer // the answer, unless it is tiny
	cut        bool      // the client did not take it
	Memory     memory    // what the answer holds
	Repeatable bool      // it is the answer to a read: the handler can be called again
	sent       int64     // bytes of the body
}

// NewResponse returns the response to a request.
func NewResponse(w http.ResponseWriter, t *Transfers, answers *limiter.Limiter, m Memory) *Response {
	return &Response{
		ResponseWriter: w, Control: *http.NewResponseController(w),
		Transfers: t, Memory: memory{limiter: answers, most: m.User},
	}
}

// setType sets the media type of a JSON answer.
func (w *Response) setType() {
	name := typeJSON
	if w.HAL {
		name = TypeHAL
	}
	w.Header().Set("Content-Type", name)
}

// WriteHeader implements http.ResponseWriter.
func (w *Response) WriteHeader(status int) {
	if w.Status == 0 {
		w.Status = status
		w.Sender.leave()
		_ = w.Control.SetWriteDeadline(time.Now().Add(w.Transfers.timeout())) // also of an answer without a body
	}
	w.ResponseWriter.WriteHeader(status)
}

// End is called when the request has been answered.
func (w *Response) End() {
	w.flush()
	w.Out.end()
	w.Sender.end()
	w.Memory.Release()
}

// Unwrap lets http.ResponseController find the connection.
func (w *Response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteArray streams rows as a JSON array. one appends the encoding of a row.
func WriteArray[T any](w io.Writer, rows iter.Seq2[T, error], one func(dst []byte, row T) []byte) error {
	buf, before := make([]byte, 0, 512), byte('[')
	for row, err := range rows {
		if err != nil {
			return err
		}
		buf = one(append(buf[:0], before), row)
		if _, err := w.Write(buf); err != nil {
			return err
		}
		before = ','
	}
	end := "]"
	if before == '[' {
		end = "[]"
	}
	_, err := io.WriteString(w, end)
	return err
}
