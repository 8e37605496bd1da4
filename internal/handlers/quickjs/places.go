package quickjs

import (
	"time"
)

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
		if v.evict == nil || v.level != t.level || v.evicted || v.phase != phaseSlow && v.phase != phasePaused ||
			ofApp && v.tenant != t.tenant {
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
