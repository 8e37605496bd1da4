package quickjs

import (
	"context"
	"slices"
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

// account is what a tenant, or an app of it, has of a scheduler.
type account struct {
	used   usage
	held   [levels]int // places
	slots  int
	tasks  int                 // with those that wait
	apps   map[string]*account // of a tenant
	queued map[string]*account // of a tenant: those of apps that have tasks in queues
	queues [levels + 1][]*task // of an app: those that begin, by level, and last those that go on
	n      int                 // tasks in queues
}

// usage is the CPU time of about the last window.
type usage struct {
	since       time.Duration // when the window of now began
	now, before time.Duration
}

// turn begins another window if it is time. now is the time since the scheduler began, as in all
// methods.
func (u *usage) turn(now time.Duration) {
	since := now.Truncate(window)
	switch since - u.since {
	case 0:
		return
	case window:
		u.before = u.now
	default:
		u.before = 0
	}
	u.now, u.since = 0, since
}

func (u *usage) add(now, d time.Duration) {
	u.turn(now)
	u.now += d
}

// lately returns the CPU time of the last window: all of the one of now, and of the one before the
// part that is not yet past.
func (u *usage) lately(now time.Duration) time.Duration {
	u.turn(now)
	return u.now + time.Duration(float64(u.before)*float64(window-(now-u.since))/float64(window))
}

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
	phasePaused // the script waits
	phaseEnding // it has ended, or has been stopped and has a while to end
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
	return &scheduler{o: o, begun: time.Now(), tenants: map[string]*account{}, queued: map[string]*account{}, placed: map[*task]bool{}}
}

func (s *scheduler) now() time.Duration { return time.Since(s.begun) }

