package queue

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/clock"
	"github.com/tenantcontent/tenantcontent/internal/text/escapes"
)

// Service is a queue over a Store.
type Service struct {
	o     Options
	clock clock.Clock
	store Store
	pools map[string]*pool
	depth depth

	news     chan struct{}             // has an element when there may be ready jobs, or places for them
	bell     chan struct{}             // has an element when other nodes must be notified
	finished chan finished             // jobs to be removed
	shared   Clock                     // nil: the clock of this machine
	read     atomic.Pointer[readClock] // nil until the clock is read
	wentBack chan struct{}             // has an element after the clock has gone back

	mu       sync.Mutex
	next     time.Time // when the dispatcher checks times again
	claimed  map[claimKey]*claimed
	draining bool
	drained  chan struct{} // closed when draining has begun
	idle     sync.Cond     // on mu: claimed is empty
	stopping func()        // ends the contexts of running jobs; nil unless Run is running
}

// New returns a Service. Its workers must be added before Run.
func New(o Options) *Service {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Name == "" {
		host, _ := os.Hostname()
		o.Name = fmt.Sprintf("%s/%d", cmp.Or(host, "node"), os.Getpid())
	}
	o.Limit = cmp.Or(o.Limit, 100_000)
	o.Node.Poll = cmp.Or(o.Node.Poll, 5*time.Second)
	o.Node.Grace = cmp.Or(o.Node.Grace, 10*time.Second)
	s := &Service{
		o: o, clock: clock.New(o.Now, o.NewID), store: o.Store, pools: map[string]*pool{},
		news: make(chan struct{}, 1), bell: make(chan struct{}, 1),
		finished: make(chan finished), wentBack: make(chan struct{}, 1),
		claimed: map[claimKey]*claimed{}, drained: make(chan struct{}),
	}
	s.idle.L = &s.mu
	if shared, ok := s.store.(Clock); ok && s.clock.Real() {
		s.shared = shared
	}
	return s
}

var kindForm = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)

// Add adds workers. It must not be called while the Service runs. It returns errs.Invalid for a
// kind that is malformed or has a worker already.
func (s *Service) Add(workers ...Worker) error {
	for _, w := range workers {
		if !kindForm.MatchString(w.Kind) {
			return errs.New(
				errs.Invalid,
				"The kind of a worker has 1 to 32 of a-z, 0-9 and -, and begins with a letter: %q has not.",
				w.Kind,
			)
		}
		if s.pools[w.Kind] != nil {
			return errs.New(errs.Invalid, "There are two workers for the kind %s.", w.Kind)
		}
		if (w.Do == nil) == (w.DoBatch == nil) || w.DoBatch != nil && !w.InTx {
			return errs.New(
				errs.Invalid, "The worker for the kind %s must have either Do, or DoBatch and InTx.", w.Kind,
			)
		}
		s.pools[w.Kind] = newPool(w, s.o.Node)
	}
	return nil
}

// stamp returns the time of the database if it has a clock, so that it does not depend on the clock
// of this machine.
func (s *Service) stamp() time.Time {
	now := s.clock.Now()
	if c := s.read.Load(); c != nil {
		now = c.at.Add(now.Sub(c.local))
	}
	return now.UTC().Truncate(time.Microsecond)
}

// Put adds jobs. It joins the transaction in ctx; the jobs are begun after its commit. It skips a
// job whose Key another job of its tenant and kind has, even if that one is running. Errors:
// errs.Invalid for a malformed job; errs.Busy if the tenant has too many.
func (s *Service) Put(ctx context.Context, jobs ...Job) error {
	if len(jobs) == 0 {
		return nil
	}
	now, byTenant := s.stamp(), map[string][]Job{}
	for _, j := range jobs {
		j, err := s.prepare(j, now)
		if err != nil {
			return err
		}
		byTenant[j.Tenant] = append(byTenant[j.Tenant], j)
	}
	for tenant, some := range byTenant {
		if err := s.room(ctx, tenant, len(some), now); err != nil {
			return err
		}
	}
	insert := func(ctx context.Context) error {
		for tenant, some := range byTenant {
			if err := s.store.Insert(ctx, tenant, some); err != nil {
				return err
			}
		}
		s.store.AfterCommit(ctx, func() { s.put(jobs, now) })
		return nil
	}
	if len(byTenant) == 1 { // Insert is a transaction by itself
		return insert(ctx)
	}
	return s.store.InTx(ctx, insert)
}

// put wakes the dispatchers that may begin jobs.
func (s *Service) put(jobs []Job, now time.Time) {
	for _, j := range jobs {
		if j.Due.After(now) {
			s.hint(j.Due)
		} else {
			signal(s.news)
			signal(s.bell)
		}
	}
}

