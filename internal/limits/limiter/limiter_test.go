package limiter_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/limits/limiter"
)

// acquire acquires weight that must be free.
func acquire(t *testing.T, l *limiter.Limiter, weight int64, keys ...string) (release func()) {
	t.Helper()
	release, err := l.Acquire(t.Context(), weight, keys...)
	if err != nil {
		t.Fatalf("Acquire(%d, %q): %v", weight, keys, err)
	}
	return release
}

func busy(t *testing.T, l *limiter.Limiter, weight int64, keys ...string) {
	t.Helper()
	if _, err := l.Acquire(t.Context(), weight, keys...); !errors.Is(err, limiter.ErrBusy) {
		t.Fatalf("Acquire(%d, %q): %v, want ErrBusy", weight, keys, err)
	}
}

func TestBounds(t *testing.T) {
	for name, c := range map[string]struct {
		o     limiter.Options
		taken [][]string // each with weight 2
		full  [][]string
		free  [][]string
	}{
		"none":     {limiter.Options{}, [][]string{{"a"}, {"a"}}, nil, [][]string{{"a"}, {"a", "x"}, {}}},
		"capacity": {limiter.Options{Capacity: 5}, [][]string{{"a"}, {"b"}}, [][]string{{"a"}, {"c"}, {}}, nil},
		"key": {
			limiter.Options{PerKey: 5}, [][]string{{"a", "x"}, {"a", "y"}}, [][]string{{"a", "z"}, {"a"}},
			[][]string{{"b", "x"}, {}},
		},
		"second key": {
			limiter.Options{PerSubkey: 3}, [][]string{{"a", "x"}}, [][]string{{"a", "x"}},
			[][]string{{"a", "y"}, {"b", "x"}, {"a"}},
		},
		"reserve": {
			limiter.Options{Capacity: 7, Reserve: 3}, [][]string{{"a"}, {"a"}, {"b"}},
			[][]string{{"a"}, {"b"}, {"c"}}, nil,
		},
		"of reserve": {
			limiter.Options{Capacity: 9, Reserve: 3}, [][]string{{"a"}, {"a"}, {"a"}}, [][]string{{"a"}},
			[][]string{{"b"}, {"c"}},
		},
		"all": {limiter.Options{Capacity: 7, PerKey: 5, PerSubkey: 3}, [][]string{{"a", "x"}, {"b", "x"}, {"a", "y"}},
			[][]string{{"a", "x"}, {"a", "z"}, {"b", "x"}, {"c", "x"}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			is, l := is.New(t), limiter.New(c.o)
			var releases []func()
			for _, keys := range c.taken {
				releases = append(releases, acquire(t, l, 2, keys...))
			}
			for _, keys := range c.full {
				busy(t, l, 2, keys...)
			}
			for _, keys := range c.free {
				acquire(t, l, 2, keys...)()
			}
			for _, release := range releases {
				release()
				release() // does nothing
			}
			is.Equal(l.Keys(), 0)
			for _, keys := range c.taken {
				defer acquire(t, l, 2, keys...)()
			}
		})
	}
}

// TestHeavierThanBound: a weight above the limit is admitted when nothing else is in use.
func TestHeavierThanBound(t *testing.T) {
	l := limiter.New(limiter.Options{Capacity: 10, PerKey: 5})
	release := acquire(t, l, 100, "a")
	busy(t, l, 1, "a")
	acquire(t, l, 5, "b")()
	release()
	acquire(t, l, -1, "a")()
	is.New(t).Equal(l.Keys(), 0)
}

func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		is, l := is.New(t), limiter.New(limiter.Options{PerKey: 1, Timeout: time.Second})
		release := acquire(t, l, 1, "a")
		begun := time.Now()
		busy(t, l, 1, "a")
		is.Equal(time.Since(begun), time.Second)

		stopped := errors.New("stopped")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Millisecond, func() { cancel(stopped) })
		_, err := l.Acquire(ctx, 1, "a")
		is.Equal(err, stopped)
		free, err := l.Acquire(ctx, 1, "b") // does not wait
		is.NoErr(err)
		free()

		time.AfterFunc(time.Millisecond, release)
		acquire(t, l, 1, "a")()
		is.Equal(l.Keys(), 0)
	})
}

// TestTwoLimiters: a context limits the waiting time for both.
func TestTwoLimiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		is := is.New(t)
		one, other := limiter.New(limiter.Options{
			Capacity: 1,
			Timeout:  time.Minute,
		}), limiter.New(limiter.Options{Capacity: 1, Timeout: time.Minute})
		time.AfterFunc(700*time.Millisecond, acquire(t, one, 1))
		acquire(t, other, 1)
		begun := time.Now()
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, limiter.ErrBusy)
		defer cancel()
		_, err := one.Acquire(ctx, 1)
		is.NoErr(err)
		_, err = other.Acquire(ctx, 1)
		is.Equal(err, limiter.ErrBusy)
		is.Equal(time.Since(begun), time.Second)
	})
}

func TestQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		is, l := is.New(t), limiter.New(limiter.Options{Capacity: 1, Timeout: time.Hour, Queue: 3, QueuePerKey: 2})
		release := acquire(t, l, 1, "a")
		for _, key := range []string{"a", "a", "b"} {
			go func() { acquire(t, l, 1, key)() }()
			synctest.Wait()
		}
		begun := time.Now()
		busy(t, l, 1, "a")
		busy(t, l, 1, "c")
		is.Equal(time.Since(begun), time.Duration(0))
		release()
		synctest.Wait()
		is.Equal(l.Keys(), 0)
	})
}

// queue makes callers wait, one after the other, and returns the order in which they were admitted.
// A caller is "key" or "key/second", followed by *weight if its weight is not 1.
func queue(t *testing.T, l *limiter.Limiter, release func(), callers ...string) string {
	t.Helper()
	var mu sync.Mutex
	var order []string
	for _, caller := range callers {
		weight, names := int64(1), caller
		if keys, of, ok := strings.Cut(caller, "*"); ok {
			names = keys
			_, _ = fmt.Sscan(of, &weight)
		}
		go func() {
			release := acquire(t, l, weight, strings.Split(strings.TrimRight(names, "0123456789"), "/")...)
			mu.Lock()
			order = append(order, names)
			mu.Unlock()
			time.Sleep(time.Second)
			release()
		}()
		synctest.Wait()
	}
	release()
	time.Sleep(time.Hour)
	mu.Lock()
	defer mu.Unlock()
	return strings.Join(order, " ")
}

func TestRoundRobin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		is, l := is.New(t), limiter.New(limiter.Options{Capacity: 1, Timeout: time.Hour})
		is.Equal(queue(t, l, acquire(t, l, 1, "a"), "a1", "a2", "a3", "b1", "b2", "c1", "a4"), "a1 b1 c1 a2 b2 a3 a4")
		is.Equal(l.Keys(), 0)
	})
}

// TestFullSecondKey: a second key at its limit delays only its own callers.
func TestFullSecondKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		is, l := is.New(t), limiter.New(limiter.Options{PerKey: 2, PerSubkey: 1, Timeout: time.Hour})
		held := acquire(t, l, 1, "a", "x")
		time.AfterFunc(time.Minute, held)
		is.Equal(queue(t, l, func() {}, "a/x1", "a/x2", "a/y1", "a/y2", "b/x1"), "a/y1 b/x1 a/y2 a/x1 a/x2")
		is.Equal(l.Keys(), 0)
	})
}

// TestHeavyIsNotOvertaken: small callers that arrive later do not overtake a large one.
func TestHeavyIsNotOvertaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		is, l := is.New(t), limiter.New(limiter.Options{Capacity: 4, Timeout: time.Hour})
		time.AfterFunc(time.Minute, acquire(t, l, 3, "c"))
		is.Equal(queue(t, l, acquire(t, l, 1, "c"), "b1*4", "a1"), "b1 a1")
		is.Equal(l.Keys(), 0)

		// When the large one ends its wait, those after it are admitted.
		held := acquire(t, l, 3, "c")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		go func() {
			_, err := l.Acquire(ctx, 4, "b")
			is.Equal(err, context.DeadlineExceeded)
		}()
		synctest.Wait()
		begun := time.Now()
		acquire(t, l, 1, "a")()
		is.Equal(time.Since(begun), time.Second)
		held()
		is.Equal(l.Keys(), 0)
	})
}

func TestUnavailable(t *testing.T) {
	is := is.New(t)
	is.NoErr(limiter.Unavailable(nil, "Too many."))
	is.Equal(limiter.Unavailable(context.Canceled, "Too many."), context.Canceled)
	err := limiter.Unavailable(limiter.ErrBusy, "Too many.")
	is.Equal(errs.CodeOf(err), errs.Unavailable)
	is.Equal(errs.MessageOf(err), "Too many.")
	is.True(errors.Is(err, limiter.ErrBusy))
}

