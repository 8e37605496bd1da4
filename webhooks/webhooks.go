// Package webhooks lets services on the internet call the handlers that apps have in their folder
// webhooks. It checks the tokens of the calls, runs the handlers as the owners of the apps, and
// records every call.
//
//	listing, err := app.Webhooks.Invocations(ctx, id, webhooks.Filter{})
//	call, err := app.Webhooks.Replay(ctx, id, listing.Recent[0].ID)
//
// httpapi, the root and hosts import it; internal/store/webhooks stores what it records, and
// internal/handlers/signatures checks what senders sign.
package webhooks

import (
	"context"
	"log/slog"
	"net/netip"
	"time"

	"github.com/tenantcontent/tenantcontent/internal/clock"
	"github.com/tenantcontent/tenantcontent/internal/handlers/jsvm"
	"github.com/tenantcontent/tenantcontent/internal/limits/cache"
	"github.com/tenantcontent/tenantcontent/internal/limits/tally"
	"github.com/tenantcontent/tenantcontent/sessions"
)

// Invocation is the record of one call of a webhook, or of a server route.
type Invocation struct {
	ID          string // UUID
	App         string // id
	Area        Area
	Method      string // of its route: a HEAD is a GET
	Path        string // the pattern of its route; of a call that no route has its own path
	StartedAt   time.Time
	Duration    time.Duration // whole microseconds
	Status      int           // of the answer
	Memory      int64         // bytes that the handler needed most
	Error       *string       // why it failed, with the stack of a script; nil for none
	Logs        []Log
	LogsDropped int     // lines beyond the limits
	ReplayOf    *string // the invocation whose request it has run again; nil for a call
	Kept        bool    // its request can be run again; set by Store.Invocation alone
}

// Log is a line that a handler has logged.
type Log struct {
	Time  time.Time `json:"time"` // UTC
	Level string    `json:"level"`
	Text  string    `json:"message"`
}

// Entry is what one call adds to the records: an invocation, and the numbers of a day.
type Entry struct {
	Invocation
	CountOnly bool // adds to the numbers and leaves no record
	NoRoute   bool // no route has the path: the numbers of routes do not include it
	Calls     int  // 0 for what is learned later of a call that was counted already
	Errors    int
	Spent     time.Duration
	Retried   bool // an earlier write of it failed, but may have been committed
	Size      int  // bytes in memory, about
}

// plus returns the entry of a call with what was learned later. Of entries that are only counted it
// is the sum.
func (e Entry) plus(more Entry) Entry {
	more.Calls += e.Calls
	more.Errors += e.Errors
	more.Spent += e.Spent
	more.Retried = more.Retried || e.Retried
	more.Size += e.Size
	return more
}

// Day is what the calls of a day add up to.
type Day struct {
	Day      string // in UTC, such as 2026-11-20
	Calls    int64
	Errors   int64 // calls that failed, or were answered with a status of 500 or more
	Duration time.Duration
}

// Filter selects the calls of one route; the zero Filter those of all.
type Filter struct{ Method, Path string }

// Kept is the request of an invocation, encrypted.
type Kept struct {
	App, ID    string // of the invocation
	ReceivedAt time.Time
	KeySealed  string // the key of Request, sealed for the invocation
	Request    []byte
}

