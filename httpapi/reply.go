package httpapi

import (
	"io"
	"iter"
	"maps"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/hal"
	"github.com/tenantcontent/tenantcontent/internal/limits/spool"
)

// reply is the answer that a handler returns: a status, headers, and one of a JSON body, a stream or nothing.
type reply struct {
	status  int
	header  map[string]string
	cookies []*http.Cookie
	body    any                                      // encoded as JSON; nil: an empty body
	stream  func(w io.Writer) error                  // writes a body chunk by chunk
	serve   func(w *response, r *http.Request) error // writes the whole answer: files with ranges
	holds   int64                                    // memory that a stream holds, whatever it writes
	early   bool                                     // send the first bytes of a stream soon
}

// ok replies 200 with a JSON body.
func ok(body any) (reply, error) { return reply{status: http.StatusOK, body: body}, nil }

// done replies 200 with an empty body, as to a successful DELETE.
func done() (reply, error) { return reply{status: http.StatusOK}, nil }

// created replies 201 with Location and a JSON body.
func created(location string, body any) (reply, error) {
	return reply{status: http.StatusCreated, header: map[string]string{"Location": location}, body: body}, nil
}

// streamed replies 200 with a JSON body that write streams.
func streamed(write func(w io.Writer) error) (reply, error) {
	return reply{status: http.StatusOK, stream: write}, nil
}

// ordinary are headers of every answer whose reply has no others in their place.
var ordinary = http.Header{"X-Content-Type-Options": {"nosniff"}, "Cache-Control": {"no-store"}}

