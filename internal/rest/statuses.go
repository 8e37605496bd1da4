package rest

import (
	"context"
	"errors"
	"net/http"

	"github.com/tenantcontent/tenantcontent/errs"
)

// Problem is the body of every failure.
type Problem struct {
	StatusCode int    `json:"statusCode"`
	Error      string `json:"error"`
	Message    string `json:"message"`
	// Reload is the URL where a person can go on: see Ended.
	Reload string `json:"reload,omitempty"`
}

// StatusOf returns the status of a code, and 0 for an error of no code.
func StatusOf(code errs.Code) int { return statuses[code] }

// statuses are those of the codes of errors.
var statuses = map[errs.Code]int{
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

// PlainProblem returns the status and the message of an error that needs no headers.
func PlainProblem(err error) (status int, message string) {
	if status = StatusOf(errs.CodeOf(err)); status == 0 || status == http.StatusInternalServerError {
		return http.StatusInternalServerError, InternalMessage
	}
	return status, errs.MessageOf(err)
}

// InternalMessage is the message of every 500.
const InternalMessage = "An internal server error occurred"

// Failure is an error with an HTTP status of its own.
type Failure struct {
	Status  int
	Message string
}

// Error implements error.
func (f Failure) Error() string { return f.Message }

// Ended is the error of a request whose credential has ended. A person can get another one at
// Reload: a browser that goes to a page is sent there, and the answer to a page's call names it.
type Ended struct {
	error
	Reload string
}

// NewEnded returns an Ended with an error that has a code.
func NewEnded(err error, reload string) Ended { return Ended{err, reload} }

// Unwrap returns the error with its code.
func (e Ended) Unwrap() error { return e.error }

// ContentStatus is the status with which http.ServeContent refuses a request: for a range outside
// the file, or a condition that is false.
type ContentStatus int

// Error implements error.
func (s ContentStatus) Error() string {
	if s == http.StatusRequestedRangeNotSatisfiable {
		return "The file has no bytes in this range."
	}
	return "The file is not as the request demands."
}

// StatusClientGone is logged as the status of a request whose client hung up, as nginx does.
const StatusClientGone = 499

// ClientGone reports whether the client has hung up.
func ClientGone(r *http.Request) bool { return errors.Is(r.Context().Err(), context.Canceled) }

// IsRead reports whether a method only reads.
func IsRead(method string) bool { return method == http.MethodGet || method == http.MethodHead }
