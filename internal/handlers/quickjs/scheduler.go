package quickjs

import (
	"context"
	"sync"
	"time"

	"github.com/tenantcontent/tenantcontent/internal/limits/limiter"
	"github.com/tenantcontent/tenantcontent/internal/secure/subprocess"
)

// A scheduler decides which invocations have a process, and which of these compute.
//
// An invocation has a place, which stands for a process and its memory, from its beginning to its
// end. A tenant with some places gets another one while it has fewer than are free, so that there
// are free ones for others, and an app of it likewise. One that has none always gets one: if none
// is free, an invocation of whoever has most is ended.
//
// To compute, an invocation takes one of a few slots, and frees it when it waits. One that computes
// for longer than a slice without waiting frees its slot, too, and is slow from then on: as many
// slow ones as there are processors compute, at the lowest priority, and the others are suspended.
// Whenever there is a choice, the tenant that has used the least CPU time lately is first, and
// within it the app.
type scheduler struct {
	o     schedulerOptions
	begun time.Time

	mu        sync.Mutex
	tenants   map[string]*account // that have tasks, or have computed lately
	queued    map[string]*account // those with tasks that wait for a place or slot
	waiting   int                 // such tasks
	used      [levels]int         // places
	placed    map[*task]bool      // tasks that have one
	slots     int                 // in use
	slow      []*task
	ticking   bool
	lastTask  int64
	evictions int64
	swept     time.Duration
	weighed   time.Duration // when the memory of all was looked at
}

type schedulerOptions struct {
	places  [levels]int // invocations at once, by level
	slots   int         // those of them that compute at once before they are slow
	cores   int         // slow ones that compute at once
	queue   int         // tasks that wait to begin: of a tenant half of them, of an app a quarter
	timeout time.Duration
	memory  int64 // of all processes together; 0 for no bound
	most    int64 // of one process
}

const (
	// slice is the CPU time after which an invocation is slow.
	slice = 100 * time.Millisecond
	// window is the time over which CPU time counts.
	window = time.Minute
	// endless is the CPU time from which on an invocation may be ended although its tenant or app
	// has no other one.
	endless = time.Second
	// weighing is how often the memory of processes is looked at.
	weighing = 250 * time.Millisecond
)

// tenantBudget and appBudget are the CPU time in a window from which on the slow invocations of a
// tenant or app compute only when no others want to, and are the first to be ended.
func (o schedulerOptions) tenantBudget() time.Duration { return time.Duration(o.cores) * window / 2 }
func (o schedulerOptions) appBudget() time.Duration    { return o.tenantBudget() / 2 }

// perTenant is how many slots a tenant has at most.
func (o schedulerOptions) perTenant() int { return max(o.slots/2, 1) }

// controller is the process of a task as a scheduler sees it.
type controller interface {
	cpu() (time.Duration, bool) // how long it has computed, and whether that is known
	memory() int64
	lower()        // gives it the lowest priority
	raise()        // gives it the usual one
	suspend() bool // until proceed
	proceed()
}

// phase is what a task does.
type phase int

const (
	phaseQueued    phase = iota // for a place or a slot
	phaseComputing              // with a slot
	phaseSlow
	phaseStarting // its process starts
	phasePaused   // the script waits
	phaseEnding   // it has ended, or has been stopped and has a while to end
	phaseEnded
)

// task is an invocation as a scheduler sees it.
type task struct {
	tenant, app string
	level       int

	// The rest belongs to the scheduler.

	order     int64
	phase     phase
	inPlace   bool
	granted   chan struct{} // closed when it leaves the queue
	timed     bool          // it is looked at again if it finds no place
	victim    *task         // that is ended in favour of it
	evicted   bool
	process   controller
	evict     func() // ends it in favour of others
	lowered   bool
	suspended bool
	clock     time.Duration // of the process when it was read last
	at        time.Duration // when that was; of one that waits to begin, since when
	cpu       time.Duration // that it has used
	paused    time.Duration // before its last pause
	since     time.Duration // when that began
	stretch   time.Duration // of that since it got its slot
}

// active returns how long a task has computed, or waited for its timers and functions. With the
// race detector, which makes the engine some ten times slower, a tenth of its CPU time counts.
func (t *task) active(now time.Duration) time.Duration {
	d := t.cpu + t.paused
	if subprocess.Instrumented {
		d = t.cpu/10 + t.paused
	}
	if t.phase == phasePaused {
		d += now - t.since
	}
	return d
}

func newScheduler(o schedulerOptions) *scheduler {
	return &scheduler{
		o:       o,
		begun:   time.Now(),
		tenants: map[string]*account{},
		queued:  map[string]*account{},
		placed:  map[*task]bool{},
	}
}

