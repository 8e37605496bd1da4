package quickjs

import (
	"time"
)

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
