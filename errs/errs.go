// Package errs defines the errors of tenantcontent: a code for programs and a sentence for people.
//
//	err := errs.New(errs.Invalid, "color must be #rgb or #rrggbb, not %q", text)
//	errs.CodeOf(err)    // errs.Invalid
//	errs.MessageOf(err) // the sentence, also of an error that wraps it
//
// Every package may import it; it imports no other package of the module. The cause that an error
// wraps is only for the log: only MessageOf may be shown to callers.
package errs

import (
	"errors"
	"fmt"
	"time"
)

// Code is the kind of a failure. httpapi maps each code to one HTTP status. A Code is an error,
// too, for errors.Is:
//
//	if errors.Is(err, errs.NotFound) { … }
type Code string

// Error returns the code.
func (c Code) Error() string { return string(c) }

// The codes, with the HTTP status to which httpapi maps them.
const (
	Internal         Code = "internal"           // 500: a fault of ours; the message is never shown
	Invalid          Code = "invalid"            // 400: the caller's input is wrong; the message names the field
	Unauthenticated  Code = "unauthenticated"    // 401: no or bad credentials
	Forbidden        Code = "forbidden"          // 403: a right is missing on something the caller can see
	NotFound         Code = "not_found"          // 404: not there, of another tenant, or not visible to the caller
	MethodNotAllowed Code = "method_not_allowed" // 405: the path does not support the method
	Conflict         Code = "conflict"           // 409: a taken name, slug or lock
	Stale            Code = "stale"              // 412: the resource is not as the headers of the request demand
	TooLarge         Code = "too_large"          // 413: more bytes than allowed
	Unsupported      Code = "unsupported"        // 415: a content type that the route does not read
	Unprocessable    Code = "unprocessable"      // 422: colors-list, whatever its failure is
	// 502: another server that this one needs, such as a directory, is unreachable or refuses
	Upstream    Code = "upstream"
	Busy        Code = "busy"        // 429: too much at once from this caller; try again later
	Unavailable Code = "unavailable" // 503: the database is unreachable or too slow; try again
	// 503 without Retry-After: a write was sent, but its answer was not read; it may have been done
	Unconfirmed Code = "unconfirmed"
	Full        Code = "full"     // 507: a quota or a disk is full
	Canceled    Code = "canceled" // 499 in the log: the caller's context ended before anything was sent
)

// Error is an error with a code, a message that may be shown to any caller, and a cause that may
// not.
type Error struct {
	Code    Code
	Message string
	Cause   error
}

// Error returns the message and the cause, for logs.
func (e *Error) Error() string {
	if e.Cause == nil {
		return e.Message
	}
	return e.Message + ": " + e.Cause.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Is reports whether target is the code of the error.
func (e *Error) Is(target error) bool { return target == error(e.Code) }

// New returns an error with a code. format and args make its message.
func New(code Code, format string, args ...any) error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Wrap returns an error with a code, a message and a cause. The cause is logged and never shown.
func Wrap(code Code, cause error, format string, args ...any) error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...), Cause: cause}
}

// CodeOf returns the code of the outermost Error in err's chain, Internal if the chain has no
// Error, and "" if err is nil. errors.Is also finds the codes of the causes.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return Internal
}

// MessageOf returns the message of the outermost Error in err's chain, or "" if the chain has no
// Error.
func MessageOf(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Message
	}
	return ""
}

// ErrDatabaseBusy is the cause of an Unavailable when another transaction held the database for too
// long. Nothing was written.
var ErrDatabaseBusy = errors.New("others are changing the database")

// RetryAfter is the cause of an Unavailable that can be retried after this time.
type RetryAfter time.Duration

// Error returns the time.
func (d RetryAfter) Error() string { return "try again after " + time.Duration(d).String() }

// RetryAfterOf returns the RetryAfter that err wraps, or 0.
func RetryAfterOf(err error) time.Duration {
	var d RetryAfter
	_ = errors.As(err, &d)
	return time.Duration(d)
}
