package quickjs

import (
	"slices"
	"time"
)

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
	case phaseStarting:
		_, b := s.accounts(t)
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

// first returns the task of an app that can begin or go on next, nil if there is none.
func (s *scheduler) first(a, b *account, now time.Duration) *task {
	for line := levels; line >= 0; line-- {
		if len(b.queues[line]) == 0 {
			continue
		}
		if line < levels && b.slots >= s.o.perTenant() {
			continue // processes of it start
		}
		t := b.queues[line][0]
		if t.inPlace || s.room(a, b, t.level) || t.victim != nil && t.victim.phase == phaseEnded &&
			s.free(t.level) > 0 {
			return t
		}
		s.makeRoom(t, a, b, now)
	}
	return nil
}
