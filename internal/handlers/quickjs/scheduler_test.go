package quickjs

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/limits/limiter"
)

// simulation is a simulated machine: it lets the tasks of a scheduler compute as a kernel does that
// prefers those of usual priority.
type simulation struct {
	*scheduler
	tasks map[*task]*simulated
}

// simulated is the process of a task.
type simulated struct {
	used, want time.Duration // CPU time; it wants more until it has used want
	bytes      int64
	low, held  bool
	evicted    atomic.Bool
	checked    time.Duration // when check was called last
}

func (p *simulated) cpu() (time.Duration, bool) { return p.used, true }
func (p *simulated) memory() int64              { return p.bytes }
func (p *simulated) lower()                     { p.low = true }
func (p *simulated) raise()                     { p.low = false }
func (p *simulated) suspend() bool              { p.held = true; return true }
func (p *simulated) proceed()                   { p.held = false }

func newSimulation(o schedulerOptions) *simulation {
	if o.timeout == 0 {
		o.timeout = 10 * time.Second
	}
	if o.queue == 0 {
		o.queue = 1000
	}
	for i := range o.places {
		if o.places[i] == 0 {
			o.places[i] = 2
		}
	}
	return &simulation{newScheduler(o), map[*task]*simulated{}}
}

// start begins a task that wants to compute for a while, without waiting until it may.
func (m *simulation) start(tenant, app string, want time.Duration) (*task, chan error) {
	t, begun := &task{tenant: tenant, app: app}, make(chan error, 1)
	p := &simulated{want: want}
	go func() {
		err := m.begin(context.Background(), t)
		if err == nil {
			m.attach(t, p, func() { p.evicted.Store(true) })
		}
		begun <- err
	}()
	synctest.Wait()
	m.tasks[t] = p
	return t, begun
}

const step = 5 * time.Millisecond

// run simulates a while.
func (m *simulation) run(d time.Duration) {
	for end := m.now() + d; m.now() < end; {
		left := time.Duration(m.o.cores) * step
		m.mu.Lock()
		for _, low := range []bool{false, true} {
			var ready []*simulated
			for t, p := range m.tasks {
				if (t.phase == phaseComputing || t.phase == phaseSlow) && t.process != nil && p.low == low &&
					!p.held && p.used < p.want {
					ready = append(ready, p)
				}
			}
			for _, p := range ready {
				d := min(left/time.Duration(len(ready)), step, p.want-p.used)
				p.used += d
			}
			left -= min(left, time.Duration(len(ready))*step)
		}
		m.mu.Unlock()
		time.Sleep(step)
		synctest.Wait()
		var done, look []*task
		m.mu.Lock()
		for t, p := range m.tasks {
			switch {
			case t.phase == phaseEnded || t.process == nil:
			case p.evicted.Load() || p.want > 0 && p.used >= p.want && t.phase != phasePaused:
				done = append(done, t)
			case m.now()-p.checked >= slice/4:
				p.checked = m.now()
				look = append(look, t)
			}
		}
		m.mu.Unlock()
		for _, t := range done {
			m.detach(t)
			m.end(t)
			delete(m.tasks, t)
		}
		for _, t := range look {
			m.check(t)
		}
		synctest.Wait()
	}
}

func (m *simulation) phaseOf(t *task) phase {
	m.mu.Lock()
	defer m.mu.Unlock()
	return t.phase
}

// forever is more than any test lets a task compute.
const forever = time.Hour

// TestEndlessScriptsHoldUpNobody: beside eight tenants with eight endless scripts each, those of
// another tenant, and of another app of one of the eight, begin and end at once; and the eight have
// equal shares of the processors however many scripts each has.
func TestEndlessScriptsHoldUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		is := is.New(t)
		m := newSimulation(schedulerOptions{places: [levels]int{256}, slots: 4, cores: 2})
		for tenant := range 8 {
			scripts := 8
			if tenant == 0 {
				scripts = 1
			}
			for range scripts {
				m.start(fmt.Sprint("hostile", tenant), "app", forever)
			}
		}
		m.run(10 * time.Second)
		is.Equal(len(m.slow), 7*8+1)
		for i := range 100 {
			for _, who := range []struct {
				tenant, app string
				most        time.Duration
			}{{"ninth", "app", 20 * time.Millisecond}, {"hostile1", fmt.Sprint("other", i%2), 20 * time.Millisecond}} {
				at := m.now()
				one, begun := m.start(who.tenant, who.app, time.Millisecond)
				for m.phaseOf(one) != phaseEnded {
					m.run(step)
				}
				is.NoErr(<-begun)
				is.True(m.now()-at <= who.most)
			}
		}
		m.run(40 * time.Second)
		for tenant := range 8 {
			used, _ := m.lately(fmt.Sprint("hostile", tenant))
			share := used.Seconds() / (m.now().Seconds() * 2 / 8)
			if share < 0.9 || share > 1.1 {
				t.Errorf("tenant %d has %.2f of its share", tenant, share)
			}
		}
		_, suspended, evicted := m.counts()
		is.Equal(suspended, 7*8+1-2)
		is.Equal(evicted, int64(0))
		for one := range m.tasks {
			m.detach(one)
			m.end(one)
		}
	})
}

