// Package queue carries out work behind a request's answer: durable jobs and schedules in the
// service's own database. It knows no noun: a Worker does the jobs of a kind, on whichever node has
// room.
//
// A job is put within the transaction of what it belongs to, so there is either both or neither. A
// node claims it with a lease, which it extends while it works; the jobs of a node that dies go on
// elsewhere when their leases have ended. A job that fails is tried again, later each time, and is
// dead after the last try: it then stays where people see it, and can be put back.
//
// The root, messages, agents and hosts import it; internal/store/queue stores its rows.
package queue

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/tenantcontent/tenantcontent/entity"
)

// State is where a job is.
type State string

// The states. A job that is done has none: its row is removed.
const (
	Ready   State = "ready"   // it is due, and nobody works on it
	Waiting State = "waiting" // it is due later
	Running State = "running" // a node works on it
	Dead    State = "dead"    // its last try has failed
)

// States returns all states.
func States() []State { return []State{Ready, Waiting, Running, Dead} }

// Job is one piece of work.
type Job struct {
	Tenant  string
	ID      string          // UUID; "" for a new one
	Kind    string          // which Worker does it: [a-z][a-z0-9-]{0,31}
	Key     string          // unique within tenant and kind until the job is done or dead; "" for none
	Payload json.RawMessage // at most MaxPayload bytes; nil for null
	Due     time.Time       // UTC, whole microseconds; zero for at once

	// What follows is set by the queue.

	State State
	Tries int     // so far, with the one under way
	Error *string // why the last try has failed; nil for none
	Node  string  // that works on it; "" for none
	Lease string  // of the claim under way; "" for none
	// when a waiting job becomes ready, and a running one unless its lease is extended; nil for
	// others
	Wake      *time.Time
	CreatedAt time.Time
	EndedAt   *time.Time // of a dead job
}

// The bounds of a job.
const (
	MaxPayload = 1 << 20 // bytes
	MaxKey     = 512     // bytes
)

// Worker does the jobs of a kind. Kind, and Do or DoBatch, are required; the others have defaults.
type Worker struct {
	Kind string
	// Off leaves the jobs to other nodes. Requeued is called on this one all the same.
	Off bool
	// Do works on a job. Its context ends when the lease is lost or the node stops. An error, or a
	// panic, is a failed try; one of GiveUp is the last, and one of Later is none. Do has the
	// tenant in the Job and no actor.
	Do func(ctx context.Context, j Job) error
	// DoBatch, in place of Do, works on the first of some jobs of a tenant together, and returns
	// how many these are, one at least, also with an error: then each of them is done again by
	// itself. It needs InTx.
	DoBatch func(ctx context.Context, jobs []Job) (n int, err error)
	// InTx runs Do in one transaction with the removal of the job, so that what Do writes into the
	// service's database is written exactly once. Otherwise Do may have done its work when the node
	// dies, and is called again with the same Job.ID: the key of idempotency for what is elsewhere.
	InTx bool
	// Batch is how many jobs of a tenant may share a transaction if InTx is set; default 1. When
	// one of them fails, all are done again, each in a transaction of its own.
	Batch   int
	Tries   int           // default 5
	Lease   time.Duration // default 30 s; extended each third of it
	Timeout time.Duration // most time of a try; default 10 min
	AtOnce  int           // tries, or transactions of a batch, at once on a node; default 4
	// PerTenant is how many of AtOnce a tenant can have; default three quarters of AtOnce. The
	// others of a tenant wait, so that no tenant takes all places.
	PerTenant int
	// Backoff returns the pause after a failed try, the first of which is 1; default Backoff.
	Backoff func(tries int) time.Duration
	// Dead is called in the transaction in which a job becomes dead; nil: nothing.
	Dead func(ctx context.Context, j Job, cause error) error
	// Requeued is called in the transaction in which a dead job is put back; nil: nothing.
	Requeued func(ctx context.Context, j Job) error
}

// Schedule puts a job of a kind at the times of a cron expression.
type Schedule struct {
	// unique together; Key is that of the jobs, so none is put while the one before is not done
	Tenant, Kind, Key string
	Cron              string          // five fields, or @hourly, @daily, @weekly, @monthly, @yearly, @every 10m
	Zone              string          // IANA name; "" for UTC
	Payload           json.RawMessage // of the jobs
	Next              time.Time       // set by the queue: when the next job is put
}

// Line is a kind of jobs of a tenant.
type Line struct{ Tenant, Kind string }

// Claim is how jobs are claimed.
type Claim struct {
	Lease string // unique to the claim
	Node  string
	Until time.Time
}

// Filter selects jobs of a tenant; the zero value selects all.
type Filter struct {
	Kind  string
	State State
}

// Stat is how many jobs of a tenant and kind are in a state.
type Stat struct {
	Tenant, Kind string
	State        State
	N            int
	Oldest       time.Time // when the first of them was due
}