// prepare checks a new job and sets the fields that the queue sets.
func (s *Service) prepare(j Job, now time.Time) (Job, error) {
	var err error
	switch {
	case j.Tenant == "":
		return j, errs.New(errs.Invalid, "A job has no tenant.")
	case !kindForm.MatchString(j.Kind):
		return j, errs.New(
			errs.Invalid,
			"The kind of a job has 1 to 32 of a-z, 0-9 and -, and begins with a letter: %q has not.", j.Kind,
		)
	case len(j.Key) > MaxKey || !escapes.Storable(j.Key):
		return j, errs.New(errs.Invalid, "The key of a job is text of at most %d bytes.", MaxKey)
	}
	if j.Payload, err = payload(j.Payload); err != nil {
		return j, err
	}
	if j.ID == "" {
		j.ID = s.clock.NewID()
	}
	j.Due = j.Due.UTC().Truncate(time.Microsecond)
	j.State, j.CreatedAt, j.Wake = Ready, now, nil
	if j.Due.After(now) {
		due := j.Due
		j.State, j.Wake = Waiting, &due
	} else if j.Due.IsZero() {
		j.Due = now
	}
	j.Tries, j.Error, j.Node, j.Lease, j.EndedAt = 0, nil, "", "", nil
	return j, nil
}

func payload(raw json.RawMessage) (json.RawMessage, error) {
	raw = bytes.TrimSpace(raw)
	switch {
	case len(raw) == 0:
		return json.RawMessage("null"), nil
	case len(raw) > MaxPayload || !json.Valid(raw) || escapes.Bad(raw) || !escapes.Storable(string(raw)):
		return nil, errs.New(errs.Invalid, "The payload of a job is JSON of at most %d bytes.", MaxPayload)
	}
	return raw, nil
}

// room reserves places for new jobs of a tenant.
func (s *Service) room(ctx context.Context, tenant string, n int, now time.Time) error {
	have, err := s.depth.add(tenant, n, now, func() (int, error) { return s.store.Count(ctx, tenant) })
	if err != nil {
		return err
	}
	if have > s.o.Limit {
		s.depth.drop(tenant)
		return errs.New(
			errs.Busy,
			"%d jobs of the tenant wait to be done, and no more can be added until some have been. Try again later.",
			s.o.Limit,
		)
	}
	return nil
}

// depth caches the numbers of jobs of tenants for a moment, and adds those that this process has
// added since. Counting them for each new job would be slow. Jobs that other processes add can
// exceed the limit.
type depth struct {
	mu      sync.Mutex
	tenants map[string]*counted
}

type counted struct {
	n  int
	at time.Time
}

const (
	depthLifetime = time.Second
	maxDepths     = 10_000
)

func (d *depth) add(tenant string, n int, now time.Time, count func() (int, error)) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.tenants[tenant]
	if c == nil || now.Sub(c.at) >= depthLifetime || now.Before(c.at) {
		d.mu.Unlock()
		have, err := count()
		d.mu.Lock()
		if err != nil {
			return 0, err
		}
		if d.tenants == nil || len(d.tenants) >= maxDepths {
			d.tenants = map[string]*counted{}
		}
		c = &counted{have, now}
		d.tenants[tenant] = c
	}
	c.n += n
	return c.n, nil
}

// drop makes the next add count again.
func (d *depth) drop(tenant string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.tenants, tenant)
}

// Schedule adds or replaces schedules. It joins the transaction in ctx. It returns errs.Invalid
// naming the error in Cron or Zone.
func (s *Service) Schedule(ctx context.Context, all ...Schedule) error {
	now, byTenant, first := s.stamp(), map[string][]Schedule{}, time.Time{}
	for _, c := range all {
		j, err := s.prepare(Job{Tenant: c.Tenant, Kind: c.Kind, Key: c.Key, Payload: c.Payload}, now)
		if err != nil {
			return err
		}
		c.Payload = j.Payload
		if c.Next, err = Next(c.Cron, c.Zone, now); err != nil {
			return err
		}
		if first.IsZero() || c.Next.Before(first) {
			first = c.Next
		}
		byTenant[c.Tenant] = append(byTenant[c.Tenant], c)
	}
	return s.store.InTx(ctx, func(ctx context.Context) error {
		for tenant, some := range byTenant {
			if err := s.store.PutSchedules(ctx, tenant, some); err != nil {
				return err
			}
		}
		if !first.IsZero() {
			s.store.AfterCommit(ctx, func() { s.hint(first) })
		}
		return nil
	})
}

