package queue

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// pool is a worker with its running tries. Service.mu guards it.
type pool struct {
	Worker
	busy    int            // running tries or batches
	tenants map[string]int // by tenant
}

func newPool(w Worker, n Node) *pool {
	w.Batch = max(w.Batch, 1)
	if !w.InTx {
		w.Batch = 1
	}
	w.Tries = cmp.Or(w.Tries, 5)
	w.Lease = cmp.Or(w.Lease, 30*time.Second)
	w.Timeout = cmp.Or(w.Timeout, 10*time.Minute)
	w.AtOnce = cmp.Or(w.AtOnce, 4)
	if n.AtOnce > 0 {
		w.AtOnce = min(w.AtOnce, n.AtOnce)
	}
	w.PerTenant = max(min(cmp.Or(w.PerTenant, w.AtOnce*3/4), w.AtOnce), 1)
	if w.Backoff == nil {
		w.Backoff = Backoff
	}
	return &pool{Worker: w, tenants: map[string]int{}}
}

// The causes with which the context of a job ends.
var (
	errLost     = errors.New("the lease was lost: another node works on the job")
	errStopping = errors.New("the node stops")
)

type claimKey struct{ tenant, id string }

// claimed is a job that this node works on.
type claimed struct {
	job    Job
	pool   *pool
	until  time.Time // when its lease ends
	cancel context.CancelCauseFunc
}

// Run claims jobs and does them until ctx ends, and adds the jobs of schedules. Then it stops
// claiming. Running jobs have Node.Grace to end; those that do not are released, so that other
// nodes do them at once. It must be called once.
func (s *Service) Run(ctx context.Context) {
	var helpers, work sync.WaitGroup
	helping, end := context.WithCancel(context.WithoutCancel(ctx))
	defer helpers.Wait()
	defer end()
	if s.shared != nil {
		s.readClock(ctx)
		helpers.Go(func() { s.readClockEach(helping) })
	}
	if bell, ok := s.store.(Bell); ok {
		helpers.Go(func() { s.ring(helping, bell) })
		if !s.o.Node.Off {
			helpers.Go(func() { s.listen(ctx, bell) })
		}
	}
	if s.o.Node.Off || !s.works() {
		<-ctx.Done()
		return
	}
	working, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	s.mu.Lock()
	s.stopping = func() { stop(errStopping) }
	s.mu.Unlock()
	helpers.Go(func() { s.extendEach(helping) })
	helpers.Go(func() { s.finishAll(helping) })
	helpers.Go(func() { s.reviewEach(helping) })

	s.dispatch(ctx, working, &work)
	<-ctx.Done()
	s.endClaims()
	grace := time.AfterFunc(s.o.Node.Grace, func() { stop(errStopping) })
	defer grace.Stop()
	work.Wait()
}

// works reports whether this node does jobs of any kind.
func (s *Service) works() bool {
	for _, p := range s.pools {
		if !p.Off {
			return true
		}
	}
	return false
}

// endClaims makes this node stop claiming jobs.
func (s *Service) endClaims() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.draining {
		s.draining = true
		close(s.drained)
	}
}

// Drain makes this node stop claiming jobs and waits until none runs. If ctx ends before that, it
// ends the running jobs, which are released, and returns the cause of ctx.
func (s *Service) Drain(ctx context.Context) error {
	s.endClaims()
	s.mu.Lock()
	defer s.mu.Unlock()
	defer context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.idle.Broadcast()
	})()
	for len(s.claimed) > 0 {
		if ctx.Err() != nil {
			s.stopping()
			return context.Cause(ctx)
		}
		s.idle.Wait()
	}
	return nil
}

// ended reports whether no more jobs are begun.
func (s *Service) ended() bool {
	select {
	case <-s.drained:
		return true
	default:
		return false
	}
}

// ringPause is the least time between two calls of Ring, so that one call serves several new jobs.
const ringPause = 20 * time.Millisecond

// ring notifies other nodes when this one has added jobs.
func (s *Service) ring(ctx context.Context, bell Bell) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.bell:
		}
		if err := bell.Ring(ctx); err != nil && ctx.Err() == nil {
			s.o.Log.Debug("queue: cannot wake other nodes", "err", err)
		}
		pause(ctx, ringPause)
	}
}