// Store keeps jobs and schedules. The tests beside its bun-backed store say what every
// implementation must do.
//
// A method that changes jobs which somebody works on compares their leases: it leaves alone those
// whose lease is another one by now.
type Store interface {
	// Insert adds jobs of a tenant, in the transaction in ctx or in one of its own. One whose key
	// another job of its kind has is left out.
	Insert(ctx context.Context, tenant string, jobs []Job) error
	// Count returns the number of a tenant's jobs that are not dead.
	Count(ctx context.Context, tenant string) (int, error)
	// ReadyLines returns the lines that have ready jobs, in order of tenant and kind, behind a
	// line; at most n.
	ReadyLines(ctx context.Context, after Line, n int) ([]Line, error)
	// Claim claims ready jobs of a line, those that were due first, at most n. Each counts a try.
	Claim(ctx context.Context, l Line, n int, c Claim) ([]Job, error)
	// Extend extends the leases of jobs of a tenant and returns the ids of those that are held.
	Extend(ctx context.Context, tenant string, jobs []Job, until time.Time) (map[string]bool, error)
	// Remove removes jobs that are done, in the transaction in ctx, and returns their number.
	Remove(ctx context.Context, tenant string, jobs []Job) (int, error)
	// Retry has a job wait for another try, with the tries that it has in j, and reports whether
	// its lease was held.
	Retry(ctx context.Context, j Job, cause string, at time.Time) (bool, error)
	// Hurry makes those jobs of a tenant ready that wait, and returns their number.
	Hurry(ctx context.Context, tenant string, ids []string) (int, error)
	// Release makes jobs ready again as if they had not been claimed.
	Release(ctx context.Context, tenant string, jobs []Job) error
	// Bury makes a job dead, in the transaction in ctx, and reports whether its lease was held.
	Bury(ctx context.Context, j Job, cause string, at time.Time) (bool, error)

	// Next returns when the first waiting or running job is to wake, and the first schedule is due;
	// nil for none.
	Next(ctx context.Context) (jobs, schedules *time.Time, err error)
	// Wake makes jobs of all tenants whose time has come ready, some thousand at once, and returns
	// their number.
	Wake(ctx context.Context, now time.Time) (int, error)

	// PutSchedules adds or replaces schedules of a tenant.
	PutSchedules(ctx context.Context, tenant string, all []Schedule) error
	// DeleteSchedules removes schedules of a tenant and kind, those with some keys, or all if there
	// are none.
	DeleteSchedules(ctx context.Context, tenant, kind string, keys []string) error
	// Schedules returns those of a tenant and kind in order of their keys: those with some keys, or
	// all if there are none.
	Schedules(ctx context.Context, tenant, kind string, keys []string) ([]Schedule, error)
	// EachSchedule returns schedules of all tenants without their payloads, in order of tenant,
	// kind and key, behind one; at most n.
	EachSchedule(ctx context.Context, after Schedule, n int) ([]Schedule, error)
	// Hasten stores the next times of schedules of a tenant that are earlier than those that they
	// have. It leaves one alone whose expression or zone is another one by now.
	Hasten(ctx context.Context, tenant string, all []Schedule) error
	// Fire locks schedules of all tenants that are due, at most n, calls next with them, stores the
	// times that it sets and the jobs that it returns, all in one transaction, and returns the
	// number of schedules. Those that another node has locked are left to it.
	Fire(ctx context.Context, now time.Time, n int, next func(due []Schedule) []Job) (int, error)

	// Jobs returns jobs of a tenant, those that were due first, at most n.
	Jobs(ctx context.Context, tenant string, f Filter, n int) ([]Job, error)
	// Stats counts the jobs of all tenants.
	Stats(ctx context.Context) ([]Stat, error)
	// Requeue makes a dead job ready, with no try so far, in the transaction in ctx. It fails with
	// errs.NotFound, and with errs.Conflict if another job has its key by now.
	Requeue(ctx context.Context, tenant, id string, now time.Time) (Job, error)
	// Discard removes dead jobs and returns their number.
	Discard(ctx context.Context, tenant string, ids []string) (int, error)
	// Sweep removes dead jobs that ended before a time, and those that ended first beyond keep, and
	// ready ones that were due before the time: no node has a worker for them.
	Sweep(ctx context.Context, tenant string, before time.Time, keep int) (int, error)

	// InTx runs fn in one transaction, which all calls with its context join.
	InTx(ctx context.Context, fn func(ctx context.Context) error) error
	// AfterCommit calls f when the transaction in ctx has been committed, at once when there is
	// none.
	AfterCommit(ctx context.Context, f func())
}

// Bell is implemented by Stores that carry news between nodes. None of it is needed for
// correctness: nodes look for themselves, too.
type Bell interface {
	// Ring wakes those who listen, on all nodes.
	Ring(ctx context.Context) error
	// Listen calls heard whenever somebody rings, until ctx ends or the connection is lost.
	Listen(ctx context.Context, heard func()) error
}

// Clock is implemented by Stores whose database has a clock, which is then that of all nodes. It is
// used unless Options.Now is set.
type Clock interface {
	// Time returns the time of the database, or errors.ErrUnsupported if it has only that of this
	// machine.
	Time(ctx context.Context) (time.Time, error)
}

// Node is how much of a queue one node does.
type Node struct {
	// Off leaves the jobs to other nodes. What this one puts is stored all the same.
	Off bool
	// AtOnce is the most tries of a kind at once; 0: what each Worker has. Workers with fewer keep
	// theirs.
	AtOnce int
	// Poll is how often the node looks for jobs that it has not been told of; default 5 s.
	Poll time.Duration
	// Grace is how long jobs that run may go on when the node stops; default 10 s. Then their
	// contexts end.
	Grace time.Duration
}

// Options configure a Service. Store is required.
type Options struct {
	Store Store
	Node  Node
	Name  string           // of the node, for people; default host and process
	Limit int              // jobs of a tenant that are not dead; default 100,000
	Log   *slog.Logger     // default slog.Default
	Now   func() time.Time // default time.Now
	NewID func() string    // default UUIDv7

	Observer entity.Observer // is told of each try; nil: nobody is
}
