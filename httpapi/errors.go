package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"syscall"

	"github.com/tenantcontent/tenantcontent/errs"
)

// problem is the body of every failure.
type problem struct {
	StatusCode int    `json:"statusCode"`
	Error      string `json:"error"`
	Message    string `json:"message"`
}

var statusOf = map[errs.Code]int{
	errs.Invalid:         http.StatusBadRequest,
	errs.Unauthenticated: http.StatusUnauthorized,
	errs.Forbidden:       http.StatusForbidden,
	errs.NotFound:        http.StatusNotFound,
	errs.Conflict:        http.StatusConflict,
	errs.Stale:           http.StatusPreconditionFailed,
	errs.TooLarge:        http.StatusRequestEntityTooLarge,
	errs.Unsupported:     http.StatusUnsupportedMediaType,
	errs.Unprocessable:   http.StatusUnprocessableEntity,
	errs.Upstream:        http.StatusBadGateway,
	errs.Busy:            http.StatusTooManyRequests,
	errs.Unavailable:     http.StatusServiceUnavailable,
}

// fail writes the answer to a request that failed. An error that has no code of package errs is logged and answered with a
// plain 500.
func (a *api) fail(w *response, r *http.Request, err error) {
	if errs.CodeOf(err) == errs.Unauthenticated && a.Visible != nil {
		if hidden := a.Visible(r.Context()); hidden != nil { // the credential may well be right
			err = hidden
		}
	}
	status, message := statusOf[errs.CodeOf(err)], errs.MessageOf(err)
	var method notAllowed
	var file contentStatus
	var own failure
	switch {
	case errors.As(err, &method):
		w.Header().Set("Allow", method.methods)
		status, message = http.StatusMethodNotAllowed, method.Error()
	case errors.As(err, &own):
		status, message = own.status, own.message
	case errors.As(err, &file):
		status, message = int(file), file.Error()
	case (status == 0 || status >= 500) && clientGone(r):
		w.failure = err
		panic(http.ErrAbortHandler)
	case status == 0:
		status, message = http.StatusInternalServerError, "An internal server error occurred"
	}
	log := a.Log
	if errors.As(err, new(refusedLogin)) && status != http.StatusInternalServerError { // already logged
		log = slog.New(slog.DiscardHandler)
	}
	switch status {
	case http.StatusInternalServerError:
		log.ErrorContext(r.Context(), "request failed", "request", w.id, "method", r.Method, "path", loggedPath(r.URL.Path), "err", err)
	case http.StatusBadGateway:
		log.WarnContext(r.Context(), "another server failed", "request", w.id, "method", r.Method, "path", loggedPath(r.URL.Path), "err", err)
	case http.StatusTooManyRequests:
		w.Header().Set("Retry-After", "5")
		log.InfoContext(r.Context(), "request not served", "request", w.id, "method", r.Method, "path", loggedPath(r.URL.Path), "err", err)
	case http.StatusServiceUnavailable:
		w.sender.drain(r)
		w.Header().Set("Retry-After", "1")
		log.WarnContext(r.Context(), "request not served", "request", w.id, "method", r.Method, "path", loggedPath(r.URL.Path), "err", err)
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", "Bearer")
	case http.StatusRequestEntityTooLarge:
		w.Header().Set("Connection", "close") // the rest of the body is not read
	}
	w.hal = false
	w.Header().Del("Content-Disposition") // the file that it was for does not come
	w.Header().Del("Etag")
	_ = reply{status: status, body: problem{StatusCode: status, Error: http.StatusText(status), Message: message}}.write(w, r)
}

// failure is an error with an HTTP status of its own.
type failure struct {
	status  int
	message string
}

func (f failure) Error() string { return f.message }

// contentStatus is the status with which http.ServeContent refuses a request: for a range outside the file, or a condition that is
// false.
type contentStatus int

func (s contentStatus) Error() string {
	if s == http.StatusRequestedRangeNotSatisfiable {
		return "The file has no bytes in this range."
	}
	return "The file is not as the request demands."
}

// statusClientGone is logged as the status of a request whose client hung up, as nginx does.
const statusClientGone = 499

// clientGone reports whether the client has hung up.
func clientGone(r *http.Request) bool { return errors.Is(r.Context().Err(), context.Canceled) }

// finish logs the request and turns a panic of a handler into a 500.
func (a *api) finish(w *response, r *http.Request) {
	p := recover()
	switch {
	case p == http.ErrAbortHandler && (clientGone(r) || errors.Is(w.failure, syscall.EPIPE) || errors.Is(w.failure, syscall.ECONNRESET)):
		a.Log.InfoContext(r.Context(), "client gone", "request", w.id, "method", r.Method, "path", loggedPath(r.URL.Path), "status", statusClientGone, "err", w.failure)
		panic(p)
	case p == http.ErrAbortHandler:
		a.Log.WarnContext(r.Context(), "answer cut", "request", w.id, "method", r.Method, "path", loggedPath(r.URL.Path), "err", w.failure)
		panic(p)
	case p != nil && (w.status != 0 || clientGone(r)):
		a.Log.ErrorContext(r.Context(), "panic in the middle of an answer", "request", w.id, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		panic(http.ErrAbortHandler)
	case p != nil:
		a.fail(w, r, fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
	}
	if !a.Log.Enabled(r.Context(), slog.LevelDebug) {
		return
	}
	a.Log.DebugContext(r.Context(), "request", "request", w.id, "client", clientOf(r), "method", r.Method, "path", loggedPath(r.URL.Path), "status", w.status)
}