// listen looks for jobs when another node rings.
func (s *Service) listen(ctx context.Context, bell Bell) {
	for ctx.Err() == nil {
		err := bell.Listen(ctx, func() { signal(s.news) })
		if errors.Is(err, errors.ErrUnsupported) {
			return
		}
		if err != nil && ctx.Err() == nil {
			s.o.Log.Debug("queue: cannot hear other nodes", "err", err)
		}
		pause(ctx, time.Second)
	}
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// hint makes the dispatcher check times at a time, or earlier.
func (s *Service) hint(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at.Before(s.next) {
		s.next = at
		signal(s.news)
	}
}

// untilNext returns how long it is until the dispatcher checks times again. It is at most Poll,
// even after the clock has gone back.
func (s *Service) untilNext() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return min(max(s.next.Sub(s.stamp()), 0), s.o.Node.Poll)
}

// isDue reports whether it is time to check times, and sets the next time. A next time beyond Poll
// is due: it was set when the clock was ahead, and the times of schedules may have been, too.
func (s *Service) isDue(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := now.Add(s.o.Node.Poll)
	wentBack := s.next.After(next)
	if wentBack {
		signal(s.wentBack)
	}
	if now.Before(s.next) && !wentBack {
		return false
	}
	s.next = next
	return true
}

const (
	roundPause = 2 * time.Millisecond // the least time between two rounds
	// the least time after a round that has claimed all ready jobs, so that jobs that are added one
	// by one are claimed together
	drainedPause = 10 * time.Millisecond
	errorPause   = time.Second // after a round, or the begin of a transaction, has failed
)

// dispatch claims jobs until ctx ends or the Service drains.
func (s *Service) dispatch(ctx, working context.Context, work *sync.WaitGroup) {
	d := dispatcher{s: s, working: working, work: work}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.drained:
			return
		case <-s.news:
		case <-timer.C:
		}
		if s.ended() { // select chooses any of the ready cases
			return
		}
		d.claimed = 0
		again, err := d.tick(ctx)
		if err == nil {
			var more bool
			more, err = d.round(ctx)
			again = again || more
		}
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			s.o.Log.Warn("queue: cannot look for jobs", "err", err)
			pause(ctx, errorPause)
		}
		if again || err != nil {
			signal(s.news)
		}
		if d.claimed > 0 && !again {
			pause(ctx, drainedPause)
		} else {
			pause(ctx, roundPause)
		}
		timer.Reset(s.untilNext())
	}
}

// dispatcher claims jobs and begins them.
type dispatcher struct {
	s       *Service
	working context.Context // of the jobs
	work    *sync.WaitGroup
	cursor  Line // the line that was served last
	claimed int  // number of jobs in this round
}

const (
	manyTimes = 1000                   // most jobs that wake, or schedules that are due, in one transaction
	tickPause = 100 * time.Millisecond // after a tick whose rows were locked by another node
)

// tick wakes jobs and adds the jobs of due schedules, if it is time to check them. It reports
// whether there may be more. If nothing is due, it runs one statement.
func (d *dispatcher) tick(ctx context.Context) (again bool, err error) {
	s := d.s
	now := s.stamp()
	if !s.isDue(now) {
		return false, nil
	}
	jobs, schedules, err := s.store.Next(ctx)
	if err != nil {
		s.hint(now)
		return false, err
	}
	for _, t := range []struct {
		at   *time.Time
		work func() (int, error)
	}{
		{schedules, func() (int, error) {
			return s.store.Fire(ctx, now, manyTimes, func(due []Schedule) []Job { return s.fire(due, now) })
		}},
		{jobs, func() (int, error) {
			if err := s.extend(ctx, now); err != nil {
				// leases of jobs of this node that the busy database did not extend in time
				return 0, err
			}
			return s.store.Wake(ctx, now)
		}},
	} {
		switch {
		case t.at == nil:
		case t.at.After(now):
			s.hint(*t.at)
		default:
			n, err := t.work()
			if err != nil {
				s.hint(now)
				return false, err
			}
			if n == 0 {
				s.hint(now.Add(tickPause))
				continue
			}
			again = true
			s.hint(now)
			signal(s.bell)
		}
	}
	return again, nil
}

// unreadable is the pause of a schedule whose expression has become invalid, for example because
// its time zone was removed.
const unreadable = 24 * time.Hour