func (s *scheduler) now() time.Duration { return time.Since(s.begun) }

// begin waits until t has a place and a slot. It returns limiter.ErrBusy if it waits in vain, or
// too many do, and the cause of ctx if ctx ends.
func (s *scheduler) begin(ctx context.Context, t *task) error {
	s.mu.Lock()
	s.sweep()
	a, b := s.accounts(t)
	a.tasks++
	b.tasks++
	s.lastTask++
	t.order, t.at = s.lastTask, s.now()
	s.enqueue(t, a, b, t.level)
	s.serve()
	if t.phase == phaseQueued && (s.waiting > s.o.queue || s.queuedOf(a) > max(s.o.queue/2, 1) ||
		b.n > max(s.o.queue/4, 1)) {
		s.abandon(t)
		s.mu.Unlock()
		return limiter.ErrBusy
	}
	done := t.phase != phaseQueued
	s.mu.Unlock()
	if done {
		return nil
	}
	timeout := time.NewTimer(s.o.timeout)
	defer timeout.Stop()
	var err error
	select {
	case <-t.granted:
		return nil
	case <-timeout.C:
		err = limiter.ErrBusy
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.phase == phaseQueued {
		s.abandon(t)
	} else {
		s.remove(t)
	}
	return err
}

// attach tells which process carries t out, and what ends it in favour of others, which is called
// in a goroutine of its own.
func (s *scheduler) attach(t *task, c controller, evict func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.process, t.evict, t.at = c, evict, s.now()
	t.clock, _ = c.cpu()
}

// more reports whether the app of t has other places than that of t.
func (s *scheduler) more(t *task) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, b := s.accounts(t)
	return b.held[t.level] > 1
}

// starting frees the slot of t for other apps while a process starts, which takes long. Its own app
// has it still, so that the next call of the app finds the process of the one before in place of
// starting another.
func (s *scheduler) starting(t *task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, _ := s.accounts(t)
	s.slots--
	a.slots--
	t.phase = phaseStarting
	s.serve()
}

// pause frees the slot of t while its script waits.
func (s *scheduler) pause(t *task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.phase == phaseComputing || t.phase == phaseSlow {
		s.charge(t)
		s.leave(t, phasePaused)
		t.since = s.now()
		s.serve()
	}
}

// resume waits for a slot for t, which has something to do again. When ctx ends, t goes on
// without.
func (s *scheduler) resume(ctx context.Context, t *task) {
	s.mu.Lock()
	switch t.phase {
	case phasePaused:
		s.charge(t)
		t.paused += s.now() - t.since
	case phaseStarting:
		s.leave(t, phasePaused)
	default:
		s.mu.Unlock()
		return
	}
	a, b := s.accounts(t)
	s.enqueue(t, a, b, levels)
	s.serve()
	s.mu.Unlock()
	select {
	case <-t.granted:
		return
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.phase == phaseQueued {
		s.dequeue(t)
		t.phase, t.since = phasePaused, s.now()
	}
}

// check looks at how long t has computed, and returns when to look again, and how long it has
// computed or waited for something of its own.
func (s *scheduler) check(t *task) (again, used time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.process == nil {
		return slice, t.active(s.now())
	}
	s.charge(t)
	return s.judge(t), t.active(s.now())
}

// judge makes t slow if it has computed for a slice, and returns when to look again.
func (s *scheduler) judge(t *task) time.Duration {
	switch {
	case t.phase == phaseComputing && t.stretch < slice:
		return max(slice-t.stretch, slice/10)
	case t.phase == phaseComputing, t.phase == phasePaused && t.stretch >= slice:
		// a process that computes although it says that it waits
		s.slowDown(t)
	case t.phase == phasePaused:
		return 10 * slice
	}
	return slice
}

// finish lets t compute until it has ended, as it is stopped.
func (s *scheduler) finish(t *task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.phase == phaseQueued {
		s.dequeue(t)
	}
	if t.phase != phaseEnded {
		s.leave(t, phaseEnding)
		s.serve()
	}
}

// detach tells that t needs its process no more. Its place, and a slot, are free when end is
// called.
func (s *scheduler) detach(t *task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.charge(t)
	if t.phase != phaseComputing {
		s.leave(t, phaseEnding)
	}
	t.process = nil
}

// end frees all that t has.
func (s *scheduler) end(t *task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(t)
}

// counts returns how many tasks wait for a place or slot, and how many are suspended and were
// evicted.
func (s *scheduler) counts() (waiting, suspended int, evicted int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.slow {
		if t.suspended {
			suspended++
		}
	}
	return s.waiting, suspended, s.evictions
}

// The methods below are called with s.mu held.