// TestWaitingScriptsHoldNoSlot: an app whose scripts all wait leaves slots, and places, to others
// of its tenant; what has waited goes on.
func TestWaitingScriptsHoldNoSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		is := is.New(t)
		m := newSimulation(schedulerOptions{places: [levels]int{256}, slots: 2, cores: 2})
		var waiting []*task
		for range 64 {
			one, begun := m.start("acme", "slow", 0)
			is.NoErr(<-begun)
			m.pause(one)
			waiting = append(waiting, one)
		}
		one, begun := m.start("acme", "quick", forever)
		is.NoErr(<-begun)
		other, begun := m.start("other", "quick", forever)
		is.NoErr(<-begun)
		resumed := make(chan bool, 64)
		for _, w := range waiting {
			go func() { m.resume(t.Context(), w); resumed <- true }()
		}
		synctest.Wait()
		is.Equal(len(resumed), 0) // the slots are in use
		m.run(time.Second)        // until these are slow
		is.Equal(one.phase, phaseSlow)
		is.Equal(other.phase, phaseSlow)
		is.Equal(len(resumed), 1) // a tenant has half of the slots
		for len(resumed) < 64 {
			for _, w := range waiting {
				if w.phase == phaseComputing {
					m.pause(w)
				}
			}
			synctest.Wait()
		}
		for one := range m.tasks {
			m.detach(one)
			m.end(one)
		}
		is.Equal(m.slots, 0)
		is.Equal(m.used[0], 0)
	})
}

// TestPlacesAreLeftToOthers: tenants, and apps, take places only while others find some.
func TestPlacesAreLeftToOthers(t *testing.T) {
	for _, c := range []struct{ places, tenant, app int }{{2, 1, 1}, {4, 2, 2}, {8, 4, 3}, {16, 8, 5}, {256, 128, 65}} {
		tenant, app := mostPlaces(c.places)
		is.New(t).Equal([]int{tenant, app}, []int{c.tenant, c.app})
		synctest.Test(t, func(t *testing.T) {
			is := is.New(t)
			m := newSimulation(schedulerOptions{
				places:  [levels]int{c.places},
				slots:   1000,
				cores:   2,
				timeout: time.Second,
			})
			take := func(tenant, app string, n int) (got int) {
				for range n {
					one, begun := m.start(tenant, app, 0)
					select {
					case err := <-begun:
						is.NoErr(err)
						m.pause(one)
						got++
					default:
						time.Sleep(time.Second)
						is.Equal(<-begun, limiter.ErrBusy)
						return got
					}
				}
				return got
			}
			is.Equal(take("a", "1", 1000), c.app)
			for i := range 10 {
				take("a", fmt.Sprint("more ", i), 1000)
			}
			if c.places >= 8 {
				is.True(take("b", "1", 1000) >= 1)
				is.True(take("c", "1", 1000) >= 1)
			}
			is.Equal(m.waiting, 0)
			for one := range m.tasks {
				m.end(one)
			}
			is.Equal(m.used[0], 0)
		})
	}
}

