package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/handlers"
)

// problem is the body of every failure.
type problem struct {
	StatusCode int    `json:"statusCode"`
	Error      string `json:"error"`
	Message    string `json:"message"`
	Reload     string `json:"reload,omitempty"` // of a view token that has ended: URL of the page that opens the app again
}

var statusOf = map[errs.Code]int{
	errs.Invalid:          http.StatusBadRequest,
	errs.Unauthenticated:  http.StatusUnauthorized,
	errs.Forbidden:        http.StatusForbidden,
	errs.NotFound:         http.StatusNotFound,
	errs.Conflict:         http.StatusConflict,
	errs.MethodNotAllowed: http.StatusMethodNotAllowed,
	errs.Stale:            http.StatusPreconditionFailed,
	errs.TooLarge:         http.StatusRequestEntityTooLarge,
	errs.Unsupported:      http.StatusUnsupportedMediaType,
	errs.Unprocessable:    http.StatusUnprocessableEntity,
	errs.Upstream:         http.StatusBadGateway,
	errs.Busy:             http.StatusTooManyRequests,
	errs.Unavailable:      http.StatusServiceUnavailable,
	errs.Unconfirmed:      http.StatusServiceUnavailable,
	errs.Full:             http.StatusInsufficientStorage,
	errs.Canceled:         http.StatusServiceUnavailable,
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
	var handler handlers.NotAllowed
	var file contentStatus
	var own failure
	switch {
	case errors.As(err, &method):
		w.Header().Set("Allow", method.methods)
		status, message = http.StatusMethodNotAllowed, method.Error()
	case errors.As(err, &handler):
		w.Header().Set("Allow", strings.Replace(strings.Join(handler.Methods, ", "), http.MethodGet, "GET, HEAD", 1))
	case errors.As(err, &own):
		status, message = own.status, own.message
	case errors.As(err, &file):
		status, message = int(file), file.Error()
	case (status == 0 || status >= 500) && clientGone(r):
		w.failure = err
		panic(http.ErrAbortHandler)
	case status == 0:
		status, message = http.StatusInternalServerError, internalMessage
	}
	log := a.Log
	if errors.As(err, new(refusedLogin)) && status != http.StatusInternalServerError { // already logged
		log = slog.New(slog.DiscardHandler)
	}
	a.logFailure(log, w, r, status, err)
	told := problem{StatusCode: status, Error: http.StatusText(status), Message: message}
	var over viewEnded
	if errors.As(err, &over) {
		told.Reload = over.reload
	}
	answer := reply{status: status, body: told}
	if told.Reload != "" && r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate" {
		answer = seeOther(told.Reload)
	}
	if a.isSCIM(r) {
		answer = scimProblem(status, message, err)
	}
	if w.route != nil && w.route.Browser && status != http.StatusNotAcceptable {
		w.Header().Set("Vary", varyByVisit["Vary"])
		if page, ok := a.failedLogin(w, r, status, message, err); ok {
			answer = page
		}
	}
	switch status {
	case http.StatusTooManyRequests:
		w.Header().Set("Retry-After", "5")
	case http.StatusServiceUnavailable:
		w.sender.drain(r)
		if errs.CodeOf(err) == errs.Unconfirmed { // another try could write twice
			break
		}
		w.Header().Set("Retry-After", strconv.Itoa(max(1, int(math.Ceil(errs.RetryAfterOf(err).Seconds())))))
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", "Bearer")
	case http.StatusRequestEntityTooLarge, http.StatusInsufficientStorage:
		w.Header().Set("Connection", "close") // the rest of the body is not read
	}
	if answer.status < 400 { // it leads to a page that tells the failure
		w.Header().Del("Retry-After")
		w.Header().Del("WWW-Authenticate")
	}
	w.hal = false
	w.Header().Del("Content-Disposition") // the file that it was for does not come
	w.Header().Del("Etag")
	_ = answer.write(w, r)
}

// plainProblem returns the status and the message of an error that needs no headers.
func plainProblem(err error) (status int, message string) {
	if status = statusOf[errs.CodeOf(err)]; status == 0 || status == http.StatusInternalServerError {
		return http.StatusInternalServerError, internalMessage
	}
	return status, errs.MessageOf(err)
}

const internalMessage = "An internal server error occurred"

// logFailure logs a failure that an operator should see.
func (a *api) logFailure(log *slog.Logger, w *response, r *http.Request, status int, err error) {
	level, message := slog.LevelWarn, "request not served"
	switch status {
	case http.StatusInternalServerError:
		level, message = slog.LevelError, "request failed"
	case http.StatusBadGateway:
		message = "another server failed"
	case http.StatusTooManyRequests:
		level = slog.LevelInfo
	case http.StatusServiceUnavailable, http.StatusInsufficientStorage:
	default:
		return
	}
	if a.Failed != nil && a.Failed(err) {
		level = slog.LevelDebug
	}
	log.Log(r.Context(), level, message, "request", w.id, "method", r.Method, "path", loggedPath(r.URL.Path), "err", err)
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
