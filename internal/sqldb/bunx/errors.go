package bunx

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/errs"
)

// Extended result codes of SQLite that have a meaning for callers.
const (
	sqliteForeignKey = 787
	sqlitePrimaryKey = 1555
	sqliteUnique     = 2067
)

// Err translates a driver's error into one of errs. what names the subject of the statement. An
// error with a code of errs is returned unchanged. See FaultOf for how errors are compared.
func Err(err error, what string) error {
	switch {
	case err == nil, errs.CodeOf(err) != errs.Internal:
		return err
	case errors.Is(err, sql.ErrNoRows):
		return errs.New(errs.NotFound, "%s not found.", what)
	case errors.Is(err, context.Canceled):
		return errs.Wrap(errs.Canceled, err, "This was ended before it was done, and nothing was changed.")
	}
	e := codes(err)
	switch {
	case e.state == "23505" || e.lite == sqliteUnique || e.lite == sqlitePrimaryKey:
		return errs.New(errs.Conflict, "%s exists already.", what) // the cause contains only names of columns
	case e.state == "23503" || e.lite == sqliteForeignKey:
		return errs.Wrap(
			errs.Conflict, err, "%s refers to something that does not exist, or is still referred to.", what,
		)
	case heldLong(err):
		return errs.Wrap(
			errs.Unavailable, fmt.Errorf("%w: %w: %w", errs.ErrDatabaseBusy, errs.RetryAfter(retryAfter), err),
			"Another change of the database takes long, such as an import or a restore. Try again.",
		)
	case e.lite&0xff == sqliteBusy:
		return errs.Wrap(errs.Unavailable, fmt.Errorf("%w: %w", errs.ErrDatabaseBusy, err), "%s", sentences[Away])
	case e.conflicts():
		return errs.Wrap(errs.Unavailable, err, "Another change got in the way. Try again.")
	case e.passes():
		return errs.Wrap(errs.Unavailable, err, "%s", sentences[Away])
	case e.state == "22P05":
		return errs.Wrap(
			errs.Invalid, err, "%s has a character that the database cannot hold, as its encoding is not UTF8.",
			what,
		)
	}
	if f := FaultOf(err); f != NoFault {
		return f.err(err)
	}
	if strings.HasPrefix(e.state, "54") || e.lite&0xff == sqliteTooBig {
		return errs.Wrap(errs.TooLarge, err, "%s is too large for the database.", what)
	}
	return err
}

// conflicts reports whether the statement failed because of another one, or because a prepared
// statement is stale. It can succeed in a new transaction.
func (e code) conflicts() bool {
	switch e.state {
	case "72000", "26000", "42P05": // an old snapshot; a prepared statement that is lost, or of another session
		return true
	case "0A000":
		return e.routine == "RevalidateCachedQuery" // the columns of a table have changed
	}
	return strings.HasPrefix(e.state, "40")
}

// passes reports whether the failure is temporary: the statement was cancelled, something was in
// use, or the transaction was in a wrong state.
func (e code) passes() bool {
	switch e.lite & 0xff {
	case sqliteAbort, sqliteLocked, sqliteInterrupt, sqliteSchema:
		return true
	}
	return e.state == "57014" || strings.HasPrefix(e.state, "55") || strings.HasPrefix(e.state, "25") &&
		postgresFault(e) == NoFault
}

// unconfirmed returns errs.Unconfirmed for the error of a COMMIT, or of a statement that commits by
// itself, if it was sent, because the change may have been made. It returns other errors unchanged.
func unconfirmed(err error, sent bool) error {
	if err == nil || !sent {
		return err
	}
	return errs.Wrap(
		errs.Unconfirmed, err,
		"The database did not answer: the change may or may not have been made. Look before you try again.",
	)
}

// sent reports whether a statement was sent without a known result. pgsafe and pgx mark their
// errors. Errors of other drivers are distinguished by type: a network error, unless it is one of
// connecting, means that the statement was sent. begun reports whether there was a connection. If
// so, the end of a context also means that the statement was sent; without a connection, package
// sql returns the same error as pgx.
func sent(err error, begun bool) bool {
	var marked interface{ StatementSent() bool }
	var pgx interface{ SafeToRetry() bool }
	var network *net.OpError
	if errors.As(err, &marked) {
		return marked.StatementSent()
	}
	if e := codes(err); e != (code{}) {
		return e.state == "40003" || e.state == "08007" // statement completion unknown, transaction resolution unknown
	}
	cause := err
	for {
		e, ok := cause.(*errs.Error)
		if !ok {
			break
		}
		cause = e.Cause
	}
	switch {
	case errors.As(err, &pgx) && pgx.SafeToRetry(), errors.As(err, &network) && network.Op == "dial",
		!begun && (cause == context.Canceled || cause == context.DeadlineExceeded),
		errors.Is(err, driver.ErrBadConn), errors.Is(err, sql.ErrTxDone), errors.Is(err, sql.ErrConnDone):
		return false
	}
	return unreachable(err) || errors.Is(err, context.Canceled)
}

// named returns an error that names the tenant if err is a foreign key violation because the tenant
// does not exist.
func named(ctx context.Context, db *bun.DB, tenant string, err error) error {
	if e := codes(err); err == nil || tenant == "" || tenant == AllTenants || e.state != "23503" &&
		e.lite != sqliteForeignKey {
		return err
	}
	ctx, c := For(ctx, db, tenant)
	var found string
	if c.Row(ctx, `SELECT tenant_id FROM tc_tenants WHERE tenant_id = $1`, tenant).Scan(&found) != sql.ErrNoRows {
		return err
	}
	return errs.Wrap(errs.Conflict, err, "Tenant %q not found.", tenant)
}

// code is the code of a database error.
type code struct {
	state   string // SQLSTATE of a PostgreSQL
	routine string // the function of PostgreSQL that reported it, or ""
	lite    int    // extended result code of SQLite
}

// codes returns the code of a PostgreSQL error (pgdriver or pgx) or of a SQLite error. The library
// links no driver, so it checks for methods of their errors.
func codes(err error) code {
	var bunpg interface{ Field(byte) string }
	var pgx interface{ SQLState() string }
	var sqlite interface{ Code() int }
	switch {
	case errors.As(err, &bunpg):
		return code{state: bunpg.Field('C'), routine: bunpg.Field('R')}
	case errors.As(err, &pgx):
		return code{state: pgx.SQLState()}
	case errors.As(err, &sqlite):
		return code{lite: sqlite.Code()}
	}
	return code{}
}

// OutOfMemory reports whether PostgreSQL did not have enough memory for a statement, such as for
// its locks.
func OutOfMemory(err error) bool {
	return codes(err).state == "53200"
}

// retryAfter is when a caller should retry while one transaction holds the writer of a SQLite
// database.
const retryAfter = 5 * time.Second

// heldLong reports whether the writer of a SQLite database was not free because of one long
// transaction. Package sqlitesafe marks such errors.
func heldLong(err error) bool {
	var e interface{ HeldLong() bool }
	return errors.As(err, &e) && e.HeldLong()
}
