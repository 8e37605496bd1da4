package httpapi

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"

	"github.com/tenantcontent/tenantcontent/internal/rest"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/handlers"
)

// fail writes the answer to a request that failed. An error that has no code of package errs is
// logged and answered with a plain 500.
func (a *api) fail(w *rest.Response, r *http.Request, err error) {
	if errs.CodeOf(err) == errs.Unauthenticated && a.Visible != nil {
		if hidden := a.Visible(r.Context()); hidden != nil { // the credential may well be right
			err = hidden
		}
	}
	status, message := rest.StatusOf(errs.CodeOf(err)), errs.MessageOf(err)
	var method rest.NotAllowed
	var handler handlers.NotAllowed
	var file rest.ContentStatus
	var own rest.Failure
	switch {
	case errors.As(err, &method):
		w.Header().Set("Allow", method.Methods)
		status, message = http.StatusMethodNotAllowed, method.Error()
	case errors.As(err, &handler):
		w.Header().Set("Allow", strings.Replace(strings.Join(handler.Methods, ", "), http.MethodGet, "GET, HEAD", 1))
	case errors.As(err, &own):
		status, message = own.Status, own.Message
	case errors.As(err, &file):
		status, message = int(file), file.Error()
	case (status == 0 || status >= 500) && rest.ClientGone(r):
		w.Failure = err
		panic(http.ErrAbortHandler)
	case status == 0:
		status, message = http.StatusInternalServerError, rest.InternalMessage
	}
	log := a.Log
	if errors.As(err, new(refusedLogin)) && status != http.StatusInternalServerError { // already logged
		log = slog.New(slog.DiscardHandler)
	}
	w.Code = errs.CodeOf(err)
	a.logFailure(log, w, r, status, err)
	told := rest.Problem{StatusCode: status, Error: http.StatusText(status), Message: message}
	var over viewEnded
	if errors.As(err, &over) {
		told.Reload = over.reload
	}
	answer := rest.Reply{Status: status, Body: told}
	if told.Reload != "" && r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate" {
		answer = seeOther(told.Reload)
	}
	if a.isSCIM(r) {
		answer = scimProblem(status, message, err)
	}
	if w.Route != nil && w.Route.Browser && status != http.StatusNotAcceptable {
		w.Header().Set("Vary", varyByVisit["Vary"])
		if page, ok := a.failedLogin(w, r, status, message, err); ok {
			answer = page
		}
	}
	switch status {
	case http.StatusTooManyRequests:
		w.Header().Set("Retry-After", "5")
	case http.StatusServiceUnavailable:
		w.Sender.Drain(r)
		if errs.CodeOf(err) == errs.Unconfirmed { // another try could write twice
			break
		}
		w.Header().Set("Retry-After", strconv.Itoa(max(1, int(math.Ceil(errs.RetryAfterOf(err).Seconds())))))
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", "Bearer")
	case http.StatusRequestEntityTooLarge, http.StatusInsufficientStorage:
		w.Header().Set("Connection", "close") // the rest of the body is not read
	}
	if answer.Status < 400 { // it leads to a page that tells the failure
		w.Header().Del("Retry-After")
		w.Header().Del("WWW-Authenticate")
	}
	w.HAL = false
	w.Header().Del("Content-Disposition") // the file that it was for does not come
	w.Header().Del("Etag")
	_ = answer.Write(w, r)
}

// logFailure logs a failure that an operator should see.
func (a *api) logFailure(log *slog.Logger, w *rest.Response, r *http.Request, status int, err error) {
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
	log.Log(
		r.Context(), level, message, "request", w.ID, "method", r.Method, "path", loggedPath(r.URL.Path), "err",
		err,
	)
}

// finish logs the request and turns a panic of a handler into a 500.
func (a *api) finish(w *rest.Response, r *http.Request) {
	p := recover()
	switch {
	case p == http.ErrAbortHandler && (rest.ClientGone(r) || errors.Is(w.Failure, syscall.EPIPE) ||
		errors.Is(w.Failure, syscall.ECONNRESET)):
		a.Log.InfoContext(
			r.Context(), "client gone", "request", w.ID, "method", r.Method, "path", loggedPath(r.URL.Path),
			"status", rest.StatusClientGone, "err", w.Failure,
		)
		panic(p)
	case p == http.ErrAbortHandler:
		a.Log.WarnContext(
			r.Context(), "answer cut", "request", w.ID, "method", r.Method, "path", loggedPath(r.URL.Path),
			"err", w.Failure,
		)
		panic(p)
	case p != nil && (w.Status != 0 || rest.ClientGone(r)):
		a.Log.ErrorContext(
			r.Context(), "panic in the middle of an answer", "request", w.ID, "panic", fmt.Sprint(p), "stack",
			string(debug.Stack()),
		)
		panic(http.ErrAbortHandler)
	case p != nil:
		a.fail(w, r, fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
	}
	if !a.Log.Enabled(r.Context(), slog.LevelDebug) {
		return
	}
	a.Log.DebugContext(
		r.Context(), "request", "request", w.ID, "client", clientOf(r), "method", r.Method, "path",
		loggedPath(r.URL.Path), "status", w.Status,
	)
}
