package entity

import (
	"context"
	"slices"
	"time"

	"github.com/tenantcontent/tenantcontent/errs"
)

// Work is a kind of work that an Observer is notified of.
type Work string

// The kinds of work. The comments describe Observation.Kind and Status of each.
const (
	// RequestWork is a request. Kind is its method and the pattern of its route, such as
	// GET /api/colors/{key}, "" for an unknown path; Status is the HTTP status.
	RequestWork Work = "request"

	StatementWork Work = "statement" // its first word, such as SELECT, BEGIN and COMMIT
	JobWork       Work = "job"       // the kind of the job; one try of it
	HandlerWork   Work = "handler"   // area and pattern of its route; also tools of agents
	ModelWork     Work = "model"     // chat or image
	ScanWork      Work = "scan"      // the driver of the directory
	ArchiveWork   Work = "archive"   // export, import, restore, deploy, tenant export or tenant import

	// TurnWork is waiting for a place that others have. Kind is what the place is for, such as
	// write. The outcome of a wait that was in vain is errs.Unavailable.
	TurnWork Work = "turn"

	LoginWork      Work = "login"      // the driver of the domain, "" if it is not known
	CredentialWork Work = "credential" // cache or database: where a session or token was found
	TaskWork       Work = "task"       // the name of the background task; one round of it
)

// OK is the Outcome of what has succeeded.
const OK = "ok"

// Observation describes finished work to an Observer. But for the method and the user agent of a
// request, it contains nothing that users have written or sent: no path, body, argument of a
// statement, or text of an error.
type Observation struct {
	Work     Work
	Tenant   string // "" if it has no tenant or the tenant is not known
	Kind     string
	Outcome  string // OK, a code of errs, or how a script has ended, such as timeout
	Status   int    // 0 if the work has no status
	Start    time.Time
	Duration time.Duration

	Received int64 // bytes of the body of a request, or of an archive that was imported
	Sent     int64 // bytes of the body of an answer, or of an archive that was written

	// These are of requests only.

	User      string // "" if it is not known
	Method    string // as it was sent
	UserAgent string // as it was sent
}

// Observer is notified when work has ended, for metrics and traces. Several goroutines call it, and
// the work waits for it: it must return fast and not panic. ctx is that of the work, and may have
// ended.
type Observer interface {
	Observe(ctx context.Context, o Observation)
}

// Beginner is an Observer that is told when work begins, too. It returns the context of the work,
// which Observe gets at its end, and all work that is done inside of it. kind is that of the
// Observation, and of a request, whose route is not known yet, its method.
type Beginner interface {
	Begin(ctx context.Context, work Work, kind string) context.Context
}

// Begin notifies an Observer that is a Beginner of work that begins. A call of Observe with the
// returned context must follow.
func Begin(ctx context.Context, to Observer, work Work, kind string) context.Context {
	if b, ok := to.(Beginner); ok {
		return b.Begin(ctx, work, kind)
	}
	return ctx
}

// Observers returns an Observer that notifies several, in their order. It ignores those that are
// nil, and returns nil if all are.
func Observers(all ...Observer) Observer {
	all = slices.DeleteFunc(slices.Clone(all), func(o Observer) bool { return o == nil })
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	return observers(all)
}

type observers []Observer

// Begin implements Beginner.
func (all observers) Begin(ctx context.Context, work Work, kind string) context.Context {
	for _, to := range all {
		ctx = Begin(ctx, to, work, kind)
	}
	return ctx
}

// Observe implements Observer.
func (all observers) Observe(ctx context.Context, o Observation) {
	for _, to := range all {
		to.Observe(ctx, o)
	}
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
