package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/julienschmidt/httprouter"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/limits/limiter"
	"github.com/tenantcontent/tenantcontent/internal/limits/spool"
	"github.com/tenantcontent/tenantcontent/internal/text/escapes"
	"github.com/tenantcontent/tenantcontent/internal/text/jsonfill"
)

// Request is the argument of a handler: the HTTP request, its parameters and its caller.
type Request struct {
	*http.Request
	Ctx     context.Context // see Context
	Route   *Route
	sender  *sender // the body as it comes in; nil for none
	Params  httprouter.Params
	Who     actor.Actor // the caller; zero on a public route
	MaxBody int64
	options map[string]json.RawMessage // of an action route, by name
	dropped []jsonfill.UnknownMember   // that a route with Drops has left out although they look misspelled
	form    *multipart.Reader          // of which part is the file; nil until readForm
	Part    *multipart.Part

	Conditions *conditions // nil for none

	place   *place  // nil for a light request's
	Answer  *memory // what the answer holds
	Bodies  memory  // what the body holds
	spooled memory  // what it holds of the disk while it arrives
	taken   int64   // bytes of what take has returned
	ahead   []byte  // the body, once readAhead has read it; else nil

	engine  *Engine
	slotted bool // it has a slot for writes

	Trusted  bool // its credential is one that no page of another origin can send
	Admitted bool // a caller who can only read may call the route all the same: Route.Caller has checked that
	Extra    any  // what the package that declares the routes keeps with the request
}

// NewInner returns a request that has no route yet.
func NewInner(of *http.Request) *Request { return &Request{Request: of, Ctx: of.Context()} }

// begin makes a request ready for its handler.
func (r *Request) begin(e *Engine, w *Response, of *http.Request, route *Route, params httprouter.Params) {
	r.Request, r.Ctx, r.Route, r.sender, r.Params, r.MaxBody = of, of.Context(), route, w.Sender, params, e.o.MaxBody
	r.engine = e
	r.Bodies = memory{limiter: e.bodies, most: e.o.Memory.User}
	r.spooled = memory{limiter: e.spooled, most: e.o.Memory.Disk().User}
}

// Context returns the context of the request, which has the caller, and below a transactional route
// the transaction. That of the http.Request has neither.
func (r *Request) Context() context.Context { return r.Ctx }

// Count makes a request without a session count as one of a tenant, as of a user of it, in what
// bodies and answers hold.
func (r *Request) Count(tenant, as string) {
	keys := [2]string{tenant, as}
	r.Answer.keys, r.Bodies.keys, r.spooled.keys = keys, keys, keys
}

// Param returns a path parameter, unescaped.
func (r *Request) Param(name string) string { return r.Params.ByName(name) }

// RequestID takes the caller's X-Request-Id when it is short and plain, and makes one otherwise.
func RequestID(r *http.Request) string {
	id := r.Header.Get("X-Request-Id")
	if id == "" || len(id) > 128 {
		return uuid.NewString()
	}
	plain := strings.IndexFunc(id, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("-_.:", c)
	}) < 0
	if !plain {
		return uuid.NewString()
	}
	return id
}

// PlainText returns errs.Invalid for a path or query with NUL or invalid UTF-8, which no column can
// hold.
func PlainText(r *http.Request) error {
	if !escapes.Storable(r.URL.Path) {
		return errs.New(errs.Invalid, "The path must be UTF-8 without NUL.")
	}
	if r.URL.RawQuery == "" {
		return nil
	}
	query, err := ParseQuery(r)
	if err != nil {
		return err
	}
	for name, values := range query {
		if !escapes.Storable(name) || !escapes.Storable(strings.Join(values, "")) {
			return errs.New(errs.Invalid, "The query must be UTF-8 without NUL.")
		}
	}
	return nil
}

// ReadAhead reads the body before a transaction begins, so that a slow sender does not hold one,
// which on SQLite would be the only writer. It returns the errors of body.
func (r *Request) ReadAhead() error {
	raw, err := r.Read()
	if r.ahead = raw; raw == nil {
		r.ahead = []byte{}
	}
	r.Body = io.NopCloser(bytes.NewReader(raw))
	return err
}

// ReadBody reads the whole body. Errors: errs.TooLarge; errs.Invalid when it cannot be read or is
// no plain text.
func (r *Request) ReadBody() ([]byte, error) {
	raw, err := r.Read()
	if err == nil && !utf8.Valid(raw) {
		return nil, errs.New(errs.Invalid, "The body must be UTF-8.")
	}
	return raw, err
}

// Read reads the whole body once, and returns it each time.
func (r *Request) Read() ([]byte, error) {
	if r.ahead != nil {
		return r.ahead, nil
	}
	body := http.MaxBytesReader(nil, r.Body, r.MaxBody)
	raw, err := r.take(body)
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return nil, errs.New(errs.TooLarge, "The body must have at most %d bytes.", r.MaxBody)
	}
	return raw, err
}

