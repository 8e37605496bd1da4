// Package jsvm defines how tenantcontent compiles and runs the JavaScript that tenants write: a
// small Runtime interface, the values that go in and out, and the limits. It links no engine.
// Package internal/handlers/quickjs is the ready Runtime, and a host can bring another one that
// passes the suite in jsvm/jsvmtest.
//
// A script is a set of ECMAScript modules with one entry. It can reach nothing but the language, a
// few standard globals (console, URL, TextEncoder, crypto and others, listed in docs/javascript.md)
// and the functions that the caller passes to Run.
package jsvm

import (
	"context"
	"encoding/json"
	"io/fs"
	"time"
)

// Runtime compiles and runs scripts. Implementations must be safe for concurrent use and must pass
// jsvmtest.Test.
type Runtime interface {
	// Compile bundles the entry of src with all files that it imports, and compiles the bundle. It
	// returns errs.Invalid with a sentence that names file and line if the script is wrong, imports
	// anything but relative paths inside src.Files, or exceeds the limits of the Runtime, and
	// errs.Unavailable if the Runtime is at its limit of scripts at once.
	Compile(ctx context.Context, src Source) (*Program, error)

	// Run calls an export of p in a fresh global state and returns what became of it. What the
	// script does is in the Result: an error of the script is no error of Run. Run returns
	// errs.NotFound if p has no such export, errs.Conflict if p was compiled by another Runtime or
	// version and must be compiled again, and errs.Unavailable if too many scripts run already. If
	// ctx ends, the script is stopped and its outcome is Canceled.
	//
	// Run returns after all functions of the Call that the script has called have returned. Their
	// context ends when the script is out of time.
	Run(ctx context.Context, p *Program, c Call) (Result, error)

	// Close stops all scripts and frees what the Runtime holds. Later calls of Compile and Run
	// return errs.Unavailable.
	Close() error
}

// Source is a script before it is compiled.
type Source struct {
	Files fs.FS  // the script's own files; only those that are imported are read, and they are only kept in memory
	Entry string // slash-separated path of the module whose exports can be run, such as "webhooks/stripe/payment.js"

	Tenant string // on whose account the work counts, as in Call
	Key    string
}

// Program is a compiled script. It can be stored, as JSON for example, and run any number of times,
// at once, too. A Runtime keeps nothing of a Program that is not in use, except bounded caches.
type Program struct {
	Engine  string   // name and version of the Runtime that compiled it
	Hash    string   // identifies Code and Engine
	Entry   string   // the Source's Entry
	Exports []string // names that the entry exports, sorted
	Files   []string // paths that were bundled, sorted
	Code    []byte   // in a format of the Runtime's own
	Map     []byte   // source map from the bundle to the files, for the positions of errors
}

// Function is a function of the host that a script can call. args is a JSON array of the arguments.
// The result is JSON, or nil for undefined.
//
// An error is thrown in the script as an Error: one of package errs with its message, and with its
// code as the property code; any other one is logged, and thrown with the message that the call
// failed. ctx ends when the script is out of time or its caller is gone. A Function that ignores
// that delays the return of Run, but not the end of the script.
type Function func(ctx context.Context, args json.RawMessage) (json.RawMessage, error)

// Call is one invocation of a Program.
type Call struct {
	Function string            // name of the export to call; if it is no function, its value is the result
	Args     []json.RawMessage // JSON of each argument

	// Functions are the host's functions by name. The last argument of the export is an object that
	// has each of them as an asynchronous method, unless the Runtime has a prelude of the host that
	// does it differently.
	Functions map[string]Function

	// Respond is called with the JSON of the early result (nil for undefined) when the script sends
	// one, as soon as it does and at most once. The script goes on. Nil if the caller does not wait
	// for one.
	Respond func(value json.RawMessage)

	Limits Limits // 0 stands for the Runtime's own limit, which is also the highest one

	// Tenant and Key count who uses how much: a Runtime is fair between tenants, and within each
	// between keys, such as the ids of apps. Scripts of two tenants share nothing that could be
	// left behind, such as a process.
	Tenant string
	Key    string
}

// Limits bound one invocation. 0 stands for a default.
type Limits struct {
	Time      time.Duration // wall-clock time
	Active    time.Duration // CPU time, and the time that it waits for its timers and functions
	Memory    int64         // bytes of JavaScript values
	Output    int           // bytes of the result's and of the early result's JSON
	LogBytes  int           // bytes of log lines; more are counted and dropped
	LogLines  int           // number of log lines; more are counted and dropped
	Calls     int           // number of calls of the host's functions
	CallBytes int           // bytes of the arguments' JSON and of the result's JSON of one call
}

// Within returns l with highest for each limit that is 0 or above it.
func (l Limits) Within(highest Limits) Limits {
	within(&l.Time, highest.Time)
	within(&l.Active, highest.Active)
	within(&l.Memory, highest.Memory)
	within(&l.Output, highest.Output)
	within(&l.LogBytes, highest.LogBytes)
	within(&l.LogLines, highest.LogLines)
	within(&l.Calls, highest.Calls)
	within(&l.CallBytes, highest.CallBytes)
	return l
}

func within[T int | int64 | time.Duration](v *T, highest T) {
	if *v <= 0 || *v > highest {
		*v = highest
	}
}

// Shares are how much the scripts of a Runtime can have at once, and of CPU time.
type Shares struct {
	Scripts   int           // at once, with those that wait
	OfTenant  int           // of one tenant, while others want none
	OfKey     int           // of one key of it
	Computing int           // that compute at once at usual priority
	Slice     time.Duration // CPU time after which a script is slow: it has the lowest priority, and may be suspended
	Window    time.Duration // in which CPU time counts
	// TenantCPU and KeyCPU are the CPU time in a Window from which on the slow scripts of a tenant
	// or key compute only while no others want to.
	TenantCPU, KeyCPU time.Duration
}

// Outcome is how an invocation ended.
type Outcome string

// The outcomes.
const (
	OK       Outcome = "ok"       // the export returned
	Thrown   Outcome = "thrown"   // it threw, or exceeded a limit that throws
	Timeout  Outcome = "timeout"  // it was stopped at Limits.Time or Limits.Active
	Memory   Outcome = "memory"   // it was stopped at Limits.Memory
	Canceled Outcome = "canceled" // it was stopped because the context of Run ended
	Killed   Outcome = "killed"   // the process that ran it ended by itself
	Evicted  Outcome = "evicted"  // it was stopped in favour of scripts of others, which had no place or memory
)

// Result is what became of an invocation.
type Result struct {
	Outcome Outcome
	Value   json.RawMessage // the result's JSON; nil for undefined and unless the Outcome is OK
	Error   *Error          // set unless the Outcome is OK

	Logs        []Log
	LogsDropped int // lines beyond the limits

	Duration   time.Duration // without the wait for a free process
	Waited     time.Duration // for a free process
	PeakMemory int64         // bytes; of the whole process if that had to be killed
	Calls      int           // calls of the host's functions
	Killed     bool          // whether the process had to be killed to stop the script
}

// Error is an error of a script.
type Error struct {
	Name    string // such as "TypeError"
	Message string
	Stack   string // a line for each frame, with paths and lines of the Source where they are known
}

// Error returns the name and the message.
func (e *Error) Error() string {
	switch {
	case e.Name == "":
		return e.Message
	case e.Message == "":
		return e.Name
	}
	return e.Name + ": " + e.Message
}

// Log is a line that a script has logged.
type Log struct {
	Time  time.Time
	Level string // "debug", "info", "warn" or "error"
	Text  string
}
