package entity

import (
	"context"
	"time"

	"github.com/tenantcontent/tenantcontent/errs"
)

// Work is a kind of work that an Observer is notified of.
type Work string

// The kinds of work. The comments describe Observation.Kind and Status of each.
const (
	RequestWork   Work = "request"   // method and pattern of its route, "" for an unknown path; the HTTP status
	StatementWork Work = "statement" // its first word, such as SELECT, BEGIN and COMMIT
	JobWork       Work = "job"       // the kind of the job; one try of it
	HandlerWork   Work = "handler"   // area and pattern of its route; also tools of agents
	ModelWork     Work = "model"     // chat or image
	ScanWork      Work = "scan"      // the driver of the directory
	ArchiveWork   Work = "archive"   // export, import, restore, deploy, tenant export or tenant import
)

// OK is the Outcome of what has succeeded.
const OK = "ok"

// Observation describes finished work to an Observer. It contains nothing that users have written
// or sent: no path, body, argument of a statement, or text of an error.
type Observation struct {
	Work     Work
	Tenant   string // "" if it has no tenant or the tenant is not known
	Kind     string
	Outcome  string // OK, a code of errs, or how a script has ended, such as timeout
	Status   int    // 0 if the work has no status
	Start    time.Time
	Duration time.Duration
}

// Observer is notified when work has ended, for metrics and traces. Several goroutines call it, and
// the work waits for it: it must return fast and not panic. ctx is that of the work, and may have
// ended.
type Observer interface {
	Observe(ctx context.Context, o Observation)
}

// Beginner is an Observer that is told when work begins, too. It returns the context of the work,
// which Observe gets at its end, and all work that is done inside of it.
type Beginner interface {
	Begin(ctx context.Context, work Work) context.Context
}

// Begin notifies an Observer that is a Beginner of work that begins. A call of Observe must follow.
func Begin(ctx context.Context, to Observer, work Work) context.Context {
	if b, ok := to.(Beginner); ok {
		return b.Begin(ctx, work)
	}
	return ctx
}

// Observe notifies an Observer of work that ends now. It does nothing if to is nil.
func Observe(ctx context.Context, to Observer, o Observation) {
	if to != nil {
		o.Duration = time.Since(o.Start)
		to.Observe(ctx, o)
	}
}

// Outcome returns the Outcome of work that ended with err, which may be nil.
func Outcome(err error) string {
	if err == nil {
		return OK
	}
	return string(errs.CodeOf(err))
}
