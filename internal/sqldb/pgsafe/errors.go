package pgsafe

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/uptrace/bun/driver/pgdriver"
)

// Code returns the SQLSTATE of an error that the server reported, or "".
func Code(err error) string {
	if e, ok := errors.AsType[pgdriver.Error](err); ok {
		return e.Field('C')
	}
	return ""
}

// Unavailable reports whether err means that the server or the connection is lost, or that the
// server refuses connections. A retry may succeed later. It is false for the end of the caller's
// context.
func Unavailable(err error) bool {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	switch code := Code(err); code {
	case "":
		return gone(err) || errors.As(err, new(wrongServer))
	case "57P01", "57P02", "57P03", "57P05", "53300":
		return true
	default:
		return strings.HasPrefix(code, "08") && code != protocolViolation
	}
}

// gone reports whether err is an error of a lost or refused connection.
func gone(err error) bool {
	lost := []error{driver.ErrBadConn, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, os.ErrDeadlineExceeded,
		syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.ECONNABORTED, syscall.EPIPE, syscall.ETIMEDOUT}
	if slices.ContainsFunc(lost, func(e error) bool { return errors.Is(err, e) }) {
		return true
	}
	e, ok := errors.AsType[net.Error](err)
	_, errno := e.(syscall.Errno) // any failed system call implements net.Error
	return ok && !errno
}

// SQLSTATEs that this package handles.
const (
	protocolViolation  = "08P01" // also: the wrong number of arguments
	featureUnsupported = "0A000" // with cachedPlanRoutine: a prepared statement's columns changed
	noSuchStatement    = "26000"
	failedTransaction  = "25P02"

	readOnlyTransaction = "25006"

	cachedPlanRoutine = "RevalidateCachedQuery"
)

// ordinary reports whether err is a server's answer to a statement after which the connection can
// be used.
func ordinary(err error) bool {
	e, ok := errors.AsType[pgdriver.Error](err)
	if !ok {
		return false
	}
	code, severity := e.Field('C'), e.Field('V')
	return code != "" && code != protocolViolation && !strings.HasPrefix(code, "57P0") &&
		severity != "FATAL" && severity != "PANIC"
}

// stale reports whether err means that a prepared statement must be prepared again. The statement
// was not executed.
func stale(err error) bool {
	e, ok := errors.AsType[pgdriver.Error](err)
	if !ok {
		return false
	}
	return e.Field('C') == noSuchStatement ||
		e.Field('C') == featureUnsupported && e.Field('R') == cachedPlanRoutine
}

// lostError is the error of a statement whose answer was not read, because its connection was lost
// or its context ended.
type lostError struct {
	err  error
	sent bool // for execution
}

func (l lostError) Error() string { return l.err.Error() }

func (l lostError) Unwrap() error { return l.err }

// StatementSent reports whether the statement may have been executed. Package bunx calls it.
func (l lostError) StatementSent() bool { return l.sent }

// unsent is the error of a failed attempt to connect.
type unsent struct{ error }

func (u unsent) Unwrap() error { return u.error }

// StatementSent reports false.
func (unsent) StatementSent() bool { return false }

// refusal is the error of a call that is refused before anything is sent. The connection is not
// affected.
type refusal string

func (r refusal) Error() string { return "pgsafe: " + string(r) }
