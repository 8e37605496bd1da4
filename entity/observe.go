package entity

import (
	"context"
	"time"

	"github.com/tenantcontent/tenantcontent/errs"
)

// Work is a kind of work that an Observer is told of.
type Work string

// The kinds of work, and what Observation.Kind and Status are for them.
const (
	RequestWork   Work = "request"   // method and pattern of its route, "" for a path that has none; the HTTP status
	StatementWork Work = "statement" // its first word, such as SELECT, BEGIN and COMMIT
	JobWork       Work = "job"       // the kind of the job; one try of it
	HandlerWork   Work = "handler"   // area and pattern of its route; also tools of agents
	ModelWork     Work = "model"     // chat or image
	ScanWork      Work = "scan"      // the driver of the directory
	ArchiveWork   Work = "archive"   // export, import, restore or deploy
)

// OK is the Outcome of what has succeeded.
const OK = "ok"

// Observation is what an Observer is told of: something that was done. It has nothing of what users
// have written or sent: no path, body, argument of a statement, or text of an error.
type Observation struct {
	Work     Work
	Tenant   string // "" if there is none, or it is not known
	Kind     string
	Outcome  string // OK, a code of errs, or how a script has ended, such as timeout
	Status   int    // 0 where there is none
	Start    time.Time
	Duration time.Duration
}

// Observer is told of work that has ended, for metrics and traces. Several goroutines call it, in
// the way of the work: it returns fast and does not panic. ctx is that of the work, and may have
// ended.
type Observer interface {
	Observe(ctx context.Context, o Observation)
}

// Observe tells an Observer of work that ends now. If to is nil, it does nothing.
func Observe(ctx context.Context, to Observer, o Observation) {
	if to != nil {
		o.Duration = time.Since(o.Start)
		to.Observe(ctx, o)
	}
}

// Outcome returns the Outcome of work that has ended with an error, or without.
func Outcome(err error) string {
	if err == nil {
		return OK
	}
	return string(errs.CodeOf(err))
}