// Store keeps invocations, the numbers of days, and requests. The tests beside its bun-backed store
// say what every implementation must do.
type Store interface {
	// Record adds invocations, or overwrites them, and adds the numbers of webhooks, all or
	// nothing.
	Record(ctx context.Context, tenant string, all []Entry) error
	// Recorded returns which of some invocations exist.
	Recorded(ctx context.Context, tenant string, ids []string) (map[string]bool, error)
	// Recent returns the invocations of an area of an app that started last, n at most, newest
	// first, without logs.
	Recent(ctx context.Context, tenant, app string, area Area, f Filter, n int) ([]Invocation, error)
	// Days returns the numbers of an app's days since one, without days of no calls, ordered.
	Days(ctx context.Context, tenant, app string, f Filter, since string) ([]Day, error)
	// Invocation returns one invocation of an app. It fails with errs.NotFound.
	Invocation(ctx context.Context, tenant, app, id string) (Invocation, error)
	// Keep adds a request, and removes the app's oldest ones beyond a number and a number of bytes,
	// but for those that wait.
	Keep(ctx context.Context, tenant string, k Kept, most int, bytes int64) error
	// Wait marks a request that is kept as waiting for its handler. It fails with errs.Unavailable
	// if so many of the app, or requests of so many bytes, would wait then, or the request is not
	// there.
	Wait(ctx context.Context, tenant, app, id string, most int, bytes int64) error
	// Waited ends that a request waits.
	Waited(ctx context.Context, tenant, app, id string) error
	// Kept returns the request of an invocation. It fails with errs.NotFound.
	Kept(ctx context.Context, tenant, app, id string) (Kept, error)
	// Calls returns how many calls of some apps are in the numbers of days.
	Calls(ctx context.Context, tenant string, apps []string) (int, error)
	// Remove removes all that is kept of some apps.
	Remove(ctx context.Context, tenant string, apps []string) error
	// Sweep removes some of what is older than the times, and returns how many rows it has removed;
	// 0 when there is no more.
	Sweep(ctx context.Context, tenant string, o Old) (int, error)
}

// Old is before when rows are old.
type Old struct {
	Invocations time.Time
	Requests    time.Time
	Day         string
	Batch       int // rows of each table that are removed at most
}

// Target is an app whose webhooks are called.
type Target struct {
	App    string            // id
	Owner  string            // principal id; "" while it runs as nobody: see apps.App.RunsAs
	Secret []byte            // that signs the tokens
	Env    map[string]string // the app's variables, in the clear
}

// Apps finds apps. Its methods return errs.NotFound for an app that the caller does not see,
// errs.Forbidden for a caller who may not change it, and, but for CheckRecords, errs.Invalid for a
// draft. *apps.Service implements them.
type Apps interface {
	// CheckWrite returns the id of an app that the caller may change, not with a token that can
	// only read.
	CheckWrite(ctx context.Context, id string) (string, error)
	// CheckInspect is CheckWrite also for a token that can only read.
	CheckInspect(ctx context.Context, id string) (string, error)
	// CheckRecords is CheckInspect also for a draft.
	CheckRecords(ctx context.Context, id string) (string, error)
	// WebhookSecret returns the secret of an app that the caller may change.
	WebhookSecret(ctx context.Context, id string) ([]byte, error)
}

// Sealer encrypts secrets so that a value opens only in the place it was sealed for. *keyring.Ring
// implements it.
type Sealer interface {
	Seal(tenant, table, column, row string, plain []byte) (string, error)
	Open(tenant, table, column, row, sealed string) ([]byte, error)
}

// Handlers runs handlers. *handlers.Service implements it.
type Handlers interface {
	Routes(ctx context.Context, app HandlerApp, area Area) ([]Route, error)
	Match(ctx context.Context, app HandlerApp, area Area, method, path string) (Route, map[string]string, error)
	Run(ctx context.Context, in HandlerCall) (Outcome, error)
}

// Queue carries out what is put in the transaction in ctx. queue.Service implements it.
type Queue interface {
	Put(ctx context.Context, jobs ...Job) error
}