// accounts returns those of a task.
func (s *scheduler) accounts(t *task) (tenant, app *account) {
	a := s.tenants[t.tenant]
	if a == nil {
		a = &account{apps: map[string]*account{}, queued: map[string]*account{}}
		s.tenants[t.tenant] = a
	}
	b := a.apps[t.app]
	if b == nil {
		b = &account{}
		a.apps[t.app] = b
	}
	return a, b
}

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
	if t.phase == phaseQueued && (s.waiting > s.o.queue || s.queuedOf(a) > max(s.o.queue/2, 1) || b.n > max(s.o.queue/4, 1)) {
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

// resume waits for a slot for t, whose script has something to do again. When ctx ends, t goes on
// without.
func (s *scheduler) resume(ctx context.Context, t *task) {
	s.mu.Lock()
	if t.phase != phasePaused {
		s.mu.Unlock()
		return
	}
	s.charge(t)
	t.paused += s.now() - t.since
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
	case t.phase == phaseComputing, t.phase == phasePaused && t.stretch >= slice: // a process that computes although it says that it waits
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

// lately returns the CPU time that a tenant, and each of its apps, has used in about the last
// window.
func (s *scheduler) lately(tenant string) (all time.Duration, apps map[string]time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.tenants[tenant]
	if a == nil {
		return 0, nil
	}
	now := s.now()
	for t := range s.placed { // what runs is charged now and then
		if t.tenant == tenant {
			s.charge(t)
		}
	}
	apps = map[string]time.Duration{}
	for name, b := range a.apps {
		apps[name] = b.used.lately(now)
	}
	return a.used.lately(now), apps
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

func (s *scheduler) queuedOf(a *account) (n int) {
	for _, b := range a.queued {
		n += b.n
	}
	return n
}

func (s *scheduler) enqueue(t *task, a, b *account, line int) {
	t.phase, t.granted = phaseQueued, make(chan struct{})
	b.queues[line] = append(b.queues[line], t)
	b.n++
	s.waiting++
	a.queued[t.app], s.queued[t.tenant] = b, a
}

// dequeue removes t from its queue. The caller sets its state.
func (s *scheduler) dequeue(t *task) {
	a, b := s.accounts(t)
	for line, q := range b.queues {
		if at := slices.Index(q, t); at >= 0 {
			b.queues[line] = slices.Delete(q, at, at+1)
			b.n--
			s.waiting--
		}
	}
	if b.n == 0 {
		delete(a.queued, t.app)
	}
	if len(a.queued) == 0 {
		delete(s.queued, t.tenant)
	}
}

// abandon removes a task that has waited in vain to begin.
func (s *scheduler) abandon(t *task) {
	s.dequeue(t)
	s.remove(t)
}

// remove ends a task that is in no queue.
func (s *scheduler) remove(t *task) {
	if t.phase == phaseEnded {
		return
	}
	s.leave(t, phaseEnded)
	a, b := s.accounts(t)
	if t.inPlace {
		t.inPlace = false
		s.used[t.level]--
		a.held[t.level]--
		b.held[t.level]--
		delete(s.placed, t)
	}
	a.tasks--
	b.tasks--
	s.serve()
}

// leave takes from t the slot or the turn that it has.
func (s *scheduler) leave(t *task, next phase) {
	switch t.phase {
	case phaseComputing:
		a, b := s.accounts(t)
		s.slots--
		a.slots--
		b.slots--
	case phaseSlow:
		s.slow = slices.DeleteFunc(s.slow, func(other *task) bool { return other == t })
	}
	was := t.phase
	t.phase, t.stretch = next, 0
	if t.suspended {
		t.suspended = false
		t.process.proceed()
	}
	if was == phaseSlow {
		s.balance()
	}
}

// charge adds the CPU time of t since it was read last to what it, its app and its tenant have
// used.
func (s *scheduler) charge(t *task) {
	if t.process == nil {
		return
	}
	now := s.now()
	clock, known := t.process.cpu()
	d := clock - t.clock
	if !known { // the time for which it could compute
		d = 0
		if t.phase == phaseComputing || t.phase == phaseSlow && !t.suspended {
			d = now - t.at
		}
	}
	t.clock, t.at = clock, now
	if d <= 0 {
		return
	}
	t.cpu += d
	t.stretch += d
	a, b := s.accounts(t)
	a.used.add(now, d)
	b.used.add(now, d)
}

// serve gives places and slots to those who wait.
func (s *scheduler) serve() {
	for s.slots < s.o.slots && s.waiting > 0 {
		t := s.next()
		if t == nil {
			return
		}
		s.dequeue(t)
		a, b := s.accounts(t)
		if !t.inPlace {
			t.inPlace = true
			s.placed[t] = true
			s.used[t.level]++
			a.held[t.level]++
			b.held[t.level]++
			s.tick(weighing)
		}
		s.slots++
		a.slots++
		b.slots++
		t.phase, t.stretch = phaseComputing, 0
		if t.lowered {
			t.lowered = false
			t.process.raise()
		}
		close(t.granted)
	}
}

// next returns the task that gets a slot next, nil if there is none that can.
func (s *scheduler) next() (best *task) {
	now := s.now()
	var least time.Duration
	for _, a := range s.queued {
		if a.slots >= s.o.perTenant() {
			continue
		}
		t := s.nextOf(a, now)
		used := a.expected(now)
		if t != nil && (best == nil || used < least || used == least && t.order < best.order) {
			best, least = t, used
		}
	}
	return best
}

// nextOf is next for a tenant.
func (s *scheduler) nextOf(a *account, now time.Duration) (best *task) {
	var least time.Duration
	for _, b := range a.queued {
		t := s.first(a, b, now)
		used := b.expected(now)
		if t != nil && (best == nil || used < least || used == least && t.order < best.order) {
			best, least = t, used
		}
	}
	return best
}

// expected returns the CPU time of the last window, with what the slots may use yet.
func (a *account) expected(now time.Duration) time.Duration {
	return a.used.lately(now) + time.Duration(a.slots)*slice
}

// first returns the task of an app that can begin or go on next, nil if there is none.
func (s *scheduler) first(a, b *account, now time.Duration) *task {
	for line := levels; line >= 0; line-- {
		if len(b.queues[line]) == 0 {
			continue
		}
		t := b.queues[line][0]
		if t.inPlace || s.room(a, b, t.level) || t.victim != nil && t.victim.phase == phaseEnded && s.free(t.level) > 0 {
			return t
		}
		s.makeRoom(t, a, b, now)
	}
	return nil
}

// free returns the number of places that nobody has.
func (s *scheduler) free(level int) int { return s.o.places[level] - s.used[level] }

// room reports whether an app may have another place.
func (s *scheduler) room(a, b *account, level int) bool {
	free := s.free(level)
	of, ofApp := a.held[level], b.held[level]
	switch {
	case free <= 0:
		return false
	case of == 0:
		return true
	case ofApp == 0: // the tenant's bound is a higher one then
		return of < 2*free
	}
	return of < free && 2*ofApp <= free-of
}

// mostPlaces returns how many places one tenant, and one app, has at most while no other one wants
// some.
func mostPlaces(places int) (tenant, app int) { return (places + 1) / 2, (places+1)/4 + 1 }

// makeRoom ends an invocation in favour of t if its tenant, or its app, has no place, and none has
// become free in a slice.
func (s *scheduler) makeRoom(t *task, a, b *account, now time.Duration) {
	if t.victim != nil && t.victim.phase != phaseEnded {
		return // it will have room soon
	}
	ofApp := a.held[t.level] > 0
	if ofApp && b.held[t.level] > 0 {
		return
	}
	if now-t.at < slice {
		if !t.timed {
			t.timed = true
			time.AfterFunc(slice, func() {
				s.mu.Lock()
				defer s.mu.Unlock()
				t.timed = false
				s.serve()
			})
		}
		return
	}
	var victim *task
	for v := range s.placed {
		if v.level != t.level || v.evicted || v.phase != phaseSlow && v.phase != phasePaused || ofApp && v.tenant != t.tenant {
			continue
		}
		va, vb := s.accounts(v)
		held := va.held[v.level]
		if ofApp {
			held = vb.held[v.level]
		}
		if held < 2 && (v.phase != phaseSlow || v.cpu < endless) {
			continue
		}
		if victim == nil || s.greedier(v, victim, now) {
			victim = v
		}
	}
	if victim != nil {
		t.victim = victim
		s.stop(victim)
	}
}

// greedier reports whether v is ended before w.
func (s *scheduler) greedier(v, w *task, now time.Duration) bool {
	va, vb := s.accounts(v)
	wa, wb := s.accounts(w)
	switch l := v.level; {
	case va.held[l] != wa.held[l]:
		return va.held[l] > wa.held[l]
	case va != wa:
		if x, y := va.used.lately(now), wa.used.lately(now); x != y {
			return x > y
		}
		return v.tenant < w.tenant
	case vb.held[l] != wb.held[l]:
		return vb.held[l] > wb.held[l]
	case (v.phase == phaseSlow) != (w.phase == phaseSlow):
		return v.phase == phaseSlow
	case v.phase == phaseSlow && v.cpu != w.cpu:
		return v.cpu > w.cpu
	}
	return v.order > w.order // the one that has begun last has done least
}

// stop ends an invocation in favour of others.
func (s *scheduler) stop(t *task) {
	t.evicted = true
	s.evictions++
	go t.evict()
}

// slowDown makes t slow.
func (s *scheduler) slowDown(t *task) {
	s.leave(t, phaseSlow)
	if !t.lowered {
		t.lowered = true
		t.process.lower()
	}
	s.slow = append(s.slow, t)
	s.balance()
	s.serve()
}

// balance suspends all slow tasks but those that compute now.
func (s *scheduler) balance() {
	all := len(s.slow) <= s.o.cores
	compute := map[*task]bool{}
	if !all {
		compute = s.pick()
	}
	for _, t := range s.slow {
		switch may := all || compute[t]; {
		case may && t.suspended:
			t.suspended = false
			t.process.proceed()
		case !may && !t.suspended:
			s.charge(t)
			t.suspended = t.process.suspend()
		}
	}
	if !all {
		s.tick(slice)
	}
}

// pick returns the slow tasks that compute now.
func (s *scheduler) pick() map[*task]bool {
	now, picked := s.now(), map[*task]bool{}
	extra := map[*account]time.Duration{}
	type key struct {
		over             bool
		tenant, app, own time.Duration
		order            int64
	}
	less := func(x, y key) bool {
		switch {
		case x.over != y.over:
			return y.over
		case x.tenant != y.tenant:
			return x.tenant < y.tenant
		case x.app != y.app:
			return x.app < y.app
		case x.own != y.own:
			return x.own < y.own
		}
		return x.order < y.order
	}
	for range s.o.cores {
		var best *task
		var of key
		for _, t := range s.slow {
			if picked[t] {
				continue
			}
			a, b := s.accounts(t)
			k := key{false, a.used.lately(now) + extra[a], b.used.lately(now) + extra[b], t.cpu, t.order}
			k.over = k.tenant > s.o.tenantBudget() || k.app > s.o.appBudget()
			if best == nil || less(k, of) {
				best, of = t, k
			}
		}
		a, b := s.accounts(best)
		extra[a] += slice
		extra[b] += slice
		picked[best] = true
	}
	return picked
}

// tick looks at slow tasks and memory in a while, if it is not about to be done.
func (s *scheduler) tick(d time.Duration) {
	if s.ticking || len(s.slow) <= s.o.cores && !s.crowded() {
		return
	}
	s.ticking = true
	time.AfterFunc(d, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.ticking = false
		for _, t := range s.slow {
			if !t.suspended {
				s.charge(t)
			}
		}
		s.balance()
		s.weigh()
		s.tick(weighing)
	})
}

// crowded reports whether the processes could need more memory than they may have together.
func (s *scheduler) crowded() bool {
	return s.o.memory > 0 && int64(len(s.placed))*s.o.most > s.o.memory
}

// weigh ends an invocation if the processes need too much memory: the largest one of the tenant
// that needs most.
func (s *scheduler) weigh() {
	now := s.now()
	if !s.crowded() || now-s.weighed < weighing {
		return
	}
	s.weighed = now
	all, of, size := int64(0), map[string]int64{}, map[*task]int64{}
	for t := range s.placed {
		if t.process == nil {
			continue
		}
		size[t] = t.process.memory()
		all += size[t]
		of[t.tenant] += size[t]
	}
	for all > s.o.memory {
		var largest *task
		for t, n := range size {
			switch {
			case t.evicted || t.phase == phaseEnding:
			case largest == nil, of[t.tenant] > of[largest.tenant], t.tenant == largest.tenant && n > size[largest]:
				largest = t
			}
		}
		if largest == nil {
			return
		}
		s.stop(largest)
		all -= size[largest]
		of[largest.tenant] -= size[largest]
	}
}

// sweep forgets those that have no tasks and have not computed lately.
func (s *scheduler) sweep() {
	now := s.now()
	if now-s.swept < window {
		return
	}
	s.swept = now
	for name, a := range s.tenants {
		for app, b := range a.apps {
			if b.tasks == 0 && b.used.lately(now) == 0 {
				delete(a.apps, app)
			}
		}
		if a.tasks == 0 && len(a.apps) == 0 {
			delete(s.tenants, name)
		}
	}
}
