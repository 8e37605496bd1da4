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

// Fault is what an error tells of the database itself, not of one statement.
type Fault string

// The faults. Each but Away lasts until an operator has done something, or a fail-over is over.
const (
	NoFault Fault = "" // none that is known: the statement's own error, or one for another try
	// it cannot be reached, refuses the program, ends, or has no memory or connection left
	Away       Fault = "away"
	ReadOnly   Fault = "read-only"  // a standby, a read-only file or file system, or no right to write
	DiskFull   Fault = "full"       // no room for what is written
	Damaged    Fault = "damaged"    // its files are damaged, or cannot be read or written
	Unmigrated Fault = "unmigrated" // it has no tables, or those of another version
)

// FaultOf returns the fault that an error of a statement, of a transaction or of connecting tells
// of; err may be one that Err has translated. It compares codes, not text, except for a table that
// a SQLite database lacks, which has no code of its own.
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

// sentences are for people. errs.Full is the code of DiskFull, errs.Unavailable that of the others.
var sentences = map[Fault]string{
	Away:     "The database is not available at the moment. Try again.",
	ReadOnly: "The database can only be read at the moment, so nothing was changed. Try again later.",
	DiskFull: "The database has no room left, so nothing was changed. The operator of this server has to make room.",
	Damaged:  "The database cannot read or write its files. The operator of this server has to look at it.",
	Unmigrated: "The database lacks a table or column of this version. The operator of this server has to run: " +
		"tenantcontent migrate",
}

// TranslatedFault is FaultOf for an error that Err has translated, which is one of the service's
// own database. Of others it returns NoFault.
func TranslatedFault(err error) Fault {
	if f := FaultOf(err); f != NoFault && errs.MessageOf(err) == sentences[f] {
		return f
	}
	return NoFault
}

// Corrupt reports whether a statement has met a part of the database that is damaged.
func Corrupt(err error) bool {
	switch e := codes(err); {
	case e.state != "":
		return e.state == "XX001" || e.state == "XX002"
	default:
		return e.lite&0xff == sqliteCorrupt || e.lite&0xff == sqliteNotADB
	}
}

// postgresFault decides each class of SQLSTATE that is about the server: appendix A of PostgreSQL's
// manual.
func postgresFault(e code) Fault {
	switch e.state {
	case "53100":
		return DiskFull
	case "25006":
		return ReadOnly
	case "42501": // no right, and also EROFS, EACCES and EPERM of the server's own files
		if e.routine != "ExecWithCheckOptions" { // a row that a policy does not let in is a fault of ours
			return ReadOnly
		}
	case "42P01", "42703", "3F000": // a table, a column, a schema
		return Unmigrated
	case "54000":
		if e.routine == "GetNewTransactionId" || e.routine == "GetNewMultiXactId" { // it must be vacuumed first
			return ReadOnly
		}
	case "25P03", "25P04", "3D000":
		// it has ended a transaction that was idle or long; it has no database of the URL's name
		return Away
	case "57014": // the statement was cancelled
		return NoFault
	}
	switch e.state[:min(2, len(e.state))] {
	case "08", "28", "53", "57": // connections, who may log in, resources, the operator
		return Away
	case "58", "XX": // the system's calls, PostgreSQL itself
		return Damaged
	}
	return NoFault
}

// SQLite's primary result codes. Of an extended code they are the low byte.
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

// unreachable reports whether an error without a code of the database is one of its connection.
func unreachable(err error) bool {
	var network net.Error
	return errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		!errors.Is(err, context.Canceled) && errors.As(err, &network) // context.DeadlineExceeded is one
}

// err returns the error for people.
func (f Fault) err(cause error) error {
	code := errs.Unavailable
	if f == DiskFull {
		code = errs.Full
	}
	return errs.Wrap(code, cause, "%s", sentences[f])
}