// Options configure a Service. All without a default are required.
type Options struct {
	Store    Store
	Apps     Apps
	Handlers Handlers
	Keys     Sealer
	// Queue runs requests later that cannot run now, of handlers whose config wants that. Default
	// nil: they are refused.
	Queue Queue
	// Bind sets what a handler can call, and returns what ends that. ctx has the actor that the
	// handler runs as. Default nil: it can call nothing, and runs nothing later.
	Bind func(ctx context.Context, in *HandlerCall) (end func(), err error)
	// Target returns an app by its id or natural id. It returns errs.NotFound if the app is not
	// there, or is deleted, a draft or without a secret. It runs the same number of statements for
	// all of these.
	Target func(ctx context.Context, tenant, id string) (Target, error)
	// UseToken counts a use of a token of an app. It returns errs.Unauthenticated if there is none,
	// or it may not be used.
	UseToken func(ctx context.Context, tenant string, of sessions.TokensOf, id string, from netip.Addr) error
	// Owner returns who a principal is, with the rights of the moment. It returns
	// errs.Unauthenticated if that is nobody any more.
	Owner func(ctx context.Context, tenant, principal string) (Owner, error)
	// Changes returns how often this process has changed a tenant's apps. Targets are kept in
	// memory for up to a second while the number stays the same. Default nil: each is looked up.
	Changes func(tenant string) uint64
	Limits  Limits
	Log     *slog.Logger     // default slog.Default
	Now     func() time.Time // default time.Now
	NewID   func() string    // default UUIDv7
}

// Limits bound what callers can use up. 0 stands for the default.
type Limits struct {
	Body      int64         // bytes of a request's body; default 10 MiB
	Recent    int           // invocations that List returns; default 50
	Days      int           // days that List returns; default 30
	Retention time.Duration // how long invocations are kept; default 30 days
	Kept      int           // requests of an app that are kept; default 1,000
	KeptBytes int64         // bytes of them; default 128 MiB
	KeptFor   time.Duration // default 7 days
	Served    int           // calls of an app's server routes that are recorded in a minute; default 60
	// refused calls of an app that are recorded in a minute; others are only counted; default 60
	Refusals   int
	ErrorBytes int // bytes of the text of an error; default 8 KiB
	// bytes of logs and errors of an app that are recorded in an hour; beyond it logs are dropped;
	// default 16 MiB
	HourBytes int
}

func (l Limits) withDefaults() Limits {
	byDefault(&l.Body, 10<<20)
	byDefault(&l.Recent, 50)
	byDefault(&l.Days, 30)
	byDefault(&l.Retention, 30*24*time.Hour)
	byDefault(&l.Kept, 1000)
	byDefault(&l.KeptBytes, 128<<20)
	byDefault(&l.KeptFor, 7*24*time.Hour)
	byDefault(&l.Served, 60)
	byDefault(&l.Refusals, 60)
	byDefault(&l.ErrorBytes, 8<<10)
	byDefault(&l.HourBytes, 16<<20)
	return l
}

func byDefault[T int | int64 | time.Duration](v *T, value T) {
	if *v == 0 {
		*v = value
	}
}

// Service implements the rules of webhooks over a Store.
type Service struct {
	o        Options
	clock    clock.Clock
	gate     gate
	targets  *cache.Cache[known]
	records  *tally.Tally[string, Entry] // by id of the invocation
	backlog  backlog
	refusals budget // recorded calls that got to no handler
	served   budget // recorded calls of server routes
	texts    budget // bytes of logs and errors
}

// New returns a Service.
func New(o Options) *Service {
	o.Limits = o.Limits.withDefaults()
	if o.Log == nil {
		o.Log = slog.Default()
	}
	s := &Service{o: o, clock: clock.New(o.Now, o.NewID), gate: newGate(), targets: cache.New[known](o.Changes)}
	s.refusals.period, s.served.period, s.texts.period = time.Minute, time.Minute, time.Hour
	s.records = tally.New(Entry.plus, s.write).OnDrop(func(e Entry) { s.backlog.bytes.Add(int64(-e.Size)) })
	return s
}

// Limits returns the limits in force.
func (u Unchecked) Limits() Limits { return u.s.o.Limits }

// logs returns the lines of a script.
func logs(all []jsvm.Log) []Log {
	lines := make([]Log, len(all))
	for i, l := range all {
		lines[i] = Log{l.Time.UTC().Truncate(time.Millisecond), l.Level, storable(l.Text)}
	}
	return lines
}