// TestConcurrent: the limits are never exceeded, no caller is lost, and no state remains. Some
// callers end their wait.
func TestConcurrent(t *testing.T) {
	is, l := is.New(t), limiter.New(limiter.Options{Capacity: 9, PerKey: 6, PerSubkey: 4, Timeout: time.Minute})
	var mu sync.Mutex
	used := map[string]int64{}
	count := func(weight int64, keys ...string) {
		mu.Lock()
		defer mu.Unlock()
		used[""] += weight
		used[keys[0]] += weight
		used[keys[0]+keys[1]] += weight
		if used[""] > 9 || used[keys[0]] > 6 || used[keys[0]+keys[1]] > 4 {
			t.Errorf("too much at once: %v", used)
		}
	}
	var callers sync.WaitGroup
	for i := range 400 {
		callers.Go(func() {
			weight, keys := int64(i%4+1), []string{string(rune('a' + i%3)), string(rune('x' + i/3%2))}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if i%7 == 0 {
				time.AfterFunc(time.Duration(i)*time.Microsecond, cancel)
			}
			release, err := l.Acquire(ctx, weight, keys...)
			if err != nil {
				if i%7 != 0 {
					t.Error(err)
				}
				return
			}
			count(weight, keys...)
			time.Sleep(50 * time.Microsecond)
			count(-weight, keys...)
			release()
		})
	}
	callers.Wait()
	is.Equal(l.Keys(), 0)
}

func BenchmarkAcquire(b *testing.B) {
	l := limiter.New(limiter.Options{Capacity: 1 << 30, PerKey: 1 << 20, PerSubkey: 1 << 20})
	b.ReportAllocs()
	for b.Loop() {
		release, _ := l.Acquire(b.Context(), 1, "acme", "root")
		release()
	}
}

// TestReacquire: a caller that was admitted before waits however many callers of its key do.
func TestReacquire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		is := is.New(t)
		l := limiter.New(limiter.Options{Capacity: 1, Timeout: time.Minute, Queue: 1, QueuePerKey: 1})
		release := acquire(t, l, 1, "a")
		var all sync.WaitGroup
		all.Go(func() { acquire(t, l, 1, "a")() })
		synctest.Wait()
		busy(t, l, 1, "a")
		all.Go(func() {
			again, err := l.Reacquire(t.Context(), 1, "a")
			is.NoErr(err)
			again()
		})
		synctest.Wait()
		is.Equal(l.Waiting(), 2)
		release()
		all.Wait()
		is.Equal(l.Keys(), 0)
	})
}

// TestReserve: callers that need the reserve do not delay others.
func TestReserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		is := is.New(t)
		l := limiter.New(limiter.Options{Capacity: 3, Reserve: 1, Timeout: time.Minute})
		one, two := acquire(t, l, 1, "a"), acquire(t, l, 1, "a")
		var all sync.WaitGroup
		all.Go(func() { acquire(t, l, 1, "a")() })
		synctest.Wait()
		is.Equal(l.Waiting(), 1)
		acquire(t, l, 1, "b")()
		is.Equal(l.Waiting(), 1)
		one()
		all.Wait()
		two()
		is.Equal(l.Keys(), 0)
	})
}

// observer is an entity.Observer that keeps what waits and how that ended.
type observer struct {
	mu      sync.Mutex
	waiting int
	ended   []string
}

// Begin implements entity.Beginner.
func (o *observer) Begin(ctx context.Context, work entity.Work, kind string) context.Context {
	o.mu.Lock()
	defer o.mu.Unlock()
	if work == entity.TurnWork && kind == "write" {
		o.waiting++
	}
	return ctx
}

// Observe implements entity.Observer.
func (o *observer) Observe(_ context.Context, w entity.Observation) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waiting--
	o.ended = append(o.ended, fmt.Sprintf("%s %s %s %v", w.Work, w.Kind, w.Outcome, w.Duration.Round(time.Second)))
}

// TestObserver: those that wait, and those that are refused, are told, and no others.
func TestObserver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		is, seen := is.New(t), &observer{}
		l := limiter.New(limiter.Options{
			Capacity: 1, Timeout: 3 * time.Second, Queue: 2, Observer: seen, Kind: "write",
		})
		release := acquire(t, l, 1)
		is.Equal(len(seen.ended), 0)
		canceled, cancel := context.WithCancel(t.Context())
		results := make(chan error, 2)
		go func() { _, err := l.Acquire(t.Context(), 1); results <- err }()
		go func() { _, err := l.Acquire(canceled, 1); results <- err }()
		synctest.Wait()
		is.Equal(seen.waiting, 2)
		busy(t, l, 1) // too many wait
		is.Equal(seen.ended, []string{"turn write unavailable 0s"})
		time.Sleep(time.Second)
		cancel()
		is.Equal(<-results, context.Canceled)
		release()
		is.NoErr(<-results)
		busy(t, l, 1) // after its time
		_, err := l.Acquire(canceled, 1)
		is.Equal(err, context.Canceled)
		is.Equal(seen.waiting, 0)
		is.Equal(seen.ended[1:], []string{"turn write canceled 1s", "turn write ok 1s", "turn write unavailable 3s"})
	})
}
