package rest

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"runtime/debug"
	"strconv"
	"syscall"
	"time"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
)

// fail writes the answer to a request that failed. An error that has no code of package errs is
// logged and answered with a plain 500.
func (e *Engine) fail(w *Response, r *http.Request, err error) {
	if errs.CodeOf(err) == errs.Unauthenticated && e.o.Visible != nil {
		if hidden := e.o.Visible(r.Context()); hidden != nil { // the credential may well be right
			err = hidden
		}
	}
	status, message := StatusOf(errs.CodeOf(err)), errs.MessageOf(err)
	var methods interface{ Allow() string }
	var file ContentStatus
	var own Failure
	switch {
	case errors.As(err, &methods):
		w.Header().Set("Allow", methods.Allow())
		if status == 0 {
			status, message = http.StatusMethodNotAllowed, err.Error()
		}
	case errors.As(err, &own):
		status, message = own.Status, own.Message
	case errors.As(err, &file):
		status, message = int(file), file.Error()
	case (status == 0 || status >= 500) && ClientGone(r):
		w.Failure = err
		panic(http.ErrAbortHandler)
	case status == 0:
		status, message = http.StatusInternalServerError, InternalMessage
	}
	log := e.o.Log
	var logged interface{ Logged() }
	if errors.As(err, &logged) && status != http.StatusInternalServerError {
		log = slog.New(slog.DiscardHandler)
	}
	w.Code = errs.CodeOf(err)
	e.logFailure(log, w, r, status, err)
	told := Problem{StatusCode: status, Error: http.StatusText(status), Message: message}
	var over Ended
	if errors.As(err, &over) {
		told.Reload = over.Reload
	}
	answer := Reply{Status: status, Body: told}
	if told.Reload != "" && r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate" {
		answer = SeeOther(told.Reload)
	}
	if e.o.Problem != nil {
		if own, ok := e.o.Problem(r, status, message, err); ok {
			answer = own
		}
	}
	if w.Route != nil && w.Route.Failed != nil && status != http.StatusNotAcceptable {
		if page, ok := w.Route.Failed(w, r, status, message, err); ok {
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
	if answer.Status < 400 { // it leads to the page of the failure
		w.Header().Del("Retry-After")
		w.Header().Del("WWW-Authenticate")
	}
	w.HAL = false
	w.Header().Del("Content-Disposition") // the file that it was for does not come
	w.Header().Del("Etag")
	_ = answer.Write(w, r)
}

// logFailure logs a failure that an operator should see.
func (e *Engine) logFailure(log *slog.Logger, w *Response, r *http.Request, status int, err error) {
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
	if e.o.Failed != nil && e.o.Failed(err) {
		level = slog.LevelDebug
	}
	log.Log(
		r.Context(), level, message, "request", w.ID, "method", r.Method, "path", e.o.LoggedPath(r.URL.Path), "err",
		err,
	)
}

// finish logs the request and turns a panic of a handler into a 500.
func (e *Engine) finish(w *Response, r *http.Request) {
	p := recover()
	switch {
	case p == http.ErrAbortHandler && (ClientGone(r) || errors.Is(w.Failure, syscall.EPIPE) ||
		errors.Is(w.Failure, syscall.ECONNRESET)):
		e.o.Log.InfoContext(
			r.Context(), "client gone", "request", w.ID, "method", r.Method, "path", e.o.LoggedPath(r.URL.Path),
			"status", StatusClientGone, "err", w.Failure,
		)
		panic(p)
	case p == http.ErrAbortHandler:
		e.o.Log.WarnContext(
			r.Context(), "answer cut", "request", w.ID, "method", r.Method, "path", e.o.LoggedPath(r.URL.Path),
			"err", w.Failure,
		)
		panic(p)
	case p != nil && (w.Status != 0 || ClientGone(r)):
		e.o.Log.ErrorContext(
			r.Context(), "panic in the middle of an answer", "request", w.ID, "panic", fmt.Sprint(p), "stack",
			string(debug.Stack()),
		)
		panic(http.ErrAbortHandler)
	case p != nil:
		e.fail(w, r, fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
	}
	if !e.o.Log.Enabled(r.Context(), slog.LevelDebug) {
		return
	}
	e.o.Log.DebugContext(
		r.Context(), "request", "request", w.ID, "client", ClientOf(r), "method", r.Method, "path",
		e.o.LoggedPath(r.URL.Path), "status", w.Status,
	)
}

// observe notifies the Observer of a request that has been answered, or whose client is gone.
func (e *Engine) observe(w *Response, r *http.Request, start time.Time) {
	o := entity.Observation{
		Work:    entity.RequestWork,
		Status:  w.Status,
		Outcome: cmp.Or(string(w.Code), entity.OK),
		Start:   start,
		Method:  r.Method, UserAgent: r.UserAgent(), Sent: w.sent,
	}
	if w.Sender != nil {
		o.Received = w.Sender.bytes
	}
	if w.Route != nil {
		o.Kind = w.Route.kind
	}
	if w.Who != nil {
		o.Tenant, o.User = w.Who.Tenant, w.Who.User
	}
	if r.Method == http.MethodHead {
		o.Sent = 0
	}
	switch {
	case ClientGone(r):
		o.Status, o.Outcome = StatusClientGone, string(errs.Canceled)
	case w.Failure != nil: // the answer was cut
		o.Outcome = string(errs.CodeOf(w.Failure))
	}
	entity.Observe(r.Context(), e.o.Observer, o)
}

// ClientOf returns the client's address for the log, "" if it is not known.
func ClientOf(r *http.Request) string {
	if at := actor.OriginOf(r.Context()).Address; at.IsValid() {
		return at.String()
	}
	return ""
}
