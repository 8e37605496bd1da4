package quickjs

import (
	"time"
)

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

// account is what a tenant, or an app of it, has of a scheduler.
type account struct {
	used   usage
	held   [levels]int         // places
	slots  int                 // of an app with those that it had before its processes started
	tasks  int                 // with those that wait
	apps   map[string]*account // of a tenant
	queued map[string]*account // of a tenant: those of apps that have tasks in queues
	queues [levels + 1][]*task // of an app: those that begin, by level, and last those that go on
	n      int                 // tasks in queues
}

// expected returns the CPU time of the last window, with what the slots may use yet.
func (a *account) expected(now time.Duration) time.Duration {
	return a.used.lately(now) + time.Duration(a.slots)*slice
}

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
