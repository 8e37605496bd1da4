// Package queue does work after a request has been answered: it has durable jobs and schedules in
// the service's database. It knows no noun: a Worker does the jobs of a kind, on any node with free
// places.
//
// A job is added in the transaction to which it belongs, so that both or neither are committed. A
// node claims it with a lease, which it extends while it works. The jobs of a node that ends
// continue on other nodes when their leases have expired. A job that fails is tried again, after
// increasing pauses, and is dead after the last try. A dead job is kept, so that people see it and
// can requeue it.
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

// State is the state of a job.
type State string

// The states. A job that is done does not have one: its row is removed.
const (
	Ready   State = "ready"   // it is due, and no node works on it
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
	Kind    string          // the Worker that does it: [a-z][a-z0-9-]{0,31}
	Key     string          // unique within tenant and kind until the job is done or dead; or ""
	Payload json.RawMessage // at most MaxPayload bytes; nil for null
	Due     time.Time       // UTC, whole microseconds; zero: now

	// The fields below are set by the queue.

	State State
	Tries int     // number of tries, including the current one
	Error *string // why the last try has failed, or nil
	Node  string  // the node that works on it, or ""
	Lease string  // of the current claim, or ""
	// when a waiting job becomes ready, or the lease of a running job expires; nil for others
	Wake      *time.Time
	CreatedAt time.Time
	EndedAt   *time.Time // of a dead job
}

// Limits of a job.
const (
	MaxPayload = 1 << 20 // bytes
	MaxKey     = 512     // bytes
)

// Worker does the jobs of a kind. Kind, and Do or DoBatch, are required; the others have defaults.
type Worker struct {
	Kind string
	// Off leaves the jobs to other nodes. Requeued is still called on this node.
	Off bool
	// Do does a job. Its context ends when the lease is lost or the node stops. If it returns an
	// error or panics, the try has failed. An error of GiveUp makes the job dead; with one of Later
	// the try does not count. The tenant is in the Job; the context has no actor.
	Do func(ctx context.Context, j Job) error
	// DoBatch, in place of Do, does the first n of some jobs of a tenant together and returns n,
	// which is at least 1, also with an error. After an error each of these jobs is done again
	// separately. It needs InTx.
	DoBatch func(ctx context.Context, jobs []Job) (n int, err error)
	// InTx runs Do in one transaction with the removal of the job, so that what Do writes into the
	// service's database is written exactly once. Without it, Do is called again with the same
	// Job.ID if the node ends after Do has done its work. Systems elsewhere can use the id as an
	// idempotency key.
	InTx bool
	// Batch is the most jobs of a tenant that share a transaction if InTx is set; default 1. If one
	// of them fails, all are done again, each in a separate transaction.
	Batch   int
	Tries   int           // default 5
	Lease   time.Duration // default 30 s; extended each third of it
	Timeout time.Duration // most time of a try; default 10 min
	AtOnce  int           // most concurrent tries, or transactions of batches, on a node; default 4
	// PerTenant is the most of AtOnce for one tenant; default three quarters of AtOnce. Other jobs
	// of the tenant wait, so that a tenant cannot use all places.
	PerTenant int
	// Backoff returns the pause after a number of failed tries, from 1 on; default Backoff.
	Backoff func(tries int) time.Duration
	// Dead, if not nil, is called in the transaction in which a job becomes dead.
	Dead func(ctx context.Context, j Job, cause error) error
	// Requeued, if not nil, is called in the transaction in which a dead job is requeued.
	Requeued func(ctx context.Context, j Job) error
}

// Schedule adds a job of a kind at the times of a cron expression.
type Schedule struct {
	// unique together; Key is the key of the jobs, so no job is added before the previous one is
	// done
	Tenant, Kind, Key string
	Cron              string          // five fields, or @hourly, @daily, @weekly, @monthly, @yearly, @every 10m
	Zone              string          // IANA name; "" for UTC
	Payload           json.RawMessage // of the jobs
	Next              time.Time       // set by the queue: when the next job is added
}

// Line is a kind of jobs of a tenant.
type Line struct{ Tenant, Kind string }

// Claim is the claim of a node on jobs.
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

// Stat is the number of jobs of a tenant and kind in a state.
type Stat struct {
	Tenant, Kind string
	State        State
	N            int
	Oldest       time.Time // when the first of them was due
}

