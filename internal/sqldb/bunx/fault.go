package bunx

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/tenantcontent/tenantcontent/errs"
)

// Fault is the state of the database that an error reveals.
type Fault string

// The faults. Each but Away lasts until an operator acts or a fail-over is complete.
const (
	NoFault Fault = "" // no fault of the database: an error of the statement, or one that can be retried
	// it cannot be reached, refuses connections, is shutting down, or has no memory or connection
	// left
	Away       Fault = "away"
	ReadOnly   Fault = "read-only"  // a standby, a read-only file or file system, or no right to write
	DiskFull   Fault = "full"       // no space for what is written
	Damaged    Fault = "damaged"    // its files are damaged, or cannot be read or written
	Unmigrated Fault = "unmigrated" // it has no tables, or those of another version
)

// FaultOf returns the fault that an error of a statement, of a transaction or of connecting
// reveals. err may be translated by Err. It compares codes, not text, except for a missing table of
// a SQLite database, which has no specific code.
func FaultOf(err error) Fault {
	if err == nil {
		return NoFault
	}
	switch e := codes(err); {
	case e.state != "":
		return postgresFault(e)
	case e.lite != 0:
		return sqliteFault(e.lite, err)
	case unreachable(err):
		return Away
	}
	return NoFault
}

// sentences are messages for people. The code is errs.Full for DiskFull, and errs.Unavailable for
// the others.
var sentences = map[Fault]string{
	Away:     "The database is not available at the moment. Try again.",
	ReadOnly: "The database can only be read at the moment, so nothing was changed. Try again later.",
	DiskFull: "The database has no room left, so nothing was changed. The operator of this server has to make room.",
	Damaged:  "The database cannot read or write its files. The operator of this server has to look at it.",
	Unmigrated: "The database lacks a table or column of this version. The operator of this server has to run: " +
		"tenantcontent migrate",
}

// TranslatedFault is FaultOf for errors of the service's own database, which Err has translated. It
// returns NoFault for other errors.
func TranslatedFault(err error) Fault {
	if f := FaultOf(err); f != NoFault && errs.MessageOf(err) == sentences[f] {
		return f
	}
	return NoFault
}

// Corrupt reports whether a statement has read a damaged part of the database.
func Corrupt(err error) bool {
	switch e := codes(err); {
	case e.state != "":
		return e.state == "XX001" || e.state == "XX002"
	default:
		return e.lite&0xff == sqliteCorrupt || e.lite&0xff == sqliteNotADB
	}
}

// postgresFault returns the fault for each class of SQLSTATE that is about the server: see appendix
// A of PostgreSQL's manual.
func postgresFault(e code) Fault {
	switch e.state {
	case "53100":
		return DiskFull
	case "25006":
		return ReadOnly
	case "42501": // no privilege, and also EROFS, EACCES and EPERM for the files of the server
		if e.routine != "ExecWithCheckOptions" { // a row that violates a policy is an error of the program
			return ReadOnly
		}
	case "42P01", "42703", "3F000": // undefined table, column or schema
		return Unmigrated
	case "54000":
		if e.routine == "GetNewTransactionId" || e.routine == "GetNewMultiXactId" { // VACUUM is necessary
			return ReadOnly
		}
	case "25P03", "25P04", "3D000":
		// the server ended an idle or long transaction, or does not have the database of the URL
		return Away
	case "57014": // the statement was cancelled
		return NoFault
	}
	switch e.state[:min(2, len(e.state))] {
	case "08", "28", "53", "57": // connections, authorization, resources, the operator
		return Away
	case "58", "XX": // system calls, internal errors of PostgreSQL
		return Damaged
	}
	return NoFault
}

// Primary result codes of SQLite: the low byte of an extended code.
const (
	sqliteError     = 1
	sqlitePerm      = 3
	sqliteAbort     = 4
	sqliteBusy      = 5
	sqliteLocked    = 6
	sqliteNoMemory  = 7
	sqliteReadOnly  = 8
	sqliteInterrupt = 9
	sqliteIO        = 10
	sqliteCorrupt   = 11
	sqliteFull      = 13
	sqliteCantOpen  = 14
	sqliteProtocol  = 15
	sqliteSchema    = 17
	sqliteTooBig    = 18
	sqliteNotADB    = 26
)

func sqliteFault(lite int, err error) Fault {
	switch lite & 0xff {
	case sqliteFull:
		return DiskFull
	case sqliteReadOnly, sqlitePerm:
		return ReadOnly
	case sqliteIO, sqliteCorrupt, sqliteNotADB, sqliteCantOpen:
		return Damaged
	case sqliteNoMemory, sqliteProtocol:
		return Away
	case sqliteError:
		if text := err.Error(); strings.Contains(text, "no such table: tc_") ||
			strings.Contains(text, "no such column: ") {
			return Unmigrated
		}
	}
	return NoFault
}

// unreachable reports whether an error without a database code is one of the connection.
func unreachable(err error) bool {
	var network net.Error
	return errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		!errors.Is(err, context.Canceled) && errors.As(err, &network) // context.DeadlineExceeded is a net.Error
}

// err returns the error for callers.
func (f Fault) err(cause error) error {
	code := errs.Unavailable
	if f == DiskFull {
		code = errs.Full
	}
	return errs.Wrap(code, cause, "%s", sentences[f])
}
