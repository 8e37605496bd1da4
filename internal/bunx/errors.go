package bunx

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/tenantcontent/tenantcontent/errs"
)

// SQLite's extended result codes that mean something to a caller.
const (
	sqliteBusy       = 5 // the primary code: the low byte
	sqliteFull       = 13
	sqliteForeignKey = 787
	sqlitePrimaryKey = 1555
	sqliteUnique     = 2067
)

// Err turns a driver's error into one of errs; what names the thing that the statement was about. An error that
// carries a code of ours already is passed on. It compares codes, never text.
func Err(err error, what string) error {
	switch {
	case err == nil, errs.CodeOf(err) != errs.Internal:
		return err
	case errors.Is(err, sql.ErrNoRows):
		return errs.New(errs.NotFound, "%s not found.", what)
	case errors.Is(err, context.Canceled):
		return err
	}
	state, lite := codes(err)
	switch {
	case state == "23505" || lite == sqliteUnique || lite == sqlitePrimaryKey:
		return errs.New(errs.Conflict, "%s exists already.", what) // the cause has nothing but the names of columns
	case state == "23503" || lite == sqliteForeignKey:
		return errs.Wrap(errs.Conflict, err, "%s refers to something that does not exist, or is still referred to.", what)
	case state == "40P01" || state == "40001":
		return errs.Wrap(errs.Unavailable, err, "Another change got in the way. Try again.")
	case heldLong(err):
		return errs.Wrap(errs.Unavailable, fmt.Errorf("%w: %w: %w", errs.ErrDatabaseBusy, errs.RetryAfter(retryAfter), err), "Another change of the database takes long, such as an import or a restore. Try again.")
	case lite&0xff == sqliteBusy:
		return errs.Wrap(errs.Unavailable, fmt.Errorf("%w: %w", errs.ErrDatabaseBusy, err), "The database is not available at the moment. Try again.")
	case away(err, state, lite):
		return errs.Wrap(errs.Unavailable, err, "The database is not available at the moment. Try again.")
	}
	return err
}

// unconfirmed is for the error of a COMMIT, or of a statement that commits by itself. When it was sent, and the server has
// not said that it failed, the change may have been made.
func unconfirmed(err error, sent bool) error {
	if !sent || errs.CodeOf(err) != errs.Unavailable {
		return err
	}
	if state, lite := codes(err); state != "" || lite != 0 {
		return err
	}
	return errs.Wrap(errs.Unavailable, err, "The database did not answer: the change may or may not have been made. Look before you try again.")
}

// lost reports whether the connection was lost after a statement had been sent. Package pgsafe marks such errors.
func lost(err error) bool {
	var e interface{ StatementSent() bool }
	return errors.As(err, &e) && e.StatementSent()
}

// codes returns the SQLSTATE of a PostgreSQL error (pgdriver or pgx) or the code of a SQLite error. The library links no
// driver, so it asks for the methods that their errors have.
func codes(err error) (state string, lite int) {
	var bunpg interface{ Field(byte) string }
	var pgx interface{ SQLState() string }
	var sqlite interface{ Code() int }
	switch {
	case errors.As(err, &bunpg):
		return bunpg.Field('C'), 0
	case errors.As(err, &pgx):
		return pgx.SQLState(), 0
	case errors.As(err, &sqlite):
		return "", sqlite.Code()
	}
	return "", 0
}

// OutOfMemory reports whether a PostgreSQL had no memory for a statement, such as for its locks.
func OutOfMemory(err error) bool {
	state, _ := codes(err)
	return state == "53200"
}

// retryAfter is when the writer of a SQLite database may be free again.
const retryAfter = 5 * time.Second

// heldLong reports whether the writer of a SQLite database was not free because of one long transaction. Package sqlitesafe marks such errors.
func heldLong(err error) bool {
	var e interface{ HeldLong() bool }
	return errors.As(err, &e) && e.HeldLong()
}

// away reports whether the database is gone, refuses, is too slow, or asks for another try.
func away(err error, state string, lite int) bool {
	switch state {
	case "57014", "57P01", "57P02", "57P03", "53300", "53100", "53200", "40001", "40P01", "55P03", "25P03", "25006":
		return true
	}
	var network net.Error
	return strings.HasPrefix(state, "08") ||
		lite&0xff == sqliteFull ||
		errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, context.DeadlineExceeded) || errors.As(err, &network)
}