// Unschedule removes schedules of a kind: those with some keys, or all of the tenant if there are
// no keys. Jobs that they have added are kept.
func (s *Service) Unschedule(ctx context.Context, tenant, kind string, keys ...string) error {
	return s.store.DeleteSchedules(ctx, tenant, kind, keys)
}

// Schedules returns schedules of a tenant and kind ordered by key: those with some keys, or all
// without keys.
func (s *Service) Schedules(ctx context.Context, tenant, kind string, keys ...string) ([]Schedule, error) {
	all, err := s.store.Schedules(ctx, tenant, kind, keys)
	now := s.stamp()
	for i := range all {
		all[i].hasten(now)
	}
	return all, err
}

// Jobs returns at most 1,000 jobs of a tenant, those that were due first.
func (s *Service) Jobs(ctx context.Context, tenant string, f Filter) ([]Job, error) {
	if f.State != "" && !slices.Contains(States(), f.State) {
		return nil, errs.New(errs.Invalid, "state must be ready, waiting, running or dead")
	}
	return s.store.Jobs(ctx, tenant, f, 1000)
}

// Stats returns the numbers of jobs of all tenants by kind and state.
func (s *Service) Stats(ctx context.Context) ([]Stat, error) { return s.store.Stats(ctx) }

// Requeue makes dead jobs ready, with all of their tries again. It returns errs.NotFound if one
// does not exist or is not dead, and errs.Conflict if another job has the key of one. No job is
// requeued then.
func (s *Service) Requeue(ctx context.Context, tenant string, ids ...string) error {
	now := s.stamp()
	return s.store.InTx(ctx, func(ctx context.Context) error {
		for _, id := range ids {
			j, err := s.store.Requeue(ctx, tenant, id, now)
			if err != nil {
				return err
			}
			if p := s.pools[j.Kind]; p != nil && p.Requeued != nil {
				if err := p.Requeued(ctx, j); err != nil {
					return err
				}
			}
		}
		s.store.AfterCommit(ctx, func() { signal(s.news); signal(s.bell) })
		return nil
	})
}

// Hurry makes waiting jobs of a tenant ready at once, such as jobs that have become unnecessary. It
// joins the transaction in ctx.
func (s *Service) Hurry(ctx context.Context, tenant string, ids ...string) error {
	n, err := s.store.Hurry(ctx, tenant, ids)
	if err == nil && n > 0 {
		s.store.AfterCommit(ctx, func() { signal(s.news); signal(s.bell) })
	}
	return err
}

// Discard removes dead jobs and returns their number.
func (s *Service) Discard(ctx context.Context, tenant string, ids ...string) (int, error) {
	return s.store.Discard(ctx, tenant, ids)
}

// How long dead jobs are kept, and how many for each tenant.
const (
	keptFor = 30 * 24 * time.Hour
	kept    = 10_000
)

// Hooks returns the sweep of old jobs. Dead jobs are kept for 30 days, and at most 10,000 of each
// tenant. Ready jobs for which no node has a worker are kept for as long.
func (s *Service) Hooks() entity.Hooks {
	due := []entity.Due{
		{Table: "tc_jobs", Column: "ended_at", Where: "state = 'dead'", Age: keptFor},
		{Table: "tc_jobs", Column: "ended_at", Where: "state = 'dead'", Since: true},
		{Table: "tc_jobs", Column: "due_at", Where: "state = 'ready'", Age: keptFor},
	}
	return entity.Hooks{Due: due, Sweep: func(ctx context.Context, tenant string) (int, error) {
		return s.store.Sweep(ctx, tenant, s.stamp().Add(-keptFor), kept)
	}}
}

// GiveUp marks an error that another try would not fix. The job is dead at once.
func GiveUp(cause error) error { return giveUp{cause} }

type giveUp struct{ error }

func (g giveUp) Unwrap() error { return g.error }

func givesUp(err error) bool {
	var g giveUp
	return errors.As(err, &g)
}

// Later marks the error of a try that was too early. The try does not count, and the job is done
// after a pause.
func Later(cause error, pause time.Duration) error { return later{cause, pause} }

type later struct {
	error
	pause time.Duration
}

func (l later) Unwrap() error { return l.error }

// Backoff returns the pause after a number of failed tries: a second after the first, doubled each
// time up to 10 minutes. It varies by a quarter, so that jobs that failed together are not tried
// again together.
func Backoff(tries int) time.Duration {
	d := min(time.Second<<min(max(tries-1, 0), 16), 10*time.Minute)
	return d*3/4 + rand.N(d/2)
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