// TestWhoHasNothingGetsAPlace: what is ended for that is the script that has computed most of the
// tenant, or the app, with most places.
func TestWhoHasNothingGetsAPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		is := is.New(t)
		m := newSimulation(schedulerOptions{places: [levels]int{4}, slots: 4, cores: 2})
		must := func(tenant, app string, want time.Duration) *task {
			one, begun := m.start(tenant, app, want)
			m.run(200 * time.Millisecond)
			is.NoErr(<-begun)
			return one
		}
		paused := must("a", "1", forever)
		m.pause(paused)
		slow := must("a", "1", forever)
		single := must("b", "1", forever)
		last := must("c", "1", forever)
		m.pause(last)
		is.Equal(m.free(0), 0)
		is.Equal(m.phaseOf(slow), phaseSlow)

		begun := make(chan error, 1)
		other, of := m.start("d", "1", forever)
		go func() { begun <- <-of }()
		m.run(50 * time.Millisecond)
		is.Equal(m.evictions, int64(0)) // one may become free by itself
		m.run(200 * time.Millisecond)
		is.NoErr(<-begun)
		is.Equal(m.evictions, int64(1))
		is.Equal(m.phaseOf(slow), phaseEnded)
		is.Equal(other.tenant, "d")

		m.run(2 * time.Second) // now each has one, and those of b and d are endless
		_, of = m.start("e", "1", 0)
		m.run(200 * time.Millisecond)
		is.NoErr(<-of)
		is.Equal(m.evictions, int64(2))
		is.Equal(m.phaseOf(single), phaseEnded)
		is.Equal(m.phaseOf(paused), phasePaused) // what only waits is all that its tenant has
		is.Equal(m.phaseOf(last), phasePaused)

		_, of = m.start("d", "2", 0) // another app of a tenant takes the place of the first one
		m.run(200 * time.Millisecond)
		is.NoErr(<-of)
		is.Equal(m.phaseOf(other), phaseEnded)
		for one := range m.tasks {
			m.end(one)
		}
	})
}

// TestMemoryIsBounded: the largest script of the tenant that needs most is ended.
func TestMemoryIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		is := is.New(t)
		m := newSimulation(schedulerOptions{places: [levels]int{64}, slots: 64, cores: 2, memory: 1000, most: 150})
		var largest *task
		for i := range 10 {
			tenant := []string{"a", "b", "b"}[i%3]
			one, _ := m.start(tenant, "app", forever)
			m.tasks[one].bytes = 50
			if i == 1 {
				largest, m.tasks[one].bytes = one, 100
			}
		}
		m.run(time.Second)
		is.Equal(m.evictions, int64(0))
		one, _ := m.start("a", "app", forever)
		m.tasks[one].bytes = 460
		m.run(time.Second)
		is.Equal(m.evictions, int64(1))
		is.Equal(m.phaseOf(one), phaseEnded)
		is.True(m.phaseOf(largest) != phaseEnded)
		for one := range m.tasks {
			m.detach(one)
			m.end(one)
		}
	})
}

// TestCPUTimeOfAMinute: what was used longer ago counts no more.
func TestCPUTimeOfAMinute(t *testing.T) {
	is := is.New(t)
	var u usage
	u.add(10*time.Second, 3*time.Second)
	is.Equal(u.lately(59*time.Second), 3*time.Second)
	is.Equal(u.lately(90*time.Second), 1500*time.Millisecond)
	u.add(90*time.Second, time.Second)
	is.Equal(u.lately(119*time.Second), 1050*time.Millisecond)
	is.Equal(u.lately(150*time.Second), 500*time.Millisecond)
	is.Equal(u.lately(10*time.Minute), time.Duration(0))
	synctest.Test(t, func(t *testing.T) {
		m := newSimulation(schedulerOptions{places: [levels]int{4}, slots: 4, cores: 2})
		m.start("acme", "a", 50*time.Millisecond)
		m.run(time.Second)
		all, apps := m.lately("acme")
		is.Equal(all, 50*time.Millisecond)
		is.Equal(apps, map[string]time.Duration{"a": 50 * time.Millisecond})
		time.Sleep(3 * time.Minute)
		m.start("other", "a", time.Millisecond)
		m.run(time.Second)
		is.Equal(len(m.tenants), 1) // those that are not in use take no memory
	})
}

// TestProcessThatSaysThatItWaits: one that computes all the same is slow.
func TestProcessThatSaysThatItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		is := is.New(t)
		m := newSimulation(schedulerOptions{places: [levels]int{4}, slots: 4, cores: 2})
		one, _ := m.start("acme", "a", 0)
		m.pause(one)
		m.tasks[one].used += 2 * slice
		m.check(one)
		is.Equal(m.phaseOf(one), phaseSlow)
		is.True(m.tasks[one].low)
		m.end(one)
	})
}