// take reads a part of the body that stays in memory until the request has been answered. When such
// parts exceed small, the part is kept in a temporary file until it has arrived, and acquires the
// memory that it needs then: a slow sender holds none. It returns errs.Unavailable if there is
// none, and the errors of from.
func (r *Request) take(from io.Reader) ([]byte, error) {
	free := max(0, Small-r.taken)
	raw, err := io.ReadAll(io.LimitReader(from, free+1))
	if int64(len(raw)) > free && err == nil {
		raw, err = r.takeLarge(raw, from)
	}
	r.taken += int64(len(raw))
	return raw, err
}

// takeLarge is take for a large part of which the beginning has been read.
func (r *Request) takeLarge(begun []byte, from io.Reader) ([]byte, error) {
	f, err := spool.New()
	if err != nil {
		return nil, noRoom(err)
	}
	defer func() { _ = f.Close() }()
	defer r.spooled.Release()
	size, err := r.spool(f, io.MultiReader(bytes.NewReader(begun), from))
	if err != nil {
		return nil, err
	}
	r.place.Yield()
	if err := r.Bodies.acquire(r.Context(), size); err != nil {
		return nil, limiter.Unavailable(err, tooManyBodies)
	}
	raw := make([]byte, size)
	if _, err := f.ReadAt(raw, 0); err != nil {
		return nil, noRoom(err)
	}
	return raw, nil
}

const tooManyBodies = "Too many large bodies are on their way at the moment. Try again."

// spool writes what arrives to a temporary file and counts it.
func (r *Request) spool(f *spool.File, from io.Reader) (size int64, err error) {
	for chunk := make([]byte, chunkSize); ; {
		n, err := from.Read(chunk)
		if n > 0 {
			if r.spooled.Hold(n) != nil {
				return size, errs.New(errs.Unavailable, tooManyBodies)
			}
			if _, err := f.Write(chunk[:n]); err != nil {
				return size, noRoom(err)
			}
			size += int64(n)
		}
		switch {
		case errors.Is(err, io.EOF):
			return size, nil
		case err != nil:
			return size, err
		}
	}
}

// noRoom returns the error of a request whose body could not be written to a temporary file, or
// read from it.
func noRoom(err error) error {
	return errs.Wrap(errs.Unavailable, err, "The server has no room for a large body at the moment. Try again.")
}

// Decode reads a JSON body into a T: a struct that has the fields which the route accepts and no
// other. No body is an empty object. Errors: errs.Unsupported for another content type;
// errs.TooLarge; errs.Invalid for malformed JSON, for a known field of the wrong type, and for a
// member that T does not have, naming it.
func Decode[T any](r *Request) (T, error) { return DecodeUpdate[T](r, nil) }

// DecodeUpdate is decode for a PUT of what a GET of the same path answers, of which shown is an
// example: its members may come back, and are ignored where T does not have them.
func DecodeUpdate[T any](r *Request, shown any) (in T, err error) {
	raw, err := r.JsonBody()
	if err != nil || raw == nil {
		return in, err
	}
	var by jsonfill.Filler
	if err := by.Fill(raw, &in, ""); err != nil {
		return in, err
	}
	return in, r.RefuseUnknown(by.Unknown, shown)
}

// NoBody returns errs.Invalid for a JSON body with members, of a route that reads none.
func (r *Request) NoBody(shown any) error {
	if r.jsonType() != nil {
		return nil
	}
	_, err := DecodeUpdate[struct{}](r, shown)
	return err
}

// FormType is the content type of a form without files.
const FormType = "application/x-www-form-urlencoded"

func (r *Request) jsonType() error {
	given := r.Header.Get("Content-Type")
	if given == "" {
		return nil
	}
	t, _, err := mime.ParseMediaType(given)
	if err == nil && (t == "application/json" || strings.HasPrefix(t, "application/") &&
		strings.HasSuffix(t, "+json")) {
		return nil
	}
	return errs.New(errs.Unsupported, "The body must be JSON: send the header Content-Type: application/json.")
}

// byteOrderMark is what some editors and programs write before a text in UTF-8.
const byteOrderMark = "\xef\xbb\xbf"

// JsonBody returns the JSON in a body, nil for none. Errors: errs.Unsupported for another content
// type; errs.TooLarge; errs.Invalid for malformed JSON.
func (r *Request) JsonBody() ([]byte, error) {
	if err := r.jsonType(); err != nil {
		return nil, err
	}
	raw, err := r.ReadBody()
	if err != nil {
		return nil, err
	}
	raw = bytes.TrimPrefix(raw, []byte(byteOrderMark))
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil, nil
	}
	return raw, ValidJSON(raw)
}

// ValidJSON returns errs.Invalid for malformed JSON and for JSON with text that no database can
// store.
func ValidJSON(raw []byte) error {
	if !json.Valid(raw) {
		var any any
		return errs.Wrap(errs.Invalid, json.Unmarshal(raw, &any), "The body is not valid JSON.")
	}
	if escapes.Bad(raw) {
		return errs.New(errs.Invalid, "The body must not have NUL characters or halves of surrogate pairs.")
	}
	return nil
}

// Field is a field of a body that may be left out, null or a value.
type Field[T any] = jsonfill.Field[T]