// write sends the reply. It fails only while nothing has been sent, so that the failure can be the answer; a stream that
// fails later cuts the connection, so that nobody takes half an answer for a whole one.
func (a reply) write(w *response, r *http.Request) error {
	if w.viewed && a.header["Location"] != "" && a.status >= 300 && a.status < 400 {
		return errs.New(errs.Forbidden, "This call answers with a redirect, which the page of an app cannot follow.")
	}
	h := w.Header()
	maps.Copy(h, ordinary)
	for name, value := range a.header {
		h.Set(name, value)
	}
	for _, c := range a.cookies {
		http.SetCookie(w, c)
	}
	switch {
	case a.serve != nil:
		return a.serve(w, r)
	case a.stream != nil:
		return a.writeStream(w, r)
	case a.body == nil:
		h.Set("Content-Length", "0")
		w.WriteHeader(a.status)
		return nil
	}
	res, single := a.body.(hal.Resource)
	if res.List {
		return a.writeRows(w)
	}
	reads := isRead(r.Method)
	tagged := single && h.Get("Etag") == "" && (a.status == http.StatusOK && (reads || r.Method == http.MethodPut) ||
		a.status == http.StatusCreated && !w.secret)
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
	body, err := hal.Append(make([]byte, 0, 1024), a.body)
	full := err == nil && len(body) > small && w.memory.hold(len(body)) != nil
	if full && w.repeatable {
		err = errNoMemory
	}
	if err != nil {
		return err
	}
	if tagged && res.Beside == nil && w.tag(res.TagOf(body), reads) {
		return nil
	}
	if a.header["Content-Type"] == "" {
		w.setType()
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(a.status)
	w.place.leave()
	if full {
		w.writeSpooled(body)
	} else {
		_, _ = w.Write(body) // a client that has gone needs no answer
	}
	return nil
}

// writeSpooled is Write for a body that is not to be in memory while the client receives it.
func (w *response) writeSpooled(body []byte) {
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

// tag sets the entity tag of the answer. It reports whether it has answered a read with 304, as the client has it already.
func (w *response) tag(tag string, read bool) (answered bool) {
	if read && !w.secret {
		w.Header()["Cache-Control"] = cachedHeader // first: in a map that has eight keys already, replacing a value allocates
	}
	w.Header()["Etag"] = []string{tag}
	if !read {
		return false
	}
	if w.conditions.unchanged(tag) {
		w.WriteHeader(http.StatusNotModified)
		return true
	}
	return false
}

// cached is the Cache-Control of answers with an entity tag: the client alone keeps them, and asks before each use whether
// they are current.
const cached = "private, no-cache"

var cachedHeader = []string{cached}

// writeRows sends a resource with rows: at once when it is small, and otherwise row by row.
func (a reply) writeRows(w *response) error {
	sent := false
	send := func(body []byte) error {
		if !sent {
			w.setType()
			w.WriteHeader(a.status)
			sent = true
		}
		_, err := w.Write(body)
		return err
	}
	body, err := hal.Stream(make([]byte, 0, 1024), a.body, func(body []byte) ([]byte, error) {
		if len(body) < streamBuffer {
			return body, nil
		}
		return body[:0], send(body)
	})
	if err == nil {
		if !sent {
			w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		}
		w.place.leave()
		err = send(body)
	}
	if err != nil && sent {
		w.failure = err
		panic(http.ErrAbortHandler)
	}
	return err
}

func (a reply) writeStream(w *response, r *http.Request) error {
	if a.holds > 0 {
		if err := w.await(r.Context(), a.holds); err != nil {
			return err
		}
	}
	if w.Header().Get("Content-Type") == "" {
		w.setType()
	}
	out := &delayedStream{w: w, status: a.status, control: &w.control}
	if a.early {
		defer time.AfterFunc(streamDelay, out.begin).Stop()
		defer out.end() // it may just have fired
	}
	err := a.stream(out)
	if err == nil {
		err = out.finish()
	}
	if sent := out.end(); err != nil && sent {
		w.failure = err
		panic(http.ErrAbortHandler)
	}
	return err
}

// delayedStream holds the first bytes of a stream back, so that a failure before them can still be the answer.
type delayedStream struct {
	w       *response
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
	// streamHolds is about how many bytes a long list holds while it is streamed: its buffer, and the rows that are read at once.
	streamHolds = 256 << 10
	// streamDelay is how long an early stream may fail with an answer of its own: half of the longest that a caller may wait for
	// the first byte of an archive.
	streamDelay = 100 * time.Millisecond
)

func (l *delayedStream) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.buf = append(l.buf, p...)
	if len(l.buf) < streamBuffer {
		return len(p), nil
	}
	if !l.sent && l.w.repeatable {
		if err := l.w.memory.hold(streamHolds); err != nil {
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
	_, err := to.Write(l.buf)
	l.buf = l.buf[:0]
	return err
}

// response is the http.ResponseWriter of a request. It records what was sent, for the log, and enforces the client's time-outs.
type response struct {
	http.ResponseWriter
	id      string
	route   *Route // nil until it is found
	control http.ResponseController
	sender  *sender
	status  int
	failure error // why the answer was cut
	place   *place
	hal     bool // the client prefers application/hal+json

	viewed     bool        // it answers the call of an app's page
	conditions *conditions // of the request; nil for none
	secret     bool        // Route.Secret

	transfers  *transfers
	out        *transfer // the answer, unless it is tiny
	cut        bool      // the client did not take it
	memory     memory    // what the answer holds
	repeatable bool      // it is the answer to a read: the handler can be called again
}

// setType sets the media type of a JSON answer.
func (w *response) setType() {
	name := typeJSON
	if w.hal {
		name = typeHAL
	}
	w.Header().Set("Content-Type", name)
}

func (w *response) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
		w.sender.leave()
		_ = w.control.SetWriteDeadline(time.Now().Add(w.transfers.timeout())) // also of an answer without a body
	}
	w.ResponseWriter.WriteHeader(status)
}

// end is called when the request has been answered.
func (w *response) end() {
	w.flush()
	w.out.end()
	w.sender.end()
	w.memory.release()
}

// Unwrap lets http.ResponseController find the connection.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// writeArray streams rows as a JSON array. one appends the encoding of a row.
func writeArray[T any](w io.Writer, rows iter.Seq2[T, error], one func(dst []byte, row T) []byte) error {
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