// fire sets the next times of due schedules and returns their jobs. Several missed times result in
// one job.
func (s *Service) fire(due []Schedule, now time.Time) []Job {
	jobs := make([]Job, 0, len(due))
	for i := range due {
		c := &due[i]
		j, err := s.prepare(Job{Tenant: c.Tenant, Kind: c.Kind, Key: c.Key, Payload: c.Payload, Due: c.Next}, now)
		if err == nil {
			jobs = append(jobs, j)
			c.Next, err = Next(c.Cron, c.Zone, now)
		}
		if err != nil {
			s.o.Log.Warn(
				"queue: a schedule cannot be followed", "tenant", c.Tenant, "kind", c.Kind, "key", c.Key, "err",
				err,
			)
			c.Next = now.Add(unreadable)
		}
	}
	return jobs
}

// manyLines is the number of lines that a round reads.
const manyLines = 100

// round claims jobs for the free places, in turn by line, and reports whether there may be more for
// them.
func (d *dispatcher) round(ctx context.Context) (again bool, err error) {
	if !d.s.anyRoom() {
		return false, nil // a place that becomes free sends a signal
	}
	lines, err := d.s.store.ReadyLines(ctx, Line{}, manyLines)
	if err != nil || len(lines) == 0 {
		return false, err
	}
	wrapped := true
	if len(lines) == manyLines { // there may be more lines
		first := lines
		if lines, err = d.s.store.ReadyLines(ctx, d.cursor, manyLines); err != nil {
			return false, err
		}
		if wrapped = len(lines) < manyLines; wrapped {
			lines = append(lines, first...)
		}
	} else if at, _ := slices.BinarySearchFunc(lines, d.cursor, compareLines); at < len(lines) {
		// begin after the cursor
		if lines[at] == d.cursor {
			at++
		}
		lines = slices.Concat(lines[at:], lines[:at])
	}
	before := d.cursor
	again, err = d.serve(ctx, lines)
	if err == nil && !again && d.cursor == before && !wrapped {
		d.cursor = lines[len(lines)-1]
		again = true
	}
	return again, err
}

func compareLines(a, b Line) int {
	return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Kind, b.Kind))
}

// serve claims jobs of lines and begins them. It reports whether a line had as many jobs as were
// requested.
func (d *dispatcher) serve(ctx context.Context, lines []Line) (more bool, err error) {
	left := map[string]int{} // number of lines by kind
	for _, l := range lines {
		left[l.Kind]++
	}
	for _, l := range lines {
		p := d.s.pools[l.Kind]
		if p == nil || p.Off {
			continue
		}
		places := d.s.places(p, l.Tenant, left[l.Kind])
		left[l.Kind]--
		if places == 0 {
			continue
		}
		n := places * p.Batch
		jobs, err := d.claim(ctx, p, l, n)
		if err != nil || ctx.Err() != nil {
			return false, err
		}
		d.cursor = l
		d.claimed += len(jobs)
		for some := range slices.Chunk(jobs, p.Batch) {
			d.s.begin(d.working, d.work, p, some)
		}
		more = more || len(jobs) == n
	}
	return more, nil
}

// claim claims jobs of a line. The end of ctx does not stop it, because the database may have
// claimed the jobs, and they would then wait until their leases expire. They are released instead.
func (d *dispatcher) claim(ctx context.Context, p *pool, l Line, n int) ([]Job, error) {
	if ctx.Err() != nil || d.s.ended() {
		return nil, context.Cause(ctx)
	}
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	jobs, err := d.s.store.Claim(within, l, n, Claim{
		Lease: d.s.clock.NewID(),
		Node:  d.s.o.Name,
		Until: d.s.stamp().Add(p.Lease),
	})
	if err == nil && len(jobs) > 0 && (ctx.Err() != nil || d.s.ended()) {
		d.s.release(errStopping, jobs...)
		return nil, nil
	}
	return jobs, err
}

// anyRoom reports whether a worker has a free place.
func (s *Service) anyRoom() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.pools {
		if !p.Off && p.busy < p.AtOnce {
			return true
		}
	}
	return false
}

// places returns how many places a tenant can use now, if so many lines share the free ones.
func (s *Service) places(p *pool, tenant string, lines int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	free := p.AtOnce - p.busy
	return max(min(max(free/lines, 1), free, p.PerTenant-p.tenants[tenant]), 0)
}
