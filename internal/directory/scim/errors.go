package scim

import "github.com/tenantcontent/tenantcontent/errs"

// ErrorType is the scimType of an error in the protocol.
type ErrorType string

// The types of errors (RFC 7644, section 3.12).
const (
	InvalidFilter ErrorType = "invalidFilter"
	InvalidPath   ErrorType = "invalidPath"
	InvalidSyntax ErrorType = "invalidSyntax"
	InvalidValue  ErrorType = "invalidValue"
	Mutability    ErrorType = "mutability"
	NoTarget      ErrorType = "noTarget"
	TooMany       ErrorType = "tooMany"
	Uniqueness    ErrorType = "uniqueness"
)

// Error is an error of package errs with a scimType. MessageOf and CodeOf of package errs find the
// wrapped error.
type Error struct {
	Type ErrorType
	Err  error
}

// Error implements error.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the error of package errs.
func (e *Error) Unwrap() error { return e.Err }

// invalid returns an errs.Invalid with a scimType.
func invalid(t ErrorType, format string, args ...any) error {
	return &Error{t, errs.New(errs.Invalid, format, args...)}
}

// taken returns the errs.Conflict for a name that is in use.
func taken(format string, args ...any) error {
	return &Error{Uniqueness, errs.New(errs.Conflict, format, args...)}
}

// shown returns a text from a client in a form for errors.
func shown(s string) string {
	if r := []rune(s); len(r) > 64 {
		return string(r[:64]) + "…"
	}
	return s
}