// Store stores jobs and schedules. The tests beside its bun-backed store define what every
// implementation must do.
//
// A method that changes running jobs compares their leases: it does not change jobs that have
// another lease now.
type Store interface {
	// Insert adds jobs of a tenant, in the transaction in ctx or a new one. It skips jobs whose key
	// another job of the kind has.
	Insert(ctx context.Context, tenant string, jobs []Job) error
	// Count returns the number of a tenant's jobs that are not dead.
	Count(ctx context.Context, tenant string) (int, error)
	// ReadyLines returns at most n lines with ready jobs after a line, ordered by tenant and kind.
	ReadyLines(ctx context.Context, after Line, n int) ([]Line, error)
	// Claim claims at most n ready jobs of a line, those that were due first. Each claim counts as
	// a try.
	Claim(ctx context.Context, l Line, n int, c Claim) ([]Job, error)
	// Extend extends the leases of jobs of a tenant and returns the ids of the jobs whose leases
	// are held.
	Extend(ctx context.Context, tenant string, jobs []Job, until time.Time) (map[string]bool, error)
	// Remove removes jobs that are done, in the transaction in ctx, and returns their number.
	Remove(ctx context.Context, tenant string, jobs []Job) (int, error)
	// Retry makes a job wait for another try, with the number of tries in j, and reports whether
	// its lease was held.
	Retry(ctx context.Context, j Job, cause string, at time.Time) (bool, error)
	// Hurry makes waiting jobs of a tenant ready, and returns their number.
	Hurry(ctx context.Context, tenant string, ids []string) (int, error)
	// Release makes jobs ready again as if they had not been claimed.
	Release(ctx context.Context, tenant string, jobs []Job) error
	// Bury makes a job dead, in the transaction in ctx, and reports whether its lease was held.
	Bury(ctx context.Context, j Job, cause string, at time.Time) (bool, error)

	// Next returns the next time at which a waiting or running job wakes, and at which a schedule
	// is due, or nil.
	Next(ctx context.Context) (jobs, schedules *time.Time, err error)
	// Wake makes jobs of all tenants ready whose wake time has come, at most some thousand, and
	// returns their number.
	Wake(ctx context.Context, now time.Time) (int, error)

	// PutSchedules adds or replaces schedules of a tenant.
	PutSchedules(ctx context.Context, tenant string, all []Schedule) error
	// DeleteSchedules removes schedules of a tenant and kind: those with some keys, or all if keys
	// is empty.
	DeleteSchedules(ctx context.Context, tenant, kind string, keys []string) error
	// Schedules returns schedules of a tenant and kind ordered by key: those with some keys, or all
	// if keys is empty.
	Schedules(ctx context.Context, tenant, kind string, keys []string) ([]Schedule, error)
	// EachSchedule returns at most n schedules of all tenants after another one, without payloads,
	// ordered by tenant, kind and key.
	EachSchedule(ctx context.Context, after Schedule, n int) ([]Schedule, error)
	// Hasten stores the next times of schedules of a tenant that are earlier than the stored ones.
	// It skips schedules whose expression or zone has changed.
	Hasten(ctx context.Context, tenant string, all []Schedule) error
	// Fire locks at most n due schedules of all tenants and calls next with them. It stores the
	// times that next sets and the jobs that it returns, all in one transaction, and returns the
	// number of schedules. It skips schedules that another node has locked.
	Fire(ctx context.Context, now time.Time, n int, next func(due []Schedule) []Job) (int, error)

	// Jobs returns at most n jobs of a tenant, those that were due first.
	Jobs(ctx context.Context, tenant string, f Filter, n int) ([]Job, error)
	// Stats returns the numbers of jobs of all tenants.
	Stats(ctx context.Context) ([]Stat, error)
	// Requeue makes a dead job ready with 0 tries, in the transaction in ctx. It returns
	// errs.NotFound, or errs.Conflict if another job has its key now.
	Requeue(ctx context.Context, tenant, id string, now time.Time) (Job, error)
	// Discard removes dead jobs and returns their number.
	Discard(ctx context.Context, tenant string, ids []string) (int, error)
	// Sweep removes dead jobs that ended before a time, and the oldest dead jobs beyond keep. It
	// also removes ready jobs that were due before the time, because no node has a worker for them.
	Sweep(ctx context.Context, tenant string, before time.Time, keep int) (int, error)

	// InTx runs fn in one transaction, which all calls with its context join.
	InTx(ctx context.Context, fn func(ctx context.Context) error) error
	// AfterCommit calls f after the commit of the transaction in ctx, or at once outside a
	// transaction.
	AfterCommit(ctx context.Context, f func())
}

// Bell is implemented by Stores that can notify other nodes. Nothing depends on it for correctness,
// because nodes also poll.
type Bell interface {
	// Ring notifies the listeners on all nodes.
	Ring(ctx context.Context) error
	// Listen calls heard after each Ring, until ctx ends or the connection is lost.
	Listen(ctx context.Context, heard func()) error
}

// Clock is implemented by Stores whose database has a clock, which all nodes then use. Options.Now
// takes precedence over it.
type Clock interface {
	// Time returns the time of the database, or errors.ErrUnsupported if it uses the clock of this
	// machine.
	Time(ctx context.Context) (time.Time, error)
}

// Node configures what one node does for a queue.
type Node struct {
	// Off leaves the jobs to other nodes. Jobs that this node adds are still stored.
	Off bool
	// AtOnce is the most concurrent tries of a kind; 0: Worker.AtOnce. A Worker with a lower limit
	// keeps it.
	AtOnce int
	// Poll is how often the node looks for jobs without a notification; default 5 s.
	Poll time.Duration
	// Grace is how long running jobs may continue when the node stops; default 10 s. Then their
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

	Observer entity.Observer // called for each try; may be nil
}
